/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The netdev table: what becomes of frames before the kernel looks at them. */
#ifndef POSTERN_TAP_INGRESS_H
#define POSTERN_TAP_INGRESS_H

#include "tap/nft.h"
#include "tap/tap_internal.h"

void ingress_add_table(struct nft_batch *batch, const struct tap_config *config);

#endif
