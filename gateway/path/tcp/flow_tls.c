/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a connection on an inspected TLS port does with the guest's hello, and with a second one.
 *
 * Theory of operation. The first hello is read until it is complete (tls_hello.c), then the name that it says is
 * judged, once. A TLS 1.3 server may answer with a HelloRetryRequest (RFC 8446 section 4.1.4), and the client says all
 * of it once more. Servers take the name from the second hello and need not compare: a guest that has an allowed name
 * in the first (and provokes a second, by offering no key share) would get any other site behind the same address, by
 * its own name and certificate. So the guest's bytes after its hello are held until the origin's answer begins; no
 * honest client has anything to say before, but for early data, which loses a round trip and nothing else. An answer
 * that is no HelloRetryRequest makes the connection opaque: from there on both ways are spliced. Otherwise the second
 * hello is read as the first was, after records that a server skips (early data, and the change of cipher that goes
 * with it for old middleboxes), and must name the same server; then what was held goes out as it came, and the
 * connection is opaque.
 *
 * Trust. The guest may say its second hello before it was asked, and in pieces of any size. The origin's bytes are
 * looked at, not taken; an origin that misleads us here needs no second hello to serve its pages.
 *
 * Failing. A second hello that is not what it must be is an attempt of its own and gets its own record; the connection
 * is reset. The same holds for one that does not come in time, or not whole. */
#include "gateway/path/tcp/flow.h"

#include "base/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FLOW_TLS_RECORD_HEADER 5
#define FLOW_TLS_RECORD_CIPHER_CHANGE 20
#define FLOW_TLS_RECORD_ALERT 21
#define FLOW_TLS_RECORD_HANDSHAKE 22
#define FLOW_TLS_RECORD_DATA 23
#define FLOW_TLS_SERVER_HELLO 2
/* Record header, message header, version: what stands before the random bytes of a server's hello. */
#define FLOW_TLS_RANDOM_AT 11

/* RFC 8446 section 4.1.3: the random bytes that make a server's hello a request for another one. */
static const uint8_t flow_tls_retry_random[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c,
    0x02, 0x1e, 0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8,
    0x33, 0x9c};

#define FLOW_TLS_ANSWER_LEN (FLOW_TLS_RANDOM_AT + sizeof(flow_tls_retry_random))

/* The mode's own state. READING: hello is the first one. From OPENING on it is the second one, and the rest is known of
 * the first. */
struct flow_tls {
	struct tls_hello hello;
	size_t first_len; /* of the first hello, with its record headers */
	enum tls_hello_sni sni;
	struct name name;
	bool ech;
	bool wanted;    /* the origin's answer asks for a second hello; before, that answer is awaited */
	bool partial;   /* of flow_socket_peek */
	bool found;     /* the second hello begins after skipped bytes */
	size_t skipped; /* of flow->in: whole records before it */
};

/* What the hello said, for a record. */
static struct flow_said
flow_tls_said(const struct tls_hello *hello)
{
	return (struct flow_said){.claim = hello->claim,
	    .claim_len = hello->claim_len,
	    .hello = hello,
	    .flags = hello->ech ? RECORD_FLAG_ECH : 0};
}

/* READING: the hello did not come whole, or is none. */
static void
flow_tls_refuse(struct flow *flow, enum reason reason, const char *detail)
{
	const struct flow_tls *tls = flow->reader;
	struct judgement verdict = verdict_plain(VERDICT_DENIED, reason, detail);
	struct flow_said said = flow_tls_said(&tls->hello);

	flow_refuse(flow, &verdict, &said);
}

/* READING: a sound hello is there. Judges it, and keeps what a second one must say again. */
static void
flow_tls_judge(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;
	struct tls_hello *hello = &tls->hello;
	const struct attempt_ends *ends = &flow->attempt.ends;
	struct judge_claim claim = {.naming = hello->sni == TLS_HELLO_SNI_NAME ? VERDICT_SAID : VERDICT_SILENT,
	    .source = NAME_SOURCE_SNI,
	    .name = hello->sni == TLS_HELLO_SNI_NAME ? &hello->name : NULL,
	    .ech = hello->ech};
	struct flow_said said = flow_tls_said(hello);
	struct judgement verdict;

	said.hello_us = attempt_since_us(flow->began_us);
	if (hello->sni == TLS_HELLO_SNI_NOT_NAME)
		verdict = verdict_plain(VERDICT_DENIED, REASON_SNI_MISMATCH, "the server name is no host name");
	else
		verdict = judge_attempt(flow->sandbox, &ends->dst, IPPROTO_TCP, ends->dport, &claim);
	if (verdict.verdict != VERDICT_ALLOWED) {
		flow_refuse(flow, &verdict, &said);
		return;
	}
	flow_open(flow, &verdict, &said);
	if (flow->state != FLOW_OPENING)
		return;
	tls->first_len = hello->at;
	tls->sni = hello->sni;
	tls->name = hello->name;
	tls->ech = hello->ech;
	tls_hello_clear(hello);
	memset(hello, 0, sizeof(*hello));
	flow->answer_awaited = true;
}

/* READING: reads on in the first hello. */
static void
flow_tls_read(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	switch (tls_hello_read(&tls->hello, flow->in.bytes, flow->in.len)) {
	case TLS_HELLO_MORE:
		if (flow->in.len == TLS_HELLO_BUFFER_MAX)
			flow_tls_refuse(flow, REASON_TLS_MALFORMED, "hello in too many records");
		break;
	case TLS_HELLO_DONE:
		flow_tls_judge(flow);
		break;
	case TLS_HELLO_NOT_TLS:
		flow_tls_refuse(flow, REASON_NOT_TLS, tls->hello.detail);
		break;
	case TLS_HELLO_MALFORMED:
		flow_tls_refuse(flow, REASON_TLS_MALFORMED, tls->hello.detail);
		break;
	}
}

/* READING: the rest of the hello will not come. */
static void
flow_tls_incomplete(struct flow *flow, const char *detail)
{
	flow_tls_refuse(flow, flow->in.len == 0 ? REASON_NOT_TLS : REASON_TLS_MALFORMED, detail);
}

/* Makes the state for reading. False without memory. */
static bool
flow_tls_begin(struct flow *flow)
{
	flow->reader = calloc(1, sizeof(struct flow_tls));
	return flow->reader != NULL;
}

/* Frees the state. */
static void
flow_tls_end(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	if (tls != NULL)
		tls_hello_clear(&tls->hello);
	free(tls);
	flow->reader = NULL;
}

/* The first hello goes out, and nothing after it. False without memory. */
static bool
flow_tls_start(struct flow *flow)
{
	size_t len = ((const struct flow_tls *)flow->reader)->first_len;
	uint8_t *hello;

	if (flow->in.len == len) {
		flow_buffer_to_prefix(flow);
		return true;
	}
	hello = malloc(len);
	if (hello == NULL)
		return false;
	memcpy(hello, flow->in.bytes, len);
	relay_prefix_own(&flow->out, hello, len);
	flow_buffer_drop(flow, len);
	return true;
}

/* RELAYING: refuses the second hello: its own record, and an end to the connection. */
static void
flow_tls_cut(struct flow *flow, enum reason reason, const char *detail)
{
	const struct flow_tls *tls = flow->reader;
	struct judgement verdict = verdict_plain(VERDICT_DENIED, reason, detail);
	struct flow_said said = flow_tls_said(&tls->hello);

	balance_arrive(flow->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	flow_record_refused(flow->list, &flow->attempt.ends, &verdict, &said);
	flow_end(flow, END_NEXT_HOST, VERDICT_ALLOWED, REASON_ALLOWED, true);
}

/* A sound second hello is there. */
static void
flow_tls_compare(struct flow *flow)
{
	const struct flow_tls *tls = flow->reader;

	if (tls->hello.sni != tls->sni || !name_equal(&tls->hello.name, &tls->name))
		flow_tls_cut(flow, REASON_SNI_MISMATCH, "the second hello names another server than the first");
	else if (tls->hello.ech && !tls->ech)
		flow_tls_cut(flow, REASON_TLS_MALFORMED, "the second hello is encrypted and the first was not");
	else
		flow_raw_take_over(flow);
}

/* Pass over records before the hello. False: another one must come first, or the flow was ended. */
static bool
flow_tls_find(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	while (!tls->found) {
		struct reader r = reader_make(flow->in.bytes + tls->skipped, flow->in.len - tls->skipped);
		size_t there = reader_left(&r);
		uint8_t type = reader_u8(&r);
		size_t len;

		if (there > 0 && type != FLOW_TLS_RECORD_CIPHER_CHANGE && type != FLOW_TLS_RECORD_ALERT &&
		    type != FLOW_TLS_RECORD_HANDSHAKE && type != FLOW_TLS_RECORD_DATA) {
			flow_tls_cut(flow, REASON_TLS_MALFORMED, "no TLS record where a second hello is due");
			return false;
		}
		reader_u16(&r);
		len = reader_u16(&r);
		if (there < FLOW_TLS_RECORD_HEADER)
			return false;
		tls->found = type == FLOW_TLS_RECORD_HANDSHAKE;
		if (!tls->found && there < FLOW_TLS_RECORD_HEADER + len)
			return false;
		if (!tls->found)
			tls->skipped += FLOW_TLS_RECORD_HEADER + len;
	}
	return true;
}

/* The origin wants a second hello: read on in what is there. */
static void
flow_tls_parse(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	if (!flow_tls_find(flow))
		return;
	switch (tls_hello_read(&tls->hello, flow->in.bytes + tls->skipped, flow->in.len - tls->skipped)) {
	case TLS_HELLO_MORE:
		break;
	case TLS_HELLO_DONE:
		flow_tls_compare(flow);
		break;
	case TLS_HELLO_NOT_TLS:
	case TLS_HELLO_MALFORMED:
		flow_tls_cut(flow, REASON_TLS_MALFORMED, tls->hello.detail);
		break;
	}
}

/* Takes what the guest sent, as much as is held at once. The status of the guest's direction. */
static enum relay_status
flow_tls_fill(struct flow *flow)
{
	while (!flow->out.eof && flow->in.len < TLS_HELLO_BUFFER_MAX) {
		ssize_t n = flow_buffer_fill(flow, FLOW_BUFFER_FIRST, TLS_HELLO_BUFFER_MAX);

		if (n == -EAGAIN)
			return RELAY_READING;
		if (n < 0) {
			flow->out.sys_errno = (int)-n;
			return RELAY_SOURCE_FAILED;
		}
		flow->out.eof = n == 0;
	}
	return RELAY_HELD;
}

/* The guest has ended its side, or said more than is held. */
static void
flow_tls_full(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	if (tls->wanted && (tls->found || !flow->out.eof))
		flow_tls_cut(flow, REASON_TLS_MALFORMED, "the second hello did not come whole");
	else if (tls->wanted || flow->in.len == 0) /* there will be none */
		flow_raw_take_over(flow);
}

/* RELAYING: writes the first hello, reads and holds what comes after it, judges a second one when one is wanted. */
static void
flow_tls_pump(struct flow *flow)
{
	const struct flow_tls *tls = flow->reader;
	struct relay_way *out = &flow->out;

	out->status = relay_pump_prefix(out, flow->origin_fd);
	if (out->status != RELAY_READING)
		return;
	out->status = flow_tls_fill(flow);
	if (out->status == RELAY_SOURCE_FAILED)
		return;
	if (tls->wanted)
		flow_tls_parse(flow);
	if (flow->reader != NULL && out->status == RELAY_HELD)
		flow_tls_full(flow);
	if (flow->in.len == 0 && flow->state == FLOW_RELAYING)
		flow_buffer_free(flow); /* an idle connection holds none */
}

/* Does the answer begin like a request for another hello, as far as it is there? */
static bool
flow_tls_agrees(const uint8_t *bytes, size_t len)
{
	struct reader r = reader_make(bytes, len);

	if (len > 0 && bytes[0] != FLOW_TLS_RECORD_HANDSHAKE)
		return false;
	if (len > FLOW_TLS_RECORD_HEADER && bytes[FLOW_TLS_RECORD_HEADER] != FLOW_TLS_SERVER_HELLO)
		return false;
	reader_bytes(&r, FLOW_TLS_RANDOM_AT);
	len = reader_left(&r);
	return !reader_ok(&r) || len == 0 || memcmp(reader_bytes(&r, len), flow_tls_retry_random, len) == 0;
}

/* RELAYING: does the origin's answer ask for a second hello? True when that is decided. */
static bool
flow_tls_answer(struct flow *flow)
{
	struct flow_tls *tls = flow->reader;

	if (!flow_socket_peek(flow->origin_fd, FLOW_TLS_ANSWER_LEN, flow_tls_agrees, &tls->partial, &tls->wanted))
		return false;
	flow->answer_awaited = false;
	if (!tls->wanted)
		flow_raw_take_over(flow);
	else if (loop_timer_set(flow->sandbox->gateway->loop, &flow->timer, GATEWAY_HEAD_MS) < 0)
		flow_end(flow, END_ERROR, VERDICT_ALLOWED, REASON_INTERNAL_ERROR, true);
	return true;
}

/* RELAYING: the timer ran out on the second hello. */
static void
flow_tls_late(struct flow *flow)
{
	flow_tls_cut(flow, REASON_TLS_MALFORMED, "the second hello was not complete in time");
}

const struct flow_mode flow_tls_mode = {
    .port = 443,
    .head_max = TLS_HELLO_BUFFER_MAX,
    .begin = flow_tls_begin,
    .read = flow_tls_read,
    .incomplete = flow_tls_incomplete,
    .start = flow_tls_start,
    .answer = flow_tls_answer,
    .pump = flow_tls_pump,
    .late = flow_tls_late,
    .end = flow_tls_end,
};
