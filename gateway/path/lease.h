/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Leases: which names this sandbox resolved to which addresses through us, and until when.
 *
 * This table is authoritative when a connection is judged; the kernel's sets only decide which SYNs get that far. A
 * lease is added here after the kernel acknowledged its elements and before the DNS answer is released, and it expires
 * here a little before the kernel's element does. */
#ifndef POSTERN_GATEWAY_LEASE_H
#define POSTERN_GATEWAY_LEASE_H

#include "policy/names/addr.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* (name, address) pairs of one sandbox. When full, expired ones go first, then the add is refused. */
#define LEASE_TABLE_MAX 8192
/* Lifetime of a lease, seconds: the answer's smallest TTL is clamped into this. The TTL handed to the guest is never
 * more than LEASE_MAX_S. (CASES C-11) */
#define LEASE_MIN_S 60
#define LEASE_MAX_S 3600
/* The kernel's element outlives the lease by this, and the lease outlives the guest's TTL by this: clients use an
 * address a moment past its TTL. */
#define LEASE_GRACE_S 30

struct lease {
	struct lease *next_in_bucket;
	struct addr addr;
	struct name name;
	int64_t expires_ms;  /* clock_mono_ms */
	int64_t upstream_us; /* what the answer that made it, or last extended it, took upstream */
};

struct lease_table {
	struct lease **buckets; /* NULL until first use */
	size_t bucket_count, count;
};

void lease_table_free(struct lease_table *table);

/* Add or extend (never shorten). upstream_us: of the answer. 0, -ENOMEM, -ENOSPC. */
int lease_add(struct lease_table *table, const struct name *name, const struct addr *addr, uint32_t lifetime_s,
    int64_t upstream_us);

/* The live lease of exactly this pair, or NULL. */
const struct lease *lease_find(const struct lease_table *table, const struct name *name, const struct addr *addr);

/* Walk the live leases of an address: start with NULL. */
const struct lease *lease_next_of_addr(
    const struct lease_table *table, const struct addr *addr, const struct lease *after);

/* Seconds that the longest live lease of the address has left, rounded up; 0 without one. The kernel has one element
 * for all names of an address: it must last as long as this, LEASE_GRACE_S beyond, whichever name it is (re)started
 * for. */
uint32_t lease_left_s(const struct lease_table *table, const struct addr *addr);

/* Walk all live leases. The handler returns false to have that one removed. */
void lease_each(struct lease_table *table, bool (*handler)(const struct lease *lease, void *context), void *context);

#endif
