/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Packets that the kernel refused and logged (nfnetlink_log), taken apart: who tried to reach what. */
#ifndef POSTERN_GATEWAY_NFLOG_H
#define POSTERN_GATEWAY_NFLOG_H

#include "policy/names/addr.h"
#include "gateway/shared/msg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* IPv6 extension headers followed at most; after more, the protocol counts as unknown (the last one seen). */
#define NFLOG_EXTENSIONS_MAX 8

struct nflog_packet {
	enum tap_counter class; /* which rule refused it */
	bool ip;                /* src, dst and proto are known */
	bool stray;             /* TCP, but not a bare SYN: a segment of no connection, not an attempt */
	uint16_t ethertype;     /* host order; 0 when the kernel did not say */
	struct addr src, dst;
	uint8_t proto;
	uint16_t sport, dport; /* 0 where there are none or the copy is too short */
};

/* Read a packet that begins at its IP header and may be cut anywhere. Fills all members but class and ethertype; what
 * cannot be read stays zero. */
void nflog_read_ip(const void *bytes, size_t len, struct nflog_packet *ret_packet);

/* Call handler for each logged packet in a datagram from the kernel; what does not parse is passed over. bytes must be
 * aligned to 4. Returns the number of packets. */
size_t nflog_each(
    const void *bytes, size_t len, void (*handler)(const struct nflog_packet *packet, void *context), void *context);

#endif
