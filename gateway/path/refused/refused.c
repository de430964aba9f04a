/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel refused, on the record.
 *
 * Theory of operation. Each refusing nftables rule counts every packet in a named counter and logs some of them (the
 * log is rate-limited, and the netlink socket may overflow). A logged packet becomes a row, or raises the count of the
 * row of its kind (aggregate.h). What was counted but not logged is found by comparing: the keeper is asked for the
 * counters, and RECONCILE_MS later, when every packet counted by then and logged at all has long been read, the
 * difference goes to the class's row without addresses. So the sum of a class's rows is the kernel's count, and a late
 * log message is never counted twice. Comparing goes on until a round finds nothing new; the next logged packet begins
 * it again (a quiet rule's rate limit always lets the next packet through).
 *
 * The kernel hands log messages over in batches, a moment late. So a log outlives its sandbox by REFUSED_LINGER_MS: at
 * detach what is known is written at once and the counters are asked for the last time (the keeper answers before it
 * removes the table); what comes in after that completes the rows.
 *
 * Trust: packet bytes are the guest's (nflog.h reads them). When the auditor cannot take records, rows stay in memory,
 * bounded, and are sent later. */
#include "gateway/path/refused/refused.h"
#include "gateway/path/attempt.h"
#include "gateway/path/gateway.h"

#include "base/clock.h"
#include "gateway/path/refused/nflog.h"
#include "gateway/path/count/aggregate.h"

#include <assert.h>
#include <errno.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

/* Rows with addresses per sandbox and class. */
#define REFUSED_ENTRIES_MAX 128
/* Datagrams read for one event; each carries up to REFUSED_DATAGRAM_MAX bytes of log messages. */
#define REFUSED_BATCH_MAX 32
#define REFUSED_DATAGRAM_MAX 65536
#define REFUSED_RECONCILE_MS 5000
/* Datagrams read at detach: what the socket still holds, bounded. */
#define REFUSED_DRAIN_MAX 256
/* More than the kernel keeps a batch of log messages back. */
#define REFUSED_LINGER_MS 300
/* QUIC's port; browsers fall back to TCP when it is refused. */
#define REFUSED_QUIC_PORT 443

/* Kinds of rows within a class: a packet, a TCP segment of no connection, a frame that is not IP. */
enum refused_row { REFUSED_ROW_PACKET, REFUSED_ROW_STRAY, REFUSED_ROW_FRAME, REFUSED_ROW_MAX };

struct refused_log {
	struct sandbox *sandbox; /* NULL: detached, lingering */
	struct gateway *gateway;
	int64_t id;                    /* the sandbox's, also after it */
	uint32_t generation;           /* when it was detached */
	struct loop_source source;     /* the NFLOG socket, owned */
	struct loop_timer timer;       /* reconciliation */
	struct link_request request;   /* for counters */
	struct loop_deferred deferred; /* frees */
	struct aggregate aggregate;
	struct balance *balance;          /* held */
	uint64_t logged[TAP_COUNTER_MAX]; /* packets whose log message came in */
	uint64_t arrived;                 /* told to the balance */
	uint64_t seen[TAP_COUNTER_MAX];   /* packets in rows, since attach */
	uint64_t base[TAP_COUNTER_MAX];   /* counters when this gateway's time began; wraps when a table was remade */
	uint64_t sample[TAP_COUNTER_MAX]; /* the counters' latest answer */
	bool sampled;                     /* sample is not compared yet */
	bool active;                      /* something was logged since the last comparison */
};

static const enum reason refused_reasons[] = {
    [TAP_COUNTER_SPOOFED] = REASON_SPOOFED_SOURCE,
    [TAP_COUNTER_NEVER] = REASON_NEVER_ADDRESS,
    [TAP_COUNTER_TCP] = REASON_NOT_LEASED,
    [TAP_COUNTER_UDP] = REASON_UDP_DENIED,
    [TAP_COUNTER_ICMP] = REASON_PROTO_DENIED,
    [TAP_COUNTER_PROTO] = REASON_PROTO_DENIED,
};
static_assert(
    TAP_COUNTER_MAX * REFUSED_ROW_MAX <= AGGREGATE_CLASSES_MAX, "a class of the aggregate for each kind of row");
static_assert(sizeof(refused_reasons) / sizeof(refused_reasons[0]) == TAP_COUNTER_MAX, "a reason for each counter");

static uint8_t refused_proto(enum tap_counter class)
{
	switch (class) {
	case TAP_COUNTER_TCP:
		return IPPROTO_TCP;
	case TAP_COUNTER_UDP:
		return IPPROTO_UDP;
	case TAP_COUNTER_ICMP:
		return IPPROTO_ICMP;
	case TAP_COUNTER_SPOOFED:
	case TAP_COUNTER_NEVER:
	case TAP_COUNTER_PROTO:
	case TAP_COUNTER_MAX:
		break;
	}
	return 0;
}

/* What every row of a class has in common. */
static struct record_flow
refused_flow(const struct refused_log *log, enum tap_counter class)
{
	return (struct record_flow){
	    .sandbox = log->id,
	    .proto = refused_proto(class),
	    .verdict = VERDICT_DENIED,
	    .reason = (uint8_t)refused_reasons[class],
	    .end = END_REFUSED,
	    .generation = log->sandbox == NULL ? log->generation : log->sandbox->generation,
	};
}

/* Does a rule of the sandbox's policy name the UDP port? */
static bool
refused_udp_named(const struct sandbox *sandbox, uint16_t port)
{
	size_t count = 0;
	const uint16_t *ports = sandbox == NULL ? NULL : snapshot_udp_ports(sandbox->policy, &count);

	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

/* Say why, where the reason alone does not tell. */
static void
refused_detail(
    const struct refused_log *log, const struct nflog_packet *packet, enum refused_row row, struct record_flow *flow)
{
	const struct never_prefix *never = packet->class == TAP_COUNTER_NEVER ? addr_never(&packet->dst) : NULL;
	const char *text = "";

	if (row == REFUSED_ROW_FRAME) {
		snprintf(flow->detail, sizeof(flow->detail), "a frame without a readable IP header, EtherType 0x%04x",
		    packet->ethertype);
		return;
	}
	if (never != NULL)
		text = never->why;
	else if (packet->class == TAP_COUNTER_TCP && row == REFUSED_ROW_STRAY)
		text = "a segment of no connection, not an attempt";
	else if (packet->class == TAP_COUNTER_UDP && packet->dport == REFUSED_QUIC_PORT)
		text = "QUIC is not carried: clients fall back to TCP";
	else if (packet->class == TAP_COUNTER_UDP && refused_udp_named(log->sandbox, packet->dport))
		text = "a rule names the port; this sandbox did not resolve an allowed name to the address";
	snprintf(flow->detail, sizeof(flow->detail), "%s", text);
}

/* Begins a row for the packet's kind. 0 or -ENOMEM. */
static int
refused_open(
    struct refused_log *log, const struct aggregate_key *key, const struct nflog_packet *packet, enum refused_row row)
{
	struct record_flow flow = refused_flow(log, packet->class);

	if (aggregate_full(&log->aggregate, key->class))
		return aggregate_rest(&log->aggregate, key->class, &flow, 1);
	if (packet->ip) {
		flow.src = packet->src;
		flow.dst = packet->dst;
		flow.sport = packet->sport;
		flow.dport = packet->dport;
		flow.proto = packet->proto;
		attempt_record_place(&log->gateway->geo, &flow);
	}
	refused_detail(log, packet, row, &flow);
	return aggregate_open(&log->aggregate, key, &flow, 1);
}

/* Counts one logged packet in the row of its kind. */
static void
refused_packet_handler(const struct nflog_packet *packet, void *context)
{
	struct refused_log *log = context;
	enum refused_row row = !packet->ip ? REFUSED_ROW_FRAME : packet->stray ? REFUSED_ROW_STRAY : REFUSED_ROW_PACKET;
	struct aggregate_key key = {.class = (uint8_t)((unsigned int)packet->class * REFUSED_ROW_MAX + row)};

	if (packet->ip) {
		key.src = packet->src;
		key.dst = packet->dst;
		key.proto = packet->proto;
		key.dport = packet->dport;
	}
	log->logged[packet->class]++;
	/* A packet that finds no memory is not "seen", so that reconciling counts it. */
	if (aggregate_bump(&log->aggregate, &key, 1) || refused_open(log, &key, packet, row) == 0)
		log->seen[packet->class]++;
}

/* Read one datagram. False when there is none left, or the socket is broken.
 * syscalls: recvfrom */
static bool
refused_receive(struct refused_log *log)
{
	uint32_t bytes[REFUSED_DATAGRAM_MAX / sizeof(uint32_t)];
	struct sockaddr_nl from = {0};
	socklen_t from_len = sizeof(from);
	ssize_t n;

	n = recvfrom(log->source.fd, bytes, sizeof(bytes), MSG_DONTWAIT, (struct sockaddr *)&from, &from_len);
	if (n == 0 || (n < 0 && (errno == EAGAIN || errno == EBADF)))
		return false;
	log->active = true; /* packets, or ENOBUFS: packets that were lost */
	if (n > 0 && from.nl_pid == 0)
		nflog_each(bytes, (size_t)n, refused_packet_handler, log);
	return true;
}

/* Tell the balance what has come in: by the kernel's counters, or by the log messages where these are ahead of the
 * counters' latest answer. */
static void
refused_arrived(struct refused_log *log)
{
	uint64_t arrived = 0;

	for (size_t i = 0; i < TAP_COUNTER_MAX; i++) {
		uint64_t counted = log->sample[i] - log->base[i];

		arrived += counted > log->logged[i] ? counted : log->logged[i];
	}
	if (arrived > log->arrived)
		balance_arrive(log->balance, RECORD_ATTEMPT_REFUSED, arrived - log->arrived);
	log->arrived = arrived > log->arrived ? arrived : log->arrived;
}

/* Reads what the socket still holds, within bounds. */
static void
refused_drain(struct refused_log *log)
{
	for (int i = 0; i < REFUSED_DRAIN_MAX && refused_receive(log); i++)
		;
}

/* Waits for the next comparison with the counters. */
static void
refused_arm(struct refused_log *log)
{
	if (!loop_timer_armed(&log->timer))
		(void)loop_timer_set(log->gateway->loop, &log->timer, REFUSED_RECONCILE_MS);
}

/* Reads the log messages of one round. */
static void
refused_source_handler(struct loop_source *source, uint32_t events)
{
	struct refused_log *log = loop_owner(source, struct refused_log, source);

	(void)events;
	for (int i = 0; i < REFUSED_BATCH_MAX && refused_receive(log); i++)
		;
	refused_arrived(log);
	refused_arm(log);
}

/* Counters that went backwards belong to a table that was made anew: carry on from what the old one had counted. */
static void
refused_rebase(struct refused_log *log, const uint64_t totals[TAP_COUNTER_MAX])
{
	bool remade = false;

	for (size_t i = 0; i < TAP_COUNTER_MAX; i++)
		remade = remade || totals[i] < log->sample[i];
	for (size_t i = 0; remade && i < TAP_COUNTER_MAX; i++)
		log->base[i] -= log->sample[i];
}

/* The keeper has sent the kernel's counters: keeps them for the next comparison. */
static void
refused_counters_handler(struct link_request *request, int status, const void *body)
{
	struct refused_log *log = loop_owner(request, struct refused_log, request);
	const struct msg_counters *counters = body;

	if (status != 0 || counters == NULL)
		return; /* the timer asks again */
	refused_rebase(log, counters->totals);
	memcpy(log->sample, counters->totals, sizeof(log->sample));
	log->sampled = true;
	refused_arrived(log);
}

/* Compare the last sample with what is in rows by now. True when they agree. */
static bool
refused_compare(struct refused_log *log)
{
	bool agree = log->sampled;

	for (size_t i = 0; log->sampled && i < TAP_COUNTER_MAX; i++) {
		uint64_t counted = log->sample[i] - log->base[i];
		enum tap_counter class = (enum tap_counter)i;
		struct record_flow flow;

		if (counted <= log->seen[i])
			continue;
		agree = false;
		flow = refused_flow(log, class);
		if (aggregate_rest(&log->aggregate, (uint8_t)(i * REFUSED_ROW_MAX), &flow, counted - log->seen[i]) == 0)
			log->seen[i] = counted;
	}
	log->sampled = false;
	return agree;
}

/* Asks the keeper for the counters, unless an answer is awaited. */
static void
refused_ask(struct refused_log *log)
{
	if (log->request.tag == 0)
		(void)link_counters(&log->gateway->link, &log->request, log->id);
}

/* The end of lingering. */
static void
refused_finish(struct refused_log *log)
{
	struct loop *loop = log->gateway->loop;

	refused_drain(log);
	refused_arrived(log);
	refused_compare(log); /* nothing logged can follow, so the last sample holds at any age */
	close(loop_source_remove(loop, &log->source));
	loop_timer_stop(loop, &log->timer);
	link_cancel(&log->gateway->link, &log->request);
	aggregate_close(&log->aggregate);
	balance_release(log->balance);
	log->gateway->refused_lingering--;
	loop_defer(loop, &log->deferred);
}

/* Compares, and asks again until nothing is new. */
static void
refused_timer_handler(struct loop_timer *timer)
{
	struct refused_log *log = loop_owner(timer, struct refused_log, timer);
	bool agree;

	if (log->sandbox == NULL) {
		refused_finish(log);
		return;
	}
	agree = refused_compare(log);
	if (agree && !log->active)
		return;
	log->active = false;
	refused_ask(log);
	refused_arm(log);
}

/* Frees the log at the end of the round. */
static void
refused_free_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct refused_log, deferred));
}

int
refused_attach(struct sandbox *sandbox, int nflog)
{
	struct loop *loop = sandbox->gateway->loop;
	struct refused_log *log = calloc(1, sizeof(*log));
	int rc = log == NULL ? -ENOMEM : 0;

	if (rc == 0) {
		log->sandbox = sandbox;
		log->gateway = sandbox->gateway;
		log->id = sandbox->id;
		log->balance = balance_hold(sandbox->balance);
		memcpy(log->base, sandbox->refused_base, sizeof(log->base));
		memcpy(log->sample, sandbox->refused_base, sizeof(log->sample));
		log->source = (struct loop_source){.fd = nflog, .handler = refused_source_handler};
		log->timer.handler = refused_timer_handler;
		log->request.handler = refused_counters_handler;
		log->deferred.handler = refused_free_handler;
		aggregate_init(&log->aggregate, loop, log->balance, REFUSED_ENTRIES_MAX);
		rc = loop_source_add(loop, &log->source, EPOLLIN);
	}
	if (rc < 0) {
		close(nflog);
		if (log != NULL)
			balance_release(log->balance);
		free(log);
		return rc;
	}
	sandbox->refused = log;
	refused_ask(log);
	refused_arm(log);
	return 0;
}

void
refused_detach(struct sandbox *sandbox)
{
	struct refused_log *log = sandbox->refused;

	if (log == NULL)
		return;
	sandbox->refused = NULL;
	log->sandbox = NULL;
	log->gateway->refused_lingering++;
	log->generation = sandbox->generation;
	refused_drain(log);
	refused_arrived(log);
	aggregate_flush(&log->aggregate);
	link_cancel(&log->gateway->link, &log->request);
	refused_ask(log);
	if (loop_timer_set(log->gateway->loop, &log->timer, REFUSED_LINGER_MS) < 0)
		refused_finish(log);
}
