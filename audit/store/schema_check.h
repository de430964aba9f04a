/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is a database's schema the one that postern makes? Who can write the file can put a trigger, a view or an index into
 * it that changes or hides rows, and none of these is a row of the chain. It is compared with one that is made in
 * memory. */
#ifndef POSTERN_AUDIT_SCHEMA_CHECK_H
#define POSTERN_AUDIT_SCHEMA_CHECK_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdio.h>

#define SCHEMA_CHECK_TEXT_MAX 160

/* What postern makes, words and all, in memory. NULL on failure. */
sqlite3 *schema_check_reference(struct error *err);
void schema_check_reference_close(sqlite3 *reference); /* accepts NULL */

/* The first table, index, view or trigger that is missing, is another or is none of postern's, as a sentence; "" when
 * there is none. *ret_table: it is one of postern's tables, which holds rows and cannot be made anew. Comments and
 * spaces do not count. An SQLite result code. */
int schema_check(sqlite3 *db, sqlite3 *reference, char ret_what[SCHEMA_CHECK_TEXT_MAX], bool *ret_table);

/* Likewise the first word of the lookup tables that is not postern's. Words beyond ours are a newer postern's. */
int schema_check_words(sqlite3 *db, sqlite3 *reference, char ret_what[SCHEMA_CHECK_TEXT_MAX]);

/* Drop every trigger, view and index that is none of postern's or another than postern's, and make those of postern's
 * that are not there: all that holds no rows of its own. An SQLite result code. */
int schema_check_mend(sqlite3 *db, sqlite3 *reference);

/* Writes to sql a condition on a row of this table, named t in a statement none of whose other tables has a column that
 * an index is about: each of its indexes leads to it. An SQLite result code. */
int schema_check_index_probe(struct sqlite3 *reference, const char *table, FILE *sql);

#endif
