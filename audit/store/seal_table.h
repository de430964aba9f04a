/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Seals, keys and the log's id as a database holds them. They may be anything: nothing here is verified.
 *
 * Functions that return int return 0 or an SQLite result code. */
#ifndef POSTERN_AUDIT_SEAL_TABLE_H
#define POSTERN_AUDIT_SEAL_TABLE_H

#include "audit/seal/seal.h"
#include "audit/store/rows.h"

#include <stdbool.h>
#include <stdint.h>

/* "" when there is none of the right form. */
int seal_table_log_id(struct sqlite3 *db, char ret_log_id[SEAL_LOG_ID_MAX]);

/* Rows with seq up to this were pruned; 0: none. */
int seal_table_pruned_through(struct sqlite3 *db, int64_t *ret_seq);

/* Prepares the statement that seal_table_next asks, as rows_prepare; the caller ends it with rows_finish. */
void seal_table_prepare(struct rows *ret_next, struct sqlite3 *db, const char *what, struct error *err);

/* The first seal after number n. False: there is none, or next->code says what failed. *ret_whole is false if a column
 * is not of the form it should have; then only ret_seal->n counts. */
bool seal_table_next(struct rows *next, int64_t n, struct seal *ret_seal, bool *ret_whole);

/* The newest seal, or one with n 0. */
int seal_table_newest(struct sqlite3 *db, struct seal *ret_seal, bool *ret_whole);

/* Does the seal close the log: is the last change under it the event that the daemon stops? Changes after that come
 * with a seal of their own. */
int seal_table_closes(struct sqlite3 *db, const struct seal *seal, bool *ret_closes);

/* Keys of the right form, at most max, oldest first. */
int seal_table_keys(struct sqlite3 *db, struct seal_key *ret_keys, size_t max, size_t *ret_count);

#endif
