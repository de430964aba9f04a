/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of a sandbox's namespace, and whether they are still there. */
#ifndef POSTERN_TAP_RULESET_H
#define POSTERN_TAP_RULESET_H

#include "tap/nft.h"
#include "tap/tap_internal.h"

/* Names of the sets that sets.c fills. */
#define RULESET_LEASE4 "lease4"
#define RULESET_LEASE6 "lease6"
#define RULESET_RANGE4 "range4"
#define RULESET_RANGE6 "range6"

/* Bytes of the keys: address, protocol and port in registers of four bytes. */
#define RULESET_KEY4_LEN 12
#define RULESET_KEY6_LEN 24

/* Put both tables in place, in one transaction: nothing of earlier ones of that name remains. The device must exist.
 * Remembers what the kernel made of it for ruleset_intact. */
int ruleset_load(struct tap *tap, struct error *err);
/* Do the kernel's tables look as they did right after ruleset_load? */
bool ruleset_intact(struct tap *tap);
/* Note that a transaction of our own went through. certain: it changed something. One that only empties sets may find
 * them empty; to the kernel that is no transaction, and counting it would hide the next one of somebody else. */
void ruleset_committed(struct tap *tap, bool certain);

/* Add both tables to a batch. */
void ruleset_build(struct nft_batch *batch, const struct tap_config *config);

#endif
