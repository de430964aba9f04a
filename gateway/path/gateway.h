/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gateway role's own state: what DNS, proxy, UDP relay and refused-packet log share.
 *
 * A gateway is one process with one loop. It has no capabilities, an empty root and a seccomp filter; all sockets that
 * face a sandbox came from the keeper. Every module hangs its part on struct sandbox and is told of attach, policy
 * change and detach by gateway.c. */
#ifndef POSTERN_GATEWAY_GATEWAY_H
#define POSTERN_GATEWAY_GATEWAY_H

#include "base/loop.h"
#include "gateway/path/count/balance.h"
#include "gateway/shared/geo.h"
#include "gateway/path/lease.h"
#include "gateway/path/link.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/options.h"
#include "gateway/path/count/interim.h"
#include "gateway/shared/recorder.h"
#include "gateway/shared/route.h"
#include "gateway/path/count/metrics.h"
#include "policy/verdict.h"

#include <netinet/in.h>
#include <stdint.h>

/* Connections of all sandboxes, and of one (its SYNs beyond that are reset, reason limit_connections). */
#define GATEWAY_FLOWS_MAX 16384
#define GATEWAY_SANDBOX_FLOWS_MAX 1024
/* The last of all are for sandboxes that have few: those that take what they can get, however many they are, leave so
 * much to each of the others. */
#define GATEWAY_FLOWS_RESERVE 4096
#define GATEWAY_FLOWS_FEW 32
/* Lists of sandboxes: a few in each when the daemon has as many as it takes. */
#define GATEWAY_BUCKETS 1024
/* Descriptors that connections leave to all else: DNS of other sandboxes, what the keeper hands over, pipes. A quarter
 * of all where that is less. */
#define GATEWAY_FDS_KEPT 1024
/* A guest's hello or request head must be complete within this time. */
#define GATEWAY_HEAD_MS 10000
/* An upstream connect may take this long. */
#define GATEWAY_CONNECT_MS 15000

struct role;

struct gateway {
	struct loop *loop;
	struct recorder recorder; /* records to the auditor */
	struct link link;         /* requests to the keeper */
	struct route route;       /* kernel route lookups in the host's namespace */
	struct geo geo;           /* where addresses are */
	struct options_resolver resolvers[OPTIONS_RESOLVERS_MAX];
	size_t resolver_count;
	struct dns_upstream *dns_upstream;          /* owned by dns/dns.c */
	struct sandbox *sandboxes[GATEWAY_BUCKETS]; /* lists, by id */
	int fd_top;                                 /* descriptors from here on are not for connections */
	size_t flow_count;                          /* kept by tcp/flow.c and gateway/path/udp/udp_flow.c */
	struct interim_queue interim;               /* open records (gateway/path/count/interim.h) */
	size_t refused_lingering;      /* kept by refused/refused.c: logs that outlive their sandbox for a moment */
	struct balance_queue balances; /* kept by count/balance.c */
	struct metrics metrics;        /* kept by count/metrics.c */
};

struct sandbox {
	struct sandbox *next;
	struct gateway *gateway;
	int64_t id;
	char name[TAP_NAME_MAX];
	struct addr guest4, router4, guest6, router6;
	struct snapshot *policy; /* owned; replaced by gateway.c */
	uint32_t generation;
	uint32_t turn; /* counts edits and expiries: what was decided before one is decided again */
	int64_t
	    judged_us; /* leases and live connections stand as the policy was at this time (gateway/path/expiry.c) */
	struct loop_timer expiry;
	struct lease_table leases;
	struct dns_server *dns;                 /* owned by dns/dns.c */
	struct proxy *proxy;                    /* owned by tcp/proxy.c */
	struct udp_relay *udp;                  /* owned by udp/udp.c */
	uint64_t refused_base[TAP_COUNTER_MAX]; /* packets that an earlier gateway answers for */
	struct refused_log *refused;            /* owned by refused/refused.c */
	struct quota *quota;                    /* owned by count/quota.c */
	struct balance *balance;                /* held; by count/balance.c */
};

/* May a sandbox that has so many connections have one more, as far as all sandboxes are concerned? */
static inline bool
gateway_flows_room(const struct gateway *gateway, size_t own)
{
	return gateway->flow_count < GATEWAY_FLOWS_MAX - (own < GATEWAY_FLOWS_FEW ? 0u : GATEWAY_FLOWS_RESERVE);
}

/* Be the gateway role: set up, confine, say MSG_READY, serve until told to stop. Returns the exit status. */
int gateway_run(const struct role *role, const struct options *options);

#endif
