/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The guest's direction of an HTTP connection: request by request.
 *
 * Theory of operation. flow->in holds the guest's bytes in order: the first http->ready of them were parsed and judged
 * and may pass, the parser is past them. Before the connection is opened the first head is judged and everything read
 * with it is parsed on, so that a broken body that came along is refused before a byte goes out. Afterwards each turn
 * writes what is ready, parses on, and reads only when nothing is ready: the origin's pace bounds the buffer.
 *
 * A later request for the same host passes under the verdict that stands (a policy edit cuts the connection, gateway/
 * proxy.c). One for another host is judged like a new connection: refused, it gets its own complete record and the
 * connection is reset (an earlier answer may be in flight, so that no answer of ours could be told from it); allowed,
 * the current record is closed as END_NEXT_HOST, a new one is opened, and the request waits until that is durable.
 *
 * Upgrade to websocket, on the first request only: the guest's next bytes are held until the origin's answer begins.
 * "HTTP/1.1 101" makes the direction opaque and it is spliced from there; anything else, and requests follow as
 * before. */
#include "gateway/path/tcp/flow.h"
#include "gateway/path/tcp/http_request.h"

#include "base/clock.h"
#include "base/escape.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

/* The mode's own state. */
struct flow_http {
	struct http_request parser;
	size_t ready;    /* bytes at the buffer's front that may pass */
	int64_t read_us; /* clock_mono_us of the last read from the guest */
	int64_t head_us; /* likewise, of the read that brought the first byte of a head still incomplete; else 0 */
	bool partial;    /* of flow_socket_peek */
	bool pending;    /* another host's request was allowed; its record is under way */
};

static const char flow_http_switched[] = "HTTP/1.1 101";
#define FLOW_HTTP_STATUS_LEN (sizeof(flow_http_switched) - 1)

/* What one look at the guest's bytes came to. */
enum flow_http_turn {
	FLOW_HTTP_READY, /* there are bytes to pass */
	FLOW_HTTP_WANT,  /* more must be read */
	FLOW_HTTP_HELD,  /* the Upgrade's answer or a record is awaited */
	FLOW_HTTP_OVER,  /* the flow was ended, or is opaque now */
};

/* What the head said, for a record. */
static struct flow_said
flow_http_said(const struct http_head *head)
{
	return (struct flow_said){.claim = head->claim,
	    .claim_len = head->claim_len,
	    .method = head->method,
	    .flags = head->websocket ? RECORD_FLAG_TUNNEL : 0};
}

/* RELAYING: when the first byte of the head that is complete now was read. */
static int64_t
flow_http_began_us(const struct flow_http *http)
{
	return http->head_us != 0 ? http->head_us : http->read_us;
}

/* Judges a request by the host that it names. */
static struct judgement
flow_http_judge(struct flow *flow, const struct http_head *head)
{
	struct judge_claim claim = {.naming = head->host.name.len > 0 ? VERDICT_SAID : VERDICT_SILENT,
	    .source = NAME_SOURCE_HOST,
	    .name = head->host.name.len > 0 ? &head->host.name : NULL};
	const struct attempt_ends *ends = &flow->attempt.ends;

	return judge_attempt(flow->sandbox, &ends->dst, IPPROTO_TCP, ends->dport, &claim);
}

/* Lets the parser go on after what is ready. */
static enum http_request_event
flow_http_next(struct flow *flow, size_t *ret_used)
{
	struct flow_http *http = flow->reader;

	return http_request_next(&http->parser, flow->in.bytes + http->ready, flow->in.len - http->ready, ret_used);
}

/* READING: refuses a head or body that is broken. */
static void
flow_http_reject(struct flow *flow)
{
	const struct http_head *head = &((struct flow_http *)flow->reader)->parser.head;
	struct judgement verdict = verdict_plain(VERDICT_DENIED, head->reason, head->detail);
	struct flow_said said = flow_http_said(head);

	flow_refuse(flow, &verdict, &said);
}

/* READING: reads on in the first head; judges it when it is complete, and what came with it. */
static void
flow_http_read(struct flow *flow)
{
	struct flow_http *http = flow->reader;
	struct judgement verdict;
	struct http_head first;
	struct flow_said said;
	size_t used;
	enum http_request_event event = flow_http_next(flow, &used);

	if (event == HTTP_REQUEST_REJECTED)
		flow_http_reject(flow);
	if (event != HTTP_REQUEST_HEAD)
		return;
	first = http->parser.head;
	said = flow_http_said(&first);
	said.hello_us = attempt_since_us(flow->began_us);
	verdict = flow_http_judge(flow, &first);
	if (verdict.verdict != VERDICT_ALLOWED) {
		flow_refuse(flow, &verdict, &said);
		return;
	}
	http_request_accept(&http->parser);
	do {
		http->ready += used;
		event = flow_http_next(flow, &used);
	} while (event == HTTP_REQUEST_BODY);
	if (event == HTTP_REQUEST_REJECTED && http->parser.in_body) {
		flow_http_reject(flow);
		return;
	}
	flow->answer_awaited = first.websocket;
	flow_open(flow, &verdict, &said);
}

/* READING: the rest of the head will not come. */
static void
flow_http_incomplete(struct flow *flow, const char *detail)
{
	const struct flow_http *http = flow->reader;
	struct judgement verdict =
	    verdict_plain(VERDICT_DENIED, flow->in.len == 0 ? REASON_NOT_HTTP : REASON_HTTP_MALFORMED, detail);
	struct flow_said said = flow_http_said(&http->parser.head);

	flow_refuse(flow, &verdict, &said);
}

/* RELAYING: the next request cannot pass: its own record, and an end to the connection. whole: its head is complete. */
static enum flow_http_turn
flow_http_cut(struct flow *flow, const struct judgement *verdict, bool whole)
{
	const struct flow_http *http = flow->reader;
	struct flow_said said = flow_http_said(&http->parser.head);

	if (whole)
		said.hello_us = attempt_since_us(flow_http_began_us(http));
	flow_record_refused(flow->list, &flow->attempt.ends, verdict, &said);
	flow_buffer_free(flow); /* so that nothing of it is abandoned */
	flow_end(flow, END_NEXT_HOST, VERDICT_ALLOWED, REASON_ALLOWED, true);
	return FLOW_HTTP_OVER;
}

/* OPENING, RELAYING: no more bytes will be read or passed on. A request among those that came which was never judged,
 * or is for another host, gets its record; a request is named once. */
static void
flow_http_abandon(struct flow *flow)
{
	const struct flow_http *http = flow->reader;
	struct judgement verdict;
	struct flow_said said;

	if (http == NULL || http->pending || flow->in.len <= http->ready || http->parser.in_body)
		return;
	switch (http->parser.state) {
	case HTTP_STATE_HEAD:
		verdict =
		    verdict_plain(VERDICT_DENIED, REASON_HTTP_MALFORMED, "closed before the request head was complete");
		break;
	case HTTP_STATE_JUDGE:
		if (name_equal(&http->parser.head.host.name, &flow->attempt.verdict.name))
			return; /* one more request of the connection that is on record */
		verdict = verdict_plain(VERDICT_FAILED, REASON_REVOKED, "ended before it was judged");
		break;
	case HTTP_STATE_REJECTED:
		verdict = verdict_plain(VERDICT_DENIED, http->parser.head.reason, http->parser.head.detail);
		break;
	case HTTP_STATE_LENGTH:
	case HTTP_STATE_CHUNK_SIZE:
	case HTTP_STATE_CHUNK_DATA:
	case HTTP_STATE_CHUNK_END:
	case HTTP_STATE_TRAILER:
	case HTTP_STATE_HELD:
	case HTTP_STATE_OPAQUE:
		return;
	}
	said = flow_http_said(&http->parser.head);
	balance_arrive(flow->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	flow_record_refused(flow->list, &flow->attempt.ends, &verdict, &said);
	flow_buffer_free(flow);
}

/* RELAYING: a fault in what follows. Before it everything ready was passed on. */
static enum flow_http_turn
flow_http_fault(struct flow *flow)
{
	const struct http_request *parser = &((struct flow_http *)flow->reader)->parser;
	struct judgement verdict = verdict_plain(VERDICT_DENIED, parser->head.reason, parser->head.detail);

	if (!parser->in_body) {
		balance_arrive(flow->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
		return flow_http_cut(flow, &verdict, false);
	}
	flow_end(flow, END_POLICY, VERDICT_ALLOWED, parser->head.reason, true);
	return FLOW_HTTP_OVER;
}

/* RELAYING: a request for another host than the record's. Its own record is opened in place of the one before. */
static enum flow_http_turn
flow_http_next_host(struct flow *flow)
{
	struct flow_http *http = flow->reader;
	struct sandbox *sandbox = flow->sandbox;
	struct judgement verdict = flow_http_judge(flow, &http->parser.head);
	struct flow_said said = flow_http_said(&http->parser.head);

	balance_arrive(sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	if (verdict.verdict == VERDICT_ALLOWED && !recorder_ready(&sandbox->gateway->recorder))
		verdict = verdict_plain(VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, NULL);
	if (verdict.verdict != VERDICT_ALLOWED)
		return flow_http_cut(flow, &verdict, true);
	flow_record_close(flow, END_NEXT_HOST, VERDICT_ALLOWED, REASON_ALLOWED);
	quota_close(sandbox, &flow->attempt.ticket);
	if (!quota_open(sandbox, &verdict, &flow->attempt.ticket))
		return flow_http_cut(flow, &verdict, true);
	flow->began_us = flow_http_began_us(http);
	said.hello_us = attempt_since_us(flow->began_us);
	flow->attempt.verdict = verdict;
	if (flow_record_open(flow, &said) < 0 ||
	    loop_timer_set(sandbox->gateway->loop, &flow->timer, GATEWAY_CONNECT_MS) < 0) {
		flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, true);
		return FLOW_HTTP_OVER;
	}
	http->pending = true;
	return FLOW_HTTP_HELD;
}

/* RELAYING: parse on. Events that wait for the ready bytes to be written come again in the next turn. */
static enum flow_http_turn
flow_http_parse(struct flow *flow)
{
	struct flow_http *http = flow->reader;

	for (;;) {
		size_t used;
		enum http_request_event event = flow_http_next(flow, &used);
		bool same =
		    event == HTTP_REQUEST_HEAD && name_equal(&http->parser.head.host.name, &flow->attempt.verdict.name);

		if (same) {
			http_request_accept(&http->parser);
			loop_timer_stop(flow->sandbox->gateway->loop, &flow->timer);
		}
		if (event == HTTP_REQUEST_BODY || same) {
			http->ready += used;
			continue;
		}
		if (http->ready > 0)
			return FLOW_HTTP_READY;
		switch (event) {
		case HTTP_REQUEST_MORE:
		case HTTP_REQUEST_BODY:
			return FLOW_HTTP_WANT;
		case HTTP_REQUEST_HEAD:
			return flow_http_next_host(flow);
		case HTTP_REQUEST_HELD:
			return FLOW_HTTP_HELD;
		case HTTP_REQUEST_OPAQUE:
			flow_raw_take_over(flow);
			return FLOW_HTTP_OVER;
		case HTTP_REQUEST_REJECTED:
			return flow_http_fault(flow);
		}
	}
}

/* Write what is ready. READING when all of it went out.
 * syscalls: sendto */
static enum relay_status
flow_http_flush(struct flow *flow)
{
	struct flow_http *http = flow->reader;

	while (http->ready > 0) {
		size_t len = http->ready < flow->out.budget ? http->ready : (size_t)flow->out.budget;
		ssize_t n;

		if (len == 0) /* cut by the owner, after this turn */
			return RELAY_WRITING;
		n = send(flow->origin_fd, flow->in.bytes, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0 && errno == EAGAIN)
			return RELAY_WRITING;
		if (n < 0) {
			flow->out.sys_errno = errno;
			return RELAY_SINK_FAILED;
		}
		flow->out.bytes += (uint64_t)n;
		if (flow->out.budget != UINT64_MAX)
			flow->out.budget -= (uint64_t)n;
		http->ready -= (size_t)n;
		flow_buffer_drop(flow, (size_t)n);
	}
	return RELAY_READING;
}

/* Take what the guest sent. READING when there is something new; FINISHED when FIN was passed on.
 * syscalls: shutdown */
static enum relay_status
flow_http_fill(struct flow *flow, bool *ret_more)
{
	ssize_t n = flow_buffer_fill(flow, FLOW_BUFFER_HTTP, FLOW_BUFFER_HTTP_MAX);

	*ret_more = n > 0;
	if (n > 0)
		((struct flow_http *)flow->reader)->read_us = clock_mono_us();
	if (n > 0 || n == -EAGAIN)
		return RELAY_READING;
	if (n < 0) {
		flow->out.sys_errno = (int)-n;
		return RELAY_SOURCE_FAILED;
	}
	/* What is left is the beginning of a request that never became one: nothing may pass of it. */
	flow_http_abandon(flow);
	flow->out.eof = true;
	if (shutdown(flow->origin_fd, SHUT_WR) < 0) {
		flow->out.sys_errno = errno;
		return RELAY_SINK_FAILED;
	}
	return RELAY_FINISHED;
}

/* A turn is over: an idle connection holds no buffer, and a later head has a deadline as the first had. */
static void
flow_http_rest(struct flow *flow)
{
	struct loop *loop = flow->sandbox->gateway->loop;
	struct flow_http *http = flow->reader;

	if (!http_request_in_head(&http->parser, flow->in.len))
		http->head_us = 0;
	else if (http->head_us == 0)
		http->head_us = http->read_us;
	if (flow->in.len == 0 || flow->out.status == RELAY_FINISHED)
		flow_buffer_free(flow);
	if (http->pending)
		return; /* the timer is the record's */
	if (!http_request_in_head(&http->parser, flow->in.len) || flow->out.status != RELAY_READING)
		loop_timer_stop(loop, &flow->timer);
	else if (!loop_timer_armed(&flow->timer) && loop_timer_set(loop, &flow->timer, GATEWAY_HEAD_MS) < 0)
		flow_end(flow, END_ERROR, VERDICT_ALLOWED, REASON_INTERNAL_ERROR, true);
}

/* RELAYING: the timer ran out on a later head, or on a record. */
static void
flow_http_late(struct flow *flow)
{
	const struct flow_http *http = flow->reader;
	struct judgement verdict =
	    verdict_plain(VERDICT_DENIED, REASON_HTTP_MALFORMED, "request head not complete in time");

	if (!http->pending) {
		balance_arrive(flow->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
		flow_http_cut(flow, &verdict, false);
	} else {
		flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, true);
	}
}

/* RELAYING: writes what is ready, parses on, and reads while nothing is ready. */
static void
flow_http_pump(struct flow *flow)
{
	const struct flow_http *http = flow->reader;
	struct relay_way *out = &flow->out;
	size_t turns = RELAY_TURN_BYTES / FLOW_BUFFER_HTTP;
	bool more = true;

	if (out->status == RELAY_FINISHED || http->pending)
		return;
	for (;;) {
		enum flow_http_turn turn;

		out->status = flow_http_flush(flow);
		if (out->status != RELAY_READING)
			break;
		turn = flow_http_parse(flow);
		if (turn == FLOW_HTTP_READY)
			continue;
		if (turn == FLOW_HTTP_OVER)
			return;
		if (turn == FLOW_HTTP_HELD)
			out->status = RELAY_HELD;
		if (turn == FLOW_HTTP_HELD || !more || turns-- == 0)
			break;
		out->status = flow_http_fill(flow, &more);
		if (out->status != RELAY_READING)
			break;
	}
	flow_http_rest(flow);
}

/* RELAYING: the record of another host's request is durable: lets the request pass. False: none was waiting. */
static bool
flow_http_resume(struct flow *flow)
{
	struct flow_http *http = flow->reader;
	size_t used;

	if (!http->pending)
		return false;
	loop_timer_stop(flow->sandbox->gateway->loop, &flow->timer);
	http->pending = false;
	if (flow_http_next(flow, &used) == HTTP_REQUEST_HEAD) {
		http_request_accept(&http->parser);
		http->ready += used;
	}
	return true;
}

/* Does the answer begin as one that switches protocols, as far as it is there? */
static bool
flow_http_agrees(const uint8_t *bytes, size_t len)
{
	return memcmp(bytes, flow_http_switched, len) == 0;
}

/* RELAYING, an Upgrade was allowed: does the origin switch protocols? True when that is decided. */
static bool
flow_http_status(struct flow *flow)
{
	struct flow_http *http = flow->reader;
	bool switched;

	if (!flow_socket_peek(flow->origin_fd, FLOW_HTTP_STATUS_LEN, flow_http_agrees, &http->partial, &switched))
		return false;
	flow->answer_awaited = false;
	http_request_upgraded(&http->parser, switched);
	return true;
}

/* The status line of an answer that refuses. */
static const char *
flow_http_status_text(const struct judgement *verdict)
{
	if (verdict->verdict != VERDICT_DENIED)
		return "503 Service Unavailable";
	return verdict->reason == REASON_HTTP_MALFORMED ? "400 Bad Request" : "403 Forbidden";
}

/* Sends an answer that explains the refusal, then FIN. False when that is not possible.
 * syscalls: sendto shutdown */
static bool
flow_http_explain(struct flow *flow, const struct judgement *verdict, const struct flow_said *said)
{
	bool bodiless = said->method != NULL && strcmp(said->method, "HEAD") == 0;
	char host[256], body[1024], answer[2048];
	int body_len, len;

	if (verdict->reason == REASON_NOT_HTTP)
		return false;
	escape_terminal(said->claim, said->claim_len, host, sizeof(host));
	body_len = snprintf(body, sizeof(body), "postern refused this request%s%s: %s (%s)%s%s\n",
	    host[0] == '\0' ? "" : " to ", host, reason_sentence(verdict->reason), reason_text(verdict->reason),
	    verdict->detail == NULL ? "" : ": ", verdict->detail == NULL ? "" : verdict->detail);
	len = snprintf(answer, sizeof(answer),
	    "HTTP/1.1 %s\r\nContent-Type: text/plain\r\nContent-Length: %d\r\nConnection: close\r\n"
	    "Postern-Reason: %s\r\n\r\n%s",
	    flow_http_status_text(verdict), body_len, reason_text(verdict->reason), bodiless ? "" : body);
	if (body_len < 0 || (size_t)body_len >= sizeof(body) || len < 0 || (size_t)len >= sizeof(answer))
		return false;
	/* An empty send buffer takes this whole. */
	if (send(flow->guest_fd, answer, (size_t)len, MSG_DONTWAIT | MSG_NOSIGNAL) != len)
		return false;
	if (shutdown(flow->guest_fd, SHUT_WR) < 0)
		return false;
	return loop_source_set(flow->sandbox->gateway->loop, &flow->guest, EPOLLIN) == 0;
}

/* Makes the state for reading. False without memory. */
static bool
flow_http_begin(struct flow *flow)
{
	struct flow_http *http = calloc(1, sizeof(*http));

	if (http != NULL)
		http_request_init(&http->parser, &flow->attempt.ends.dst, flow->attempt.ends.dport);
	flow->reader = http;
	return http != NULL;
}

/* Frees the state. */
static void
flow_http_end(struct flow *flow)
{
	free(flow->reader);
	flow->reader = NULL;
}

const struct flow_mode flow_http_mode = {
    .port = 80,
    .head_max = FLOW_BUFFER_HTTP_MAX,
    .begin = flow_http_begin,
    .read = flow_http_read,
    .incomplete = flow_http_incomplete,
    .explain = flow_http_explain,
    .answer = flow_http_status,
    .pump = flow_http_pump,
    .resume = flow_http_resume,
    .late = flow_http_late,
    .abandon = flow_http_abandon,
    .end = flow_http_end,
};
