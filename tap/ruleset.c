/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Two tables, both named postern.
 *
 * Family netdev, ingress hook of the guest's device: frames that no guest has business to send end here (VLAN tags, foreign
 * EtherTypes, another source MAC, ARP in another name, router advertisements and redirects). Link chatter that every
 * operating system emits and nobody serves (router solicitations, MLD, IGMP) is dropped without a word.
 *
 * Family inet, hook prerouting at mangle priority, after the kernel has put fragments together (tproxy brings nf_defrag),
 * policy drop. In order:
 *   1. only the guest's device, only unicast frames; neighbour discovery
 *   2. only the guest's own addresses, no IPv4 options, no IPv6 extension headers
 *   3. port 53 to any address, when a transparent socket of ours is there: baked images name private resolvers
 *   4. a bounded echo of the gateway itself
 *   5. the never list (with the guest's subnet, so the gateway's addresses too): refused
 *   6. a bare SYN to a lease or an allowed range: to the transparent listener
 *   7. TCP of our own transparent sockets. After 6, since a SYN that meets one in TIME_WAIT would be delayed
 *   8. an ACK to a lease without a socket: to the listener, which completes a SYN cookie or resets
 *   9. UDP to a lease or range on a port where a transparent relay socket of ours stands
 *  10. everything else: refused
 *
 * The only accepts are of our own transparent sockets, the echo and neighbour discovery: with dead listeners, nothing is
 * accepted, and another service in the namespace is out of reach. Refusals count first (a counter object per class), log
 * at a bounded rate to nfnetlink group 1 with the class as prefix, and answer: reset for TCP, ICMP at a bounded rate for the
 * rest. There is no output chain: what leaves towards the guest is our replies, and there is no other way out.
 *
 * The tables have no owner flag: that would protect them from a foreign flush, but delete them with the keeper's socket.
 * Changes by others are found by ruleset_intact (intact.c). */
#include "tap/ruleset.h"

#include "tap/never.h"
#include "tap/nft.h"

#include <assert.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <netinet/in.h>
#include <string.h>

/* Log messages of one class: beyond it the counter still counts. */
#define RULESET_LOG_PER_S 200
#define RULESET_LOG_BURST 400
/* Answers by ICMP: a refused datagram gets one, a flood of them does not double. TCP resets are not bounded, since a scan of
 * closed ports must not hang. */
#define RULESET_UNREACHABLE_PER_S 2000
#define RULESET_UNREACHABLE_BURST 2000
#define RULESET_PROHIBITED_PER_S 100
#define RULESET_PROHIBITED_BURST 200
/* Echo requests to the gateway that are answered. */
#define RULESET_ECHO_PER_S 20
#define RULESET_ECHO_BURST 40
/* Neighbour discovery: each new source can make an entry in a table that all namespaces of the host share. */
#define RULESET_NDP_PER_S 20
#define RULESET_NDP_BURST 40
/* Expired lease elements never match; this is only how soon their memory comes back. */
#define RULESET_GC_MS 10000

#define RULESET_PRIORITY_MANGLE (-150)
/* First of all ingress chains of the device. */
#define RULESET_PRIORITY_INGRESS (-500)

/* Offsets in headers. */
#define ETH_SOURCE 6
#define ETH_TYPE 12
#define ARP_SENDER_MAC 8
#define ARP_SENDER_IP 14
#define IP4_PROTOCOL 9
#define IP4_SOURCE 12
#define IP4_DESTINATION 16
#define IP6_NEXT_HEADER 6
#define IP6_SOURCE 8
#define IP6_DESTINATION 24
#define IP6_INTERFACE_ID (IP6_DESTINATION + 8)
#define TH_DESTINATION 2
#define TCP_FLAGS 13
#define ICMP_TYPE 0

#define TCP_FIN 0x01
#define TCP_SYN 0x02
#define TCP_RST 0x04
#define TCP_ACK 0x10

#define ICMP4_ECHO 8
#define ICMP6_ECHO 128
#define MLD_QUERY 130
#define MLD_DONE 132
#define MLD_REPORT_V2 143
#define NDP_ROUTER_SOLICITATION 133
#define NDP_ROUTER_ADVERTISEMENT 134
#define NDP_NEIGHBOUR_SOLICITATION 135
#define NDP_NEIGHBOUR_ADVERTISEMENT 136
#define NDP_REDIRECT 137

/* The class's refusal chain, its counter object, and the prefix of its log messages, which the gateway knows. */
struct ruleset_class {
	const char *chain, *counter, *prefix;
};
static const struct ruleset_class ruleset_classes[] = {
    [TAP_COUNTER_SPOOFED] = {"refuse_spoofed", "count_spoofed", "spoofed"},
    [TAP_COUNTER_NEVER] = {"refuse_never", "count_never", "never"},
    [TAP_COUNTER_TCP] = {"refuse_tcp", "count_tcp", "tcp"},
    [TAP_COUNTER_UDP] = {"refuse_udp", "count_udp", "udp"},
    [TAP_COUNTER_ICMP] = {"refuse_icmp", "count_icmp", "icmp"},
    [TAP_COUNTER_PROTO] = {"refuse_proto", "count_proto", "proto"},
};
static_assert(sizeof(ruleset_classes) / sizeof(ruleset_classes[0]) == TAP_COUNTER_MAX, "one row per counter");

#define REFUSE(class) (ruleset_classes[TAP_COUNTER_##class].chain)

const char *
ruleset_counter_name(enum tap_counter counter)
{
	return ruleset_classes[counter].counter;
}

/* Matches that rules begin with. */

static void
match_family(struct nft_rule *rule, uint8_t nfproto)
{
	nft_rule_meta(rule, NFT_META_NFPROTO, NFT_REG_1);
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, nfproto);
}

static void
match_l4proto(struct nft_rule *rule, uint8_t proto)
{
	nft_rule_meta(rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, proto);
}

static void
load_network(struct nft_rule *rule, uint32_t offset, uint32_t len)
{
	nft_rule_payload(rule, NFT_PAYLOAD_NETWORK_HEADER, offset, len, NFT_REG_1);
}

static void
load_icmp_type(struct nft_rule *rule)
{
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, ICMP_TYPE, 1, NFT_REG_1);
}

/* An address of the packet's header, compared. */
static void
match_addr(struct nft_rule *rule, uint32_t op, uint32_t offset, const struct addr *addr)
{
	uint32_t len = addr->family == 4 ? 4 : 16;

	load_network(rule, offset, len);
	nft_rule_cmp(rule, op, NFT_REG_1, addr->bytes, len);
}

/* tcp flags & (fin|syn|rst|ack) == flags */
static void
match_tcp_flags(struct nft_rule *rule, uint8_t flags)
{
	static const uint8_t mask = TCP_FIN | TCP_SYN | TCP_RST | TCP_ACK;

	match_l4proto(rule, IPPROTO_TCP);
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TCP_FLAGS, 1, NFT_REG_1);
	nft_rule_mask(rule, NFT_REG_1, &mask, sizeof(mask));
	nft_rule_cmp_u8(rule, NFT_CMP_EQ, NFT_REG_1, flags);
}

/* daddr . l4proto . dport in a lease or range set. */
static void
match_destination_set(struct nft_rule *rule, int family, const char *set)
{
	uint32_t proto_reg = family == 4 ? NFT_REG32_01 : NFT_REG32_04;

	match_family(rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	load_network(rule, family == 4 ? IP4_DESTINATION : IP6_DESTINATION, family == 4 ? 4 : 16);
	nft_rule_meta(rule, NFT_META_L4PROTO, proto_reg);
	nft_rule_payload(rule, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DESTINATION, 2, proto_reg + 1);
	nft_rule_lookup(rule, set, NFT_REG_1);
}

static void
end_with(struct nft_rule *rule, int verdict, const char *chain)
{
	nft_rule_verdict(rule, verdict, chain);
	nft_rule_end(rule);
}

static void
add_verdict(struct nft_batch *batch, const char *in_chain, int verdict, const char *chain)
{
	struct nft_rule rule = nft_rule_start(batch, in_chain);

	end_with(&rule, verdict, chain);
}

/* Refusals. */

/* Count, log at a bounded rate, then what the caller adds to the chain. */
static void
add_refusal(struct nft_batch *batch, const char *chain, enum tap_counter counter)
{
	struct nft_rule rule;

	nft_batch_chain(batch, chain);
	rule = nft_rule_start(batch, chain);
	nft_rule_count(&rule, ruleset_classes[counter].counter);
	nft_rule_limit(&rule, RULESET_LOG_PER_S, RULESET_LOG_BURST);
	nft_rule_log(&rule, ruleset_classes[counter].prefix, TAP_LOG_GROUP, TAP_LOG_SNAPLEN);
	nft_rule_end(&rule);
}

static void
add_answer_chain(struct nft_batch *batch)
{
	struct nft_rule rule;

	nft_batch_chain(batch, "answer");
	rule = nft_rule_start(batch, "answer");
	match_l4proto(&rule, IPPROTO_TCP);
	nft_rule_reject(&rule, NFT_REJECT_TCP_RST, 0);
	nft_rule_end(&rule);

	rule = nft_rule_start(batch, "answer");
	match_l4proto(&rule, IPPROTO_UDP);
	nft_rule_limit(&rule, RULESET_UNREACHABLE_PER_S, RULESET_UNREACHABLE_BURST);
	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_PORT_UNREACH);
	nft_rule_end(&rule);

	rule = nft_rule_start(batch, "answer");
	nft_rule_meta(&rule, NFT_META_L4PROTO, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_UDP);
	nft_rule_limit(&rule, RULESET_PROHIBITED_PER_S, RULESET_PROHIBITED_BURST);
	nft_rule_reject(&rule, NFT_REJECT_ICMPX_UNREACH, NFT_REJECT_ICMPX_ADMIN_PROHIBITED);
	nft_rule_end(&rule);

	add_verdict(batch, "answer", NF_DROP, NULL);
}

static void
add_refusal_chains(struct nft_batch *batch)
{
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		nft_batch_counter(batch, ruleset_classes[i].counter);
	add_answer_chain(batch);
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++) {
		add_refusal(batch, ruleset_classes[i].chain, (enum tap_counter)i);
		/* An answer to a forged source would go to somebody who asked for nothing. */
		if (i == TAP_COUNTER_SPOOFED)
			add_verdict(batch, ruleset_classes[i].chain, NF_DROP, NULL);
		else
			add_verdict(batch, ruleset_classes[i].chain, NFT_GOTO, "answer");
	}
	/* Broadcast and multicast: on the never list, and not to be answered either. */
	add_refusal(batch, "refuse_cast", TAP_COUNTER_NEVER);
	add_verdict(batch, "refuse_cast", NF_DROP, NULL);
}

/* Sets. */

static void
add_destination_sets(struct nft_batch *batch, int family)
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

/* The subnet that guest and gateway share; false when the family is off. */
static bool
guest_subnet(const struct tap_config *config, int family, struct prefix *ret_prefix)
{
	const struct addr *gateway = family == 4 ? &config->gateway4 : &config->gateway6;

	if (gateway->family != family)
		return false;
	ret_prefix->addr = *gateway;
	ret_prefix->bits = family == 4 ? config->bits4 : config->bits6;
	for (unsigned int bit = ret_prefix->bits; bit < (family == 4 ? 32u : 128u); bit++)
		ret_prefix->addr.bytes[bit / 8] &= (uint8_t) ~(0x80 >> bit % 8);
	return true;
}

static void
add_sets(struct nft_batch *batch, const struct tap_config *config)
{
	struct prefix subnet;

	for (int family = 4; family <= 6; family += 2) {
		if (!guest_subnet(config, family, &subnet))
			continue;
		never_add_set(batch, family, family == 4 ? "never4" : "never6", &subnet, 1);
		add_destination_sets(batch, family);
	}
}

/* The ways in. */

static void
add_dial_rule(struct nft_batch *batch, int family, const char *set)
{
	static const uint8_t loopback4[4] = {127, 0, 0, 1}, loopback6[16] = {[15] = 1};
	struct nft_rule rule = nft_rule_start(batch, "dial");
	uint8_t port[2] = {TAP_TPROXY_PORT >> 8, TAP_TPROXY_PORT & 0xff};

	match_destination_set(&rule, family, set);
	nft_rule_immediate(&rule, NFT_REG_1, family == 4 ? loopback4 : loopback6, family == 4 ? 4 : 16);
	nft_rule_immediate(&rule, NFT_REG_2, port, sizeof(port));
	nft_rule_tproxy(&rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6, NFT_REG_1, NFT_REG_2);
	end_with(&rule, NF_ACCEPT, NULL);
}

static void
add_relay_rule(struct nft_batch *batch, int family, const char *set)
{
	struct nft_rule rule = nft_rule_start(batch, "relay");

	match_destination_set(&rule, family, set);
	end_with(&rule, NF_ACCEPT, NULL);
}

/* dial: TCP to the transparent listener, when the destination is open. relay: accept UDP, likewise. */
static void
add_open_chains(struct nft_batch *batch, const struct tap_config *config)
{
	nft_batch_chain(batch, "dial");
	add_dial_rule(batch, 4, RULESET_LEASE4);
	add_dial_rule(batch, 4, RULESET_RANGE4);
	nft_batch_chain(batch, "relay");
	add_relay_rule(batch, 4, RULESET_LEASE4);
	add_relay_rule(batch, 4, RULESET_RANGE4);
	if (!tap_has_ipv6(config))
		return;
	add_dial_rule(batch, 6, RULESET_LEASE6);
	add_dial_rule(batch, 6, RULESET_RANGE6);
	add_relay_rule(batch, 6, RULESET_LEASE6);
	add_relay_rule(batch, 6, RULESET_RANGE6);
}

static void
add_ndp_chain(struct nft_batch *batch, const struct tap_config *config)
{
	static const struct addr none = {.family = 6};
	static const uint8_t link_local_mask[2] = {0xff, 0xc0}, link_local[2] = {0xfe, 0x80};
	struct nft_rule rule;

	nft_batch_chain(batch, "ndp");
	rule = nft_rule_start(batch, "ndp");
	match_family(&rule, NFPROTO_IPV6);
	match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &config->guest6);
	match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &none);
	load_network(&rule, IP6_SOURCE, sizeof(link_local));
	nft_rule_mask(&rule, NFT_REG_1, link_local_mask, sizeof(link_local_mask));
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, link_local, sizeof(link_local));
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));

	rule = nft_rule_start(batch, "ndp");
	nft_rule_limit(&rule, RULESET_NDP_PER_S, RULESET_NDP_BURST);
	end_with(&rule, NF_ACCEPT, NULL);
	add_verdict(batch, "ndp", NFT_GOTO, REFUSE(ICMP));
}

static void
add_echo_chain(struct nft_batch *batch)
{
	struct nft_rule rule;

	nft_batch_chain(batch, "echo_gateway");
	rule = nft_rule_start(batch, "echo_gateway");
	nft_rule_limit(&rule, RULESET_ECHO_PER_S, RULESET_ECHO_BURST);
	end_with(&rule, NF_ACCEPT, NULL);
	add_verdict(batch, "echo_gateway", NFT_GOTO, REFUSE(ICMP));
}

/* Step 1 and 2 of prerouting, what both families share and IPv4's. */
static void
add_source_rules(struct nft_batch *batch, const struct tap_config *config)
{
	char device[IFNAMSIZ] = "";
	static const uint8_t ihl_mask = 0x0f;
	struct nft_rule rule;

	memcpy(device, tap_device(config), strlen(tap_device(config)));
	rule = nft_rule_start(batch, "prerouting");
	nft_rule_meta(&rule, NFT_META_IIFNAME, NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, device, sizeof(device));
	end_with(&rule, NF_DROP, NULL);

	if (tap_has_ipv6(config)) {
		rule = nft_rule_start(batch, "prerouting");
		match_family(&rule, NFPROTO_IPV6);
		load_network(&rule, IP6_NEXT_HEADER, 1);
		nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_ICMPV6);
		load_icmp_type(&rule);
		nft_rule_cmp_u8(&rule, NFT_CMP_GTE, NFT_REG_1, NDP_NEIGHBOUR_SOLICITATION);
		nft_rule_cmp_u8(&rule, NFT_CMP_LTE, NFT_REG_1, NDP_NEIGHBOUR_ADVERTISEMENT);
		end_with(&rule, NFT_GOTO, "ndp");
	}

	rule = nft_rule_start(batch, "prerouting");
	nft_rule_meta(&rule, NFT_META_PKTTYPE, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, PACKET_HOST);
	end_with(&rule, NFT_GOTO, "refuse_cast");

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV4);
	match_addr(&rule, NFT_CMP_NEQ, IP4_SOURCE, &config->guest4);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));

	/* Source routes, record route, router alert: no option has business here. */
	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV4);
	load_network(&rule, 0, 1);
	nft_rule_mask(&rule, NFT_REG_1, &ihl_mask, sizeof(ihl_mask));
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, 5);
	end_with(&rule, NFT_GOTO, REFUSE(PROTO));
}

/* Step 2 of prerouting, IPv6's. */
static void
add_source6_rules(struct nft_batch *batch, const struct tap_config *config)
{
	struct nft_rule rule;

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	if (tap_has_ipv6(config))
		match_addr(&rule, NFT_CMP_NEQ, IP6_SOURCE, &config->guest6);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));
	if (!tap_has_ipv6(config))
		return;

	/* The first header after IPv6's own must be the transport's. Fragments have been put together by now; hop-by-hop,
	 * routing, destination options, AH and chains of them are refused, whatever they hide. */
	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	load_network(&rule, IP6_NEXT_HEADER, 1);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_TCP);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_UDP);
	nft_rule_cmp_u8(&rule, NFT_CMP_NEQ, NFT_REG_1, IPPROTO_ICMPV6);
	end_with(&rule, NFT_GOTO, REFUSE(PROTO));
}

/* Step 3 and 4. */
static void
add_service_rules(struct nft_batch *batch, int family, const struct addr *gateway)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_family(&rule, family == 4 ? NFPROTO_IPV4 : NFPROTO_IPV6);
	match_l4proto(&rule, family == 4 ? IPPROTO_ICMP : IPPROTO_ICMPV6);
	load_icmp_type(&rule);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, family == 4 ? ICMP4_ECHO : ICMP6_ECHO);
	match_addr(&rule, NFT_CMP_EQ, family == 4 ? IP4_DESTINATION : IP6_DESTINATION, gateway);
	end_with(&rule, NFT_GOTO, "echo_gateway");
}

static void
add_dns_rule(struct nft_batch *batch, uint8_t proto)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_l4proto(&rule, proto);
	nft_rule_payload(&rule, NFT_PAYLOAD_TRANSPORT_HEADER, TH_DESTINATION, 2, NFT_REG_1);
	nft_rule_cmp_be16(&rule, NFT_CMP_EQ, NFT_REG_1, 53);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	end_with(&rule, NF_ACCEPT, NULL);
}

/* Step 5. */
static void
add_never_rules(struct nft_batch *batch, const struct tap_config *config)
{
	/* RFC 5214: interface ids 0000:5efe and 0200:5efe embed an IPv4 address. */
	static const uint8_t isatap_mask[4] = {0xfd, 0xff, 0xff, 0xff}, isatap[4] = {0x00, 0x00, 0x5e, 0xfe};
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_family(&rule, NFPROTO_IPV4);
	load_network(&rule, IP4_DESTINATION, 4);
	nft_rule_lookup(&rule, "never4", NFT_REG_1);
	end_with(&rule, NFT_GOTO, REFUSE(NEVER));
	if (!tap_has_ipv6(config))
		return;

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	load_network(&rule, IP6_DESTINATION, 16);
	nft_rule_lookup(&rule, "never6", NFT_REG_1);
	end_with(&rule, NFT_GOTO, REFUSE(NEVER));

	rule = nft_rule_start(batch, "prerouting");
	match_family(&rule, NFPROTO_IPV6);
	load_network(&rule, IP6_INTERFACE_ID, sizeof(isatap));
	nft_rule_mask(&rule, NFT_REG_1, isatap_mask, sizeof(isatap_mask));
	nft_rule_cmp(&rule, NFT_CMP_EQ, NFT_REG_1, isatap, sizeof(isatap));
	end_with(&rule, NFT_GOTO, REFUSE(NEVER));
}

/* Steps 6 to 9. */
static void
add_open_rules(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, "prerouting");

	match_tcp_flags(&rule, TCP_SYN);
	end_with(&rule, NFT_JUMP, "dial");

	rule = nft_rule_start(batch, "prerouting");
	match_l4proto(&rule, IPPROTO_TCP);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	end_with(&rule, NF_ACCEPT, NULL);

	rule = nft_rule_start(batch, "prerouting");
	match_tcp_flags(&rule, TCP_ACK);
	end_with(&rule, NFT_JUMP, "dial");

	rule = nft_rule_start(batch, "prerouting");
	match_l4proto(&rule, IPPROTO_UDP);
	nft_rule_socket_transparent(&rule, NFT_REG_1);
	end_with(&rule, NFT_JUMP, "relay");
}

/* Step 10. */
static void
add_rest_rules(struct nft_batch *batch)
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
		end_with(&rule, NFT_GOTO, ruleset_classes[rest[i].counter].chain);
	}
	add_verdict(batch, "prerouting", NFT_GOTO, REFUSE(PROTO));
}

static void
add_inet_table(struct nft_batch *batch, const struct tap_config *config)
{
	nft_batch_select(batch, NFPROTO_INET, TAP_TABLE);
	nft_batch_table_drop(batch);
	nft_batch_table(batch);
	add_sets(batch, config);
	add_refusal_chains(batch);
	add_open_chains(batch, config);
	add_echo_chain(batch);
	if (tap_has_ipv6(config))
		add_ndp_chain(batch, config);
	nft_batch_base_chain(batch, "forward", NF_INET_FORWARD, 0, NF_DROP, NULL);
	nft_batch_base_chain(batch, "prerouting", NF_INET_PRE_ROUTING, RULESET_PRIORITY_MANGLE, NF_DROP, NULL);
	add_source_rules(batch, config);
	add_source6_rules(batch, config);
	add_dns_rule(batch, IPPROTO_UDP);
	add_dns_rule(batch, IPPROTO_TCP);
	add_service_rules(batch, 4, &config->gateway4);
	if (tap_has_ipv6(config))
		add_service_rules(batch, 6, &config->gateway6);
	add_never_rules(batch, config);
	add_open_rules(batch);
	add_rest_rules(batch);
}

/* The netdev table. */

static void
match_ethertype(struct nft_rule *rule, uint32_t op, uint16_t type)
{
	/* From the frame, not from the packet's metadata: a tag taken off by the device still shows here. */
	nft_rule_payload(rule, NFT_PAYLOAD_LL_HEADER, ETH_TYPE, 2, NFT_REG_1);
	nft_rule_cmp_be16(rule, op, NFT_REG_1, type);
}

static void
add_frame_rules(struct nft_batch *batch, const struct tap_config *config)
{
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	nft_rule_payload(&rule, NFT_PAYLOAD_LL_HEADER, ETH_SOURCE, 6, NFT_REG_1);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, config->guest_mac, 6);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));

	rule = nft_rule_start(batch, "ingress");
	match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_IP);
	match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_ARP);
	if (tap_has_ipv6(config))
		match_ethertype(&rule, NFT_CMP_NEQ, ETH_P_IPV6);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));
}

/* ARP in the guest's own name, or a probe without one: anything else would make entries in the neighbour table. */
static void
add_arp_rules(struct nft_batch *batch, const struct tap_config *config)
{
	static const struct addr none = {.family = 4};
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	match_ethertype(&rule, NFT_CMP_EQ, ETH_P_ARP);
	load_network(&rule, ARP_SENDER_MAC, 6);
	nft_rule_cmp(&rule, NFT_CMP_NEQ, NFT_REG_1, config->guest_mac, 6);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));

	rule = nft_rule_start(batch, "ingress");
	match_ethertype(&rule, NFT_CMP_EQ, ETH_P_ARP);
	match_addr(&rule, NFT_CMP_NEQ, ARP_SENDER_IP, &config->guest4);
	match_addr(&rule, NFT_CMP_NEQ, ARP_SENDER_IP, &none);
	end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));
}

static void
match_icmp6_types(struct nft_rule *rule, uint8_t first, uint8_t last)
{
	match_ethertype(rule, NFT_CMP_EQ, ETH_P_IPV6);
	match_l4proto(rule, IPPROTO_ICMPV6);
	load_icmp_type(rule);
	nft_rule_cmp_u8(rule, NFT_CMP_GTE, NFT_REG_1, first);
	nft_rule_cmp_u8(rule, NFT_CMP_LTE, NFT_REG_1, last);
}

/* Router advertisements and redirects: no guest is a router. */
static void
add_router_rules(struct nft_batch *batch)
{
	static const uint8_t types[] = {NDP_ROUTER_ADVERTISEMENT, NDP_REDIRECT};

	for (size_t i = 0; i < sizeof(types); i++) {
		struct nft_rule rule = nft_rule_start(batch, "ingress");

		match_icmp6_types(&rule, types[i], types[i]);
		end_with(&rule, NFT_GOTO, REFUSE(SPOOFED));
	}
}

static struct nft_rule
chatter_rule(struct nft_batch *batch)
{
	struct nft_rule rule = nft_rule_start(batch, "ingress");

	nft_rule_meta(&rule, NFT_META_PKTTYPE, NFT_REG_1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, PACKET_MULTICAST);
	return rule;
}

/* Multicast that every system emits by itself when a link comes up: no attempt of anybody, and not counted as one. */
static void
add_chatter_rules(struct nft_batch *batch, const struct tap_config *config)
{
	static const uint8_t types[][2] = {
	    {MLD_QUERY, MLD_DONE},
	    {NDP_ROUTER_SOLICITATION, NDP_ROUTER_SOLICITATION},
	    {MLD_REPORT_V2, MLD_REPORT_V2},
	};
	struct nft_rule rule = chatter_rule(batch);

	match_ethertype(&rule, NFT_CMP_EQ, ETH_P_IP);
	load_network(&rule, IP4_PROTOCOL, 1);
	nft_rule_cmp_u8(&rule, NFT_CMP_EQ, NFT_REG_1, IPPROTO_IGMP);
	end_with(&rule, NF_DROP, NULL);
	for (size_t i = 0; tap_has_ipv6(config) && i < sizeof(types) / sizeof(types[0]); i++) {
		rule = chatter_rule(batch);
		match_icmp6_types(&rule, types[i][0], types[i][1]);
		end_with(&rule, NF_DROP, NULL);
	}
}

static void
add_netdev_table(struct nft_batch *batch, const struct tap_config *config)
{
	nft_batch_select(batch, NFPROTO_NETDEV, TAP_TABLE);
	nft_batch_table_drop(batch);
	nft_batch_table(batch);
	nft_batch_counter(batch, ruleset_classes[TAP_COUNTER_SPOOFED].counter);
	add_refusal(batch, REFUSE(SPOOFED), TAP_COUNTER_SPOOFED);
	add_verdict(batch, REFUSE(SPOOFED), NF_DROP, NULL);
	nft_batch_base_chain(
	    batch, "ingress", NF_NETDEV_INGRESS, RULESET_PRIORITY_INGRESS, NF_DROP, tap_device(config));
	add_frame_rules(batch, config);
	add_arp_rules(batch, config);
	if (tap_has_ipv6(config))
		add_router_rules(batch);
	add_chatter_rules(batch, config);
	add_verdict(batch, "ingress", NF_ACCEPT, NULL);
}

void
ruleset_build(struct nft_batch *batch, const struct tap_config *config)
{
	add_inet_table(batch, config);
	add_netdev_table(batch, config);
}
