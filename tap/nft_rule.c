/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules and their expressions. */
#include "tap/nft.h"

#include <arpa/inet.h>
#include <errno.h>
#include <libmnl/libmnl.h>
#include <libnftnl/common.h>
#include <libnftnl/expr.h>
#include <libnftnl/rule.h>
#include <string.h>

/* Seconds in a unit of the limit expression. */
#define NFT_LIMIT_UNIT_S 1

/* A part of the rule is missing: the batch is never sent. */
static void
nft_rule_fail(struct nft_rule *rule)
{
	nft_batch_fail(rule->batch, ENOMEM);
}

struct nft_rule
nft_rule_start(struct nft_batch *batch, const char *chain)
{
	struct nft_rule rule = {.batch = batch};

	if (batch->error != 0)
		return rule;
	rule.rule = nftnl_rule_alloc();
	if (rule.rule == NULL) {
		nft_rule_fail(&rule);
		return rule;
	}
	nftnl_rule_set_u32(rule.rule, NFTNL_RULE_FAMILY, (uint32_t)batch->family);
	if (nftnl_rule_set_str(rule.rule, NFTNL_RULE_TABLE, batch->table) < 0 ||
	    nftnl_rule_set_str(rule.rule, NFTNL_RULE_CHAIN, chain) < 0)
		nft_rule_fail(&rule);
	return rule;
}

void
nft_rule_end(struct nft_rule *rule)
{
	struct nlmsghdr *nlh = nft_batch_message(rule->batch, NFT_MSG_NEWRULE, NLM_F_CREATE | NLM_F_APPEND);

	if (rule->rule == NULL)
		return;
	if (nlh != NULL) {
		nftnl_rule_nlmsg_build_payload(nlh, rule->rule);
		nft_batch_push(rule->batch, nlh);
	}
	nftnl_rule_free(rule->rule);
	rule->rule = NULL;
}

/* A member of an expression and its value. */
struct nft_member {
	uint16_t member;
	uint32_t value;
};

/* A new expression of the rule, which owns it, with these members set; NULL after an error. */
static struct nftnl_expr *
nft_rule_expr(struct nft_rule *rule, const char *name, const struct nft_member *members, size_t count)
{
	struct nftnl_expr *expr;

	if (rule->rule == NULL || rule->batch->error != 0)
		return NULL;
	expr = nftnl_expr_alloc(name);
	if (expr == NULL) {
		nft_rule_fail(rule);
		return NULL;
	}
	for (size_t i = 0; i < count; i++)
		nftnl_expr_set_u32(expr, members[i].member, members[i].value);
	nftnl_rule_add_expr(rule->rule, expr);
	return expr;
}

/* nft_rule_expr with its members written out: {member, value}, ... */
#define NFT_EXPR(rule, name, ...)                                                                                      \
	nft_rule_expr(rule, name, (const struct nft_member[]){__VA_ARGS__},                                            \
	    sizeof((const struct nft_member[]){__VA_ARGS__}) / sizeof(struct nft_member))

/* Sets a member that holds a copy of bytes, which can fail. expr may be NULL. */
static void
nft_expr_bytes(struct nft_rule *rule, struct nftnl_expr *expr, uint16_t member, const void *bytes, uint32_t len)
{
	if (expr != NULL && nftnl_expr_set(expr, member, bytes, len) < 0)
		nft_rule_fail(rule);
}

/* The same of text. */
static void
nft_expr_text(struct nft_rule *rule, struct nftnl_expr *expr, uint16_t member, const char *text)
{
	if (expr != NULL && nftnl_expr_set_str(expr, member, text) < 0)
		nft_rule_fail(rule);
}

void
nft_rule_meta(struct nft_rule *rule, uint32_t key, uint32_t dreg)
{
	NFT_EXPR(rule, "meta", {NFTNL_EXPR_META_KEY, key}, {NFTNL_EXPR_META_DREG, dreg});
}

void
nft_rule_payload(struct nft_rule *rule, uint32_t base, uint32_t offset, uint32_t len, uint32_t dreg)
{
	NFT_EXPR(rule, "payload", {NFTNL_EXPR_PAYLOAD_BASE, base}, {NFTNL_EXPR_PAYLOAD_OFFSET, offset},
	    {NFTNL_EXPR_PAYLOAD_LEN, len}, {NFTNL_EXPR_PAYLOAD_DREG, dreg});
}

void
nft_rule_cmp(struct nft_rule *rule, uint32_t op, uint32_t sreg, const void *bytes, uint32_t len)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "cmp", {NFTNL_EXPR_CMP_SREG, sreg}, {NFTNL_EXPR_CMP_OP, op});

	nft_expr_bytes(rule, expr, NFTNL_EXPR_CMP_DATA, bytes, len);
}

void
nft_rule_cmp_u8(struct nft_rule *rule, uint32_t op, uint32_t sreg, uint8_t value)
{
	nft_rule_cmp(rule, op, sreg, &value, sizeof(value));
}

void
nft_rule_cmp_be16(struct nft_rule *rule, uint32_t op, uint32_t sreg, uint16_t value)
{
	uint16_t wire = htons(value);

	nft_rule_cmp(rule, op, sreg, &wire, sizeof(wire));
}

void
nft_rule_mask(struct nft_rule *rule, uint32_t reg, const void *mask, uint32_t len)
{
	static const uint8_t zero[16];
	struct nftnl_expr *expr = NFT_EXPR(rule, "bitwise", {NFTNL_EXPR_BITWISE_SREG, reg},
	    {NFTNL_EXPR_BITWISE_DREG, reg}, {NFTNL_EXPR_BITWISE_OP, NFT_BITWISE_BOOL}, {NFTNL_EXPR_BITWISE_LEN, len});

	nft_expr_bytes(rule, expr, NFTNL_EXPR_BITWISE_MASK, mask, len);
	nft_expr_bytes(rule, expr, NFTNL_EXPR_BITWISE_XOR, zero, len);
}

void
nft_rule_immediate(struct nft_rule *rule, uint32_t dreg, const void *bytes, uint32_t len)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "immediate", {NFTNL_EXPR_IMM_DREG, dreg});

	nft_expr_bytes(rule, expr, NFTNL_EXPR_IMM_DATA, bytes, len);
}

void
nft_rule_lookup(struct nft_rule *rule, const char *set, uint32_t sreg)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "lookup", {NFTNL_EXPR_LOOKUP_SREG, sreg});

	nft_expr_text(rule, expr, NFTNL_EXPR_LOOKUP_SET, set);
}

void
nft_rule_remember(struct nft_rule *rule, const char *set, uint32_t sreg, uint64_t timeout_ms)
{
	struct nftnl_expr *expr =
	    NFT_EXPR(rule, "dynset", {NFTNL_EXPR_DYNSET_OP, NFT_DYNSET_OP_UPDATE}, {NFTNL_EXPR_DYNSET_SREG_KEY, sreg});

	if (expr != NULL)
		nftnl_expr_set_u64(expr, NFTNL_EXPR_DYNSET_TIMEOUT, timeout_ms);
	nft_expr_text(rule, expr, NFTNL_EXPR_DYNSET_SET_NAME, set);
}

void
nft_rule_socket_transparent(struct nft_rule *rule, uint32_t dreg)
{
	NFT_EXPR(rule, "socket", {NFTNL_EXPR_SOCKET_KEY, NFT_SOCKET_TRANSPARENT}, {NFTNL_EXPR_SOCKET_DREG, dreg});
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, dreg, 1);
}

void
nft_rule_tproxy(struct nft_rule *rule, uint32_t family, uint32_t reg_addr, uint32_t reg_port)
{
	NFT_EXPR(rule, "tproxy", {NFTNL_EXPR_TPROXY_FAMILY, family}, {NFTNL_EXPR_TPROXY_REG_ADDR, reg_addr},
	    {NFTNL_EXPR_TPROXY_REG_PORT, reg_port});
}

void
nft_rule_count(struct nft_rule *rule, const char *counter)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "objref", {NFTNL_EXPR_OBJREF_IMM_TYPE, NFT_OBJECT_COUNTER});

	nft_expr_text(rule, expr, NFTNL_EXPR_OBJREF_IMM_NAME, counter);
}

void
nft_rule_limit(struct nft_rule *rule, uint64_t per_second, uint32_t burst)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "limit", {NFTNL_EXPR_LIMIT_BURST, burst},
	    {NFTNL_EXPR_LIMIT_TYPE, NFT_LIMIT_PKTS}, {NFTNL_EXPR_LIMIT_FLAGS, 0});

	if (expr == NULL)
		return;
	nftnl_expr_set_u64(expr, NFTNL_EXPR_LIMIT_RATE, per_second);
	nftnl_expr_set_u64(expr, NFTNL_EXPR_LIMIT_UNIT, NFT_LIMIT_UNIT_S);
}

void
nft_rule_log(struct nft_rule *rule, const char *prefix, uint16_t group, uint32_t snaplen)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "log", {NFTNL_EXPR_LOG_SNAPLEN, snaplen});

	if (expr != NULL)
		nftnl_expr_set_u16(expr, NFTNL_EXPR_LOG_GROUP, group);
	nft_expr_text(rule, expr, NFTNL_EXPR_LOG_PREFIX, prefix);
}

void
nft_rule_reject(struct nft_rule *rule, uint32_t type, uint8_t code)
{
	struct nftnl_expr *expr = NFT_EXPR(rule, "reject", {NFTNL_EXPR_REJECT_TYPE, type});

	if (expr != NULL)
		nftnl_expr_set_u8(expr, NFTNL_EXPR_REJECT_CODE, code);
}

void
nft_rule_verdict(struct nft_rule *rule, int verdict, const char *chain)
{
	struct nftnl_expr *expr = NFT_EXPR(
	    rule, "immediate", {NFTNL_EXPR_IMM_DREG, NFT_REG_VERDICT}, {NFTNL_EXPR_IMM_VERDICT, (uint32_t)verdict});

	if (chain != NULL)
		nft_expr_text(rule, expr, NFTNL_EXPR_IMM_CHAIN, chain);
}

void
nft_rule_finish(struct nft_rule *rule, int verdict, const char *chain)
{
	nft_rule_verdict(rule, verdict, chain);
	nft_rule_end(rule);
}

void
nft_rule_verdict_all(struct nft_batch *batch, const char *in_chain, int verdict, const char *chain)
{
	struct nft_rule rule = nft_rule_start(batch, in_chain);

	nft_rule_finish(&rule, verdict, chain);
}
