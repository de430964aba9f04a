/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One UDP flow from its first datagram to its closing record.
 *
 * Theory of operation. The first datagram is judged. Refused: it is counted (aggregate.h) and gone; the relay cannot
 * send ICMP, the kernel's own rules do that for what never gets here. Allowed: socket, last look at the exact sockaddr,
 * connect, opening record; the datagram waits (UDP_HELD) until the record is durable, and a few more after it. Then
 * datagrams pass both ways (UDP_OPEN). The flow ends when it is quiet too long, when the origin's ICMP says that the
 * port is closed, by a policy edit, or with its sandbox. Every send is non-blocking; what does not fit into a socket
 * buffer is dropped, as networks do, and not counted as passed on. */
#include "gateway/path/udp/udp.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct udp_held {
	struct udp_held *next;
	size_t len;
	uint8_t bytes[];
};

/* The list that the ends hash to. */
static size_t
udp_bucket(const struct attempt_ends *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 2166136261u; /* FNV-1a; the table is bounded, see aggregate.c */

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash % UDP_BUCKETS;
}

struct udp_flow *
udp_flow_find(struct udp_relay *relay, const struct attempt_ends *key)
{
	struct udp_flow *flow = relay->buckets[udp_bucket(key)];

	while (flow != NULL && memcmp(&flow->attempt.ends, key, sizeof(*key)) != 0)
		flow = flow->next_in_bucket;
	return flow;
}

/* Frees the flow at the end of the round. */
static void
udp_flow_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct udp_flow, deferred));
}

/* Frees the datagrams that are held. */
static void
udp_held_drop(struct udp_flow *flow)
{
	while (flow->held != NULL) {
		struct udp_held *held = flow->held;

		flow->held = held->next;
		free(held);
	}
	flow->held_tail = &flow->held;
	flow->held_count = flow->held_bytes = 0;
}

/* Holds a datagram, unless there is no room for it. */
static void
udp_held_add(struct udp_flow *flow, struct udp_datagram datagram)
{
	struct udp_held *held;

	/* The first one is held, of any size. */
	if (flow->held_count >= UDP_HELD_MAX ||
	    (flow->held_count > 0 && flow->held_bytes + datagram.len > UDP_HELD_BYTES_MAX))
		return;
	held = malloc(sizeof(*held) + datagram.len);
	if (held == NULL)
		return;
	held->next = NULL;
	held->len = datagram.len;
	memcpy(held->bytes, datagram.bytes, datagram.len);
	*flow->held_tail = held;
	flow->held_tail = &held->next;
	flow->held_count++;
	flow->held_bytes += datagram.len;
}

/* Datagrams passed on, for the records of the attempt. */
static void
udp_flow_packets(struct attempt *attempt, struct record_close *close)
{
	const struct udp_flow *flow = loop_owner(attempt, struct udp_flow, attempt);

	close->packets_out = flow->packets_out;
	close->packets_in = flow->packets_in;
}

void
udp_flow_close(struct udp_flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct udp_relay *relay = flow->relay;
	struct udp_flow **at = &relay->buckets[udp_bucket(&flow->attempt.ends)];

	if (flow->state == UDP_CLOSED)
		return;
	flow->state = UDP_CLOSED;
	recorder_cancel(&relay->sandbox->gateway->recorder, &flow->attempt.wait);
	loop_timer_stop(relay->loop, &flow->timer);
	close(loop_source_remove(relay->loop, &flow->source));
	udp_held_drop(flow);
	if (attempt_close(&flow->attempt, end, verdict, reason) < 0)
		log_warnx("%s: a UDP flow's closing record was lost", relay->sandbox->name);
	quota_close(relay->sandbox, &flow->attempt.ticket);
	while (*at != flow)
		at = &(*at)->next_in_bucket;
	*at = flow->next_in_bucket;
	relay->flow_count--;
	relay->sandbox->gateway->flow_count--;
	loop_defer(relay->loop, &flow->deferred);
}

/* The origin, or the network before it, said no (ICMP), or our own send failed for good. */
static void
udp_flow_failed(struct udp_flow *flow)
{
	if (flow->answered)
		udp_flow_close(flow, END_RST_ORIGIN, VERDICT_ALLOWED, REASON_ALLOWED);
	else
		udp_flow_close(flow, END_CONNECT_FAILED, VERDICT_FAILED, REASON_UPSTREAM_ERROR);
}

/* A datagram passes whole or not at all: one that does not fit a limit closes the flow, and false. */
static bool
udp_flow_affords(struct udp_flow *flow, size_t len, enum quota_way way)
{
	uint64_t left = quota_left(flow->relay->sandbox, &flow->attempt.ticket, way);

	if (len < left || left == UINT64_MAX)
		return true;
	udp_flow_close(
	    flow, END_POLICY, VERDICT_ALLOWED, way == QUOTA_UPLOAD ? REASON_LIMIT_UPLOAD : REASON_LIMIT_DOWNLOAD);
	return false;
}

/* Counts the bytes so far against the quota. */
static void
udp_flow_count(struct udp_flow *flow)
{
	enum reason ignored; /* asked for before */

	(void)quota_count(flow->relay->sandbox, &flow->attempt.ticket, flow->bytes_out, flow->bytes_in, &ignored);
}

/* False when the flow was closed.
 * syscalls: sendto */
static bool
udp_flow_send(struct udp_flow *flow, struct udp_datagram datagram)
{
	ssize_t n;

	if (!udp_flow_affords(flow, datagram.len, QUOTA_UPLOAD))
		return false;
	n = send(flow->source.fd, datagram.bytes, datagram.len, MSG_DONTWAIT | MSG_NOSIGNAL);

	flow->last_ms = clock_mono_ms();
	if (n >= 0) {
		flow->bytes_out += (uint64_t)n;
		flow->packets_out++;
		udp_flow_count(flow);
		return true;
	}
	/* Errors that concern one datagram only: full buffers, too large for the path. */
	if (errno == EAGAIN || errno == EMSGSIZE || errno == ENOBUFS || errno == EINTR)
		return true;
	udp_flow_failed(flow);
	return false;
}

void
udp_flow_forward(struct udp_flow *flow, struct udp_datagram datagram)
{
	switch (flow->state) {
	case UDP_HELD:
		udp_held_add(flow, datagram);
		break;
	case UDP_OPEN:
		udp_flow_send(flow, datagram);
		break;
	case UDP_CLOSED:
		break;
	}
}

/* Pass one answer to the guest. False when there is none left or the flow was closed.
 * syscalls: recvfrom */
static bool
udp_flow_receive(struct udp_flow *flow)
{
	uint8_t bytes[UDP_DATAGRAM_MAX];
	ssize_t n = recv(flow->source.fd, bytes, sizeof(bytes), MSG_DONTWAIT);

	if (n < 0) {
		if (errno != EAGAIN && errno != EINTR)
			udp_flow_failed(flow);
		return false;
	}
	if (!flow->answered)
		flow->attempt.first_byte_us = clock_mono_us() - flow->attempt.opened_us;
	flow->answered = true;
	flow->last_ms = clock_mono_ms();
	if (!udp_flow_affords(flow, (size_t)n, QUOTA_DOWNLOAD))
		return false;
	if (pktinfo_send(
		flow->guest->source.fd, bytes, (size_t)n, &flow->peer, flow->peer_len, &flow->attempt.ends.dst) == 0) {
		flow->bytes_in += (uint64_t)n;
		flow->packets_in++;
	}
	udp_flow_count(flow);
	return true;
}

/* Passes on the answers of one round. */
static void
udp_flow_source_handler(struct loop_source *source, uint32_t events)
{
	struct udp_flow *flow = loop_owner(source, struct udp_flow, source);

	(void)events; /* an error is what recv returns */
	for (int i = 0; i < UDP_BATCH_MAX && udp_flow_receive(flow); i++)
		;
}

/* A lease's expiry must not cut a live flow, yet the kernel refuses datagrams to an address whose element is gone:
 * there is no socket of its own to tell a flow by. So the element is renewed while the flow lives; what is in no flow
 * is still judged by the lease. */
static void
udp_flow_keep_open(const struct udp_flow *flow)
{
	struct sandbox *sandbox = flow->relay->sandbox;
	struct tap_lease element = {
	    .addr = flow->attempt.ends.dst, .proto = IPPROTO_UDP, .port = flow->attempt.ends.dport};

	/* An address rule's element does not expire. One that lasts beyond the next look must not be shortened. */
	if (flow->attempt.verdict.name.len == 0 ||
	    lease_left_s(&sandbox->leases, &flow->attempt.ends.dst) > UDP_KEEP_S / 2)
		return;
	(void)link_lease_add(&sandbox->gateway->link, NULL, sandbox->id, &element, 1, UDP_KEEP_S);
}

/* Ends a flow that was quiet too long, or waits on. */
static void
udp_flow_timer_handler(struct loop_timer *timer)
{
	struct udp_flow *flow = loop_owner(timer, struct udp_flow, timer);
	int64_t limit_ms = flow->answered ? UDP_IDLE_MS : UDP_UNANSWERED_MS;
	int64_t left_ms = flow->last_ms + limit_ms - clock_mono_ms();

	if (left_ms > 0 && loop_timer_set(flow->relay->loop, timer, left_ms) == 0) {
		udp_flow_keep_open(flow);
		return;
	}
	if (flow->state == UDP_HELD) /* nothing left the host: the record never became durable */
		udp_flow_close(flow, END_TIMEOUT, VERDICT_FAILED, REASON_AUDIT_UNAVAILABLE);
	else
		udp_flow_close(flow, END_TIMEOUT, VERDICT_ALLOWED, REASON_ALLOWED);
}

/* The opening record is durable: from here on datagrams pass. */
static void
udp_flow_durable_handler(struct recorder_wait *wait)
{
	struct udp_flow *flow = loop_owner(wait, struct udp_flow, attempt.wait);

	flow->state = UDP_OPEN;
	if (loop_source_add(flow->relay->loop, &flow->source, EPOLLIN) < 0) {
		udp_flow_close(flow, END_ERROR, VERDICT_FAILED, REASON_INTERNAL_ERROR);
		return;
	}
	for (const struct udp_held *held = flow->held; held != NULL; held = held->next)
		if (!udp_flow_send(flow, (struct udp_datagram){.bytes = held->bytes, .len = held->len}))
			return; /* closed, and the held ones with it */
	udp_held_drop(flow);
}

/* A connected socket in the host's namespace, or -errno; -EACCES: the never list.
 * syscalls: connect socket(AF_INET,SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK,0)
 * syscalls: socket(AF_INET6,SOCK_DGRAM|SOCK_CLOEXEC|SOCK_NONBLOCK,0) */
static int
udp_upstream(const struct attempt_ends *key, int fd_top)
{
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&key->dst, key->dport, &sa);
	int fd = socket(sa.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int rc;

	if (fd < 0)
		return -errno;
	/* The exact sockaddr, once more. (CASES A-01) */
	if (addr_verdict((struct sockaddr *)&sa) != NULL)
		rc = -EACCES;
	else if (fd >= fd_top)
		rc = -EMFILE;
	else
		rc = connect(fd, (struct sockaddr *)&sa, len) < 0 ? -errno : 0;
	if (rc == 0)
		return fd;
	close(fd);
	return rc;
}

/* Take a token for a new flow. */
static bool
udp_token(struct udp_relay *relay)
{
	int64_t now_ms = clock_mono_ms();

	/* UDP_OPEN_PER_S flows per second are as many thousandths per millisecond. */
	relay->tokens_milli += (now_ms - relay->tokens_ms) * UDP_OPEN_PER_S;
	relay->tokens_ms = now_ms;
	if (relay->tokens_milli > UDP_OPEN_BURST * 1000)
		relay->tokens_milli = UDP_OPEN_BURST * 1000;
	if (relay->tokens_milli < 1000)
		return false;
	relay->tokens_milli -= 1000;
	return true;
}

/* Limits and the log's health, for a flow that policy allows. Changes *verdict when it may not begin now. */
static bool
udp_may_begin(struct udp_relay *relay, struct judgement *verdict)
{
	struct gateway *gateway = relay->sandbox->gateway;

	if (!recorder_ready(&gateway->recorder)) {
		verdict->verdict = VERDICT_FAILED;
		verdict->reason = REASON_AUDIT_UNAVAILABLE;
	} else if (relay->flow_count >= UDP_FLOWS_MAX || !gateway_flows_room(gateway, relay->flow_count)) {
		verdict->verdict = VERDICT_LIMITED;
		verdict->reason = REASON_LIMIT_CONNECTIONS;
	} else if (!udp_token(relay)) {
		verdict->verdict = VERDICT_LIMITED;
		verdict->reason = REASON_LIMIT_RATE;
	} else {
		return true;
	}
	return false;
}

/* A new flow in state HELD, not linked and without a socket yet. NULL without memory. */
static struct udp_flow *
udp_flow_new(struct udp_socket *guest, const struct attempt_ends *ends, const struct pktinfo_from *from)
{
	struct udp_flow *flow = calloc(1, sizeof(*flow));

	if (flow == NULL)
		return NULL;
	flow->relay = guest->port->relay;
	flow->guest = guest;
	flow->peer = from->peer;
	flow->peer_len = from->peer_len;
	flow->state = UDP_HELD;
	flow->source = (struct loop_source){.fd = -1, .handler = udp_flow_source_handler};
	flow->timer.handler = udp_flow_timer_handler;
	flow->deferred.handler = udp_flow_free_handler;
	flow->held_tail = &flow->held;
	flow->last_ms = clock_mono_ms();
	flow->attempt.sandbox = flow->relay->sandbox;
	flow->attempt.ends = *ends;
	flow->attempt.wait.handler = udp_flow_durable_handler;
	flow->attempt.out = &flow->bytes_out;
	flow->attempt.in = &flow->bytes_in;
	flow->attempt.packets = udp_flow_packets;
	return flow;
}

/* Says in *verdict why the socket towards the origin could not be had. How the refusal ends. */
static enum end_reason
udp_flow_no_socket(struct judgement *verdict, int error)
{
	verdict->verdict = VERDICT_FAILED;
	verdict->reason = REASON_UPSTREAM_ERROR;
	verdict->detail = strerror(error);
	if (error == EACCES) {
		verdict->verdict = VERDICT_DENIED;
		verdict->reason = REASON_NEVER_ADDRESS;
		verdict->detail = NULL;
	} else if (error == EMFILE || error == ENFILE) {
		verdict->verdict = VERDICT_LIMITED;
		verdict->reason = REASON_LIMIT_CONNECTIONS;
		verdict->detail = "the gateway is short of descriptors";
	}
	return error == EACCES ? END_REFUSED : END_CONNECT_FAILED;
}

/* Takes the quota, makes the socket, sends the opening record and links the flow: END_OPEN. On failure *verdict says
 * why, and the result how the refusal ends. */
static enum end_reason
udp_flow_begin(struct udp_flow *flow, struct judgement *verdict)
{
	struct udp_relay *relay = flow->relay;
	const struct attempt_ends *ends = &flow->attempt.ends;
	struct udp_flow **bucket = &relay->buckets[udp_bucket(ends)];
	struct record record;
	int rc;

	if (!quota_open(relay->sandbox, verdict, &flow->attempt.ticket))
		return END_REFUSED;
	rc = udp_upstream(ends, relay->sandbox->gateway->fd_top);
	if (rc < 0)
		return udp_flow_no_socket(verdict, -rc);
	flow->source.fd = rc;
	rc = loop_timer_set(relay->loop, &flow->timer, UDP_UNANSWERED_MS);
	if (rc == 0) {
		attempt_record(relay->sandbox, &record, ends, IPPROTO_UDP, verdict);
		rc = attempt_open(&flow->attempt, &record);
	}
	if (rc < 0) {
		verdict->verdict = VERDICT_FAILED;
		verdict->reason = rc == -ENOBUFS ? REASON_AUDIT_UNAVAILABLE : REASON_INTERNAL_ERROR;
		return END_REFUSED;
	}
	flow->attempt.verdict = *verdict;
	attempt_note_source(&flow->attempt, flow->source.fd);
	flow->next_in_bucket = *bucket;
	*bucket = flow;
	relay->flow_count++;
	relay->sandbox->gateway->flow_count++;
	return END_OPEN;
}

void
udp_flow_open(struct udp_socket *guest, const struct attempt_ends *ends, const struct pktinfo_from *from,
    struct udp_datagram datagram)
{
	struct udp_relay *relay = guest->port->relay;
	struct judgement verdict = judge_attempt(relay->sandbox, &ends->dst, IPPROTO_UDP, ends->dport, NULL);
	enum end_reason end = END_REFUSED;
	struct udp_flow *flow;

	if (verdict.verdict == VERDICT_ALLOWED && udp_may_begin(relay, &verdict)) {
		flow = udp_flow_new(guest, ends, from);
		if (flow == NULL) {
			verdict.verdict = VERDICT_FAILED;
			verdict.reason = REASON_INTERNAL_ERROR;
		} else if ((end = udp_flow_begin(flow, &verdict)) == END_OPEN) {
			udp_held_add(flow, datagram);
			return;
		} else {
			quota_close(relay->sandbox, &flow->attempt.ticket);
			loop_timer_stop(relay->loop, &flow->timer);
			if (flow->source.fd >= 0)
				close(flow->source.fd);
			free(flow);
		}
	}
	attempt_refusals_count(&relay->refusals, ends, &verdict, end);
}
