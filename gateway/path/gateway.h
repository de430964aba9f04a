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
#include "policy/compiled/snapshot.h"

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

struct gateway {
	struct loop *loop;
	struct recorder recorder; /* records to the auditor */
	struct link link;         /* requests to the keeper */
	struct route route;       /* kernel route lookups in the host's namespace */
	struct geo geo;           /* where addresses are */
	struct options_resolver resolvers[OPTIONS_RESOLVERS_MAX];
	size_t resolver_count;
	struct dns_upstream *dns_upstream;          /* owned by gateway/path/dns/dns.c */
	struct sandbox *sandboxes[GATEWAY_BUCKETS]; /* lists, by id: a message is about one, whatever their number */
	int fd_top;                                 /* descriptors from here on are not for connections */
	size_t flow_count;            /* kept by gateway/path/tcp/flow.c and gateway/path/udp/udp_flow.c */
	struct interim_queue interim; /* open records (gateway/path/count/interim.h) */
	size_t
	    refused_lingering; /* kept by gateway/path/refused/refused.c: logs that outlive their sandbox for a moment */
	struct balance_queue balances; /* kept by gateway/path/count/balance.c */
	struct metrics metrics;        /* kept by gateway/path/count/metrics.c */
};

struct sandbox {
	struct sandbox *next;
	struct gateway *gateway;
	int64_t id;
	char name[TAP_NAME_MAX];
	struct addr guest4, gateway4, guest6, gateway6;
	struct snapshot *policy; /* owned; replaced by gateway.c */
	uint32_t generation;
	uint32_t turn; /* counts edits and expiries: what was decided before one is decided again */
	int64_t
	    judged_us; /* leases and live connections stand as the policy was at this time (gateway/path/expiry.c) */
	struct loop_timer expiry;
	struct lease_table leases;
	struct dns_server *dns;                 /* owned by gateway/path/dns/dns.c */
	struct proxy *proxy;                    /* owned by gateway/path/tcp/proxy.c */
	struct udp_relay *udp;                  /* owned by gateway/path/udp/udp.c */
	uint64_t refused_base[TAP_COUNTER_MAX]; /* packets that an earlier gateway answers for */
	struct refused_log *refused;            /* owned by gateway/path/refused/refused.c */
	struct quota *quota;                    /* owned by gateway/path/count/quota.c */
	struct balance *balance;                /* held; by gateway/path/count/balance.c */
};

/* May a sandbox that has so many connections have one more, as far as all sandboxes are concerned? */
static inline bool
gateway_flows_room(const struct gateway *gateway, size_t own)
{
	return gateway->flow_count < GATEWAY_FLOWS_MAX - (own < GATEWAY_FLOWS_FEW ? 0u : GATEWAY_FLOWS_RESERVE);
}

/* The modules. attach: takes the descriptors (closed on failure too); 0 or -errno. detach: closes records (as end),
 * descriptors and memory at once; NULL parts are fine. refused_detach alone lets its log linger for a moment, for what
 * the kernel has not handed over yet. */

int dns_attach(struct sandbox *sandbox, int udp4, int udp6, int tcp4, int tcp6);
void dns_detach(struct sandbox *sandbox);

int proxy_attach(struct sandbox *sandbox, int tcp4, int tcp6);
void proxy_detach(struct sandbox *sandbox, enum end_reason end);
/* Judge every live connection by sandbox->policy again. Those no longer allowed are counted in done->cut_count, the
 * first ones listed, and when cut is set, cut (reset, END_POLICY, reason: REVOKED or EXPIRED). */
void proxy_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done);
/* Tell the quota of each connection that is open (quota_recount). */
void proxy_recount(struct sandbox *sandbox);
size_t proxy_flow_count(const struct sandbox *sandbox);

int udp_attach(struct sandbox *sandbox);
int udp_add_port(struct sandbox *sandbox, uint16_t port, int udp4, int udp6);
void udp_del_port(struct sandbox *sandbox, uint16_t port, enum end_reason end);
void udp_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done);
void udp_recount(struct sandbox *sandbox);
void udp_detach(struct sandbox *sandbox, enum end_reason end);

int refused_attach(struct sandbox *sandbox, int nflog);
void refused_detach(struct sandbox *sandbox);

/* What the data paths ask before a connection or datagram flow may go upstream: never list and the host's own addresses
 * (kernel route lookup), deny rules by address, then the name proof.
 *
 * claim: the canonical name said by the guest (SNI, Host), or NULL on raw ports and where none was said. On allow,
 * ret_name is the proven name (len 0 when only an address rule allows it) and ret_source how. */
struct gateway_verdict {
	enum verdict verdict;
	enum reason reason;
	uint32_t rule; /* for snapshot_rule_text */
	enum name_source source;
	struct name name;
	const char *detail; /* static text or NULL */
	int64_t dns_us;     /* of the lease that proves the name; 0: none does */
	bool learned;       /* allowed by mode: learn alone */
};
struct gateway_verdict gateway_judge(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port,
    const struct name *claim, enum name_source claim_source);

/* What the policy says about an address: rules by prefix, country and network (snapshot_decide_located). */
struct decision gateway_decide_addr(
    const struct sandbox *sandbox, const struct addr *addr, uint8_t proto, uint16_t port, int64_t now_us);
/* Why a place is not known: static text, or NULL when the database does not say. */
const char *gateway_place_detail(const struct sandbox *sandbox, enum reason reason);

/* Does mode: learn let through what no rule allows? TCP only: UDP needs a socket for each port, which only rules name.
 */
static inline bool
gateway_learns(const struct decision *decision, uint8_t proto)
{
	return decision->learnable && decision->reason == REASON_NO_RULE && proto == IPPROTO_TCP;
}

/* Why an allow rule no longer counts: static text, or NULL when it is past its deadline, which the reason says. */
const char *gateway_lapsed_detail(const struct sandbox *sandbox, uint32_t rule);

/* Record a limit that is near: of the sandbox, or of a rule of its policy. */
void gateway_event_limit(struct sandbox *sandbox, enum limit_kind kind, struct limit limit, uint32_t rule);
/* Record an event about a rule of the sandbox's policy. */
void gateway_event_rule(struct sandbox *sandbox, enum event_kind kind, uint32_t rule);

/* Fill country and network of the record's destination, for people who read the log: it decides nothing. */
void gateway_record_place(const struct geo *geo, struct record_flow *flow);

/* Fill the fields of a flow record that every path fills the same way (id, sandbox, time, addresses, verdict, rule). */
void gateway_flow_record(struct sandbox *sandbox, struct record *ret_record, const struct addr *src, uint16_t sport,
    const struct addr *dst, uint16_t dport, uint8_t proto, const struct gateway_verdict *verdict);

#endif
