/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Frames written into a TAP as a hostile guest's kernel would, and what comes back. */
#ifndef POSTERN_TESTS_TAP_WIRE_H
#define POSTERN_TESTS_TAP_WIRE_H

#include "tap_fixture.h"

#include <linux/if_ether.h>
#include <netinet/in.h>

#define GUEST4 "172.16.0.2"
#define GATEWAY4 "172.16.0.1"
#define GUEST6 "fd70:6f73:7465:726e::2"
#define GATEWAY6 "fd70:6f73:7465:726e::1"
#define VNET_HEADER 10

#define FIN 0x01
#define SYN 0x02
#define RST 0x04
#define PSH 0x08
#define ACK 0x10
#define URG 0x20

static const uint8_t guest_mac[6] = {0x06, 0x00, 172, 16, 0, 2}, router_mac[6] = {0x06, 0x01, 172, 16, 0, 1};

struct wire {
	struct tap *tap;
	int fd; /* the VMM's end */
};

__attribute__((unused)) static struct wire
wire_make(const char *name)
{
	struct tap_config config = fixture_config(name);
	struct wire wire = {.tap = fixture_attach(&config)};
	struct netns_visit visit;

	wire.fd = fixture_open_tap(wire.tap);
	assert_int_equal(netns_enter(&visit, tap_netns_fd(wire.tap), NULL), 0);
	link_settle("tap0");
	netns_leave(&visit);
	fixture_sleep_ms(50); /* IPv6 joins its groups in its own time */
	return wire;
}

__attribute__((unused)) static void
wire_free(struct wire *wire)
{
	close(wire->fd);
	tap_detach(wire->tap, false);
}

/* Frames. */

struct frame {
	uint8_t bytes[4096];
	size_t len;
};

__attribute__((unused)) static void
put(struct frame *frame, const void *bytes, size_t len)
{
	assert_true(frame->len + len <= sizeof(frame->bytes));
	if (len > 0)
		memcpy(frame->bytes + frame->len, bytes, len);
	frame->len += len;
}

__attribute__((unused)) static void
put8(struct frame *frame, unsigned int value)
{
	uint8_t byte = (uint8_t)value;

	put(frame, &byte, 1);
}

__attribute__((unused)) static void
put16(struct frame *frame, unsigned int value)
{
	put8(frame, value >> 8);
	put8(frame, value & 0xff);
}

__attribute__((unused)) static void
put_addr(struct frame *frame, const char *text)
{
	struct addr addr = fixture_addr(text);

	put(frame, addr.bytes, addr.family == 4 ? 4 : 16);
}

__attribute__((unused)) static struct frame
ether(uint16_t type)
{
	struct frame frame = {.len = 0};

	put(&frame, router_mac, 6);
	put(&frame, guest_mac, 6);
	put16(&frame, type);
	return frame;
}

__attribute__((unused)) static uint16_t
checksum(const uint8_t *bytes, size_t len, uint32_t sum)
{
	for (size_t i = 0; i < len; i++)
		sum += i % 2 == 0 ? (uint32_t)bytes[i] << 8 : bytes[i];
	while (sum >> 16)
		sum = (sum & 0xffff) + (sum >> 16);
	return (uint16_t)~sum;
}

/* IPv4 with options (a multiple of four bytes); fragment is the header's flags and offset field. */
__attribute__((unused)) static struct frame
ip4_full(const char *from, const char *to, uint8_t proto, unsigned int fragment, const void *options,
    size_t options_len, const void *payload, size_t len)
{
	struct frame frame = ether(ETH_P_IP);
	uint16_t sum;

	put8(&frame, 0x45 + (unsigned int)options_len / 4);
	put8(&frame, 0);
	put16(&frame, (unsigned int)(20 + options_len + len));
	put16(&frame, 0x1234);
	put16(&frame, fragment);
	put8(&frame, 64);
	put8(&frame, proto);
	put16(&frame, 0);
	put_addr(&frame, from);
	put_addr(&frame, to);
	put(&frame, options, options_len);
	sum = checksum(frame.bytes + 14, 20 + options_len, 0);
	frame.bytes[24] = (uint8_t)(sum >> 8);
	frame.bytes[25] = (uint8_t)sum;
	put(&frame, payload, len);
	return frame;
}

__attribute__((unused)) static struct frame
ip6(const char *from, const char *to, uint8_t next, const void *payload, size_t len)
{
	struct frame frame = ether(ETH_P_IPV6);

	put16(&frame, 0x6000);
	put16(&frame, 0);
	put16(&frame, (unsigned int)len);
	put8(&frame, next);
	put8(&frame, 255);
	put_addr(&frame, from);
	put_addr(&frame, to);
	put(&frame, payload, len);
	return frame;
}

__attribute__((unused)) static struct frame
ip(const char *from, const char *to, uint8_t proto, const void *payload, size_t len)
{
	if (strchr(from, ':') != NULL)
		return ip6(from, to, proto, payload, len);
	return ip4_full(from, to, proto, 0, NULL, 0, payload, len);
}

/* The checksum of a transport segment between two addresses. */
__attribute__((unused)) static uint16_t
segment_checksum(const char *from, const char *to, uint8_t proto, const struct frame *segment)
{
	struct addr addrs[2] = {fixture_addr(from), fixture_addr(to)};
	uint32_t sum = (uint32_t)segment->len + proto;

	for (size_t i = 0; i < 2; i++)
		for (size_t j = 0; j < 16; j += 2)
			sum += (uint32_t)(addrs[i].bytes[j] << 8 | addrs[i].bytes[j + 1]);
	return checksum(segment->bytes, segment->len, sum);
}

struct tcp_fields {
	uint16_t source, port;
	uint32_t seq, ack;
	uint8_t flags;
};

__attribute__((unused)) static struct frame
tcp_segment_of(const char *from, const char *to, const struct tcp_fields *fields)
{
	struct frame frame = {.len = 0};
	uint16_t sum;

	put16(&frame, fields->source);
	put16(&frame, fields->port);
	put16(&frame, fields->seq >> 16);
	put16(&frame, fields->seq & 0xffff);
	put16(&frame, fields->ack >> 16);
	put16(&frame, fields->ack & 0xffff);
	put8(&frame, 5 << 4);
	put8(&frame, fields->flags);
	put16(&frame, 65535);
	put16(&frame, 0);
	put16(&frame, 0);
	sum = segment_checksum(from, to, IPPROTO_TCP, &frame);
	frame.bytes[16] = (uint8_t)(sum >> 8);
	frame.bytes[17] = (uint8_t)sum;
	return frame;
}

__attribute__((unused)) static struct frame
tcp_segment(const char *from, const char *to, uint16_t port, uint8_t flags)
{
	struct tcp_fields fields = {.source = 40000, .port = port, .seq = 0x01020304, .flags = flags};

	return tcp_segment_of(from, to, &fields);
}

__attribute__((unused)) static struct frame
tcp(const char *from, const char *to, uint16_t port, uint8_t flags)
{
	struct frame payload = tcp_segment(from, to, port, flags);

	return ip(from, to, IPPROTO_TCP, payload.bytes, payload.len);
}

__attribute__((unused)) static struct frame
udp(const char *from, const char *to, uint16_t port)
{
	struct frame payload = {.len = 0};
	uint16_t sum;

	put16(&payload, 40000);
	put16(&payload, port);
	put16(&payload, 9);
	put16(&payload, 0);
	put8(&payload, 'x');
	sum = segment_checksum(from, to, IPPROTO_UDP, &payload);
	payload.bytes[6] = (uint8_t)(sum >> 8);
	payload.bytes[7] = (uint8_t)sum;
	return ip(from, to, IPPROTO_UDP, payload.bytes, payload.len);
}

/* ICMPv6 with its checksum, which the kernel checks itself. */
__attribute__((unused)) static struct frame
icmp6(const char *from, const char *to, const void *message, size_t len)
{
	struct frame frame = ip6(from, to, IPPROTO_ICMPV6, message, len);
	uint16_t sum = checksum(frame.bytes + 22, 32 + len, (uint32_t)len + IPPROTO_ICMPV6);

	frame.bytes[56] = (uint8_t)(sum >> 8);
	frame.bytes[57] = (uint8_t)sum;
	return frame;
}

__attribute__((unused)) static struct frame
echo(const char *from, const char *to)
{
	uint8_t message[16] = {8};
	uint16_t sum;

	if (strchr(from, ':') != NULL) {
		message[0] = 128;
		return icmp6(from, to, message, sizeof(message));
	}
	sum = checksum(message, sizeof(message), 0);
	message[2] = (uint8_t)(sum >> 8);
	message[3] = (uint8_t)sum;
	return ip(from, to, IPPROTO_ICMP, message, sizeof(message));
}

/* A solicitation for target, or an advertisement of it; link is the source or target link-layer address. */
__attribute__((unused)) static struct frame
neighbour(uint8_t type, const char *from, const char *to, const char *target, const uint8_t link[6])
{
	struct frame message = {.len = 0};

	put8(&message, type);
	put8(&message, 0);
	put16(&message, 0);
	put16(&message, type == 136 ? 0x6000 : 0);
	put16(&message, 0);
	put_addr(&message, target);
	if (link != NULL) {
		put8(&message, type == 136 ? 2 : 1);
		put8(&message, 1);
		put(&message, link, 6);
	}
	return icmp6(from, to, message.bytes, message.len);
}

__attribute__((unused)) static struct frame
arp(uint16_t operation, const uint8_t sender_mac[6], const char *sender, const char *target)
{
	struct frame frame = ether(ETH_P_ARP);

	memset(frame.bytes, 0xff, 6);
	put16(&frame, 1);
	put16(&frame, ETH_P_IP);
	put16(&frame, 0x0604);
	put16(&frame, operation);
	put(&frame, sender_mac, 6);
	put_addr(&frame, sender);
	put(&frame, "\0\0\0\0\0\0", 6);
	put_addr(&frame, target);
	return frame;
}

__attribute__((unused)) static void
send_frame(const struct wire *wire, const struct frame *frame)
{
	uint8_t bytes[VNET_HEADER + sizeof(frame->bytes)] = {0};

	memcpy(bytes + VNET_HEADER, frame->bytes, frame->len);
	assert_int_equal(write(wire->fd, bytes, VNET_HEADER + frame->len), VNET_HEADER + frame->len);
}

/* The next frame towards the guest; false when none comes. */
__attribute__((unused)) static bool
next_frame(const struct wire *wire, struct frame *ret_frame, int timeout_ms)
{
	uint8_t bytes[VNET_HEADER + sizeof(ret_frame->bytes)];
	ssize_t len;

	if (!fixture_readable(wire->fd, timeout_ms))
		return false;
	len = read(wire->fd, bytes, sizeof(bytes));
	if (len < VNET_HEADER)
		return false;
	ret_frame->len = (size_t)len - VNET_HEADER;
	memcpy(ret_frame->bytes, bytes + VNET_HEADER, ret_frame->len);
	return true;
}

/* Discard what the gateway's own kernel has to say (MLD reports and the like). */
__attribute__((unused)) static void
drain(const struct wire *wire)
{
	struct frame frame;

	while (next_frame(wire, &frame, 5))
		;
}

/* Is there a frame towards the guest of this EtherType and IP protocol (0: any)? */
__attribute__((unused)) static bool
answered(const struct wire *wire, uint16_t type, uint8_t proto, struct frame *ret_frame)
{
	while (next_frame(wire, ret_frame, 60)) {
		uint16_t got = (uint16_t)(ret_frame->bytes[12] << 8 | ret_frame->bytes[13]);
		uint8_t got_proto = got == ETH_P_IP ? ret_frame->bytes[23]
		    : got == ETH_P_IPV6             ? ret_frame->bytes[20]
						    : 0;

		if (got == type && (proto == 0 || got_proto == proto))
			return true;
	}
	return false;
}

__attribute__((unused)) static void
counters(const struct wire *wire, uint64_t totals[TAP_COUNTER_MAX])
{
	struct error err;

	assert_ok(tap_counters(wire->tap, totals, &err), err);
}

/* Send; exactly this counter goes up by one, and no connection or query reaches us. */
__attribute__((unused)) static void
assert_refused_as(const struct wire *wire, const struct frame *frame, enum tap_counter expected, const char *what)
{
	uint64_t before[TAP_COUNTER_MAX], after[TAP_COUNTER_MAX];

	counters(wire, before);
	send_frame(wire, frame);
	for (int i = 0; i < 200; i++) { /* the TAP hands over at once; its softirq may not */
		counters(wire, after);
		if (after[expected] != before[expected])
			break;
		fixture_sleep_ms(1);
	}
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		if (after[i] != before[i] + (i == expected))
			fail_msg("%s: counter %u rose by %lu", what, i, (unsigned long)(after[i] - before[i]));
	for (unsigned int i = 0; i < TAP_SOCKET_NFLOG; i++)
		if (fixture_readable(tap_socket(wire->tap, (enum tap_socket)i), 0))
			fail_msg("%s: reached socket %u", what, i);
}

__attribute__((unused)) static void
lease(const struct wire *wire, const char *addr, uint8_t proto, uint16_t port)
{
	struct tap_lease one = {.addr = fixture_addr(addr), .proto = proto, .port = port};
	struct error err = {0};

	assert_ok(tap_lease_add(wire->tap, &one, 1, 600, &err), err);
}

#endif
