/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The DNS path as a guest, a resolver, the keeper and the auditor see it, over UDP. */
#include "tests/unit/gateway/gateway_dns_lab.h"

#include "gateway/path/dns/dns_reply.h"

#include <sys/wait.h>

static const char *const allow_example[] = {"www.example.com", "*.wild.example.com:443", NULL};

/* www.example.com has one good address; everything else does not exist. */
static void
script_good(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)tcp;
	if (strcmp(question->name.text, "www.example.com") != 0) {
		lab_answer(ret_answer, question, DNS_NXDOMAIN, 0);
		return;
	}
	lab_answer(ret_answer, question, 0, question->type == DNS_TYPE_A || question->type == DNS_TYPE_AAAA);
	if (question->type == DNS_TYPE_A)
		wire_addr(ret_answer, "www.example.com", 300, "5.5.5.5");
	if (question->type == DNS_TYPE_AAAA)
		wire_addr(ret_answer, "www.example.com", 300, "2a00:5::5");
}

static void
script_silent(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)question;
	(void)tcp;
	(void)ret_answer;
}

static void
allowed_name(void **state)
{
	struct lab *lab;
	const struct record_dns *dns;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab_ask(lab, "wWw.eXample.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 1);
	assert_non_null(memmem(lab->reply, lab->reply_len, "\3wWw\7eXample\3com", 17));   /* C-19 */
	assert_non_null(memmem(lab->reply, lab->reply_len, "\0\0\1\54\0\4\5\5\5\5", 10)); /* ttl, size, address */
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_int_equal(lab->lease_count, 2);
	assert_int_equal(lab->leases[0].port, 80);
	assert_int_equal(lab->leases[1].port, 443);
	assert_int_equal(lab->timeout_s, 300 + 2 * LEASE_GRACE_S);
	dns = lab_record(lab, 1);
	assert_int_equal(dns->verdict, VERDICT_ALLOWED);
	assert_int_equal(dns->reason, REASON_ALLOWED);
	assert_int_equal(dns->transport, IPPROTO_UDP);
	assert_int_equal(dns->qtype, DNS_TYPE_A);
	assert_int_equal(dns->ttl_s, 300);
	assert_true(dns->upstream_us > 0);
	assert_int_equal(dns->leases, 1);
	assert_memory_equal(dns->qname, "www.example.com", dns->qname_len);
	assert_string_equal(dns->answers, "[\"A 5.5.5.5\"]");
	assert_non_null(strstr(dns->rule, "www.example.com"));
	assert_int_equal(dns->count, 1);
	lab_ask(lab, "www.example.com", DNS_TYPE_AAAA);
	assert_true(lab_leased(lab, "www.example.com", "2a00:5::5"));
	lab_close(lab);
}

static void
case_C_05_reply_comes_from_the_address_asked(void **state)
{
	static const char *const servers[] = {"8.8.8.8", "172.16.0.1", "169.254.169.253", "9.9.9.9", "192.0.2.7"};
	struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (size_t i = 0; i < 5; i++) {
		struct addr addr = addr_of(servers[i]);

		wire_query(&query, 1, "denied.example.net", DNS_TYPE_A, 0);
		lab_send(lab, servers[i], &query);
		assert_true(lab_receive(lab));
		assert_true(addr_equal(&lab->reply_from, &addr));
		assert_true(addr_equal(&lab_record(lab, i + 1)->server, &addr));
	}
	close(lab->guest);
	lab->guest = lab_socket(lab_sandbox_netns, AF_INET6, SOCK_DGRAM, LAB_GUEST6, 0);
	lab_send(lab, "2001:4860:4860::8888", &query);
	assert_true(lab_receive(lab));
	assert_true(addr_equal(&lab->reply_from, &lab_record(lab, 6)->server));
	assert_int_equal(lab->reply_from.family, 6);
	lab_close(lab);
}

static void
case_C_01_denied_names_stay_here(void **state)
{
	static const struct {
		const char *name;
		enum reason reason;
	} rows[] = {
	    {"denied.example.net", REASON_NO_RULE},
	    {"example.com", REASON_NO_RULE},
	    {"wild.example.com", REASON_NO_RULE},
	    {"www.example.com.corp.example", REASON_NO_RULE},
	    {"5.5.5.5.in-addr.arpa", REASON_NEVER_NAME},
	    {"metadata.google.internal", REASON_NEVER_NAME},
	    {"localhost", REASON_NEVER_NAME},
	    {"use-application-dns.net", REASON_NEVER_NAME}, /* C-29 */
	    {"mask.icloud.com", REASON_NEVER_NAME},
	    {"ipv4only.arpa", REASON_NEVER_NAME},
	};
	static const unsigned int types[] = {DNS_TYPE_A, DNS_TYPE_AAAA, 16 /* TXT */, 12 /* PTR */, DNS_TYPE_HTTPS,
	    DNS_TYPE_ANY, DNS_TYPE_AXFR, 10 /* NULL */};
	struct lab *lab;
	size_t count = 0;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t t = 0; t < 8; t++) {
			lab_ask(lab, rows[i].name, types[t]);
			assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
			assert_int_equal(lab_reply_count(lab), 0); /* C-36 */
			assert_int_equal(lab_record(lab, ++count)->reason, rows[i].reason);
			assert_int_equal(lab_record(lab, count)->verdict, VERDICT_DENIED);
			assert_int_equal(lab_record(lab, count)->ede, DNS_EDE_BLOCKED);
		}
	lab_ask(lab, "_dns.resolver.arpa", DNS_TYPE_SVCB);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 0);
	assert_int_equal(lab->asked_count, 0);
	assert_int_equal(lab->lease_requests, 0);
	lab_close(lab);
}

static void
case_B_10_raw_bytes_are_recorded(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	wire_header(&query, 0x7777, 0x0100, 1, 0, 0, 0);
	wire_put(&query, "\3w\0w", 4);
	wire_question(&query, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_DNS_DENIED);
	assert_memory_equal(lab_record(lab, 1)->qname, "\3w\0w\7example\3com", 17);
	assert_int_equal(lab->asked_count, 0);
	lab_close(lab);
}

static void
case_C_22_refused_and_recorded(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	wire_header(&query, 1, 0x2900, 1, 0, 0, 0); /* UPDATE */
	wire_question(&query, "www.example.com", DNS_TYPE_SOA, DNS_CLASS_IN);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_NOTIMP);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_DNS_DENIED);
	assert_int_equal(lab_record(lab, 1)->rcode, DNS_NOTIMP);
	wire_query(&query, 1, "www.example.com", DNS_TYPE_A, 0);
	wire_u8(&query, 0);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_FORMERR);
	/* A response gets nothing at all. */
	wire_header(&query, 1, 0x8100, 1, 0, 0, 0);
	wire_question(&query, "www.example.com", DNS_TYPE_A, DNS_CLASS_IN);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_silence(lab));
	lab_record(lab, 2);
	assert_int_equal(lab->asked_count, 0);
	lab_close(lab);
}

/* Every type, put in directly: only five lead upstream. */
static void
case_C_20_all_types(void **state)
{
	struct dns_asker asker = {.src = addr_of(LAB_GUEST4), .server = addr_of("8.8.8.8"), .proto = IPPROTO_UDP};
	struct lab *lab;
	static struct wire query;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (unsigned int type = 0; type <= UINT16_MAX; type++) {
		bool served = type == DNS_TYPE_A || type == DNS_TYPE_AAAA || type == DNS_TYPE_CNAME ||
		    type == DNS_TYPE_HTTPS || type == DNS_TYPE_SVCB;
		size_t before = lab->asked_count;
		const struct record_dns *dns;

		lab->sandbox.dns->budget.queries_milli = 1000000;
		lab->far->record_count = 0;
		lab->far->forgot = true;
		wire_query(&query, 1, "www.example.com", type, 0);
		balance_arrive(lab->sandbox.balance, RECORD_ATTEMPT_DNS, 1);
		dns_query_take(lab->sandbox.dns, &asker, query.bytes, query.len);
		loop_round(lab->far->gateway.loop, 0);
		if (served || type % 4096 == 0 || type < 300)
			far_end_settle(lab->far);
		assert_int_equal(lab->asked_count, before + served);
		if (!served && (type % 4096 == 0 || type < 300)) {
			dns = lab_record(lab, 1);
			assert_int_equal(dns->reason, REASON_DNS_TYPE);
			assert_int_equal(
			    dns->rcode, type == DNS_TYPE_AXFR || type == DNS_TYPE_IXFR ? DNS_REFUSED : DNS_NOERROR);
		}
	}
	lab_ask(lab, "www.example.com", DNS_TYPE_ANY);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_non_null(memmem(lab->reply, lab->reply_len, "\7RFC8482", 8));
	lab_close(lab);
}

static void
case_C_17_guest_options_stay_here(void **state)
{
	static const uint8_t secret[4 + 8] = {0xfd, 0xe9, 0x00, 0x08, 'S', 'E', 'C', 'R', 'E', 'T', '4', '2'};
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	wire_header(&query, 0x1111, 0x0130, 1, 0, 0, 1);
	wire_question(&query, "www.example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_opt(&query, 4096, 0x8000, secret, sizeof(secret));
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab->asked_count, 1);
	assert_int_equal(lab->asked[0].len, DNS_HEADER_SIZE + 17 + 4 + DNS_OPT_SIZE);
	assert_null(memmem(lab->asked[0].bytes, lab->asked[0].len, "SECRET", 6));
	assert_memory_equal(lab->asked[0].bytes + 2, "\1\0\0\1\0\0\0\0\0\1", 10); /* RD only, no CD; one OPT */
	assert_null(memmem(lab->reply, lab->reply_len, "SECRET", 6));
	assert_int_equal(lab->reply[3] & 0x30, 0); /* C-37: neither AD nor CD */
	lab_close(lab);
}

static void
case_C_13_answer_waits_for_the_kernel(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->hold = true;
	wire_query(&query, 0x7777, "www.example.com", DNS_TYPE_A, 0);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_silence(lab));
	assert_int_equal(lab->lease_requests, 1);
	assert_false(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_int_equal(far_end_count(lab->far, RECORD_DNS, NULL), 0);
	lab_keeper_answer(lab, lab->held_tag);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	lab_record(lab, 1);
	/* Refused by the keeper: no lease, no answer. */
	lab->hold = false;
	lab->refuse = true;
	lease_table_free(&lab->sandbox.leases);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	assert_int_equal(lab_reply_count(lab), 0);
	assert_false(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_int_equal(lab_record(lab, 2)->reason, REASON_INTERNAL_ERROR);
	assert_int_equal(lab_record(lab, 2)->verdict, VERDICT_FAILED);
	lab_close(lab);
}

static const char *script_bad_text; /* the address that a rebinding name hides among good ones */

static void
script_bad(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	struct addr addr = addr_of(script_bad_text);

	(void)lab;
	(void)tcp;
	lab_answer(ret_answer, question, 0, question->type == (addr.family == 4 ? DNS_TYPE_A : DNS_TYPE_AAAA) ? 3 : 0);
	if (question->type != (addr.family == 4 ? DNS_TYPE_A : DNS_TYPE_AAAA))
		return;
	wire_addr(ret_answer, "www.example.com", 300, addr.family == 4 ? "5.5.5.5" : "2a00:5::5");
	wire_addr(ret_answer, "www.example.com", 300, script_bad_text);
	wire_addr(ret_answer, "www.example.com", 300, addr.family == 4 ? "5.5.5.6" : "2a00:5::6");
}

static void
case_C_08_rebinding(void **state)
{
	static const char *const bad[] = {"10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1", "0.0.0.0",
	    "100.64.0.1", "224.0.0.1", "255.255.255.255", "::1", "fd00::1", "fe80::1", "64:ff9b::a00:1",
	    "2002:a00:1::1", "ff02::1", LAB_HOST4 /* */, "2a00:1::1", "5.6.7.255"};
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_bad);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const struct record_dns *dns;

		script_bad_text = bad[i];
		print_message("%s\n", bad[i]);
		lab_ask(lab, "www.example.com", strchr(bad[i], ':') == NULL ? DNS_TYPE_A : DNS_TYPE_AAAA);
		assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
		assert_int_equal(lab_reply_count(lab), 0);
		dns = lab_record(lab, i + 1);
		assert_int_equal(dns->reason, REASON_DNS_REBIND);
		assert_int_equal(dns->verdict, VERDICT_DENIED);
		assert_non_null(strstr(dns->detail, bad[i]));
	}
	assert_int_equal(lab->lease_requests, 0);
	assert_int_equal(lab->sandbox.leases.count, 0);
	lab_close(lab);
}

static void
case_A_13_host_address_after_start(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	lab_run("ip address add 5.5.5.5/32 dev lo");
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	lab_run("ip address del 5.5.5.5/32 dev lo");
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab_record(lab, 2)->reason, REASON_DNS_REBIND);
	lab_close(lab);
}

static void
script_chain(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)tcp;
	if (strcmp(question->name.text, "www.example.com") == 0) {
		lab_answer(ret_answer, question, 0, 2);
		wire_cname(ret_answer, "www.example.com", 100, "a.cdn.example.net");
		wire_cname(ret_answer, "a.cdn.example.net", 90, "b.cdn.example.net");
	} else if (strcmp(question->name.text, "b.cdn.example.net") == 0) {
		lab_answer(ret_answer, question, 0, 2);
		wire_addr(ret_answer, "b.cdn.example.net", 200, "5.5.5.5");
		wire_addr(ret_answer, "evil.example.org", 200, "6.6.6.6");
	} else if (strcmp(question->name.text, "inside.wild.example.com") == 0) {
		lab_answer(ret_answer, question, 0, 2);
		wire_cname(ret_answer, "inside.wild.example.com", 100, "metadata.google.internal");
		wire_addr(ret_answer, "metadata.google.internal", 100, "5.5.5.5");
	} else {
		/* For ever on. */
		static unsigned int n;
		char target[64];

		snprintf(target, sizeof(target), "n%u.example.net", n++);
		lab_answer(ret_answer, question, 0, 1);
		wire_cname(ret_answer, question->name.text, 100, target);
	}
}

static void
case_C_09_chains(void **state)
{
	struct lab *lab;
	const struct record_dns *dns;

	(void)state;
	lab_open(&lab, allow_example, script_chain);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 3);
	assert_int_equal(lab->asked_count, 2);
	assert_null(memmem(lab->reply, lab->reply_len, "\6\6\6\6", 4)); /* C-24 */
	dns = lab_record(lab, 1);
	assert_string_equal(dns->answers, "[\"CNAME a.cdn.example.net\",\"CNAME b.cdn.example.net\",\"A 5.5.5.5\"]");
	assert_int_equal(dns->ttl_s, 90);
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_false(lab_leased(lab, "b.cdn.example.net", "5.5.5.5"));
	lab_ask(lab, "inside.wild.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab_record(lab, 2)->reason, REASON_DNS_REBIND);
	assert_non_null(strstr(lab_record(lab, 2)->detail, "metadata.google.internal"));
	lab->asked_count = 0;
	lab_ask(lab, "endless.wild.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	assert_int_equal(lab_record(lab, 3)->reason, REASON_UPSTREAM_ERROR);
	assert_int_equal(lab->asked_count, DNS_CHAIN_MAX + 1);
	lab_close(lab);
}

static uint32_t script_ttl_s;

static void
script_ttl(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)tcp;
	lab_answer(ret_answer, question, 0, 1);
	wire_addr(ret_answer, question->name.text, script_ttl_s, "5.5.5.5");
}

static void
case_C_11_ttl_and_lease(void **state)
{
	static const struct {
		uint32_t ttl_s, guest_s, timeout_s;
	} rows[] = {
	    {0, 0, LEASE_MIN_S + 2 * LEASE_GRACE_S},
	    {1, 1, LEASE_MIN_S + 2 * LEASE_GRACE_S},
	    {300, 300, 300 + 2 * LEASE_GRACE_S},
	    {2147483647, LEASE_MAX_S, LEASE_MAX_S + 2 * LEASE_GRACE_S},
	    {2147483648, 0, LEASE_MIN_S + 2 * LEASE_GRACE_S},
	    {4294967295, 0, LEASE_MIN_S + 2 * LEASE_GRACE_S},
	};
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_ttl);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		script_ttl_s = rows[i].ttl_s;
		lab_ask(lab, "www.example.com", DNS_TYPE_A);
		assert_int_equal(lab_record(lab, i + 1)->ttl_s, rows[i].guest_s);
		assert_int_equal(lab->timeout_s, rows[i].timeout_s);
		lease_table_free(&lab->sandbox.leases);
	}
	/* Of one address: a short answer, for another name too, does not cut a longer lease down. */
	script_ttl_s = 300;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	script_ttl_s = 1;
	lab_ask(lab, "a.wild.example.com", DNS_TYPE_A);
	assert_in_range(lab->timeout_s, 300 + 2 * LEASE_GRACE_S - 2, 300 + 2 * LEASE_GRACE_S);
	lab_close(lab);
}

static unsigned int script_many_count;

static void
script_many(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	if (!tcp) {
		lab_answer(ret_answer, question, 0x0200, 1);
		wire_addr(ret_answer, question->name.text, 300, "5.5.5.5");
		return;
	}
	lab_answer(ret_answer, question, 0, script_many_count);
	for (unsigned int i = 0; i < script_many_count; i++) {
		char text[ADDR_TEXT_MAX];

		snprintf(text, sizeof(text), "5.5.%u.%u", i / 250, i % 250);
		wire_addr(ret_answer, question->name.text, 300, text);
	}
}

static void
case_C_18_truncated_upstream(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_many);
	script_many_count = 50;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_reply_count(lab), 50);
	assert_int_equal(lab->reply[2] & 2, 0); /* TC */
	assert_int_equal(lab->sandbox.leases.count, 50);
	assert_int_equal(lab->lease_count, 100);
	assert_true(lab->asked[lab->asked_count - 1].tcp);
	lab_close(lab);
}

static void
case_C_12_many_addresses(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_many);
	script_many_count = 500;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_reply_count(lab), 64);
	assert_int_equal(lab->sandbox.leases.count, 64);
	assert_string_equal(lab_record(lab, 1)->detail, "64 of 500 addresses admitted");
	lab_close(lab);
}

static void
case_C_12_many_ports_in_batches(void **state)
{
	static const char *const rules[] = {"www.example.com:1000-1063", NULL};
	struct lab *lab;

	(void)state;
	lab_open(&lab, rules, script_many);
	script_many_count = 20;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_reply_count(lab), 20);
	assert_int_equal(lab->lease_count, 20 * 64);
	assert_int_equal(lab->lease_requests, 3);
	lab_close(lab);
}

/* First lies, then the truth, then an evil duplicate. */
static void
script_spoof(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	static struct wire lie;

	assert_false(tcp);
	lab_answer(&lie, question, 0, 1);
	lie.bytes[0] ^= 0x55; /* id */
	wire_addr(&lie, "www.example.com", 300, "6.6.6.6");
	sendto(lab->resolver_udp.fd, lie.bytes, lie.len, 0, (struct sockaddr *)&lab_resolver_peer,
	    sizeof(lab_resolver_peer));
	wire_header(&lie, question->id, 0x8180, 1, 1, 0, 0);
	wire_question(&lie, "evil.example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_addr(&lie, "evil.example.com", 300, "6.6.6.6");
	sendto(lab->resolver_udp.fd, lie.bytes, lie.len, 0, (struct sockaddr *)&lab_resolver_peer,
	    sizeof(lab_resolver_peer));
	lab_answer(ret_answer, question, 0, 1);
	wire_addr(ret_answer, "www.example.com", 300, "5.5.5.5");
	sendto(lab->resolver_udp.fd, ret_answer->bytes, ret_answer->len, 0, (struct sockaddr *)&lab_resolver_peer,
	    sizeof(lab_resolver_peer));
	ret_answer->bytes[ret_answer->len - 1] = 66;
}

static void
case_C_23_spoofed_answers(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_spoof);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab->asked_count, 1);
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_int_equal(lab->sandbox.leases.count, 1);
	lab_record(lab, 1);
	lab_close(lab);
}

/* A guesser has everything right but the letters' case; over TCP he is not there. */
static void
script_case(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	lab_answer(ret_answer, question, 0, 1);
	wire_addr(ret_answer, "www.example.com", 300, tcp ? "5.5.5.5" : "6.6.6.6");
	if (!tcp)
		for (size_t i = DNS_HEADER_SIZE; i < DNS_HEADER_SIZE + 16; i++)
			if (ret_answer->bytes[i] >= 'A' && ret_answer->bytes[i] <= 'z')
				ret_answer->bytes[i] ^= 0x20;
}

static void
case_C_23_wrong_case_is_asked_again_over_tcp(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_case);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_false(lab_leased(lab, "www.example.com", "6.6.6.6"));
	assert_true(lab->asked[lab->asked_count - 1].tcp);
	lab_close(lab);
}

static void
case_C_23_ports_and_ids_differ(void **state)
{
	static struct wire query;
	struct lab *lab;
	size_t same_port = 0, same_id = 0;

	(void)state;
	lab_open(&lab, allow_example, script_silent);
	for (unsigned int i = 0; i < 32; i++) {
		wire_query(&query, i, "www.example.com", DNS_TYPE_A, 0);
		lab_send(lab, "8.8.8.8", &query);
	}
	far_end_settle(lab->far);
	far_end_settle(lab->far);
	assert_int_equal(lab->asked_count, 32);
	for (size_t i = 0; i < 32; i++)
		for (size_t j = 0; j < i; j++) {
			same_port += lab->asked[i].port == lab->asked[j].port;
			same_id += memcmp(lab->asked[i].bytes, lab->asked[j].bytes, 2) == 0;
		}
	assert_int_equal(same_port, 0);
	assert_in_range(same_id, 0, 2);
	lab_close(lab);
}

static void
script_service(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	static const uint8_t rdata[] = {0, 1, 0,  /* priority, "." */
	    0, 1, 0, 6, 2, 'h', '3', 2, 'h', '2', /* alpn */
	    0, 4, 0, 8, 10, 0, 0, 1, 5, 5, 5, 5,  /* hints */
	    0, 5, 0, 4, 'e', 'c', 'h', '!'};
	static const uint8_t port[] = {0, 1, 0, 0, 3, 0, 2, 0x20, 0xfb}; /* 8443 */

	(void)lab;
	(void)tcp;
	if (strcmp(question->name.text, "port.wild.example.com") == 0) {
		lab_answer(ret_answer, question, 0, 1);
		wire_rr(ret_answer, question->name.text, question->type, 300, port, sizeof(port));
		return;
	}
	lab_answer(ret_answer, question, 0, 1);
	wire_rr(ret_answer, question->name.text, question->type, 300, rdata, sizeof(rdata));
}

static void
case_C_15_https(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_service);
	lab_ask(lab, "www.example.com", DNS_TYPE_HTTPS);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 1);
	assert_null(memmem(lab->reply, lab->reply_len, "ech!", 4));
	assert_null(memmem(lab->reply, lab->reply_len, "h3", 2));
	assert_null(memmem(lab->reply, lab->reply_len, "\12\0\0\1", 4));
	assert_non_null(memmem(lab->reply, lab->reply_len, "\0\4\0\4\5\5\5\5", 8));
	assert_true(lab_leased(lab, "www.example.com", "5.5.5.5"));
	assert_int_equal(lab->sandbox.leases.count, 1);
	assert_string_equal(lab_record(lab, 1)->answers, "[\"HTTPS .\",\"hint 5.5.5.5\"]");
	lab_ask(lab, "port.wild.example.com", DNS_TYPE_HTTPS);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 0);
	assert_non_null(strstr(lab_record(lab, 2)->detail, "port"));
	lab_close(lab);
}

static void
case_C_31_silence_upstream(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_silent);
	wire_query(&query, 1, "www.example.com", DNS_TYPE_A, 1232);
	lab_send(lab, "8.8.8.8", &query);
	far_end_settle(lab->far);
	far_end_pass(lab->far, 4000);
	assert_int_equal(far_end_count(lab->far, RECORD_DNS, NULL), 0);
	far_end_pass(lab->far, 1000);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_UPSTREAM_ERROR);
	assert_int_equal(lab_record(lab, 1)->verdict, VERDICT_FAILED);
	assert_int_equal(lab_record(lab, 1)->ede, DNS_EDE_NETWORK_ERROR);
	assert_int_equal(lab->lease_requests, 0);
	/* And back. */
	lab->script = script_good;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	lab_close(lab);
}

static unsigned int script_code;

static void
script_error(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)tcp;
	lab_answer(ret_answer, question, script_code, 0);
}

static void
case_C_31_error_codes(void **state)
{
	static const struct {
		unsigned int code, rcode;
		enum reason reason;
	} rows[] = {
	    {DNS_NOERROR, DNS_NOERROR, REASON_ALLOWED},
	    {DNS_NXDOMAIN, DNS_NXDOMAIN, REASON_ALLOWED},
	    {DNS_SERVFAIL, DNS_SERVFAIL, REASON_UPSTREAM_ERROR},
	    {DNS_REFUSED, DNS_SERVFAIL, REASON_UPSTREAM_ERROR},
	    {DNS_NOTIMP, DNS_SERVFAIL, REASON_UPSTREAM_ERROR},
	    {9, DNS_SERVFAIL, REASON_UPSTREAM_ERROR},
	};
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_error);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		script_code = rows[i].code;
		lab_ask(lab, "www.example.com", DNS_TYPE_A);
		assert_int_equal(lab_rcode(lab), rows[i].rcode);
		assert_int_equal(lab_record(lab, i + 1)->reason, rows[i].reason);
	}
	assert_int_equal(lab->lease_requests, 0);
	lab_close(lab);
}

static void
no_log_no_answer(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->far->gateway.recorder.writable = false;
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	assert_int_equal(lab->asked_count, 0);
	far_end_auditor(lab->far);
	far_end_settle(lab->far);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_AUDIT_UNAVAILABLE);
	lab_close(lab);
}

/* F-22: while the log is out for long, questions take no room from what is open, and each is counted. */
static void
case_F_22_questions_are_counted_when_there_is_no_room(void **state)
{
	struct recorder *recorder;
	struct lab *lab;
	size_t room;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	recorder = &lab->far->gateway.recorder;
	recorder->writable = false;
	room = recorder->queue_len;
	recorder->queue_len = RECORDER_BUSY;
	for (int i = 0; i < 20; i++) {
		lab_ask(lab, "www.example.com", DNS_TYPE_A);
		assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	}
	far_end_pass(lab->far, 3000);
	assert_int_equal(recorder->queue_len, RECORDER_BUSY);
	recorder->queue_len = room;
	far_end_auditor(lab->far);
	far_end_pass(lab->far, 2000);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_AUDIT_UNAVAILABLE);
	assert_int_equal(lab_record(lab, 1)->verdict, VERDICT_FAILED);
	assert_int_equal(lab_record(lab, 1)->count, 20);
	assert_int_equal(lab->asked_count, 0);
	lab_close(lab);
}

/* F-22: who asks much rests before the recorder is so full that everybody is refused; each question is answered. */
static void
case_F_22_many_questions_are_slowed_down(void **state)
{
	static struct wire query;
	struct lab *lab;
	int64_t began_ms;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->far->gateway.recorder.queue_len += DNS_UDP_PACE_QUEUE;
	began_ms = clock_mono_ms();
	for (unsigned int i = 0; i < DNS_UDP_ROUND + 1; i++) {
		wire_query(&query, i, "denied.example.net", DNS_TYPE_A, 0);
		lab_send(lab, "8.8.8.8", &query);
	}
	for (unsigned int i = 0; i < DNS_UDP_ROUND + 1; i++) {
		assert_true(lab_receive(lab));
		assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	}
	assert_true(clock_mono_ms() - began_ms >= DNS_UDP_PACE_MS);
	lab->far->gateway.recorder.queue_len -= DNS_UDP_PACE_QUEUE;
	lab_close(lab);
}

/* What is no query gets no answer, or two servers could play ping-pong, but it is counted. */
static void
case_F_12_what_is_no_query_is_on_record(void **state)
{
	static const uint8_t response[12] = {0x12, 0x34, 0x81, 0x80};
	struct wire wire = {.len = sizeof(response)};
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	memcpy(wire.bytes, response, sizeof(response));
	for (int i = 0; i < 3; i++)
		lab_send(lab, "8.8.8.8", &wire);
	wire.len = 3;
	lab_send(lab, "8.8.8.8", &wire);
	assert_false(lab_receive_within(lab, 30));
	far_end_pass(lab->far, 2000);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_DNS_DENIED);
	assert_int_equal(lab_record(lab, 1)->verdict, VERDICT_DENIED);
	assert_int_equal(lab_record(lab, 1)->count, 4);
	lab_close(lab);
}

static void
aaaa_without_ipv6(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab_run("ip -6 route del default via 2a00:1::fe");
	lab_ask(lab, "www.example.com", DNS_TYPE_AAAA);
	lab_run("ip -6 route add default via 2a00:1::fe");
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	assert_int_equal(lab_reply_count(lab), 0);
	assert_int_equal(lab->asked_count, 0);
	lab_close(lab);
}

static void
denied_addresses_are_taken_out(void **state)
{
	static const char *const some[] = {"www.example.com", "-5.5.0.0/24", NULL};
	static const char *const all[] = {"www.example.com", "-5.5.0.0/16", NULL};
	struct lab *lab;

	(void)state;
	lab_open(&lab, some, script_many);
	script_many_count = 260; /* ten of them outside 5.5.0.0/24 */
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_reply_count(lab), 10);
	assert_int_equal(lab->sandbox.leases.count, 10);
	lab_close(lab);
	lab_open(&lab, all, script_many);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_RULE_DENY);
	assert_int_equal(lab->lease_requests, 0);
	lab_close(lab);
}

static void
policy_changes_while_leasing(void **state)
{
	static const char *const nothing[] = {NULL};
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->hold = true;
	wire_query(&query, 0x7777, "www.example.com", DNS_TYPE_A, 0);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_silence(lab));
	snapshot_free(lab->sandbox.policy);
	lab->sandbox.policy = snapshot_of_words(nothing);
	lab->sandbox.generation++;
	lab->sandbox.turn++;
	lab_keeper_answer(lab, lab->held_tag);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab->sandbox.leases.count, 0);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_NO_RULE);
	assert_int_equal(lab_record(lab, 1)->generation, 2);
	lab_close(lab);
}

/* The name is revoked while the resolver works on it. */
static void
script_revoked(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	static const char *const nothing[] = {NULL};

	snapshot_free(lab->sandbox.policy);
	lab->sandbox.policy = snapshot_of_words(nothing);
	lab->sandbox.generation++;
	lab->sandbox.turn++;
	script_chain(lab, question, tcp, ret_answer);
}

static void
case_F_33_policy_changes_while_asking(void **state)
{
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_revoked);
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NXDOMAIN);
	assert_int_equal(lab->asked_count, 1); /* the chain is not followed for a name that is not allowed any more */
	assert_int_equal(lab->lease_requests, 0);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_NO_RULE);
	assert_int_equal(lab_record(lab, 1)->generation, 2);
	lab_close(lab);
}

static void
detach_while_under_way(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	for (int leasing = 0; leasing < 2; leasing++) {
		lab_open(&lab, allow_example, leasing ? script_good : script_silent);
		lab->hold = true;
		for (unsigned int i = 0; i < 10; i++) {
			wire_query(&query, i, "www.example.com", DNS_TYPE_A, 0);
			lab_send(lab, "8.8.8.8", &query);
		}
		assert_true(lab_silence(lab));
		dns_detach(&lab->sandbox);
		far_end_settle(lab->far);
		assert_int_equal(lab_record(lab, 10)->verdict, VERDICT_FAILED);
		assert_int_equal(lab->far->gateway.link.request_count, 0);
		lab_keeper_answer(lab, lab->held_tag); /* too late */
		far_end_settle(lab->far);
		lab_close(lab);
	}
}

static void
case_C_21_new_names_below_a_wildcard(void **state)
{
	static struct wire query;
	struct lab *lab;
	size_t limited = 0;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (unsigned int i = 0; i < 1000; i++) {
		char name[128];

		/* 60 bytes of data in the first label. */
		snprintf(name, sizeof(name), "%060u.wild.example.com", i);
		lab->asked_count = 0;
		wire_query(&query, i, name, DNS_TYPE_A, 0);
		lab_send(lab, "8.8.8.8", &query);
		assert_true(lab_receive(lab));
		limited += lab_rcode(lab) == DNS_REFUSED;
	}
	assert_in_range(limited, 500, 700);
	assert_int_equal(lab_record(lab, 1000)->reason, REASON_LIMIT_RATE);
	assert_int_equal(lab_record(lab, 1000)->verdict, VERDICT_LIMITED);
	/* A name that was asked before costs nothing; nor does one that a rule spells out. */
	lab->asked_count = 0;
	wire_query(
	    &query, 1, "000000000000000000000000000000000000000000000000000000000001.wild.example.com", DNS_TYPE_A, 0);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	lab_ask(lab, "www.example.com", DNS_TYPE_A);
	assert_int_equal(lab_rcode(lab), DNS_NOERROR);
	lab_close(lab);
}

static void
over_the_rate_is_counted_in_one_record(void **state)
{
	struct lab *lab;
	static struct wire query;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->sandbox.dns->budget.queries_milli = 2000;
	for (unsigned int i = 0; i < 30; i++) {
		wire_query(&query, i, "denied.example.net", DNS_TYPE_A, 0);
		lab->sandbox.dns->budget.refilled_ms = clock_mono_ms() + 60000;
		lab_send(lab, "8.8.8.8", &query);
	}
	far_end_settle(lab->far);
	lab_record(lab, 2);
	far_end_pass(lab->far, 1500);
	assert_int_equal(lab_record(lab, 3)->reason, REASON_LIMIT_RATE);
	assert_int_equal(lab_record(lab, 3)->count, 28);
	for (unsigned int i = 0; i < 30; i++)
		assert_true(lab_receive(lab)); /* each was answered */
	assert_int_equal(lab_rcode(lab), DNS_REFUSED);
	lab_close(lab);
}

static void
too_many_under_way(void **state)
{
	static struct wire query;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	lab->sandbox.dns->query_count += DNS_QUERIES_MAX; /* as if there were */
	wire_query(&query, 0x7777, "www.example.com", DNS_TYPE_A, 0);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab_rcode(lab), DNS_SERVFAIL);
	assert_int_equal(lab_record(lab, 1)->reason, REASON_LIMIT_RATE);
	assert_int_equal(lab->asked_count, 0);
	lab->sandbox.dns->query_count -= DNS_QUERIES_MAX;
	lab_close(lab);
}

/* In an empty root, with the environment poisoned, the channels are made all the same. */
static void
case_F_41_no_files_no_environment(void **state)
{
	char dir[] = "/tmp/postern-dns-XXXXXX";
	struct options_resolver resolver = {.addr = addr_of("127.0.0.1"), .port = 53};
	int status;
	pid_t pid;

	(void)state;
	if (lab_sandbox_netns < 0)
		skip();
	assert_non_null(mkdtemp(dir));
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct dns_upstream *upstream = NULL;
		struct loop *loop = loop_new();

		setenv("RES_OPTIONS", "ndots:15 attempts:9", 1);
		setenv("LOCALDOMAIN", "evil.example", 1);
		setenv("HOSTALIASES", "/etc/hosts", 1);
		if (chroot(dir) < 0 || chdir("/") < 0)
			_exit(77);
		status = dns_upstream_new(loop, &resolver, 1, &upstream);
		dns_upstream_free(upstream);
		_exit(status == 0 ? 0 : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rmdir(dir);
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 77)
		skip();
	assert_int_equal(WEXITSTATUS(status), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(allowed_name),
	    cmocka_unit_test(case_C_05_reply_comes_from_the_address_asked),
	    cmocka_unit_test(case_C_01_denied_names_stay_here),
	    cmocka_unit_test(case_B_10_raw_bytes_are_recorded),
	    cmocka_unit_test(case_C_22_refused_and_recorded),
	    cmocka_unit_test(case_C_20_all_types),
	    cmocka_unit_test(case_C_17_guest_options_stay_here),
	    cmocka_unit_test(case_C_13_answer_waits_for_the_kernel),
	    cmocka_unit_test(case_C_08_rebinding),
	    cmocka_unit_test(case_A_13_host_address_after_start),
	    cmocka_unit_test(case_C_09_chains),
	    cmocka_unit_test(case_C_11_ttl_and_lease),
	    cmocka_unit_test(case_C_18_truncated_upstream),
	    cmocka_unit_test(case_C_12_many_addresses),
	    cmocka_unit_test(case_C_12_many_ports_in_batches),
	    cmocka_unit_test(case_C_23_spoofed_answers),
	    cmocka_unit_test(case_C_23_wrong_case_is_asked_again_over_tcp),
	    cmocka_unit_test(case_C_23_ports_and_ids_differ),
	    cmocka_unit_test(case_C_15_https),
	    cmocka_unit_test(case_C_31_silence_upstream),
	    cmocka_unit_test(case_C_31_error_codes),
	    cmocka_unit_test(no_log_no_answer),
	    cmocka_unit_test(case_F_22_questions_are_counted_when_there_is_no_room),
	    cmocka_unit_test(case_F_22_many_questions_are_slowed_down),
	    cmocka_unit_test(case_F_12_what_is_no_query_is_on_record),
	    cmocka_unit_test(aaaa_without_ipv6),
	    cmocka_unit_test(denied_addresses_are_taken_out),
	    cmocka_unit_test(policy_changes_while_leasing),
	    cmocka_unit_test(case_F_33_policy_changes_while_asking),
	    cmocka_unit_test(detach_while_under_way),
	    cmocka_unit_test(case_C_21_new_names_below_a_wildcard),
	    cmocka_unit_test(over_the_rate_is_counted_in_one_record),
	    cmocka_unit_test(too_many_under_way),
	    cmocka_unit_test(case_F_41_no_files_no_environment),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
