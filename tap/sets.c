/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/sets.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/set.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

struct sets_list {
	const char *set;
	struct nft_elem *elems; /* room for max of them, or NULL: only count */
	size_t count, max;
	bool failed;
};

void
sets_key(uint8_t *key, const struct addr *addr, uint8_t proto, uint16_t port)
{
	size_t len = addr->family == 4 ? 4 : 16;

	memcpy(key, addr->bytes, len);
	key[len] = proto;
	key[len + 4] = (uint8_t)(port >> 8);
	key[len + 5] = (uint8_t)(port & 0xff);
}

int
sets_compare(const void *a, const void *b)
{
	const struct nft_elem *x = a, *y = b;
	int r = memcmp(x->key, y->key, sizeof(x->key));

	return r != 0 ? r : memcmp(x->key_end, y->key_end, sizeof(x->key_end));
}

/* Names the set in the request for a dump. */
static void
sets_list_fill(struct nlmsghdr *nlh, const void *context)
{
	const struct sets_list *list = context;

	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, TAP_TABLE);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, list->set);
}

/* Takes one element into the list. */
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

/* Dump callback: one message of elements. */
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

int
sets_fetch(struct tap *tap, const char *set, struct nft_elem *elems, size_t max, size_t *ret_count)
{
	int r = -EAGAIN;

	for (int i = 0; i < SETS_DUMP_TRIES && (r == -EAGAIN || r == -EINTR); i++) {
		struct sets_list list = {.set = set, .elems = elems, .max = max};

		r = nft_dump(tap->nft_fd, NFT_MSG_GETSETELEM, NFPROTO_INET, sets_list_fill, sets_list_part, &list);
		*ret_count = list.count;
	}
	return r;
}

void
sets_start(struct nft_batch *batch)
{
	nft_batch_start(batch);
	nft_batch_select(batch, NFPROTO_INET, TAP_TABLE);
}

int
sets_commit(struct tap *tap, struct nft_batch *batch, bool idle, struct error *err)
{
	int error = 0;

	if (nft_batch_commit(batch, tap->nft_fd, &error, err) == 0) {
		tap_intact_committed(tap, !idle);
		return 0;
	}
	if (error == ENFILE)
		return error_set(err, ERROR_LIMIT, "the kernel's set is full");
	if (error == ENOENT) /* not the fault of the role that asked */
		return error_set(err, ERROR_SYSTEM, "the sandbox's nftables table is gone or was changed");
	return -1;
}
