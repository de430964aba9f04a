/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled policy: one flat, sealed, read-only block that every role maps and no role needs to trust its maker for.
 *
 * The control role compiles; the keeper and the gateways map the same sealed memfd and run snapshot_open, which checks
 * every offset and count, so that decisions afterwards need no checks. Decisions make no system calls and allocate
 * nothing. Here is what the rules say of one name, address or place: never list, then deny, then allow, whatever the
 * order in the text; an empty policy allows nothing. What follows for a connection or a question: policy/verdict.h.
 *
 * Time is an argument (now_us, microseconds since the epoch, clock_real_us): a rule past its deadline is no rule. Of
 * the rules that allow something, one without deadline and count is named before one with, so that a grant is not used
 * up by what is allowed anyway. */
#ifndef POSTERN_POLICY_SNAPSHOT_H
#define POSTERN_POLICY_SNAPSHOT_H

#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "policy/text/policy.h"
#include "policy/reason.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SNAPSHOT_NO_RULE UINT32_MAX
/* Kernel interval elements of one policy: bounds the pipapo set. */
#define SNAPSHOT_RANGES_MAX 4096

struct snapshot; /* opaque; maps the memfd */

struct decision {
	enum verdict verdict; /* VERDICT_ALLOWED or VERDICT_DENIED */
	enum reason reason;   /* REASON_ALLOWED, NO_RULE, RULE_DENY, PLACE_UNKNOWN, NEVER_NAME, NEVER_ADDRESS */
	uint32_t rule;        /* the rule that decided, for snapshot_rule_text; SNAPSHOT_NO_RULE when none did */
	uint32_t lapsed;      /* with NO_RULE: an allow rule that covers it, but is past its deadline or used up */
	bool out_of_bounds;   /* with NO_RULE: a rule allows it, but no allow rule of the organisation does */
	bool learnable;       /* with NO_RULE, under mode: learn: nothing speaks against it; only no rule for it */
};

/* Where an address is, as far as anybody knows (gateway/shared/geo.h). */
struct addr_place {
	char country[3]; /* ISO 3166-1 alpha-2, upper case; "": not known */
	uint32_t asn;    /* autonomous system; 0: not known */
};

struct proto_port {
	uint8_t proto;
	uint16_t port; /* host order */
};

/* What an allow-by-address rule opens in the kernel, deny rules subtracted; disjoint. */
struct addr_range {
	struct addr first, last; /* same family */
	uint8_t proto;
	uint16_t port_first, port_last;
};

/* Compile to a sealed memfd (all four seals). Relative expiries and includes must be resolved (policy_resolve,
 * policy/text/layers.h); a policy that still has some is refused. Returns the descriptor (caller owns) or -1 with
 * ERROR_POLICY/ERROR_LIMIT. */
int snapshot_compile(const struct policy *policy, struct error *err);

/* Map and verify; or, when this process has the same memfd mapped and verified already, share that. The descriptor may
 * be closed afterwards. NULL with ERROR_CORRUPT when anything is out of bounds or the memfd is not sealed. To be called
 * on one thread of a process only, like snapshot_free. */
struct snapshot *snapshot_open(int fd, struct error *err);
void snapshot_free(struct snapshot *snapshot);

/* SHA-256 of the block, lower-case hex and NUL: the policy's identity in records. */
void snapshot_hash(const struct snapshot *snapshot, char ret_hex[65]);

enum policy_ech snapshot_ech(const struct snapshot *snapshot);
enum policy_mode snapshot_mode(const struct snapshot *snapshot);
/* Has the organisation allow rules, so that they bound this policy? */
bool snapshot_is_bounded(const struct snapshot *snapshot);
/* Of the sandbox as a whole. */
const struct limits *snapshot_limits(const struct snapshot *snapshot);
size_t snapshot_rule_count(const struct snapshot *snapshot);
/* "allow *.github.com:22,443" and "file.yaml:7"; "" for SNAPSHOT_NO_RULE. Valid as long as the snapshot. */
const char *snapshot_rule_text(const struct snapshot *snapshot, uint32_t rule);
const char *snapshot_rule_origin(const struct snapshot *snapshot, uint32_t rule);

/* Where the setting stands; "" when nobody said it. */
const char *snapshot_setting_origin(const struct snapshot *snapshot, enum policy_setting setting);
/* Is the rule of the organisation's layer? And is it an allow rule there, which allows nothing by itself? */
bool snapshot_rule_is_organisations(const struct snapshot *snapshot, uint32_t rule);
bool snapshot_rule_is_bound(const struct snapshot *snapshot, uint32_t rule);

/* A rule's terms. Deadline in microseconds since the epoch, 0: none. Uses, 0: any number. Limits: all zero when it has
 * none. For SNAPSHOT_NO_RULE all are 0. */
int64_t snapshot_rule_expires_us(const struct snapshot *snapshot, uint32_t rule);
uint32_t snapshot_rule_uses(const struct snapshot *snapshot, uint32_t rule);
const struct limits *snapshot_rule_limits(const struct snapshot *snapshot, uint32_t rule);

/* A rule's identity across recompiles, for counters: follows from its text and the file (not the line) that it comes
 * from, not from its terms. Never 0, but for SNAPSHOT_NO_RULE. */
uint64_t snapshot_rule_id(const struct snapshot *snapshot, uint32_t rule);

/* The rule's uses are spent: from now on it is no rule for this mapping. (Others of the same block are not touched; a
 * rule without a count never is.) */
void snapshot_rule_retire(struct snapshot *snapshot, uint32_t rule);

/* Take that back: what was let through under the rule is judged as if it still were one. */
void snapshot_rule_reinstate(struct snapshot *snapshot, uint32_t rule);

/* Is it a rule at this time: neither past its deadline nor retired? */
bool snapshot_rule_is_live(const struct snapshot *snapshot, uint32_t rule, int64_t now_us);

/* The earliest deadline after now_us; 0: none. */
int64_t snapshot_next_expiry_us(const struct snapshot *snapshot, int64_t now_us);

/* May this sandbox talk to this name on this port? */
struct decision snapshot_decide_host(
    const struct snapshot *snapshot, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us);

/* May it resolve the name: is any (proto, port) allowed for it? The rule is the one that opened the first such port. */
struct decision snapshot_ports_any(const struct snapshot *snapshot, const struct name *name, int64_t now_us);

/* All (proto, port) that snapshot_decide_host allows for the name, sorted; returns how many (at most max, and
 * RULE_HOST_PORTS_MAX per matching rule). Under mode: learn also 80 and 443, as far as they are learnable. */
size_t snapshot_ports_list(
    const struct snapshot *snapshot, const struct name *name, struct proto_port *ret_ports, size_t max, int64_t now_us);

/* What address rules say: ALLOWED by an allow cidr, DENIED with RULE_DENY by a deny cidr or NEVER_ADDRESS, else
 * NO_RULE. A deny here also beats a name's allow: callers ask this first, then the name. */
struct decision snapshot_decide_addr(
    const struct snapshot *snapshot, const struct addr *addr, uint8_t proto, uint16_t port, int64_t now_us);

/* What rules of place say about an address that is there: DENIED with RULE_DENY; with PLACE_UNKNOWN, when a rule is
 * about a country (a network) on this port and the address's is not known, because it could be that one; with NO_RULE
 * when none is about it (they allow nothing). Beats every allow, as any deny does. */
struct decision snapshot_decide_place(
    const struct snapshot *snapshot, const struct addr_place *place, uint8_t proto, uint16_t port, int64_t now_us);
/* The first rule about a country, about a network; SNAPSHOT_NO_RULE: there is none, and the place need not be known. */
uint32_t snapshot_country_rule(const struct snapshot *snapshot);
uint32_t snapshot_asn_rule(const struct snapshot *snapshot);
static inline bool
snapshot_needs_place(const struct snapshot *snapshot)
{
	return snapshot_country_rule(snapshot) != SNAPSHOT_NO_RULE || snapshot_asn_rule(snapshot) != SNAPSHOT_NO_RULE;
}

/* The kernel's interval elements (allow rules with a deadline included: behind it, what comes through is refused by
 * snapshot_decide_addr; deny rules with one not, as what they shut is to open) and the UDP ports that need sockets.
 * Under mode: learn every public address, TCP, is among the former, as far as it is learnable. */
const struct addr_range *snapshot_ranges(const struct snapshot *snapshot, size_t *ret_count);
const uint16_t *snapshot_udp_ports(const struct snapshot *snapshot, size_t *ret_count);

#endif
