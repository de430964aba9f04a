/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which hosts belong together. */
#ifndef POSTERN_CLI_SUGGEST_SITE_H
#define POSTERN_CLI_SUGGEST_SITE_H

#include "cli/policy/suggest_targets.h"

/* The aliases in a query's answer, canonical names only. Returns how many. */
size_t suggest_site_chain(const struct query_row *row, struct name chain[SUGGEST_CHAIN_MAX]);
/* The domain of a name that was met in a row; a new one is given its site. NULL when out of memory: suggest->no_memory
 * is set then. */
struct suggest_domain *suggest_site_join(struct suggest *suggest, const struct name *name, uint8_t domain_at,
    const struct name *chain, size_t count, int64_t ts_us);
/* After a connection to a site, new names of the next seconds belong to it. */
void suggest_site_connected(struct suggest *suggest, struct suggest_domain *domain, const struct query_row *row);
void suggest_site_free(struct suggest *suggest);

#endif
