/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The client's direction of HTTP/1: tables of what passes and what is refused, each row whole and in pieces. */
#include "gateway/path/tcp/http_request.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define STREAM_MAX 131072

/* What became of a stream when every head was accepted. */
struct outcome {
	size_t heads;
	size_t passed; /* bytes that may go to the origin */
	enum http_request_event last;
	enum reason reason;
	bool in_body;
	char hosts[512]; /* of the heads, each followed by a space */
	char method[HTTP_HEAD_METHOD_MAX + 1];
};

static struct addr destination;

/* Parse all there is at this moment. */
static void
drain(struct http_request *request, const uint8_t *bytes, size_t len, struct outcome *out)
{
	for (;;) {
		size_t used;

		out->last = http_request_next(request, bytes + out->passed, len - out->passed, &used);
		if (out->last == HTTP_REQUEST_HEAD) {
			/* Until it is accepted the same answer comes. */
			assert_int_equal(http_request_next(request, bytes + out->passed, len - out->passed, &used),
			    HTTP_REQUEST_HEAD);
			snprintf(out->hosts + strlen(out->hosts), sizeof(out->hosts) - strlen(out->hosts), "%s ",
			    request->head.host.name.len > 0 ? request->head.host.name.text : "literal");
			memcpy(out->method, request->head.method, sizeof(out->method));
			out->heads++;
			http_request_accept(request);
		} else if (out->last != HTTP_REQUEST_BODY) {
			assert_int_equal(used, 0);
			break;
		}
		assert_true(used > 0);
		out->passed += used;
		assert_true(out->passed <= len);
	}
	if (out->last == HTTP_REQUEST_REJECTED) {
		out->reason = request->head.reason;
		out->in_body = request->in_body;
		assert_non_null(request->head.detail);
	}
}

/* Feed in steps. What may pass before a fault depends on the cut only within a body (data may pass, framing may not).
 */
static struct outcome
feed(const char *text, size_t len, size_t step)
{
	struct outcome out = {0};
	struct http_request request;
	/* Exactly as long as what was received, so that a sanitizer sees any look beyond. */
	uint8_t *bytes = malloc(len + 1);

	assert_non_null(bytes);
	http_request_init(&request, &destination, 80);
	memcpy(bytes, text, len);
	for (size_t at = 0; at < len && out.last != HTTP_REQUEST_REJECTED;) {
		at = at + step < len ? at + step : len;
		drain(&request, bytes, at, &out);
	}
	free(bytes);
	return out;
}

/* The outcome of the whole, which every way to cut it must share. */
static struct outcome
feed_every_way(const char *text, size_t len)
{
	static const size_t steps[] = {1, 2, 3, 7, 64, 1460};
	struct outcome whole = feed(text, len, len == 0 ? 1 : len);

	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct outcome cut = feed(text, len, steps[i]);

		assert_int_equal(cut.heads, whole.heads);
		assert_int_equal(cut.passed, whole.passed);
		assert_int_equal(cut.last, whole.last);
		assert_int_equal(cut.reason, whole.reason);
		assert_int_equal(cut.in_body, whole.in_body);
		assert_string_equal(cut.hosts, whole.hosts);
	}
	return whole;
}

struct row {
	const char *text;
	enum reason reason; /* REASON_ALLOWED: all of it passes */
	size_t heads;       /* that passed before the fault, or in all */
};

static void
check(const struct row *row, size_t len)
{
	struct outcome out = feed_every_way(row->text, len);

	if (out.reason != row->reason || out.heads != row->heads ||
	    (row->reason == REASON_ALLOWED && out.passed != len)) {
		print_error("row: %s\n%s, %zu heads, %zu of %zu passed\n", row->text, reason_text(out.reason),
		    out.heads, out.passed, len);
		fail();
	}
	if (row->reason != REASON_ALLOWED)
		assert_int_equal(out.last, HTTP_REQUEST_REJECTED);
}

static void
check_rows(const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++)
		check(&rows[i], strlen(rows[i].text));
}

#define CHECK(rows) check_rows(rows, sizeof(rows) / sizeof((rows)[0]))
#define H "Host: good.example.com\r\n"
#define GET "GET / HTTP/1.1\r\n"
#define REQUEST GET H "\r\n"

static int
setup(void **state)
{
	(void)state;
	return addr_parse("93.184.216.34", 13, &destination) ? 0 : -1;
}

static void
good_requests(void **state)
{
	static const struct row rows[] = {
	    {REQUEST, REASON_ALLOWED, 1},
	    {"GET / HTTP/1.0\r\n" H "\r\n", REASON_ALLOWED, 1},
	    {GET "hOsT:good.example.com\r\n\r\n", REASON_ALLOWED, 1},
	    {GET "Host:\t Good.Example.COM. \t\r\n\r\n", REASON_ALLOWED, 1},
	    {GET "Host: good.example.com:80\r\n\r\n", REASON_ALLOWED, 1},
	    {"OPTIONS * HTTP/1.1\r\n" H "\r\n", REASON_ALLOWED, 1},
	    {"GET /a?b=c%20d&e={f|g} HTTP/1.1\r\n" H "Accept: */*\r\nX-Empty:\r\nX-High: \xc3\xbc\r\n\r\n",
		REASON_ALLOWED, 1},
	    {"POST / HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhello", REASON_ALLOWED, 1},
	    {"POST / HTTP/1.1\r\n" H "Content-Length: 0\r\n\r\n" REQUEST, REASON_ALLOWED, 2},
	    {"POST / HTTP/1.1\r\n" H "Transfer-Encoding: Chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n", REASON_ALLOWED, 1},
	    {"POST / HTTP/1.1\r\n" H
	     "Transfer-Encoding: chunked\r\n\r\n00A\r\n0123456789\r\n000\r\nX-Sum: 1\r\n\r\n" REQUEST,
		REASON_ALLOWED, 2},
	    {"POST / HTTP/1.1\r\n" H "Expect: 100-continue\r\nContent-Length: 3\r\n\r\nabc", REASON_ALLOWED, 1},
	    {"PATCH /x HTTP/1.1\r\n" H "Content-Length: 1\r\n\r\n{", REASON_ALLOWED, 1},
	    {"M-SEARCH /x HTTP/1.1\r\n" H "\r\n", REASON_ALLOWED, 1},
	};
	struct outcome out;

	(void)state;
	CHECK(rows);
	out = feed(GET "Host: GOOD.example.com.\r\n\r\n", strlen(GET "Host: GOOD.example.com.\r\n\r\n"), 1000);
	assert_string_equal(out.hosts, "good.example.com ");
	assert_string_equal(out.method, "GET");
}

static void
case_B_15_address_as_host(void **state)
{
	static const struct row rows[] = {
	    {GET "Host: 93.184.216.34\r\n\r\n", REASON_ALLOWED, 1},
	    {GET "Host: 93.184.216.34:80\r\n\r\n", REASON_ALLOWED, 1},
	    {GET "Host: 1.2.3.4:80\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: 10.0.0.1\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: [::1]\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: [2a00:1::8]\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: 0x5d.184.216.34\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: 1572395042\r\n\r\n", REASON_HOST_MISMATCH, 0},
	    {GET "Host: 093.184.216.34\r\n\r\n", REASON_HOST_MISMATCH, 0},
	};
	struct outcome out;

	(void)state;
	CHECK(rows);
	out = feed(rows[0].text, strlen(rows[0].text), 1000);
	assert_string_equal(out.hosts, "literal ");
}

static void
case_B_16_brackets(void **state)
{
	static const struct row rows[] = {
	    {GET "Host: [evil.com]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [[::1]]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [::1\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: ::1]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: []\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [1.2.3.4]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [93.184.216.34]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [::1]evil.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: [fe80::1%25eth0]\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: good.example.com]\r\n\r\n", REASON_HOST_MISMATCH, 0},
	};

	(void)state;
	CHECK(rows);
	assert_true(addr_parse("2a00:1::8", 9, &destination));
	check(&(struct row){GET "Host: [2a00:1::8]:80\r\n\r\n", REASON_ALLOWED, 1},
	    strlen(GET "Host: [2a00:1::8]:80\r\n\r\n"));
	check(&(struct row){GET "Host: 2a00:1::8\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    strlen(GET "Host: 2a00:1::8\r\n\r\n"));
	setup(NULL);
}

static void
case_B_17_authority_tricks(void **state)
{
	static const struct {
		const char *host;
		enum reason reason;
	} rows[] = {
	    {"good.example.com@evil.com", REASON_HTTP_MALFORMED},
	    {"good.example.com:80@evil.com", REASON_HTTP_MALFORMED},
	    {"user:pass@good.example.com", REASON_HTTP_MALFORMED},
	    {"@good.example.com", REASON_HTTP_MALFORMED},
	    {"good.example.com@", REASON_HTTP_MALFORMED},
	    {"good.example.com:80:81", REASON_HTTP_MALFORMED},
	    {"good.example.com:", REASON_HTTP_MALFORMED},
	    {"good.example.com::80", REASON_HTTP_MALFORMED},
	    {":80", REASON_HTTP_MALFORMED},
	    {":", REASON_HTTP_MALFORMED},
	    {"", REASON_HTTP_MALFORMED},
	    {"good.example.com:0", REASON_HTTP_MALFORMED},
	    {"good.example.com:00", REASON_HTTP_MALFORMED},
	    {"good.example.com:080", REASON_HTTP_MALFORMED},
	    {"good.example.com:65536", REASON_HTTP_MALFORMED},
	    {"good.example.com:65616", REASON_HTTP_MALFORMED}, /* 80 in 16 bits */
	    {"good.example.com:4294967376", REASON_HTTP_MALFORMED},
	    {"good.example.com:18446744073709551696", REASON_HTTP_MALFORMED},
	    {"good.example.com:+80", REASON_HTTP_MALFORMED},
	    {"good.example.com:-80", REASON_HTTP_MALFORMED},
	    {"good.example.com: 80", REASON_HTTP_MALFORMED},
	    {"good.example.com :80", REASON_HOST_MISMATCH},
	    {"good.example.com:80a", REASON_HTTP_MALFORMED},
	    {"good.example.com:0x50", REASON_HTTP_MALFORMED},
	    {"good.example.com:http", REASON_HTTP_MALFORMED},
	    {"good.example.com:80/", REASON_HTTP_MALFORMED},
	    {"good.example.com:443", REASON_HOST_MISMATCH},
	    {"good.example.com:81", REASON_HOST_MISMATCH},
	    {"good.example.com:8080", REASON_HOST_MISMATCH},
	    {"good.example.com:65535", REASON_HOST_MISMATCH},
	    {"good.example.com/evil", REASON_HOST_MISMATCH},
	    {"good.example.com#evil", REASON_HOST_MISMATCH},
	    {"good.example.com?evil", REASON_HOST_MISMATCH},
	    {"good.example.com\\evil", REASON_HOST_MISMATCH},
	    {"good.example.com, evil.com", REASON_HOST_MISMATCH},
	    {"good.example.com evil.com", REASON_HOST_MISMATCH},
	    {"good.example.com\tevil.com", REASON_HOST_MISMATCH},
	    {"good.example.com..", REASON_HOST_MISMATCH},
	    {".good.example.com", REASON_HOST_MISMATCH},
	    {"good..example.com", REASON_HOST_MISMATCH},
	    {"good%2eexample.com", REASON_HOST_MISMATCH},
	    {"*.example.com", REASON_HOST_MISMATCH},
	    {"http://good.example.com", REASON_HTTP_MALFORMED},
	    {"\"good.example.com\"", REASON_HOST_MISMATCH},
	    {"good.ex\xc3\xa4mple.com", REASON_HOST_MISMATCH},
	};
	char text[256];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct row row = {text, rows[i].reason, 0};

		snprintf(text, sizeof(text), GET "Host: %s\r\n\r\n", rows[i].host);
		check(&row, strlen(text));
		if (strpbrk(rows[i].host, "/?") != NULL)
			continue; /* a path or query there */
		snprintf(text, sizeof(text), "GET http://%s/ HTTP/1.1\r\n" H "\r\n", rows[i].host);
		assert_int_not_equal(feed_every_way(text, strlen(text)).reason, REASON_ALLOWED);
	}
}

static void
case_B_19_host_field(void **state)
{
	static const struct row rows[] = {
	    {GET "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/1.0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/1.0\r\nAccept: */*\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET /\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET /\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET H H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET H "hOST: evil.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: evil.com\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host : good.example.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host\t: good.example.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET " Host: good.example.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET H " evil.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET H "\tevil.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host:\r\n good.example.com\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Accept: a\r\n b\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET ": x\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "nocolon\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "X(y): x\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "X\xc3: x\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "X: a\x01z\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "X: a\x7fz\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	};
	static const char nul[] = GET "Host: good.example.com\0.evil.com\r\n\r\n";

	(void)state;
	CHECK(rows);
	check(&(struct row){nul, REASON_HTTP_MALFORMED, 0}, sizeof(nul) - 1);
}

static void
request_line(void **state)
{
	static const struct row rows[] = {
	    {"GET  / HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"GET /  HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"GET / HTTP/1.1 \r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET\t/ HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"GET / x HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {" GET / HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"\r\nGET / HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"GET / http/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {"GET / HTTP/1.2\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/2.0\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/1.10\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/01.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/1.1\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET / HTTP/1.1\r" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: good.example.com\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET "Host: good.example.com\r\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {GET H "\n", REASON_HTTP_MALFORMED, 0},
	    {GET H "\rx", REASON_HTTP_MALFORMED, 0},
	    {"GET /\xc3\xbc HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET /\x01 HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET * HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET good.example.com HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET ?x HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"G(T / HTTP/1.1\r\n" H "\r\n", REASON_NOT_HTTP, 0},
	    {REQUEST "G(T / HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 1},
	    {REQUEST "\r\n" REQUEST, REASON_HTTP_MALFORMED, 1},
	    {REQUEST "\x16\x03\x01", REASON_HTTP_MALFORMED, 1},
	};

	(void)state;
	CHECK(rows);
}

static void
case_B_20_absolute_form(void **state)
{
	static const struct row rows[] = {
	    {"GET http://good.example.com/x HTTP/1.1\r\n" H "\r\n", REASON_ALLOWED, 1},
	    {"GET HTTP://Good.Example.com:80 HTTP/1.1\r\n" H "\r\n", REASON_ALLOWED, 1},
	    {"GET http://good.example.com?q HTTP/1.1\r\n" H "\r\n", REASON_ALLOWED, 1},
	    {"GET http://evil.com/ HTTP/1.1\r\n" H "\r\n", REASON_HOST_MISMATCH, 0},
	    {"GET http://good.example.com:81/ HTTP/1.1\r\n" H "\r\n", REASON_HOST_MISMATCH, 0},
	    {"GET http://good.example.com#@evil.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http://good.example.com\\@evil.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http://x@good.example.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http:///x HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http:/evil HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http:evil HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http:\\\\evil HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET //evil/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET https://good.example.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET ftp://good.example.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET ws://good.example.com/ HTTP/1.1\r\n" H "\r\n", REASON_HTTP_MALFORMED, 0},
	    {"GET http://93.184.216.34/ HTTP/1.1\r\n" H "\r\n", REASON_HOST_MISMATCH, 0},
	    {"GET http://good.example.com/ HTTP/1.1\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	};

	(void)state;
	CHECK(rows);
}

static void
case_B_21_tunnels(void **state)
{
	static const struct row rows[] = {
	    {"CONNECT good.example.com:443 HTTP/1.1\r\n" H "\r\n", REASON_PROTO_DENIED, 0},
	    {REQUEST "CONNECT good.example.com:443 HTTP/1.1\r\n" H "\r\n", REASON_PROTO_DENIED, 1},
	    {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n\r\n",
		REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade: H2C\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade: websocket, h2c\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade: websocket\r\nUpgrade: h2c\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade: TLS/1.0\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade:\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {REQUEST GET H "Upgrade: websocket\r\n\r\n", REASON_PROTO_DENIED, 1},
	    {"POST / HTTP/1.1\r\n" H "Upgrade: websocket\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {"GET / HTTP/1.0\r\n" H "Upgrade: websocket\r\n\r\n", REASON_PROTO_DENIED, 0},
	    {GET H "Upgrade: websocket\r\nContent-Length: 1\r\n\r\nx", REASON_PROTO_DENIED, 0},
	};
	static const char upgrade[] = GET H "Connection: Upgrade\r\nUpgrade: WebSocket\r\n\r\n";
	struct http_request request;
	size_t used;

	(void)state;
	CHECK(rows);
	/* Held until the origin answered; opaque after 101, requests otherwise. */
	for (int switched = 0; switched < 2; switched++) {
		http_request_init(&request, &destination, 80);
		assert_int_equal(http_request_next(&request, (const uint8_t *)upgrade, sizeof(upgrade) - 1, &used),
		    HTTP_REQUEST_HEAD);
		assert_true(request.head.websocket);
		http_request_accept(&request);
		assert_int_equal(
		    http_request_next(&request, (const uint8_t *)"\x81\5frame", 7, &used), HTTP_REQUEST_HELD);
		http_request_upgraded(&request, switched == 1);
		assert_int_equal(http_request_next(&request, (const uint8_t *)"\x81\5frame", 7, &used),
		    switched == 1 ? HTTP_REQUEST_OPAQUE : HTTP_REQUEST_REJECTED);
	}
}

static void
case_B_22_later_requests(void **state)
{
	static const char two[] = REQUEST GET "Host: other.example.com\r\n\r\n";
	static const char behind_body[] =
	    "POST / HTTP/1.1\r\n" H "Content-Length: 3\r\n\r\nabc" GET "Host: other.example.com\r\n\r\n";
	struct outcome out;

	(void)state;
	for (size_t cut = 1; cut < sizeof(two) - 1; cut++) {
		out = feed(two, sizeof(two) - 1, cut);
		assert_string_equal(out.hosts, "good.example.com other.example.com ");
	}
	out = feed_every_way(behind_body, sizeof(behind_body) - 1);
	assert_string_equal(out.hosts, "good.example.com other.example.com ");
}

#define POST "POST / HTTP/1.1\r\n" H
#define CHUNKED POST "Transfer-Encoding: chunked\r\n\r\n"

static void
case_B_23_framing(void **state)
{
	static const struct row rows[] = {
	    {POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5, 5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: +5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: -5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 05\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 0x5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5 \t\r\n\r\nhello", REASON_ALLOWED, 1},
	    {POST "Content-Length: 5 5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5.0\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 5e0\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length:\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 18446744073709551621\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content-Length: 9223372036854775808\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Content_Length: 5\r\n\r\nhello\r\n", REASON_HTTP_MALFORMED, 1}, /* another field: no body */
	    {POST "Content-Length : 5\r\n\r\nhello", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: identity\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: \x0b"
		  "chunked\r\n\r\n0\r\n\r\n",
		REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding:\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED,
		0},
	    {POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED,
		0},
	    {"POST / HTTP/1.0\r\n" H "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 0},
	    {CHUNKED "5;ext\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5;a=b\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5 \r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED " 5\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0x5\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "+5\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "-1\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5\rhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "10000000000000005\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "fffffffffffffffb\r\nhello\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5\r\nhelloX\r\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5\r\nhello\n0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "5\r\nhello\rX0\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\nHost: evil.com\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\nContent-Length: 5\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\nTransfer-Encoding: chunked\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\nX: y\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\n folded\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\nGET / HTTP/1.1\r\n\r\n", REASON_HTTP_MALFORMED, 1},
	    {CHUNKED "0\r\n\n", REASON_HTTP_MALFORMED, 1},
	};

	(void)state;
	CHECK(rows);
}

static void
case_B_24_limits(void **state)
{
	static char text[STREAM_MAX];
	size_t len;
	int header = (int)strlen(REQUEST);

	(void)state;
	/* A head of exactly the maximum passes, one byte more does not. */
	for (size_t over = 0; over < 2; over++) {
		len = (size_t)snprintf(text, sizeof(text), GET H "X: ");
		memset(text + len, 'a', HTTP_REQUEST_HEAD_MAX + over - 4 - len);
		memcpy(text + HTTP_REQUEST_HEAD_MAX + over - 4, "\r\n\r\n", 4);
		assert_int_equal(feed_every_way(text, HTTP_REQUEST_HEAD_MAX + over).heads, 1 - over);
	}
	/* A line without end. */
	memset(text + header, 'b', sizeof(text) - (size_t)header);
	assert_int_equal(feed_every_way(text, sizeof(text)).reason, REASON_HTTP_MALFORMED);
	/* Fields. */
	for (int over = 0; over < 2; over++) {
		len = (size_t)snprintf(text, sizeof(text), GET H);
		for (int i = 1; i < HTTP_HEAD_FIELDS_MAX + over; i++)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "X: y\r\n");
		len += (size_t)snprintf(text + len, sizeof(text) - len, "\r\n");
		assert_int_equal(feed_every_way(text, len).heads, 1 - over);
	}
	/* Trailers are bounded alike, and do not count the head's fields. */
	len = (size_t)snprintf(text, sizeof(text), CHUNKED "0\r\n");
	for (int i = 0; i < HTTP_HEAD_FIELDS_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "X: y\r\n");
	assert_int_equal(feed_every_way(text, len).last, HTTP_REQUEST_MORE);
	len += (size_t)snprintf(text + len, sizeof(text) - len, "X: y\r\n");
	assert_int_equal(feed_every_way(text, len).reason, REASON_HTTP_MALFORMED);
	/* A method without end is not waited for. */
	memset(text, 'A', 64);
	assert_int_equal(feed_every_way(text, 64).reason, REASON_NOT_HTTP);
}

static void
case_B_25_other_protocols(void **state)
{
	static const struct {
		const char *bytes;
		size_t len;
		enum reason reason;
	} rows[] = {
	    {"\x16\3\1\2\0\1\0\1\xfc\3\3", 11, REASON_NOT_HTTP},
	    {"\x80\x2e\1\0\2", 5, REASON_NOT_HTTP},
	    {"SSH-2.0-OpenSSH_9.2\r\n", 21, REASON_NOT_HTTP},
	    {"EHLO me\r\n", 9, REASON_NOT_HTTP},
	    {"USER anonymous\r\n", 16, REASON_NOT_HTTP},
	    {"PROXY TCP4 1.2.3.4 5.6.7.8 1 80\r\n", 33, REASON_NOT_HTTP},
	    {"\r\n\r\n\0\r\nQUIT\n", 12, REASON_NOT_HTTP},
	    {"\0\0\0\x08\x04\xd2\x16\x2f", 8, REASON_NOT_HTTP},
	    {"\5\1\0", 3, REASON_NOT_HTTP},
	    {"*1\r\n$4\r\nPING\r\n", 14, REASON_NOT_HTTP},
	    {"\x13"
	     "BitTorrent protocol",
		20, REASON_NOT_HTTP},
	    {"\xff\xfd\1", 3, REASON_NOT_HTTP},
	    {"a1 LOGIN x y\r\n", 14, REASON_NOT_HTTP},
	    {"NICK x\r\n", 8, REASON_NOT_HTTP},
	    {"OPTIONS rtsp://x RTSP/1.0\r\n", 27, REASON_NOT_HTTP},
	    {"REGISTER sip:x SIP/2.0\r\n", 24, REASON_NOT_HTTP},
	    {"{\"id\":1}\r\n", 10, REASON_NOT_HTTP},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct outcome out = feed_every_way(rows[i].bytes, rows[i].len);

		assert_int_equal(out.reason, rows[i].reason);
		assert_int_equal(out.passed, 0);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(good_requests),
	    cmocka_unit_test(case_B_15_address_as_host),
	    cmocka_unit_test(case_B_16_brackets),
	    cmocka_unit_test(case_B_17_authority_tricks),
	    cmocka_unit_test(case_B_19_host_field),
	    cmocka_unit_test(request_line),
	    cmocka_unit_test(case_B_20_absolute_form),
	    cmocka_unit_test(case_B_21_tunnels),
	    cmocka_unit_test(case_B_22_later_requests),
	    cmocka_unit_test(case_B_23_framing),
	    cmocka_unit_test(case_B_24_limits),
	    cmocka_unit_test(case_B_25_other_protocols),
	};

	return cmocka_run_group_tests(tests, setup, NULL);
}
