/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records into rows: prepared statements, bound parameters, and each of them so that twice is once. */
#ifndef POSTERN_AUDIT_INSERT_H
#define POSTERN_AUDIT_INSERT_H

#include "audit/seal/chain.h"
#include "audit/columns.h"
#include "audit/record.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

enum insert_statement {
	INSERT_CONNECTION,
	INSERT_REFUSED,
	INSERT_CLOSE,
	INSERT_CLOSE_REFUSED,
	INSERT_PROGRESS,
	INSERT_DNS,
	INSERT_EVENT,
	INSERT_SANDBOX,
	INSERT_SANDBOX_END,
	INSERT_NEXT_OPEN,
	INSERT_CRASHED,
	INSERT_ACCOUNT,
	INSERT_TARGET,
	INSERT_LINK,
	INSERT_STATEMENT_MAX
};

/* Where numbering and chain stand. */
struct insert_state {
	int64_t seq; /* of the newest change; column seq */
	uint8_t head[CHAIN_DIGEST];
};

struct insert {
	sqlite3 *db; /* not owned */
	sqlite3_stmt *statements[INSERT_STATEMENT_MAX];
	sqlite3_stmt *rows[COLUMNS_TABLE_MAX]; /* all columns of one row, by its id; NULL where a table has no links */
	struct chain *chain;
	struct insert_state now;     /* with the open batch */
	struct insert_state durable; /* as committed */
};

/* Prepare all statements; state is where the file stands. Returns an SQLite result code; on failure nothing stays
 * behind. */
int insert_prepare(struct insert *insert, sqlite3 *db, const struct insert_state *state);
void insert_finalize(struct insert *insert);

/* The batch is committed, or it is rolled back. */
void insert_committed(struct insert *insert);
void insert_rolled_back(struct insert *insert);

/* The row with this id was written: give it its link, and go on numbering with its seq. An SQLite result code; other
 * than SQLITE_OK the batch cannot be kept. */
int insert_link(struct insert *insert, enum columns_table table, int64_t id);

/* Store one record that record_valid accepted. Returns SQLITE_OK or the code of the failure. */
int insert_record(struct insert *insert, const struct record *record);

/* Close, as end, the open connections whose id wanted accepts; closed at ts_us, or when they were opened
 * if that is later. */
int insert_close_crashed(struct insert *insert, bool (*wanted)(uint64_t id, void *context), void *context,
    int64_t ts_us, enum end_reason end);

#endif
