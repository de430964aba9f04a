/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One UDP flow from its first datagram to its closing record.
 *
 * Theory of operation. The first datagram is judged. Refused: it is counted (gateway/path/count/aggregate.h) and gone; the relay
 * cannot send ICMP, the kernel's own rules do that for what never gets here. Allowed: socket, last look at the exact
 * sockaddr, connect, opening record; the datagram waits (UDP_HELD) until the record is durable, and a few more behind
 * it. Then datagrams pass both ways (UDP_OPEN). The flow ends when it was quiet too long, when the origin's ICMP says
 * nobody is there, by a policy edit, or with its sandbox. Every send is non-blocking; what does not fit into a socket
 * buffer is dropped, as networks do, and not counted as passed on. */
#include "gateway/path/udp/udp.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/judge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

struct udp_held {
	struct udp_held *next;
	size_t len;
	uint8_t bytes[];
};

static size_t
udp_bucket(const struct udp_key *key)
{
	const uint8_t *bytes = (const uint8_t *)key;
	uint32_t hash = 2166136261u; /* FNV-1a; the table is bounded, see gateway/path/count/aggregate.c */

	for (size_t i = 0; i < sizeof(*key); i++)
		hash = (hash ^ bytes[i]) * 16777619u;
	return hash % UDP_BUCKETS;
}

struct udp_flow *
udp_flow_find(struct udp_relay *relay, const struct udp_key *key)
{
	struct udp_flow *flow = relay->buckets[udp_bucket(key)];

	while (flow != NULL && memcmp(&flow->key, key, sizeof(*key)) != 0)
		flow = flow->next_in_bucket;
	return flow;
}

static void
udp_flow_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct udp_flow, deferred));
}

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

static void
udp_held_add(struct udp_flow *flow, struct udp_datagram datagram)
{
	struct udp_held *held;

	/* The first one is held whatever its size. */
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

static void
udp_flow_unlink(struct udp_flow *flow)
{
	struct udp_flow **at = &flow->relay->buckets[udp_bucket(&flow->key)];

	while (*at != flow)
		at = &(*at)->next_in_bucket;
	*at = flow->next_in_bucket;
	flow->relay->flow_count--;
	flow->relay->sandbox->gateway->flow_count--;
}

/* How it stands: for a record of progress, and, with an end, for the last one. */
static struct record_close
udp_flow_record_count(const struct udp_flow *flow)
{
	return (struct record_close){
	    .id = flow->id,
	    .ts_us = clock_real_us(),
	    .bytes_out = flow->bytes_out,
	    .bytes_in = flow->bytes_in,
	    .packets_out = flow->packets_out,
	    .packets_in = flow->packets_in,
	    .duration_us = clock_mono_us() - flow->opened_us,
	    .first_byte_us = flow->first_byte_us,
	    .up_src = flow->up_src,
	    .up_sport = flow->up_sport,
	};
}

static uint64_t
udp_flow_interim_count(struct interim *interim)
{
	const struct udp_flow *flow = loop_owner(interim, struct udp_flow, interim);

	return flow->bytes_out + flow->bytes_in;
}

static void
udp_flow_interim_tell(struct interim *interim)
{
	const struct udp_flow *flow = loop_owner(interim, struct udp_flow, interim);
	struct record record = {.kind = RECORD_PROGRESS, .close = udp_flow_record_count(flow)};

	record.close.verdict = VERDICT_ALLOWED;
	record.close.reason = REASON_ALLOWED;
	(void)balance_send(flow->relay->sandbox->balance, &record, 0, NULL);
}

static void
udp_flow_record_close(const struct udp_flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE, .close = udp_flow_record_count(flow)};

	record.close.end = (uint8_t)end;
	record.close.reason = (uint8_t)reason;
	record.close.verdict = (uint8_t)verdict;
	if (balance_send(flow->relay->sandbox->balance, &record, 0, NULL) < 0)
		log_warnx("%s: a UDP flow's closing record was lost", flow->relay->sandbox->name);
}

void
udp_flow_close(struct udp_flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct udp_relay *relay = flow->relay;

	if (flow->state == UDP_CLOSED)
		return;
	flow->state = UDP_CLOSED;
	recorder_cancel(&relay->sandbox->gateway->recorder, &flow->wait);
	loop_timer_stop(relay->loop, &flow->timer);
	close(loop_source_remove(relay->loop, &flow->source));
	udp_held_drop(flow);
	interim_remove(relay->sandbox->gateway, &flow->interim);
	udp_flow_record_close(flow, end, verdict, reason);
	quota_close(relay->sandbox, &flow->ticket);
	udp_flow_unlink(flow);
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

/* Errors that concern one datagram only: full buffers, too large for the path. */
static bool
udp_error_passes(int error)
{
	return error == EAGAIN || error == EMSGSIZE || error == ENOBUFS || error == EINTR;
}

/* A datagram passes whole or not at all: one that does not fit a limit closes the flow, and false. */
static bool
udp_flow_affords(struct udp_flow *flow, size_t len, enum quota_way way)
{
	uint64_t left = quota_left(flow->relay->sandbox, &flow->ticket, way);

	if (len < left || left == UINT64_MAX)
		return true;
	udp_flow_close(
	    flow, END_POLICY, VERDICT_ALLOWED, way == QUOTA_UPLOAD ? REASON_LIMIT_UPLOAD : REASON_LIMIT_DOWNLOAD);
	return false;
}

static void
udp_flow_count(struct udp_flow *flow)
{
	enum reason ignored; /* asked for before */

	(void)quota_count(flow->relay->sandbox, &flow->ticket, flow->bytes_out, flow->bytes_in, &ignored);
}

/* False when the flow was closed. */
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
	if (udp_error_passes(errno))
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

/* Pass one answer to the guest. False when there is none left or the flow was closed. */
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
		flow->first_byte_us = clock_mono_us() - flow->opened_us;
	flow->answered = true;
	flow->last_ms = clock_mono_ms();
	if (!udp_flow_affords(flow, (size_t)n, QUOTA_DOWNLOAD))
		return false;
	if (udp_answer(flow, (struct udp_datagram){.bytes = bytes, .len = (size_t)n}) == 0) {
		flow->bytes_in += (uint64_t)n;
		flow->packets_in++;
	}
	udp_flow_count(flow);
	return true;
}

static void
udp_flow_source_handler(struct loop_source *source, uint32_t events)
{
	struct udp_flow *flow = loop_owner(source, struct udp_flow, source);

	(void)events; /* an error is what recv returns */
	for (int i = 0; i < UDP_BATCH_MAX && udp_flow_receive(flow); i++)
		;
}

/* A lease's expiry must not cut a live flow, yet the kernel refuses datagrams to an address whose element is gone:
 * there is no socket of its own to tell a flow by. So the element is renewed while the flow lives; who is not in a flow
 * is still judged by the lease. */
static void
udp_flow_keep_open(const struct udp_flow *flow)
{
	struct sandbox *sandbox = flow->relay->sandbox;
	struct tap_lease element = {.addr = flow->key.dst, .proto = IPPROTO_UDP, .port = flow->key.dport};

	/* An address rule's element does not expire. One that lasts beyond the next look must not be shortened. */
	if (flow->name.len == 0 || lease_left_s(&sandbox->leases, &flow->key.dst) > UDP_KEEP_S / 2)
		return;
	(void)link_lease_add(&sandbox->gateway->link, NULL, sandbox->id, &element, 1, UDP_KEEP_S);
}

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
	struct udp_flow *flow = loop_owner(wait, struct udp_flow, wait);

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

/* A connected socket in the host's namespace, or -errno; -EACCES: the never list. */
static int
udp_upstream(const struct udp_key *key, int fd_top)
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

/* Refuse what policy allows but the system did not do. */
static void
udp_refuse_failed(struct udp_relay *relay, const struct udp_key *key, struct judgement *verdict, int error)
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
	udp_refuse(relay, key, verdict, error == EACCES ? END_REFUSED : END_CONNECT_FAILED);
}

static void
udp_flow_link(struct udp_flow *flow)
{
	struct udp_flow **bucket = &flow->relay->buckets[udp_bucket(&flow->key)];

	flow->next_in_bucket = *bucket;
	*bucket = flow;
	flow->relay->flow_count++;
	flow->relay->sandbox->gateway->flow_count++;
}

/* Everything about a new flow that cannot fail; takes fd. */
static struct udp_flow *
udp_flow_new(struct udp_socket *guest, const struct udp_key *key, int fd)
{
	struct udp_flow *flow = calloc(1, sizeof(*flow));

	if (flow == NULL)
		return NULL;
	flow->relay = guest->port->relay;
	flow->guest = guest;
	flow->key = *key;
	flow->state = UDP_HELD;
	flow->source = (struct loop_source){.fd = fd, .handler = udp_flow_source_handler};
	flow->timer.handler = udp_flow_timer_handler;
	flow->wait.handler = udp_flow_durable_handler;
	flow->deferred.handler = udp_flow_free_handler;
	flow->held_tail = &flow->held;
	flow->opened_us = clock_mono_us();
	flow->last_ms = clock_mono_ms();
	return flow;
}

/* The kernel has chosen our end when it connected. */
static void
udp_flow_note_source(struct udp_flow *flow)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);

	if (getsockname(flow->source.fd, (struct sockaddr *)&sa, &len) == 0)
		(void)addr_from_sockaddr((const struct sockaddr *)&sa, &flow->up_src, &flow->up_sport);
}

/* Write the opening record and begin to wait for it. 0 or -errno; the flow is not linked then. */
static int
udp_flow_begin(struct udp_flow *flow, const struct judgement *verdict)
{
	struct udp_relay *relay = flow->relay;
	const struct udp_key *key = &flow->key;
	struct record record;
	int rc;

	rc = loop_timer_set(relay->loop, &flow->timer, UDP_UNANSWERED_MS);
	if (rc < 0)
		return rc;
	gateway_flow_record(
	    relay->sandbox, &record, &key->src, key->sport, &key->dst, key->dport, IPPROTO_UDP, verdict);
	flow->id = record.flow.id;
	flow->name = verdict->name;
	rc = balance_send(relay->sandbox->balance, &record, 0, &flow->wait);
	if (rc < 0) {
		loop_timer_stop(relay->loop, &flow->timer);
		return rc;
	}
	udp_flow_link(flow);
	udp_flow_note_source(flow);
	flow->interim.count = udp_flow_interim_count;
	flow->interim.tell = udp_flow_interim_tell;
	interim_add(relay->sandbox->gateway, &flow->interim);
	return 0;
}

void
udp_flow_open(struct udp_socket *guest, const struct udp_key *key, const struct sockaddr_storage *peer,
    socklen_t peer_len, struct udp_datagram datagram)
{
	struct udp_relay *relay = guest->port->relay;
	struct judgement verdict = judge_attempt(relay->sandbox, &key->dst, IPPROTO_UDP, key->dport, NULL);
	struct quota_ticket ticket = {0};
	struct udp_flow *flow;
	int fd, rc;

	if (verdict.verdict != VERDICT_ALLOWED || !udp_may_begin(relay, &verdict) ||
	    !quota_open(relay->sandbox, &verdict, &ticket)) {
		udp_refuse(relay, key, &verdict, END_REFUSED);
		return;
	}
	fd = udp_upstream(key, relay->sandbox->gateway->fd_top);
	if (fd < 0) {
		quota_close(relay->sandbox, &ticket);
		udp_refuse_failed(relay, key, &verdict, -fd);
		return;
	}
	flow = udp_flow_new(guest, key, fd);
	rc = flow == NULL ? -ENOMEM : udp_flow_begin(flow, &verdict);
	if (rc < 0) {
		close(fd);
		free(flow);
		quota_close(relay->sandbox, &ticket);
		verdict.verdict = VERDICT_FAILED;
		verdict.reason = rc == -ENOBUFS ? REASON_AUDIT_UNAVAILABLE : REASON_INTERNAL_ERROR;
		udp_refuse(relay, key, &verdict, END_REFUSED);
		return;
	}
	flow->ticket = ticket;
	flow->peer = *peer;
	flow->peer_len = peer_len;
	udp_held_add(flow, datagram);
}
