/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replies and service records as a guest gets them; ldns reads them back as an independent witness. */
#include <stdlib.h>

#include "tests/unit/gateway/gateway_dns_wire.h"

#include "gateway/path/dns/dns_reply.h"
#include "gateway/path/dns/dns_service.h"

#include <ldns/ldns.h>

static struct wire wire;
static struct dns_question question;

/* Build, read back; *ret_bytes is the raw message when asked for. */
static ldns_pkt *
build(const struct dns_reply *reply, uint8_t **ret_bytes, size_t *ret_len)
{
	ldns_pkt *packet = NULL;
	uint8_t *bytes;
	size_t len;

	assert_int_equal(dns_reply_build(reply, &bytes, &len), 0);
	assert_int_equal(ldns_wire2pkt(&packet, bytes, len), LDNS_STATUS_OK);
	assert_true(ldns_pkt_qr(packet) && ldns_pkt_ra(packet));
	assert_false(ldns_pkt_ad(packet) || ldns_pkt_aa(packet) || ldns_pkt_cd(packet));
	assert_int_equal(ldns_pkt_id(packet), question.id);
	if (ret_bytes != NULL) {
		*ret_bytes = bytes;
		*ret_len = len;
	} else {
		free(bytes);
	}
	return packet;
}

static void
ask(const char *name, unsigned int type, unsigned int edns_size)
{
	uint16_t rcode;

	wire_query(&wire, 0x4242, name, type, edns_size);
	assert_int_equal(dns_message_read_question(wire.bytes, wire.len, &question, &rcode), DNS_READ_OK);
}

static void
case_C_19_question_byte_for_byte(void **state)
{
	struct dns_reply reply = {.question = &question, .ttl_s = 60, .ede = DNS_EDE_NONE, .size_max = 512};
	struct addr addr = addr_from_ipv4("\1\2\3\4");
	uint8_t *bytes;
	size_t len;
	ldns_pkt *packet;

	(void)state;
	ask("eXaMpLe.CoM", DNS_TYPE_A, 0);
	reply.addrs = &addr;
	reply.addr_count = 1;
	packet = build(&reply, &bytes, &len);
	assert_memory_equal(bytes + DNS_HEADER_SIZE, wire.bytes + DNS_HEADER_SIZE, question.wire_len);
	assert_int_equal(ldns_pkt_ancount(packet), 1);
	assert_int_equal(ldns_pkt_arcount(packet), 0);
	assert_int_equal(ldns_rr_ttl(ldns_rr_list_rr(ldns_pkt_answer(packet), 0)), 60);
	free(bytes);
	ldns_pkt_free(packet);
	/* Bytes that no host name has are echoed too. */
	ask("we ird\\.example", DNS_TYPE_A, 0);
	reply = (struct dns_reply){
	    .question = &question, .rcode = DNS_NXDOMAIN, .negative = true, .ede = DNS_EDE_NONE, .size_max = 512};
	packet = build(&reply, &bytes, &len);
	assert_memory_equal(bytes + DNS_HEADER_SIZE, wire.bytes + DNS_HEADER_SIZE, question.wire_len);
	free(bytes);
	ldns_pkt_free(packet);
}

static void
case_C_09_chain_in_the_reply(void **state)
{
	struct name chain[2] = {name_of("cdn.example.net"), name_of("pop.example.org")};
	struct addr addrs[2] = {addr_from_ipv4("\1\2\3\4"), addr_from_ipv4("\5\6\7\10")};
	struct dns_reply reply = {.question = &question,
	    .ttl_s = 33,
	    .chain = chain,
	    .chain_count = 2,
	    .addrs = addrs,
	    .addr_count = 2,
	    .ede = DNS_EDE_NONE,
	    .size_max = 1232};
	static const char *const want[] = {"www.example.com.\t33\tIN\tCNAME\tcdn.example.net.\n",
	    "cdn.example.net.\t33\tIN\tCNAME\tpop.example.org.\n", "pop.example.org.\t33\tIN\tA\t1.2.3.4\n",
	    "pop.example.org.\t33\tIN\tA\t5.6.7.8\n"};
	ldns_pkt *packet;

	(void)state;
	ask("www.example.com", DNS_TYPE_A, 1232);
	packet = build(&reply, NULL, NULL);
	assert_int_equal(ldns_pkt_ancount(packet), 4);
	for (size_t i = 0; i < 4; i++) {
		char *text = ldns_rr2str(ldns_rr_list_rr(ldns_pkt_answer(packet), i));

		assert_string_equal(text, want[i]);
		free(text);
	}
	assert_int_equal(ldns_pkt_edns_udp_size(packet), DNS_UDP_MAX);
	ldns_pkt_free(packet);
}

static void
case_C_30_refusal(void **state)
{
	struct dns_reply reply = {.question = &question,
	    .rcode = DNS_NXDOMAIN,
	    .negative = true,
	    .ede = DNS_EDE_BLOCKED,
	    .ede_text = "no rule allows this name",
	    .size_max = 1232};
	static const uint8_t ede[] = "\0\17\0\32\0\17no rule allows this name";
	uint8_t *bytes;
	size_t len;
	ldns_pkt *packet;
	ldns_rr *soa;

	(void)state;
	ask("evil.example.com", DNS_TYPE_A, 1232);
	packet = build(&reply, &bytes, &len);
	assert_int_equal(ldns_pkt_get_rcode(packet), LDNS_RCODE_NXDOMAIN);
	assert_int_equal(ldns_pkt_ancount(packet), 0);
	assert_int_equal(ldns_pkt_nscount(packet), 1);
	soa = ldns_rr_list_rr(ldns_pkt_authority(packet), 0);
	assert_int_equal(ldns_rr_get_type(soa), LDNS_RR_TYPE_SOA);
	assert_int_equal(ldns_rr_ttl(soa), 5);
	assert_int_equal(ldns_rdf2native_int32(ldns_rr_rdf(soa, 6)), 5);
	assert_memory_equal(bytes + len - (sizeof(ede) - 1), ede, sizeof(ede) - 1);
	free(bytes);
	ldns_pkt_free(packet);
	/* Without EDNS there is nowhere to put it. */
	ask("evil.example.com", DNS_TYPE_A, 0);
	packet = build(&reply, NULL, NULL);
	assert_int_equal(ldns_pkt_arcount(packet), 0);
	ldns_pkt_free(packet);
}

static void
case_C_17_badvers(void **state)
{
	struct dns_reply reply = {.question = &question, .rcode = DNS_BADVERS, .ede = DNS_EDE_NONE, .size_max = 512};
	ldns_pkt *packet;

	(void)state;
	ask("example.com", DNS_TYPE_A, 1232);
	packet = build(&reply, NULL, NULL);
	assert_int_equal(ldns_pkt_get_rcode(packet), 0);
	assert_int_equal(ldns_pkt_edns_extended_rcode(packet), 1);
	assert_int_equal(ldns_pkt_edns_version(packet), 0);
	ldns_pkt_free(packet);
}

static void
case_C_20_any_is_hinfo(void **state)
{
	struct dns_reply reply = {
	    .question = &question, .hinfo = true, .ttl_s = 5, .ede = DNS_EDE_NONE, .size_max = 512};
	ldns_pkt *packet;
	char *text;

	(void)state;
	ask("example.com", DNS_TYPE_ANY, 0);
	packet = build(&reply, NULL, NULL);
	assert_int_equal(ldns_pkt_ancount(packet), 1);
	text = ldns_rr2str(ldns_rr_list_rr(ldns_pkt_answer(packet), 0));
	assert_string_equal(text, "example.com.\t5\tIN\tHINFO\t\"RFC8482\" \"\"\n");
	free(text);
	ldns_pkt_free(packet);
}

static void
case_C_18_truncated_for_the_client_only(void **state)
{
	struct addr addrs[64];
	struct dns_reply reply = {
	    .question = &question, .ttl_s = 60, .addrs = addrs, .addr_count = 64, .ede = DNS_EDE_NONE, .size_max = 512};
	static const size_t sizes[] = {512, 1000, 1232, 65535};

	(void)state;
	ask("www.example.com", DNS_TYPE_A, 1232);
	for (size_t i = 0; i < 64; i++)
		addrs[i] = addr_from_ipv4((const uint8_t[]){9, 9, 9, (uint8_t)i});
	for (size_t i = 0; i < 4; i++) {
		uint8_t *bytes;
		size_t len;
		ldns_pkt *packet;
		/* 64 compressed A records are 1024 bytes, with the rest around them more than 1000. */
		bool fits = sizes[i] >= 1232;

		reply.size_max = sizes[i];
		packet = build(&reply, &bytes, &len);
		assert_true(len <= sizes[i]);
		assert_int_equal(ldns_pkt_tc(packet), !fits);
		assert_int_equal(ldns_pkt_ancount(packet), fits ? 64 : 0);
		free(bytes);
		ldns_pkt_free(packet);
	}
}

static void
case_C_22_errors_without_a_question(void **state)
{
	struct dns_reply reply = {.question = &question, .rcode = DNS_FORMERR, .ede = DNS_EDE_NONE, .size_max = 512};
	uint16_t rcode;
	ldns_pkt *packet;

	(void)state;
	wire_header(&wire, 9, 0x2900, 0, 0, 0, 0);
	assert_int_equal(dns_message_read_question(wire.bytes, wire.len, &question, &rcode), DNS_READ_ERROR);
	reply.rcode = rcode;
	packet = build(&reply, NULL, NULL);
	assert_int_equal(ldns_pkt_get_rcode(packet), LDNS_RCODE_NOTIMPL);
	assert_int_equal(ldns_pkt_get_opcode(packet), LDNS_PACKET_UPDATE);
	assert_int_equal(ldns_pkt_qdcount(packet), 0);
	ldns_pkt_free(packet);
}

/* Rdata of a service record: priority, target, then parameters. */
static struct wire service_wire;
static struct name owner;

static void
service_begin(unsigned int priority, const char *target)
{
	service_wire.len = 0;
	owner = name_of("www.example.com");
	wire_u16(&service_wire, priority);
	wire_name(&service_wire, target);
}

static void
service_param(unsigned int key, const void *value, size_t len)
{
	wire_u16(&service_wire, key);
	wire_u16(&service_wire, (unsigned int)len);
	wire_put(&service_wire, value, len);
}

static const char *
service_read(struct dns_service *service)
{
	return dns_service_read(service_wire.bytes, service_wire.len, &owner, service);
}

/* Is the key in written rdata (whose target is ".")? */
static bool
rdata_has_key(const uint8_t *rdata, size_t len, unsigned int key)
{
	struct reader r = reader_make(rdata, len);

	reader_bytes(&r, 3);
	while (reader_left(&r) > 0) {
		unsigned int k = reader_u16(&r);

		reader_bytes(&r, reader_u16(&r));
		if (k == key && reader_ok(&r))
			return true;
	}
	assert_true(reader_ok(&r));
	return false;
}

static void
case_C_15_ech_h3_and_hints(void **state)
{
	struct dns_service service;
	uint8_t rdata[DNS_SERVICE_RDATA_MAX];
	size_t len;

	(void)state;
	service_begin(1, "");
	service_param(1, "\2h3\5h3-29\2h2\10http/1.1", 3 + 6 + 3 + 9);
	service_param(3, "\1\273", 2);
	service_param(4, "\12\0\0\1\5\5\5\5", 8);
	service_param(5, "secret config", 13);
	service_param(6, "\x2a\0\0\1\0\0\0\0\0\0\0\0\0\0\0\10", 16);
	service_param(7, "/dns-query{?dns}", 16);
	assert_null(service_read(&service));
	assert_int_equal(service.port, 443);
	assert_int_equal(service.hint4_count, 2);
	assert_int_equal(service.hint6_count, 1);
	assert_int_equal(service.alpn_len, 12);
	assert_memory_equal(service.alpn, "\2h2\10http/1.1", 12);
	/* What the caller does with a hint that it may not lease. */
	service.hints4[0] = service.hints4[1];
	service.hint4_count = 1;
	len = dns_service_write(&service, rdata);
	assert_true(len > 0);
	assert_false(rdata_has_key(rdata, len, 5) || rdata_has_key(rdata, len, 7));
	assert_true(rdata_has_key(rdata, len, 1) && rdata_has_key(rdata, len, 3) && rdata_has_key(rdata, len, 4) &&
	    rdata_has_key(rdata, len, 6));
	assert_null(memmem(rdata, len, "\12\0\0\1", 4));
	assert_null(memmem(rdata, len, "h3", 2));
	assert_null(memmem(rdata, len, "secret", 6));
}

static void
case_C_15_records_left_out(void **state)
{
	struct dns_service service;
	uint8_t rdata[DNS_SERVICE_RDATA_MAX];

	(void)state;
	service_begin(0, "");
	assert_string_equal(service_read(&service), "alias mode");
	service_begin(0, "svc.example.net");
	assert_string_equal(service_read(&service), "alias mode");
	service_begin(1, "svc.example.net");
	assert_string_equal(service_read(&service), "another target name");
	service_begin(1, "WWW.example.com");
	assert_null(service_read(&service));
	service_begin(1, "");
	service_param(0, "\0\5", 2); /* ech is mandatory */
	service_param(5, "x", 1);
	assert_string_equal(service_read(&service), "a mandatory key is not passed on");
	service_begin(1, "");
	service_param(0, "\0\11", 2); /* an unknown key is */
	assert_string_equal(service_read(&service), "a mandatory key is not passed on");
	service_begin(1, "");
	service_param(1, "\2h3", 3);
	service_param(2, "", 0);
	assert_string_equal(service_read(&service), "only h3 is offered");
	/* A mandatory hint that was taken away. */
	service_begin(1, "");
	service_param(0, "\0\4", 2);
	service_param(4, "\12\0\0\1", 4);
	assert_null(service_read(&service));
	assert_int_not_equal(dns_service_write(&service, rdata), 0);
	service.hint4_count = 0;
	assert_int_equal(dns_service_write(&service, rdata), 0);
	/* h3 alone, with the default of HTTP/1.1 behind it. */
	service_begin(1, "");
	service_param(1, "\2h3", 3);
	assert_null(service_read(&service));
	assert_false(rdata_has_key(rdata, dns_service_write(&service, rdata), 1));
}

static void
case_C_15_malformed(void **state)
{
	static const struct {
		unsigned int key;
		const char *value;
		size_t len;
	} rows[] = {
	    {0, "", 0},
	    {0, "\0", 1},
	    {0, "\0\0", 2},
	    {0, "\0\4\0\1", 4},
	    {0, "\0\1\0\1", 4},
	    {1, "", 0},
	    {1, "\0", 1},
	    {1, "\3h2", 3},
	    {2, "x", 1},
	    {3, "\1", 1},
	    {3, "\1\273\0", 3},
	    {3, "\0\0", 2},
	    {4, "", 0},
	    {4, "\1\2\3", 3},
	    {4, "\1\2\3\4\5", 5},
	    {6, "\1\2\3\4", 4},
	};
	struct dns_service service;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		service_begin(1, "");
		service_param(rows[i].key, rows[i].value, rows[i].len);
		assert_non_null(service_read(&service));
	}
	service_begin(1, ""); /* out of order */
	service_param(3, "\1\273", 2);
	service_param(1, "\2h2", 3);
	assert_non_null(service_read(&service));
	service_begin(1, ""); /* twice */
	service_param(3, "\1\273", 2);
	service_param(3, "\1\273", 2);
	assert_non_null(service_read(&service));
	service_begin(1, ""); /* every cut within the parameters */
	service_param(1, "\2h2", 3);
	service_param(3, "\1\273", 2);
	for (size_t whole = service_wire.len, cut = 0; cut < whole; cut++) {
		service_wire.len = cut;
		/* Behind the target and behind the first parameter a record may end. */
		assert_int_equal(service_read(&service) == NULL, cut == 3 || cut == 10);
	}
}

static void
case_A_02_mapped_hint(void **state)
{
	struct dns_service service;

	(void)state;
	service_begin(1, "");
	service_param(6, "\x2a\0\0\1\0\0\0\0\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\xff\xff\5\5\5\5", 32);
	assert_string_equal(service_read(&service), "an IPv4-mapped hint");
}

static void
case_C_15_largest_record(void **state)
{
	uint8_t rdata[DNS_SERVICE_RDATA_MAX], alpn[DNS_SERVICE_ALPN_MAX];
	struct dns_service service, back;
	struct dns_rdata records[1];
	struct dns_reply reply = {.question = &question,
	    .ttl_s = 60,
	    .services = records,
	    .service_count = 1,
	    .ede = DNS_EDE_NONE,
	    .size_max = 65535};
	ldns_pkt *packet;
	uint8_t *bytes;
	size_t len;

	(void)state;
	service_begin(65535, "");
	service_param(0, "\0\1\0\2\0\3\0\4\0\6", 10);
	memset(alpn, 'x', sizeof(alpn));
	alpn[0] = 63;
	alpn[64] = 63;
	service_param(1, alpn, sizeof(alpn));
	service_param(2, "", 0);
	service_param(3, "\1\273", 2);
	memset(rdata, 7, sizeof(rdata));
	service_param(4, rdata, 400);
	service_param(6, rdata, 800);
	assert_null(service_read(&service));
	assert_int_equal(service.hint4_count, DNS_SERVICE_HINTS_MAX);
	records[0].len = dns_service_write(&service, records[0].bytes);
	assert_in_range(records[0].len, 100, DNS_SERVICE_RDATA_MAX);
	assert_null(dns_service_read(records[0].bytes, records[0].len, &owner, &back));
	assert_memory_equal(&service, &back, sizeof(service));
	ask("www.example.com", DNS_TYPE_HTTPS, 1232);
	packet = build(&reply, &bytes, &len);
	assert_int_equal(ldns_rr_get_type(ldns_rr_list_rr(ldns_pkt_answer(packet), 0)), LDNS_RR_TYPE_HTTPS);
	assert_non_null(memmem(bytes, len, records[0].bytes, records[0].len));
	free(bytes);
	ldns_pkt_free(packet);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_C_19_question_byte_for_byte),
	    cmocka_unit_test(case_C_09_chain_in_the_reply),
	    cmocka_unit_test(case_C_30_refusal),
	    cmocka_unit_test(case_C_17_badvers),
	    cmocka_unit_test(case_C_20_any_is_hinfo),
	    cmocka_unit_test(case_C_18_truncated_for_the_client_only),
	    cmocka_unit_test(case_C_22_errors_without_a_question),
	    cmocka_unit_test(case_C_15_ech_h3_and_hints),
	    cmocka_unit_test(case_C_15_records_left_out),
	    cmocka_unit_test(case_C_15_malformed),
	    cmocka_unit_test(case_A_02_mapped_hint),
	    cmocka_unit_test(case_C_15_largest_record),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
