/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/ingress.h"

#include "tap/match.h"
#include "tap/refuse.h"

#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>

/* First of all ingress chains of the device. */
#define INGRESS_PRIORITY (-500)

/* Offsets in headers. */
#define ETH_SOURCE 6
#define ETH_TYPE 12
#define ARP_SENDER_MAC 8
#define ARP_SENDER_IP 14

/* ICMPv6 types. */
#define MLD_QUERY 130
#define MLD_DONE 132
#define MLD_REPORT_V2 143
#define NDP_ROUTER_SOLICITATION 133
#define NDP_ROUTER_ADVERTISEMENT 134
#define NDP_REDIRECT 137

/* Compares the EtherType. */
static void
ingress_match_ethertype(struct nft_rule *rule, uint32_t op, uint16_t type)
{
	/* From the frame, not from the packet's metadata: a tag taken off by the device still shows here. */
	nft_rule_payload(rule, NFT_PAYLOAD_LL_HEADER, ETH_TYPE, 2, NFT_REG_1);
	nft_rule_cmp_be16(rule, op, NFT_REG_1, type);
}

/* Only the guest's MAC address, only the EtherTypes that are served. */
static void
ingress_add_frame_rules(struct nft_batch *batch, const struct tap_config *config)
{
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	nft_rule_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_SOURCE, 6, NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, config->guest_mac, 6);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));

	rule = nft_rule_start(batch, "ingress");
	ingress_match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_IP);
	ingress_match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_ARP);
	if (tap_has_ipv6(config))
		ingress_match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_IPV6);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));
}

/* ARP in the guest's own name, or a probe without one: anything else would make entries in the neighbour table. */
static void
ingress_add_arp_rules(struct nft_batch *batch, const struct tap_config *config)
{
	static const struct addr none = {.family = 4};
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	ingress_match_ethertype(&rule, NFT_CMP_EQ, ETH_P_ARP);
	match_load_network(&rule, ARP_SENDER_MAC, 6);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, config->guest_mac, 6);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));

	rule = nft_rule_start(batch, "ingress");
	ingress_match_ethertype(&rule, NFT_CMP_EQ, ETH_P_ARP);
	match_addr(&rule, NFT_CMP_NEQ, ARP_SENDER_IP, &config->guest4);
	match_addr(&rule, NFT_CMP_NEQ, ARP_SENDER_IP, &none);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));
}

/* ICMPv6 of these types. */
static void
ingress_match_icmp6_types(struct nft_rule *rule, uint8_t first, uint8_t last)
{
	ingress_match_ethertype(rule, NFT_CMP_EQ, ETH_P_IPV6);
	match_l4proto(rule, IPPROTO_ICMPV6);
	match_load_icmp_type(rule);
	nft_rule_cmp_u8(rule, NFT_CMP_GTE, NFT_REG_1, first);
	nft_rule_cmp_u8(rule, NFT_CMP_LTE, NFT_REG_1, last);
}

/* Router advertisements and redirects: no guest is a router. */
static void
ingress_add_router_rules(struct nft_batch *batch)
{
	static const uint8_t types[] = {NDP_ROUTER_ADVERTISEMENT, NDP_REDIRECT};

	for (size_t i = 0; i < sizeof(types); i++) {
		struct nft_rule rule = nft_rule_start(batch, "ingress");

		ingress_match_icmp6_types(&rule, types[i], types[i]);
		nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));
	}
}

/* Begins a rule for multicast. */
static struct nft_rule
ingress_start_chatter(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	nft_rule_meta(&rule, NFT_META_PKTTYPE, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, PACKET_MULTICAST);
	return rule;
}

/* Multicast that every system emits by itself when a link comes up: no attempt to reach anything, and not counted as
 * one. */
static void
ingress_add_chatter_rules(struct nft_batch *batch, const struct tap_config *config)
{
	static const uint8_t types[][2] = {
	    {MLD_QUERY, MLD_DONE},
	    {NDP_ROUTER_SOLICITATION, NDP_ROUTER_SOLICITATION},
	    {MLD_REPORT_V2, MLD_REPORT_V2},
	};
	struct nft_rule rule = ingress_start_chatter(batch);

	ingress_match_ethertype(&rule, NFT_CMP_EQ, ETH_P_IP);
	match_load_network(&rule, IP4_PROTOCOL, 1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_IGMP);
	nft_rule_finish(&rule, NF_DROP, NULL);
	for (size_t i = 0; tap_has_ipv6(config) && i < sizeof(types) / sizeof(types[0]); i++) {
		rule = ingress_start_chatter(batch);
		ingress_match_icmp6_types(&rule, types[i][0], types[i][1]);
		nft_rule_finish(&rule, NF_DROP, NULL);
	}
}

void
ingress_add_table(struct nft_batch *batch, const struct tap_config *config)
{
	nft_batch_select(batch, NFPROTO_NETDEV, TAP_TABLE);
	nft_batch_table_drop(batch);
	nft_batch_table(batch);
	nft_batch_counter(batch, refuse_counter_name(TAP_COUNTER_SPOOFED));
	refuse_add_chain(batch, refuse_chain(TAP_COUNTER_SPOOFED), TAP_COUNTER_SPOOFED);
	nft_rule_verdict_all(batch, refuse_chain(TAP_COUNTER_SPOOFED), NF_DROP, NULL);
	nft_batch_base_chain(batch, "ingress", NF_NETDEV_INGRESS, INGRESS_PRIORITY, NF_DROP, tap_device(config));
	ingress_add_frame_rules(batch, config);
	ingress_add_arp_rules(batch, config);
	if (tap_has_ipv6(config))
		ingress_add_router_rules(batch);
	ingress_add_chatter_rules(batch, config);
	nft_rule_verdict_all(batch, "ingress", NF_ACCEPT, NULL);
}
