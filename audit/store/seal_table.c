/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/seal_table.h"

#include "audit/columns.h"
#include "audit/record.h"

#include <string.h>

#define SEAL_TABLE_COLUMNS "n, first_seq, last_seq, ts, head, key_id, signature"

/* Hex digits of a log id. */
#define LOG_ID_DIGITS 32

/* Ends a statement; returns its first error. */
static int
seal_table_end(struct rows *rows)
{
	int code = rows->code;

	rows_finish(rows);
	return code;
}

int
seal_table_log_id(struct sqlite3 *db, char ret_log_id[SEAL_LOG_ID_MAX])
{
	struct rows rows;

	memset(ret_log_id, 0, SEAL_LOG_ID_MAX);
	rows_prepare(&rows, db, "SELECT value FROM meta WHERE key = 'log_id'", "", NULL);
	if (rows_next(&rows) && rows_bytes(&rows, 0, ret_log_id, LOG_ID_DIGITS) &&
	    strspn(ret_log_id, "0123456789abcdef") != LOG_ID_DIGITS)
		ret_log_id[0] = '\0';
	return seal_table_end(&rows);
}

int
seal_table_pruned_through(struct sqlite3 *db, int64_t *ret_seq)
{
	struct rows rows;

	rows_prepare(&rows, db, "SELECT value FROM meta WHERE key = 'pruned_through'", "", NULL);
	*ret_seq = rows_next(&rows) ? rows_integer(&rows, 0) : 0;
	return seal_table_end(&rows);
}

void
seal_table_prepare(struct rows *ret_next, struct sqlite3 *db, const char *what, struct error *err)
{
	rows_prepare(
	    ret_next, db, "SELECT " SEAL_TABLE_COLUMNS " FROM seals WHERE n > ?1 ORDER BY n LIMIT 1", what, err);
}

/* The seal in the current row. Returns whether it is whole. */
static bool
seal_table_read(struct rows *rows, struct seal *ret_seal)
{
	int64_t key_id = rows_integer(rows, 5);

	*ret_seal = (struct seal){.n = rows_integer(rows, 0),
	    .first_seq = rows_integer(rows, 1),
	    .last_seq = rows_integer(rows, 2),
	    .ts_us = rows_integer(rows, 3),
	    .key_id = (uint32_t)key_id};
	return rows_bytes(rows, 4, ret_seal->head, CHAIN_DIGEST) &&
	    rows_bytes(rows, 6, ret_seal->signature, SEAL_SIGNATURE) && key_id >= 0 && key_id <= UINT32_MAX;
}

bool
seal_table_next(struct rows *next, int64_t n, struct seal *ret_seal, bool *ret_whole)
{
	bool found;

	rows_set_integer(next, 1, n);
	found = rows_next(next);
	if (found)
		*ret_whole = seal_table_read(next, ret_seal);
	rows_again(next);
	return found;
}

int
seal_table_newest(struct sqlite3 *db, struct seal *ret_seal, bool *ret_whole)
{
	struct rows rows;

	*ret_seal = (struct seal){.n = 0};
	rows_prepare(&rows, db, "SELECT " SEAL_TABLE_COLUMNS " FROM seals ORDER BY n DESC LIMIT 1", "", NULL);
	*ret_whole = !rows_next(&rows) || seal_table_read(&rows, ret_seal);
	return seal_table_end(&rows);
}

int
seal_table_closes(struct sqlite3 *db, const struct seal *seal, bool *ret_closes)
{
	static const char sql[] = "SELECT 1 FROM chain c JOIN events e ON e.id = c.id WHERE c.seq = ?1 AND c.tbl = 3 "
				  "AND e.seq = c.seq AND e.kind = 2";
	struct rows rows;

	_Static_assert(COLUMNS_EVENTS == 3 && EVENT_DAEMON_STOP == 2, "the numbers in the statement");
	rows_prepare(&rows, db, sql, "", NULL);
	rows_set_integer(&rows, 1, seal->last_seq);
	*ret_closes = rows_next(&rows) && seal->n > 0;
	return seal_table_end(&rows);
}

int
seal_table_keys(struct sqlite3 *db, struct seal_key *ret_keys, size_t max, size_t *ret_count)
{
	struct rows rows;

	*ret_count = 0;
	rows_prepare(&rows, db, "SELECT id, public FROM seal_keys ORDER BY ts, id", "", NULL);
	while (rows_next(&rows) && *ret_count < max) {
		struct seal_key *key = &ret_keys[*ret_count];

		if (!rows_bytes(&rows, 1, key->public, SEAL_PUBLIC))
			continue;
		seal_key_identify(key);
		if (key->id == rows_integer(&rows, 0))
			++*ret_count;
	}
	return seal_table_end(&rows);
}
