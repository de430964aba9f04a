/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The sandbox's namespace delivers every packet to port 53, with any destination, to the sockets
 * that the keeper made there. A datagram's destination comes with it (IP_PKTINFO) and becomes the source of the reply,
 * so that a stub which asked 8.8.8.8 gets its answer from 8.8.8.8 (CASES C-05). Nothing that arrives here is ever
 * forwarded: each message becomes a query of ours or a refusal (dns_query.c). */
#include "gateway/path/dns/dns.h"

#include "gateway/path/dns/dns_upstream.h"
#include "gateway/path/pktinfo.h"

#include <errno.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* Largest datagram looked at. A query is a header, one question, one OPT record; the rest is room for padding. A longer
 * one arrives cut, does not parse, and is refused. */
#define DNS_UDP_QUERY_MAX 4096

/* Sends a reply as a datagram from the address that was asked. What the socket does not take is lost. */
static void
udp_reply(void *peer, const struct dns_asker *asker, const uint8_t *bytes, size_t len)
{
	const struct dns_udp *udp = peer;
	struct sockaddr_storage to;
	socklen_t to_len = addr_to_sockaddr(&asker->src, asker->sport, &to);

	if (len <= DNS_UDP_MAX)
		(void)pktinfo_send(udp->source.fd, bytes, len, &to, to_len, &asker->server);
}

static const struct dns_transport udp_transport = {.reply = udp_reply};

/* Read one datagram. False: there is none. */
static bool
udp_receive(struct dns_udp *udp)
{
	uint8_t bytes[DNS_UDP_QUERY_MAX];
	struct pktinfo_from from;
	struct dns_asker asker = {.proto = IPPROTO_UDP, .via = &udp_transport, .peer = udp};
	ssize_t n = pktinfo_receive(udp->source.fd, bytes, sizeof(bytes), &from);

	if (n < 0)
		return errno == EINTR;
	balance_arrive(udp->server->sandbox->balance, RECORD_ATTEMPT_DNS, 1);
	if (addr_from_sockaddr((struct sockaddr *)&from.peer, &asker.src, &asker.sport) && from.dst.family != 0) {
		asker.server = from.dst;
		udp->last_src = asker.src;
		dns_query_take(udp->server, &asker, bytes, (size_t)n);
	}
	return true;
}

/* The kernel's count, or known, the last one, where it tells none.
 * syscalls: getsockopt(SOL_SOCKET,SO_MEMINFO) */
static uint32_t
udp_dropped(int fd, uint32_t known)
{
	uint32_t info[SK_MEMINFO_VARS] = {0};
	socklen_t len = sizeof(info);

	return getsockopt(fd, SOL_SOCKET, SO_MEMINFO, info, &len) < 0 ? known : info[SK_MEMINFO_DROPS];
}

/* Datagrams that came while the socket's queue was full (or with a wrong checksum) are lost without an answer; yet they
 * came in. The kernel counts them. */
static void
udp_count_dropped(struct dns_udp *udp)
{
	const struct dns_asker asker = {.proto = IPPROTO_UDP, .src = udp->last_src};
	uint32_t total = udp_dropped(udp->source.fd, udp->dropped);
	uint32_t dropped = total - udp->dropped; /* wraps as the kernel's does */

	if (dropped == 0)
		return;
	udp->dropped = total;
	balance_arrive(udp->server->sandbox->balance, RECORD_ATTEMPT_DNS, dropped);
	dns_budget_over(
	    &udp->server->budget, DNS_OVER_RATE, &asker, dropped, "more at once than the resolver's queue holds");
}

/* The pause is over: reads again. */
static void
udp_rested_handler(struct loop_timer *timer)
{
	struct dns_udp *udp = loop_owner(timer, struct dns_udp, pause);

	loop_source_set(udp->server->sandbox->gateway->loop, &udp->source, EPOLLIN);
}

/* Records are made faster than they are written: rest, after as many as one may make at once. */
static void
udp_pace(struct dns_udp *udp, int received)
{
	struct gateway *gateway = udp->server->sandbox->gateway;

	udp->unpaced += received;
	if (!recorder_ready(&gateway->recorder) || gateway->recorder.queue_len < DNS_UDP_PACE_QUEUE)
		udp->unpaced = 0;
	if (udp->unpaced < DNS_UDP_ROUND)
		return;
	udp->unpaced = 0;
	if (loop_timer_set(gateway->loop, &udp->pause, DNS_UDP_PACE_MS) == 0)
		loop_source_set(gateway->loop, &udp->source, 0);
}

/* Takes the datagrams of one round. */
static void
udp_handler(struct loop_source *source, uint32_t events)
{
	struct dns_udp *udp = loop_owner(source, struct dns_udp, source);
	int received = 0;

	(void)events;
	while (received < DNS_UDP_ROUND && udp_receive(udp))
		received++;
	udp_count_dropped(udp);
	udp_pace(udp, received);
}

/* Takes fd and watches it. 0 or -errno. */
static int
udp_start(struct dns_server *server, struct dns_udp *udp, int fd)
{
	pktinfo_prepare(fd);
	udp->server = server;
	udp->dropped = udp_dropped(fd, 0); /* an earlier gateway's */
	udp->source.fd = fd;
	udp->source.handler = udp_handler;
	udp->pause.handler = udp_rested_handler;
	return loop_source_add(server->sandbox->gateway->loop, &udp->source, EPOLLIN);
}

/* Close those of the descriptors that no source has taken over yet. */
static void
fds_close(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

int
dns_attach(struct sandbox *sandbox, int udp4, int udp6, int tcp4, int tcp6)
{
	int fds[4] = {udp4, udp6, tcp4, tcp6};
	struct dns_server *server = calloc(1, sizeof(*server));
	struct gateway *gateway = sandbox->gateway;
	int rc = server == NULL ? -ENOMEM : 0;

	if (rc == 0 && gateway->dns_upstream == NULL)
		rc = dns_upstream_new(
		    gateway->loop, gateway->resolvers, gateway->resolver_count, &gateway->dns_upstream);
	if (rc == 0)
		rc = dns_budget_init(&server->budget, server);
	if (rc < 0) {
		free(server);
		fds_close(fds, 4);
		return rc;
	}
	server->sandbox = sandbox;
	for (size_t i = 0; i < 2; i++)
		server->udp[i].source.fd = server->tcp[i].source.fd = -1;
	sandbox->dns = server;
	for (size_t i = 0; rc == 0 && i < 4; i++) {
		if (fds[i] < 0)
			continue;
		rc = i < 2 ? udp_start(server, &server->udp[i], fds[i])
			   : dns_tcp_start(server, &server->tcp[i - 2], fds[i]);
		fds[i] = -1;
	}
	if (rc < 0) {
		fds_close(fds, 4);
		dns_detach(sandbox);
	}
	return rc;
}

void
dns_detach(struct sandbox *sandbox)
{
	struct dns_server *server = sandbox->dns;
	struct loop *loop = sandbox->gateway->loop;

	if (server == NULL)
		return;
	dns_tcp_stop(server);
	dns_query_drop_all(server);
	for (size_t i = 0; i < 2; i++)
		if (server->udp[i].source.fd >= 0)
			udp_count_dropped(&server->udp[i]);
	dns_budget_close(&server->budget);
	for (size_t i = 0; i < 2; i++) {
		int fd = loop_source_remove(loop, &server->udp[i].source);

		loop_timer_stop(loop, &server->udp[i].pause);
		if (fd >= 0)
			close(fd);
	}
	sandbox->dns = NULL;
	free(server);
}
