/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/never.h"

#include <assert.h>
#include <errno.h>
#include <string.h>

/* Intervals of one family after the rows were joined; the list has some hundred rows. */
#define NEVER_INTERVALS_MAX 256

struct never_interval {
	uint8_t first[16], last[16];
};

struct never_intervals {
	struct never_interval rows[NEVER_INTERVALS_MAX];
	size_t count;
	bool overflow;
};

/* Bytes of an address. */
static size_t
never_addr_len(int family)
{
	return family == 4 ? 4 : 16;
}

/* last = the highest address of a prefix that begins at first. */
static void
never_prefix_last(const uint8_t *first, uint8_t bits, size_t len, uint8_t *last)
{
	for (size_t i = 0; i < len; i++) {
		size_t from = i * 8;
		uint8_t host = (uint8_t)(from >= bits ? 0xff : bits - from >= 8 ? 0 : 0xff >> (bits - from));

		last[i] = (uint8_t)(first[i] | host);
	}
}

/* Keep the rows sorted by first address. */
static void
never_insert(struct never_intervals *list, const struct prefix *prefix)
{
	size_t len = never_addr_len(prefix->addr.family), at = list->count;
	struct never_interval row = {{0}, {0}};

	if (list->count == NEVER_INTERVALS_MAX) {
		list->overflow = true;
		return;
	}
	memcpy(row.first, prefix->addr.bytes, len);
	never_prefix_last(row.first, prefix->bits, len, row.last);
	while (at > 0 && memcmp(list->rows[at - 1].first, row.first, len) > 0)
		at--;
	memmove(&list->rows[at + 1], &list->rows[at], (list->count - at) * sizeof(row));
	list->rows[at] = row;
	list->count++;
}

/* Add one to a big-endian number; false when it wraps. */
static bool
never_increment(uint8_t *bytes, size_t len)
{
	while (len-- > 0)
		if (++bytes[len] != 0)
			return true;
	return false;
}

/* Join rows that overlap or touch: the kernel's interval set takes no overlaps. */
static void
never_join(struct never_intervals *list, size_t len)
{
	size_t kept = 0;
	uint8_t after[16];

	for (size_t i = 1; i < list->count; i++) {
		struct never_interval *last = &list->rows[kept];

		memcpy(after, last->last, len);
		if (!never_increment(after, len) || memcmp(list->rows[i].first, after, len) <= 0) {
			if (memcmp(list->rows[i].last, last->last, len) > 0)
				memcpy(last->last, list->rows[i].last, len);
		} else {
			list->rows[++kept] = list->rows[i];
		}
	}
	if (list->count > 0)
		list->count = kept + 1;
}

/* All rows of the family, sorted and joined. */
static void
never_collect(struct never_intervals *list, int family, const struct prefix *extra, size_t extra_count)
{
	static const struct prefix unreachable6[] = {
	    {{.family = 6}, 3},
	    {{.family = 6, .bytes = {0x40}}, 2},
	    {{.family = 6, .bytes = {0x80}}, 1},
	};
	size_t count;
	const struct never_prefix *rows = addr_never_list(&count);

	for (size_t i = 0; i < count; i++)
		if (rows[i].prefix.addr.family == family && addr_never(&rows[i].prefix.addr) != NULL)
			never_insert(list, &rows[i].prefix);
	for (size_t i = 0; i < extra_count; i++)
		if (extra[i].addr.family == family)
			never_insert(list, &extra[i]);
	for (size_t i = 0; family == 6 && i < sizeof(unreachable6) / sizeof(unreachable6[0]); i++)
		never_insert(list, &unreachable6[i]);
	never_join(list, never_addr_len(family));
}

void
never_add_set(struct nft_batch *batch, int family, const char *set, const struct prefix *extra, size_t extra_count)
{
	size_t len = never_addr_len(family), count = 0;
	struct nft_set description = {
	    .name = set,
	    .flags = NFT_SET_CONSTANT | NFT_SET_INTERVAL,
	    .key_type = family == 4 ? NFT_TYPE_IPV4 : NFT_TYPE_IPV6,
	    .key_len = (uint32_t)len,
	};
	struct nft_elem elems[2 * NEVER_INTERVALS_MAX] = {0};
	struct never_intervals list = {.count = 0};

	static_assert(2 * NEVER_INTERVALS_MAX <= NFT_ELEMS_MAX, "the list goes into one message");
	never_collect(&list, family, extra, extra_count);
	if (list.overflow)
		nft_batch_fail(batch, E2BIG);
	for (size_t i = 0; i < list.count; i++) {
		memcpy(elems[count++].key, list.rows[i].first, len);
		memcpy(elems[count].key, list.rows[i].last, len);
		/* An interval's end is the first address after it; up to the last address of all it has none. */
		elems[count].interval_end = true;
		if (never_increment(elems[count].key, len))
			count++;
		else
			elems[count] = (struct nft_elem){.interval_end = false};
	}
	nft_batch_set(batch, &description);
	nft_batch_elems_add(batch, set, elems, count, len);
}

bool
never_touches_range(const struct addr_range *range)
{
	size_t count, len = never_addr_len(range->first.family);
	const struct never_prefix *rows = addr_never_list(&count);
	uint8_t last[16];

	if (addr_never(&range->first) != NULL || addr_never(&range->last) != NULL)
		return true;
	for (size_t i = 0; i < count; i++) {
		const struct prefix *prefix = &rows[i].prefix;

		if (prefix->addr.family != range->first.family || addr_never(&prefix->addr) == NULL)
			continue;
		never_prefix_last(prefix->addr.bytes, prefix->bits, len, last);
		if (memcmp(range->first.bytes, last, len) <= 0 &&
		    memcmp(prefix->addr.bytes, range->last.bytes, len) <= 0)
			return true;
	}
	return false;
}
