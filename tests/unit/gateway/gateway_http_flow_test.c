/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HTTP connections from accept to closing record: each request judged, refusals explained. */
#include "gateway/path/tcp/http_request.h"
#include "tests/unit/gateway/gateway_proxy_lab.h"

#define H "Host: good.example.com\r\n"
#define REQUEST "GET / HTTP/1.1\r\n" H "\r\n"
#define OTHER "GET /two HTTP/1.1\r\nHost: other.example.com\r\n\r\n"
#define EVIL "GET /two HTTP/1.1\r\nHost: evil.example.com\r\n\r\n"
#define ANSWER "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
#define UPGRADE "GET /ws HTTP/1.1\r\n" H "Connection: Upgrade\r\nUpgrade: websocket\r\n\r\n"

static const char *const rules[] = {"good.example.com", "other.example.com", NULL};

static void
say(struct lab *lab, int fd, const char *text)
{
	lab_send(lab, fd, text, strlen(text));
}

static void
hear(struct lab *lab, int fd, const char *text)
{
	lab_expect(lab, fd, text, strlen(text));
}

/* A lab in which the guest has said this, and the origin has it. */
static void
open_with(struct lab *lab, const char *text, int *ret_guest, int *ret_origin)
{
	lab_open(lab, 80, rules);
	lab_lease(lab, "other.example.com", ORIGIN4);
	*ret_guest = lab_dial(lab, ORIGIN4);
	say(lab, *ret_guest, text);
	*ret_origin = lab_accept(lab);
	assert_true(*ret_origin >= 0);
}

static void
finish(struct lab *lab, int guest, int origin)
{
	close(guest);
	close(origin);
	lab_close(lab);
}

static void
requests_of_one_host(void **state)
{
	struct lab lab;
	const struct record_flow *open;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	hear(&lab, origin, REQUEST);
	open = lab_expect_opened(&lab, 1);
	assert_int_equal(open->name_source, NAME_SOURCE_HOST);
	assert_memory_equal(open->name, "good.example.com", 16);
	assert_string_equal(open->http_method, "GET");
	say(&lab, origin, ANSWER);
	hear(&lab, guest, ANSWER);
	say(&lab, guest, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhel");
	hear(&lab, origin, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5\r\nhel");
	say(&lab, guest, "lo\r\n0");
	hear(&lab, origin, "lo\r\n");
	say(&lab, guest, "\r\n\r\n");
	hear(&lab, origin, "0\r\n\r\n");
	lab_expect_opened(&lab, 1);
	lab_expect_quiet(&lab);
	assert_int_equal(shutdown(guest, SHUT_WR), 0);
	assert_int_equal(lab_recv(&lab, origin), 0);
	say(&lab, origin, ANSWER);
	close(origin);
	hear(&lab, guest, ANSWER);
	assert_int_equal(lab_recv(&lab, guest), 0);
	assert_int_equal(lab_expect_closed(&lab, 1, END_FIN)->bytes_in, 2 * strlen(ANSWER));
	close(guest);
	lab_close(&lab);
}

/* Whatever the cut, the origin gets the same bytes; what is no request never arrives. */
static void
case_B_22_case_D_23_every_cut(void **state)
{
	static const char text[] = "POST /a HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" REQUEST;
	struct lab lab;

	(void)state;
	for (size_t cut = 1; cut < sizeof(text) - 1; cut += 3) {
		char got[sizeof(text)] = "";
		size_t len = 0;
		int guest, origin;

		lab_open(&lab, 80, rules);
		guest = lab_dial(&lab, ORIGIN4);
		lab_send(&lab, guest, text, cut);
		lab_send(&lab, guest, text + cut, sizeof(text) - 1 - cut);
		origin = lab_accept(&lab);
		while (len < sizeof(text) - 1) {
			ssize_t n = lab_recv(&lab, origin);

			assert_true(n > 0);
			memcpy(got + len, lab.got, (size_t)n);
			len += (size_t)n;
		}
		assert_string_equal(got, text);
		finish(&lab, guest, origin);
	}
}

/* The guest's answer to a refused first request: status line and reason, then FIN; the origin saw nothing. */
static void
expect_answer(const char *request, const char *status, enum reason reason, const char *claim)
{
	const struct record_flow *record;
	struct lab lab;
	char text[4096];
	int guest;
	ssize_t n;

	lab_open(&lab, 80, rules);
	guest = lab_dial(&lab, ORIGIN4);
	say(&lab, guest, request);
	n = lab_recv(&lab, guest);
	assert_in_range(n, 1, sizeof(text) - 1);
	memcpy(text, lab.got, (size_t)n);
	text[n] = '\0';
	if (strncmp(text, status, strlen(status)) != 0 || strstr(text, reason_text(reason)) == NULL)
		fail_msg("answer to %s: %s", request, text);
	assert_non_null(strstr(text, "Connection: close\r\n"));
	assert_int_equal(lab_recv(&lab, guest), 0);
	record = lab_expect_refused(&lab, VERDICT_DENIED, reason);
	assert_int_equal(record->name_len, strlen(claim));
	assert_memory_equal(record->name, claim, strlen(claim));
	/* It lingers until the guest has closed, and no longer than that. */
	assert_int_equal(proxy_flow_count(&lab.sandbox), 1);
	say(&lab, guest, "more");
	assert_int_equal(proxy_flow_count(&lab.sandbox), 1);
	close(guest);
	lab_settle(&lab);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
	lab_close(&lab);
}

static void
refusals_are_explained(void **state)
{
	(void)state;
	expect_answer(
	    "GET / HTTP/1.1\r\nHost: Evil.example.com\r\n\r\n", "HTTP/1.1 403 ", REASON_NO_RULE, "Evil.example.com");
	expect_answer("GET / HTTP/1.1\r\nHost: other.example.com\r\n\r\n", "HTTP/1.1 403 ", REASON_HOST_MISMATCH,
	    "other.example.com");
	expect_answer("GET / HTTP/1.1\r\n\r\n", "HTTP/1.1 400 ", REASON_HTTP_MALFORMED, "");
	expect_answer("GET / HTTP/1.1\r\nHost: a\x1b[31mb\r\n\r\n", "HTTP/1.1 400 ", REASON_HTTP_MALFORMED, "");
	expect_answer("GET / HTTP/1.1\r\nHost: a_[31m\r\n\r\n", "HTTP/1.1 403 ", REASON_HOST_MISMATCH, "a_[31m");
	expect_answer("CONNECT good.example.com:443 HTTP/1.1\r\n" H "\r\n", "HTTP/1.1 403 ", REASON_PROTO_DENIED, "");
	expect_answer(
	    "GET / HTTP/1.1\r\n" H "Upgrade: h2c\r\n\r\n", "HTTP/1.1 403 ", REASON_PROTO_DENIED, "good.example.com");
}

static void
case_B_15_address_needs_a_rule(void **state)
{
	static const char *const range[] = {"5.6.7.0/24:80", NULL};
	struct lab lab;
	int guest, origin;

	(void)state;
	/* Leased, but nothing proves a name. */
	expect_answer("GET / HTTP/1.1\r\nHost: 5.6.7.8\r\n\r\n", "HTTP/1.1 403 ", REASON_HOST_MISMATCH, "5.6.7.8");
	lab_open(&lab, 80, range);
	guest = lab_dial(&lab, ORIGIN4);
	say(&lab, guest, "GET / HTTP/1.1\r\nHost: 5.6.7.8\r\n\r\n");
	origin = lab_accept(&lab);
	assert_true(origin >= 0);
	assert_int_equal(lab_expect_opened(&lab, 1)->name_source, NAME_SOURCE_CIDR);
	finish(&lab, guest, origin);
}

static void
case_B_23_broken_body_along_with_the_head(void **state)
{
	(void)state;
	expect_answer("POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n5;x=y\r\nhello\r\n0\r\n\r\n",
	    "HTTP/1.1 400 ", REASON_HTTP_MALFORMED, "good.example.com");
	expect_answer("POST / HTTP/1.1\r\n" H "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
	    "HTTP/1.1 400 ", REASON_HTTP_MALFORMED, "good.example.com");
}

static void
case_B_23_broken_body_later(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, "POST / HTTP/1.1\r\n" H "Transfer-Encoding: chunked\r\n\r\n", &guest, &origin);
	lab_recv(&lab, origin);
	say(&lab, guest, "5;x=y\r\nhello\r\n");
	assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->reason, REASON_HTTP_MALFORMED);
	assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 1);
	finish(&lab, guest, origin);
}

static void
case_B_25_not_http(void **state)
{
	static const char *const first[] = {"\x16\3\1\2", "SSH-2.0-x\r\n", "EHLO x\r\n"};
	struct lab lab;
	int guest;

	(void)state;
	for (size_t i = 0; i < sizeof(first) / sizeof(first[0]); i++) {
		lab_open(&lab, 80, rules);
		guest = lab_dial(&lab, ORIGIN4);
		say(&lab, guest, first[i]);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		lab_expect_refused(&lab, VERDICT_DENIED, REASON_NOT_HTTP);
		close(guest);
		lab_close(&lab);
	}
}

static void
case_B_24_dribbled_head(void **state)
{
	struct lab lab;
	int guest;

	(void)state;
	lab_open(&lab, 80, rules);
	guest = lab_dial(&lab, ORIGIN4);
	say(&lab, guest, "GET / HTTP/1.1\r\n");
	for (int s = 0; s < 9; s++) {
		say(&lab, guest, "X");
		far_end_pass(lab.far, 1000);
	}
	assert_int_equal(lab_recv(&lab, guest), -EAGAIN);
	far_end_pass(lab.far, 1500);
	assert_true(lab_recv(&lab, guest) > 0);
	assert_memory_equal(lab.got, "HTTP/1.1 400 ", 13);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_HTTP_MALFORMED);
	/* One that does not close is let go of. */
	far_end_pass(lab.far, 3000);
	assert_int_equal(proxy_flow_count(&lab.sandbox), 0);
	close(guest);
	lab_close(&lab);
}

static void
case_B_24_giant_head(void **state)
{
	static char text[200000];
	struct lab lab;
	int guest;

	(void)state;
	memset(text, 'a', sizeof(text));
	memcpy(text, "GET / HTTP/1.1\r\nX: ", 19);
	lab_open(&lab, 80, rules);
	guest = lab_dial(&lab, ORIGIN4);
	assert_true(send(guest, text, sizeof(text), MSG_NOSIGNAL) > HTTP_REQUEST_HEAD_MAX);
	assert_true(lab_recv(&lab, guest) > 0);
	assert_memory_equal(lab.got, "HTTP/1.1 400 ", 13);
	lab_expect_refused(&lab, VERDICT_DENIED, REASON_HTTP_MALFORMED);
	close(guest);
	lab_close(&lab);
}

static void
case_B_22_second_host_denied(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	int guest, origin;

	(void)state;
	for (int together = 0; together < 2; together++) {
		open_with(&lab, together ? REQUEST EVIL : REQUEST, &guest, &origin);
		if (!together) {
			hear(&lab, origin, REQUEST);
			say(&lab, origin, ANSWER);
			hear(&lab, guest, ANSWER);
			say(&lab, guest, EVIL);
		}
		lab_settle(&lab);
		/* The origin may have seen the first request, and nothing of the second. */
		if (together && lab_recv(&lab, origin) > 0)
			assert_memory_equal(lab.got, REQUEST, strlen(REQUEST));
		assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		assert_int_equal(lab_expect_closed(&lab, 1, END_NEXT_HOST)->bytes_out, strlen(REQUEST));
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 2);
		assert_int_equal(last->flow.reason, REASON_NO_RULE);
		assert_int_equal(last->flow.verdict, VERDICT_DENIED);
		assert_memory_equal(last->flow.name, "evil.example.com", 16);
		finish(&lab, guest, origin);
	}
}

static void
case_B_22_second_request_malformed(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	hear(&lab, origin, REQUEST);
	say(&lab, guest, "GET / HTTP/1.1\r\n" H H "\r\n");
	assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
	lab_expect_closed(&lab, 1, END_NEXT_HOST);
	far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_int_equal(last->flow.reason, REASON_HTTP_MALFORMED);
	finish(&lab, guest, origin);
}

/* The beginning of a later request, and then the end of the connection, whoever ends it and how: an attempt of its own.
 */
static void
case_B_22_second_request_unfinished(void **state)
{
	static const char begun[] = "GET /secret HTTP/1.1\r\nHost: evil.example.net\r\nX: data";
	const struct record *last = NULL;

	(void)state;
	for (int how = 0; how < 4; how++) {
		struct lab lab;
		int guest, origin;

		open_with(&lab, REQUEST, &guest, &origin);
		hear(&lab, origin, REQUEST);
		say(&lab, guest, begun);
		assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 1);
		if (how == 0)
			assert_int_equal(shutdown(guest, SHUT_WR), 0);
		else if (how == 1)
			lab_reset(guest);
		else if (how == 2)
			lab_reset(origin);
		else
			proxy_detach(&lab.sandbox, END_DETACHED);
		lab_settle(&lab);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 2);
		assert_int_equal(last->flow.verdict, VERDICT_DENIED);
		assert_int_equal(last->flow.reason, REASON_HTTP_MALFORMED);
		assert_int_equal(last->flow.name_len, 16);
		assert_memory_equal(last->flow.name, "evil.example.net", 16);
		assert_string_equal(last->flow.http_method, "GET");
		if (how == 0)
			assert_int_equal(lab_recv(&lab, origin), 0);
		if (how != 1)
			close(guest);
		if (how != 2)
			close(origin);
		lab_settle(&lab);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, NULL), 2);
		lab_close(&lab);
	}
}

/* What came with the first request for another host when the origin does not answer; for the same host it is none. */
static void
case_B_22_second_request_without_an_origin(void **state)
{
	const struct record *last = NULL;

	(void)state;
	for (int other = 0; other < 2; other++) {
		struct lab lab;
		int guest;

		lab_open(&lab, 80, rules);
		close(lab.origin);
		lab.origin = -1;
		guest = lab_dial(&lab, ORIGIN4);
		say(&lab, guest, other ? REQUEST "GET / HTTP/1.1\r\nHost: evil.example.net\r\n\r\n" : REQUEST REQUEST);
		assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
		assert_int_equal(far_end_count(lab.far, RECORD_FLOW_OPEN, &last), 1 + other);
		if (other)
			assert_memory_equal(last->flow.name, "evil.example.net", 16);
		close(guest);
		lab_close(&lab);
	}
}

static void
second_host_allowed_gets_its_own_record(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	hear(&lab, origin, REQUEST);
	say(&lab, origin, ANSWER);
	hear(&lab, guest, ANSWER);
	lab.far->ack = false;
	say(&lab, guest, OTHER OTHER);
	/* Held until its record is durable; the other direction is not. */
	assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
	assert_memory_equal(lab_expect_opened(&lab, 2)->name, "other.example.com", 17);
	assert_int_equal(lab_expect_closed(&lab, 1, END_NEXT_HOST)->bytes_out, strlen(REQUEST));
	assert_int_equal(lab_expect_closed(&lab, 1, END_NEXT_HOST)->bytes_in, strlen(ANSWER));
	say(&lab, origin, "late");
	hear(&lab, guest, "late");
	lab_expect_quiet(&lab);
	far_end_durable(lab.far, lab.far->records[2].seq);
	hear(&lab, origin, OTHER OTHER);
	close(guest);
	assert_int_equal(lab_recv(&lab, origin), 0);
	close(origin);
	assert_int_equal(lab_expect_closed(&lab, 2, END_FIN)->bytes_out, 2 * strlen(OTHER));
	assert_int_equal(lab_expect_closed(&lab, 2, END_FIN)->bytes_in, 4);
	lab_close(&lab);
}

static void
second_host_without_a_durable_record(void **state)
{
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	hear(&lab, origin, REQUEST);
	lab.far->ack = false;
	say(&lab, guest, OTHER);
	far_end_pass(lab.far, GATEWAY_CONNECT_MS + 500);
	assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 2, END_ERROR)->reason, REASON_AUDIT_UNAVAILABLE);
	finish(&lab, guest, origin);
}

/* Later heads have the first one's deadline; a head in the middle of a busy stream does not inherit an older one. */
static void
case_B_24_later_head_dribbles(void **state)
{
	const struct record *last = NULL;
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	hear(&lab, origin, REQUEST);
	far_end_pass(lab.far, 3 * GATEWAY_HEAD_MS); /* idle is no crime */
	for (int i = 0; i < 5; i++) {
		say(&lab, guest, i == 0 ? "GET / HT" : "TP/1.1\r\n" H "\r\nGET / HT");
		far_end_pass(lab.far, GATEWAY_HEAD_MS / 2);
		assert_int_equal(lab_recv(&lab, guest), -EAGAIN);
	}
	far_end_pass(lab.far, GATEWAY_HEAD_MS);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_NEXT_HOST)->bytes_out, 5 * strlen(REQUEST));
	far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
	assert_int_equal(last->flow.verdict, VERDICT_DENIED);
	assert_int_equal(last->flow.reason, REASON_HTTP_MALFORMED);
	finish(&lab, guest, origin);
}

static void
case_F_33_edit_cuts_a_kept_alive_connection(void **state)
{
	static const char *const less[] = {"other.example.com", NULL};
	struct msg_policy_done done;
	struct lab lab;
	int guest, origin;

	(void)state;
	open_with(&lab, REQUEST, &guest, &origin);
	lab_edit(&lab, less, &done);
	assert_int_equal(done.cut_count, 1);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	finish(&lab, guest, origin);
}

static void
case_B_21_websocket(void **state)
{
	static const char *const starts[] = {"HTTP/1.1 101 Switching Protocols\r\n", "HTTP/1.1 10", "H"};
	struct lab lab;
	int guest, origin;

	(void)state;
	for (size_t i = 0; i < sizeof(starts) / sizeof(starts[0]); i++) {
		open_with(&lab, UPGRADE "\x81\5early", &guest, &origin);
		assert_int_equal(lab_expect_opened(&lab, 1)->flags, RECORD_FLAG_TUNNEL);
		hear(&lab, origin, UPGRADE); /* and not what is behind it */
		say(&lab, guest, "\x81\4more");
		assert_int_equal(lab_recv(&lab, origin), -EAGAIN);
		lab_expect_quiet(&lab);
		say(&lab, origin, starts[i]);
		if (i > 0) {
			assert_int_equal(lab_recv(&lab, guest), -EAGAIN);
			lab_expect_quiet(&lab);
			say(&lab, origin, "HTTP/1.1 101 Switching Protocols\r\n" + strlen(starts[i]));
		}
		hear(&lab, guest, "HTTP/1.1 101 Switching Protocols\r\n");
		hear(&lab, origin, "\x81\5early\x81\4more");
		/* Opaque both ways. */
		say(&lab, origin, "\r\n\x82\1x");
		hear(&lab, guest, "\r\n\x82\1x");
		say(&lab, guest, "\x81\3GET");
		hear(&lab, origin, "\x81\3GET");
		lab_expect_quiet(&lab);
		close(guest);
		assert_int_equal(lab_recv(&lab, origin), 0);
		close(origin);
		lab_expect_closed(&lab, 1, END_FIN);
		lab_close(&lab);
	}
}

static void
case_B_21_upgrade_not_taken(void **state)
{
	static const char *const answers[] = {ANSWER, "HTTP/1.1 1", "X"};
	const struct record *last = NULL;
	struct lab lab;
	int guest, origin;

	(void)state;
	for (size_t i = 0; i < sizeof(answers) / sizeof(answers[0]); i++) {
		open_with(&lab, UPGRADE EVIL, &guest, &origin);
		hear(&lab, origin, UPGRADE);
		say(&lab, origin, answers[i]);
		if (i == 1) /* half a status line, and then the end */
			assert_int_equal(shutdown(origin, SHUT_WR), 0);
		assert_int_equal(lab_recv(&lab, origin), -ECONNRESET);
		far_end_count(lab.far, RECORD_FLOW_OPEN, &last);
		assert_int_equal(last->flow.reason, REASON_NO_RULE);
		lab_expect_closed(&lab, 1, END_NEXT_HOST);
		finish(&lab, guest, origin);
	}
	/* What is a request for the same host goes on. */
	open_with(&lab, UPGRADE REQUEST, &guest, &origin);
	hear(&lab, origin, UPGRADE);
	say(&lab, origin, ANSWER);
	hear(&lab, origin, REQUEST);
	hear(&lab, guest, ANSWER);
	finish(&lab, guest, origin);
}

/* An upload to an origin that does not read stops the guest, and goes on when the origin does. */
static void
case_E_23_upload_waits_for_the_origin(void **state)
{
	static uint8_t big[65536];
	size_t sent = 0, got = 0;
	struct lab lab;
	int guest, origin;

	(void)state;
	memset(big, 'u', sizeof(big));
	open_with(&lab, "PUT / HTTP/1.1\r\n" H "Content-Length: 20000000\r\n\r\n", &guest, &origin);
	got = (size_t)lab_recv(&lab, origin);
	assert_int_equal(got, strlen("PUT / HTTP/1.1\r\n" H "Content-Length: 20000000\r\n\r\n"));
	for (int quiet = 0; quiet < 5; quiet++) {
		for (ssize_t n; (n = send(guest, big, sizeof(big), MSG_NOSIGNAL)) > 0; sent += (size_t)n)
			quiet = 0;
		lab_settle(&lab);
	}
	assert_true(sent < 20000000);
	lab_expect_quiet(&lab);
	say(&lab, origin, "HTTP/1.1 100 Continue\r\n\r\n");
	hear(&lab, guest, "HTTP/1.1 100 Continue\r\n\r\n");
	for (got = 0; got < 20000000;) {
		ssize_t n = sent < 20000000
		    ? send(guest, big, sent + sizeof(big) > 20000000 ? 20000000 - sent : sizeof(big), MSG_NOSIGNAL)
		    : 0;

		sent += n > 0 ? (size_t)n : 0;
		n = lab_recv(&lab, origin);
		got += n > 0 ? (size_t)n : 0;
	}
	say(&lab, guest, REQUEST);
	hear(&lab, origin, REQUEST);
	finish(&lab, guest, origin);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(requests_of_one_host),
	    cmocka_unit_test(case_B_22_case_D_23_every_cut),
	    cmocka_unit_test(refusals_are_explained),
	    cmocka_unit_test(case_B_15_address_needs_a_rule),
	    cmocka_unit_test(case_B_23_broken_body_along_with_the_head),
	    cmocka_unit_test(case_B_23_broken_body_later),
	    cmocka_unit_test(case_B_25_not_http),
	    cmocka_unit_test(case_B_24_dribbled_head),
	    cmocka_unit_test(case_B_24_giant_head),
	    cmocka_unit_test(case_B_22_second_host_denied),
	    cmocka_unit_test(case_B_22_second_request_malformed),
	    cmocka_unit_test(case_B_22_second_request_unfinished),
	    cmocka_unit_test(case_B_22_second_request_without_an_origin),
	    cmocka_unit_test(second_host_allowed_gets_its_own_record),
	    cmocka_unit_test(second_host_without_a_durable_record),
	    cmocka_unit_test(case_B_24_later_head_dribbles),
	    cmocka_unit_test(case_F_33_edit_cuts_a_kept_alive_connection),
	    cmocka_unit_test(case_B_21_websocket),
	    cmocka_unit_test(case_B_21_upgrade_not_taken),
	    cmocka_unit_test(case_E_23_upload_waits_for_the_origin),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
