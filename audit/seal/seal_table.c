/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/seal/seal_table.h"

#include "audit/record.h"

#include <string.h>

#define SEAL_TABLE_COLUMNS "n, first_seq, last_seq, ts, head, key_id, signature"

/* Hex digits of a log id. */
#define LOG_ID_DIGITS 32

int
seal_table_log_id(sqlite3 *db, char ret_log_id[SEAL_LOG_ID_MAX])
{
	sqlite3_stmt *stmt;
	const char *text = NULL;
	int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'log_id'", -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW && sqlite3_column_bytes(stmt, 0) == LOG_ID_DIGITS)
		text = (const char *)sqlite3_column_text(stmt, 0);
	if (text != NULL && strspn(text, "0123456789abcdef") == LOG_ID_DIGITS)
		memcpy(ret_log_id, text, LOG_ID_DIGITS + 1);
	else if (rc == SQLITE_ROW || rc == SQLITE_DONE)
		rc = SQLITE_CORRUPT;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? SQLITE_OK : rc;
}

int
seal_table_pruned_through(sqlite3 *db, int64_t *ret_seq)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, "SELECT value FROM meta WHERE key = 'pruned_through'", -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	*ret_seq = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
seal_table_prepare(sqlite3 *db, sqlite3_stmt **ret_next)
{
	return sqlite3_prepare_v2(
	    db, "SELECT " SEAL_TABLE_COLUMNS " FROM seals WHERE n > ?1 ORDER BY n LIMIT 1", -1, ret_next, NULL);
}

/* The seal in the row that stmt stands on. */
static bool
seal_table_read(sqlite3_stmt *stmt, struct seal *ret_seal)
{
	int64_t key_id = sqlite3_column_int64(stmt, 5);

	*ret_seal = (struct seal){.n = sqlite3_column_int64(stmt, 0),
	    .first_seq = sqlite3_column_int64(stmt, 1),
	    .last_seq = sqlite3_column_int64(stmt, 2),
	    .ts_us = sqlite3_column_int64(stmt, 3),
	    .key_id = (uint32_t)key_id};
	if (sqlite3_column_bytes(stmt, 4) != CHAIN_DIGEST || sqlite3_column_bytes(stmt, 6) != SEAL_SIGNATURE ||
	    key_id < 0 || key_id > UINT32_MAX)
		return false;
	memcpy(ret_seal->head, sqlite3_column_blob(stmt, 4), CHAIN_DIGEST);
	memcpy(ret_seal->signature, sqlite3_column_blob(stmt, 6), SEAL_SIGNATURE);
	return true;
}

int
seal_table_next(sqlite3_stmt *next, int64_t n, struct seal *ret_seal, bool *ret_whole)
{
	int rc;

	sqlite3_bind_int64(next, 1, n);
	rc = sqlite3_step(next);
	if (rc == SQLITE_ROW)
		*ret_whole = seal_table_read(next, ret_seal);
	sqlite3_reset(next);
	return rc;
}

int
seal_table_newest(sqlite3 *db, struct seal *ret_seal)
{
	static const char sql[] = "SELECT " SEAL_TABLE_COLUMNS " FROM seals ORDER BY n DESC LIMIT 1";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	*ret_seal = (struct seal){.n = 0};
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW && !seal_table_read(stmt, ret_seal))
		rc = SQLITE_CORRUPT;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
seal_table_closes(sqlite3 *db, const struct seal *seal, bool *ret_closes)
{
	static const char sql[] = "SELECT 1 FROM chain c JOIN events e ON e.id = c.id WHERE c.seq = ?1 AND c.tbl = 3 "
				  "AND e.seq = c.seq AND e.kind = 2";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	_Static_assert(CHAIN_EVENTS == 3 && EVENT_DAEMON_STOP == 2, "the numbers in the statement");
	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(stmt, 1, seal->last_seq);
	rc = sqlite3_step(stmt);
	*ret_closes = rc == SQLITE_ROW && seal->n > 0;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
seal_table_keys(sqlite3 *db, struct seal_key *ret_keys, size_t max, size_t *ret_count)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, "SELECT id, public FROM seal_keys ORDER BY ts, id", -1, &stmt, NULL);

	*ret_count = 0;
	if (rc != SQLITE_OK)
		return rc;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && *ret_count < max) {
		struct seal_key *key = &ret_keys[*ret_count];

		if (sqlite3_column_bytes(stmt, 1) != SEAL_PUBLIC)
			continue;
		memcpy(key->public, sqlite3_column_blob(stmt, 1), SEAL_PUBLIC);
		seal_key_identify(key);
		if (key->id == sqlite3_column_int64(stmt, 0))
			++*ret_count;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}
