/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Destinations that a policy allows by address: elements of an interval set, replaced as a whole and read back. */
#include "tap/never.h"
#include "tap/sets.h"

#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* A range must be well formed and keep off the never list, even if the policy says otherwise. */
static int
ranges_check(const struct addr_range *range, struct error *err)
{
	char text[ADDR_TEXT_MAX];

	if (range->first.family != range->last.family || (range->first.family != 4 && range->first.family != 6))
		return error_set(err, ERROR_CORRUPT, "range of no address family");
	if (memcmp(range->first.bytes, range->last.bytes, sizeof(range->first.bytes)) > 0 || range->port_first == 0 ||
	    range->port_first > range->port_last)
		return error_set(err, ERROR_CORRUPT, "range that ends before it begins");
	if (range->proto != IPPROTO_TCP && range->proto != IPPROTO_UDP)
		return error_set(err, ERROR_CORRUPT, "range of protocol %u", range->proto);
	if (never_touches_range(range))
		return error_set(
		    err, ERROR_CORRUPT, "range from %s touches the never list", addr_format(&range->first, text));
	return 0;
}

/* The ranges of one family as elements, sorted; returns how many. */
static size_t
ranges_fill(struct nft_elem *elems, int family, const struct addr_range *ranges, size_t count)
{
	size_t filled = 0;

	for (size_t i = 0; i < count; i++) {
		const struct addr_range *range = &ranges[i];
		struct nft_elem *elem = &elems[filled];

		if (range->first.family != family)
			continue;
		memset(elem, 0, sizeof(*elem));
		sets_key(elem->key, &range->first, range->proto, range->port_first);
		sets_key(elem->key_end, &range->last, range->proto, range->port_last);
		elem->has_key_end = true;
		filled++;
	}
	qsort(elems, filled, sizeof(*elems), sets_compare);
	return filled;
}

/* Replaces the set's contents in the batch, by messages of at most NFT_ELEMS_MAX elements. */
static void
ranges_build(struct nft_batch *batch, int family, const struct nft_elem *elems, size_t count)
{
	const char *set = family == 4 ? RULESET_RANGE4 : RULESET_RANGE6;
	size_t part;

	nft_batch_elems_flush(batch, set);
	for (size_t at = 0; at < count; at += part) {
		part = count - at < NFT_ELEMS_MAX ? count - at : NFT_ELEMS_MAX;
		nft_batch_elems_add(batch, set, elems + at, part, sets_key_len(family));
	}
}

/* Compares the kernel's listing with what was sent. */
static int
ranges_verify(struct tap *tap, int family, const struct nft_elem *sent, size_t count, struct error *err)
{
	const char *set = family == 4 ? RULESET_RANGE4 : RULESET_RANGE6;
	struct nft_elem *back = calloc(count + 1, sizeof(*back));
	size_t back_count = 0;
	bool same;
	int r;

	if (back == NULL)
		return error_sys(err, ENOMEM, "read ranges back");
	r = sets_fetch(tap, set, back, count + 1, &back_count);
	qsort(back, back_count <= count ? back_count : count + 1, sizeof(*back), sets_compare);
	same = r == 0 && back_count == count;
	for (size_t i = 0; same && i < count; i++)
		same = sets_compare(&sent[i], &back[i]) == 0;
	free(back);
	if (r < 0)
		return error_sys(err, -r, "read ranges back");
	return same ? 0 : error_set(err, ERROR_CORRUPT, "set %s reads otherwise than it was written", set);
}

int
tap_ranges_set(struct tap *tap, const struct addr_range *ranges, size_t count, struct error *err)
{
	bool ipv6 = tap_has_ipv6(&tap->config);
	struct nft_elem *elems;
	struct nft_batch batch;
	size_t count4, count6;
	int r;

	if (count > SNAPSHOT_RANGES_MAX)
		return error_set(err, ERROR_CORRUPT, "%zu ranges", count);
	for (size_t i = 0; i < count; i++)
		if (ranges_check(&ranges[i], err) < 0)
			return -1;
	elems = calloc(count + 1, sizeof(*elems));
	if (elems == NULL)
		return error_sys(err, ENOMEM, "ranges");
	count4 = ranges_fill(elems, 4, ranges, count);
	count6 = ranges_fill(elems + count4, 6, ranges, count);
	sets_start(&batch);
	ranges_build(&batch, 4, elems, count4);
	if (ipv6)
		ranges_build(&batch, 6, elems + count4, count6);
	r = sets_commit(tap, &batch, true, err);
	if (r == 0)
		r = ranges_verify(tap, 4, elems, count4, err);
	if (r == 0 && ipv6)
		r = ranges_verify(tap, 6, elems + count4, count6, err);
	free(elems);
	return r;
}
