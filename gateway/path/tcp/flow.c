/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One TCP connection of a sandbox.
 *
 * Theory of operation. The kernel has completed the guest's handshake, so the connection looks open to the guest while
 * nothing has been decided. On inspected ports the guest must speak first and is read (READING) until its hello or head
 * is complete; everything read stays in flow->in. Then comes the verdict, once. Refused: one complete record, and the
 * guest sees it at once. Allowed: the record and the connect to exactly the original destination go off together
 * (OPENING), and only when the record is durable and the origin has answered do the bytes in flow->in go out, each
 * once, and splicing begins (RELAYING). What is read, and what more is held back later, is the mode's (struct
 * flow_mode): TLS holds the guest's direction until the origin has answered its hello, HTTP reads it for as long as the
 * connection lives. The other direction is always spliced.
 *
 * Trust. Everything the guest sends is hostile and is read by tls_hello.c, flow_tls.c and http_request.c only;
 * everything the origin sends is passed on unread, but for a look at how an answer begins that decides what the guest
 * says next. The sockaddr handed to connect(2) is judged by addr_verdict right before, whatever was judged earlier.
 *
 * Events are level-triggered. Each direction waits for one thing at a time (relay.h), and only that is watched, so that
 * a blocked side causes no wake-ups. EPOLLHUP cannot be masked and is reported for good once a socket has seen FIN both
 * ways; such a socket is taken out of the loop while nothing is awaited from it (flow_watch).
 *
 * Failing. A reset on one side is a reset on the other; a timeout too. A flow never frees itself inside a handler:
 * flow_end closes, completes the record and takes the flow off its list, and the memory goes with loop_defer. */
#include "gateway/path/tcp/flow.h"

#include "base/clock.h"
#include "policy/names/addr.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* The loop that the flow is in. */
static struct loop *
flow_loop(const struct flow *flow)
{
	return flow->sandbox->gateway->loop;
}

/* Frees the flow at the end of the round. */
static void
flow_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct flow, deferred));
}

/* Watches a socket no longer and closes it, by reset or in order. */
static void
flow_close_fd(struct flow *flow, struct loop_source *source, int *fd, bool reset)
{
	loop_source_remove(flow_loop(flow), source);
	if (*fd >= 0 && reset)
		flow_socket_reset(*fd);
	else if (*fd >= 0)
		flow_socket_close(*fd);
	*fd = -1;
}

void
flow_end(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason, bool reset)
{
	struct gateway *gateway = flow->sandbox->gateway;

	if (flow->state == FLOW_ENDED)
		return;
	if ((flow->state == FLOW_OPENING || flow->state == FLOW_RELAYING) && flow->mode->abandon != NULL)
		flow->mode->abandon(flow);
	flow->state = FLOW_ENDED;
	recorder_cancel(&gateway->recorder, &flow->attempt.wait);
	flow_record_close(flow, end, verdict, reason);
	quota_close(flow->sandbox, &flow->attempt.ticket);
	flow_close_fd(flow, &flow->guest, &flow->guest_fd, reset);
	flow_close_fd(flow, &flow->origin, &flow->origin_fd, reset);
	loop_timer_stop(gateway->loop, &flow->timer);
	relay_clear(&flow->out);
	relay_clear(&flow->back);
	flow_buffer_free(flow);
	if (flow->mode->end != NULL)
		flow->mode->end(flow);
	LIST_REMOVE(flow, next);
	flow->list->count--;
	flow->list = NULL;
	gateway->flow_count--;
	loop_defer(gateway->loop, &flow->deferred);
}

void
flow_detach(struct flow *flow, enum end_reason end)
{
	struct judgement verdict = verdict_plain(VERDICT_FAILED, REASON_REVOKED, "ended before it was judged");
	struct flow_said said = {0};

	if (flow->state == FLOW_READING)
		flow_record_refused(flow->list, &flow->attempt.ends, &verdict, &said);
	flow_end(flow, end, VERDICT_ALLOWED, REASON_ALLOWED, true);
}

void
flow_refuse(struct flow *flow, const struct judgement *verdict, const struct flow_said *said)
{
	flow_record_refused(flow->list, &flow->attempt.ends, verdict, said);
	if (flow->mode->explain != NULL && flow->mode->explain(flow, verdict, said)) {
		flow->state = FLOW_LINGERING;
		flow_close_fd(flow, &flow->origin, &flow->origin_fd, true);
		flow_buffer_free(flow);
		if (loop_timer_set(flow_loop(flow), &flow->timer, FLOW_LINGER_MS) == 0)
			return;
	}
	flow_end(flow, END_REFUSED, verdict->verdict, verdict->reason, true);
}

/* Why a socket died, as a record says it. */
static enum end_reason
flow_end_of_errno(int sys_errno, enum end_reason reset)
{
	switch (sys_errno) {
	case ECONNRESET:
	case ECONNREFUSED:
	case EPIPE: /* a reset after the peer's FIN */
	case ENOTCONN:
		return reset;
	case ETIMEDOUT:
	case EHOSTUNREACH:
	case ENETUNREACH:
		return END_TIMEOUT;
	default:
		return END_ERROR;
	}
}

/* Watch for exactly this. A socket that both sides are done with would report EPOLLHUP for ever: not watched. */
static int
flow_watch(struct flow *flow, struct loop_source *source, int fd, uint32_t events, bool fin_sent)
{
	struct loop *loop = flow_loop(flow);

	if (events == 0 && fin_sent) {
		loop_source_remove(loop, source);
		return 0;
	}
	if (source->fd >= 0)
		return loop_source_set(loop, source, events);
	source->fd = fd;
	return loop_source_add(loop, source, events);
}

/* After a turn: end what is over, watch what each direction waits for. */
static void
flow_settle(struct flow *flow)
{
	enum relay_status out = flow->out.status, back = flow->back.status;
	uint32_t guest = (out == RELAY_READING ? EPOLLIN : 0u) | (back == RELAY_WRITING ? EPOLLOUT : 0u);
	uint32_t origin = (back == RELAY_READING ? EPOLLIN : 0u) | (out == RELAY_WRITING ? EPOLLOUT : 0u);
	enum end_reason end;

	if (out == RELAY_SOURCE_FAILED || back == RELAY_SINK_FAILED) {
		end = flow_end_of_errno(
		    out == RELAY_SOURCE_FAILED ? flow->out.sys_errno : flow->back.sys_errno, END_RST_GUEST);
		flow_end(flow, end, VERDICT_ALLOWED, REASON_ALLOWED, true);
	} else if (out == RELAY_SINK_FAILED || back == RELAY_SOURCE_FAILED) {
		end = flow_end_of_errno(
		    out == RELAY_SINK_FAILED ? flow->out.sys_errno : flow->back.sys_errno, END_RST_ORIGIN);
		flow_end(flow, end, VERDICT_ALLOWED, REASON_ALLOWED, true);
	} else if (out == RELAY_FINISHED && back == RELAY_FINISHED) {
		flow_end(flow, END_FIN, VERDICT_ALLOWED, REASON_ALLOWED, false);
	} else if (flow_watch(flow, &flow->guest, flow->guest_fd, guest, back == RELAY_FINISHED) < 0 ||
	    flow_watch(flow, &flow->origin, flow->origin_fd, origin, out == RELAY_FINISHED) < 0) {
		flow_end(flow, END_ERROR, VERDICT_ALLOWED, REASON_ALLOWED, true);
	}
}

/* How many bytes each direction may move in this turn. False when one of those that are to move may not: the flow was
 * ended. */
static bool
flow_budget(struct flow *flow, bool out, bool back)
{
	enum reason reason = REASON_ALLOWED;

	flow->out.budget = quota_left(flow->sandbox, &flow->attempt.ticket, QUOTA_UPLOAD);
	flow->back.budget = quota_left(flow->sandbox, &flow->attempt.ticket, QUOTA_DOWNLOAD);
	if (out && flow->out.budget == 0)
		reason = REASON_LIMIT_UPLOAD;
	else if (back && flow->back.budget == 0)
		reason = REASON_LIMIT_DOWNLOAD;
	if (reason != REASON_ALLOWED)
		flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
	return reason == REASON_ALLOWED;
}

/* RELAYING: moves bytes in the named directions, then watches what each waits for. May end the flow. */
static void
flow_pump(struct flow *flow, bool out, bool back)
{
	const struct flow_mode *mode;
	enum reason reason;

	if (!flow_budget(flow, out, back))
		return;
	if (back && flow->answer_awaited) {
		if (flow->mode->answer(flow))
			out = true;
		else
			back = false;
	}
	/* A mode that hands over leaves the rest of the turn to the one that follows. */
	for (mode = NULL; out && flow->state == FLOW_RELAYING && mode != flow->mode;) {
		mode = flow->mode;
		mode->pump(flow);
	}
	if (flow->state != FLOW_RELAYING)
		return;
	if (back) {
		relay_pump(&flow->back, flow->origin_fd, flow->guest_fd);
		if (flow->attempt.first_byte_us == 0 && (flow->back.bytes > 0 || flow->back.stuck > 0))
			flow->attempt.first_byte_us = attempt_since_us(flow->began_us);
	}
	if (quota_count(flow->sandbox, &flow->attempt.ticket, flow->out.bytes, flow->back.bytes, &reason))
		flow_settle(flow);
	else
		flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
}

/* Both the record is durable and the origin is connected: let the bytes go. */
static void
flow_establish(struct flow *flow)
{
	loop_timer_stop(flow_loop(flow), &flow->timer);
	flow->state = FLOW_RELAYING;
	if (flow->mode->start != NULL && !flow->mode->start(flow))
		flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_INTERNAL_ERROR, true);
	else
		flow_pump(flow, true, true);
}

/* The record is durable: payload may pass. */
static void
flow_durable_handler(struct recorder_wait *wait)
{
	struct flow *flow = loop_owner(wait, struct flow, attempt.wait);

	flow->durable = true;
	if (flow->state == FLOW_OPENING && flow->connected)
		flow_establish(flow);
	else if (flow->state == FLOW_RELAYING && flow->mode->resume != NULL && flow->mode->resume(flow))
		flow_pump(flow, true, false);
}

/* The last look at the exact sockaddr, then connect. 0 or -errno.
 * syscalls: connect */
static int
flow_connect(struct flow *flow)
{
	struct sockaddr_storage sa;
	socklen_t sa_len = addr_to_sockaddr(&flow->attempt.ends.dst, flow->attempt.ends.dport, &sa);

	if (addr_verdict((const struct sockaddr *)&sa) != NULL)
		return -EACCES;
	flow->dialled_us = clock_mono_us();
	if (connect(flow->origin_fd, (const struct sockaddr *)&sa, sa_len) < 0 && errno != EINPROGRESS)
		return -errno;
	attempt_note_source(&flow->attempt, flow->origin_fd);
	flow->origin.fd = flow->origin_fd;
	return loop_source_add(flow_loop(flow), &flow->origin, EPOLLOUT);
}

void
flow_open(struct flow *flow, const struct judgement *verdict, const struct flow_said *said)
{
	struct loop *loop = flow_loop(flow);
	struct judgement failed = verdict_plain(VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, NULL);
	bool opened = false;

	flow->flags = said->flags;
	flow->attempt.verdict = *verdict;
	flow->origin_fd = flow_socket_origin(&flow->attempt.ends);
	if (flow->origin_fd < 0 || flow->origin_fd >= flow->sandbox->gateway->fd_top)
		failed = verdict_plain(VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "no socket for the origin");
	else if (recorder_ready(&flow->sandbox->gateway->recorder)) {
		if (!quota_open(flow->sandbox, &flow->attempt.verdict, &flow->attempt.ticket))
			failed = flow->attempt.verdict;
		else
			opened = flow_record_open(flow, said) == 0;
	}
	if (!opened) {
		flow_refuse(flow, &failed, said);
		return;
	}
	flow->state = FLOW_OPENING;
	if (flow_connect(flow) < 0)
		flow_end(flow, END_CONNECT_FAILED, VERDICT_FAILED, REASON_UPSTREAM_ERROR, true);
	else if (loop_source_set(loop, &flow->guest, 0) < 0 ||
	    loop_timer_set(loop, &flow->timer, GATEWAY_CONNECT_MS) < 0)
		flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_INTERNAL_ERROR, true);
}

/* READING: takes what the guest sent, and lets the mode look at it. */
static void
flow_read(struct flow *flow)
{
	ssize_t n = flow_buffer_fill(flow, FLOW_BUFFER_FIRST, flow->mode->head_max);
	struct judgement verdict;
	struct flow_said said = {0};

	if (n > 0) {
		flow->mode->read(flow);
	} else if (n == -ENOSPC) {
		verdict =
		    verdict_plain(VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "too much of unfinished first messages");
		flow_refuse(flow, &verdict, &said);
	} else if (n != -EAGAIN) {
		flow->mode->incomplete(flow,
		    n == 0 ? "closed before the first message was complete"
			   : "reset before the first message was complete");
	}
}

/* LINGERING: drop what comes until the guest has read its answer and closed.
 * syscalls: recvfrom */
static void
flow_linger(struct flow *flow)
{
	uint8_t scratch[4096];
	ssize_t n = recv(flow->guest_fd, scratch, sizeof(scratch), MSG_DONTWAIT);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	flow->lingered += n > 0 ? (size_t)n : 0;
	if (n <= 0 || flow->lingered > FLOW_LINGER_BYTES_MAX)
		flow_end(flow, END_REFUSED, VERDICT_DENIED, REASON_INTERNAL_ERROR, false); /* recorded before */
}

/* EPOLLERR or EPOLLHUP: the socket's error, 0 when there is none (FIN both ways).
 * syscalls: getsockopt(SOL_SOCKET,SO_ERROR) */
static int
flow_socket_error(int fd)
{
	int error = 0;
	socklen_t len = sizeof(error);

	if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len) < 0)
		return errno;
	return error;
}

/* Something happened on the guest's socket. */
static void
flow_guest_handler(struct loop_source *source, uint32_t events)
{
	struct flow *flow = loop_owner(source, struct flow, guest);
	int error = (events & (EPOLLERR | EPOLLHUP)) != 0 ? flow_socket_error(flow->guest_fd) : 0;

	switch (flow->state) {
	case FLOW_READING:
		if (error != 0)
			flow->mode->incomplete(flow, "reset before the first message was complete");
		else
			flow_read(flow);
		break;
	case FLOW_OPENING:
		if (error != 0 || (events & EPOLLHUP) != 0)
			flow_end(flow, flow_end_of_errno(error, END_RST_GUEST), VERDICT_ALLOWED, REASON_ALLOWED, true);
		break;
	case FLOW_RELAYING:
		if (error != 0)
			flow_end(flow, flow_end_of_errno(error, END_RST_GUEST), VERDICT_ALLOWED, REASON_ALLOWED, true);
		else
			flow_pump(flow, (events & (EPOLLIN | EPOLLHUP)) != 0, (events & EPOLLOUT) != 0);
		break;
	case FLOW_LINGERING:
		flow_linger(flow);
		break;
	case FLOW_ENDED:
		break;
	}
}

/* OPENING: connect has an outcome. */
static void
flow_connected(struct flow *flow, int error)
{
	if (error != 0) {
		flow_end(flow, END_CONNECT_FAILED, VERDICT_FAILED, REASON_UPSTREAM_ERROR, true);
		return;
	}
	flow->connected = true;
	flow->attempt.connect_us = attempt_since_us(flow->dialled_us);
	if (flow->durable)
		flow_establish(flow);
	else if (loop_source_set(flow_loop(flow), &flow->origin, 0) < 0)
		flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_INTERNAL_ERROR, true);
}

/* Something happened on the origin's socket. */
static void
flow_origin_handler(struct loop_source *source, uint32_t events)
{
	struct flow *flow = loop_owner(source, struct flow, origin);
	int error = (events & (EPOLLERR | EPOLLHUP)) != 0 ? flow_socket_error(flow->origin_fd) : 0;

	switch (flow->state) {
	case FLOW_OPENING:
		if (!flow->connected || error != 0)
			flow_connected(flow, error);
		break;
	case FLOW_RELAYING:
		if (error != 0)
			flow_end(flow, flow_end_of_errno(error, END_RST_ORIGIN), VERDICT_ALLOWED, REASON_ALLOWED, true);
		else
			flow_pump(flow, (events & EPOLLOUT) != 0, (events & (EPOLLIN | EPOLLHUP)) != 0);
		break;
	case FLOW_READING:
	case FLOW_LINGERING:
	case FLOW_ENDED:
		break;
	}
}

/* The time that the state allows is up. */
static void
flow_timer_handler(struct loop_timer *timer)
{
	struct flow *flow = loop_owner(timer, struct flow, timer);

	switch (flow->state) {
	case FLOW_READING:
		flow->mode->incomplete(flow, "first message not complete in time");
		break;
	case FLOW_OPENING:
		if (flow->connected)
			flow_end(flow, END_ERROR, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, true);
		else
			flow_end(flow, END_CONNECT_FAILED, VERDICT_FAILED, REASON_UPSTREAM_ERROR, true);
		break;
	case FLOW_LINGERING:
		flow_end(flow, END_REFUSED, VERDICT_DENIED, REASON_INTERNAL_ERROR, false); /* recorded before */
		break;
	case FLOW_RELAYING:
		if (flow->mode->late != NULL)
			flow->mode->late(flow);
		break;
	case FLOW_ENDED:
		break;
	}
}

void
flow_start(struct flow_list *list, int guest_fd, const struct attempt_ends *ends, const struct flow_mode *mode)
{
	struct gateway *gateway = list->sandbox->gateway;
	struct judgement verdict = verdict_plain(VERDICT_FAILED, REASON_INTERNAL_ERROR, "out of memory");
	struct flow_said said = {0};
	struct flow *flow = calloc(1, sizeof(*flow));

	if (flow == NULL) {
		flow_record_refused(list, ends, &verdict, &said);
		flow_socket_reset(guest_fd);
		return;
	}
	flow->mode = mode;
	flow->sandbox = flow->attempt.sandbox = list->sandbox;
	flow->attempt.ends = *ends;
	flow->attempt.wait.handler = flow_durable_handler;
	flow->guest_fd = guest_fd;
	flow->origin_fd = -1;
	flow->began_us = clock_mono_us();
	flow->guest = (struct loop_source){.fd = guest_fd, .handler = flow_guest_handler};
	flow->origin = (struct loop_source){.fd = -1, .handler = flow_origin_handler};
	flow->timer.handler = flow_timer_handler;
	flow->deferred.handler = flow_free_handler;
	relay_init(&flow->out);
	relay_init(&flow->back);
	flow->list = list;
	LIST_INSERT_HEAD(&list->flows, flow, next);
	list->count++;
	gateway->flow_count++;
	if (loop_source_add(gateway->loop, &flow->guest, mode->head_max == 0 ? 0 : EPOLLIN) < 0 ||
	    loop_timer_set(gateway->loop, &flow->timer, GATEWAY_HEAD_MS) < 0 || !mode->begin(flow))
		flow_refuse(flow, &verdict, &said);
}
