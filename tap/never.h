/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The never list as elements of interval sets. */
#ifndef POSTERN_TAP_NEVER_H
#define POSTERN_TAP_NEVER_H

#include "policy/names/addr.h"
#include "policy/compiled/snapshot.h"
#include "tap/nft.h"

/* Make the constant interval set of a family (4, 6) in the selected table: the never list as it is in force, everything
 * in IPv6 outside 2000::/3, and the extra prefixes of that family. ISATAP interface ids are no prefix: the ruleset has
 * a rule for them. */
void never_add_set(
    struct nft_batch *batch, int family, const char *set, const struct prefix *extra, size_t extra_count);

/* Does an address of the range fall on the never list? */
bool never_touches_range(const struct addr_range *range);

#endif
