/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals, keys and the log's id as they stand in a database. What is read may be anything: nothing here is verified. */
#ifndef POSTERN_AUDIT_SEAL_TABLE_H
#define POSTERN_AUDIT_SEAL_TABLE_H

#include "audit/seal/seal.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* SQLITE_OK, SQLITE_CORRUPT when there is none of the right form, or another SQLite result code. */
int seal_table_log_id(sqlite3 *db, char ret_log_id[SEAL_LOG_ID_MAX]);

/* Rows with seq up to this were dropped; 0: none. An SQLite result code. */
int seal_table_pruned_through(sqlite3 *db, int64_t *ret_seq);

/* The statement that seal_table_next asks; the caller finalizes it. An SQLite result code. */
int seal_table_prepare(sqlite3 *db, sqlite3_stmt **ret_next);

/* The first seal after number n. SQLITE_ROW; SQLITE_DONE when there is none; or another result code. *ret_whole is
 * false if a column is not of the form it should have; then only ret_seal->n counts. */
int seal_table_next(sqlite3_stmt *next, int64_t n, struct seal *ret_seal, bool *ret_whole);

/* The newest seal, or one with n 0. SQLITE_OK, SQLITE_CORRUPT when it is not whole, or another result code. */
int seal_table_newest(sqlite3 *db, struct seal *ret_seal);

/* Does the seal close the log: is the last change that it is about the daemon's word that it stops? Whatever comes
 * after it is written with a seal of its own. An SQLite result code. */
int seal_table_closes(sqlite3 *db, const struct seal *seal, bool *ret_closes);

/* Keys of the right form, at most max, oldest first. An SQLite result code. */
int seal_table_keys(sqlite3 *db, struct seal_key *ret_keys, size_t max, size_t *ret_count);

#endif
