/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/refuse.h"

#include "tap/match.h"

#include <assert.h>
#include <netinet/in.h>

/* Log messages of one class: beyond it the counter still counts. */
#define REFUSE_LOG_PER_S 200
#define REFUSE_LOG_BURST 400
/* Answers by ICMP: a refused datagram gets one, a flood of them does not double. TCP resets are not bounded, since a
 * scan of closed ports must not hang. */
#define REFUSE_UNREACHABLE_PER_S 2000
#define REFUSE_UNREACHABLE_BURST 2000
#define REFUSE_PROHIBITED_PER_S 100
#define REFUSE_PROHIBITED_BURST 200

/* The class's refusal chain, its counter object, and the prefix of its log messages, which the gateway knows. */
struct refuse_class {
	const char *chain, *counter, *prefix;
};
static const struct refuse_class refuse_classes[] = {
    [TAP_COUNTER_SPOOFED] = {"refuse_spoofed", "count_spoofed", "spoofed"},
    [TAP_COUNTER_NEVER] = {"refuse_never", "count_never", "never"},
    [TAP_COUNTER_TCP] = {"refuse_tcp", "count_tcp", "tcp"},
    [TAP_COUNTER_UDP] = {"refuse_udp", "count_udp", "udp"},
    [TAP_COUNTER_ICMP] = {"refuse_icmp", "count_icmp", "icmp"},
    [TAP_COUNTER_PROTO] = {"refuse_proto", "count_proto", "proto"},
};
static_assert(sizeof(refuse_classes) / sizeof(refuse_classes[0]) == TAP_COUNTER_MAX, "one row per counter");

const char *
refuse_counter_name(enum tap_counter counter)
{
	return refuse_classes[counter].counter;
}

const char *
refuse_chain(enum tap_counter counter)
{
	return refuse_classes[counter].chain;
}

void
refuse_add_chain(struct nft_batch *batch, const char *chain, enum tap_counter counter)
{
	struct nft_rule rule;

	nft_batch_chain(batch, chain);
	rule = nft_rule_start(batch, chain);
	nft_rule_count(&rule, refuse_classes[counter].counter);
	nft_rule_limit(&rule, REFUSE_LOG_PER_S, REFUSE_LOG_BURST);
	nft_rule_log(&rule, refuse_classes[counter].prefix, TAP_LOG_GROUP, TAP_LOG_SNAPLEN);
	nft_rule_end(&rule);
}

/* The chain that answers a refused packet by its protocol. */
static void
refuse_add_answer(struct nft_batch *batch)
{
	struct nft_rule rule;

	nft_batch_chain(batch, "answer");
	rule = nft_rule_start(batch, "answer");
	match_l4proto(&rule, IPPROTO_TCP);
	nft_rule_reject(&rule, NFT_REJECT_TCP_RST, 0);
	nft_rule_end(&rule);

	rule = nft_rule_start(batch, "answer");
	match_l4proto(&rule, IPPROTO_UDP);
	nft_rule_limit(&rule, REFUSE_UNREACHABLE_PER_S, REFUSE_UNREACHABLE_BURST);
	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
	nft_rule_end(&rule);

	rule = nft_rule_start(batch, "answer");
	nft_rule_meta(&rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_UDP);
	nft_rule_limit(&rule, REFUSE_PROHIBITED_PER_S, REFUSE_PROHIBITED_BURST);
	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
	nft_rule_end(&rule);

	nft_rule_verdict_all(batch, "answer", NF_DROP, NULL);
}

void
refuse_add_all(struct nft_batch *batch)
{
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		nft_batch_counter(batch, refuse_classes[i].counter);
	refuse_add_answer(batch);
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++) {
		refuse_add_chain(batch, refuse_classes[i].chain, (enum tap_counter)i);
		/* An answer to a forged source would go to a host that sent nothing. */
		if (i == TAP_COUNTER_SPOOFED)
			nft_rule_verdict_all(batch, refuse_classes[i].chain, NF_DROP, NULL);
		else
			nft_rule_verdict_all(batch, refuse_classes[i].chain, NFT_GOTO, "answer");
	}
	/* Broadcast and multicast: on the never list, and not to be answered either. */
	refuse_add_chain(batch, REFUSE_CAST, TAP_COUNTER_NEVER);
	nft_rule_verdict_all(batch, REFUSE_CAST, NF_DROP, NULL);
	refuse_add_chain(batch, REFUSE_NDP, TAP_COUNTER_ICMP);
	nft_rule_verdict_all(batch, REFUSE_NDP, NF_DROP, NULL);
}
