/* SPDX-License-Identifier: GPL-3.0-or-later */
/* HTTPS and SVCB records (RFC 9460) made safe: rebuilt from what we understand, without ech, h3 and unleased
 * addresses. */
#ifndef POSTERN_GATEWAY_DNS_SERVICE_H
#define POSTERN_GATEWAY_DNS_SERVICE_H

#include "policy/names/addr.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Hint addresses per family that are looked at; further ones are left out. */
#define DNS_SERVICE_HINTS_MAX 16
/* ALPN list after stripping; a record with a longer one is dropped. */
#define DNS_SERVICE_ALPN_MAX 128
/* Largest rdata that dns_service_write makes: priority, own name as target, and each key at its maximum. */
#define DNS_SERVICE_RDATA_MAX 1024

/* A record in service mode for the owner itself: the only kind that is passed on. */
struct dns_service {
	uint16_t priority; /* never 0, which would be alias mode */
	bool mandatory[7]; /* by key: 1..4 and 6 */
	bool no_default_alpn;
	uint16_t port;                      /* 0: no such key */
	size_t alpn_len;                    /* 0: no such key */
	uint8_t alpn[DNS_SERVICE_ALPN_MAX]; /* as on the wire, h3 and its drafts left out */
	size_t hint4_count, hint6_count;
	struct addr hints4[DNS_SERVICE_HINTS_MAX], hints6[DNS_SERVICE_HINTS_MAX];
};

/* Read the rdata of a record of owner. NULL, or why it must not reach the guest (static text): malformed, alias mode,
 * another target, a mandatory key that is stripped, or nothing left of it. */
const char *dns_service_read(const void *rdata, size_t len, const struct name *owner, struct dns_service *ret_service);

/* Write the record's rdata with the hints that are left in service. Returns the length, or 0 when a mandatory key has
 * nothing left: then drop the record. */
size_t dns_service_write(const struct dns_service *service, uint8_t ret_rdata[DNS_SERVICE_RDATA_MAX]);

#endif
