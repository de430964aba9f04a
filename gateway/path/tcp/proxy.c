/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP listeners of a sandbox: accept, limits, and the list of what was accepted.
 *
 * Theory of operation. The keeper's listeners are transparent: the name of an accepted socket is the destination the
 * guest dialled, which decides the mode and is the only address ever connected to. Limits are checked before anything
 * is allocated; what is beyond them is reset and recorded.
 *
 * A guest can have connections refused faster than the log can be written, and all sandboxes share the log: their
 * connections would wait behind its refusals, and the oldest records would make room for them. So only so many refusals
 * of a sandbox have a record of their own; further ones are counted (gateway/path/count/aggregate.h) until the minute is over. What is
 * allowed always has its own.
 *
 * When descriptors run out, accept fails and the listener stays readable: a busy loop. One descriptor is kept in
 * reserve; it is closed, the next connection is accepted with it and reset, and the listener rests for a while. The
 * reserve is a duplicate of stderr: it must not be a sandbox's socket, which would keep a deleted namespace alive. */
#include "gateway/path/tcp/proxy.h"
#include "gateway/path/tcp/flow.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/count/aggregate.h"
#include "gateway/path/count/window.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections taken in one round: other sources wait no longer than this takes. */
#define PROXY_ACCEPT_BATCH 64
/* How long a listener rests when descriptors or memory are short; SYNs wait in its backlog. */
#define PROXY_REST_MS 100
/* Kinds of refusals that are counted instead of listed, for each reason (gateway/path/count/aggregate.h). */
#define PROXY_REFUSALS_MAX 64
/* Refusals of a sandbox that are listed within a minute: what a program that goes on trying needs in an hour, some 2 MB
 * of log, and less than a second's work of its writer. */
#define PROXY_LISTED_MAX 4096
#define PROXY_LISTED_MS 60000

struct proxy_listener {
	struct proxy *proxy;
	int fd; /* owned; -1: none of this family */
	struct loop_source source;
	struct loop_timer rest;
};

struct proxy {
	struct sandbox *sandbox;
	struct proxy_listener listeners[2];
	struct flow_list flows;
	struct window listed;      /* refusals with a record of their own */
	struct aggregate refusals; /* those that find no room for one */
};

static_assert(REASON_MAX <= AGGREGATE_CLASSES_MAX, "a class of the aggregate for each reason");

/* Shared by all sandboxes of the process. */
static int proxy_reserve_fd = -1;

static void
proxy_reserve_take(void)
{
	if (proxy_reserve_fd < 0)
		proxy_reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

static void
proxy_rest(struct proxy_listener *listener)
{
	struct loop *loop = listener->proxy->sandbox->gateway->loop;

	if (loop_timer_set(loop, &listener->rest, PROXY_REST_MS) == 0)
		(void)loop_source_set(loop, &listener->source, 0);
}

static void
proxy_rest_handler(struct loop_timer *timer)
{
	struct proxy_listener *listener = loop_owner(timer, struct proxy_listener, rest);
	struct loop *loop = listener->proxy->sandbox->gateway->loop;

	proxy_reserve_take();
	if (loop_source_set(loop, &listener->source, EPOLLIN) < 0)
		(void)loop_timer_set(loop, timer, PROXY_REST_MS);
}

/* Both ends of an accepted socket. False when the kernel does not say. */
static bool
proxy_ends(int fd, const struct sockaddr_storage *peer, struct flow_ends *ret_ends)
{
	struct sockaddr_storage name = {0};
	socklen_t len = sizeof(name);
	struct flow_ends ends = {0};

	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0 ||
	    !addr_from_sockaddr((const struct sockaddr *)&name, &ends.dst, &ends.dport) ||
	    !addr_from_sockaddr((const struct sockaddr *)peer, &ends.src, &ends.sport))
		return false;
	*ret_ends = ends;
	return true;
}

static void
proxy_turn_away(struct proxy *proxy, int fd, const struct flow_ends *ends, enum verdict verdict, enum reason reason,
    const char *detail)
{
	struct judgement refusal = verdict_plain(verdict, reason, detail);
	struct flow_said said = {0};

	flow_record_refused(proxy->sandbox, ends, &refusal, &said);
	flow_close_reset(fd);
}

/* The record says what was refused where and how often; what each of them said of itself is gone. */
static void
proxy_count(struct proxy *proxy, const struct flow_ends *ends, enum verdict verdict, enum reason reason)
{
	struct judgement refusal = verdict_plain(verdict, reason, "too many to be listed one by one");
	struct aggregate_key kind = {
	    .src = ends->src, .dst = ends->dst, .class = (uint8_t)reason, .proto = IPPROTO_TCP, .dport = ends->dport};
	struct record record;

	balance_reclass(proxy->sandbox->balance, RECORD_ATTEMPT_CONNECTION, RECORD_ATTEMPT_REFUSED);
	if (aggregate_bump(&proxy->refusals, &kind, 1))
		return;
	gateway_flow_record(
	    proxy->sandbox, &record, &ends->src, ends->sport, &ends->dst, ends->dport, IPPROTO_TCP, &refusal);
	if (aggregate_open(&proxy->refusals, &kind, &record.flow, 1) < 0)
		log_warnx("%s: no memory to record a refused connection", proxy->sandbox->name);
}

bool
proxy_counts_refusal(struct sandbox *sandbox, const struct flow_ends *ends, enum verdict verdict, enum reason reason)
{
	struct proxy *proxy = sandbox->proxy;
	int64_t now_ms = clock_mono_ms();

	if (window_count(&proxy->listed, now_ms) < PROXY_LISTED_MAX) {
		window_add(&proxy->listed, now_ms);
		return false;
	}
	proxy_count(proxy, ends, verdict, reason);
	return true;
}

/* The log is out for so long that the recorder keeps the rest of its room for what is open. */
static void
proxy_count_away(struct proxy *proxy, int fd, const struct flow_ends *ends)
{
	flow_close_reset(fd);
	proxy_count(proxy, ends, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE);
}

/* Where there are few descriptors, at most half of those for connections: a connection has two. */
static size_t
proxy_flows_max(const struct gateway *gateway)
{
	size_t max = (size_t)gateway->fd_top / 4;

	return max < GATEWAY_SANDBOX_FLOWS_MAX ? max : GATEWAY_SANDBOX_FLOWS_MAX;
}

static void
proxy_take(struct proxy *proxy, int fd, const struct sockaddr_storage *peer)
{
	struct gateway *gateway = proxy->sandbox->gateway;
	struct flow_ends ends = {0};

	balance_arrive(proxy->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	if (!proxy_ends(fd, peer, &ends))
		proxy_turn_away(
		    proxy, fd, &ends, VERDICT_FAILED, REASON_INTERNAL_ERROR, "the kernel did not tell its addresses");
	else if (!recorder_has_room(&gateway->recorder))
		proxy_count_away(proxy, fd, &ends);
	else if (fd >= gateway->fd_top)
		proxy_turn_away(
		    proxy, fd, &ends, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "the gateway is short of descriptors");
	else if (!gateway_flows_room(gateway, proxy->flows.count))
		proxy_turn_away(
		    proxy, fd, &ends, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "connections of all sandboxes");
	else if (proxy->flows.count >= proxy_flows_max(gateway))
		proxy_turn_away(
		    proxy, fd, &ends, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "connections of this sandbox");
	else if (!recorder_ready(&gateway->recorder))
		proxy_turn_away(proxy, fd, &ends, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, NULL);
	else
		flow_start(&proxy->flows, fd, &ends);
}

/* No descriptor is left: turn one connection away with the reserve, then rest. */
static void
proxy_exhausted(struct proxy_listener *listener)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	struct flow_ends ends = {0};
	int fd;

	if (proxy_reserve_fd >= 0) {
		close(proxy_reserve_fd);
		proxy_reserve_fd = -1;
		fd = accept4(listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd >= 0) {
			balance_arrive(listener->proxy->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
			(void)proxy_ends(fd, &peer, &ends);
			proxy_turn_away(listener->proxy, fd, &ends, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS,
			    "the gateway is out of descriptors");
		}
		proxy_reserve_take();
	}
	proxy_rest(listener);
}

static void
proxy_accept_handler(struct loop_source *source, uint32_t events)
{
	struct proxy_listener *listener = loop_owner(source, struct proxy_listener, source);

	(void)events;
	for (int i = 0; i < PROXY_ACCEPT_BATCH; i++) {
		struct sockaddr_storage peer = {0};
		socklen_t len = sizeof(peer);
		int fd = accept4(listener->fd, (struct sockaddr *)&peer, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0) {
			proxy_take(listener->proxy, fd, &peer);
			continue;
		}
		if (errno == EAGAIN)
			return;
		if (errno == EMFILE || errno == ENFILE) {
			proxy_exhausted(listener);
			return;
		}
		if (errno == ENOBUFS || errno == ENOMEM) {
			proxy_rest(listener);
			return;
		}
		/* ECONNABORTED and what accept(2) lists beside it concern that one connection. */
	}
}

static int
proxy_listen(struct proxy *proxy, struct proxy_listener *listener, int fd)
{
	listener->proxy = proxy;
	listener->fd = fd;
	listener->source = (struct loop_source){.fd = -1, .handler = proxy_accept_handler};
	listener->rest.handler = proxy_rest_handler;
	if (fd < 0)
		return 0;
	flow_set_options(fd); /* accepted sockets inherit them */
	listener->source.fd = fd;
	return loop_source_add(proxy->sandbox->gateway->loop, &listener->source, EPOLLIN);
}

int
proxy_attach(struct sandbox *sandbox, int tcp4, int tcp6)
{
	struct proxy *proxy = calloc(1, sizeof(*proxy));
	int rc = tls_hello_setup();
	int rc6;

	if (proxy == NULL || rc < 0) {
		free(proxy);
		if (tcp4 >= 0)
			close(tcp4);
		if (tcp6 >= 0)
			close(tcp6);
		return rc < 0 ? rc : -ENOMEM;
	}
	proxy_reserve_take();
	proxy->sandbox = sandbox;
	proxy->flows.sandbox = sandbox;
	window_init(&proxy->listed, PROXY_LISTED_MS);
	aggregate_init(&proxy->refusals, sandbox->gateway->loop, sandbox->balance, PROXY_REFUSALS_MAX);
	sandbox->proxy = proxy;
	rc = proxy_listen(proxy, &proxy->listeners[0], tcp4);
	rc6 = proxy_listen(proxy, &proxy->listeners[1], tcp6);
	if (rc == 0)
		rc = rc6;
	if (rc < 0)
		proxy_detach(sandbox, END_ERROR);
	return rc;
}

void
proxy_detach(struct sandbox *sandbox, enum end_reason end)
{
	struct proxy *proxy = sandbox->proxy;

	if (proxy == NULL)
		return;
	for (int i = 0; i < 2; i++) {
		struct proxy_listener *listener = &proxy->listeners[i];

		loop_timer_stop(sandbox->gateway->loop, &listener->rest);
		loop_source_remove(sandbox->gateway->loop, &listener->source);
		if (listener->fd >= 0)
			close(listener->fd);
	}
	while (proxy->flows.first != NULL)
		flow_detach(proxy->flows.first, end);
	aggregate_close(&proxy->refusals);
	free(proxy);
	sandbox->proxy = NULL;
}

void
proxy_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done)
{
	struct flow *flow = sandbox->proxy == NULL ? NULL : sandbox->proxy->flows.first;

	while (flow != NULL) {
		struct flow *next = flow->next;

		if ((flow->state == FLOW_OPENING || flow->state == FLOW_RELAYING) && !flow_still_allowed(flow)) {
			if (done->cut_count < MSG_CUT_MAX)
				done->cut[done->cut_count] = (struct msg_cut_flow){.record_id = flow->record_id,
				    .dst = flow->ends.dst,
				    .dport = flow->ends.dport,
				    .name = flow->verdict.name};
			done->cut_count++;
			if (cut)
				flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
		}
		flow = next;
	}
}

void
proxy_recount(struct sandbox *sandbox)
{
	for (const struct flow *flow = sandbox->proxy == NULL ? NULL : sandbox->proxy->flows.first; flow != NULL;
	     flow = flow->next)
		quota_recount(sandbox, &flow->ticket);
}

size_t
proxy_flow_count(const struct sandbox *sandbox)
{
	return sandbox->proxy == NULL ? 0 : sandbox->proxy->flows.count;
}
