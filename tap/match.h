/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the rules of both tables begin with. All use NFT_REG_1. */
#ifndef POSTERN_TAP_MATCH_H
#define POSTERN_TAP_MATCH_H

#include "policy/names/addr.h"
#include "tap/nft.h"

/* Offsets in headers, for match_load_network and nft_rule_payload. */
#define IP4_PROTOCOL 9
#define IP4_SOURCE 12
#define IP4_DESTINATION 16
#define IP6_NEXT_HEADER 6
#define IP6_SOURCE 8
#define IP6_DESTINATION 24
#define IP6_INTERFACE_ID (IP6_DESTINATION + 8)
#define TH_DESTINATION 2

/* TCP flags. */
#define MATCH_FIN 0x01
#define MATCH_SYN 0x02
#define MATCH_RST 0x04
#define MATCH_ACK 0x10

/* ICMP: what comes before the header of the packet that an error is about, and types. */
#define ICMP_HEADER_LEN 8
#define ICMP4_ECHO 8
#define ICMP6_ECHO 128
#define NDP_NEIGHBOUR_SOLICITATION 135
#define NDP_NEIGHBOUR_ADVERTISEMENT 136

/* nfproto NFPROTO_IPV4 or NFPROTO_IPV6 */
void match_family(struct nft_rule *rule, uint8_t nfproto);
/* IPPROTO_*; behind IPv6 extension headers too */
void match_l4proto(struct nft_rule *rule, uint8_t proto);
/* An address at an offset of the network header, compared by NFT_CMP_*. */
void match_addr(struct nft_rule *rule, uint32_t op, uint32_t offset, const struct addr *addr);
/* TCP, and of FIN, SYN, RST and ACK exactly these set. */
void match_tcp_flags(struct nft_rule *rule, uint8_t flags);
/* Destination address . protocol . destination port of a family (4, 6) in a set. */
void match_destination_set(struct nft_rule *rule, int family, const char *set);

/* Load for a comparison that follows. */
void match_load_network(struct nft_rule *rule, uint32_t offset, uint32_t len);
void match_load_icmp_type(struct nft_rule *rule);

#endif
