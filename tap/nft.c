/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The only file that talks to libnftnl about tables, chains, sets and transactions; nft_rule.c does rules. */
#include "tap/attr.h"
#include "tap/nft.h"

#include "tap/tap_internal.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/chain.h>
#include <libnftnl/common.h>
#include <libnftnl/object.h>
#include <libnftnl/set.h>
#include <libnftnl/table.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room that each message may need; libmnl and libnftnl do not check. */
#define NFT_MESSAGE_MAX (96 * 1024)
/* Largest batch: a policy's SNAPSHOT_RANGES_MAX intervals of 120 bytes, and some room. */
#define NFT_BATCH_MAX (2 * 1024 * 1024)
/* Answers read at a time: a netlink dump fills at most 32 KiB. */
#define NFT_ANSWER_MAX (64 * 1024)

int
nft_open(struct error *err)
{
	int fd, size = NFT_BATCH_MAX;

	if (tap_step(err) < 0)
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_NETFILTER);
	if (fd < 0)
		return error_sys(err, errno, "nfnetlink socket");
	/* A batch is one datagram. In a user namespace only the second one works, and large policies may not fit. */
	if (setsockopt(fd, SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof(size)) < 0)
		(void)setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	return fd;
}

void
nft_batch_free(struct nft_batch *batch)
{
	free(batch->bytes);
	memset(batch, 0, sizeof(*batch));
}

void
nft_batch_fail(struct nft_batch *batch, int error)
{
	if (batch->error == 0)
		batch->error = error;
}

/* Where the next message goes, with room for it; NULL after an error. */
static char *
nft_batch_room(struct nft_batch *batch)
{
	uint8_t *bytes;
	size_t size;

	if (batch->error != 0)
		return NULL;
	if (batch->size - batch->used < NFT_MESSAGE_MAX) {
		size = batch->size == 0 ? 2 * NFT_MESSAGE_MAX : 2 * batch->size;
		bytes = size > 2 * NFT_BATCH_MAX ? NULL : realloc(batch->bytes, size);
		if (bytes == NULL) {
			nft_batch_fail(batch, ENOMEM);
			return NULL;
		}
		batch->bytes = bytes;
		batch->size = size;
	}
	return (char *)batch->bytes + batch->used;
}

void
nft_batch_push(struct nft_batch *batch, const struct nlmsghdr *nlh)
{
	batch->last_at = batch->used;
	batch->used += (nlh->nlmsg_len + 3u) & ~3u;
}

struct nlmsghdr *
nft_batch_message(struct nft_batch *batch, uint16_t type, uint16_t flags)
{
	char *room = nft_batch_room(batch);

	if (room == NULL)
		return NULL;
	return nftnl_nlmsg_build_hdr(room, type, (uint16_t)batch->family, flags, ++batch->seq);
}

void
nft_batch_start(struct nft_batch *batch)
{
	char *room;

	memset(batch, 0, sizeof(*batch));
	room = nft_batch_room(batch);
	if (room != NULL)
		nft_batch_push(batch, nftnl_batch_begin(room, ++batch->seq));
}

void
nft_batch_select(struct nft_batch *batch, int family, const char *table)
{
	batch->family = family;
	batch->table = table;
}

/* Read what the kernel queued while it worked on the batch. It is all there when send(2) returns, so nothing waits.
 * An error may belong to any message, and one of the commit itself bears the first one's number; the acknowledgement
 * asked for is the last message's. Success is that one and no error beside it. */
static int
nft_batch_result(int fd, uint32_t last_seq)
{
	char answer[NFT_ANSWER_MAX];
	bool acknowledged = false;
	const struct nlmsghdr *nlh;
	int error = 0, left;
	ssize_t len;

	while ((len = recv(fd, answer, sizeof(answer), MSG_DONTWAIT)) > 0) {
		left = (int)len;
		for (nlh = (const void *)answer; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
			const struct nlmsgerr *e = mnl_nlmsg_get_payload(nlh);

			if (nlh->nlmsg_type != NLMSG_ERROR || mnl_nlmsg_get_payload_len(nlh) < sizeof(*e))
				continue;
			if (e->error != 0 && error == 0)
				error = e->error;
			if (e->error == 0 && nlh->nlmsg_seq == last_seq)
				acknowledged = true;
		}
	}
	if (error != 0)
		return error;
	if (len < 0 && errno != EAGAIN)
		return -errno;
	return acknowledged ? 0 : -EPROTO;
}

/* Ends the batch and sends it. 0 or -errno. */
static int
nft_batch_send(struct nft_batch *batch, int fd)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	struct nlmsghdr *last;
	char drained[64];
	char *room;

	last = (struct nlmsghdr *)(void *)(batch->bytes + batch->last_at);
	last->nlmsg_flags |= NLM_F_ACK;
	room = nft_batch_room(batch);
	if (room == NULL)
		return -batch->error;
	batch->used += nftnl_batch_end(room, batch->seq + 1)->nlmsg_len;
	while (recv(fd, drained, sizeof(drained), MSG_DONTWAIT) > 0)
		; /* leftovers of a call that gave up */
	if (sendto(fd, batch->bytes, batch->used, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	return nft_batch_result(fd, batch->seq);
}

int
nft_batch_commit(struct nft_batch *batch, int fd, int *ret_errno, struct error *err)
{
	int r = -batch->error;

	if (r == 0 && tap_step(err) < 0) {
		nft_batch_free(batch);
		return -1;
	}
	if (r == 0 && batch->seq > 1)
		r = nft_batch_send(batch, fd);
	nft_batch_free(batch);
	if (r == 0)
		return 0;
	if (ret_errno != NULL)
		*ret_errno = -r;
	return error_sys(err, -r, "nftables transaction");
}

/* Adds a message about the table. */
static void
nft_batch_table_message(struct nft_batch *batch, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, type, flags);
	struct nftnl_table *table;

	if (nlh == NULL)
		return;
	table = nftnl_table_alloc();
	if (table == NULL || nftnl_table_set_str(table, NFTNL_TABLE_NAME, batch->table) < 0) {
		nft_batch_fail(batch, ENOMEM);
	} else {
		nftnl_table_nlmsg_build_payload(nlh, table);
		nft_batch_push(batch, nlh);
	}
	if (table != NULL)
		nftnl_table_free(table);
}

void
nft_batch_table(struct nft_batch *batch)
{
	nft_batch_table_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
}

void
nft_batch_table_drop(struct nft_batch *batch)
{
	/* Deleting what is not there would fail the batch: create it first. */
	nft_batch_table_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	nft_batch_table_message(batch, NFT_MSG_DELTABLE, 0);
}

void
nft_batch_counter(struct nft_batch *batch, const char *name)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWOBJ, NLM_F_CREATE);
	struct nftnl_obj *object;

	if (nlh == NULL)
		return;
	object = nftnl_obj_alloc();
	if (object == NULL) {
		nft_batch_fail(batch, ENOMEM);
		return;
	}
	nftnl_obj_set_u32(object, NFTNL_OBJ_TYPE, NFT_OBJECT_COUNTER);
	nftnl_obj_set_u64(object, NFTNL_OBJ_CTR_PKTS, 0);
	nftnl_obj_set_u64(object, NFTNL_OBJ_CTR_BYTES, 0);
	nftnl_obj_set_str(object, NFTNL_OBJ_TABLE, batch->table);
	nftnl_obj_set_str(object, NFTNL_OBJ_NAME, name);
	if (!nftnl_obj_is_set(object, NFTNL_OBJ_TABLE) || !nftnl_obj_is_set(object, NFTNL_OBJ_NAME)) {
		nft_batch_fail(batch, ENOMEM);
	} else {
		nftnl_obj_nlmsg_build_payload(nlh, object);
		nft_batch_push(batch, nlh);
	}
	nftnl_obj_free(object);
}

/* Build a chain's message; takes the chain. */
static void
nft_batch_chain_message(struct nft_batch *batch, struct nftnl_chain *chain, const char *name)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	if (chain == NULL) {
		nft_batch_fail(batch, ENOMEM);
		return;
	}
	if (nlh != NULL) {
		if (nftnl_chain_set_str(chain, NFTNL_CHAIN_TABLE, batch->table) < 0 ||
		    nftnl_chain_set_str(chain, NFTNL_CHAIN_NAME, name) < 0) {
			nft_batch_fail(batch, ENOMEM);
		} else {
			nftnl_chain_nlmsg_build_payload(nlh, chain);
			nft_batch_push(batch, nlh);
		}
	}
	nftnl_chain_free(chain);
}

void
nft_batch_base_chain(
    struct nft_batch *batch, const char *name, uint32_t hook, int32_t priority, uint32_t policy, const char *device)
{
	struct nftnl_chain *chain = nftnl_chain_alloc();

	if (chain != NULL) {
		nftnl_chain_set_u32(chain, NFTNL_CHAIN_HOOKNUM, hook);
		nftnl_chain_set_s32(chain, NFTNL_CHAIN_PRIO, priority);
		nftnl_chain_set_u32(chain, NFTNL_CHAIN_POLICY, policy);
		if (nftnl_chain_set_str(chain, NFTNL_CHAIN_TYPE, "filter") < 0 ||
		    (device != NULL && nftnl_chain_set_str(chain, NFTNL_CHAIN_DEV, device) < 0))
			nft_batch_fail(batch, ENOMEM);
	}
	nft_batch_chain_message(batch, chain, name);
}

void
nft_batch_chain(struct nft_batch *batch, const char *name)
{
	nft_batch_chain_message(batch, nftnl_chain_alloc(), name);
}

/* Sets the members of a set. */
static int
nft_set_fill(struct nftnl_set *object, const struct nft_batch *batch, const struct nft_set *set)
{
	nftnl_set_set_u32(object, NFTNL_SET_FAMILY, (uint32_t)batch->family);
	nftnl_set_set_u32(object, NFTNL_SET_FLAGS, set->flags);
	nftnl_set_set_u32(object, NFTNL_SET_KEY_TYPE, set->key_type);
	nftnl_set_set_u32(object, NFTNL_SET_KEY_LEN, set->key_len);
	nftnl_set_set_u32(object, NFTNL_SET_ID, batch->seq);
	if (set->timeout_ms != 0) {
		nftnl_set_set_u64(object, NFTNL_SET_TIMEOUT, set->timeout_ms);
		nftnl_set_set_u32(object, NFTNL_SET_GC_INTERVAL, set->gc_interval_ms);
	}
	if (set->size != 0)
		nftnl_set_set_u32(object, NFTNL_SET_DESC_SIZE, set->size);
	if ((set->flags & NFT_SET_CONCAT) != 0 &&
	    nftnl_set_set_data(object, NFTNL_SET_DESC_CONCAT, set->fields, set->field_count) < 0)
		return -1;
	if (nftnl_set_set_str(object, NFTNL_SET_TABLE, batch->table) < 0)
		return -1;
	return nftnl_set_set_str(object, NFTNL_SET_NAME, set->name);
}

void
nft_batch_set(struct nft_batch *batch, const struct nft_set *set)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWSET, NLM_F_CREATE);
	struct nftnl_set *object;

	if (nlh == NULL)
		return;
	object = nftnl_set_alloc();
	if (object == NULL || nft_set_fill(object, batch, set) < 0) {
		nft_batch_fail(batch, ENOMEM);
	} else {
		nftnl_set_nlmsg_build_payload(nlh, object);
		nft_batch_push(batch, nlh);
	}
	if (object != NULL)
		nftnl_set_free(object);
}

/* NULL when memory is short. */
static struct nftnl_set_elem *
nft_elem_make(const struct nft_elem *elem, size_t key_len)
{
	struct nftnl_set_elem *object = nftnl_set_elem_alloc();

	if (object == NULL)
		return NULL;
	if (nftnl_set_elem_set(object, NFTNL_SET_ELEM_KEY, elem->key, (uint32_t)key_len) < 0 ||
	    (elem->has_key_end &&
		nftnl_set_elem_set(object, NFTNL_SET_ELEM_KEY_END, elem->key_end, (uint32_t)key_len) < 0)) {
		nftnl_set_elem_free(object);
		return NULL;
	}
	if (elem->interval_end)
		nftnl_set_elem_set_u32(object, NFTNL_SET_ELEM_FLAGS, NFT_SET_ELEM_INTERVAL_END);
	if (elem->timeout_ms != 0)
		nftnl_set_elem_set_u64(object, NFTNL_SET_ELEM_TIMEOUT, elem->timeout_ms);
	return object;
}

/* Adds a message about elements; none of them means all. */
static void
nft_batch_elems(struct nft_batch *batch, uint16_t type, uint16_t flags, const char *set, const struct nft_elem *elems,
    size_t count, size_t key_len)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, type, flags);
	struct nftnl_set *object = nftnl_set_alloc();
	struct nftnl_set_elem *elem;

	if (object == NULL || count > NFT_ELEMS_MAX)
		nft_batch_fail(batch, object == NULL ? ENOMEM : E2BIG);
	else if (nftnl_set_set_str(object, NFTNL_SET_TABLE, batch->table) < 0 ||
	    nftnl_set_set_str(object, NFTNL_SET_NAME, set) < 0)
		nft_batch_fail(batch, ENOMEM);
	for (size_t i = 0; batch->error == 0 && i < count; i++) {
		elem = nft_elem_make(&elems[i], key_len);
		if (elem == NULL)
			nft_batch_fail(batch, ENOMEM);
		else
			nftnl_set_elem_add(object, elem);
	}
	if (batch->error == 0 && nlh != NULL) {
		nftnl_set_elems_nlmsg_build_payload(nlh, object);
		nft_batch_push(batch, nlh);
	}
	if (object != NULL)
		nftnl_set_free(object);
}

void
nft_batch_elems_add(
    struct nft_batch *batch, const char *set, const struct nft_elem *elems, size_t count, size_t key_len)
{
	nft_batch_elems(batch, NFT_MSG_NEWSETELEM, NLM_F_CREATE, set, elems, count, key_len);
}

void
nft_batch_elems_del(
    struct nft_batch *batch, const char *set, const struct nft_elem *elems, size_t count, size_t key_len)
{
	nft_batch_elems(batch, NFT_MSG_DELSETELEM, 0, set, elems, count, key_len);
}

void
nft_batch_elems_flush(struct nft_batch *batch, const char *set)
{
	nft_batch_elems(batch, NFT_MSG_DELSETELEM, 0, set, NULL, 0, 0);
}

/* One datagram of a dump: 1 when more follow, 0 at the end, or -errno. */
static int
nft_dump_part(int fd, int (*each)(const struct nlmsghdr *nlh, void *context), void *context)
{
	char answer[NFT_ANSWER_MAX];
	const struct nlmsghdr *nlh;
	ssize_t len = recv(fd, answer, sizeof(answer), 0);
	int left = (int)len;

	if (len < 0)
		return -errno;
	for (nlh = (const void *)answer; mnl_nlmsg_ok(nlh, left); nlh = mnl_nlmsg_next(nlh, &left)) {
		if (nlh->nlmsg_flags & NLM_F_DUMP_INTR)
			return -EINTR;
		if (nlh->nlmsg_type == NLMSG_DONE)
			return 0;
		if (nlh->nlmsg_type == NLMSG_ERROR)
			return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(nlh))->error;
		if (each(nlh, context) != MNL_CB_OK)
			return -EBADMSG;
	}
	return 1;
}

int
nft_dump(int fd, uint16_t type, int family, void (*fill)(struct nlmsghdr *nlh, const void *context),
    int (*each)(const struct nlmsghdr *nlh, void *context), void *context)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char bytes[1024];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(bytes, type, (uint16_t)family, NLM_F_DUMP, 1);
	int r;

	if (fill != NULL)
		fill(nlh, context);
	while (recv(fd, bytes + nlh->nlmsg_len, 1, MSG_DONTWAIT) > 0)
		; /* the rest of an interrupted dump */
	if (sendto(fd, bytes, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	while ((r = nft_dump_part(fd, each, context)) > 0)
		;
	return r;
}

int
nft_generation(int fd, uint32_t *ret_generation)
{
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	char bytes[1024];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(bytes, NFT_MSG_GETGEN, AF_UNSPEC, 0, 1);
	const struct nlattr *attr;
	ssize_t len;

	while (recv(fd, bytes + nlh->nlmsg_len, 1, MSG_DONTWAIT) > 0)
		;
	if (sendto(fd, bytes, nlh->nlmsg_len, 0, (struct sockaddr *)&kernel, sizeof(kernel)) < 0)
		return -errno;
	len = recv(fd, bytes, sizeof(bytes), 0);
	if (len < 0)
		return -errno;
	nlh = (struct nlmsghdr *)(void *)bytes;
	if (!mnl_nlmsg_ok(nlh, (int)len) || (nlh->nlmsg_type & 0xff) != NFT_MSG_NEWGEN)
		return -EBADMSG;
	attr_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) == NFTA_GEN_ID && mnl_attr_get_payload_len(attr) == sizeof(uint32_t)) {
			*ret_generation = ntohl(mnl_attr_get_u32(attr));
			return 0;
		}
	}
	return -EBADMSG;
}
