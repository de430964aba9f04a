/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Whether another program changed our tables is asked often, and the answer is almost always no,
 * so the first look is cheap: each transaction in the namespace raises the ruleset's generation by one, and we know how
 * many of them were ours. Only when the number is another one, all tables, chains and rules of our name are listed and
 * hashed (names, handles, hooks, policies, flags, in order). A rule that was replaced has another handle. The constant
 * sets cannot be changed while rules use them, and lease elements may be, by us.
 *
 * When a foreign transaction came between two of ours, the counts differ and the listing decides. After a transaction
 * of which we cannot know whether the kernel counted it, it decides as well. */
#include "tap/attr.h"
#include "tap/nft.h"
#include "tap/ruleset.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <string.h>

/* Listings that another transaction interrupted; then the next question asks again (F-13). */
#define INTACT_TRIES 8

/* No generation of the kernel's: the next question lists. */
#define INTACT_GEN_UNKNOWN 0

#define FNV64_OFFSET 0xcbf29ce484222325u
#define FNV64_PRIME 0x100000001b3u

struct intact_scan {
	uint64_t digest;
	uint16_t table_attr; /* number of the attribute that holds the table's name */
	uint64_t identity;   /* bit n: attribute n belongs to the identity */
};

/* FNV-1a. */
static void
intact_hash(uint64_t *digest, const void *bytes, size_t len)
{
	const uint8_t *at = bytes;

	for (size_t i = 0; i < len; i++)
		*digest = (*digest ^ at[i]) * FNV64_PRIME;
}

/* Dump callback: one table, chain or rule. Those of other tables are skipped. */
static int
intact_scan_one(const struct nlmsghdr *nlh, void *context)
{
	struct intact_scan *scan = context;
	const struct nfgenmsg *nfg = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;
	bool ours = false;

	attr_each(attr, nlh, sizeof(*nfg))
	{
		if (mnl_attr_get_type(attr) == scan->table_attr && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			ours = strcmp(mnl_attr_get_str(attr), TAP_TABLE) == 0;
	}
	if (!ours)
		return MNL_CB_OK;
	intact_hash(&scan->digest, &nfg->nfgen_family, 1);
	attr_each(attr, nlh, sizeof(*nfg))
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type >= 64 || (scan->identity >> type & 1) == 0)
			continue;
		intact_hash(&scan->digest, &type, sizeof(type));
		intact_hash(&scan->digest, mnl_attr_get_payload(attr), mnl_attr_get_payload_len(attr));
	}
	return MNL_CB_OK;
}

#define BIT(n) (UINT64_C(1) << (n))

/* Hashes the tables, chains and rules of our name. 0 or -errno. */
static int
intact_scan_all(int fd, uint64_t *ret_digest)
{
	static const struct {
		uint16_t type, table_attr;
		uint64_t identity;
	} lists[] = {
	    {NFT_MSG_GETTABLE, NFTA_TABLE_NAME, BIT(NFTA_TABLE_HANDLE) | BIT(NFTA_TABLE_FLAGS)},
	    {NFT_MSG_GETCHAIN, NFTA_CHAIN_TABLE,
		BIT(NFTA_CHAIN_NAME) | BIT(NFTA_CHAIN_HANDLE) | BIT(NFTA_CHAIN_HOOK) | BIT(NFTA_CHAIN_POLICY)},
	    {NFT_MSG_GETRULE, NFTA_RULE_TABLE, BIT(NFTA_RULE_CHAIN) | BIT(NFTA_RULE_HANDLE)},
	};
	struct intact_scan scan = {.digest = FNV64_OFFSET};
	int r;

	for (size_t i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
		scan.table_attr = lists[i].table_attr;
		scan.identity = lists[i].identity;
		r = nft_dump(fd, lists[i].type, NFPROTO_UNSPEC, NULL, intact_scan_one, &scan);
		if (r < 0)
			return r;
	}
	*ret_digest = scan.digest;
	return 0;
}

/* Digest and the generation it belongs to: the same before and after. */
static int
intact_digest(int fd, uint64_t *ret_digest, uint32_t *ret_generation)
{
	uint32_t before, after;
	int r;

	for (int i = 0; i < INTACT_TRIES; i++) {
		r = nft_generation(fd, &before);
		if (r == 0)
			r = intact_scan_all(fd, ret_digest);
		if (r == 0)
			r = nft_generation(fd, &after);
		if (r == 0 && before == after) {
			*ret_generation = after;
			return 0;
		}
		if (r < 0 && r != -EINTR)
			return r;
	}
	return -EAGAIN;
}

int
tap_intact_load(struct tap *tap, struct error *err)
{
	struct nft_batch batch;
	int r;

	nft_batch_start(&batch);
	ruleset_build(&batch, &tap->config);
	if (nft_batch_commit(&batch, tap->nft_fd, NULL, err) < 0)
		return error_prefix(err, "load the ruleset");
	tap->lease_bound = tap->lease_counted = 0;
	if (tap_step(err) < 0)
		return -1;
	r = intact_digest(tap->nft_fd, &tap->nft_digest, &tap->nft_gen);
	return r < 0 ? error_sys(err, -r, "read the ruleset back") : 0;
}

void
tap_intact_committed(struct tap *tap, bool certain)
{
	if (!certain)
		tap->nft_gen = INTACT_GEN_UNKNOWN;
	/* As the kernel counts: zero is left out. */
	if (tap->nft_gen != INTACT_GEN_UNKNOWN && ++tap->nft_gen == 0)
		tap->nft_gen = 1;
}

bool
tap_intact(struct tap *tap)
{
	uint32_t generation;
	uint64_t digest;

	if (nft_generation(tap->nft_fd, &generation) == 0 && generation == tap->nft_gen)
		return true;
	if (intact_digest(tap->nft_fd, &digest, &generation) < 0 || digest != tap->nft_digest)
		return false;
	tap->nft_gen = generation;
	return true;
}
