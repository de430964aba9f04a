/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The DNS server of one sandbox: what its sockets (dns.c), connections (dns_tcp.c) and queries (dns_query.h) share.
 *
 * A query goes down these files and never back up: dns.c or dns_tcp.c (the message comes in), dns_query.c (may it be
 * asked?), dns_answer.c (ask, read the answer), dns_upstream.c, dns_lease.c (open what the answer names), dns_finish.c
 * (reply and record).
 *
 * Owners: the server owns connections and queries; a query names the connection its reply goes to until either ends. */
#ifndef POSTERN_GATEWAY_DNS_H
#define POSTERN_GATEWAY_DNS_H

#include "gateway/path/dns/dns_budget.h"
#include "gateway/path/dns/dns_asker.h"
#include "gateway/path/gateway.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Queries of one sandbox under way; further ones get SERVFAIL, reason limit_rate. */
#define DNS_QUERIES_MAX 512
/* Datagrams read from one socket in one round of the loop. */
#define DNS_UDP_ROUND 32
/* While half the room is taken that the recorder has before it refuses new work, a socket rests this long after so many
 * datagrams: a guest that asks 800 times a second or more is slowed down to what the log's writer takes on a busy
 * machine, before every sandbox is refused. A single question is not delayed. */
#define DNS_UDP_PACE_QUEUE (RECORDER_BUSY / 2)
#define DNS_UDP_PACE_MS 40

struct dns_udp {
	struct loop_source source;
	struct dns_server *server;
	uint32_t dropped;        /* by the kernel, so far, and accounted for */
	struct addr last_src;    /* sender of the last datagram */
	struct loop_timer pause; /* armed: not reading, for the log's sake */
	int unpaced;             /* datagrams read since it last rested, while the recorder's queue was long */
};

struct dns_listener {
	struct loop_source source;
	struct loop_timer pause; /* armed: not accepting, for lack of descriptors */
	struct dns_server *server;
};

struct dns_server {
	struct sandbox *sandbox;
	struct dns_udp udp[2]; /* IPv4, IPv6 */
	struct dns_listener tcp[2];
	LIST_HEAD(, dns_conn) conns;
	size_t conn_count;
	LIST_HEAD(, dns_query) queries; /* under way */
	size_t query_count;
	struct dns_budget budget;
};

/* dns_query.c: take a message from the guest; its answer and its record follow, now or later. */
void dns_query_take(struct dns_server *server, const struct dns_asker *asker, const uint8_t *bytes, size_t len);
/* Record what a guest meant to ask and what is not even read; there is no reply. */
void dns_query_refuse_unread(struct dns_server *server, const struct dns_asker *asker, enum verdict verdict,
    enum reason reason, const char *why);
/* The connection goes away: its queries go on without a reply. */
void dns_query_orphan(struct dns_server *server, const struct dns_conn *conn);
/* The sandbox goes away: record and free all queries. */
void dns_query_drop_all(struct dns_server *server);

/* dns_tcp.c: start and stop listening; stop closes the connections too. */
int dns_tcp_start(struct dns_server *server, struct dns_listener *listener, int fd);
void dns_tcp_stop(struct dns_server *server);

/* dns.c: attach takes the descriptors (closed on failure too): 0 or -errno. detach records what is under way and frees
 * it at once; a sandbox without this part is fine. */
int dns_attach(struct sandbox *sandbox, int udp4, int udp6, int tcp4, int tcp6);
void dns_detach(struct sandbox *sandbox);

#endif
