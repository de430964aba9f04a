/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/match.h"

#include <netinet/in.h>

#define TCP_FLAGS 13
#define ICMP_TYPE 0

void
match_family(struct nft_rule *rule, uint8_t nfproto)
{
	nft_rule_meta(rule, NFT_META_NFPROTO, NFT_REG_1);
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, nfproto);
}

void
match_l4proto(struct nft_rule *rule, uint8_t proto)
{
	nft_rule_meta(rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, proto);
}

void
match_load_network(struct nft_rule *rule, uint32_t offset, uint32_t len)
{
	nft_rule_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, offset, len, NFT_REG_1);
}

void
match_load_icmp_type(struct nft_rule *rule)
{
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, ICMP_TYPE, 1, NFT_REG_1);
}

void
match_addr(struct nft_rule *rule, uint32_t op, uint32_t offset, const struct addr *addr)
{
	uint32_t len = addr->family == 4 ? 4 : 16;

	match_load_network(rule, offset, len);
	nft_rule_cmp(rule, op, NFT_REG_1, addr->bytes, len);
}

void
match_tcp_flags(struct nft_rule *rule, uint8_t flags)
{
	static const uint8_t mask = MATCH_FIN | MATCH_SYN | MATCH_RST | MATCH_ACK;

	match_l4proto(rule, IPPROTO_TCP);
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1, NFT_REG_1);
	nft_rule_mask(rule, NFT_REG_1, &mask, sizeof(mask));
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, flags);
}

void
match_destination_set(struct nft_rule *rule, int family, const char *set)
{
	uint32_t proto_reg = family == 4 ? NFT_REG32_01 : NFT_REG32_04;

	match_family(rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	match_load_network(rule, family == 4 ? IP4_DESTINATION : IP6_DESTINATION, family == 4 ? 4 : 16);
	nft_rule_meta(rule, NFT_META_L4PROTO, proto_reg);
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DESTINATION, 2, proto_reg + 1);
	nft_rule_lookup(rule, set, NFT_REG_1);
}
