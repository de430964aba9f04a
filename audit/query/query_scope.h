/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The rows of a query that was started, for statements that add them up instead of listing them: same filter, same way
 * to the rows. Within audit/ only. */
#ifndef POSTERN_AUDIT_QUERY_SCOPE_H
#define POSTERN_AUDIT_QUERY_SCOPE_H

#include "audit/query/query.h"

#include <sqlite3.h>

/* Prepare "before (SELECT columns ... UNION ALL ...) after" over the rows of the query's filter, last excepted.
 * columns[i] are constant SQL for the kind 1 << i (table t); NULL: rows of this kind are left out. Values are bound.
 * *ret_stmt is NULL when no kind of rows is left; the caller finalizes. 0 or -1. */
int query_scope_prepare(struct query *query, const char *before, const char *const columns[QUERY_KINDS],
    const char *after, sqlite3_stmt **ret_stmt, struct error *err);

/* Fill *err from the query's database. Returns -1. */
int query_scope_error(struct query *query, struct error *err);

/* The filter as it was resolved at query_start. */
const struct query_filter *query_scope_filter(const struct query *query);

#endif
