/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Two tables, both named postern.
 *
 * Family netdev, ingress hook of the guest's device: frames that no guest has business to send end here (VLAN tags,
 * foreign EtherTypes, another source MAC, ARP in another name, router advertisements and redirects). Link chatter that
 * every operating system emits and no service here answers (router solicitations, MLD, IGMP) is dropped silently.
 *
 * Family inet, hook prerouting at mangle priority, after the kernel has put fragments together (tproxy brings
 * nf_defrag), policy drop. In order:
 *   1. only the guest's device, only unicast frames; neighbour discovery
 *   2. only the guest's own addresses, no IPv4 options, no IPv6 extension headers
 *   3. port 53 to any address, when a transparent socket of ours is there: baked images name private resolvers
 *   4. a bounded echo of the router address; and port unreachable for an answer or a relayed datagram that came when
 * the client was gone already: what every operating system says of itself, and no attempt to reach anything, so it is
 *      dropped silently, at a bounded rate
 *   5. the never list (with the guest's subnet, so the router addresses too): refused
 *   6. a bare SYN to a lease or an allowed range: to the transparent listener
 *   7. TCP of our own transparent sockets. After 6, since a SYN that meets one in TIME_WAIT would be delayed
 *   8. an ACK to a lease without a socket: to the listener, which completes a SYN cookie or resets
 *   9. UDP to a lease or range on a port where a transparent relay socket of ours stands
 *  10. everything else: refused
 *
 * The only accepts are of our own transparent sockets, the echo and neighbour discovery: with dead listeners, nothing
 * is accepted, and another service in the namespace is out of reach. Refusals count first (a counter object per class),
 * log at a bounded rate to nfnetlink group 1 with the class as prefix, and answer: reset for TCP, ICMP at a bounded
 * rate for the rest. There is no output chain: what leaves towards the guest is our replies, and there is no other way
 * out.
 *
 * The tables have no owner flag: that would protect them from a foreign flush, but delete them with the keeper's
 * socket. Changes by others are found by tap_intact.c. */
#include "tap/ruleset.h"

#include "tap/ingress.h"
#include "tap/match.h"
#include "tap/never.h"
#include "tap/refuse.h"

#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>

/* Echo requests to the router address that are answered. */
#define RULESET_ECHO_PER_S 20
#define RULESET_ECHO_BURST 40
/* Errors about datagrams of ours that are dropped silently; the rest is refused as any ICMP is. */
#define RULESET_LATE_PER_S 100
#define RULESET_LATE_BURST 500
/* Neighbour discovery. */
#define RULESET_NDP_PER_S 20
#define RULESET_NDP_BURST 40
/* Each new source of it makes an entry in a table that all namespaces share, and the host's own links with them: 1024
 * entries by default, held for some ten seconds even when the kernel needs room. A guest has one link-local address,
 * and perhaps another one after it was started anew. */
#define RULESET_NEIGHBOURS 2
#define RULESET_NEIGHBOUR_MS 60000
/* Expired lease elements never match; this is only how soon their memory comes back. */
#define RULESET_GC_MS 10000

#define RULESET_PRIORITY_MANGLE (-150)

/* Sets. */

/* The sets of leases and of ranges. */
static void
ruleset_add_destination_sets(struct nft_batch *batch, int family)
{
	bool v4 = family == 4;
	struct nft_set set = {
	    .name = v4 ? RULESET_LEASE4 : RULESET_LEASE6,
	    .flags = NFT_SET_TIMEOUT,
	    .key_type = NFT_TYPE_CONCAT3(v4 ? NFT_TYPE_IPV4 : NFT_TYPE_IPV6, NFT_TYPE_PROTO, NFT_TYPE_PORT),
	    .key_len = v4 ? RULESET_KEY4_LEN : RULESET_KEY6_LEN,
	    .timeout_ms = TAP_LEASE_MAX_S * 1000,
	    .gc_interval_ms = RULESET_GC_MS,
	};

	nft_batch_set(batch, &set);
	set.name = v4 ? RULESET_RANGE4 : RULESET_RANGE6;
	set.flags = NFT_SET_INTERVAL | NFT_SET_CONCAT;
	set.fields[0] = v4 ? 4 : 16;
	set.fields[1] = 1;
	set.fields[2] = 2;
	set.field_count = 3;
	set.timeout_ms = 0;
	nft_batch_set(batch, &set);
}

/* The subnet that guest and router share; false when the family is off. */
static bool
ruleset_guest_subnet(const struct tap_config *config, int family, struct prefix *ret_prefix)
{
	const struct addr *router = family == 4 ? &config->router4 : &config->router6;

	if (router->family != family)
		return false;
	ret_prefix->addr = *router;
	ret_prefix->bits = family == 4 ? config->bits4 : config->bits6;
	for (unsigned int bit = ret_prefix->bits; bit < (family == 4 ? 32u : 128u); bit++)
		ret_prefix->addr.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return true;
}

/* The constant set of the never list with the guest's subnet, the sets of destinations; the link-local addresses by
 * which a guest may be known. */
static void
ruleset_add_sets(struct nft_batch *batch, const struct tap_config *config)
{
	static const struct nft_set neighbours = {
	    .name = "neighbours",
	    .flags = NFT_SET_TIMEOUT | NFT_SET_EVAL,
	    .key_type = NFT_TYPE_IPV6,
	    .key_len = 16,
	    .timeout_ms = RULESET_NEIGHBOUR_MS,
	    .gc_interval_ms = RULESET_GC_MS,
	    .size = RULESET_NEIGHBOURS,
	};
	struct prefix subnet;

	for (int family = 4; family <= 6; family += 2) {
		if (!ruleset_guest_subnet(config, family, &subnet))
			continue;
		never_add_set(batch, family, family == 4 ? "never4" : "never6", &subnet, 1);
		ruleset_add_destination_sets(batch, family);
	}
	if (tap_has_ipv6(config))
		nft_batch_set(batch, &neighbours);
}

/* The ways in. */

/* A destination in the set is open: TCP (chain "dial") goes to the transparent listener, UDP ("relay") is accepted. */
static void
ruleset_add_open_rule(struct nft_batch *batch, const char *chain, int family, const char *set)
{
	static const uint8_t loopback4[4] = {127, 0, 0, 1}, loopback6[16] = {[15] = 1};
	static const uint8_t port[2] = {TAP_TPROXY_PORT >> 8, TAP_TPROXY_PORT & 0xff};
	struct nft_rule rule = nft_rule_start(batch, chain);

	match_destination_set(&rule, family, set);
	if (chain[0] == 'd') {
		nft_rule_immediate(&rule, NFT_REG_1, family == 4 ? loopback4 : loopback6, family == 4 ? 4 : 16);
		nft_rule_immediate(&rule, NFT_REG_2, port, sizeof(port));
		nft_rule_tproxy(&rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, NFT_REG_1, NFT_REG_2);
	}
	nft_rule_finish(&rule, NF_ACCEPT, NULL);
}

/* The chains "dial" and "relay", for leases and ranges. */
static void
ruleset_add_open_chains(struct nft_batch *batch, const struct tap_config *config)
{
	static const char *const chains[] = {"dial", "relay"};

	for (size_t i = 0; i < 2; i++) {
		nft_batch_chain(batch, chains[i]);
		ruleset_add_open_rule(batch, chains[i], 4, RULESET_LEASE4);
		ruleset_add_open_rule(batch, chains[i], 4, RULESET_RANGE4);
		if (!tap_has_ipv6(config))
			continue;
		ruleset_add_open_rule(batch, chains[i], 6, RULESET_LEASE6);
		ruleset_add_open_rule(batch, chains[i], 6, RULESET_RANGE6);
	}
}

/* Ends a chain: the rule, up to a rate, has the verdict; what is beyond it goes to another chain. */
static void
ruleset_end_limited(struct nft_batch *batch, const char *chain, struct nft_rule *rule, uint64_t per_second,
    uint32_t burst, int verdict, const char *beyond)
{
	nft_rule_limit(rule, per_second, burst);
	nft_rule_finish(rule, verdict, NULL);
	nft_rule_verdict_all(batch, chain, NFT_GOTO, beyond);
}

/* Is the source link-local (op NFT_CMP_EQ), or not (NFT_CMP_NEQ)? */
static void
ruleset_match_link_local(struct nft_rule *rule, uint32_t op)
{
	static const uint8_t mask[2] = {0xff, 0xc0}, link_local[2] = {0xfe, 0x80};

	match_load_network(rule, IP6_SOURCE, sizeof(link_local));
	nft_rule_mask(rule, NFT_REG_1, mask, sizeof(mask));
	nft_rule_cmp(rule, op, NFT_REG_1, link_local, sizeof(link_local));
}

/* Neighbour discovery: of the guest's own addresses, of none, of as many link-local ones as the set holds. */
static void
ruleset_add_ndp_chains(struct nft_batch *batch, const struct tap_config *config)
{
	static const struct addr none = {.family = 6};
	struct nft_rule rule;

	nft_batch_chain(batch, "ndp_link_local");
	rule = nft_rule_start(batch, "ndp_link_local");
	match_load_network(&rule, IP6_SOURCE, 16);
	nft_rule_remember(&rule, "neighbours", NFT_REG_1, RULESET_NEIGHBOUR_MS);
	ruleset_end_limited(
	    batch, "ndp_link_local", &rule, RULESET_NDP_PER_S, RULESET_NDP_BURST, NF_ACCEPT, REFUSE_NDP);

	nft_batch_chain(batch, "ndp");
	rule = nft_rule_start(batch, "ndp");
	match_family(&rule, NFPROTO_IPV6);
	match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &config->guest6);
	match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &none);
	ruleset_match_link_local(&rule, NFT_CMP_NEQ);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));

	rule = nft_rule_start(batch, "ndp");
	ruleset_match_link_local(&rule, NFT_CMP_EQ);
	nft_rule_finish(&rule, NFT_GOTO, "ndp_link_local");

	rule = nft_rule_start(batch, "ndp");
	ruleset_end_limited(batch, "ndp", &rule, RULESET_NDP_PER_S, RULESET_NDP_BURST, NF_ACCEPT, REFUSE_NDP);
}

/* What step 4 accepts and drops, each at a bounded rate. */
static void
ruleset_add_icmp_chains(struct nft_batch *batch)
{
	const char *beyond = refuse_chain(TAP_COUNTER_ICMP);
	struct nft_rule rule;

	nft_batch_chain(batch, "echo_router");
	rule = nft_rule_start(batch, "echo_router");
	ruleset_end_limited(batch, "echo_router", &rule, RULESET_ECHO_PER_S, RULESET_ECHO_BURST, NF_ACCEPT, beyond);
	nft_batch_chain(batch, "late");
	rule = nft_rule_start(batch, "late");
	ruleset_end_limited(batch, "late", &rule, RULESET_LATE_PER_S, RULESET_LATE_BURST, NF_DROP, beyond);
}

/* Step 1. */
static void
ruleset_add_link_rules(struct nft_batch *batch, const struct tap_config *config)
{
	char device[IFNAMSIZ] = "";
	struct nft_rule rule;

	memcpy(device, tap_device(config), strlen(tap_device(config)));
	rule = nft_rule_start(batch, "prerouting");
	nft_rule_meta(&rule, NFT_META_IIFNAME, NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, device, sizeof(device));
	nft_rule_finish(&rule, NF_DROP, NULL);

	if (tap_has_ipv6(config)) {
		rule = nft_rule_start(batch, "prerouting");
		match_family(&rule, NFPROTO_IPV6);
		match_load_network(&rule, IP6_NEXT_HEADER, 1);
		nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_ICMPV6);
		match_load_icmp_type(&rule);
		nft_rule_cmp_u8(&rule, NFT_CMP_GTE, NFT_REG_1, NDP_NEIGHBOUR_SOLICITATION);
		nft_rule_cmp_u8(&rule, NFT_CMP_LTE, NFT_REG_1, NDP_NEIGHBOUR_ADVERTISEMENT);
		nft_rule_finish(&rule, NFT_GOTO, "ndp");
	}

	rule = nft_rule_start(batch, "prerouting");
	nft_rule_meta(&rule, NFT_META_PKTTYPE, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, PACKET_HOST);
	nft_rule_finish(&rule, NFT_GOTO, REFUSE_CAST);
}

/* Step 2, IPv4's. */
static void
ruleset_add_source4_rules(struct nft_batch *batch, const struct tap_config *config)
{
	static const uint8_t ihl_mask = 0x0f;
	struct nft_rule rule;

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV4);
	match_addr(&rule, NFT_CMP_NEQ, IP4_SOURCE, &config->guest4);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));

	/* Source routes, record route, router alert: no option has business here. */
	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV4);
	match_load_network(&rule, 0, 1);
	nft_rule_mask(&rule, NFT_REG_1, &ihl_mask, sizeof(ihl_mask));
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, 5);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_PROTO));
}

/* Step 2, IPv6's. */
static void
ruleset_add_source6_rules(struct nft_batch *batch, const struct tap_config *config)
{
	struct nft_rule rule;

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	if (tap_has_ipv6(config))
		match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &config->guest6);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_SPOOFED));
	if (!tap_has_ipv6(config))
		return;

	/* The first header after IPv6's own must be the transport's. Fragments have been put together by now;
	 * hop-by-hop, routing, destination options, AH and chains of them are refused, with all that they hide. */
	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	match_load_network(&rule, IP6_NEXT_HEADER, 1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_TCP);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_UDP);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_ICMPV6);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_PROTO));
}

/* Begins a rule for ICMP of a family. */
static struct nft_rule
ruleset_start_icmp(struct nft_batch *batch, int family)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_family(&rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	match_l4proto(&rule, family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	return rule;
}

/* Step 4: echo to the router; and the late, by type and code, and UDP in the header that comes back in the message. */
static void
ruleset_add_icmp_rules(struct nft_batch *batch, int family, const struct addr *router)
{
	static const uint8_t port4[2] = {3, 3}, port6[2] = {1, 4};
	struct nft_rule rule = ruleset_start_icmp(batch, family);

	match_load_icmp_type(&rule);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, family == 4 ? ICMP4_ECHO : ICMP6_ECHO);
	match_addr(&rule, NFT_CMP_EQ, family == 4 ? IP4_DESTINATION : IP6_DESTINATION, router);
	nft_rule_finish(&rule, NFT_GOTO, "echo_router");

	rule = ruleset_start_icmp(batch, family);
	nft_rule_payload(&rule, NFT_PAYLOAD_TRANSPORT_HEADER, 0, sizeof(port4), NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_EQ, NFT_REG_1, family == 4 ? port4 : port6, sizeof(port4));
	nft_rule_payload(&rule, NFT_PAYLOAD_TRANSPORT_HEADER,
	    ICMP_HEADER_LEN + (family == 4 ? IP4_PROTOCOL : IP6_NEXT_HEADER), 1, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_UDP);
	nft_rule_finish(&rule, NFT_GOTO, "late");
}

/* Step 3. */
static void
ruleset_add_dns_rule(struct nft_batch *batch, uint8_t proto)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_l4proto(&rule, proto);
	nft_rule_payload(&rule, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DESTINATION, 2, NFT_REG_1);
	nft_rule_cmp_be16(&rule, NFT_CMP_EQ, NFT_REG_1, 53);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	nft_rule_finish(&rule, NF_ACCEPT, NULL);
}

/* Step 5. */
static void
ruleset_add_never_rules(struct nft_batch *batch, const struct tap_config *config)
{
	/* RFC 5214: interface ids 0000:5efe and 0200:5efe embed an IPv4 address. */
	static const uint8_t isatap_mask[4] = {0xfd, 0xff, 0xff, 0xff}, isatap[4] = {0x00, 0x00, 0x5e, 0xfe};
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_family(&rule, NFPROTO_IPV4);
	match_load_network(&rule, IP4_DESTINATION, 4);
	nft_rule_lookup(&rule, "never4", NFT_REG_1);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_NEVER));
	if (!tap_has_ipv6(config))
		return;

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	match_load_network(&rule, IP6_DESTINATION, 16);
	nft_rule_lookup(&rule, "never6", NFT_REG_1);
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_NEVER));

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	match_load_network(&rule, IP6_INTERFACE_ID, sizeof(isatap));
	nft_rule_mask(&rule, NFT_REG_1, isatap_mask, sizeof(isatap_mask));
	nft_rule_cmp(&rule, NFT_CMP_EQ, NFT_REG_1, isatap, sizeof(isatap));
	nft_rule_finish(&rule, NFT_GOTO, refuse_chain(TAP_COUNTER_NEVER));
}

/* Steps 6 to 9. */
static void
ruleset_add_open_rules(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_tcp_flags(&rule, MATCH_SYN);
	nft_rule_finish(&rule, NFT_JUMP, "dial");

	rule = nft_rule_start(batch, "prerouting");
	match_l4proto(&rule, IPPROTO_TCP);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	nft_rule_finish(&rule, NF_ACCEPT, NULL);

	rule = nft_rule_start(batch, "prerouting");
	match_tcp_flags(&rule, MATCH_ACK);
	nft_rule_finish(&rule, NFT_JUMP, "dial");

	rule = nft_rule_start(batch, "prerouting");
	match_l4proto(&rule, IPPROTO_UDP);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	nft_rule_finish(&rule, NFT_JUMP, "relay");
}

/* Step 10. */
static void
ruleset_add_rest_rules(struct nft_batch *batch)
{
	static const struct {
		uint8_t proto;
		enum tap_counter counter;
	} rest[] = {
	    {IPPROTO_TCP, TAP_COUNTER_TCP},
	    {IPPROTO_UDP, TAP_COUNTER_UDP},
	    {IPPROTO_ICMP, TAP_COUNTER_ICMP},
	    {IPPROTO_ICMPV6, TAP_COUNTER_ICMP},
	};
	struct nft_rule rule;

	for (size_t i = 0; i < sizeof(rest) / sizeof(rest[0]); i++) {
		rule = nft_rule_start(batch, "prerouting");
		match_l4proto(&rule, rest[i].proto);
		nft_rule_finish(&rule, NFT_GOTO, refuse_chain(rest[i].counter));
	}
	nft_rule_verdict_all(batch, "prerouting", NFT_GOTO, refuse_chain(TAP_COUNTER_PROTO));
}

void
ruleset_build(struct nft_batch *batch, const struct tap_config *config)
{
	nft_batch_select(batch, NFPROTO_INET, TAP_TABLE);
	nft_batch_table_drop(batch);
	nft_batch_table(batch);
	ruleset_add_sets(batch, config);
	refuse_add_all(batch);
	ruleset_add_open_chains(batch, config);
	ruleset_add_icmp_chains(batch);
	if (tap_has_ipv6(config))
		ruleset_add_ndp_chains(batch, config);
	nft_batch_base_chain(batch, "forward", NF_INET_FORWARD, 0, NF_DROP, NULL);
	nft_batch_base_chain(batch, "prerouting", NF_INET_PRE_ROUTING, RULESET_PRIORITY_MANGLE, NF_DROP, NULL);
	ruleset_add_link_rules(batch, config);
	ruleset_add_source4_rules(batch, config);
	ruleset_add_source6_rules(batch, config);
	ruleset_add_dns_rule(batch, IPPROTO_UDP);
	ruleset_add_dns_rule(batch, IPPROTO_TCP);
	ruleset_add_icmp_rules(batch, 4, &config->router4);
	if (tap_has_ipv6(config))
		ruleset_add_icmp_rules(batch, 6, &config->router6);
	ruleset_add_never_rules(batch, config);
	ruleset_add_open_rules(batch);
	ruleset_add_rest_rules(batch);
	ingress_add_table(batch, config);
}
