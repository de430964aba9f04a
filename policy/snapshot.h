/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A compiled policy: one flat, sealed, read-only block that every role maps and no role needs to trust its maker for.
 *
 * The control role compiles; the keeper and the gateways map the same sealed memfd and run snapshot_open, which checks
 * every offset and count, so that decisions afterwards need no checks. Decisions make no system calls and allocate
 * nothing. DNS, SNI, Host, the command line and the tests use these same functions (CASES B-27).
 *
 * Precedence: never list, then deny, then allow; order within the text does not matter. An empty policy allows nothing. */
#ifndef POSTERN_POLICY_SNAPSHOT_H
#define POSTERN_POLICY_SNAPSHOT_H

#include "base/error.h"
#include "policy/addr.h"
#include "policy/name.h"
#include "policy/policy.h"
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
	enum reason reason;   /* REASON_ALLOWED, NO_RULE, RULE_DENY, NEVER_NAME, NEVER_ADDRESS */
	uint32_t rule;        /* the rule that decided, for snapshot_rule_text; SNAPSHOT_NO_RULE when none did */
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

/* Compile to a sealed memfd (all four seals). Returns the descriptor (caller owns) or -1 with ERROR_POLICY/ERROR_LIMIT. */
int snapshot_compile(const struct policy *policy, struct error *err);

/* Map and verify. The descriptor may be closed afterwards. NULL with ERROR_CORRUPT when anything is out of bounds or
 * the memfd is not sealed. */
struct snapshot *snapshot_open(int fd, struct error *err);
void snapshot_free(struct snapshot *snapshot);

/* SHA-256 of the block, lower-case hex and NUL: the policy's identity in records. */
void snapshot_hash(const struct snapshot *snapshot, char ret_hex[65]);

enum policy_ech snapshot_ech(const struct snapshot *snapshot);
size_t snapshot_rule_count(const struct snapshot *snapshot);
/* "allow *.github.com:22,443" and "file.yaml:7"; "" for SNAPSHOT_NO_RULE. Valid as long as the snapshot. */
const char *snapshot_rule_text(const struct snapshot *snapshot, uint32_t rule);
const char *snapshot_rule_origin(const struct snapshot *snapshot, uint32_t rule);

/* May this sandbox talk to this name on this port? */
struct decision snapshot_decide_host(const struct snapshot *snapshot, const struct name *name, uint8_t proto,
    uint16_t port);

/* May it resolve the name: is any (proto, port) allowed for it? The rule is the one that opened the first such port. */
struct decision snapshot_decide_dns(const struct snapshot *snapshot, const struct name *name);

/* All (proto, port) that snapshot_decide_host allows for the name, sorted; returns how many (at most max, and
 * RULE_HOST_PORTS_MAX per matching rule). */
size_t snapshot_host_ports(const struct snapshot *snapshot, const struct name *name, struct proto_port *ret_ports,
    size_t max);

/* What address rules say: ALLOWED by an allow cidr, DENIED with RULE_DENY by a deny cidr or NEVER_ADDRESS, else NO_RULE.
 * A deny here also beats a name's allow: callers ask this first, then the name. */
struct decision snapshot_decide_addr(const struct snapshot *snapshot, const struct addr *addr, uint8_t proto,
    uint16_t port);

/* The kernel's interval elements and the UDP ports that need sockets. */
const struct addr_range *snapshot_ranges(const struct snapshot *snapshot, size_t *ret_count);
const uint16_t *snapshot_udp_ports(const struct snapshot *snapshot, size_t *ret_count);

#endif
