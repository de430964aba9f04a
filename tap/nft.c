/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A batch is one datagram of messages, each built in place by libmnl: tables, chains, sets,
 * elements and counters here, rules in nft_rule.c by libnftnl. The kernel takes all of it or nothing, and says so
 * before sendto(2) returns: a message of its own for each error, and the acknowledgement that the last message asks
 * for. A batch whose building failed, for want of memory or because a list is too long, is freed and not sent. */
#include "tap/attr.h"
#include "tap/nft.h"

#include "tap/tap_internal.h"

#include <endian.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <linux/netfilter/nfnetlink.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Room that each message may need; libmnl and libnftnl do not check it. */
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
	if (send(fd, batch->bytes, batch->used, 0) < 0)
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

	if (nlh == NULL)
		return;
	mnl_attr_put_strz(nlh, NFTA_TABLE_NAME, batch->table);
	nft_batch_push(batch, nlh);
}

void
nft_batch_table(struct nft_batch *batch)
{
	nft_batch_table_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
}

void
nft_batch_table_drop(struct nft_batch *batch)
{
	/* Deleting a missing table would fail the batch: create it first. */
	nft_batch_table_message(batch, NFT_MSG_NEWTABLE, NLM_F_CREATE);
	nft_batch_table_message(batch, NFT_MSG_DELTABLE, 0);
}

void
nft_batch_counter(struct nft_batch *batch, const char *name)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWOBJ, NLM_F_CREATE);

	if (nlh == NULL)
		return;
	mnl_attr_put_strz(nlh, NFTA_OBJ_TABLE, batch->table);
	mnl_attr_put_strz(nlh, NFTA_OBJ_NAME, name);
	mnl_attr_put_u32(nlh, NFTA_OBJ_TYPE, htonl(NFT_OBJECT_COUNTER));
	mnl_attr_nest_end(nlh, mnl_attr_nest_start(nlh, NFTA_OBJ_DATA)); /* from zero */
	nft_batch_push(batch, nlh);
}

void
nft_batch_base_chain(
    struct nft_batch *batch, const char *name, uint32_t hook, int32_t priority, uint32_t policy, const char *device)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);
	struct nlattr *nest;

	if (nlh == NULL)
		return;
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, batch->table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, name);
	nest = mnl_attr_nest_start(nlh, NFTA_CHAIN_HOOK);
	mnl_attr_put_u32(nlh, NFTA_HOOK_HOOKNUM, htonl(hook));
	mnl_attr_put_u32(nlh, NFTA_HOOK_PRIORITY, htonl((uint32_t)priority));
	if (device != NULL)
		mnl_attr_put_strz(nlh, NFTA_HOOK_DEV, device);
	mnl_attr_nest_end(nlh, nest);
	mnl_attr_put_u32(nlh, NFTA_CHAIN_POLICY, htonl(policy));
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TYPE, "filter");
	nft_batch_push(batch, nlh);
}

void
nft_batch_chain(struct nft_batch *batch, const char *name)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWCHAIN, NLM_F_CREATE);

	if (nlh == NULL)
		return;
	mnl_attr_put_strz(nlh, NFTA_CHAIN_TABLE, batch->table);
	mnl_attr_put_strz(nlh, NFTA_CHAIN_NAME, name);
	nft_batch_push(batch, nlh);
}

void
nft_batch_set(struct nft_batch *batch, const struct nft_set *set)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, NFT_MSG_NEWSET, NLM_F_CREATE);
	struct nlattr *nest, *fields, *field;

	if (nlh == NULL)
		return;
	mnl_attr_put_strz(nlh, NFTA_SET_TABLE, batch->table);
	mnl_attr_put_strz(nlh, NFTA_SET_NAME, set->name);
	mnl_attr_put_u32(nlh, NFTA_SET_FLAGS, htonl(set->flags));
	mnl_attr_put_u32(nlh, NFTA_SET_KEY_TYPE, htonl(set->key_type));
	mnl_attr_put_u32(nlh, NFTA_SET_KEY_LEN, htonl(set->key_len));
	mnl_attr_put_u32(nlh, NFTA_SET_ID, htonl(batch->seq));
	if (set->timeout_ms != 0) {
		mnl_attr_put_u64(nlh, NFTA_SET_TIMEOUT, htobe64(set->timeout_ms));
		mnl_attr_put_u32(nlh, NFTA_SET_GC_INTERVAL, htonl(set->gc_interval_ms));
	}
	nest = mnl_attr_nest_start(nlh, NFTA_SET_DESC);
	if (set->size != 0)
		mnl_attr_put_u32(nlh, NFTA_SET_DESC_SIZE, htonl(set->size));
	if ((set->flags & NFT_SET_CONCAT) != 0) {
		fields = mnl_attr_nest_start(nlh, NFTA_SET_DESC_CONCAT);
		for (uint8_t i = 0; i < set->field_count; i++) {
			field = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
			mnl_attr_put_u32(nlh, NFTA_SET_FIELD_LEN, htonl(set->fields[i]));
			mnl_attr_nest_end(nlh, field);
		}
		mnl_attr_nest_end(nlh, fields);
	}
	mnl_attr_nest_end(nlh, nest);
	nft_batch_push(batch, nlh);
}

/* Adds one end of an element's key to a message. */
static void
nft_elem_key(struct nlmsghdr *nlh, uint16_t type, const uint8_t *key, size_t key_len)
{
	struct nlattr *nest = mnl_attr_nest_start(nlh, type);

	mnl_attr_put(nlh, NFTA_DATA_VALUE, key_len, key);
	mnl_attr_nest_end(nlh, nest);
}

/* Adds a message about elements; none of them means all. */
static void
nft_batch_elems(struct nft_batch *batch, uint16_t type, uint16_t flags, const char *set, const struct nft_elem *elems,
    size_t count, size_t key_len)
{
	struct nlmsghdr *nlh = nft_batch_message(batch, type, flags);
	struct nlattr *list = NULL, *nest;

	if (count > NFT_ELEMS_MAX)
		nft_batch_fail(batch, E2BIG);
	if (nlh == NULL || batch->error != 0)
		return;
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_TABLE, batch->table);
	mnl_attr_put_strz(nlh, NFTA_SET_ELEM_LIST_SET, set);
	if (count > 0)
		list = mnl_attr_nest_start(nlh, NFTA_SET_ELEM_LIST_ELEMENTS);
	for (size_t i = 0; i < count; i++) {
		nest = mnl_attr_nest_start(nlh, NFTA_LIST_ELEM);
		if (elems[i].interval_end)
			mnl_attr_put_u32(nlh, NFTA_SET_ELEM_FLAGS, htonl(NFT_SET_ELEM_INTERVAL_END));
		if (elems[i].timeout_ms != 0)
			mnl_attr_put_u64(nlh, NFTA_SET_ELEM_TIMEOUT, htobe64(elems[i].timeout_ms));
		nft_elem_key(nlh, NFTA_SET_ELEM_KEY, elems[i].key, key_len);
		if (elems[i].has_key_end)
			nft_elem_key(nlh, NFTA_SET_ELEM_KEY_END, elems[i].key_end, key_len);
		mnl_attr_nest_end(nlh, nest);
	}
	if (list != NULL)
		mnl_attr_nest_end(nlh, list);
	nft_batch_push(batch, nlh);
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
	char bytes[1024];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(bytes, type, (uint16_t)family, NLM_F_DUMP, 1);
	int r;

	if (fill != NULL)
		fill(nlh, context);
	while (recv(fd, bytes + nlh->nlmsg_len, 1, MSG_DONTWAIT) > 0)
		; /* the rest of an interrupted dump */
	if (send(fd, bytes, nlh->nlmsg_len, 0) < 0)
		return -errno;
	while ((r = nft_dump_part(fd, each, context)) > 0)
		;
	return r;
}

int
nft_generation(int fd, uint32_t *ret_generation)
{
	char bytes[1024];
	struct nlmsghdr *nlh = nftnl_nlmsg_build_hdr(bytes, NFT_MSG_GETGEN, AF_UNSPEC, 0, 1);
	const struct nlattr *attr;
	ssize_t len;

	while (recv(fd, bytes + nlh->nlmsg_len, 1, MSG_DONTWAIT) > 0)
		;
	if (send(fd, bytes, nlh->nlmsg_len, 0) < 0)
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
