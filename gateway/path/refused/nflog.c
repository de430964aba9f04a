/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The netlink frame comes from the kernel and is walked by libmnl; the packet inside comes from the guest, cut to the
 * length the log rule asks for, and is read through the checked reader only. */
#include "gateway/path/refused/nflog.h"

#include "base/reader.h"

#include <assert.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <netinet/in.h>
#include <string.h>

#define NFLOG_IPV4_HEADER 20
#define NFLOG_IPV4_FRAGMENT_MASK 0x1fffu
/* Where the flags stand, counted from the end of the ports: sequence, acknowledgement, data offset. */
#define NFLOG_TCP_SKIP 9
#define NFLOG_TCP_SYN 0x02u
#define NFLOG_TCP_FLAGS 0x3fu
/* Not in every netinet/in.h. */
#define NFLOG_PROTO_SHIM6 140
#define NFLOG_PROTO_HIP 139

static const char *const nflog_prefixes[] = {
    [TAP_COUNTER_SPOOFED] = "spoofed",
    [TAP_COUNTER_NEVER] = "never",
    [TAP_COUNTER_TCP] = "tcp",
    [TAP_COUNTER_UDP] = "udp",
    [TAP_COUNTER_ICMP] = "icmp",
    [TAP_COUNTER_PROTO] = "proto",
};
static_assert(sizeof(nflog_prefixes) / sizeof(nflog_prefixes[0]) == TAP_COUNTER_MAX, "a prefix for each counter");

/* The class for a log prefix. False for one that is not ours. */
static bool
nflog_class(const void *prefix, size_t len, enum tap_counter *ret_class)
{
	for (size_t i = 0; i < TAP_COUNTER_MAX; i++)
		if (strlen(nflog_prefixes[i]) == len && memcmp(nflog_prefixes[i], prefix, len) == 0) {
			*ret_class = (enum tap_counter)i;
			return true;
		}
	return false;
}

/* The transport header; first: not a later fragment, which has none. */
static void
nflog_read_transport(struct reader *r, bool first, struct nflog_packet *packet)
{
	bool has_ports = packet->proto == IPPROTO_TCP || packet->proto == IPPROTO_UDP ||
	    packet->proto == IPPROTO_SCTP || packet->proto == IPPROTO_DCCP || packet->proto == IPPROTO_UDPLITE;
	uint16_t sport, dport;

	packet->stray = packet->proto == IPPROTO_TCP;
	if (!has_ports || !first)
		return;
	sport = reader_u16(r);
	dport = reader_u16(r);
	if (!reader_ok(r))
		return;
	packet->sport = sport;
	packet->dport = dport;
	if (packet->proto == IPPROTO_TCP) {
		reader_bytes(r, NFLOG_TCP_SKIP);
		packet->stray = (reader_u8(r) & NFLOG_TCP_FLAGS) != NFLOG_TCP_SYN;
	}
}

/* Reads an IPv4 header and what follows it. */
static void
nflog_read_ipv4(struct reader *r, struct nflog_packet *packet)
{
	const uint8_t *header = reader_bytes(r, NFLOG_IPV4_HEADER);
	size_t header_len;
	bool first;

	if (header == NULL)
		return;
	header_len = (size_t)(header[0] & 0x0f) * 4;
	if (header_len < NFLOG_IPV4_HEADER)
		return;
	first = ((unsigned int)(header[6] << 8 | header[7]) & NFLOG_IPV4_FRAGMENT_MASK) == 0;
	packet->proto = header[9];
	packet->src = addr_from_ipv4(header + 12);
	packet->dst = addr_from_ipv4(header + 16);
	packet->ip = true;
	reader_bytes(r, header_len - NFLOG_IPV4_HEADER);
	nflog_read_transport(r, first, packet);
}

/* Is this next-header value an extension header, and how long is it (its second byte read as length)? */
static bool
nflog_extension(uint8_t next, uint8_t length_field, size_t *ret_len)
{
	switch (next) {
	case IPPROTO_HOPOPTS:
	case IPPROTO_ROUTING:
	case IPPROTO_DSTOPTS:
	case IPPROTO_MH:
	case NFLOG_PROTO_HIP:
	case NFLOG_PROTO_SHIM6:
		*ret_len = ((size_t)length_field + 1) * 8;
		return true;
	case IPPROTO_AH:
		*ret_len = ((size_t)length_field + 2) * 4;
		return true;
	case IPPROTO_FRAGMENT:
		*ret_len = 8;
		return true;
	default:
		return false;
	}
}

/* Reads an IPv6 header, its extensions, and what follows them. */
static void
nflog_read_ipv6(struct reader *r, struct nflog_packet *packet)
{
	const uint8_t *header = reader_bytes(r, 40);
	bool first = true;
	size_t len;

	if (header == NULL)
		return;
	packet->proto = header[6];
	packet->src = addr_from_ipv6(header + 8);
	packet->dst = addr_from_ipv6(header + 24);
	packet->ip = true;
	for (int i = 0; i < NFLOG_EXTENSIONS_MAX && nflog_extension(packet->proto, 0, &len); i++) {
		uint8_t next = reader_u8(r);
		uint8_t length_field = reader_u8(r);
		uint16_t offset = reader_u16(r);

		if (!reader_ok(r))
			return;
		nflog_extension(packet->proto, length_field, &len);
		if (packet->proto == IPPROTO_FRAGMENT && offset >> 3 != 0)
			first = false;
		reader_bytes(r, len - 4);
		packet->proto = next;
	}
	nflog_read_transport(r, first, packet);
}

void
nflog_read_ip(const void *bytes, size_t len, struct nflog_packet *ret_packet)
{
	struct reader r = reader_make(bytes, len);
	struct reader peek = r;
	uint8_t version = reader_u8(&peek) >> 4;

	if (version == 4)
		nflog_read_ipv4(&r, ret_packet);
	else if (version == 6)
		nflog_read_ipv6(&r, ret_packet);
}

/* The attributes of one message that matter here. */
struct nflog_attrs {
	const struct nlattr *header, *prefix, *payload;
};

/* Keeps the attributes that are of use, for mnl. */
static int
nflog_attr_handler(const struct nlattr *attr, void *data)
{
	struct nflog_attrs *attrs = data;

	switch (mnl_attr_get_type(attr)) {
	case NFULA_PACKET_HDR:
		attrs->header = attr;
		break;
	case NFULA_PREFIX:
		attrs->prefix = attr;
		break;
	case NFULA_PAYLOAD:
		attrs->payload = attr;
		break;
	}
	return MNL_CB_OK;
}

/* Reads one message of the log. False: it is no packet of ours. */
static bool
nflog_read_message(const struct nlmsghdr *message, struct nflog_packet *ret_packet)
{
	struct nflog_attrs attrs = {0};
	struct nflog_packet packet = {0};
	struct nfulnl_msg_packet_hdr header;
	const char *prefix;
	size_t prefix_len;

	if (message->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
		return false;
	if (message->nlmsg_len < NLMSG_HDRLEN + sizeof(struct nfgenmsg))
		return false;
	/* Not mnl_attr_parse: it rounds the message's length up, to past the end of what was received. */
	if (mnl_attr_parse_payload((const uint8_t *)message + NLMSG_HDRLEN + sizeof(struct nfgenmsg),
		message->nlmsg_len - NLMSG_HDRLEN - sizeof(struct nfgenmsg), nflog_attr_handler, &attrs) < 0 ||
	    attrs.prefix == NULL)
		return false;
	prefix = mnl_attr_get_payload(attrs.prefix);
	prefix_len = mnl_attr_get_payload_len(attrs.prefix);
	prefix_len = strnlen(prefix, prefix_len);
	if (!nflog_class(prefix, prefix_len, &packet.class))
		return false;
	if (attrs.header != NULL && mnl_attr_get_payload_len(attrs.header) >= sizeof(header)) {
		memcpy(&header, mnl_attr_get_payload(attrs.header), sizeof(header));
		packet.ethertype = ntohs(header.hw_protocol);
	}
	if (attrs.payload != NULL)
		nflog_read_ip(mnl_attr_get_payload(attrs.payload), mnl_attr_get_payload_len(attrs.payload), &packet);
	*ret_packet = packet;
	return true;
}

size_t
nflog_each(
    const void *bytes, size_t len, void (*handler)(const struct nflog_packet *packet, void *context), void *context)
{
	const struct nlmsghdr *message = bytes;
	int left = len > INT32_MAX ? INT32_MAX : (int)len;
	size_t count = 0;

	/* mnl_nlmsg_ok compares as int: a length beyond INT_MAX would pass. */
	while (mnl_nlmsg_ok(message, left) && message->nlmsg_len <= (uint32_t)left) {
		struct nflog_packet packet;

		if (nflog_read_message(message, &packet)) {
			handler(&packet, context);
			count++;
		}
		message = mnl_nlmsg_next(message, &left);
	}
	return count;
}
