/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/refused/refused.h"
#include "tests/unit/gateway/gateway_far_end.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include "gateway/path/refused/nflog.h"

#include <arpa/inet.h>
#include <libmnl/libmnl.h>
#include <linux/if_ether.h>
#include <linux/netfilter/nfnetlink.h>
#include <linux/netfilter/nfnetlink_log.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define IPV4_SRC 172, 16, 0, 2

/* Packets as the log copies them. */
static const uint8_t tcp_syn[] = {0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, IPV4_SRC, 93, 184, 216, 34, 0x9c, 0x40,
    0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0};
static const uint8_t tcp_ack[] = {0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, IPV4_SRC, 93, 184, 216, 34, 0x9c, 0x40,
    0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x10, 0xff, 0xff, 0, 0, 0, 0};
static const uint8_t udp_options[] = {
    0x46, 0, 0, 32, 0, 0, 0, 0, 64, 17, 0, 0, IPV4_SRC, 8, 8, 8, 8, 1, 1, 1, 0, 0x10, 0, 0x01, 0xbb, 0, 8, 0, 0};
static const uint8_t udp_5000[] = {
    0x45, 0, 0, 28, 0, 0, 0, 0, 64, 17, 0, 0, IPV4_SRC, 8, 8, 8, 8, 0x10, 0, 0x13, 0x88, 0, 8, 0, 0};
static const uint8_t udp_fragment[] = {
    0x45, 0, 0, 28, 0, 1, 0x20, 0x10, 64, 17, 0, 0, IPV4_SRC, 8, 8, 8, 8, 0x10, 0, 0x01, 0xbb, 0, 8, 0, 0};
static const uint8_t icmp_echo[] = {
    0x45, 0, 0, 28, 0, 0, 0, 0, 64, 1, 0, 0, IPV4_SRC, 9, 9, 9, 9, 8, 0, 0, 0, 0, 1, 0, 1};
static const uint8_t metadata_syn[] = {0x45, 0, 0, 40, 0, 0, 0x40, 0, 64, 6, 0, 0, IPV4_SRC, 169, 254, 169, 254, 0x9c,
    0x40, 0, 80, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0, 0, 0};
#define IPV6_ADDRESSES                                                                                                 \
	0xfd, 0x70, 0x6f, 0x73, 0x74, 0x65, 0x72, 0x6e, 0, 0, 0, 0, 0, 0, 0, 2, 0x2a, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, \
	    0, 0, 0, 1
/* hop-by-hop (8), destination options (16), then TCP SYN to 443 */
static const uint8_t ipv6_extensions[] = {0x60, 0, 0, 0, 0, 44, 0, 64, IPV6_ADDRESSES, 60, 0, 1, 4, 0, 0, 0, 0, 6, 1, 1,
    4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x9c, 0x40, 0x01, 0xbb, 1, 2, 3, 4, 0, 0, 0, 0, 0x50, 0x02, 0xff, 0xff, 0, 0,
    0, 0};
static const uint8_t ipv6_later_fragment[] = {
    0x60, 0, 0, 0, 0, 16, 44, 64, IPV6_ADDRESSES, 17, 0, 0x05, 0xa9, 0, 0, 0, 1, 0x10, 0, 0x01, 0xbb, 0, 8, 0, 0};

struct read_case {
	const char *what;
	const uint8_t *bytes;
	size_t len;
	bool ip, stray;
	uint8_t proto;
	uint16_t sport, dport;
	const char *dst;
};
#define PACKET(bytes) bytes, sizeof(bytes)

static const struct read_case read_cases[] = {
    {"SYN", PACKET(tcp_syn), true, false, IPPROTO_TCP, 40000, 443, "93.184.216.34"},
    {"segment of no connection", PACKET(tcp_ack), true, true, IPPROTO_TCP, 40000, 443, "93.184.216.34"},
    {"UDP behind IPv4 options", PACKET(udp_options), true, false, IPPROTO_UDP, 4096, 443, "8.8.8.8"},
    {"later fragment: no ports", PACKET(udp_fragment), true, false, IPPROTO_UDP, 0, 0, "8.8.8.8"},
    {"ICMP has no ports", PACKET(icmp_echo), true, false, IPPROTO_ICMP, 0, 0, "9.9.9.9"},
    {"IPv6 extension headers", PACKET(ipv6_extensions), true, false, IPPROTO_TCP, 40000, 443, "2a00:1::1"},
    {"later IPv6 fragment", PACKET(ipv6_later_fragment), true, false, IPPROTO_UDP, 0, 0, "2a00:1::1"},
    {"cut in the TCP header", tcp_syn, 26, true, true, IPPROTO_TCP, 40000, 443, "93.184.216.34"},
    {"cut before the ports", tcp_syn, 22, true, true, IPPROTO_TCP, 0, 0, "93.184.216.34"},
    {"cut in the IP header", tcp_syn, 19, false, false, 0, 0, 0, NULL},
    {"cut in an extension", ipv6_extensions, 43, true, false, IPPROTO_HOPOPTS, 0, 0, "2a00:1::1"},
    {"header length below 20", (const uint8_t *)"\x44zzzzzzzzzzzzzzzzzzzzzzzzzzz", 28, false, false, 0, 0, 0, NULL},
    {"not IP", (const uint8_t *)"\x00\x01\x08\x00", 4, false, false, 0, 0, 0, NULL},
    {"nothing", tcp_syn, 0, false, false, 0, 0, 0, NULL},
};

static void
test_read_ip(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(read_cases) / sizeof(read_cases[0]); i++) {
		const struct read_case *c = &read_cases[i];
		struct nflog_packet packet = {0};
		char text[ADDR_TEXT_MAX];

		print_message("%s\n", c->what);
		nflog_read_ip(c->bytes, c->len, &packet);
		assert_int_equal(packet.ip, c->ip);
		assert_int_equal(packet.stray, c->stray);
		assert_int_equal(packet.proto, c->proto);
		assert_int_equal(packet.sport, c->sport);
		assert_int_equal(packet.dport, c->dport);
		if (c->dst != NULL)
			assert_string_equal(addr_format(&packet.dst, text), c->dst);
	}
}

/* E-06: a chain longer than we follow ends somewhere, and says no ports. */
static void
case_E_06_extension_headers_without_end(void **state)
{
	uint8_t bytes[40 + 8 * (NFLOG_EXTENSIONS_MAX + 4)] = {0x60};
	struct nflog_packet packet = {0};

	(void)state;
	bytes[6] = 60;
	for (size_t at = 40; at < sizeof(bytes); at += 8)
		bytes[at] = 60;
	nflog_read_ip(bytes, sizeof(bytes), &packet);
	assert_true(packet.ip);
	assert_int_equal(packet.proto, 60);
	assert_int_equal(packet.dport, 0);
}

/* The module under test between a far end and a socket that stands for the kernel's. */
struct fixture {
	struct far_end *far;
	struct sandbox sandbox;
	int kernel;
};

static void
fixture_open(struct fixture *f)
{
	int fds[2];

	memset(f, 0, sizeof(*f));
	f->far = far_end_new();
	f->sandbox.gateway = &f->far->gateway;
	f->sandbox.id = clock_real_us();
	f->sandbox.policy = snapshot_of_words((const char *const[]){"voice.example.net:5000/udp", NULL});
	assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
	f->kernel = fds[1];
	far_end_account(f->far, &f->sandbox);
	assert_int_equal(refused_attach(&f->sandbox, fds[0]), 0);
	far_end_settle(f->far);
}

static void
fixture_close(struct fixture *f)
{
	refused_detach(&f->sandbox);
	assert_null(f->sandbox.refused);
	far_end_pass(f->far, 400);
	far_end_account_end(f->far, &f->sandbox);
	close(f->kernel);
	snapshot_free(f->sandbox.policy);
	far_end_free(f->far);
}

/* Log a packet as nfnetlink_log does. */
static void
kernel_log(struct fixture *f, const char *prefix, const uint8_t *bytes, size_t len)
{
	char buffer[1024] __attribute__((aligned(8)));
	struct nlmsghdr *message = mnl_nlmsg_put_header(buffer);
	struct nfgenmsg *gen;
	struct nfulnl_msg_packet_hdr header = {.hw_protocol = htons(ETH_P_IP)};

	message->nlmsg_type = NFNL_SUBSYS_ULOG << 8 | NFULNL_MSG_PACKET;
	gen = mnl_nlmsg_put_extra_header(message, sizeof(*gen));
	gen->nfgen_family = AF_INET;
	mnl_attr_put(message, NFULA_PACKET_HDR, sizeof(header), &header);
	mnl_attr_put_strz(message, NFULA_PREFIX, prefix);
	mnl_attr_put(message, NFULA_PAYLOAD, len, bytes);
	assert_int_equal(send(f->kernel, buffer, message->nlmsg_len, 0), message->nlmsg_len);
	loop_round(f->far->gateway.loop, 0);
}

static void
test_reasons(void **state)
{
	static const struct {
		const char *prefix;
		const uint8_t *bytes;
		size_t len;
		enum reason reason;
		const char *detail; /* a part of it */
	} cases[] = {
	    {"spoofed", PACKET(tcp_syn), REASON_SPOOFED_SOURCE, ""},
	    {"never", PACKET(metadata_syn), REASON_NEVER_ADDRESS, "IMDS"},
	    {"tcp", PACKET(tcp_syn), REASON_NOT_LEASED, ""},
	    {"tcp", PACKET(tcp_ack), REASON_NOT_LEASED, "no connection"},
	    {"udp", PACKET(udp_options), REASON_UDP_DENIED, "QUIC"},
	    {"udp", PACKET(udp_5000), REASON_UDP_DENIED, "did not resolve"},
	    {"icmp", PACKET(icmp_echo), REASON_PROTO_DENIED, ""},
	    {"proto", PACKET(icmp_echo), REASON_PROTO_DENIED, ""},
	    {"spoofed", (const uint8_t *)"\x00\x01\x08\x00", 4, REASON_SPOOFED_SOURCE, "EtherType"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct fixture f;
		const struct record *record = NULL;

		fixture_open(&f);
		kernel_log(&f, cases[i].prefix, cases[i].bytes, cases[i].len);
		far_end_settle(f.far);
		assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &record), 1);
		assert_int_equal(record->flow.reason, cases[i].reason);
		assert_int_equal(record->flow.verdict, VERDICT_DENIED);
		assert_int_equal(record->flow.end, END_REFUSED);
		assert_int_equal(record->flow.count, 1);
		assert_true(record->flow.sandbox == f.sandbox.id);
		assert_non_null(strstr(record->flow.detail, cases[i].detail));
		fixture_close(&f);
	}
}

static void
test_unknown_prefix_is_nothing(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f);
	kernel_log(&f, "", PACKET(tcp_syn));
	kernel_log(&f, "tcpx", PACKET(tcp_syn));
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, NULL), 0);
	fixture_close(&f);
}

/* F-38: many packets of a kind are one row whose count is brought up to date. */
static void
case_F_38_flood_is_one_row(void **state)
{
	struct fixture f;
	const struct record *first = NULL, *last = NULL;
	size_t rows;

	(void)state;
	fixture_open(&f);
	for (int i = 0; i < 100; i++)
		kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 100;
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &first), 1);
	assert_int_equal(first->flow.count, 1);
	far_end_pass(f.far, 6000);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &last), 2);
	assert_int_equal(last->flow.count, 100);
	assert_true(last->flow.id == first->flow.id);
	assert_true(last->flow.last_us >= last->flow.ts_us);
	/* quiet: no more writing, then forgotten: the next packet is a new row */
	far_end_pass(f.far, 70000);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, NULL), 2);
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP]++;
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &last), 3);
	assert_true(last->flow.id != first->flow.id);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 101);
	assert_int_equal(rows, 2);
	fixture_close(&f);
}

/* F-12: what the kernel counted and did not log (rate limit, ENOBUFS) is in the rows all the same, and once. */
static void
case_F_12_rows_add_up_to_the_counters(void **state)
{
	struct fixture f;
	size_t rows;

	(void)state;
	fixture_open(&f);
	for (int i = 0; i < 10; i++)
		kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 5000;
	f.far->totals[TAP_COUNTER_NEVER] = 7;
	far_end_pass(f.far, 30000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 5000);
	assert_int_equal(rows, 2);
	assert_int_equal(far_end_total(f.far, REASON_NEVER_ADDRESS, &rows), 7);
	/* agreed: nobody is asked again until something happens */
	f.far->counters_asked = 0;
	far_end_pass(f.far, 30000);
	assert_int_equal(f.far->counters_asked, 0);
	fixture_close(&f);
}

/* A packet that the counters know before its log message is read must not be counted twice. */
static void
test_late_log_messages_count_once(void **state)
{
	struct fixture f;
	size_t rows;

	(void)state;
	fixture_open(&f);
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 3;
	far_end_pass(f.far, 5500); /* the counters say 3, one was logged */
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	far_end_pass(f.far, 30000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 3);
	assert_int_equal(rows, 1);
	fixture_close(&f);
}

static void
test_remade_table_counts_on(void **state)
{
	struct fixture f;
	size_t rows;

	(void)state;
	fixture_open(&f);
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 40;
	far_end_pass(f.far, 30000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 40);
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 2;
	far_end_pass(f.far, 30000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 42);
	fixture_close(&f);
}

/* A gateway that was restarted must not report again what its predecessor did. */
static void
test_old_table_begins_at_its_counters(void **state)
{
	struct fixture f;
	size_t rows;

	(void)state;
	fixture_open(&f);
	refused_detach(&f.sandbox);
	far_end_pass(f.far, 400);
	close(f.kernel);
	f.far->totals[TAP_COUNTER_TCP] = f.sandbox.refused_base[TAP_COUNTER_TCP] = 1000;
	{
		int fds[2];

		assert_int_equal(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds), 0);
		f.kernel = fds[1];
		assert_int_equal(refused_attach(&f.sandbox, fds[0]), 0);
	}
	far_end_pass(f.far, 12000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 0);
	kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 1005;
	far_end_pass(f.far, 30000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 5);
	fixture_close(&f);
}

static void
test_table_full_adds_up(void **state)
{
	struct fixture f;
	uint8_t bytes[sizeof(tcp_syn)];
	const struct record *last = NULL;
	size_t rows;

	(void)state;
	fixture_open(&f);
	memcpy(bytes, tcp_syn, sizeof(bytes));
	for (int i = 0; i < 600; i++) {
		bytes[18] = (uint8_t)(i >> 8);
		bytes[19] = (uint8_t)i;
		kernel_log(&f, "tcp", PACKET(bytes));
	}
	f.far->totals[TAP_COUNTER_TCP] = 600;
	far_end_pass(f.far, 20000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 600);
	assert_int_equal(rows, 129);
	far_end_count(f.far, RECORD_REFUSED, &last);
	assert_int_equal(last->flow.count, 600 - 128);
	assert_int_equal(last->flow.dst.family, 0);
	assert_non_null(strstr(last->flow.detail, "not logged one by one"));

	/* Another class has room of its own. */
	kernel_log(&f, "never", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_NEVER] = 1;
	far_end_pass(f.far, 20000);
	assert_int_equal(far_end_total(f.far, REASON_NEVER_ADDRESS, &rows), 1);
	far_end_count(f.far, RECORD_REFUSED, &last);
	assert_int_equal(last->flow.dst.family, 4);
	fixture_close(&f);
}

/* F-22: while nothing can be written nothing is lost. */
static void
case_F_22_rows_wait_for_the_auditor(void **state)
{
	struct fixture f;
	size_t rows;

	(void)state;
	fixture_open(&f);
	ipc_close(&f.far->auditor);
	far_end_settle(f.far);
	for (int i = 0; i < 10; i++)
		kernel_log(&f, "tcp", PACKET(tcp_syn));
	f.far->totals[TAP_COUNTER_TCP] = 10;
	far_end_pass(f.far, 200000);
	assert_int_equal(f.far->record_count, 0);
	far_end_auditor(f.far);
	far_end_pass(f.far, 6000);
	assert_int_equal(far_end_total(f.far, REASON_NOT_LEASED, &rows), 10);
	assert_int_equal(rows, 1);
	fixture_close(&f);
}

/* What is known is written at detach, what the kernel hands over a moment later is not lost, and the counters are asked
 * while the table is still there. */
static void
test_detach_writes_what_is_left(void **state)
{
	struct fixture f;
	char buffer[8];
	size_t rows;

	(void)state;
	fixture_open(&f);
	for (int i = 0; i < 10; i++)
		kernel_log(&f, "udp", PACKET(udp_options));
	f.far->totals[TAP_COUNTER_UDP] = 25;
	refused_detach(&f.sandbox);
	f.sandbox.gateway = NULL; /* nobody looks at the sandbox any more */
	far_end_settle(f.far);
	assert_int_equal(far_end_total(f.far, REASON_UDP_DENIED, &rows), 10);
	f.far->totals[TAP_COUNTER_UDP] = 0; /* the table is gone */
	kernel_log(&f, "udp", PACKET(udp_options));
	far_end_pass(f.far, 400);
	assert_int_equal(far_end_total(f.far, REASON_UDP_DENIED, &rows), 25);
	assert_int_equal(rows, 2);
	assert_int_equal(recv(f.kernel, buffer, sizeof(buffer), 0), -1); /* closed on our side */
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_read_ip),
	    cmocka_unit_test(case_E_06_extension_headers_without_end),
	    cmocka_unit_test(test_reasons),
	    cmocka_unit_test(test_unknown_prefix_is_nothing),
	    cmocka_unit_test(case_F_38_flood_is_one_row),
	    cmocka_unit_test(case_F_12_rows_add_up_to_the_counters),
	    cmocka_unit_test(test_late_log_messages_count_once),
	    cmocka_unit_test(test_remade_table_counts_on),
	    cmocka_unit_test(test_old_table_begins_at_its_counters),
	    cmocka_unit_test(test_table_full_adds_up),
	    cmocka_unit_test(case_F_22_rows_wait_for_the_auditor),
	    cmocka_unit_test(test_detach_writes_what_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
