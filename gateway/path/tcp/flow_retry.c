/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The second hello of a TLS connection.
 *
 * Theory of operation. A TLS 1.3 server may answer a hello with a HelloRetryRequest (RFC 8446 section 4.1.4), and the
 * client says all of it once more. Servers take the name from the second one and need not compare: a guest that has an
 * allowed name in the first (and provokes a second, by offering no key share) would get any other site behind the same
 * address, by its own name and certificate. So the guest's bytes behind its hello are held until the origin's answer
 * begins; no honest client has anything to say before, but for early data, which loses a round trip and nothing else.
 * An answer that is no HelloRetryRequest makes the connection opaque: from there on both ways are spliced. Otherwise
 * the second hello is read as the first was, behind records that a server passes over (early data, and the change of
 * cipher that goes with it for old middle boxes), and must name the same server; then what was held goes out as it
 * came, and the connection is opaque.
 *
 * Trust. The guest may say its second hello before it was asked, in whatever pieces. The origin's bytes are looked at,
 * not taken; who has an origin that misleads us here needs no second hello to get its pages.
 *
 * Failing. A second hello that is not what it must be is an attempt of its own and gets its own record; the connection
 * is reset. One that does not come in time, or does not come whole, likewise. */
#include "gateway/path/tcp/flow.h"

#include "base/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#define RETRY_RECORD_HEADER 5
#define RETRY_RECORD_CIPHER_CHANGE 20
#define RETRY_RECORD_ALERT 21
#define RETRY_RECORD_HANDSHAKE 22
#define RETRY_RECORD_DATA 23
#define RETRY_SERVER_HELLO 2
/* Record header, message header, version: what stands before the random bytes of a server's hello. */
#define RETRY_RANDOM_AT 11

/* RFC 8446 section 4.1.3: the random bytes that make a server's hello a request for another one. */
static const uint8_t retry_random[32] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11, 0xbe, 0x1d, 0x8c, 0x02, 0x1e,
    0x65, 0xb8, 0x91, 0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e, 0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};

#define RETRY_ANSWER_LEN (RETRY_RANDOM_AT + sizeof(retry_random))

bool
flow_retry_expect(struct flow *flow)
{
	const struct tls_hello *hello = flow->hello;
	struct flow_retry *retry = calloc(1, sizeof(*retry));

	if (retry == NULL)
		return false;
	retry->first_len = hello->at;
	retry->sni = hello->sni;
	retry->name = hello->name;
	retry->ech = hello->ech;
	flow->retry = retry;
	return true;
}

void
flow_retry_free(struct flow *flow)
{
	if (flow->retry == NULL)
		return;
	tls_hello_clear(&flow->retry->hello);
	free(flow->retry);
	flow->retry = NULL;
}

bool
flow_retry_start(struct flow *flow)
{
	size_t len = flow->retry->first_len;
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
	flow->in.len -= len;
	memmove(flow->in.bytes, flow->in.bytes + len, flow->in.len);
	return true;
}

/* Nothing more is to be read: what was held goes first, and the direction is spliced like any other. */
static void
flow_retry_go_opaque(struct flow *flow)
{
	loop_timer_stop(flow->sandbox->gateway->loop, &flow->timer);
	if (flow->in.len > 0)
		flow_buffer_to_prefix(flow);
	else
		flow_buffer_free(flow);
	flow_retry_free(flow);
	flow->out.status = RELAY_READING;
}

static void
flow_retry_cut(struct flow *flow, enum reason reason, const char *detail)
{
	const struct tls_hello *hello = &flow->retry->hello;
	struct judgement verdict = verdict_plain(VERDICT_DENIED, reason, detail);
	struct flow_said said = {.claim = hello->claim,
	    .claim_len = hello->claim_len,
	    .hello = hello,
	    .flags = hello->ech ? RECORD_FLAG_ECH : 0};

	balance_arrive(flow->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	flow_record_refused(flow->sandbox, &flow->ends, &verdict, &said);
	flow_end(flow, END_NEXT_HOST, VERDICT_ALLOWED, REASON_ALLOWED, true);
}

/* A sound second hello is there. */
static void
flow_retry_compare(struct flow *flow)
{
	const struct flow_retry *retry = flow->retry;

	if (retry->hello.sni != retry->sni || !name_equal(&retry->hello.name, &retry->name))
		flow_retry_cut(flow, REASON_SNI_MISMATCH, "the second hello names another server than the first");
	else if (retry->hello.ech && !retry->ech)
		flow_retry_cut(flow, REASON_TLS_MALFORMED, "the second hello is encrypted and the first was not");
	else
		flow_retry_go_opaque(flow);
}

/* Pass over records before the hello. False: another one must come first, or the flow was ended. */
static bool
flow_retry_find(struct flow *flow)
{
	struct flow_retry *retry = flow->retry;

	while (!retry->found) {
		struct reader r = reader_make(flow->in.bytes + retry->skipped, flow->in.len - retry->skipped);
		size_t there = reader_left(&r);
		uint8_t type = reader_u8(&r);
		size_t len;

		if (there > 0 && type != RETRY_RECORD_CIPHER_CHANGE && type != RETRY_RECORD_ALERT &&
		    type != RETRY_RECORD_HANDSHAKE && type != RETRY_RECORD_DATA) {
			flow_retry_cut(flow, REASON_TLS_MALFORMED, "no TLS record where a second hello is due");
			return false;
		}
		reader_u16(&r);
		len = reader_u16(&r);
		if (there < RETRY_RECORD_HEADER)
			return false;
		retry->found = type == RETRY_RECORD_HANDSHAKE;
		if (!retry->found && there < RETRY_RECORD_HEADER + len)
			return false;
		if (!retry->found)
			retry->skipped += RETRY_RECORD_HEADER + len;
	}
	return true;
}

/* The origin wants a second hello: read on in what is there. */
static void
flow_retry_parse(struct flow *flow)
{
	struct flow_retry *retry = flow->retry;

	if (!flow_retry_find(flow))
		return;
	switch (tls_hello_read(&retry->hello, flow->in.bytes + retry->skipped, flow->in.len - retry->skipped)) {
	case TLS_HELLO_MORE:
		break;
	case TLS_HELLO_DONE:
		flow_retry_compare(flow);
		break;
	case TLS_HELLO_NOT_TLS:
	case TLS_HELLO_MALFORMED:
		flow_retry_cut(flow, REASON_TLS_MALFORMED, retry->hello.detail);
		break;
	}
}

/* Take what the guest sent, as much as is held at once. */
static enum relay_status
flow_retry_fill(struct flow *flow)
{
	while (!flow->out.eof && flow->in.len < TLS_HELLO_BUFFER_MAX) {
		size_t size = flow->in.len == flow->in.size ? flow->in.size * 2 : flow->in.size;
		ssize_t n;

		size = size < FLOW_BUFFER_FIRST   ? FLOW_BUFFER_FIRST
		    : size > TLS_HELLO_BUFFER_MAX ? TLS_HELLO_BUFFER_MAX
						  : size;
		if (!flow_buffer_reserve(flow, size)) {
			flow->out.sys_errno = ENOMEM;
			return RELAY_SOURCE_FAILED;
		}
		n = recv(flow->guest_fd, flow->in.bytes + flow->in.len, flow->in.size - flow->in.len, MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return RELAY_READING;
		if (n < 0) {
			flow->out.sys_errno = errno;
			return RELAY_SOURCE_FAILED;
		}
		flow->out.eof = n == 0;
		flow->in.len += (size_t)n;
	}
	return RELAY_HELD;
}

/* The guest has ended its side, or said more than is held. */
static void
flow_retry_full(struct flow *flow)
{
	struct flow_retry *retry = flow->retry;

	if (retry->wanted && (retry->found || !flow->out.eof))
		flow_retry_cut(flow, REASON_TLS_MALFORMED, "the second hello did not come whole");
	else if (retry->wanted || flow->in.len == 0) /* there will be none */
		flow_retry_go_opaque(flow);
}

void
flow_retry_pump(struct flow *flow)
{
	struct relay_way *out = &flow->out;

	out->status = relay_pump_prefix(out, flow->origin_fd);
	if (out->status != RELAY_READING)
		return;
	out->status = flow_retry_fill(flow);
	if (out->status == RELAY_SOURCE_FAILED)
		return;
	if (flow->retry->wanted)
		flow_retry_parse(flow);
	if (flow->retry != NULL && out->status == RELAY_HELD)
		flow_retry_full(flow);
	if (flow->in.len == 0 && flow->state == FLOW_RELAYING)
		flow_buffer_free(flow); /* an idle connection holds none */
}

/* Does the answer begin like a request for another hello, as far as it is there? */
static bool
flow_retry_agrees(const uint8_t *bytes, size_t len)
{
	struct reader r = reader_make(bytes, len);

	if (len > 0 && bytes[0] != RETRY_RECORD_HANDSHAKE)
		return false;
	if (len > RETRY_RECORD_HEADER && bytes[RETRY_RECORD_HEADER] != RETRY_SERVER_HELLO)
		return false;
	reader_bytes(&r, RETRY_RANDOM_AT);
	len = reader_left(&r);
	return !reader_ok(&r) || len == 0 || memcmp(reader_bytes(&r, len), retry_random, len) == 0;
}

bool
flow_retry_answer(struct flow *flow)
{
	struct flow_retry *retry = flow->retry;
	uint8_t bytes[RETRY_ANSWER_LEN];
	ssize_t n = recv(flow->origin_fd, bytes, sizeof(bytes), MSG_PEEK | MSG_DONTWAIT);
	int low_water = n == (ssize_t)sizeof(bytes) ? 1 : (int)sizeof(bytes);
	bool agrees = n > 0 && flow_retry_agrees(bytes, (size_t)n);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	/* Half of it: once, wait for all. A second time it is all there will be. */
	if (agrees && n < (ssize_t)sizeof(bytes) && !retry->partial) {
		retry->partial = true;
		(void)setsockopt(flow->origin_fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
		return false;
	}
	if (retry->partial) {
		low_water = 1;
		(void)setsockopt(flow->origin_fd, SOL_SOCKET, SO_RCVLOWAT, &low_water, sizeof(low_water));
	}
	retry->wanted = agrees && n == (ssize_t)sizeof(bytes);
	if (!retry->wanted)
		flow_retry_go_opaque(flow);
	else if (loop_timer_set(flow->sandbox->gateway->loop, &flow->timer, GATEWAY_HEAD_MS) < 0)
		flow_end(flow, END_ERROR, VERDICT_ALLOWED, REASON_INTERNAL_ERROR, true);
	return true;
}

void
flow_retry_late(struct flow *flow)
{
	flow_retry_cut(flow, REASON_TLS_MALFORMED, "the second hello was not complete in time");
}
