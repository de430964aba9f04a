/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the records of TCP connections say beside the verdict: hello, times, segments, our own end, the count so far. */
#include "gateway/path/tcp/flow.h"
#include "tests/unit/gateway/gateway_proxy_lab.h"

static const char *const rules[] = {"good.example.com:22,80,443", "other.example.com:80", NULL};

#define REQUEST(method, host) method " / HTTP/1.1\r\nHost: " host "\r\n\r\n"

static void
finish(struct lab *lab, int guest, int origin)
{
	close(guest);
	close(origin);
	lab_close(lab);
}

/* Our end as the origin sees it. */
struct our_end {
	struct addr addr;
	uint16_t port;
};

static struct our_end
our_end_at(int origin)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);
	struct our_end end;

	assert_int_equal(getpeername(origin, (struct sockaddr *)&sa, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, &end.addr, &end.port));
	return end;
}

static void
expect_our_end(const struct our_end *end, const struct record_close *closed)
{
	assert_true(addr_equal(&end->addr, &closed->up_src));
	assert_int_equal(end->port, closed->up_sport);
}

static void
a_hello_and_what_follows(void **state)
{
	struct lab lab;
	const struct record_flow *open;
	const struct record_close *closed;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, "good.example.com", false);
	struct our_end end;
	int guest, origin;

	(void)state;
	lab_open(&lab, 443, rules);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, bytes, 20);
	lab_send(&lab, guest, bytes + 20, len - 20);
	origin = lab_accept(&lab);
	end = our_end_at(origin);
	lab_expect(&lab, origin, bytes, len);
	open = lab_expect_opened(&lab, 1);
	assert_int_equal(open->tls_version, 0x0303);
	assert_memory_equal(open->ja4, "t12d", 4);
	assert_int_equal(strlen(open->ja4), JA4_LEN);
	assert_string_equal(open->http_method, "");
	assert_int_equal(open->dns_us, 5000); /* lab_lease */
	assert_true(open->hello_us > 0);
	lab_send(&lab, origin, "answer", 6);
	lab_expect(&lab, guest, "answer", 6);
	assert_int_equal(shutdown(guest, SHUT_WR), 0);
	assert_int_equal(lab_recv(&lab, origin), 0);
	assert_int_equal(shutdown(origin, SHUT_WR), 0);
	closed = lab_expect_closed(&lab, 1, END_FIN);
	assert_true(closed->connect_us > 0);
	assert_true(closed->first_byte_us > open->hello_us);
	/* Two of payload, acknowledgements, FIN. */
	assert_in_range(closed->packets_out, 3, 10);
	assert_in_range(closed->packets_in, 2, 10);
	expect_our_end(&end, closed);
	finish(&lab, guest, origin);
}

/* A refusal has them as well, as far as the guest came. */
static void
a_refused_hello(void **state)
{
	struct lab lab;
	const struct record_flow *refused;
	uint8_t bytes[512];
	size_t len = lab_hello(bytes, "bad.example.com", true);
	int guest;

	(void)state;
	lab_open(&lab, 443, rules);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, bytes, len);
	refused = lab_expect_refused(&lab, VERDICT_DENIED, REASON_NO_RULE);
	assert_int_equal(refused->tls_version, 0x0303);
	assert_memory_equal(refused->ja4, "t12d", 4);
	assert_true(refused->hello_us > 0);
	assert_int_equal(refused->dns_us, 0);
	close(guest);
	lab_close(&lab);

	lab_open(&lab, 443, rules);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, bytes, 30);
	lab_send(&lab, guest, "not what should follow", 22);
	close(guest);
	refused = lab_expect_refused(&lab, VERDICT_DENIED, REASON_TLS_MALFORMED);
	assert_int_equal(refused->tls_version, 0);
	assert_string_equal(refused->ja4, "");
	assert_int_equal(refused->hello_us, 0);
	lab_close(&lab);
}

/* No hello, no head: nothing of either. A connection that fails still has our end of it. */
static void
a_raw_port(void **state)
{
	struct lab lab;
	const struct record_flow *open;
	const struct record_close *closed;
	int guest;

	(void)state;
	lab_open(&lab, 22, rules);
	close(lab.origin);
	lab.origin = -1;
	guest = lab_dial(&lab, ORIGIN4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	open = lab_expect_opened(&lab, 1);
	assert_int_equal(open->tls_version, 0);
	assert_string_equal(open->ja4, "");
	assert_int_equal(open->hello_us, 0);
	assert_int_equal(open->dns_us, 5000);
	closed = lab_expect_closed(&lab, 1, END_CONNECT_FAILED);
	assert_int_equal(closed->connect_us, 0);
	assert_int_equal(closed->first_byte_us, 0);
	assert_int_equal(closed->up_src.family, 4);
	assert_int_not_equal(closed->up_sport, 0);
	close(guest);
	lab_close(&lab);
}

/* Another host's request on the same connection counts from its own first byte, and has its own segments. */
static void
a_later_request(void **state)
{
	static const char first[] = REQUEST("GET", "good.example.com"),
			  second[] = REQUEST("DELETE", "other.example.com");
	struct lab lab;
	const struct record_flow *open;
	const struct record_close *closed;
	uint64_t packets_out;
	struct our_end end;
	int guest, origin;

	(void)state;
	lab_open(&lab, 80, rules);
	lab_lease(&lab, "other.example.com", ORIGIN4);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, first, sizeof(first) - 1);
	origin = lab_accept(&lab);
	end = our_end_at(origin);
	lab_expect(&lab, origin, first, sizeof(first) - 1);
	assert_string_equal(lab_expect_opened(&lab, 1)->http_method, "GET");
	lab_send(&lab, origin, "one", 3);
	lab_expect(&lab, guest, "one", 3);
	far_end_pass(lab.far, 30000);
	lab_send(&lab, guest, second, 5);
	far_end_pass(lab.far, 2000);
	lab_send(&lab, guest, second + 5, sizeof(second) - 1 - 5);
	lab_expect(&lab, origin, second, sizeof(second) - 1);
	open = lab_expect_opened(&lab, 2);
	assert_string_equal(open->http_method, "DELETE");
	assert_string_equal(open->alpn, "");
	assert_in_range(open->hello_us, 2000000, 9000000);
	closed = lab_expect_closed(&lab, 1, END_NEXT_HOST);
	packets_out = closed->packets_out;
	assert_in_range(packets_out, 2, 10);
	assert_true(closed->connect_us > 0);
	expect_our_end(&end, closed);
	far_end_pass(lab.far, 1000);
	lab_send(&lab, origin, "two", 3);
	lab_expect(&lab, guest, "two", 3);
	close(guest);
	assert_int_equal(lab_recv(&lab, origin), 0);
	close(origin);
	closed = lab_expect_closed(&lab, 2, END_FIN);
	assert_int_equal(closed->connect_us, 0);
	assert_in_range(closed->first_byte_us, 3000000, 12000000);
	assert_in_range(closed->packets_out, 1, 10);
	assert_in_range(closed->packets_in, 1, 10);
	lab_close(&lab);
}

static void
the_count_so_far(void **state)
{
	struct lab lab;
	const struct record *progress = NULL;
	struct our_end end;
	int guest, origin;

	(void)state;
	lab_open(&lab, 22, rules);
	guest = lab_dial(&lab, ORIGIN4);
	origin = lab_accept(&lab);
	end = our_end_at(origin);
	lab_send(&lab, guest, "hello", 5);
	lab_expect(&lab, origin, "hello", 5);
	lab_send(&lab, origin, "hi", 2);
	lab_expect(&lab, guest, "hi", 2);
	far_end_pass(lab.far, INTERIM_MS + 1000);
	assert_int_equal(far_end_count(lab.far, RECORD_PROGRESS, &progress), 1);
	assert_int_equal(progress->close.id, lab_expect_opened(&lab, 1)->id);
	assert_int_equal(progress->close.end, END_OPEN);
	assert_int_equal(progress->close.bytes_out, 5);
	assert_int_equal(progress->close.bytes_in, 2);
	assert_true(progress->close.packets_out > 0);
	assert_true(progress->close.duration_us >= INT64_C(60000000));
	expect_our_end(&end, &progress->close);
	far_end_pass(lab.far, 2 * INTERIM_MS);
	assert_int_equal(far_end_count(lab.far, RECORD_PROGRESS, NULL), 1);
	close(guest);
	assert_int_equal(lab_recv(&lab, origin), 0);
	close(origin);
	assert_int_equal(lab_expect_closed(&lab, 1, END_FIN)->bytes_out, 5);
	lab_settle(&lab);
	far_end_pass(lab.far, 2 * INTERIM_MS);
	assert_int_equal(far_end_count(lab.far, RECORD_PROGRESS, NULL), 1);
	lab_close(&lab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_hello_and_what_follows),
	    cmocka_unit_test(a_refused_hello),
	    cmocka_unit_test(a_raw_port),
	    cmocka_unit_test(a_later_request),
	    cmocka_unit_test(the_count_so_far),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
