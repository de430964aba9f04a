/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A filter as SQL, for the files that read the audit log: conditions from constant pieces, every value bound.
 *
 * The three tables are read through "arms" with the same columns. In all statements the table is called t. */
#ifndef POSTERN_AUDIT_QUERY_SQL_H
#define POSTERN_AUDIT_QUERY_SQL_H

#include "audit/columns.h"
#include "audit/query/query_filter.h"

#include <sqlite3.h>

/* One table as an arm of a statement. */
struct query_arm {
	unsigned int kind; /* QUERY_CONNECTION, ... */
	enum columns_table columns;
	const char *table;
	const char *field[QUERY_FIELD_MAX]; /* expression; NULL: such rows do not have it */
};

enum query_arm_number { QUERY_ARM_CONNECTIONS, QUERY_ARM_DNS, QUERY_ARM_EVENTS };
extern const struct query_arm query_sql_arms[QUERY_KINDS];
/* Sandboxes themselves, for what a filter says about them; of no kind. */
extern const struct query_arm query_sql_arm_sandboxes;

/* Make the SQL functions that conditions use. Returns an SQLite code. */
int query_sql_functions(sqlite3 *db);

/* Can rows of this arm pass the filter at all? */
bool query_sql_wanted(const struct query_filter *filter, const struct query_arm *arm);

/* " AND condition" for everything the filter says but since_us, last and will_follow. */
void query_sql_conditions(sqlite3_str *sql, const struct query_filter *filter, const struct query_arm *arm);

/* The condition that some positive term on field holds, without AND. There must be one, and the arm must have it. */
void query_sql_any(
    sqlite3_str *sql, const struct query_filter *filter, const struct query_arm *arm, enum query_field field);

/* Is it a single address? Its term then compares texts. */
bool query_sql_is_one(const struct prefix *prefix);

/* Bind what the conditions name. Texts of the filter must stay while the statement is used. */
void query_sql_bind(sqlite3_stmt *stmt, const struct query_filter *filter);

/* Bind by name; names that the statement does not have are passed over. */
void query_sql_bind_integer(sqlite3_stmt *stmt, const char *name, int64_t value);
void query_sql_bind_text(sqlite3_stmt *stmt, const char *name, const char *text);

#endif
