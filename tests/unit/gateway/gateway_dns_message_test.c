/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reading of guests' queries and of upstream answers. */
#include <stdio.h>
#include <stdlib.h>

#include "tests/unit/gateway/gateway_dns_wire.h"

static struct wire wire;
static struct dns_question question;
static struct dns_answer answer;
static struct dns_chain chain;
static uint16_t rcode;

static enum dns_read
read_wire(void)
{
	return dns_message_read_question(wire.bytes, wire.len, &question, &rcode);
}

static void
good_query(void **state)
{
	(void)state;
	wire_query(&wire, 0x1234, "www.example.com", DNS_TYPE_AAAA, 4096);
	assert_int_equal(read_wire(), DNS_READ_OK);
	assert_int_equal(question.id, 0x1234);
	assert_true(question.rd && question.has_question && question.has_edns && question.name_ok);
	assert_int_equal(question.udp_size, 4096);
	assert_int_equal(question.type, DNS_TYPE_AAAA);
	assert_string_equal(question.name.text, "www.example.com");
	wire_query(&wire, 1, "example.com", DNS_TYPE_A, 0);
	assert_int_equal(read_wire(), DNS_READ_OK);
	assert_false(question.has_edns);
	assert_int_equal(question.udp_size, DNS_UDP_PLAIN);
}

static void
case_C_19_case_is_kept_for_the_echo(void **state)
{
	(void)state;
	wire_query(&wire, 1, "eXaMpLe.CoM", DNS_TYPE_A, 0);
	assert_int_equal(read_wire(), DNS_READ_OK);
	assert_string_equal(question.name.text, "example.com");
	assert_int_equal(question.wire_len, wire.len - DNS_HEADER_SIZE);
	assert_memory_equal(question.wire, wire.bytes + DNS_HEADER_SIZE, question.wire_len);
}

static void
case_C_22_headers(void **state)
{
	static const struct {
		const char *what;
		unsigned int flags, qd, an, ns, ar;
		enum dns_read read;
		uint16_t rcode;
	} rows[] = {
	    {"response", 0x8100, 1, 0, 0, 0, DNS_READ_DROP, 0},
	    {"IQUERY", 0x0800, 1, 0, 0, 0, DNS_READ_ERROR, DNS_NOTIMP},
	    {"STATUS", 0x1000, 1, 0, 0, 0, DNS_READ_ERROR, DNS_NOTIMP},
	    {"NOTIFY", 0x2000, 1, 0, 0, 0, DNS_READ_ERROR, DNS_NOTIMP},
	    {"UPDATE", 0x2800, 1, 0, 0, 0, DNS_READ_ERROR, DNS_NOTIMP},
	    {"DSO", 0x3000, 0, 0, 0, 0, DNS_READ_ERROR, DNS_NOTIMP},
	    {"no question", 0x0100, 0, 0, 0, 0, DNS_READ_ERROR, DNS_FORMERR},
	    {"two questions", 0x0100, 2, 0, 0, 0, DNS_READ_ERROR, DNS_FORMERR},
	    {"an answer", 0x0100, 1, 1, 0, 0, DNS_READ_ERROR, DNS_FORMERR},
	    {"authority", 0x0100, 1, 0, 1, 0, DNS_READ_ERROR, DNS_FORMERR},
	    {"missing additional", 0x0100, 1, 0, 0, 1, DNS_READ_ERROR, DNS_FORMERR},
	    {"good", 0x0100, 1, 0, 0, 0, DNS_READ_OK, 0},
	    {"good, AD and CD", 0x0130, 1, 0, 0, 0, DNS_READ_OK, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wire_header(&wire, 7, rows[i].flags, rows[i].qd, rows[i].an, rows[i].ns, rows[i].ar);
		wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
		print_message("%s\n", rows[i].what);
		assert_int_equal(read_wire(), rows[i].read);
		if (rows[i].read == DNS_READ_ERROR)
			assert_int_equal(rcode, rows[i].rcode);
	}
}

static void
case_C_22_classes_and_trailing_bytes(void **state)
{
	static const unsigned int classes[] = {0, 2, 3, 4, 254, 255, 65535};

	(void)state;
	for (size_t i = 0; i < sizeof(classes) / sizeof(classes[0]); i++) {
		wire_header(&wire, 7, 0x0100, 1, 0, 0, 0);
		wire_question(&wire, "example.com", DNS_TYPE_A, classes[i]);
		assert_int_equal(read_wire(), DNS_READ_ERROR);
		assert_int_equal(rcode, DNS_REFUSED);
		assert_true(question.has_question);
	}
	wire_query(&wire, 7, "example.com", DNS_TYPE_A, 0);
	wire_u8(&wire, 0);
	assert_int_equal(read_wire(), DNS_READ_ERROR);
	assert_int_equal(rcode, DNS_FORMERR);
}

static void
case_C_22_every_cut(void **state)
{
	size_t whole;

	(void)state;
	wire_query(&wire, 7, "www.example.com", DNS_TYPE_A, 1232);
	whole = wire.len;
	for (wire.len = 0; wire.len < whole; wire.len++)
		assert_int_equal(read_wire(), wire.len < DNS_HEADER_SIZE ? DNS_READ_DROP : DNS_READ_ERROR);
	assert_int_equal(read_wire(), DNS_READ_OK);
}

static void
case_C_17_edns(void **state)
{
	static const uint8_t secret[4 + 1000] = {0xfd, 0xe9, 0x03, 0xe8};
	static const uint8_t cut[] = {0xfd, 0xe9, 0x00, 0x05, 'x'};

	(void)state;
	/* Unknown options are left alone: nothing copies them. */
	wire_header(&wire, 7, 0x0100, 1, 0, 0, 1);
	wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_opt(&wire, 300, 0x8000, secret, sizeof(secret));
	assert_int_equal(read_wire(), DNS_READ_OK);
	assert_int_equal(question.udp_size, 512);

	wire_header(&wire, 7, 0x0100, 1, 0, 0, 1);
	wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_opt(&wire, 1232, 0x00010000, NULL, 0);
	assert_int_equal(read_wire(), DNS_READ_ERROR);
	assert_int_equal(rcode, DNS_BADVERS);
	assert_true(question.has_edns);

	wire_header(&wire, 7, 0x0100, 1, 0, 0, 2);
	wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_opt(&wire, 1232, 0, NULL, 0);
	wire_opt(&wire, 1232, 0, NULL, 0);
	assert_int_equal(read_wire(), DNS_READ_ERROR);
	assert_int_equal(rcode, DNS_FORMERR);

	wire_header(&wire, 7, 0x0100, 1, 0, 0, 1);
	wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_opt(&wire, 1232, 0, cut, sizeof(cut));
	assert_int_equal(read_wire(), DNS_READ_ERROR);
	assert_int_equal(rcode, DNS_FORMERR);

	/* Anything but OPT in the additional section. */
	wire_header(&wire, 7, 0x0100, 1, 0, 0, 1);
	wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
	wire_addr(&wire, "", 60, "1.2.3.4");
	assert_int_equal(read_wire(), DNS_READ_ERROR);
	assert_int_equal(rcode, DNS_FORMERR);
}

static void
case_B_10_every_byte_in_a_label(void **state)
{
	(void)state;
	for (unsigned int byte = 0; byte < 256; byte++) {
		bool good = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
		    (byte >= '0' && byte <= '9') || byte == '-' || byte == '_';

		wire_header(&wire, 7, 0x0100, 1, 0, 0, 0);
		wire_u8(&wire, 3);
		wire_put(&wire, (const uint8_t[]){'a', (uint8_t)byte, 'b'}, 3);
		wire_question(&wire, "example.com", DNS_TYPE_A, DNS_CLASS_IN);
		assert_int_equal(read_wire(), DNS_READ_OK);
		assert_int_equal(question.name_ok, good);
	}
}

static void
case_B_11_nul_at_each_offset(void **state)
{
	(void)state;
	for (size_t at = 0; at < 8; at++) {
		uint8_t label[8] = "evilcom";

		label[at] = '\0';
		wire_header(&wire, 7, 0x0100, 1, 0, 0, 0);
		wire_u8(&wire, 8);
		wire_put(&wire, label, 8);
		wire_question(&wire, "allowed.com", DNS_TYPE_A, DNS_CLASS_IN);
		assert_int_equal(read_wire(), DNS_READ_OK);
		assert_false(question.name_ok);
	}
}

static void
wire_labels(size_t count, size_t size)
{
	for (size_t i = 0; i < count; i++) {
		wire_u8(&wire, (unsigned int)size);
		for (size_t j = 0; j < size; j++)
			wire_u8(&wire, 'a');
	}
}

static void
case_B_13_lengths(void **state)
{
	static const struct {
		size_t count, size, last;
		bool good;
	} rows[] = {
	    {1, 63, 3, true},
	    {1, 64, 3, false},
	    {3, 63, 61, true}, /* 255 bytes on the wire */
	    {3, 63, 62, false},
	    {126, 1, 1, true}, /* 127 labels, 255 bytes */
	    {127, 1, 1, false},
	    {4, 63, 1, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		enum dns_read want = rows[i].good ? DNS_READ_OK : DNS_READ_ERROR;

		wire_header(&wire, 7, 0x0100, 1, 0, 0, 0);
		wire_labels(rows[i].count, rows[i].size);
		wire_labels(1, rows[i].last);
		wire_u8(&wire, 0);
		wire_u16(&wire, DNS_TYPE_A);
		wire_u16(&wire, DNS_CLASS_IN);
		assert_int_equal(read_wire(), want);
	}
}

static void
case_B_14_no_pointer_in_a_question(void **state)
{
	static const unsigned int pointers[] = {0xc000, 0xc00c, 0xc00b, 0xc010, 0xffff, 0x4000, 0x8000};

	(void)state;
	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		wire_header(&wire, 7, 0x0100, 1, 0, 0, 0);
		wire_u8(&wire, 1);
		wire_u8(&wire, 'a');
		wire_u16(&wire, pointers[i]);
		wire_u16(&wire, DNS_TYPE_A);
		wire_u16(&wire, DNS_CLASS_IN);
		assert_int_equal(read_wire(), DNS_READ_ERROR);
		assert_int_equal(rcode, DNS_FORMERR);
	}
}

static void
case_C_22_random_bytes(void **state)
{
	uint32_t x = 2463534242u;

	(void)state;
	for (int round = 0; round < 100000; round++) {
		wire.len = x % 80;
		for (size_t i = 0; i < wire.len; i++) {
			x ^= x << 13;
			x ^= x >> 17;
			x ^= x << 5;
			wire.bytes[i] = (uint8_t)x;
		}
		/* Let every other one get past the header. */
		if (wire.len > DNS_HEADER_SIZE && round % 2 == 0)
			memcpy(wire.bytes + 2, "\1\0\0\1\0\0\0\0\0\0", 10);
		read_wire();
		x ^= x << 13;
		x ^= x >> 17;
		x ^= x << 5;
	}
}

/* Our query for www.example.com A, and the start of an answer to it. */
static uint8_t query[DNS_QUERY_MAX];
static size_t query_len;
static struct name first;

static void
ask(const char *name, uint16_t type)
{
	first = name_of(name);
	query_len = dns_message_write_query(&first, type, 0xbeef, 0, query);
	memset(&chain, 0, sizeof(chain));
	chain.ttl_s = UINT32_MAX;
}

static void
begin_answer(unsigned int flags, unsigned int an, unsigned int ns, unsigned int ar)
{
	wire_header(&wire, 0xbeef, flags, 1, an, ns, ar);
	wire_put(&wire, query + DNS_HEADER_SIZE, query_len - DNS_HEADER_SIZE - DNS_OPT_SIZE);
}

static enum dns_answer_kind
read_answer(void)
{
	dns_message_read_answer(wire.bytes, wire.len, query, query_len, &first, &chain, &answer);
	return answer.kind;
}

static void
our_query(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	memcpy(wire.bytes, query, query_len);
	wire.len = query_len;
	assert_int_equal(read_wire(), DNS_READ_OK);
	assert_int_equal(question.id, 0xbeef);
	assert_true(question.rd);
	assert_int_equal(question.udp_size, DNS_UDP_MAX);
	assert_string_equal(question.name.text, "www.example.com");
	query_len = dns_message_write_query(&first, DNS_TYPE_A, 1, UINT64_MAX, query);
	assert_memory_equal(query + DNS_HEADER_SIZE, "\3WWW\7EXAMPLE\3COM", 17);
}

static void
case_C_24_only_records_on_the_chain(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 5, 2, 2);
	wire_addr(&wire, "evil.net", 1, "6.6.6.6");
	wire_addr(&wire, "cdn.example.net", 200, "5.5.5.5");
	wire_cname(&wire, "www.example.com", 300, "cdn.example.net");
	wire_addr(&wire, "www.example.com", 1, "6.6.6.7");
	wire_cname(&wire, "other.example.com", 1, "evil.net");
	wire_addr(&wire, "cdn.example.net", 1, "6.6.6.8");
	wire_soa(&wire, "example.net");
	wire_addr(&wire, "cdn.example.net", 1, "6.6.6.9");
	wire_opt(&wire, 1232, 0, NULL, 0);
	assert_int_equal(read_answer(), DNS_ANSWER_DATA);
	assert_int_equal(answer.addr_count, 1);
	assert_memory_equal(answer.addrs[0].bytes, "\5\5\5\5", 4);
	assert_int_equal(chain.count, 1);
	assert_string_equal(chain.names[0].text, "cdn.example.net");
	assert_int_equal(chain.ttl_s, 200);
}

static void
case_C_09_chain_lengths(void **state)
{
	static const unsigned int lengths[] = {1, 15, 16, 17};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char owner[32] = "www.example.com", target[32];

		ask(owner, DNS_TYPE_A);
		begin_answer(0x8180, lengths[i] + 1, 0, 0);
		for (unsigned int link = 0; link < lengths[i]; link++) {
			snprintf(target, sizeof(target), "c%u.example.com", link);
			wire_cname(&wire, owner, 60, target);
			memcpy(owner, target, sizeof(owner));
		}
		wire_addr(&wire, owner, 60, "5.5.5.5");
		assert_int_equal(read_answer(), lengths[i] > DNS_CHAIN_MAX ? DNS_ANSWER_BAD : DNS_ANSWER_DATA);
		if (lengths[i] <= DNS_CHAIN_MAX)
			assert_int_equal(chain.count, lengths[i]);
	}
}

static void
case_C_09_loops_and_odd_targets(void **state)
{
	(void)state;
	ask("a.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 2, 0, 0);
	wire_cname(&wire, "a.example.com", 60, "b.example.com");
	wire_cname(&wire, "b.example.com", 60, "A.example.com");
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);

	ask("a.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 1, 0, 0);
	wire_cname(&wire, "a.example.com", 60, "a.example.com");
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);

	ask("a.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 2, 0, 0);
	wire_cname(&wire, "a.example.com", 60, "sp ace.example.com");
	wire_addr(&wire, "sp ace.example.com", 60, "5.5.5.5");
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);

	ask("a.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 2, 0, 0);
	wire_cname(&wire, "a.example.com", 60, "b.example.com");
	wire_cname(&wire, "a.example.com", 60, "c.example.com");
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);
}

static void
case_C_09_chain_goes_on_elsewhere(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 1, 0, 0);
	wire_cname(&wire, "www.example.com", 30, "cdn.example.net");
	assert_int_equal(read_answer(), DNS_ANSWER_CHASE);
	/* The next query is for the end of the chain; a way back to the start is still a loop. */
	query_len = dns_message_write_query(&chain.names[0], DNS_TYPE_A, 0xbeef, 0, query);
	begin_answer(0x8180, 1, 0, 0);
	wire_addr(&wire, "cdn.example.net", 600, "5.5.5.5");
	assert_int_equal(read_answer(), DNS_ANSWER_DATA);
	assert_int_equal(chain.count, 1);
	assert_int_equal(chain.ttl_s, 30);
	begin_answer(0x8180, 1, 0, 0);
	wire_cname(&wire, "cdn.example.net", 60, "www.example.com");
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);
	/* With a SOA record the resolver says that there is nothing at the end. */
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 1, 1, 0);
	wire_cname(&wire, "www.example.com", 30, "cdn.example.net");
	wire_soa(&wire, "example.net");
	assert_int_equal(read_answer(), DNS_ANSWER_NODATA);
}

static void
cname_question(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_CNAME);
	begin_answer(0x8180, 2, 0, 0);
	wire_cname(&wire, "www.example.com", 30, "cdn.example.net");
	wire_cname(&wire, "cdn.example.net", 30, "more.example.net");
	assert_int_equal(read_answer(), DNS_ANSWER_DATA);
	assert_int_equal(chain.count, 1);
}

static void
case_C_11_ttls(void **state)
{
	static const struct {
		uint32_t ttl_s, want_s;
	} rows[] = {{0, 0}, {1, 1}, {2147483647, 2147483647}, {2147483648, 0}, {4294967295, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		ask("www.example.com", DNS_TYPE_A);
		begin_answer(0x8180, 2, 0, 0);
		wire_addr(&wire, "www.example.com", 2147483647, "5.5.5.4");
		wire_addr(&wire, "www.example.com", rows[i].ttl_s, "5.5.5.5");
		assert_int_equal(read_answer(), DNS_ANSWER_DATA);
		assert_int_equal(chain.ttl_s, rows[i].want_s);
	}
}

static void
case_C_12_answer_sizes(void **state)
{
	static const unsigned int counts[] = {1, 25, 100, 500, DNS_ADDRS_MAX, DNS_ADDRS_MAX + 1};

	(void)state;
	for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
		ask("www.example.com", DNS_TYPE_A);
		begin_answer(0x8180, counts[i], 0, 0);
		for (unsigned int n = 0; n < counts[i]; n++)
			wire_addr(&wire, "www.example.com", 60, "5.5.5.5");
		assert_int_equal(read_answer(), counts[i] > DNS_ADDRS_MAX ? DNS_ANSWER_BAD : DNS_ANSWER_DATA);
		if (counts[i] <= DNS_ADDRS_MAX)
			assert_int_equal(answer.addr_count, counts[i]);
	}
}

static void
case_C_23_not_our_answer(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 0, 0, 0);
	wire.bytes[0] ^= 1;
	assert_int_equal(read_answer(), DNS_ANSWER_MISMATCH); /* id */
	begin_answer(0x0180, 0, 0, 0);
	assert_int_equal(read_answer(), DNS_ANSWER_MISMATCH); /* no response */
	begin_answer(0x8180, 0, 0, 0);
	wire.bytes[DNS_HEADER_SIZE + 1] = 'W';
	assert_int_equal(read_answer(), DNS_ANSWER_MISMATCH); /* case */
	begin_answer(0x8180, 0, 0, 0);
	wire.bytes[wire.len - 3] = DNS_TYPE_AAAA;
	assert_int_equal(read_answer(), DNS_ANSWER_MISMATCH); /* type */
	wire_header(&wire, 0xbeef, 0x8180, 0, 0, 0, 0);
	assert_int_equal(read_answer(), DNS_ANSWER_MISMATCH); /* no question */
	begin_answer(0x8380, 0, 0, 0);
	assert_int_equal(read_answer(), DNS_ANSWER_BAD); /* still truncated */
}

static void
case_C_31_codes(void **state)
{
	(void)state;
	for (unsigned int code = 0; code < 16; code++) {
		ask("www.example.com", DNS_TYPE_A);
		begin_answer(0x8180 | code, 1, 0, 0);
		wire_addr(&wire, "www.example.com", 60, "5.5.5.5");
		assert_int_equal(read_answer(),
		    code == DNS_NOERROR        ? DNS_ANSWER_DATA
			: code == DNS_NXDOMAIN ? DNS_ANSWER_NXDOMAIN
					       : DNS_ANSWER_FAILED);
	}
	begin_answer(0x8180, 0, 0, 1);
	wire_opt(&wire, 1232, 0x01000000, NULL, 0); /* BADVERS */
	assert_int_equal(read_answer(), DNS_ANSWER_FAILED);
}

static void
case_C_24_sizes_and_cuts(void **state)
{
	size_t whole;

	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 1, 0, 0);
	wire_rr(&wire, "www.example.com", DNS_TYPE_A, 60, "\5\5\5\5\5", 5);
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);
	begin_answer(0x8180, 2, 1, 1);
	wire_cname(&wire, "www.example.com", 300, "cdn.example.net");
	wire_addr(&wire, "cdn.example.net", 200, "5.5.5.5");
	wire_soa(&wire, "example.net");
	wire_opt(&wire, 1232, 0, NULL, 0);
	whole = wire.len;
	for (wire.len = 0; wire.len < whole; wire.len++) {
		memset(&chain, 0, sizeof(chain));
		assert_in_range(read_answer(), DNS_ANSWER_MISMATCH, DNS_ANSWER_BAD);
	}
	memset(&chain, 0, sizeof(chain));
	assert_int_equal(read_answer(), DNS_ANSWER_DATA);
	wire_u8(&wire, 0);
	memset(&chain, 0, sizeof(chain));
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);
}

/* A name at the end of what is written so far. */
static bool
read_name_here(size_t at)
{
	struct reader r = reader_make(wire.bytes, wire.len);
	uint8_t name[DNS_NAME_WIRE_MAX];
	size_t len;

	r.at = at;
	return dns_message_read_name(&r, name, &len) && r.at == wire.len;
}

static void
case_B_14_pointers(void **state)
{
	static const struct {
		const char *what;
		unsigned int target; /* relative to offset 12, where "example.com" stands; the pointer is at 25 */
		bool good;
	} rows[] = {
	    {"a name before", 12, true},
	    {"inside that name", 20, true},
	    {"its root", 24, true},
	    {"itself", 25, false},
	    {"behind", 27, false},
	    {"past the end", 0x3fff, false},
	    {"the header", 11, false},
	    {"the start", 0, false},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		wire_header(&wire, 0, 0, 0, 0, 0, 0);
		wire_name(&wire, "example.com");
		wire_u16(&wire, 0xc000 | rows[i].target);
		print_message("%s\n", rows[i].what);
		assert_int_equal(read_name_here(25), rows[i].good);
	}
	/* A label, then a pointer to that label: would grow without end. */
	wire_header(&wire, 0, 0, 0, 0, 0, 0);
	wire_u8(&wire, 1);
	wire_u8(&wire, 'a');
	wire_u16(&wire, 0xc00c);
	assert_false(read_name_here(12));
	/* Label types 01 and 10. */
	for (unsigned int type = 0x40; type <= 0x80; type += 0x40) {
		wire_header(&wire, 0, 0, 0, 0, 0, 0);
		wire_u8(&wire, type | 1);
		wire_u8(&wire, 'a');
		wire_u8(&wire, 0);
		assert_false(read_name_here(12));
	}
}

static void
case_B_14_chains_of_pointers(void **state)
{
	static const unsigned int lengths[] = {1, DNS_POINTERS_MAX, DNS_POINTERS_MAX + 1, 100};

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		wire_header(&wire, 0, 0, 0, 0, 0, 0);
		wire_name(&wire, "a");
		for (unsigned int n = 0; n < lengths[i]; n++)
			wire_u16(&wire, 0xc000 | (unsigned int)(n == 0 ? 12 : wire.len - 2));
		assert_int_equal(read_name_here(wire.len - 2), lengths[i] <= DNS_POINTERS_MAX);
	}
}

static void
case_B_14_pointers_grow_past_255(void **state)
{
	(void)state;
	/* Each name is 40 bytes and a pointer to the one before. */
	wire_header(&wire, 0, 0, 0, 0, 0, 0);
	wire_name(&wire, "a");
	for (unsigned int n = 0, before = 12; n < 8; n++) {
		unsigned int here = (unsigned int)wire.len;

		wire_labels(1, 39);
		wire_u16(&wire, 0xc000 | before);
		assert_int_equal(read_name_here(here), 3 + (n + 1) * 40 <= DNS_NAME_WIRE_MAX);
		before = here;
	}
}

static void
case_B_14_compressed_answer(void **state)
{
	(void)state;
	ask("www.example.com", DNS_TYPE_A);
	begin_answer(0x8180, 2, 0, 0);
	wire_u16(&wire, 0xc00c); /* owner: the question's name */
	wire_u16(&wire, DNS_TYPE_CNAME);
	wire_u16(&wire, DNS_CLASS_IN);
	wire_u32(&wire, 60);
	wire_u16(&wire, 6);
	wire_u8(&wire, 3);
	wire_put(&wire, "cdn", 3);
	wire_u16(&wire, 0xc010); /* example.com */
	wire_addr(&wire, "cdn.example.com", 60, "5.5.5.5");
	assert_int_equal(read_answer(), DNS_ANSWER_DATA);
	assert_string_equal(chain.names[0].text, "cdn.example.com");
	/* The target must end where its rdata ends. */
	begin_answer(0x8180, 1, 0, 0);
	wire_rr(&wire, "www.example.com", DNS_TYPE_CNAME, 60, "\3cdn\0\0", 6);
	assert_int_equal(read_answer(), DNS_ANSWER_BAD);
}

static void
names_on_the_wire(void **state)
{
	static const char *const names[] = {"a", "com", "example.com", "_8443._https.a-b.example.com"};
	uint8_t bytes[DNS_NAME_WIRE_MAX];

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct name name = name_of(names[i]), back;
		size_t len = dns_message_write_name(&name, bytes);

		wire.len = 0;
		wire_name(&wire, names[i]);
		assert_int_equal(len, wire.len);
		assert_memory_equal(bytes, wire.bytes, len);
		assert_int_equal(name_from_wire(bytes, len, &back), NAME_OK);
		assert_true(name_equal(&name, &back));
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_query),
	    cmocka_unit_test(case_C_19_case_is_kept_for_the_echo),
	    cmocka_unit_test(case_C_22_headers),
	    cmocka_unit_test(case_C_22_classes_and_trailing_bytes),
	    cmocka_unit_test(case_C_22_every_cut),
	    cmocka_unit_test(case_C_22_random_bytes),
	    cmocka_unit_test(case_C_17_edns),
	    cmocka_unit_test(case_B_10_every_byte_in_a_label),
	    cmocka_unit_test(case_B_11_nul_at_each_offset),
	    cmocka_unit_test(case_B_13_lengths),
	    cmocka_unit_test(case_B_14_no_pointer_in_a_question),
	    cmocka_unit_test(case_B_14_pointers),
	    cmocka_unit_test(case_B_14_chains_of_pointers),
	    cmocka_unit_test(case_B_14_pointers_grow_past_255),
	    cmocka_unit_test(case_B_14_compressed_answer),
	    cmocka_unit_test(our_query),
	    cmocka_unit_test(case_C_24_only_records_on_the_chain),
	    cmocka_unit_test(case_C_09_chain_lengths),
	    cmocka_unit_test(case_C_09_loops_and_odd_targets),
	    cmocka_unit_test(case_C_09_chain_goes_on_elsewhere),
	    cmocka_unit_test(cname_question),
	    cmocka_unit_test(case_C_11_ttls),
	    cmocka_unit_test(case_C_12_answer_sizes),
	    cmocka_unit_test(case_C_23_not_our_answer),
	    cmocka_unit_test(case_C_31_codes),
	    cmocka_unit_test(case_C_24_sizes_and_cuts),
	    cmocka_unit_test(names_on_the_wire),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
