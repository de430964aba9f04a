/* SPDX-License-Identifier: GPL-3.0-or-later */
/* IP packets that no ordinary socket sends, from the guest's own address: options, extension headers, fragments, every
 * protocol, odd TCP flags. Each is refused, counted in its class, and logged. */
#include "tap/attr.h"
#include "tap_wire.h"

#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <linux/netlink.h>

static void
case_E_05_ipv4_options(void **state)
{
	static const uint8_t options[][8] = {
	    {131, 7, 4, 8, 8, 8, 8, 0}, /* loose source route */
	    {137, 7, 4, 8, 8, 8, 8, 0}, /* strict source route */
	    {7, 7, 4, 0, 0, 0, 0, 0},   /* record route */
	    {68, 8, 5, 0, 0, 0, 0, 0},  /* timestamp */
	    {148, 4, 0, 0, 1, 1, 1, 0}, /* router alert */
	    {1, 1, 1, 1, 1, 1, 1, 0},   /* nothing at all */
	};
	struct wire wire = wire_make("options");
	struct frame syn = tcp_segment(GUEST4, PUBLIC4, 443, SYN), frame;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
		frame = ip4_full(GUEST4, PUBLIC4, IPPROTO_TCP, 0, options[i], 8, syn.bytes, syn.len);
		assert_refused_as(&wire, &frame, TAP_COUNTER_PROTO, "IPv4 option");
	}
	wire_free(&wire);
}

/* count extension headers of one kind, then TCP. */
static struct frame
extended(uint8_t kind, unsigned int count)
{
	struct frame payload = {.len = 0}, syn = tcp_segment(GUEST6, PUBLIC6, 443, SYN);

	for (unsigned int i = 0; i < count; i++) {
		put8(&payload, i + 1 < count ? kind : IPPROTO_TCP);
		put8(&payload, 0);
		put(&payload, kind == 43 ? "\0\0\0\0\0\0" : "\1\4\0\0\0\0", 6);
	}
	put(&payload, syn.bytes, syn.len);
	return ip6(GUEST6, PUBLIC6, kind, payload.bytes, payload.len);
}

static void
case_E_06_extension_headers(void **state)
{
	static const uint8_t kinds[] = {0 /* hop by hop */, 43 /* routing */, 60 /* destination options */, 51 /* AH */,
	    135 /* mobility */, 139 /* HIP */, 140 /* shim6 */};
	static const unsigned int counts[] = {1, 2, 8, 60};
	struct wire wire = wire_make("extension");
	struct frame frame, answer;

	(void)state;
	lease(&wire, PUBLIC6, IPPROTO_TCP, 443);
	for (size_t i = 0; i < sizeof(kinds); i++) {
		for (size_t j = 0; j < sizeof(counts) / sizeof(counts[0]); j++) {
			frame = extended(kinds[i], counts[j]);
			/* Hop-by-hop headers are read before the hook; a second one in the chain is malformed. */
			assert_refused_as(&wire, &frame, TAP_COUNTER_PROTO, "extension header");
		}
	}
	/* The same SYN without them arrives. */
	drain(&wire);
	frame = tcp(GUEST6, PUBLIC6, 443, SYN);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_TCP, &answer));
	assert_int_equal(answer.bytes[54 + 13], SYN | ACK);
	wire_free(&wire);
}

/* A SYN in two fragments, the first with 8 bytes of TCP. */
static void
send_fragmented4(const struct wire *wire, const char *to, uint16_t port)
{
	struct frame syn = tcp_segment(GUEST4, to, port, SYN), frame;

	frame = ip4_full(GUEST4, to, IPPROTO_TCP, 0x2000, NULL, 0, syn.bytes, 8);
	send_frame(wire, &frame);
	frame = ip4_full(GUEST4, to, IPPROTO_TCP, 1, NULL, 0, syn.bytes + 8, syn.len - 8);
	send_frame(wire, &frame);
}

static struct frame
fragment6(const char *to, unsigned int offset_and_more, uint32_t id, const uint8_t *bytes, size_t len)
{
	struct frame payload = {.len = 0};

	put8(&payload, IPPROTO_TCP);
	put8(&payload, 0);
	put16(&payload, offset_and_more);
	put16(&payload, id >> 16);
	put16(&payload, id & 0xffff);
	put(&payload, bytes, len);
	return ip6(GUEST6, to, 44, payload.bytes, payload.len);
}

/* A SYN with 12 bytes of data. */
static struct frame
long_syn6(const char *to)
{
	struct frame segment = tcp_segment(GUEST6, to, 443, SYN);
	uint16_t sum;

	memset(segment.bytes + 16, 0, 2);
	put(&segment, "abcdefghijkl", 12);
	sum = segment_checksum(GUEST6, to, IPPROTO_TCP, &segment);
	segment.bytes[16] = (uint8_t)(sum >> 8);
	segment.bytes[17] = (uint8_t)sum;
	return segment;
}

static void
case_E_07_fragments(void **state)
{
	struct wire wire = wire_make("fragments");
	struct frame syn = long_syn6(PUBLIC6), frame, answer;
	uint64_t refused;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	lease(&wire, PUBLIC6, IPPROTO_TCP, 443);
	drain(&wire);
	send_fragmented4(&wire, PUBLIC4, 443); /* put together before the rules */
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer));
	assert_int_equal(answer.bytes[34 + 13], SYN | ACK);
	refused = fixture_counter(wire.tap, TAP_COUNTER_TCP);
	send_fragmented4(&wire, "8.8.8.8", 443);
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer));
	assert_true(answer.bytes[34 + 13] & RST);
	assert_int_equal(fixture_counter(wire.tap, TAP_COUNTER_TCP), refused + 1);

	frame = fragment6(PUBLIC6, 1, 77, syn.bytes, 24);
	send_frame(&wire, &frame);
	frame = fragment6(PUBLIC6, 24, 77, syn.bytes + 24, syn.len - 24);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_TCP, &answer));
	assert_int_equal(answer.bytes[54 + 13], SYN | ACK);
	/* A first fragment without a whole TCP header is not put together with anything (RFC 7112). */
	frame = fragment6(PUBLIC6, 1, 79, syn.bytes, 8);
	assert_refused_as(&wire, &frame, TAP_COUNTER_PROTO, "tiny first fragment");
	syn = tcp_segment(GUEST6, "2606::8", 443, SYN);
	frame = fragment6("2606::8", 0, 78, syn.bytes, syn.len); /* an atomic one */
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_TCP, &answer));
	assert_true(answer.bytes[54 + 13] & RST);
	wire_free(&wire);
}

static void
case_E_07_fragment_flood_and_overlaps(void **state)
{
	struct wire wire = wire_make("fragflood");
	struct frame syn = tcp_segment(GUEST4, PUBLIC4, 443, SYN), frame, answer;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	/* The second overlaps the first: the kernel drops the whole datagram. */
	frame = ip4_full(GUEST4, PUBLIC4, IPPROTO_TCP, 0x2000, NULL, 0, syn.bytes, 16);
	send_frame(&wire, &frame);
	frame = ip4_full(GUEST4, PUBLIC4, IPPROTO_TCP, 1, NULL, 0, syn.bytes + 8, syn.len - 8);
	send_frame(&wire, &frame);
	drain(&wire);
	assert_false(fixture_readable(tap_socket(wire.tap, TAP_SOCKET_TCP4), 20));
	/* First fragments that nothing follows. */
	for (unsigned int i = 0; i < 20000; i++) {
		frame = ip4_full(GUEST4, PUBLIC4, IPPROTO_TCP, 0x2000, NULL, 0, syn.bytes, 8);
		frame.bytes[18] = (uint8_t)(i >> 8);
		frame.bytes[19] = (uint8_t)i;
		frame.bytes[24] = frame.bytes[25] = 0;
		uint16_t sum = checksum(frame.bytes + 14, 20, 0);
		frame.bytes[24] = (uint8_t)(sum >> 8);
		frame.bytes[25] = (uint8_t)sum;
		send_frame(&wire, &frame);
	}
	frame = tcp(GUEST4, PUBLIC4, 443, SYN); /* whole packets are not affected */
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer));
	assert_int_equal(answer.bytes[34 + 13], SYN | ACK);
	wire_free(&wire);
}

static void
case_E_09_martians(void **state)
{
	static const char *const destinations[] = {"127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "240.0.0.1"};
	struct wire wire = wire_make("martian");
	struct frame frame;

	(void)state;
	for (size_t i = 0; i < sizeof(destinations) / sizeof(destinations[0]); i++) {
		frame = tcp(GUEST4, destinations[i], TAP_TPROXY_PORT, SYN);
		assert_refused_as(&wire, &frame, TAP_COUNTER_NEVER, destinations[i]);
	}
	frame = tcp(GUEST6, "::1", TAP_TPROXY_PORT, SYN);
	send_frame(&wire, &frame); /* the kernel drops it before any rule */
	assert_false(fixture_readable(tap_socket(wire.tap, TAP_SOCKET_TCP6), 20));
	wire_free(&wire);
}

static void
case_E_13_icmp(void **state)
{
	struct wire wire = wire_make("icmp");
	static const uint8_t error[36] = {3, 1, 0, 0, 0, 0, 0, 0, 0x45};
	/* Port unreachable about TCP, which nobody says. */
	static const uint8_t about_tcp[36] = {3, 3, 0, 0, 0, 0, 0, 0, 0x45, [17] = IPPROTO_TCP};
	struct frame frame, answer;
	unsigned int answers = 0;

	(void)state;
	drain(&wire);
	frame = echo(GUEST4, GATEWAY4);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_ICMP, &answer));
	assert_int_equal(answer.bytes[34], 0);
	frame = echo(GUEST6, GATEWAY6);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_ICMPV6, &answer));
	assert_int_equal(answer.bytes[54], 129);

	frame = echo(GUEST4, "8.8.8.8");
	assert_refused_as(&wire, &frame, TAP_COUNTER_ICMP, "echo");
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_ICMP, &answer));
	assert_int_equal(answer.bytes[34], 3);  /* unreachable, */
	assert_int_equal(answer.bytes[35], 13); /* administratively prohibited */
	frame = echo(GUEST6, PUBLIC6);
	assert_refused_as(&wire, &frame, TAP_COUNTER_ICMP, "echo");
	frame = echo(GUEST4, "169.254.169.254");
	assert_refused_as(&wire, &frame, TAP_COUNTER_NEVER, "echo to metadata");
	frame = echo(GUEST4, "172.16.0.3");
	assert_refused_as(&wire, &frame, TAP_COUNTER_NEVER, "echo to a neighbour");
	frame = ip(GUEST4, PUBLIC4, IPPROTO_ICMP, error, sizeof(error));
	assert_refused_as(&wire, &frame, TAP_COUNTER_ICMP, "forged error");
	frame = ip(GUEST4, PUBLIC4, IPPROTO_ICMP, about_tcp, sizeof(about_tcp));
	assert_refused_as(&wire, &frame, TAP_COUNTER_ICMP, "forged error about TCP");

	drain(&wire);
	for (int i = 0; i < 300; i++) {
		frame = echo(GUEST4, GATEWAY4);
		send_frame(&wire, &frame);
	}
	while (next_frame(&wire, &answer, 10))
		answers += answer.bytes[13] == 0 && answer.bytes[34] == 0;
	assert_true(answers < 100);
	wire_free(&wire);
}

/* Port unreachable about a datagram of ours: no attempt to reach anything, unless there is no end of it. */
static void
test_late_answers_are_no_refusals(void **state)
{
	static const uint8_t late4[36] = {3, 3, 0, 0, 0, 0, 0, 0, 0x45, [17] = IPPROTO_UDP};
	static const uint8_t late6[56] = {1, 4, 0, 0, 0, 0, 0, 0, 0x60, [14] = IPPROTO_UDP};
	struct wire wire = wire_make("late");
	uint64_t before[TAP_COUNTER_MAX], after[TAP_COUNTER_MAX];
	struct frame frames[] = {
	    ip(GUEST4, GATEWAY4, IPPROTO_ICMP, late4, sizeof(late4)),
	    ip(GUEST4, "8.8.8.8", IPPROTO_ICMP, late4, sizeof(late4)),
	    icmp6(GUEST6, GATEWAY6, late6, sizeof(late6)),
	    icmp6(GUEST6, PUBLIC6, late6, sizeof(late6)),
	};
	struct frame other = echo(GUEST4, "8.8.8.8");

	(void)state;
	drain(&wire);
	counters(&wire, before);
	for (size_t i = 0; i < sizeof(frames) / sizeof(frames[0]); i++)
		send_frame(&wire, &frames[i]);
	/* Frames are taken in order: when this one is counted, they have been through. */
	assert_refused_as(&wire, &other, TAP_COUNTER_ICMP, "echo");
	counters(&wire, after);
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		assert_int_equal(after[i], before[i] + (i == TAP_COUNTER_ICMP));

	for (int i = 0; i < 2000; i++)
		send_frame(&wire, &frames[0]);
	counters(&wire, after);
	assert_true(after[TAP_COUNTER_ICMP] > before[TAP_COUNTER_ICMP] + 100);
	assert_int_equal(after[TAP_COUNTER_NEVER], before[TAP_COUNTER_NEVER]);
	wire_free(&wire);
}

static void
case_E_14_all_protocols(void **state)
{
	static const uint8_t payload[40] = {0};
	struct wire wire = wire_make("protocols");

	(void)state;
	for (unsigned int proto = 0; proto < 256; proto++) {
		struct frame frame = ip(GUEST4, PUBLIC4, (uint8_t)proto, payload, sizeof(payload));
		enum tap_counter expected = proto == IPPROTO_TCP       ? TAP_COUNTER_TCP
		    : proto == IPPROTO_UDP                             ? TAP_COUNTER_UDP
		    : proto == IPPROTO_ICMP || proto == IPPROTO_ICMPV6 ? TAP_COUNTER_ICMP
								       : TAP_COUNTER_PROTO;
		char what[32];

		snprintf(what, sizeof(what), "IPv4 protocol %u", proto);
		assert_refused_as(&wire, &frame, expected, what);
		if (proto == 44)
			continue; /* a fragment of nothing: defragmentation has it */
		frame = ip(GUEST6, PUBLIC6, (uint8_t)proto, payload, sizeof(payload));
		snprintf(what, sizeof(what), "IPv6 next header %u", proto);
		assert_refused_as(&wire, &frame,
		    expected == TAP_COUNTER_ICMP && proto == IPPROTO_ICMP ? TAP_COUNTER_PROTO : expected, what);
	}
	wire_free(&wire);
}

static void
case_E_15_tcp_flags(void **state)
{
	static const uint8_t odd[] = {0, FIN, SYN | FIN, SYN | RST, SYN | FIN | RST | PSH | ACK | URG, FIN | PSH | URG,
	    SYN | ACK, RST, RST | ACK, FIN | ACK, URG, PSH};
	struct wire wire = wire_make("flags");
	struct frame frame, answer;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	for (size_t i = 0; i < sizeof(odd); i++) {
		char what[32];

		snprintf(what, sizeof(what), "flags %02x", odd[i]);
		frame = tcp(GUEST4, PUBLIC4, 443, odd[i]);
		assert_refused_as(&wire, &frame, TAP_COUNTER_TCP, what);
		frame = tcp(GUEST4, "8.8.8.8", 443, odd[i]);
		assert_refused_as(&wire, &frame, TAP_COUNTER_TCP, what);
	}
	drain(&wire);
	frame = tcp(GUEST4, "8.8.8.8", 443, RST);
	send_frame(&wire, &frame);
	assert_false(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer)); /* a reset is not answered */
	wire_free(&wire);
}

/* Far more half-open connections than the backlog takes, and then an honest one: its SYN is answered with a cookie, and
 * the ACK, for which no socket is there, must find the listener (E-16). */
static void
case_E_16_handshake_after_a_syn_flood(void **state)
{
	struct wire wire = wire_make("flood");
	struct tcp_fields fields = {.port = 443, .flags = SYN};
	struct frame segment, frame, answer;
	bool got = false;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	for (unsigned int i = 0; i < 6000; i++) {
		fields.source = (uint16_t)(20000 + i);
		fields.seq = i * 7919;
		segment = tcp_segment_of(GUEST4, PUBLIC4, &fields);
		frame = ip(GUEST4, PUBLIC4, IPPROTO_TCP, segment.bytes, segment.len);
		send_frame(&wire, &frame);
	}
	drain(&wire);
	fields = (struct tcp_fields){.source = 50000, .port = 443, .seq = 1000, .flags = SYN};
	segment = tcp_segment_of(GUEST4, PUBLIC4, &fields);
	frame = ip(GUEST4, PUBLIC4, IPPROTO_TCP, segment.bytes, segment.len);
	send_frame(&wire, &frame);
	while (!got && answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer))
		got = answer.bytes[36] == 50000 >> 8 && answer.bytes[37] == (50000 & 0xff); /* others' are repeated */
	assert_true(got);
	assert_int_equal(answer.bytes[34 + 13], SYN | ACK);
	fields.seq++;
	fields.ack = ((uint32_t)answer.bytes[38] << 24 | (uint32_t)answer.bytes[39] << 16 |
			 (uint32_t)answer.bytes[40] << 8 | answer.bytes[41]) +
	    1;
	fields.flags = ACK;
	segment = tcp_segment_of(GUEST4, PUBLIC4, &fields);
	frame = ip(GUEST4, PUBLIC4, IPPROTO_TCP, segment.bytes, segment.len);
	send_frame(&wire, &frame);
	assert_true(fixture_readable(tap_socket(wire.tap, TAP_SOCKET_TCP4), 1000));
	assert_int_equal(fixture_counter(wire.tap, TAP_COUNTER_TCP), 0);
	assert_contains(fixture_run(tap_netns_fd(wire.tap), "cat /proc/net/netstat"), "SyncookiesSent");
	wire_free(&wire);
}

/* A clone's connection that this gateway never saw: reset, so that the clone dials anew (F-16). */
static void
case_F_16_unknown_segments_are_reset(void **state)
{
	static const char *const destinations[] = {PUBLIC4, "8.8.8.8"};
	struct wire wire = wire_make("midstream");
	struct frame frame, answer;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	for (size_t i = 0; i < 2; i++) {
		drain(&wire);
		frame = tcp(GUEST4, destinations[i], 443, ACK | PSH);
		send_frame(&wire, &frame);
		assert_true(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer));
		assert_true(answer.bytes[34 + 13] & RST);
		assert_false(fixture_readable(tap_socket(wire.tap, TAP_SOCKET_TCP4), 20));
	}
	wire_free(&wire);
}

/* The log: class as prefix, the packet's head, at a bounded rate. */
struct logged {
	unsigned int messages;
	unsigned int bad;
};

static void
read_log(const struct wire *wire, const char *prefix, struct logged *logged)
{
	static char bytes[65536];
	const struct nlmsghdr *nlh;
	const struct nlattr *attr;
	ssize_t len;
	int left;

	while ((len = recv(tap_socket(wire->tap, TAP_SOCKET_NFLOG), bytes, sizeof(bytes), 0)) > 0) {
		left = (int)len;
		for (nlh = (const void *)bytes; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			bool named = false, packet = false;

			if (nlh->nlmsg_type != (NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET))
				continue;
			attr_each(attr, nlh, sizeof(struct nfgenmsg))
			{
				if (mnl_attr_get_type(attr) == NFULA_PREFIX)
					named = strcmp(mnl_attr_get_str(attr), prefix) == 0;
				if (mnl_attr_get_type(attr) == NFULA_PAYLOAD)
					packet = mnl_attr_get_u8(attr) == 0x45 &&
					    mnl_attr_get_payload_len(attr) <= TAP_LOG_SNAPLEN;
			}
			logged->messages++;
			logged->bad += !named || !packet;
		}
	}
}

static void
test_refusals_are_logged_at_a_bounded_rate(void **state)
{
	struct wire wire = wire_make("log");
	static const struct {
		enum tap_counter counter;
		const char *prefix, *to;
	} rows[] = {
	    {TAP_COUNTER_TCP, "tcp", "8.8.8.8"},
	    {TAP_COUNTER_NEVER, "never", "169.254.169.254"},
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct frame frame = tcp(GUEST4, rows[i].to, 80, SYN);
		struct logged logged = {0};

		send_frame(&wire, &frame);
		assert_true(fixture_readable(tap_socket(wire.tap, TAP_SOCKET_NFLOG), 1000));
		read_log(&wire, rows[i].prefix, &logged);
		assert_int_equal(logged.messages, 1);
		for (int n = 0; n < 3000; n++)
			send_frame(&wire, &frame);
		fixture_sleep_ms(200);
		read_log(&wire, rows[i].prefix, &logged);
		assert_int_equal(logged.bad, 0);
		assert_true(logged.messages >= 200 && logged.messages < 1500);
		assert_int_equal(fixture_counter(wire.tap, rows[i].counter), 3001);
	}
	wire_free(&wire);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_E_05_ipv4_options),
	    cmocka_unit_test(case_E_06_extension_headers),
	    cmocka_unit_test(case_E_07_fragments),
	    cmocka_unit_test(case_E_07_fragment_flood_and_overlaps),
	    cmocka_unit_test(case_E_09_martians),
	    cmocka_unit_test(case_E_13_icmp),
	    cmocka_unit_test(test_late_answers_are_no_refusals),
	    cmocka_unit_test(case_E_14_all_protocols),
	    cmocka_unit_test(case_E_15_tcp_flags),
	    cmocka_unit_test(case_E_16_handshake_after_a_syn_flood),
	    cmocka_unit_test(case_F_16_unknown_segments_are_reset),
	    cmocka_unit_test(test_refusals_are_logged_at_a_bounded_rate),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
