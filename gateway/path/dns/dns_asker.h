/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a guest's message came from, and how its reply gets there. */
#ifndef POSTERN_GATEWAY_DNS_ASKER_H
#define POSTERN_GATEWAY_DNS_ASKER_H

#include "policy/names/addr.h"

#include <stddef.h>
#include <stdint.h>

struct dns_asker;

/* How replies travel: one row in dns.c (UDP), one in dns_tcp.c. */
struct dns_transport {
	/* Send a reply to peer. What it does not take is lost: the client asks again. */
	void (*reply)(void *peer, const struct dns_asker *asker, const uint8_t *bytes, size_t len);
	/* A query of this peer has ended, after its reply, if any. NULL: nothing is to be done. */
	void (*done)(void *peer);
};

/* Where a query came from, and so where its reply goes. */
struct dns_asker {
	struct addr src, server; /* the guest, and the address it asked */
	uint16_t sport;
	uint8_t proto;                   /* IPPROTO_UDP or IPPROTO_TCP */
	const struct dns_transport *via; /* NULL: no reply any more */
	void *peer;                      /* of via: struct dns_udp or struct dns_conn */
};

#endif
