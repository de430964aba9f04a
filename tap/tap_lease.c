/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A lease is an element `address . protocol . port` with a timeout in a hash set, one for each
 * family. Each public function is one transaction on the sandbox's own netlink socket, and checks what it is given: the
 * caller passes on a gateway's request.
 *
 * Adding a lease has to start its countdown anew. Kernels differ in what adding an element again does (before 6.12
 * nothing; since then it changes the timeout, but not the time left), so each add is three steps of one transaction:
 * add (so that there is one to delete), delete, add. Packets see the old element or the new one, never none. Deleting
 * is add, delete, for the same reason: deleting what has just expired would fail the transaction.
 *
 * The sets have no size limit in the kernel (a stated size is allocated at once). The limit is kept here: an upper
 * bound that grows with each add, and is replaced by a count of the kernel's elements when it reaches the maximum. */
#include "base/clock.h"
#include "tap/sets.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>

/* How often a full table is counted again: listing 16,384 elements takes milliseconds, and a gateway may keep
 * asking. */
#define LEASE_RECOUNT_MS 1000

static_assert(TAP_LEASE_BATCH_MAX <= NFT_ELEMS_MAX, "a lease request is one message");

/* ERROR_CORRUPT for a request that no honest gateway makes. */
static int
lease_check(const struct tap_lease *leases, size_t count, struct error *err)
{
	char text[ADDR_TEXT_MAX];

	if (count > TAP_LEASE_BATCH_MAX)
		return error_set(err, ERROR_CORRUPT, "%zu leases in one request", count);
	for (size_t i = 0; i < count; i++) {
		const struct tap_lease *lease = &leases[i];

		if (lease->addr.family != 4 && lease->addr.family != 6)
			return error_set(err, ERROR_CORRUPT, "lease of no address family");
		if (lease->proto != IPPROTO_TCP && lease->proto != IPPROTO_UDP)
			return error_set(err, ERROR_CORRUPT, "lease of protocol %u", lease->proto);
		if (lease->port == 0 || lease->port == 53)
			return error_set(err, ERROR_CORRUPT, "lease of port %u", lease->port);
		if (addr_never(&lease->addr) != NULL)
			return error_set(
			    err, ERROR_CORRUPT, "lease of never-list address %s", addr_format(&lease->addr, text));
	}
	return 0;
}

/* Replaces the upper bound by the kernel's count. */
static int
lease_count(struct tap *tap)
{
	size_t count4 = 0, count6 = 0;
	int r = sets_fetch(tap, RULESET_LEASE4, NULL, 0, &count4);

	if (r == 0 && tap_has_ipv6(&tap->config))
		r = sets_fetch(tap, RULESET_LEASE6, NULL, 0, &count6);
	if (r < 0)
		return r;
	tap->lease_bound = tap->lease_counted = count4 + count6;
	tap->lease_counted_ms = clock_mono_ms();
	return 0;
}

/* Is there room for more leases? A count is worth its price when there was room at the last one, because so many adds
 * came since; when there was none, once in a while. */
static int
lease_room(struct tap *tap, size_t more, struct error *err)
{
	bool recount =
	    tap->lease_counted + more <= TAP_LEASES_MAX || clock_mono_ms() - tap->lease_counted_ms >= LEASE_RECOUNT_MS;
	int r;

	if (tap->lease_bound + more <= TAP_LEASES_MAX)
		return 0;
	r = recount ? lease_count(tap) : 0;
	if (r < 0)
		return error_sys(err, -r, "count the leases");
	if (tap->lease_bound + more <= TAP_LEASES_MAX)
		return 0;
	return error_set(
	    err, ERROR_LIMIT, "sandbox %s has %d leases, the most there may be", tap->config.name, TAP_LEASES_MAX);
}

/* Adds to the batch: the leases of one family are added, deleted, and added again if they are to stay. elems is room
 * for TAP_LEASE_BATCH_MAX. Each element once: deleting one twice would fail the transaction. Returns how many there
 * are. */
static size_t
lease_build(struct nft_batch *batch, struct nft_elem *elems, int family, const struct tap_lease *leases, size_t count,
    uint64_t timeout_ms, bool stay)
{
	const char *set = family == 4 ? RULESET_LEASE4 : RULESET_LEASE6;
	size_t found = 0, kept = 0, len = sets_key_len(family);

	memset(elems, 0, TAP_LEASE_BATCH_MAX * sizeof(*elems));
	for (size_t i = 0; i < count; i++) {
		if (leases[i].addr.family != family)
			continue;
		sets_key(elems[found].key, &leases[i].addr, leases[i].proto, leases[i].port);
		elems[found++].timeout_ms = timeout_ms;
	}
	if (found == 0)
		return 0;
	qsort(elems, found, sizeof(*elems), sets_compare);
	for (size_t i = 1; i < found; i++)
		if (sets_compare(&elems[kept], &elems[i]) != 0)
			elems[++kept] = elems[i];
	kept++;
	nft_batch_elems_add(batch, set, elems, kept, len);
	nft_batch_elems_del(batch, set, elems, kept, len);
	if (stay)
		nft_batch_elems_add(batch, set, elems, kept, len);
	return kept;
}

/* One transaction for the leases of both families. Those of IPv6 are skipped where it is off: the guest cannot use
 * them. */
static int
lease_commit(
    struct tap *tap, const struct tap_lease *leases, size_t count, uint64_t timeout_ms, bool stay, struct error *err)
{
	struct nft_elem *elems = malloc(TAP_LEASE_BATCH_MAX * sizeof(*elems));
	struct nft_batch batch;
	size_t kept;

	if (elems == NULL)
		return error_sys(err, ENOMEM, "leases");
	sets_start(&batch);
	kept = lease_build(&batch, elems, 4, leases, count, timeout_ms, stay);
	if (tap_has_ipv6(&tap->config))
		kept += lease_build(&batch, elems, 6, leases, count, timeout_ms, stay);
	free(elems);
	return sets_commit(tap, &batch, kept == 0, err);
}

int
tap_lease_add(struct tap *tap, const struct tap_lease *leases, size_t count, uint32_t timeout_s, struct error *err)
{
	if (count == 0)
		return 0;
	if (timeout_s < TAP_LEASE_MIN_S)
		timeout_s = TAP_LEASE_MIN_S;
	if (timeout_s > TAP_LEASE_MAX_S)
		timeout_s = TAP_LEASE_MAX_S;
	if (lease_check(leases, count, err) < 0 || lease_room(tap, count, err) < 0 ||
	    lease_commit(tap, leases, count, (uint64_t)timeout_s * 1000, true, err) < 0)
		return -1;
	tap->lease_bound += count;
	return 0;
}

int
tap_lease_del(struct tap *tap, const struct tap_lease *leases, size_t count, struct error *err)
{
	if (count == 0)
		return 0;
	if (lease_check(leases, count, err) < 0)
		return -1;
	return lease_commit(tap, leases, count, 0, false, err);
}

int
tap_lease_flush(struct tap *tap, struct error *err)
{
	struct nft_batch batch;

	sets_start(&batch);
	nft_batch_elems_flush(&batch, RULESET_LEASE4);
	if (tap_has_ipv6(&tap->config))
		nft_batch_elems_flush(&batch, RULESET_LEASE6);
	if (sets_commit(tap, &batch, true, err) < 0)
		return -1;
	tap->lease_bound = tap->lease_counted = 0;
	return 0;
}
