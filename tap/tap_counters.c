/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How often each class of refusal happened, from the counter objects of both tables. */
#include "tap/refuse.h"
#include "tap/sets.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/object.h>
#include <string.h>

/* Dump callback: adds one counter object of our tables to its class. */
static int
counters_add(const struct nlmsghdr *nlh, void *context)
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
		r = nft_dump(tap->nft_fd, NFT_MSG_GETOBJ, NFPROTO_UNSPEC, NULL, counters_add, totals);
	}
	if (r < 0)
		return error_sys(err, -r, "read the counters");
	memcpy(ret_totals, totals, sizeof(totals));
	return 0;
}
