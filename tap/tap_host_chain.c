/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The second layer, in the host's own namespace: sockets of the gateway's uid may not send to the never list, except to
 * the configured resolvers. Independent of the gateway's own judgement; absent when rootless. */
#include "tap/attr.h"
#include "tap/match.h"
#include "tap/never.h"
#include "tap/nft.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/netfilter/nfnetlink.h>
#include <netinet/in.h>
#include <string.h>
#include <unistd.h>

#define HOST_CHAIN_CHAIN "output"
/* Resolvers that get a rule each. */
#define HOST_CHAIN_RESOLVERS_MAX 16

/* Begins a rule for packets of the uid's sockets, of one family. */
static struct nft_rule
host_chain_rule(struct nft_batch *batch, uid_t uid, int family)
{
	struct nft_rule rule = nft_rule_start(batch, HOST_CHAIN_CHAIN);
	uint32_t id = uid;

	nft_rule_meta(&rule, NFT_META_SKUID, NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_EQ, NFT_REG_1, &id, sizeof(id));
	nft_rule_meta(&rule, NFT_META_NFPROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	return rule;
}

/* Loads the destination address. */
static void
host_chain_load_destination(struct nft_rule *rule, int family)
{
	nft_rule_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, family == 4 ? IP4_DESTINATION : IP6_DESTINATION,
	    family == 4 ? 4 : 16, NFT_REG_1);
}

/* Lets the uid reach a resolver. */
static void
host_chain_add_resolver(struct nft_batch *batch, uid_t uid, const struct tap_host_resolver *resolver, uint8_t proto)
{
	int family = resolver->addr.family;
	struct nft_rule rule = host_chain_rule(batch, uid, family);

	host_chain_load_destination(&rule, family);
	nft_rule_cmp(&rule, NFT_CMP_EQ, NFT_REG_1, resolver->addr.bytes, family == 4 ? 4 : 16);
	nft_rule_meta(&rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, proto);
	nft_rule_payload(&rule, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DESTINATION, 2, NFT_REG_1);
	nft_rule_cmp_be16(&rule, NFT_CMP_EQ, NFT_REG_1, resolver->port);
	nft_rule_verdict(&rule, NF_ACCEPT, NULL);
	nft_rule_end(&rule);
}

/* Refuses the never list. */
static void
host_chain_add_never(struct nft_batch *batch, uid_t uid, int family)
{
	struct nft_rule rule = host_chain_rule(batch, uid, family);

	host_chain_load_destination(&rule, family);
	nft_rule_lookup(&rule, family == 4 ? "never4" : "never6", NFT_REG_1);
	nft_rule_count(&rule, "count_never");
	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
	nft_rule_end(&rule);
}

/* A transaction on a socket of its own in the calling thread's namespace; takes the batch. */
static int
host_chain_commit(struct nft_batch *batch, struct error *err)
{
	int fd = nft_open(err), r;

	if (fd < 0) {
		nft_batch_free(batch);
		return -1;
	}
	r = nft_batch_commit(batch, fd, NULL, err);
	close(fd);
	return r;
}

int
tap_host_chain_set(
    const char *table_name, uid_t uid, const struct tap_host_resolver *resolvers, size_t count, struct error *err)
{
	struct nft_batch batch;

	if (count > HOST_CHAIN_RESOLVERS_MAX)
		return error_set(err, ERROR_USAGE, "%zu resolvers; at most %d", count, HOST_CHAIN_RESOLVERS_MAX);
	for (size_t i = 0; i < count; i++)
		if (resolvers[i].addr.family != 4 && resolvers[i].addr.family != 6)
			return error_set(err, ERROR_USAGE, "resolver without an address");
	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, table_name);
	nft_batch_table_drop(&batch);
	nft_batch_table(&batch);
	never_add_set(&batch, 4, "never4", NULL, 0);
	never_add_set(&batch, 6, "never6", NULL, 0);
	nft_batch_counter(&batch, "count_never");
	nft_batch_base_chain(&batch, HOST_CHAIN_CHAIN, NF_INET_LOCAL_OUT, 0, NF_ACCEPT, NULL);
	for (size_t i = 0; i < count; i++) {
		host_chain_add_resolver(&batch, uid, &resolvers[i], IPPROTO_UDP);
		host_chain_add_resolver(&batch, uid, &resolvers[i], IPPROTO_TCP);
	}
	host_chain_add_never(&batch, uid, 4);
	host_chain_add_never(&batch, uid, 6);
	if (host_chain_commit(&batch, err) < 0)
		return error_prefix(err, "host chain, table %s", table_name);
	return 0;
}

int
tap_host_chain_remove(const char *table_name, struct error *err)
{
	struct nft_batch batch;

	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, table_name);
	nft_batch_table_drop(&batch);
	return host_chain_commit(&batch, err);
}

struct host_chain_search {
	const char *table;
	unsigned int rules;
};

/* Dump callback: counts the rules of our table. */
static int
host_chain_search_rule(const struct nlmsghdr *nlh, void *context)
{
	struct host_chain_search *search = context;
	const struct nlattr *attr;

	attr_each(attr, nlh, sizeof(struct nfgenmsg))
	{
		if (mnl_attr_get_type(attr) == NFTA_RULE_TABLE && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0 &&
		    strcmp(mnl_attr_get_str(attr), search->table) == 0)
			search->rules++;
	}
	return MNL_CB_OK;
}

bool
tap_host_chain_present(const char *table_name)
{
	struct host_chain_search search = {.table = table_name};
	int fd = nft_open(NULL);
	int r;

	if (fd < 0)
		return false;
	r = nft_dump(fd, NFT_MSG_GETRULE, NFPROTO_INET, NULL, host_chain_search_rule, &search);
	close(fd);
	/* At least one rule for each family's never list. */
	return r == 0 && search.rules >= 2;
}
