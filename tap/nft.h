/* SPDX-License-Identifier: GPL-3.0-or-later */
/* nftables transactions over libnftnl: a batch of changes, rules built expression by expression, one commit.
 *
 * Every builder carries a sticky error: after the first one that fails the later ones do nothing, and a batch with an
 * error is never sent. A rule that lacks an expression would be a rule that matches more. */
#ifndef POSTERN_TAP_NFT_H
#define POSTERN_TAP_NFT_H

#include "base/error.h"

#include <netinet/in.h> /* before the kernel's own */
#include <linux/netfilter.h>
#include <linux/netfilter/nf_tables.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct nlmsghdr;
struct nftnl_rule;
struct nftnl_expr;

/* Elements in one message: the kernel's nested attribute ends at 64 KiB, and the largest element takes some 120
 * bytes. */
#define NFT_ELEMS_MAX 512
/* Longest concatenated key: an IPv6 address, a protocol and a port in registers of four bytes. */
#define NFT_KEY_MAX 24

/* An nfnetlink socket in the calling thread's namespace, or -1. The caller closes it. */
int nft_open(struct error *err);

struct nft_batch {
	uint8_t *bytes;
	size_t used, size;
	uint32_t seq;   /* of the newest message; the batch begins with 1 */
	size_t last_at; /* offset of the newest message */
	int error;      /* sticky, positive errno */
	int family;     /* NFPROTO_* and table of what is built next */
	const char *table;
};

/* Start a batch of changes to one table at a time (nft_batch_table changes it). */
void nft_batch_start(struct nft_batch *batch);
/* Send, wait for the kernel's word, free. Either the whole batch is in force or none of it.
 * ret_errno (may be NULL) gets the kernel's errno on failure. */
int nft_batch_commit(struct nft_batch *batch, int fd, int *ret_errno, struct error *err);
void nft_batch_free(struct nft_batch *batch);

void nft_batch_select(struct nft_batch *batch, int family, const char *table);
/* Record the first error, a positive errno. */
void nft_batch_fail(struct nft_batch *batch, int error);
/* Start a message of the selected family at the batch's end, NULL after an error; and take it in when it is
 * complete. */
struct nlmsghdr *nft_batch_message(struct nft_batch *batch, uint16_t type, uint16_t flags);
void nft_batch_push(struct nft_batch *batch, const struct nlmsghdr *nlh);
/* Create the selected table; one that is there stays as it is. */
void nft_batch_table(struct nft_batch *batch);
/* Remove the selected table with all in it, whether it is there or not. */
void nft_batch_table_drop(struct nft_batch *batch);
void nft_batch_counter(struct nft_batch *batch, const char *name);

/* hook NF_INET_*, or NF_NETDEV_INGRESS with a device; policy NF_ACCEPT or NF_DROP. */
void nft_batch_base_chain(
    struct nft_batch *batch, const char *name, uint32_t hook, int32_t priority, uint32_t policy, const char *device);
void nft_batch_chain(struct nft_batch *batch, const char *name);

struct nft_set {
	const char *name;
	uint32_t flags;    /* NFT_SET_* */
	uint32_t key_type; /* nft(8)'s number of the type, for `nft list` */
	uint32_t key_len;  /* bytes, each field of a concatenation padded to four */
	uint8_t fields[3]; /* NFT_SET_CONCAT: length of each field */
	uint8_t field_count;
	uint64_t timeout_ms; /* NFT_SET_TIMEOUT: of an element that states none */
	uint32_t gc_interval_ms;
	uint32_t size; /* most elements; allocated at once; 0: no limit */
};
void nft_batch_set(struct nft_batch *batch, const struct nft_set *set);

/* nft(8)'s numbers, and a concatenation of them. */
#define NFT_TYPE_IPV4 7u
#define NFT_TYPE_IPV6 8u
#define NFT_TYPE_PROTO 12u
#define NFT_TYPE_PORT 13u
#define NFT_TYPE_CONCAT3(a, b, c) ((a) << 12 | (b) << 6 | (c))

struct nft_elem {
	uint8_t key[NFT_KEY_MAX];
	uint8_t key_end[NFT_KEY_MAX]; /* last of a range, in a concatenation of ranges */
	bool has_key_end;
	bool interval_end;   /* the key is the first one after an interval */
	uint64_t timeout_ms; /* 0: none stated */
};
/* Add or delete at most NFT_ELEMS_MAX elements of keys of key_len bytes. */
void nft_batch_elems_add(
    struct nft_batch *batch, const char *set, const struct nft_elem *elems, size_t count, size_t key_len);
void nft_batch_elems_del(
    struct nft_batch *batch, const char *set, const struct nft_elem *elems, size_t count, size_t key_len);
/* Delete all elements. */
void nft_batch_elems_flush(struct nft_batch *batch, const char *set);

/* A rule under construction, appended to a chain by nft_rule_end. Registers are enum nft_registers. */
struct nft_rule {
	struct nft_batch *batch;
	struct nftnl_rule *rule; /* NULL after an error */
};
struct nft_rule nft_rule_start(struct nft_batch *batch, const char *chain);
void nft_rule_end(struct nft_rule *rule);

void nft_rule_meta(struct nft_rule *rule, uint32_t key, uint32_t dreg);
void nft_rule_payload(struct nft_rule *rule, uint32_t base, uint32_t offset, uint32_t len, uint32_t dreg);
void nft_rule_cmp(struct nft_rule *rule, uint32_t op, uint32_t sreg, const void *bytes, uint32_t len);
void nft_rule_cmp_u8(struct nft_rule *rule, uint32_t op, uint32_t sreg, uint8_t value);
/* value in host order, compared in network order. */
void nft_rule_cmp_be16(struct nft_rule *rule, uint32_t op, uint32_t sreg, uint16_t value);
/* reg = reg & mask */
void nft_rule_mask(struct nft_rule *rule, uint32_t reg, const void *mask, uint32_t len);
void nft_rule_immediate(struct nft_rule *rule, uint32_t dreg, const void *bytes, uint32_t len);
void nft_rule_lookup(struct nft_rule *rule, const char *set, uint32_t sreg);
/* Add the value in sreg (an address, a port) to a set with NFT_SET_EVAL and NFT_SET_TIMEOUT, or start its time anew.
 * No match when the set is full. */
void nft_rule_remember(struct nft_rule *rule, const char *set, uint32_t sreg, uint64_t timeout_ms);
/* The packet belongs to a socket of this namespace that has IP(V6)_TRANSPARENT set. */
void nft_rule_socket_transparent(struct nft_rule *rule, uint32_t dreg);
/* The address is in reg_addr, the port in reg_port. family NFPROTO_IPV4 or NFPROTO_IPV6. */
void nft_rule_tproxy(struct nft_rule *rule, uint32_t family, uint32_t reg_addr, uint32_t reg_port);
void nft_rule_count(struct nft_rule *rule, const char *counter);
void nft_rule_limit(struct nft_rule *rule, uint64_t per_second, uint32_t burst);
void nft_rule_log(struct nft_rule *rule, const char *prefix, uint16_t group, uint32_t snaplen);
/* type NFT_REJECT_*; code NFT_REJECT_ICMPX_* for ICMPX. */
void nft_rule_reject(struct nft_rule *rule, uint32_t type, uint8_t code);
/* NF_ACCEPT, NF_DROP, or NFT_JUMP and NFT_GOTO with a chain. */
void nft_rule_verdict(struct nft_rule *rule, int verdict, const char *chain);
/* nft_rule_verdict and nft_rule_end. */
void nft_rule_finish(struct nft_rule *rule, int verdict, const char *chain);
/* A rule that matches all. */
void nft_rule_verdict_all(struct nft_batch *batch, const char *in_chain, int verdict, const char *chain);

/* Ask for a dump (NFT_MSG_GET*) of a family (NFPROTO_UNSPEC: all) and hand each answer to the callback, which returns
 * MNL_CB_OK to go on. fill (may be NULL) adds attributes to the request. A dump during which the ruleset changed gives
 * -EINTR: the caller starts over. 0 or -errno. */
int nft_dump(int fd, uint16_t type, int family, void (*fill)(struct nlmsghdr *nlh, const void *context),
    int (*each)(const struct nlmsghdr *nlh, void *context), void *context);
/* The ruleset's generation, which every transaction in this namespace raises by one. 0 or -errno. */
int nft_generation(int fd, uint32_t *ret_generation);

#endif
