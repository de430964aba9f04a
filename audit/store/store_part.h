/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between the store's two files: store_open.c brings a database into use, store.c writes batches, does what comes round
 * (seals, retention) and closes. */
#ifndef POSTERN_AUDIT_STORE_PART_H
#define POSTERN_AUDIT_STORE_PART_H

#include "audit/store/insert.h"
#include "audit/store/store.h"
#include "audit/store/store_file.h"
#include "audit/store/store_seal.h"

struct store {
	struct store_file file;
	sqlite3 *db;
	struct insert insert;
	struct store_seal seal;
	sqlite3_stmt *begin, *commit, *rollback;
	struct checkpoint *checkpoint; /* NULL until started */
	struct checkpoint_limits limits;
	uint64_t log_frames;   /* in the log after the last commit */
	int64_t last_known_us; /* newest time in the file when it was opened */
	bool must_reopen;
	bool changed_by_others;
	bool check_due; /* the whole file is still to be checked, by the checkpoint thread */
};

/* Run constant SQL; a statement with one integer as its result. 0 or -1. */
int store_exec(struct store *store, const char *sql, struct error *err);
int store_integer(struct store *store, const char *sql, int64_t *ret_value, struct error *err);

/* Begin a batch unless one is open. 0 or -1. */
int store_begin(struct store *store, struct error *err);
/* An SQLite result code ended the batch: roll it back, and decide whether the connection is trusted again. Returns -1.
 */
int store_fail(struct store *store, int rc, struct error *err);

/* Closes the database and all that was made of it; the lock file stays. */
void store_close_db(struct store *store);

#endif
