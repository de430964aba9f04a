/* SPDX-License-Identifier: GPL-3.0-or-later */
/* UDP to the ports that a rule names.
 *
 * Theory of operation. The keeper hands over two sockets for each port, bound to it at any address inside the sandbox's
 * namespace; since every destination is local there, they receive what the guest sends to that port anywhere, and
 * IP_PKTINFO tells the address it meant. A flow is (guest address and port, destination address and port). Its first
 * datagram is judged like a connection; when allowed it gets an upstream socket of its own, made in the host's
 * namespace and connected, so that only that origin can answer. Answers leave through the port's socket with the
 * destination as their source. Broadcast is never enabled; multicast is on the never list.
 *
 * This file has the ports and the intake; udp_flow.c has the life of one flow. Nothing is freed while events of the
 * round may still name it: sources go at once, memory through loop_defer. */
#include "gateway/path/udp/udp.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/pktinfo.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Hands a datagram of the guest to its flow, or opens one. */
static void
udp_intake(struct udp_socket *guest, const struct attempt_ends *key, const struct pktinfo_from *from,
    struct udp_datagram datagram)
{
	struct udp_relay *relay = guest->port->relay;
	struct udp_flow *flow = udp_flow_find(relay, key);
	struct judgement spoofed = verdict_plain(VERDICT_DENIED, REASON_SPOOFED_SOURCE, NULL);

	if (flow != NULL) {
		udp_flow_forward(flow, datagram);
		return;
	}
	balance_arrive(relay->sandbox->balance, RECORD_ATTEMPT_CONNECTION, 1);
	if (!addr_equal(&key->src, &relay->sandbox->guest4) &&
	    !addr_equal(&key->src, &relay->sandbox->guest6)) /* the kernel's rules said so already */
		attempt_refusals_count(&relay->refusals, key, &spoofed, END_REFUSED);
	else
		udp_flow_open(guest, key, from, datagram);
}

/* Read and handle one datagram of the guest. False when there is none. */
static bool
udp_receive(struct udp_socket *guest)
{
	uint8_t bytes[UDP_DATAGRAM_MAX];
	struct pktinfo_from from;
	struct attempt_ends key = {0};
	ssize_t n = pktinfo_receive(guest->source.fd, bytes, sizeof(bytes), &from);

	if (n < 0)
		return errno != EAGAIN && errno != EBADF; /* a pending error of an answer that did not arrive: next */
	if (from.cut || from.dst.family == 0 ||
	    !addr_from_sockaddr((struct sockaddr *)&from.peer, &key.src, &key.sport))
		return true;
	key.dst = from.dst;
	key.dport = guest->port->port;
	udp_intake(guest, &key, &from, (struct udp_datagram){.bytes = bytes, .len = (size_t)n});
	return true;
}

/* Takes the datagrams of one round. */
static void
udp_guest_handler(struct loop_source *source, uint32_t events)
{
	struct udp_socket *guest = loop_owner(source, struct udp_socket, source);

	(void)events;
	for (int i = 0; i < UDP_BATCH_MAX && udp_receive(guest); i++)
		;
}

/* Frees the relay at the end of the round. */
static void
udp_relay_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct udp_relay, deferred));
}

/* Frees the port at the end of the round. */
static void
udp_port_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct udp_port, deferred));
}

int
udp_attach(struct sandbox *sandbox)
{
	struct udp_relay *relay = calloc(1, sizeof(*relay));

	if (relay == NULL)
		return -ENOMEM;
	relay->sandbox = sandbox;
	relay->loop = sandbox->gateway->loop;
	relay->tokens_milli = UDP_OPEN_BURST * 1000;
	relay->tokens_ms = clock_mono_ms();
	relay->deferred.handler = udp_relay_free_handler;
	attempt_refusals_init(&relay->refusals, sandbox, IPPROTO_UDP, 0);
	sandbox->udp = relay;
	return 0;
}

/* Take a port's sockets off the loop and the port off the relay's list. */
static void
udp_port_close(struct udp_port *port)
{
	struct udp_relay *relay = port->relay;

	for (size_t i = 0; i < 2; i++) {
		int fd = loop_source_remove(relay->loop, &port->sockets[i].source);

		if (fd >= 0)
			close(fd);
	}
	for (struct udp_port **at = &relay->ports; *at != NULL; at = &(*at)->next)
		if (*at == port) {
			*at = port->next;
			break;
		}
	loop_defer(relay->loop, &port->deferred);
}

/* The port with this number; NULL: none. */
static struct udp_port *
udp_port_find(const struct udp_relay *relay, uint16_t number)
{
	struct udp_port *port = relay->ports;

	while (port != NULL && port->port != number)
		port = port->next;
	return port;
}

/* Watch one of a port's sockets; fd < 0: the family is not there. Takes fd. */
static int
udp_port_watch(struct udp_port *port, size_t which, int fd)
{
	struct udp_socket *guest = &port->sockets[which];
	int rc;

	guest->port = port;
	guest->source = (struct loop_source){.fd = fd, .handler = udp_guest_handler};
	if (fd < 0)
		return 0;
	pktinfo_prepare(fd);
	rc = loop_source_add(port->relay->loop, &guest->source, EPOLLIN);
	if (rc < 0) {
		guest->source.fd = -1;
		close(fd);
	}
	return rc;
}

int
udp_add_port(struct sandbox *sandbox, uint16_t number, int udp4, int udp6)
{
	struct udp_relay *relay = sandbox->udp;
	bool known = relay != NULL && udp_port_find(relay, number) != NULL;
	struct udp_port *port = relay == NULL || known ? NULL : calloc(1, sizeof(*port));
	int rc4, rc6;

	if (port == NULL) {
		if (udp4 >= 0)
			close(udp4);
		if (udp6 >= 0)
			close(udp6);
		return relay == NULL ? -EINVAL : known ? -EEXIST : -ENOMEM;
	}
	port->relay = relay;
	port->port = number;
	port->deferred.handler = udp_port_free_handler;
	port->next = relay->ports;
	relay->ports = port;
	rc4 = udp_port_watch(port, 0, udp4);
	rc6 = udp_port_watch(port, 1, udp6);
	if (rc4 < 0 || rc6 < 0)
		udp_port_close(port);
	return rc4 < 0 ? rc4 : rc6;
}

/* Close the flows of a port, or all (port NULL). */
static void
udp_close_flows(struct udp_relay *relay, const struct udp_port *port, enum end_reason end)
{
	enum reason reason = end == END_POLICY ? REASON_REVOKED : REASON_ALLOWED;

	for (size_t i = 0; i < UDP_BUCKETS; i++) {
		struct udp_flow *next;

		for (struct udp_flow *flow = relay->buckets[i]; flow != NULL; flow = next) {
			next = flow->next_in_bucket;
			if (port == NULL || flow->guest->port == port)
				udp_flow_close(flow, end, VERDICT_ALLOWED, reason);
		}
	}
}

void
udp_del_port(struct sandbox *sandbox, uint16_t number, enum end_reason end)
{
	struct udp_port *port = sandbox->udp == NULL ? NULL : udp_port_find(sandbox->udp, number);

	if (port == NULL)
		return;
	udp_close_flows(sandbox->udp, port, end);
	udp_port_close(port);
}

void
udp_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done)
{
	struct udp_relay *relay = sandbox->udp;

	for (size_t i = 0; relay != NULL && i < UDP_BUCKETS; i++) {
		struct udp_flow *next;

		for (struct udp_flow *flow = relay->buckets[i]; flow != NULL; flow = next) {
			next = flow->next_in_bucket;
			/* A flow without a name is one that an address rule let through. */
			if (judge_still_allows(sandbox, &flow->attempt.ends.dst, IPPROTO_UDP, flow->attempt.ends.dport,
				&flow->attempt.verdict.name,
				flow->attempt.verdict.name.len > 0 ? NAME_SOURCE_LEASE : NAME_SOURCE_CIDR, false))
				continue;
			attempt_list_cut(&flow->attempt, done);
			if (cut)
				udp_flow_close(flow, END_POLICY, VERDICT_ALLOWED, reason);
		}
	}
}

void
udp_recount(struct sandbox *sandbox)
{
	for (size_t i = 0; sandbox->udp != NULL && i < UDP_BUCKETS; i++)
		for (const struct udp_flow *flow = sandbox->udp->buckets[i]; flow != NULL; flow = flow->next_in_bucket)
			quota_recount(sandbox, &flow->attempt.ticket);
}

void
udp_detach(struct sandbox *sandbox, enum end_reason end)
{
	struct udp_relay *relay = sandbox->udp;

	if (relay == NULL)
		return;
	udp_close_flows(relay, NULL, end);
	while (relay->ports != NULL)
		udp_port_close(relay->ports);
	attempt_refusals_close(&relay->refusals);
	sandbox->udp = NULL;
	relay->sandbox = NULL;
	loop_defer(relay->loop, &relay->deferred);
}
