/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replies to guests, built from scratch (the only file that touches ldns): nothing of an upstream message is
 * relayed. */
#ifndef POSTERN_GATEWAY_DNS_REPLY_H
#define POSTERN_GATEWAY_DNS_REPLY_H

#include "gateway/path/dns/dns_message.h"
#include "gateway/path/dns/dns_service.h"

#include <stddef.h>
#include <stdint.h>

/* How long a guest may remember a refusal: short, because a person may be about to lift it (CASES C-30). */
#define DNS_NEGATIVE_TTL_S 5
/* No Extended DNS Error. */
#define DNS_EDE_NONE 0xffff
/* INFO-CODEs that we use (RFC 8914). */
#define DNS_EDE_BLOCKED 15
#define DNS_EDE_NOT_READY 14
#define DNS_EDE_NOT_SUPPORTED 21
#define DNS_EDE_NO_REACHABLE_AUTHORITY 22
#define DNS_EDE_NETWORK_ERROR 23
#define DNS_EDE_INVALID_DATA 24
/* EXTRA-TEXT is cut at this. */
#define DNS_EDE_TEXT_MAX 160

struct dns_rdata {
	size_t len;
	uint8_t bytes[DNS_SERVICE_RDATA_MAX];
};

struct dns_reply {
	const struct dns_question *question;
	uint16_t rcode;           /* enum dns_rcode */
	bool negative;            /* NXDOMAIN and NODATA: with a SOA record that limits how long it is remembered */
	bool hinfo;               /* the answer to ANY (RFC 8482) */
	uint32_t ttl_s;           /* of every record in the answer */
	const struct name *chain; /* CNAME targets from the question on */
	size_t chain_count;
	const struct addr *addrs; /* at the end of the chain */
	size_t addr_count;
	const struct dns_rdata *services; /* of the type asked for, at the end of the chain */
	size_t service_count;
	uint16_t ede; /* DNS_EDE_*; sent when the question had EDNS */
	const char *ede_text;
	size_t size_max; /* a longer message becomes one without records and with TC set */
};

/* 0 and *ret_bytes (owned by the caller, free()) with *ret_len, or -errno. */
int dns_reply_build(const struct dns_reply *reply, uint8_t **ret_bytes, size_t *ret_len);

#endif
