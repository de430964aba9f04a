/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A lease is an element `address . protocol . port` with a timeout in a hash set; allowed ranges
 * are elements of an interval set. Each public function here is one transaction on the sandbox's own netlink socket.
 *
 * Adding a lease has to start its countdown anew. Kernels differ in what adding an element again does (before 6.12
 * nothing; since then it changes the timeout, but not the time left), so each add is three steps of one transaction:
 * add (so that there is one to delete), delete, add. Packets see the old element or the new one, never none. Deleting
 * is add, delete, for the same reason: deleting what has just expired would fail the transaction.
 *
 * The sets have no size limit in the kernel (a stated size is allocated at once). The limit is kept here: an upper
 * bound that grows with each add, and is replaced by a count of the kernel's elements when it reaches the maximum. */
#include "base/clock.h"
#include "tap/never.h"
#include "tap/nft.h"
#include "tap/refuse.h"
#include "tap/ruleset.h"

#include <assert.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/object.h>
#include <libnftnl/set.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>

/* How often a full table is counted again: listing 16,384 elements takes milliseconds, and a gateway may keep
 * asking. */
#define SETS_RECOUNT_MS 1000
/* Listings that another transaction interrupted. */
#define SETS_DUMP_TRIES 8

static_assert(TAP_LEASE_BATCH_MAX <= NFT_ELEMS_MAX, "a lease request is one message");

/* Keys: address, protocol, port. */

static size_t
sets_key_len(int family)
{
	return family == 4 ? RULESET_KEY4_LEN : RULESET_KEY6_LEN;
}

static void
sets_key(uint8_t *key, const struct addr *addr, uint8_t proto, uint16_t port)
{
	size_t len = addr->family == 4 ? 4 : 16;

	memcpy(key, addr->bytes, len);
	key[len] = proto;
	key[len + 4] = (uint8_t)(port >> 8);
	key[len + 5] = (uint8_t)(port & 0xff);
}

static int
sets_compare(const void *a, const void *b)
{
	const struct nft_elem *x = a, *y = b;
	int r = memcmp(x->key, y->key, sizeof(x->key));

	return r != 0 ? r : memcmp(x->key_end, y->key_end, sizeof(x->key_end));
}

/* Listing a set. */

struct sets_list {
	struct tap *tap;
	const char *set;
	struct nft_elem *elems; /* room for max of them, or NULL: only count */
	size_t count, max;
	bool failed;
};

static void
sets_list_fill(struct nlmsghdr *nlh, const void *context)
{
	const struct sets_list *list = context;

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, TAP_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, list->set);
}

static int
sets_list_elem(struct nftnl_set_elem *object, void *context)
{
	struct sets_list *list = context;
	struct nft_elem *elem;
	const void *bytes;
	uint32_t len;

	if (list->elems != NULL && list->count < list->max) {
		elem = &list->elems[list->count];
		memset(elem, 0, sizeof(*elem));
		bytes = nftnl_set_elem_get(object, NFTNL_SET_ELEM_KEY, &len);
		if (bytes == NULL || len > NFT_KEY_MAX)
			return -1;
		memcpy(elem->key, bytes, len);
		bytes = nftnl_set_elem_get(object, NFTNL_SET_ELEM_KEY_END, &len);
		if (bytes != NULL && len <= NFT_KEY_MAX) {
			memcpy(elem->key_end, bytes, len);
			elem->has_key_end = true;
		}
	}
	list->count++;
	return 0;
}

static int
sets_list_part(const struct nlmsghdr *nlh, void *context)
{
	struct sets_list *list = context;
	struct nftnl_set *object = nftnl_set_alloc();

	if (object == NULL || nftnl_set_elems_nlmsg_parse(nlh, object) < 0 ||
	    nftnl_set_elem_foreach(object, sets_list_elem, list) < 0)
		list->failed = true;
	if (object != NULL)
		nftnl_set_free(object);
	return list->failed ? MNL_CB_ERROR : MNL_CB_OK;
}

/* Count (elems NULL) or fetch the elements of a set that are not expired. 0 or -errno. */
static int
sets_fetch(struct tap *tap, const char *set, struct nft_elem *elems, size_t max, size_t *ret_count)
{
	int r = -EAGAIN;

	for (int i = 0; i < SETS_DUMP_TRIES && (r == -EAGAIN || r == -EINTR); i++) {
		struct sets_list list = {.tap = tap, .set = set, .elems = elems, .max = max};

		r = nft_dump(tap->nft_fd, NFT_MSG_GETSETELEM, NFPROTO_INET, sets_list_fill, sets_list_part, &list);
		*ret_count = list.count;
	}
	return r;
}

/* Committing. */

/* idle: it may turn out that there was nothing to change. */
static int
sets_commit(struct tap *tap, struct nft_batch *batch, bool idle, struct error *err)
{
	int error = 0;

	if (nft_batch_commit(batch, tap->nft_fd, &error, err) == 0) {
		tap_intact_committed(tap, !idle);
		return 0;
	}
	if (error == ENFILE)
		return error_set(err, ERROR_LIMIT, "the kernel's set is full");
	if (error == ENOENT) /* nobody's fault who asked for the change */
		return error_set(err, ERROR_SYSTEM, "the sandbox's nftables table is gone or was changed");
	return -1;
}

/* Leases. */

struct sets_request {
	struct nft_elem elems[TAP_LEASE_BATCH_MAX];
	size_t count;
};

/* The leases of one family as elements, sorted, each once: deleting one twice would fail the transaction. */
static void
sets_request_fill(
    struct sets_request *request, int family, const struct tap_lease *leases, size_t count, uint64_t timeout_ms)
{
	size_t kept = 0;

	memset(request, 0, sizeof(*request));
	for (size_t i = 0; i < count; i++) {
		struct nft_elem *elem = &request->elems[request->count];

		if (leases[i].addr.family != family)
			continue;
		sets_key(elem->key, &leases[i].addr, leases[i].proto, leases[i].port);
		elem->timeout_ms = timeout_ms;
		request->count++;
	}
	qsort(request->elems, request->count, sizeof(request->elems[0]), sets_compare);
	for (size_t i = 1; i < request->count; i++)
		if (sets_compare(&request->elems[kept], &request->elems[i]) != 0)
			request->elems[++kept] = request->elems[i];
	if (request->count > 0)
		request->count = kept + 1;
}

/* Add and delete the leases of one family, and add them again if they are to stay. */
static void
sets_request_build(struct nft_batch *batch, int family, const struct sets_request *request, bool stay)
{
	const char *set = family == 4 ? RULESET_LEASE4 : RULESET_LEASE6;
	size_t len = sets_key_len(family);

	if (request->count == 0)
		return;
	nft_batch_elems_add(batch, set, request->elems, request->count, len);
	nft_batch_elems_del(batch, set, request->elems, request->count, len);
	if (stay)
		nft_batch_elems_add(batch, set, request->elems, request->count, len);
}

static int
sets_lease_check(const struct tap_lease *lease, struct error *err)
{
	char text[ADDR_TEXT_MAX];

	if (lease->addr.family != 4 && lease->addr.family != 6)
		return error_set(err, ERROR_CORRUPT, "lease of no address family");
	if (lease->proto != IPPROTO_TCP && lease->proto != IPPROTO_UDP)
		return error_set(err, ERROR_CORRUPT, "lease of protocol %u", lease->proto);
	if (lease->port == 0 || lease->port == 53)
		return error_set(err, ERROR_CORRUPT, "lease of port %u", lease->port);
	if (addr_never(&lease->addr) != NULL)
		return error_set(err, ERROR_CORRUPT, "lease of never-list address %s", addr_format(&lease->addr, text));
	return 0;
}

/* Replace the upper bound by the kernel's count. */
static int
sets_lease_count(struct tap *tap)
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
sets_lease_room(struct tap *tap, size_t more, struct error *err)
{
	bool recount =
	    tap->lease_counted + more <= TAP_LEASES_MAX || clock_mono_ms() - tap->lease_counted_ms >= SETS_RECOUNT_MS;
	int r;

	if (tap->lease_bound + more <= TAP_LEASES_MAX)
		return 0;
	r = recount ? sets_lease_count(tap) : 0;
	if (r < 0)
		return error_sys(err, -r, "count the leases");
	if (tap->lease_bound + more <= TAP_LEASES_MAX)
		return 0;
	return error_set(
	    err, ERROR_LIMIT, "sandbox %s has %d leases, the most there may be", tap->config.name, TAP_LEASES_MAX);
}

/* One transaction for the leases of both families. Those of IPv6 are passed over where it is off: the guest cannot use
 * them. */
static int
sets_lease_commit(
    struct tap *tap, const struct tap_lease *leases, size_t count, uint64_t timeout_ms, bool stay, struct error *err)
{
	struct sets_request *request = malloc(sizeof(*request));
	struct nft_batch batch;
	size_t kept;

	if (request == NULL)
		return error_sys(err, ENOMEM, "leases");
	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, TAP_TABLE);
	sets_request_fill(request, 4, leases, count, timeout_ms);
	sets_request_build(&batch, 4, request, stay);
	kept = request->count;
	if (tap_has_ipv6(&tap->config)) {
		sets_request_fill(request, 6, leases, count, timeout_ms);
		sets_request_build(&batch, 6, request, stay);
		kept += request->count;
	}
	free(request);
	return sets_commit(tap, &batch, kept == 0, err);
}

int
tap_lease_add(struct tap *tap, const struct tap_lease *leases, size_t count, uint32_t timeout_s, struct error *err)
{
	uint64_t timeout_ms;

	if (count == 0)
		return 0;
	if (count > TAP_LEASE_BATCH_MAX)
		return error_set(err, ERROR_CORRUPT, "%zu leases in one request", count);
	for (size_t i = 0; i < count; i++)
		if (sets_lease_check(&leases[i], err) < 0)
			return -1;
	if (timeout_s < TAP_LEASE_MIN_S)
		timeout_s = TAP_LEASE_MIN_S;
	if (timeout_s > TAP_LEASE_MAX_S)
		timeout_s = TAP_LEASE_MAX_S;
	timeout_ms = (uint64_t)timeout_s * 1000;
	if (sets_lease_room(tap, count, err) < 0)
		return -1;
	if (sets_lease_commit(tap, leases, count, timeout_ms, true, err) < 0)
		return -1;
	tap->lease_bound += count;
	return 0;
}

int
tap_lease_del(struct tap *tap, const struct tap_lease *leases, size_t count, struct error *err)
{
	if (count == 0)
		return 0;
	if (count > TAP_LEASE_BATCH_MAX)
		return error_set(err, ERROR_CORRUPT, "%zu leases in one request", count);
	for (size_t i = 0; i < count; i++)
		if (sets_lease_check(&leases[i], err) < 0)
			return -1;
	return sets_lease_commit(tap, leases, count, 0, false, err);
}

int
tap_lease_flush(struct tap *tap, struct error *err)
{
	struct nft_batch batch;

	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, TAP_TABLE);
	nft_batch_elems_flush(&batch, RULESET_LEASE4);
	if (tap_has_ipv6(&tap->config))
		nft_batch_elems_flush(&batch, RULESET_LEASE6);
	if (sets_commit(tap, &batch, true, err) < 0)
		return -1;
	tap->lease_bound = tap->lease_counted = 0;
	return 0;
}

/* Ranges. */

static int
sets_range_check(const struct addr_range *range, struct error *err)
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

/* The ranges of one family as elements, sorted. */
static size_t
sets_ranges_fill(struct nft_elem *elems, int family, const struct addr_range *ranges, size_t count)
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

static void
sets_ranges_build(struct nft_batch *batch, int family, const struct nft_elem *elems, size_t count)
{
	const char *set = family == 4 ? RULESET_RANGE4 : RULESET_RANGE6;
	size_t part;

	nft_batch_elems_flush(batch, set);
	for (size_t at = 0; at < count; at += part) {
		part = count - at < NFT_ELEMS_MAX ? count - at : NFT_ELEMS_MAX;
		nft_batch_elems_add(batch, set, elems + at, part, sets_key_len(family));
	}
}

/* What the kernel lists must be what was sent. */
static int
sets_ranges_verify(struct tap *tap, int family, const struct nft_elem *sent, size_t count, struct error *err)
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

/* Replace and verify with elems as room for all ranges. */
static int
sets_ranges_replace(
    struct tap *tap, struct nft_elem *elems, const struct addr_range *ranges, size_t count, struct error *err)
{
	bool ipv6 = tap_has_ipv6(&tap->config);
	size_t count4 = sets_ranges_fill(elems, 4, ranges, count);
	size_t count6 = sets_ranges_fill(elems + count4, 6, ranges, count);
	struct nft_batch batch;

	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, TAP_TABLE);
	sets_ranges_build(&batch, 4, elems, count4);
	if (ipv6)
		sets_ranges_build(&batch, 6, elems + count4, count6);
	if (sets_commit(tap, &batch, true, err) < 0)
		return -1;
	if (sets_ranges_verify(tap, 4, elems, count4, err) < 0)
		return -1;
	return ipv6 ? sets_ranges_verify(tap, 6, elems + count4, count6, err) : 0;
}

int
tap_ranges_set(struct tap *tap, const struct addr_range *ranges, size_t count, struct error *err)
{
	struct nft_elem *elems;
	int r;

	if (count > SNAPSHOT_RANGES_MAX)
		return error_set(err, ERROR_CORRUPT, "%zu ranges", count);
	for (size_t i = 0; i < count; i++)
		if (sets_range_check(&ranges[i], err) < 0)
			return -1;
	elems = calloc(count + 1, sizeof(*elems));
	if (elems == NULL)
		return error_sys(err, ENOMEM, "ranges");
	r = sets_ranges_replace(tap, elems, ranges, count, err);
	free(elems);
	return r;
}

/* Counters. */

static int
sets_counter_add(const struct nlmsghdr *nlh, void *context)
{
	struct nftnl_obj *object = nftnl_obj_alloc();
	uint64_t *totals = context;
	const char *table, *name;

	if (object == NULL || nftnl_obj_nlmsg_parse(nlh, object) < 0) {
		if (object != NULL)
			nftnl_obj_free(object);
		return MNL_CB_ERROR;
	}
	table = nftnl_obj_get_str(object, NFTNL_OBJ_TABLE);
	name = nftnl_obj_get_str(object, NFTNL_OBJ_NAME);
	if (nftnl_obj_get_u32(object, NFTNL_OBJ_TYPE) == NFT_OBJECT_COUNTER && table != NULL && name != NULL &&
	    strcmp(table, TAP_TABLE) == 0)
		for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
			if (strcmp(name, refuse_counter_name((enum tap_counter)i)) == 0)
				totals[i] += nftnl_obj_get_u64(object, NFTNL_OBJ_CTR_PKTS);
	nftnl_obj_free(object);
	return MNL_CB_OK;
}

int
tap_counters(struct tap *tap, uint64_t ret_totals[TAP_COUNTER_MAX], struct error *err)
{
	uint64_t totals[TAP_COUNTER_MAX];
	int r = -EINTR;

	for (int i = 0; i < SETS_DUMP_TRIES && r == -EINTR; i++) {
		memset(totals, 0, sizeof(totals));
		r = nft_dump(tap->nft_fd, NFT_MSG_GETOBJ, NFPROTO_UNSPEC, NULL, sets_counter_add, totals);
	}
	if (r < 0)
		return error_sys(err, -r, "read the counters");
	memcpy(ret_totals, totals, sizeof(totals));
	return 0;
}
