/* SPDX-License-Identifier: GPL-3.0-or-later */
/* DNS over TCP: framing, pipelining, limits. */
#include "tests/unit/gateway/gateway_dns_lab.h"

static const char *const allow_example[] = {"www.example.com", NULL};

static void
script_good(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)tcp;
	lab_answer(ret_answer, question, 0, 1);
	wire_addr(ret_answer, question->name.text, 300, "5.5.5.5");
}

static void
script_silent(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer)
{
	(void)lab;
	(void)question;
	(void)tcp;
	(void)ret_answer;
}

/* The guest's connection to server:53. */
static int
dial(struct lab *lab, const char *server)
{
	struct addr addr = addr_of(server);
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&addr, 53, &sa);
	int fd, one = 1;

	assert_int_equal(setns(lab_sandbox_netns, CLONE_NEWNET), 0);
	fd = socket(addr.family == 4 ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setns(lab_host_netns, CLONE_NEWNET), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
	far_end_settle(lab->far);
	return fd;
}

/* Append a query behind its length. */
static void
frame(struct wire *stream, unsigned int id, const char *name, unsigned int type)
{
	static struct wire query;

	wire_query(&query, id, name, type, 1232);
	wire_u16(stream, (unsigned int)query.len);
	wire_put(stream, query.bytes, query.len);
}

/* What one reply says. */
struct tcp_reply {
	unsigned int id, rcode, answers;
};

static uint8_t inbox[1 << 20];
static size_t inbox_len;

/* Read until there are count replies, the server closed (*ret_closed) or nothing more comes; returns how many. */
static size_t
replies(struct lab *lab, int fd, struct tcp_reply *ret_replies, size_t count, bool *ret_closed)
{
	size_t found = 0;

	*ret_closed = false;
	for (int i = 0; i < 60 && found < count && !*ret_closed; i++) {
		ssize_t n;

		while ((n = recv(fd, inbox + inbox_len, sizeof(inbox) - inbox_len, 0)) > 0)
			inbox_len += (size_t)n;
		*ret_closed = n == 0 || (n < 0 && errno == ECONNRESET);
		while (inbox_len >= 2 && inbox_len >= 2u + (size_t)(inbox[0] << 8 | inbox[1])) {
			size_t size = (size_t)(inbox[0] << 8 | inbox[1]);

			assert_true(size >= DNS_HEADER_SIZE && found < count);
			ret_replies[found].id = (unsigned int)(inbox[2] << 8 | inbox[3]);
			ret_replies[found].rcode = inbox[5] & 0xf;
			ret_replies[found++].answers = (unsigned int)(inbox[8] << 8 | inbox[9]);
			memmove(inbox, inbox + 2 + size, inbox_len - 2 - size);
			inbox_len -= 2 + size;
		}
		loop_round(lab->far->gateway.loop, 1);
	}
	far_end_settle(lab->far);
	return found;
}

static struct tcp_reply got[2048];
static bool closed;

static void
put(int fd, const struct wire *stream)
{
	assert_int_equal(send(fd, stream->bytes, stream->len, MSG_NOSIGNAL), (ssize_t)stream->len);
}

static void
case_C_02_tcp_is_judged_alike(void **state)
{
	static const char *const servers[] = {"172.16.0.1", "8.8.8.8", "203.0.113.9", "2001:4860:4860::8888"};
	static struct wire stream;
	struct lab *lab;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (size_t i = 0; i < 4; i++) {
		struct addr addr = addr_of(servers[i]);
		int fd = dial(lab, servers[i]);

		stream.len = 0;
		frame(&stream, 7, "denied.example.net", DNS_TYPE_A);
		put(fd, &stream);
		assert_int_equal(replies(lab, fd, got, 1, &closed), 1);
		assert_int_equal(got[0].id, 7);
		assert_int_equal(got[0].rcode, DNS_NXDOMAIN);
		assert_int_equal(lab_record(lab, i + 1)->transport, IPPROTO_TCP);
		assert_true(addr_equal(&lab_record(lab, i + 1)->server, &addr));
		close(fd);
	}
	assert_int_equal(lab->asked_count, 0);
	lab_close(lab);
}

static void
case_C_03_pipelined_queries_are_each_decided(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	frame(&stream, 1, "www.example.com", DNS_TYPE_A);
	frame(&stream, 2, "denied.example.net", DNS_TYPE_A);
	put(fd, &stream);
	assert_int_equal(replies(lab, fd, got, 2, &closed), 2);
	/* The denied one needs nobody and comes first. */
	assert_int_equal(got[0].id, 2);
	assert_int_equal(got[0].rcode, DNS_NXDOMAIN);
	assert_int_equal(got[1].id, 1);
	assert_int_equal(got[1].answers, 1);
	assert_int_equal(lab->asked_count, 1);
	assert_string_equal(lab->asked[0].name.text, "www.example.com");
	lab_record(lab, 2);
	close(fd);
	lab_close(lab);
}

static void
case_C_04_one_byte_at_a_time(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	frame(&stream, 1, "www.example.com", DNS_TYPE_A);
	frame(&stream, 2, "denied.example.net", DNS_TYPE_A);
	for (size_t i = 0; i < stream.len; i++) {
		assert_int_equal(send(fd, stream.bytes + i, 1, MSG_NOSIGNAL), 1);
		far_end_settle(lab->far);
	}
	assert_int_equal(replies(lab, fd, got, 2, &closed), 2);
	close(fd);
	lab_close(lab);
}

static void
case_C_04_length_zero_and_oversize(void **state)
{
	static const struct {
		unsigned int size;
		size_t records;
	} rows[] = {{0, 0}, {4097, 1}, {65535, 1}};
	static struct wire stream;
	struct lab *lab;
	size_t records = 0;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (size_t i = 0; i < 3; i++) {
		int fd = dial(lab, "8.8.8.8");

		/* What came before is still answered, what comes after is not looked at. */
		stream.len = 0;
		frame(&stream, 1, "denied.example.net", DNS_TYPE_A);
		wire_u16(&stream, rows[i].size);
		frame(&stream, 2, "www.example.com", DNS_TYPE_A);
		put(fd, &stream);
		assert_int_equal(replies(lab, fd, got, 2, &closed), 1);
		assert_int_equal(got[0].id, 1);
		assert_true(closed);
		records += 1 + rows[i].records;
		lab_record(lab, records);
		close(fd);
	}
	assert_int_equal(lab->asked_count, 0);
	assert_int_equal(lab->sandbox.dns->conn_count, 0);
	lab_close(lab);
}

static void
case_C_04_largest_message_is_read(void **state)
{
	static struct wire stream;
	static const uint8_t padding[4096];
	struct lab *lab;
	size_t room;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	for (int i = 0; i < 2; i++) {
		stream.len = 2;
		wire_put(&stream, "\0\1\1\0\0\1\0\0\0\0\0\1", 12);
		wire_question(&stream, "www.example.com", DNS_TYPE_A, DNS_CLASS_IN);
		room = 2 + 4096 - stream.len - DNS_OPT_SIZE;
		wire_opt(&stream, 1232, 0, padding, room); /* options 0 of length 0 */
		stream.bytes[0] = 4096 >> 8;
		stream.bytes[1] = 0;
		assert_int_equal(stream.len, 2 + 4096);
		put(fd, &stream);
		assert_int_equal(replies(lab, fd, got, 1, &closed), 1);
		assert_int_equal(got[0].rcode, DNS_NOERROR);
	}
	close(fd);
	lab_close(lab);
}

static void
case_C_04_half_a_message_then_end(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	frame(&stream, 1, "www.example.com", DNS_TYPE_A);
	stream.len -= 5;
	put(fd, &stream);
	shutdown(fd, SHUT_WR);
	assert_int_equal(replies(lab, fd, got, 1, &closed), 0);
	assert_true(closed);
	assert_int_equal(lab->asked_count, 0);
	close(fd);
	/* A whole one and the end: the answer still comes, then the connection ends. */
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	frame(&stream, 1, "www.example.com", DNS_TYPE_A);
	put(fd, &stream);
	shutdown(fd, SHUT_WR);
	assert_int_equal(replies(lab, fd, got, 1, &closed), 1);
	assert_int_equal(got[0].answers, 1);
	assert_int_equal(replies(lab, fd, got, 1, &closed), 0);
	assert_true(closed);
	assert_int_equal(lab->sandbox.dns->conn_count, 0);
	close(fd);
	lab_close(lab);
}

static void
case_C_04_thousand_pipelined(void **state)
{
	static struct wire stream;
	static bool seen[1000];
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	for (unsigned int i = 0; i < 1000; i++)
		frame(&stream, i, "denied.example.net", DNS_TYPE_A);
	put(fd, &stream);
	assert_int_equal(replies(lab, fd, got, 1000, &closed), 1000);
	for (size_t i = 0; i < 1000; i++) {
		assert_false(seen[got[i].id]);
		seen[got[i].id] = true;
	}
	far_end_settle(lab->far);
	lab_record(lab, 1000);
	close(fd);
	lab_close(lab);
}

static void
case_C_04_at_most_64_under_way(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_silent);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	for (unsigned int i = 0; i < 100; i++)
		frame(&stream, i, "www.example.com", DNS_TYPE_A);
	put(fd, &stream);
	far_end_settle(lab->far);
	far_end_settle(lab->far);
	assert_int_equal(lab->sandbox.dns->query_count, 64);
	/* When these have failed, the rest follows. */
	far_end_pass(lab->far, 5000);
	assert_int_equal(lab->sandbox.dns->query_count, 36);
	lab->asked_count = 0;
	far_end_pass(lab->far, 5000);
	assert_int_equal(replies(lab, fd, got, 100, &closed), 100);
	assert_int_equal(got[99].rcode, DNS_SERVFAIL);
	close(fd);
	lab_close(lab);
}

static void
case_C_04_idle_connections_end(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	stream.len = 0;
	frame(&stream, 1, "denied.example.net", DNS_TYPE_A);
	put(fd, &stream);
	assert_int_equal(replies(lab, fd, got, 1, &closed), 1);
	/* A byte a second is not activity. */
	for (size_t i = 0; i < 9; i++) {
		assert_int_equal(send(fd, stream.bytes + i, 1, MSG_NOSIGNAL), 1);
		far_end_pass(lab->far, 1000);
		assert_int_equal(lab->sandbox.dns->conn_count, 1);
	}
	far_end_pass(lab->far, 1500);
	assert_int_equal(lab->sandbox.dns->conn_count, 0);
	replies(lab, fd, got, 1, &closed);
	assert_true(closed);
	close(fd);
	lab_close(lab);
}

static void
too_many_connections(void **state)
{
	struct lab *lab;
	int fds[130];

	(void)state;
	lab_open(&lab, allow_example, script_good);
	for (size_t i = 0; i < 130; i++)
		fds[i] = dial(lab, "8.8.8.8");
	assert_int_equal(lab->sandbox.dns->conn_count, 128);
	replies(lab, fds[129], got, 1, &closed);
	assert_true(closed);
	assert_int_equal(lab_record(lab, 2)->reason, REASON_LIMIT_CONNECTIONS);
	for (size_t i = 0; i < 130; i++)
		close(fds[i]);
	far_end_settle(lab->far);
	far_end_settle(lab->far);
	assert_int_equal(lab->sandbox.dns->conn_count, 0);
	lab_close(lab);
}

/* The guest goes away, or the sandbox does, while answers are on their way. */
static void
ends_while_under_way(void **state)
{
	static struct wire stream;
	struct lab *lab;
	struct linger reset = {.l_onoff = 1};
	int fd;

	(void)state;
	for (int detach = 0; detach < 2; detach++) {
		lab_open(&lab, allow_example, script_good);
		lab->hold = true;
		fd = dial(lab, "8.8.8.8");
		stream.len = 0;
		frame(&stream, 1, "www.example.com", DNS_TYPE_A);
		put(fd, &stream);
		far_end_settle(lab->far);
		far_end_settle(lab->far);
		assert_int_equal(lab->lease_requests, 1);
		if (detach) {
			dns_detach(&lab->sandbox);
		} else {
			setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof(reset));
			close(fd);
			fd = -1;
			far_end_settle(lab->far);
			assert_int_equal(lab->sandbox.dns->conn_count, 0);
			lab_keeper_answer(lab, lab->held_tag);
		}
		far_end_settle(lab->far);
		assert_int_equal(lab_record(lab, 1)->verdict, detach ? VERDICT_FAILED : VERDICT_ALLOWED);
		assert_int_equal(lab_record(lab, 1)->transport, IPPROTO_TCP);
		if (fd >= 0)
			close(fd);
		lab_close(lab);
	}
}

/* A guest that asks and asks and never reads: reading stops, and in the end the connection. */
static void
answers_that_nobody_reads(void **state)
{
	static struct wire stream;
	struct lab *lab;
	int fd, small = 4096;
	size_t sent = 0;

	(void)state;
	lab_open(&lab, allow_example, script_good);
	fd = dial(lab, "8.8.8.8");
	setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small));
	stream.len = 0;
	for (unsigned int i = 0; i < 500; i++)
		frame(&stream, i, "denied.example.net", DNS_TYPE_A);
	/* Over the rate, so that the test's auditor does not drown: each one is still answered. */
	lab->sandbox.dns->budget.queries_milli = 0;
	lab->sandbox.dns->budget.refilled_ms = INT64_MAX / 2;
	for (size_t i = 0; i < 1000 && sent == i * stream.len; i++) {
		ssize_t n = send(fd, stream.bytes, stream.len, MSG_NOSIGNAL);

		sent += n > 0 ? (size_t)n : 0;
		for (int round = 0; round < 8; round++)
			assert_int_equal(loop_round(lab->far->gateway.loop, 0), 0);
	}
	/* We stopped reading, so the guest could not go on sending. */
	assert_true(sent > 0 && sent < 1000 * stream.len);
	assert_int_equal(lab->sandbox.dns->conn_count, 1);
	far_end_pass(lab->far, 11000);
	assert_int_equal(lab->sandbox.dns->conn_count, 0);
	close(fd);
	lab_close(lab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_C_02_tcp_is_judged_alike),
	    cmocka_unit_test(case_C_03_pipelined_queries_are_each_decided),
	    cmocka_unit_test(case_C_04_one_byte_at_a_time),
	    cmocka_unit_test(case_C_04_length_zero_and_oversize),
	    cmocka_unit_test(case_C_04_largest_message_is_read),
	    cmocka_unit_test(case_C_04_half_a_message_then_end),
	    cmocka_unit_test(case_C_04_thousand_pipelined),
	    cmocka_unit_test(case_C_04_at_most_64_under_way),
	    cmocka_unit_test(case_C_04_idle_connections_end),
	    cmocka_unit_test(too_many_connections),
	    cmocka_unit_test(ends_while_under_way),
	    cmocka_unit_test(answers_that_nobody_reads),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
