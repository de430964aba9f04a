/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. DNS over TCP is a stream of messages, each preceded by its length (RFC 7766). A connection
 * collects bytes until a message is whole, hands each one over as a query of its own (CASES C-03) and goes on without
 * waiting for the answer; answers leave in the order in which they get ready. Reading stops while too many queries are
 * under way or too many answers wait to be read, so that a guest which does not read its answers cannot make them pile
 * up.
 *
 * A connection ends after a length of zero, a message longer than any query, an error, when nothing whole came for a
 * while (a byte now and then does not count), or when the guest has closed its side and everything is answered. It is
 * closed at once and freed at the end of the round; its queries go on without it. */
#include "gateway/path/dns/dns.h"

#include "base/reader.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Connections of one sandbox; further ones are closed at once. */
#define DNS_TCP_CONNS_MAX 128
/* Queries of one connection under way; it is not read from meanwhile (CASES C-04). */
#define DNS_TCP_IN_FLIGHT_MAX 64
#define DNS_TCP_IDLE_MS 10000
/* Longest message taken; see DNS_UDP_QUERY_MAX in dns.c. */
#define DNS_TCP_QUERY_MAX 4096
/* Unsent answers at which reading stops, and at which the connection is given up (all queries under way may still end,
 * with some 8 KiB each at the very most). */
#define DNS_TCP_OUT_PAUSE 65536
#define DNS_TCP_OUT_MAX (DNS_TCP_OUT_PAUSE + DNS_TCP_IN_FLIGHT_MAX * 8192)
/* Connections accepted, and reads of one connection, in one round of the loop. */
#define DNS_TCP_ACCEPT_ROUND 16
#define DNS_TCP_READ_ROUND 4
/* Without descriptors: look again after this time. */
#define DNS_TCP_ACCEPT_PAUSE_MS 100

struct dns_conn {
	LIST_ENTRY(dns_conn) next;
	struct dns_server *server;
	struct dns_asker asker;    /* the same for all its queries */
	struct loop_source source; /* fd -1: closed, waits to be freed */
	struct loop_timer idle;
	struct loop_deferred deferred;
	size_t in_flight;
	bool busy; /* conn_process is on the stack */
	bool eof;  /* the guest closed its side */
	size_t in_len;
	uint8_t in[2 + DNS_TCP_QUERY_MAX];
	uint8_t *out; /* owned; out_at..out_len is unsent */
	size_t out_at, out_len, out_size;
};

/* The loop that the connection is in. */
static struct loop *
conn_loop(const struct dns_conn *conn)
{
	return conn->server->sandbox->gateway->loop;
}

/* Is it closed and waits to be freed? */
static bool
conn_closed(const struct dns_conn *conn)
{
	return conn->source.fd < 0;
}

/* Frees the connection at the end of the round. */
static void
conn_free_deferred(struct loop_deferred *deferred)
{
	struct dns_conn *conn = loop_owner(deferred, struct dns_conn, deferred);

	free(conn->out);
	free(conn);
}

/* Closes the connection, at once; its queries go on without a reply. */
static void
conn_close(struct dns_conn *conn)
{
	struct dns_server *server = conn->server;

	if (conn_closed(conn))
		return;
	dns_query_orphan(server, conn);
	loop_timer_stop(conn_loop(conn), &conn->idle);
	close(loop_source_remove(conn_loop(conn), &conn->source));
	LIST_REMOVE(conn, next);
	server->conn_count--;
	conn->deferred.handler = conn_free_deferred;
	loop_defer(conn_loop(conn), &conn->deferred);
}

/* Send what waits. False: the connection is closed.
 * syscalls: sendto */
static bool
conn_flush(struct dns_conn *conn)
{
	while (conn->out_at < conn->out_len) {
		ssize_t n = send(conn->source.fd, conn->out + conn->out_at, conn->out_len - conn->out_at, MSG_NOSIGNAL);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return true;
		if (n < 0) {
			conn_close(conn);
			return false;
		}
		conn->out_at += (size_t)n;
		loop_timer_set(conn_loop(conn), &conn->idle, DNS_TCP_IDLE_MS);
	}
	conn->out_at = conn->out_len = 0;
	return true;
}

/* May one more message be taken: are few enough under way and few enough answers unsent? */
static bool
conn_may_take(const struct dns_conn *conn)
{
	return conn->in_flight < DNS_TCP_IN_FLIGHT_MAX && conn->out_len - conn->out_at < DNS_TCP_OUT_PAUSE;
}

/* Take one message out of the buffer at offset at. Returns what it used, or 0 when it is not whole. */
static size_t
conn_take_message(struct dns_conn *conn, size_t at)
{
	struct reader r = reader_make(conn->in + at, conn->in_len - at);
	size_t size = reader_u16(&r);
	const uint8_t *message;

	if (!reader_ok(&r))
		return 0;
	if (size == 0 || size > DNS_TCP_QUERY_MAX) {
		if (size > 0) {
			balance_arrive(conn->server->sandbox->balance, RECORD_ATTEMPT_DNS, 1);
			dns_query_refuse_unread(conn->server, &conn->asker, VERDICT_DENIED, REASON_DNS_DENIED,
			    "a message longer than any query");
		}
		/* Earlier queries are still answered; the rest of the stream is not looked at. */
		conn->eof = true;
		conn->in_len = at;
		return 0;
	}
	message = reader_bytes(&r, size);
	if (message == NULL)
		return 0;
	conn->in_flight++;
	balance_arrive(conn->server->sandbox->balance, RECORD_ATTEMPT_DNS, 1);
	loop_timer_set(conn_loop(conn), &conn->idle, DNS_TCP_IDLE_MS);
	dns_query_take(conn->server, &conn->asker, message, size);
	return 2 + size;
}

/* Take all whole messages, send what is ready, and see what to wait for next. */
static void
conn_process(struct dns_conn *conn)
{
	size_t at = 0;

	conn->busy = true;
	while (!conn_closed(conn) && conn_may_take(conn)) {
		size_t used = conn_take_message(conn, at);

		if (used == 0)
			break;
		at += used;
	}
	conn->busy = false;
	if (conn_closed(conn))
		return;
	memmove(conn->in, conn->in + at, conn->in_len - at);
	conn->in_len -= at;
	if (!conn_flush(conn))
		return;
	/* Only half a message can be left in the buffer when nothing is under way: it will never be whole. */
	if (conn->eof && conn->in_flight == 0 && conn->out_len == 0) {
		conn_close(conn);
		return;
	}
	loop_source_set(conn_loop(conn), &conn->source,
	    (!conn->eof && conn_may_take(conn) ? (uint32_t)EPOLLIN : 0u) |
		(conn->out_len > 0 ? (uint32_t)EPOLLOUT : 0u));
}

/* Read once. False: nothing more for now.
 * syscalls: recvfrom */
static bool
conn_read(struct dns_conn *conn)
{
	ssize_t n = recv(conn->source.fd, conn->in + conn->in_len, sizeof(conn->in) - conn->in_len, 0);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n < 0) {
		conn_close(conn);
		return false;
	}
	conn->eof = n == 0;
	conn->in_len += (size_t)n;
	return n > 0;
}

/* Reads, takes whole messages and sends, a few turns in one round. */
static void
conn_handler(struct loop_source *source, uint32_t events)
{
	struct dns_conn *conn = loop_owner(source, struct dns_conn, source);

	if ((events & EPOLLERR) != 0) {
		conn_close(conn);
		return;
	}
	/* A buffer without room holds a whole message, which conn_process takes when it may. */
	for (int i = 0; i < DNS_TCP_READ_ROUND; i++) {
		if (conn_closed(conn) || conn->eof || !conn_may_take(conn) || !conn_read(conn))
			break;
		conn_process(conn);
	}
	if (!conn_closed(conn))
		conn_process(conn);
}

/* Nothing whole came for DNS_TCP_IDLE_MS: closes the connection unless queries are under way. */
static void
conn_idle_handler(struct loop_timer *timer)
{
	struct dns_conn *conn = loop_owner(timer, struct dns_conn, idle);

	/* Queries under way end by their own deadline; their answers count as activity. */
	if (conn->in_flight > 0)
		loop_timer_set(conn_loop(conn), timer, DNS_TCP_IDLE_MS);
	else
		conn_close(conn);
}

/* Queues a reply on its connection. */
static void
conn_reply(void *peer, const struct dns_asker *asker, const uint8_t *bytes, size_t len)
{
	struct dns_conn *conn = peer;
	size_t need = conn->out_len + 2 + len;

	(void)asker;
	if (conn_closed(conn) || len > UINT16_MAX)
		return;
	if (need > conn->out_size) {
		size_t size = need < 2048 ? 4096 : need * 2;
		uint8_t *out = need > DNS_TCP_OUT_MAX ? NULL : realloc(conn->out, size);

		if (out == NULL) {
			conn_close(conn);
			return;
		}
		conn->out = out;
		conn->out_size = size;
	}
	conn->out[conn->out_len++] = (uint8_t)(len >> 8);
	conn->out[conn->out_len++] = (uint8_t)len;
	memcpy(conn->out + conn->out_len, bytes, len);
	conn->out_len += len;
}

/* A query of the connection has ended: the next message may be taken. */
static void
conn_query_done(void *peer)
{
	struct dns_conn *conn = peer;

	conn->in_flight--;
	if (!conn_closed(conn) && !conn->busy)
		conn_process(conn);
}

static const struct dns_transport conn_transport = {.reply = conn_reply, .done = conn_query_done};

/* Takes an accepted connection, or closes it.
 * syscalls: getsockname */
static void
conn_new(struct dns_server *server, int fd, const struct sockaddr *from)
{
	struct dns_conn *conn = calloc(1, sizeof(*conn));
	struct sockaddr_storage to;
	socklen_t to_len = sizeof(to);

	if (conn == NULL) {
		close(fd);
		return;
	}
	conn->server = server;
	conn->asker.proto = IPPROTO_TCP;
	conn->asker.via = &conn_transport;
	conn->asker.peer = conn;
	conn->source.fd = fd;
	conn->source.handler = conn_handler;
	conn->idle.handler = conn_idle_handler;
	if (!addr_from_sockaddr(from, &conn->asker.src, &conn->asker.sport) ||
	    getsockname(fd, (struct sockaddr *)&to, &to_len) < 0 ||
	    !addr_from_sockaddr((struct sockaddr *)&to, &conn->asker.server, NULL) ||
	    loop_source_add(conn_loop(conn), &conn->source, EPOLLIN) < 0) {
		close(fd);
		free(conn);
		return;
	}
	LIST_INSERT_HEAD(&server->conns, conn, next);
	server->conn_count++;
	if (loop_timer_set(conn_loop(conn), &conn->idle, DNS_TCP_IDLE_MS) < 0)
		conn_close(conn);
}

/* One connection too many: recorded, because the guest meant to ask something.
 * syscalls: getsockname */
static void
conn_refuse(struct dns_server *server, int fd, const struct sockaddr *from)
{
	struct dns_asker asker = {.proto = IPPROTO_TCP};
	struct sockaddr_storage to;
	socklen_t to_len = sizeof(to);

	balance_arrive(server->sandbox->balance, RECORD_ATTEMPT_DNS, 1);
	/* An address that the kernel does not tell stays empty. */
	(void)addr_from_sockaddr(from, &asker.src, &asker.sport);
	if (getsockname(fd, (struct sockaddr *)&to, &to_len) == 0)
		(void)addr_from_sockaddr((struct sockaddr *)&to, &asker.server, NULL);
	dns_query_refuse_unread(server, &asker, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS, "too many DNS connections");
	close(fd);
}

/* Accepts what waits, and pauses when descriptors or memory are short.
 * syscalls: accept4 */
static void
listener_handler(struct loop_source *source, uint32_t events)
{
	struct dns_listener *listener = loop_owner(source, struct dns_listener, source);
	struct dns_server *server = listener->server;
	struct loop *loop = server->sandbox->gateway->loop;

	(void)events;
	for (int i = 0; i < DNS_TCP_ACCEPT_ROUND; i++) {
		struct sockaddr_storage from;
		socklen_t from_len = sizeof(from);
		int fd = accept4(source->fd, (struct sockaddr *)&from, &from_len, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd >= 0 && server->conn_count < DNS_TCP_CONNS_MAX) {
			conn_new(server, fd, (struct sockaddr *)&from);
		} else if (fd >= 0) {
			conn_refuse(server, fd, (struct sockaddr *)&from);
		} else {
			/* Without descriptors the listener stays readable: do not spin. */
			if (errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == ENOBUFS) {
				loop_source_set(loop, source, 0);
				loop_timer_set(loop, &listener->pause, DNS_TCP_ACCEPT_PAUSE_MS);
			}
			return;
		}
	}
}

/* The pause is over: accepts again. */
static void
listener_pause_handler(struct loop_timer *timer)
{
	struct dns_listener *listener = loop_owner(timer, struct dns_listener, pause);

	loop_source_set(listener->server->sandbox->gateway->loop, &listener->source, EPOLLIN);
}

int
dns_tcp_start(struct dns_server *server, struct dns_listener *listener, int fd)
{
	listener->server = server;
	listener->source.fd = fd;
	listener->source.handler = listener_handler;
	listener->pause.handler = listener_pause_handler;
	return loop_source_add(server->sandbox->gateway->loop, &listener->source, EPOLLIN);
}

void
dns_tcp_stop(struct dns_server *server)
{
	struct loop *loop = server->sandbox->gateway->loop;

	for (size_t i = 0; i < 2; i++) {
		int fd = loop_source_remove(loop, &server->tcp[i].source);

		loop_timer_stop(loop, &server->tcp[i].pause);
		if (fd >= 0)
			close(fd);
	}
	while (!LIST_EMPTY(&server->conns))
		conn_close(LIST_FIRST(&server->conns));
}
