/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/lease.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Fixed: 8192 pairs in 1024 chains are eight steps at the very worst load; no rehash on the data path. */
#define LEASE_BUCKETS 1024

/* Keyed by address, because that is what a connection brings. The key is per process, so that an attacker who chooses
 * answers cannot choose chains. */
static uint64_t lease_hash_key;

/* The chain that the address hashes to. */
static size_t
lease_bucket(const struct addr *addr)
{
	uint64_t a, b, h;

	memcpy(&a, addr->bytes, 8);
	memcpy(&b, addr->bytes + 8, 8);
	h = (a ^ lease_hash_key) * UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ (h >> 29) ^ b ^ addr->family) * UINT64_C(0xbf58476d1ce4e5b9);
	return (size_t)(h >> 32) % LEASE_BUCKETS;
}

void
lease_table_free(struct lease_table *table)
{
	for (size_t i = 0; i < table->bucket_count; i++) {
		while (table->buckets[i] != NULL) {
			struct lease *lease = table->buckets[i];

			table->buckets[i] = lease->next_in_bucket;
			free(lease);
		}
	}
	free(table->buckets);
	memset(table, 0, sizeof(*table));
}

/* For lease_each: a live lease stays. */
static bool
lease_keep_live(const struct lease *lease, void *context)
{
	(void)lease;
	(void)context;
	return true;
}

/* The lease of this pair, live or not; NULL: none. */
static struct lease *
lease_lookup(const struct lease_table *table, const struct name *name, const struct addr *addr)
{
	if (table->buckets == NULL)
		return NULL;
	for (struct lease *l = table->buckets[lease_bucket(addr)]; l != NULL; l = l->next_in_bucket)
		if (addr_equal(&l->addr, addr) && name_equal(&l->name, name))
			return l;
	return NULL;
}

/* syscalls: getrandom */
int
lease_add(struct lease_table *table, const struct name *name, const struct addr *addr, uint32_t lifetime_s,
    int64_t upstream_us)
{
	int64_t expires_ms = clock_mono_ms() + (int64_t)lifetime_s * 1000;
	struct lease *lease;
	size_t bucket;

	if (lease_hash_key == 0 && getrandom(&lease_hash_key, sizeof(lease_hash_key), 0) != sizeof(lease_hash_key))
		return -EIO;
	if (table->buckets == NULL) {
		table->buckets = calloc(LEASE_BUCKETS, sizeof(struct lease *));
		if (table->buckets == NULL)
			return -ENOMEM;
		table->bucket_count = LEASE_BUCKETS;
	}
	lease = lease_lookup(table, name, addr);
	if (lease != NULL) {
		if (lease->expires_ms <= expires_ms) {
			lease->expires_ms = expires_ms;
			lease->upstream_us = upstream_us;
		}
		return 0;
	}
	if (table->count >= LEASE_TABLE_MAX)
		lease_each(table, lease_keep_live, NULL);
	if (table->count >= LEASE_TABLE_MAX)
		return -ENOSPC;
	lease = calloc(1, sizeof(*lease));
	if (lease == NULL)
		return -ENOMEM;
	lease->addr = *addr;
	lease->name = *name;
	lease->expires_ms = expires_ms;
	lease->upstream_us = upstream_us;
	bucket = lease_bucket(addr);
	lease->next_in_bucket = table->buckets[bucket];
	table->buckets[bucket] = lease;
	table->count++;
	return 0;
}

const struct lease *
lease_find(const struct lease_table *table, const struct name *name, const struct addr *addr)
{
	const struct lease *lease = lease_lookup(table, name, addr);

	return lease != NULL && lease->expires_ms > clock_mono_ms() ? lease : NULL;
}

const struct lease *
lease_next_of_addr(const struct lease_table *table, const struct addr *addr, const struct lease *after)
{
	int64_t now_ms = clock_mono_ms();
	const struct lease *lease;

	if (table->buckets == NULL)
		return NULL;
	lease = after == NULL ? table->buckets[lease_bucket(addr)] : after->next_in_bucket;
	while (lease != NULL && (!addr_equal(&lease->addr, addr) || lease->expires_ms <= now_ms))
		lease = lease->next_in_bucket;
	return lease;
}

uint32_t
lease_left_s(const struct lease_table *table, const struct addr *addr)
{
	const struct lease *lease = NULL;
	int64_t now_ms = clock_mono_ms(), last_ms = now_ms;

	while ((lease = lease_next_of_addr(table, addr, lease)) != NULL)
		if (lease->expires_ms > last_ms)
			last_ms = lease->expires_ms;
	return (uint32_t)((last_ms - now_ms + 999) / 1000);
}

/* Expired leases are swept on the way. */
void
lease_each(struct lease_table *table, bool (*handler)(const struct lease *lease, void *context), void *context)
{
	int64_t now_ms = clock_mono_ms();

	for (size_t i = 0; i < table->bucket_count; i++) {
		struct lease **at = &table->buckets[i];

		while (*at != NULL) {
			struct lease *lease = *at;

			if (lease->expires_ms > now_ms && handler(lease, context)) {
				at = &lease->next_in_bucket;
				continue;
			}
			*at = lease->next_in_bucket;
			table->count--;
			free(lease);
		}
	}
}
