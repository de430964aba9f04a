/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rules of a sandbox's namespace. */
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

/* Add both tables to a batch. */
void ruleset_build(struct nft_batch *batch, const struct tap_config *config);

#endif
