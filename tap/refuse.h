/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How a packet is refused: counted in its class, logged at a bounded rate with the class as prefix, answered where the
 * answer reaches the sender. */
#ifndef POSTERN_TAP_REFUSE_H
#define POSTERN_TAP_REFUSE_H

#include "tap/nft.h"
#include "tap/tap_internal.h"

/* Broadcast and multicast: of class never, and not answered. */
#define REFUSE_CAST "refuse_cast"
/* Too much neighbour discovery: of class ICMP. Its sender may be any link-local address, and an answer to each would
 * make the entries in the neighbour table that the limit is there to prevent. */
#define REFUSE_NDP "refuse_ndp"

/* The chain that refuses as a class (goto it), and the class's counter object; the same in both tables. */
const char *refuse_chain(enum tap_counter counter);
const char *refuse_counter_name(enum tap_counter counter);

/* The counters of all classes and their chains, for the inet table. */
void refuse_add_all(struct nft_batch *batch);
/* A chain that counts and logs as a class; what then becomes of the packet the caller adds. */
void refuse_add_chain(struct nft_batch *batch, const char *chain, enum tap_counter counter);

#endif
