/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From three tables' columns (audit/columns.c) to one struct query_row; between audit/query/query.c and SQLite. */
#ifndef POSTERN_AUDIT_QUERY_ROW_H
#define POSTERN_AUDIT_QUERY_ROW_H

#include "audit/columns.h"
#include "audit/query/query.h"

#include <sqlite3.h>

/* What every arm of a statement selects: the row's kind, then each member that some table fills, in the order of struct
 * query_row. */
struct query_row_plan {
	size_t count;
	const struct column *columns[COLUMNS_MAX][QUERY_KINDS]; /* by table; NULL: it does not fill the member */
};
void query_row_plan(struct query_row_plan *ret_plan);

/* Append what to select from a table t that is one of the first three; kind, id, seq and ts by name. */
void query_row_select(
    sqlite3_str *sql, const struct query_row_plan *plan, enum columns_table table, unsigned int row_kind);

/* The current row of stmt. Returns the memory that holds its texts (the caller frees), or NULL without memory. */
void *query_row_take(sqlite3_stmt *stmt, const struct query_row_plan *plan, struct query_row *ret_row);

/* A text or blob column in place, valid until the statement moves; empty for anything else. */
struct query_text query_row_text(sqlite3_stmt *stmt, int column);

#endif
