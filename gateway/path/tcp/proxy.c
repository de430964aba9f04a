/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP listeners of a sandbox: accept, limits, and the list of what was accepted.
 *
 * Theory of operation. The keeper's listeners are transparent: the name of an accepted socket is the destination the
 * guest dialled, which decides the mode and is the only address ever connected to. Limits are checked before anything
 * is allocated; connections over a limit are reset and recorded.
 *
 * A guest can have connections refused faster than the log can be written, and all sandboxes share the log: the others'
 * connections would wait for its refusals, and its records would push out the oldest ones. So only so many refusals of
 * a sandbox have a record of their own; further ones are counted (aggregate.h) until the minute is over. What is
 * allowed always has its own.
 *
 * When descriptors run out, accept fails and the listener stays readable: a busy loop. One descriptor is kept in
 * reserve; it is closed, the next connection is accepted with it and reset, and the listener rests for a while. The
 * reserve is a duplicate of stderr: it must not be a sandbox's socket, which would keep a deleted namespace alive. */
#include "gateway/path/tcp/proxy.h"
#include "gateway/path/tcp/flow.h"

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
/* Refusals of a sandbox that are listed within ATTEMPT_LISTED_MS: what a program that goes on trying needs in an hour,
 * some 2 MB of log, and less than a second's work of its writer. */
#define PROXY_LISTED_MAX 4096

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
};

/* Shared by all sandboxes of the process. */
static int proxy_reserve_fd = -1;

/* Makes the descriptor in reserve, unless it is there.
 * syscalls: fcntl(F_DUPFD_CLOEXEC) */
static void
proxy_reserve_take(void)
{
	if (proxy_reserve_fd < 0)
		proxy_reserve_fd = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0);
}

/* Stops accepting for PROXY_REST_MS. */
static void
proxy_rest(struct proxy_listener *listener)
{
	struct loop *loop = listener->proxy->sandbox->gateway->loop;

	if (loop_timer_set(loop, &listener->rest, PROXY_REST_MS) == 0)
		(void)loop_source_set(loop, &listener->source, 0);
}

/* The rest is over: accepts again. */
static void
proxy_rest_handler(struct loop_timer *timer)
{
	struct proxy_listener *listener = loop_owner(timer, struct proxy_listener, rest);
	struct loop *loop = listener->proxy->sandbox->gateway->loop;

	proxy_reserve_take();
	if (loop_source_set(loop, &listener->source, EPOLLIN) < 0)
		(void)loop_timer_set(loop, timer, PROXY_REST_MS);
}

/* Both ends of an accepted socket. False when the kernel does not say.
 * syscalls: getsockname */
static bool
proxy_ends(int fd, const struct sockaddr_storage *peer, struct attempt_ends *ret_ends)
{
	struct sockaddr_storage name = {0};
	socklen_t len = sizeof(name);
	struct attempt_ends ends = {0};

	if (getsockname(fd, (struct sockaddr *)&name, &len) < 0 ||
	    !addr_from_sockaddr((const struct sockaddr *)&name, &ends.dst, &ends.dport) ||
	    !addr_from_sockaddr((const struct sockaddr *)peer, &ends.src, &ends.sport))
		return false;
	*ret_ends = ends;
	return true;
}

/* Records a refusal by a limit or a fault of ours, and resets the guest. */
static void
proxy_turn_away(struct proxy *proxy, int fd, const struct attempt_ends *ends, enum verdict verdict, enum reason reason,
    const char *detail)
{
	struct judgement refusal = verdict_plain(verdict, reason, detail);
	struct flow_said said = {0};

	flow_record_refused(&proxy->flows, ends, &refusal, &said);
	flow_socket_reset(fd);
}

/* The log is out for so long that the recorder keeps the rest of its room for what is open: refused without a record of
 * its own. */
static void
proxy_count_away(struct proxy *proxy, int fd, const struct attempt_ends *ends)
{
	struct judgement refusal =
	    verdict_plain(VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, "too many to be listed one by one");

	flow_socket_reset(fd);
	attempt_refusals_count(&proxy->flows.refusals, ends, &refusal, END_REFUSED);
}

/* The mode of the dialled port. */
static const struct flow_mode *
proxy_mode(uint16_t port)
{
	static const struct flow_mode *const modes[] = {&flow_tls_mode, &flow_http_mode};

	for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++)
		if (modes[i]->port == port)
			return modes[i];
	return &flow_raw_mode;
}

/* Checks the limits of an accepted connection and begins it, or turns it away. */
static void
proxy_take(struct proxy *proxy, int fd, const struct sockaddr_storage *peer)
{
	struct gateway *gateway = proxy->sandbox->gateway;
	struct attempt_ends ends = {0};
	/* Where there are few descriptors, at most half of those for connections: a connection has two. */
	size_t flows_max = (size_t)gateway->fd_top / 4;

	flows_max = flows_max < GATEWAY_SANDBOX_FLOWS_MAX ? flows_max : GATEWAY_SANDBOX_FLOWS_MAX;
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
	else if (proxy->flows.count >= flows_max)
		proxy_turn_away(
		    proxy, fd, &ends, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "connections of this sandbox");
	else if (!recorder_ready(&gateway->recorder))
		proxy_turn_away(proxy, fd, &ends, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE, NULL);
	else
		flow_start(&proxy->flows, fd, &ends, proxy_mode(ends.dport));
}

/* No descriptor is left: turn one connection away with the reserve, then rest.
 * syscalls: accept4 */
static void
proxy_exhausted(struct proxy_listener *listener)
{
	struct sockaddr_storage peer = {0};
	socklen_t len = sizeof(peer);
	struct attempt_ends ends = {0};
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

/* Accepts the connections of one round.
 * syscalls: accept4 */
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

/* Watches a listener; fd < 0: the family is not there. 0 or -errno. */
static int
proxy_listen(struct proxy *proxy, struct proxy_listener *listener, int fd)
{
	listener->proxy = proxy;
	listener->fd = fd;
	listener->source = (struct loop_source){.fd = -1, .handler = proxy_accept_handler};
	listener->rest.handler = proxy_rest_handler;
	if (fd < 0)
		return 0;
	flow_socket_prepare(fd); /* accepted sockets inherit them */
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
	attempt_refusals_init(&proxy->flows.refusals, sandbox, IPPROTO_TCP, PROXY_LISTED_MAX);
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
	while (!LIST_EMPTY(&proxy->flows.flows))
		flow_detach(LIST_FIRST(&proxy->flows.flows), end);
	attempt_refusals_close(&proxy->flows.refusals);
	free(proxy);
	sandbox->proxy = NULL;
}

void
proxy_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done)
{
	struct flow *flow = sandbox->proxy == NULL ? NULL : LIST_FIRST(&sandbox->proxy->flows.flows);

	while (flow != NULL) {
		struct flow *next = LIST_NEXT(flow, next);

		if ((flow->state == FLOW_OPENING || flow->state == FLOW_RELAYING) &&
		    !judge_still_allows(sandbox, &flow->attempt.ends.dst, IPPROTO_TCP, flow->attempt.ends.dport,
			&flow->attempt.verdict.name, flow->attempt.verdict.source,
			(flow->flags & RECORD_FLAG_ECH) != 0)) {
			attempt_list_cut(&flow->attempt, done);
			if (cut)
				flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
		}
		flow = next;
	}
}

void
proxy_recount(struct sandbox *sandbox)
{
	const struct flow *flow;

	if (sandbox->proxy == NULL)
		return;
	LIST_FOREACH(flow, &sandbox->proxy->flows.flows, next)
	quota_recount(sandbox, &flow->attempt.ticket);
}

size_t
proxy_flow_count(const struct sandbox *sandbox)
{
	return sandbox->proxy == NULL ? 0 : sandbox->proxy->flows.count;
}

struct attempt_refusals *
proxy_refusals(struct sandbox *sandbox)
{
	return &sandbox->proxy->flows.refusals;
}
