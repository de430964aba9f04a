/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Raw and TLS connections from accept to closing record. */
#include "gateway/path/tcp/flow.h"
#include "tests/unit/gateway/gateway_proxy_lab.h"

#include <sys/resource.h>

static const char *const good[] = {"good.example.com:22,443", NULL};
static const char *const good_and_range[] = {"good.example.com:22,443", "5.6.7.0/24:22,443", NULL};

static void
case_D_15_server_speaks_first(void **state)
{
	struct lab lab;
	const struct record_flow *open;
	const struct record_close *closed;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	lab_send(&lab, origin, "SSH-2.0-x\r\n", 11);
	lab_expect(&lab, guest, "SSH-2.0-x\r\n", 11);
	lab_send(&lab, guest, "SSH-2.0-me\r\n", 12);
	lab_expect(&lab, origin, "SSH-2.0-me\r\n", 12);
	lab_expect_quiet(&lab);

	open = lab_expect_opened(&lab, 1);
	assert_int_equal(open->name_source, NAME_SOURCE_LEASE);
	assert_memory_equal(open->name, "good.example.com", 16);
	assert_int_equal(open->dport, 22);
	assert_int_equal(open->sandbox, 7);
	assert_int_equal(open->generation, 3);
	assert_int_not_equal(open->sport, 0);
	assert_true(strlen(open->rule) > 0);
	close(guest);
	assert_int_equal(lab_recv(&lab, origin), 0);
	close(origin);
	closed = lab_expect_closed(&lab, 1, END_FIN);
	assert_int_equal(closed->id, lab.far->records[0].flow.id);
	assert_int_equal(closed->bytes_out, 12);
	assert_int_equal(closed->bytes_in, 11);
	assert_int_equal(closed->verdict, VERDICT_ALLOWED);
	assert_true(closed->duration_us > 0);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
	lab_close(&lab);
}

static void
nothing_passes_before_the_record_is_durable(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	lab.far->ack = false;
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, "hello", 5);
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	lab_send(&lab, origin, "banner", 6);
	assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
	assert_int_equal(lab_recv(&lab, guest), -EAGAIN);
	lab_expect_opened(&lab, 1);
	lab_expect_quiet(&lab);
	far_end_durable(lab.far, lab.far->records[0].seq);
	lab_expect(&lab, origin, "hello", 5);
	lab_expect(&lab, guest, "banner", 6);
	close(guest);
	close(origin);
	lab_close(&lab);
}

static void
a_record_that_never_becomes_durable(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	lab.far->ack = false;
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	far_end_pass(lab.far, GATEWAY_CONNECT_MS + 500);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_ERROR)->reason, REASON_AUDIT_UNAVAILABLE);
	close(guest);
	close(origin);
	lab_close(&lab);
}

static void
case_D_23_hello_and_early_data_once(void **state)
{
	struct lab lab;
	const struct record_flow *open;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, "GOOD.example.com", true);
	int guest, origin;

	(void)state;
	memcpy(bytes + len, "early data", 10);
	for (size_t cut = 1; cut < len + 10; cut += 9) {
		lab_open(&lab, 443, good);
		guest = lab_dial(&lab, ORIGIN4);
		lab_send(&lab, guest, bytes, cut);
		assert_int_equal(lab_accept(&lab) < 0, cut < len);
		lab_send(&lab, guest, bytes + cut, len + 10 - cut);
		if (cut < len) {
			origin = lab_accept(&lab);
		} else {
			close(lab.origin);
			lab.origin = -1;
			close(guest);
			lab_close(&lab);
			continue;
		}
		/* The hello; what is behind it when the origin has begun to answer. */
		lab_expect(&lab, origin, bytes, len);
		lab_expect_quiet(&lab);
		lab_send(&lab, origin, "\x16\3", 2);
		assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
		lab_send(&lab, origin, "\3answer that asks for no second hello, and is longer than one", 61);
		assert_int_equal(lab_recv(&lab, guest), 63);
		lab_expect(&lab, origin, "early data", 10);
		lab_send(&lab, guest, "more", 4);
		lab_expect(&lab, origin, "more", 4);
		open = lab_expect_opened(&lab, 1);
		assert_int_equal(open->name_source, NAME_SOURCE_SNI);
		assert_memory_equal(open->name, "good.example.com", 16);
		assert_int_equal(open->flags, RECORD_FLAG_ECH);
		close(guest);
		close(origin);
		lab_settle(&lab);
		lab_close(&lab);
	}
}

/* What an origin says that wants another hello: RFC 8446 section 4.1.3. */
static const uint8_t retry_request[] = {0x16, 3, 3, 0, 42, 2, 0, 0, 38, 3, 3, 0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61,
    0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e,
    0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c, 0, 0x13, 1, 0};

/* A change of cipher and some early data, as they may stand before a second hello. */
static const uint8_t retry_before[] = {0x14, 3, 3, 0, 1, 1, 0x17, 3, 3, 0, 4, 'd', 'a', 't', 'a'};

/* A guest whose hello was answered by a request for another one, which it may have said by then. */
static void
retry_open(struct lab *lab, const uint8_t *said, size_t len, bool early, int *ret_guest, int *ret_origin)
{
	uint8_t bytes[1024];
	size_t first = lab_hello(bytes, "good.example.com", false);

	lab_open(lab, 443, good);
	*ret_guest = lab_dial(lab, ORIGIN4);
	memcpy(bytes + first, said, early ? len : 0);
	lab_send(lab, *ret_guest, bytes, first + (early ? len : 0));
	*ret_origin = lab_accept(lab);
	assert_true(*ret_origin >= 0);
	lab_expect(lab, *ret_origin, bytes, first);
	/* The request comes in two pieces. */
	lab_send(lab, *ret_origin, retry_request, 20);
	assert_int_equal(lab_recv(lab, *ret_guest), -EAGAIN);
	lab_send(lab, *ret_origin, retry_request + 20, sizeof(retry_request) - 20);
	if (early)
		return;
	lab_expect(lab, *ret_guest, retry_request, sizeof(retry_request));
	for (size_t at = 0, n = len / 2; at < len; at += n, n = len - at)
		lab_send(lab, *ret_guest, said + at, n);
}

/* The second hello says the same name, in whatever case: all of it arrives, and the connection goes on. */
static void
second_hello_of_the_same_name(void **state)
{
	uint8_t said[512];
	size_t len = sizeof(retry_before);
	struct lab lab;
	int guest, origin;

	(void)state;
	memcpy(said, retry_before, len);
	len += lab_hello(said + len, "Good.Example.com.", false);
	for (int early = 0; early < 2; early++) {
		retry_open(&lab, said, len, early != 0, &guest, &origin);
		lab_expect(&lab, origin, said, len);
		if (early)
			lab_expect(&lab, guest, retry_request, sizeof(retry_request));
		lab_send(&lab, guest, "more", 4);
		lab_expect(&lab, origin, "more", 4);
		lab_send(&lab, origin, "less", 4);
		lab_expect(&lab, guest, "less", 4);
		close(guest);
		assert_int_equal(lab_recv(&lab, origin), 0);
		close(origin);
		lab_settle(&lab);
		assert_int_equal(lab_expect_closed(&lab, 1, END_FIN)->bytes_out,
		    len + 4 + lab_hello(said + len, "good.example.com", false));
		lab_close(&lab);
	}
}

/* Another name, none, an encrypted one, something else: nothing of it arrives, and it is on record. */
static void
second_hello_of_another_name(void **state)
{
	static const struct {
		const char *sni;
		bool ech;
		enum reason reason;
	} rows[] = {
	    {"evil.example.com", false, REASON_SNI_MISMATCH}, {"other.example.com", false, REASON_SNI_MISMATCH},
	    {NULL, false, REASON_SNI_MISMATCH}, {"5.6.7.8", false, REASON_SNI_MISMATCH},
	    {"good.example.com", true, REASON_TLS_MALFORMED}, {"", false, REASON_TLS_MALFORMED}, /* no hello */
	};
	const struct record *last = NULL;
	uint8_t said[512];
	struct lab lab;
	int guest, origin;

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(rows) / sizeof(rows[0]); i++) {
		const char *sni = rows[i / 2].sni;
		size_t len = sizeof(retry_before);

		memcpy(said, retry_before, len);
		if (sni != NULL && *sni == '\0')
			memcpy(said + len, "\x16\3\3\0\4\x10\0\0\0", 9), len += 9;
		else
			len += lab_hello(said + len, sni, rows[i / 2].ech);
		retry_open(&lab, said, len, i % 2 != 0, &guest, &origin);
		assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
		lab_expect_closed(&lab, 1, END_NEXT_HOST);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 2);
		assert_int_equal(last->flow.verdict, VERDICT_DENIED);
		assert_int_equal(last->flow.reason, rows[i / 2].reason);
		if (sni != NULL)
			assert_int_equal(last->flow.name_len, strlen(sni));
		close(guest);
		close(origin);
		lab_close(&lab);
	}
}

/* Half of a second hello: cut at its deadline, or when the guest has nothing more to say. Nothing of one: an end as
 * any. */
static void
second_hello_unfinished(void **state)
{
	const struct record *last = NULL;
	uint8_t said[512];
	size_t len = lab_hello(said, "evil.example.com", false) - 1;
	struct lab lab;
	int guest, origin;

	(void)state;
	for (int how = 0; how < 3; how++) {
		retry_open(&lab, said, how == 2 ? 0 : len, false, &guest, &origin);
		assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
		if (how == 0)
			far_end_pass(lab.far, GATEWAY_HEAD_MS + 1);
		else
			assert_int_equal(shutdown(guest, SHUT_WR), 0);
		assert_int_equal(lab_recv(&lab, origin), how == 2 ? 0 : -ECONNRESET);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), how == 2 ? 1 : 2);
		if (how != 2)
			assert_int_equal(last->flow.reason, REASON_TLS_MALFORMED);
		close(guest);
		close(origin);
		lab_close(&lab);
	}
}

/* A guest that ends its side before the origin answers, with and without something held. */
static void
half_close_before_the_answer(void **state)
{
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, "good.example.com", false);
	struct lab lab;
	int guest, origin;

	(void)state;
	memcpy(bytes + len, "data", 4);
	for (size_t held = 0; held <= 4; held += 4) {
		lab_open(&lab, 443, good);
		guest = lab_dial(&lab, ORIGIN4);
		lab_send(&lab, guest, bytes, len + held);
		assert_int_equal(shutdown(guest, SHUT_WR), 0);
		origin = lab_accept(&lab);
		lab_expect(&lab, origin, bytes, len);
		if (held > 0) {
			lab_expect_quiet(&lab);
			lab_send(&lab, origin, "x", 1);
			lab_expect(&lab, origin, "data", 4);
			lab_expect(&lab, guest, "x", 1);
		}
		assert_int_equal(lab_recv(&lab, origin), 0);
		lab_send(&lab, origin, "late", 4);
		close(origin);
		lab_expect(&lab, guest, "late", 4);
		assert_int_equal(lab_recv(&lab, guest), 0);
		lab_expect_closed(&lab, 1, END_FIN);
		close(guest);
		lab_close(&lab);
	}
}

/* One hello on port 443, and what must come of it. */
static void
expect_hello_refused(
    const char *const *rules, const char *to, const char *sni, bool ech, enum reason reason, const char *claim)
{
	struct lab lab;
	const struct record_flow *record;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, sni, ech);
	int guest;

	lab_open(&lab, 443, rules);
	lab_lease(&lab, "else.example.com", SHARED4);
	guest = lab_dial(&lab, to);
	lab_send(&lab, guest, bytes, len);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	record = lab_expect_refused(&lab, VERDICT_DENIED, reason);
	assert_int_equal(record->name_len, strlen(claim));
	assert_memory_equal(record->name, claim, strlen(claim));
	assert_int_equal(record->name_source, claim[0] == '\0' ? NAME_SOURCE_NONE : NAME_SOURCE_CLAIM);
	assert_int_equal(record->flags, ech ? RECORD_FLAG_ECH : 0);
	close(guest);
	lab_close(&lab);
}

static void
case_D_01_no_sni(void **state)
{
	struct lab lab;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, NULL, false);
	int guest, origin;

	(void)state;
	expect_hello_refused(good, ORIGIN4, NULL, false, REASON_SNI_MISSING, "");
	expect_hello_refused(good, NOBODY4, NULL, false, REASON_SNI_MISSING, "");
	/* An address rule covers it, leased or not. */
	for (int leased = 0; leased < 2; leased++) {
		lab_open(&lab, 443, good_and_range);
		guest = lab_dial(&lab, leased == 1 ? ORIGIN4 : SHARED4);
		lab_send(&lab, guest, bytes, len);
		origin = lab_accept(&lab);
		assert_true(origin >= 0);
		lab_expect(&lab, origin, bytes, len);
		assert_int_equal(lab_expect_opened(&lab, 1)->name_source, NAME_SOURCE_CIDR);
		assert_int_equal(lab_expect_opened(&lab, 1)->name_len, 0);
		close(guest);
		close(origin);
		lab_close(&lab);
	}
}

static void
case_D_02_name_of_another_address(void **state)
{
	static const char *const two[] = {"good.example.com:443", "else.example.com:443", NULL};

	(void)state;
	/* Never resolved to that address; and that address leased for another allowed name. */
	expect_hello_refused(good, NOBODY4, "good.example.com", false, REASON_SNI_MISMATCH, "good.example.com");
	expect_hello_refused(two, SHARED4, "good.example.com", false, REASON_SNI_MISMATCH, "good.example.com");
	expect_hello_refused(good, ORIGIN4, "evil.example.com", false, REASON_NO_RULE, "evil.example.com");
	expect_hello_refused(good, ORIGIN4, "1.2.3.4", false, REASON_SNI_MISMATCH, "1.2.3.4");
	expect_hello_refused(good_and_range, ORIGIN4, "5.6.7.8", false, REASON_SNI_MISMATCH, "5.6.7.8");
}

static void
case_D_08_ech_denied(void **state)
{
	static const char *const rules[] = {"good.example.com:443", "ech", NULL};

	(void)state;
	expect_hello_refused(rules, ORIGIN4, "good.example.com", true, REASON_ECH, "good.example.com");
}

static void
case_D_20_junk_is_refused_at_once(void **state)
{
	struct lab lab;
	int guest;

	(void)state;
	lab_open(&lab, 443, good);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, "S", 1);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_NOT_TLS);
	close(guest);
	lab_close(&lab);
}

static void
case_D_03_deadline(void **state)
{
	struct lab lab;
	uint8_t bytes[512];
	int guest;

	(void)state;
	lab_hello(bytes, "good.example.com", false);
	for (size_t said = 0; said < 40; said += 20) {
		lab_open(&lab, 443, good);
		guest = lab_dial(&lab, ORIGIN4);
		if (said > 0)
			lab_send(&lab, guest, bytes, said);
		far_end_pass(lab.far, GATEWAY_HEAD_MS - 1000);
		assert_int_equal(lab_recv(&lab, guest), -EAGAIN);
		far_end_pass(lab.far, 1500);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		lab_expect_refused(&lab, VERDICT_DENIED, said == 0 ? REASON_NOT_TLS : REASON_TLS_MALFORMED);
		close(guest);
		lab_close(&lab);
	}
}

static void
a_guest_that_goes_away_early(void **state)
{
	struct lab lab;
	uint8_t bytes[512];
	int guest;

	(void)state;
	lab_hello(bytes, "good.example.com", false);
	for (int how = 0; how < 3; how++) {
		lab_open(&lab, 443, good);
		guest = lab_dial(&lab, ORIGIN4);
		if (how > 0)
			lab_send(&lab, guest, bytes, 30);
		lab_settle(&lab);
		if (how == 2)
			lab_reset(guest);
		else
			close(guest);
		lab_expect_refused(&lab, VERDICT_DENIED, how == 0 ? REASON_NOT_TLS : REASON_TLS_MALFORMED);
		assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
		lab_close(&lab);
	}
}

/* Two names of one address, one of them denied on the port: which was resolved first must not matter. */
static void
raw_by_address_with_a_denied_name(void **state)
{
	static const char *const rules[] = {
	    "5.6.7.0/24:22", "one.example.com:443", "two.example.com:443", "-one.example.com:22", NULL};
	static const char *const names[] = {"one.example.com", "two.example.com"};

	(void)state;
	for (size_t first = 0; first < 2; first++) {
		struct lab lab;
		int guest;

		lab_open(&lab, 22, rules);
		lab_lease(&lab, names[first], SHARED4);
		lab_lease(&lab, names[1 - first], SHARED4);
		guest = lab_dial(&lab, SHARED4);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		lab_expect_refused(&lab, VERDICT_DENIED, REASON_RULE_DENY);
		close(guest);
		lab_close(&lab);
	}
}

static void
raw_without_lease_or_rule(void **state)
{
	static const char *const denied[] = {"5.6.7.0/24:22", "-5.6.7.9/32", NULL};
	struct lab lab;
	int guest;

	(void)state;
	lab_open(&lab, 22, good);
	guest = lab_dial(&lab, SHARED4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_NOT_LEASED);
	close(guest);
	lab_close(&lab);

	lab_open(&lab, 22, denied);
	guest = lab_dial(&lab, SHARED4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_RULE_DENY);
	close(guest);
	lab_close(&lab);

	/* The never list, whatever leases say. */
	lab_open(&lab, 22, good);
	lab_lease(&lab, "good.example.com", "169.254.169.254");
	guest = lab_dial(&lab, "169.254.169.254");
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_NEVER_ADDRESS);
	close(guest);
	lab_close(&lab);
}

static void
ipv6(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	close(lab.origin);
	lab.origin = lab_listener(origin_netns, ORIGIN6, 22);
	guest = lab_dial(&lab, ORIGIN6);
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	lab_send(&lab, guest, "six", 3);
	lab_expect(&lab, origin, "six", 3);
	assert_int_equal(lab_expect_opened(&lab, 1)->dst.family, 6);
	close(guest);
	close(origin);
	lab_close(&lab);
}

static void
origin_refuses(void **state)
{
	struct lab lab;
	const struct record_close *closed;
	int guest;

	(void)state;
	lab_open(&lab, 22, good);
	close(lab.origin);
	lab.origin = -1;
	guest = lab_dial(&lab, ORIGIN4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	closed = lab_expect_closed(&lab, 1, END_CONNECT_FAILED);
	assert_int_equal(closed->verdict, VERDICT_FAILED);
	assert_int_equal(closed->reason, REASON_UPSTREAM_ERROR);
	close(guest);
	lab_close(&lab);
}

static void
case_E_20_half_close_both_orders(void **state)
{
	static uint8_t big[1u << 20];
	struct lab lab;
	size_t got = 0, sent = 0;
	int guest, origin;

	(void)state;
	for (int guest_first = 0; guest_first < 2; guest_first++) {
		int from, to;

		lab_open(&lab, 22, good);
		guest = lab_dial(&lab, ORIGIN4);
		origin = lab_accept(&lab);
		assert_true(origin >= 0);
		from = guest_first ? origin : guest;
		to = guest_first ? guest : origin;
		lab_send(&lab, to, "request", 7);
		assert_int_equal(shutdown(to, SHUT_WR), 0);
		lab_expect(&lab, from, "request", 7);
		assert_int_equal(lab_recv(&lab, from), 0);
		lab_expect_quiet(&lab);
		/* The long reply still comes, then its own FIN. */
		for (sent = got = 0; got < sizeof(big);) {
			ssize_t n = sent < sizeof(big) ? send(from, big + sent, sizeof(big) - sent, MSG_NOSIGNAL) : 0;

			sent += n > 0 ? (size_t)n : 0;
			n = lab_recv(&lab, to);
			got += n > 0 ? (size_t)n : 0;
		}
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_CLOSE, NULL), 0);
		close(from);
		assert_int_equal(lab_recv(&lab, to), 0);
		lab_expect_closed(&lab, 1, END_FIN);
		close(to);
		lab_close(&lab);
	}
}

static void
case_E_21_reset_passes_on(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	for (int by_guest = 0; by_guest < 2; by_guest++) {
		lab_open(&lab, 22, good);
		guest = lab_dial(&lab, ORIGIN4);
		origin = lab_accept(&lab);
		lab_send(&lab, origin, "part of it", 10);
		lab_expect(&lab, guest, "part of it", 10);
		lab_reset(by_guest ? guest : origin);
		assert_int_equal(lab_recv(&lab, by_guest ? origin : guest), -ECONNRESET);
		lab_expect_closed(&lab, 1, by_guest ? END_RST_GUEST : END_RST_ORIGIN);
		close(by_guest ? origin : guest);
		lab_close(&lab);
	}
}

/* A reset is seen although the side it comes from is not being read: the other one takes nothing. */
static void
case_E_21_reset_behind_a_stopped_reader(void **state)
{
	static uint8_t big[65536];
	struct lab lab;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	for (int quiet = 0; quiet < 5; quiet++) {
		while (send(guest, big, sizeof(big), MSG_NOSIGNAL) > 0)
			quiet = 0;
		lab_settle(&lab);
	}
	lab_expect_quiet(&lab);
	lab_reset(guest);
	lab_expect_closed(&lab, 1, END_RST_GUEST);
	close(origin);
	lab_close(&lab);
}

static void
case_E_23_stopped_reader_and_the_other_direction(void **state)
{
	static uint8_t big[65536];
	struct lab lab;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, good);
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	for (int quiet = 0; quiet < 5; quiet++) {
		while (send(guest, big, sizeof(big), MSG_NOSIGNAL) > 0)
			quiet = 0;
		lab_settle(&lab);
	}
	lab_expect_quiet(&lab);
	lab_send(&lab, origin, "still", 5);
	lab_expect(&lab, guest, "still", 5);
	/* Also after the guest's FIN, which waits behind the bytes, and the origin's, which has passed: EPOLLHUP. */
	assert_int_equal(shutdown(origin, SHUT_WR), 0);
	assert_int_equal(lab_recv(&lab, guest), 0);
	assert_int_equal(shutdown(guest, SHUT_WR), 0);
	lab_expect_quiet(&lab);
	while (lab_recv(&lab, origin) > 0)
		;
	lab_expect_closed(&lab, 1, END_FIN);
	close(guest);
	close(origin);
	lab_close(&lab);
}

/* Both sockets of a connection have the options that end a dead peer; the kernel does the rest. */
static void
case_E_19_dead_peers_are_noticed(void **state)
{
	struct lab lab;
	int guest, origin, found = 0;

	(void)state;
	lab_open(&lab, 22, good);
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	for (int fd = 0; fd < 1024; fd++) {
		struct sockaddr_storage peer;
		socklen_t len = sizeof(peer), value_len = sizeof(int);
		int value = 0;

		if (fd == guest || fd == origin || getpeername(fd, (struct sockaddr *)&peer, &len) < 0 ||
		    peer.ss_family != AF_INET)
			continue;
		assert_int_equal(getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &value_len), 0);
		assert_int_equal(value, 1);
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &value, &value_len), 0);
		assert_int_equal(value, FLOW_KEEPALIVE_IDLE_S);
		assert_int_equal(getsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &value, &value_len), 0);
		assert_int_equal(value, FLOW_USER_TIMEOUT_MS);
		found++;
	}
	assert_int_equal(found, 2);
	close(guest);
	close(origin);
	lab_close(&lab);
}

static void
case_F_33_policy_edit_cuts_exactly(void **state)
{
	static const char *const both[] = {"good.example.com:22", "else.example.com:22", NULL};
	static const char *const one[] = {"else.example.com:22", NULL};
	struct lab lab;
	struct msg_policy_done done;
	int guest[2], origin[2];

	(void)state;
	lab_open(&lab, 22, both);
	lab_lease(&lab, "else.example.com", SHARED4);
	for (int i = 0; i < 2; i++) {
		guest[i] = lab_dial(&lab, i == 0 ? ORIGIN4 : SHARED4);
		origin[i] = lab_accept(&lab);
		assert_true(origin[i] >= 0);
	}
	/* Leases run out: nobody is cut, nor by an edit that changes nothing. */
	far_end_pass(lab.far, 3600 * 1000);
	lab_edit(&lab, both, &done);
	assert_int_equal(done.cut_count, 0);
	lab_send(&lab, guest[0], "alive", 5);
	lab_expect(&lab, origin[0], "alive", 5);

	lab_edit(&lab, one, &done);
	assert_int_equal(done.cut_count, 1);
	assert_string_equal(done.cut[0].name.text, "good.example.com");
	assert_int_equal(done.cut[0].dport, 22);
	assert_int_equal(done.cut[0].record_id, lab.far->records[0].flow.id);
	assert_int_equal(lab_recv(&lab, guest[0]), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, origin[0]), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->reason, REASON_REVOKED);
	assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->bytes_out, 5);
	lab_send(&lab, guest[1], "alive", 5);
	lab_expect(&lab, origin[1], "alive", 5);
	for (int i = 0; i < 2; i++) {
		close(guest[i]);
		close(origin[i]);
	}
	lab_close(&lab);
}

static void
case_F_33_other_edits(void **state)
{
	static const struct {
		const char *before[3], *after[3];
		bool leased, cut;
	} rows[] = {
	    {{"good.example.com:22", NULL}, {"*.example.com:22", NULL}, true, false},
	    {{"good.example.com:22", NULL}, {"5.6.7.0/24:22", NULL}, true, false},
	    {{"good.example.com:22", NULL}, {"good.example.com:443", NULL}, true, true},
	    {{"good.example.com:22", NULL}, {"good.example.com:22", "-5.6.7.0/24", NULL}, true, true},
	    {{"good.example.com:22", NULL}, {"good.example.com:22", "-*.example.com", NULL}, true, true},
	    {{"5.6.7.0/24:22", NULL}, {"5.6.0.0/16:22", NULL}, false, false},
	    {{"5.6.7.0/24:22", NULL}, {NULL}, false, true},
	    {{"5.6.7.0/24:22", NULL}, {"good.example.com:22", NULL}, false, true},
	};
	struct msg_policy_done done;
	struct lab lab;
	int guest, origin;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		lab_open(&lab, 22, rows[i].before);
		guest = lab_dial(&lab, rows[i].leased ? ORIGIN4 : SHARED4);
		origin = lab_accept(&lab);
		assert_true(origin >= 0);
		lab_edit(&lab, rows[i].after, &done);
		assert_int_equal(done.cut_count, rows[i].cut ? 1 : 0);
		assert_int_equal(lab_recv(&lab, guest), rows[i].cut ? -ECONNRESET : -EAGAIN);
		close(guest);
		close(origin);
		lab_close(&lab);
	}
}

static void
limits_of_connections(void **state)
{
	static int guests[GATEWAY_SANDBOX_FLOWS_MAX];
	const struct record *last = NULL;
	struct lab lab;
	int guest;

	(void)state;
	lab_open(&lab, 443, good);
	for (int i = 0; i < GATEWAY_SANDBOX_FLOWS_MAX; i++)
		guests[i] = lab_dial(&lab, ORIGIN4);
	for (int i = 0; i < 40; i++)
		lab_settle(&lab);
	assert_int_equal(proxy_flow_count(&lab.sandbox), GATEWAY_SANDBOX_FLOWS_MAX);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 0);
	guest = lab_dial(&lab, ORIGIN4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab_expect_refused(&lab, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS);
	close(guest);
	for (int i = 0; i < GATEWAY_SANDBOX_FLOWS_MAX; i++)
		close(guests[i]);
	for (int i = 0; i < 40; i++)
		lab_settle(&lab);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
	/* One record each. */
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), GATEWAY_SANDBOX_FLOWS_MAX + 1);
	assert_int_equal(last->flow.reason, REASON_NOT_TLS);
	/* All sandboxes together. */
	lab.far->gateway.flow_count = GATEWAY_FLOWS_MAX;
	guest = lab_dial(&lab, ORIGIN4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	lab.far->gateway.flow_count = 0;
	far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_int_equal(last->flow.reason, REASON_LIMIT_CONNECTIONS);
	close(guest);
	/* The last of them are for those that have few (E-17). */
	lab.far->gateway.flow_count = GATEWAY_FLOWS_MAX - GATEWAY_FLOWS_RESERVE;
	for (int i = 0; i <= GATEWAY_FLOWS_FEW; i++) {
		guests[i] = lab_dial(&lab, ORIGIN4);
		assert_int_equal(lab_recv(&lab, guests[i]), i < GATEWAY_FLOWS_FEW ? -EAGAIN : -ECONNRESET);
	}
	far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_string_equal(last->flow.detail, "connections of all sandboxes");
	for (int i = 0; i <= GATEWAY_FLOWS_FEW; i++)
		close(guests[i]);
	for (int i = 0; i < 10; i++)
		lab_settle(&lab);
	lab.far->gateway.flow_count = 0;
	lab_close(&lab);
}

/* A thousand long beginnings of a hello cannot fill the gateway, and what is finished opens all the same. */
static void
case_D_05_memory_of_unfinished_hellos(void **state)
{
	static int guests[320];
	static uint8_t bytes[40000] = {0x16, 3, 1, 0x40, 0, 1, 0, 0xf0, 0};
	const struct record *last = NULL;
	struct lab lab;
	uint8_t hello[512];
	size_t refused;
	int guest, origin;

	(void)state;
	/* Record headers where they belong: after each 16384 bytes. */
	memcpy(bytes + 5 + 16384, "\x16\3\1\x40", 5);
	memcpy(bytes + 2 * (5 + 16384), "\x16\3\1\x40", 5);
	lab_open(&lab, 443, good);
	for (int i = 0; i < 320; i++) {
		guests[i] = lab_dial(&lab, ORIGIN4);
		lab_send(&lab, guests[i], bytes, sizeof(bytes));
	}
	refused = far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_in_range(refused, 320 - FLOW_BUFFERED_MAX / (65536 - FLOW_BUFFER_FIRST) - 1, 60);
	assert_int_equal(last->flow.verdict, VERDICT_LIMITED);
	assert_int_equal(last->flow.reason, REASON_LIMIT_CONNECTIONS);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 320 - refused);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, hello, lab_hello(hello, "good.example.com", false));
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	close(guest);
	close(origin);
	for (int i = 0; i < 320; i++)
		close(guests[i]);
	for (int i = 0; i < 10; i++)
		lab_settle(&lab);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
	lab_close(&lab);
}

static void
without_an_auditor_nothing_opens(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	int guest;

	(void)state;
	lab_open(&lab, 22, good);
	ipc_close(&lab.far->auditor);
	lab_settle(&lab);
	assert_false(recorder_ready(&lab.far->gateway.recorder));
	guest = lab_dial(&lab, ORIGIN4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	assert_int_equal(lab_accept(&lab), -1);
	close(guest);
	/* The refusal is on record once there is an auditor again. */
	far_end_auditor(lab.far);
	lab_settle(&lab);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 1);
	assert_int_equal(last->flow.verdict, VERDICT_FAILED);
	assert_int_equal(last->flow.reason, REASON_AUDIT_UNAVAILABLE);
	lab_close(&lab);
}

/* F-22: while the log is out for long, refusals take no room from what is open, and each is counted. */
static void
case_F_22_refusals_are_counted_when_there_is_no_room(void **state)
{
	const struct record *last = NULL;
	struct recorder *recorder;
	struct lab lab;
	size_t room;
	int guest;

	(void)state;
	lab_open(&lab, 22, good);
	recorder = &lab.far->gateway.recorder;
	ipc_close(&lab.far->auditor);
	lab_settle(&lab);
	room = recorder->queue_len;
	recorder->queue_len = RECORDER_BUSY;
	for (int i = 0; i < 30; i++) {
		guest = lab_dial(&lab, i % 2 == 0 ? ORIGIN4 : ORIGIN6);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		close(guest);
	}
	assert_int_equal(recorder->queue_len, RECORDER_BUSY); /* nothing was added */
	recorder->queue_len = room;
	far_end_auditor(lab.far);
	far_end_pass(lab.far, 6000);
	assert_int_equal(far_end_count(lab.far, RECORD_REFUSED, &last), 2);
	assert_int_equal(last->flow.reason, REASON_AUDIT_UNAVAILABLE);
	assert_int_equal(last->flow.verdict, VERDICT_FAILED);
	assert_int_equal(last->flow.count, 15);
	assert_int_equal(last->flow.dport, 22);
	lab_close(&lab); /* checks that the account adds up */
}

/* F-38: so many refusals within a minute have records of their own; the next ones are counted, by reason, without what
 * each said of itself; what is allowed has its own record all the same. */
static void
case_F_38_refusals_beyond_a_number_are_counted(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	struct attempt_ends ends = {.src = {.family = 4}};
	struct judgement other = verdict_plain(VERDICT_DENIED, REASON_NOT_TLS, NULL);
	uint8_t hello[512];
	int guest, origin;
	size_t listed = 0;

	(void)state;
	lab_open(&lab, 443, good);
	while (attempt_refusals_list(proxy_refusals(&lab.sandbox)))
		assert_in_range(++listed, 1, 100000);
	balance_arrive(lab.sandbox.balance, RECORD_ATTEMPT_CONNECTION, 1);
	attempt_refusals_count(proxy_refusals(&lab.sandbox), &ends, &other, END_REFUSED);
	for (int i = 0; i < 20; i++) {
		guest = lab_dial(&lab, ORIGIN4);
		lab_send(
		    &lab, guest, hello, lab_hello(hello, i % 2 == 0 ? "evil.example.com" : "bad.example.com", false));
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		close(guest);
	}
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 0);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, hello, lab_hello(hello, "good.example.com", false));
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	close(origin);
	close(guest);
	far_end_pass(lab.far, 6000);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 1);
	assert_true(far_end_count(lab.far, RECORD_REFUSED, &last) >= 2);
	assert_int_equal(last->flow.reason, REASON_NO_RULE);
	assert_int_equal(last->flow.verdict, VERDICT_DENIED);
	assert_int_equal(last->flow.count, 20);
	assert_int_equal(last->flow.dport, 443);
	assert_int_equal(last->flow.name_len, 0);
	/* The minute is over. */
	far_end_pass(lab.far, 61000);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, hello, lab_hello(hello, "evil.example.com", false));
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	close(guest);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 2);
	assert_int_equal(last->flow.reason, REASON_NO_RULE);
	lab_close(&lab); /* checks that the account adds up */
}

static void
case_F_20_out_of_descriptors(void **state)
{
	struct rlimit limit, low;
	const struct record *last = NULL;
	struct lab lab;
	int guest[4], origin, top;

	(void)state;
	lab_open(&lab, 22, good);
	for (int i = 0; i < 4; i++)
		guest[i] = lab_dial(&lab, ORIGIN4);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	top = dup(STDERR_FILENO); /* the lowest free number: from here on none may be made */
	close(top);
	low.rlim_cur = (rlim_t)top;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	lab_settle(&lab);
	/* One was turned away with the reserve; the listener rests instead of spinning. */
	far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_non_null(last);
	assert_int_equal(last->flow.verdict, VERDICT_LIMITED);
	assert_int_equal(last->flow.reason, REASON_LIMIT_CONNECTIONS);
	assert_true(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL) < 4);
	lab_expect_quiet(&lab);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	far_end_pass(lab.far, 500);
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	close(origin);
	for (int i = 0; i < 4; i++)
		close(guest[i]);
	lab_close(&lab);
}

static void
detach_in_every_state(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, "good.example.com", false);
	int reading, opening, relaying, origin;

	(void)state;
	lab_open(&lab, 443, good);
	relaying = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, relaying, bytes, len);
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	lab.far->ack = false;
	opening = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, opening, bytes, len);
	reading = lab_dial(&lab, ORIGIN4);
	lab_settle(&lab);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 3);
	proxy_detach(&lab.sandbox, END_SHUTDOWN);
	assert_int_equal(lab_recv(&lab, reading), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, opening), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, relaying), -ECONNRESET);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 3);
	assert_int_equal(last->flow.reason, REASON_REVOKED);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_CLOSE, &last), 2);
	assert_int_equal(last->close.end, END_SHUTDOWN);
	close(reading);
	close(opening);
	close(relaying);
	close(origin);
	lab_close(&lab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_D_15_server_speaks_first),
	    cmocka_unit_test(nothing_passes_before_the_record_is_durable),
	    cmocka_unit_test(a_record_that_never_becomes_durable),
	    cmocka_unit_test(case_D_23_hello_and_early_data_once),
	    cmocka_unit_test(second_hello_of_the_same_name),
	    cmocka_unit_test(second_hello_of_another_name),
	    cmocka_unit_test(second_hello_unfinished),
	    cmocka_unit_test(half_close_before_the_answer),
	    cmocka_unit_test(case_D_01_no_sni),
	    cmocka_unit_test(case_D_02_name_of_another_address),
	    cmocka_unit_test(case_D_08_ech_denied),
	    cmocka_unit_test(case_D_20_junk_is_refused_at_once),
	    cmocka_unit_test(case_D_03_deadline),
	    cmocka_unit_test(a_guest_that_goes_away_early),
	    cmocka_unit_test(raw_without_lease_or_rule),
	    cmocka_unit_test(raw_by_address_with_a_denied_name),
	    cmocka_unit_test(ipv6),
	    cmocka_unit_test(origin_refuses),
	    cmocka_unit_test(case_E_20_half_close_both_orders),
	    cmocka_unit_test(case_E_21_reset_passes_on),
	    cmocka_unit_test(case_E_21_reset_behind_a_stopped_reader),
	    cmocka_unit_test(case_E_23_stopped_reader_and_the_other_direction),
	    cmocka_unit_test(case_E_19_dead_peers_are_noticed),
	    cmocka_unit_test(case_F_33_policy_edit_cuts_exactly),
	    cmocka_unit_test(case_F_33_other_edits),
	    cmocka_unit_test(limits_of_connections),
	    cmocka_unit_test(case_D_05_memory_of_unfinished_hellos),
	    cmocka_unit_test(without_an_auditor_nothing_opens),
	    cmocka_unit_test(case_F_38_refusals_beyond_a_number_are_counted),
	    cmocka_unit_test(case_F_22_refusals_are_counted_when_there_is_no_room),
	    cmocka_unit_test(case_F_20_out_of_descriptors),
	    cmocka_unit_test(detach_in_every_state),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
