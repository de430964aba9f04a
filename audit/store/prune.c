/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/prune.h"

#include "audit/store/schema.h"
#include "audit/seal/seal.h"

#include <stdio.h>
#include <string.h>

/* First column of the only row; 0 when there is none. */
static int
prune_integer(sqlite3 *db, const char *sql, int64_t *ret_value)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	*ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
prune_told(sqlite3 *db, int64_t *ret_through, bool *ret_told)
{
	/* Whenever something goes the event is written: it is among the newest. Without an index, which might be
	 * damaged. What no seal is about yet anybody can write. */
	static const char sql[] =
	    "SELECT m.value, m.value = 0 OR (SELECT 1 FROM events e NOT INDEXED WHERE e.kind = 16 AND m.value = "
	    "CASE WHEN json_valid(e.detail) THEN json_extract(e.detail, '$.through') END AND e.seq <= "
	    "(SELECT max(last_seq) FROM seals) ORDER BY e.id DESC LIMIT 1) FROM meta m WHERE m.key = 'pruned_through'";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	_Static_assert(EVENT_PRUNED == 16, "the number in the statement");
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	*ret_through = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	*ret_told = rc != SQLITE_ROW || sqlite3_column_int(stmt, 1) != 0;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Bytes of pages that hold something: those that were freed are used again before the file grows. */
static int
prune_bytes_used(sqlite3 *db, uint64_t *ret_bytes)
{
	int64_t size, count, unused;
	int rc = prune_integer(db, "PRAGMA page_size", &size);

	if (rc == SQLITE_OK)
		rc = prune_integer(db, "PRAGMA page_count", &count);
	if (rc == SQLITE_OK)
		rc = prune_integer(db, "PRAGMA freelist_count", &unused);
	if (rc == SQLITE_OK)
		*ret_bytes = (uint64_t)(count - unused) * (uint64_t)size;
	return rc;
}

/* Small segments go together, as many as have not more links than one that was full: each time something goes, a seal
 * is made, and a log that had many must not have as many for ever. */
static int
prune_extend(sqlite3 *db, const struct prune_limits *limits, struct prune_segment *segment)
{
	static const char sql[] =
	    "SELECT s.last_seq, s.ts FROM seals s, (SELECT value AS gone FROM meta WHERE key = 'pruned_through') "
	    "WHERE s.last_seq > ?1 AND s.last_seq <= gone + ?2 AND s.n < (SELECT max(n) FROM seals) "
	    "AND NOT EXISTS (SELECT 1 FROM seals o WHERE o.n <= s.n AND o.last_seq > gone AND o.ts >= ?3) "
	    "ORDER BY s.n DESC LIMIT 1";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(stmt, 1, segment->through);
	sqlite3_bind_int64(stmt, 2, SEAL_LINKS);
	sqlite3_bind_int64(stmt, 3, segment->for_size ? INT64_MAX : limits->before_us);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		segment->through = sqlite3_column_int64(stmt, 0);
		segment->sealed_us = sqlite3_column_int64(stmt, 1);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Sealed in the future, when the clock was ahead: it is at least as old as whatever was sealed after it. */
static int
prune_is_followed_by_old(sqlite3 *db, const struct prune_limits *limits, int64_t through, bool *ret_old)
{
	static const char sql[] =
	    "SELECT 1 FROM seals WHERE last_seq > ?1 AND ts < ?2 AND n < (SELECT max(n) FROM seals)";
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(stmt, 1, through);
	sqlite3_bind_int64(stmt, 2, limits->before_us);
	rc = sqlite3_step(stmt);
	*ret_old = rc == SQLITE_ROW;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Is what ends with through old enough to go? */
static int
prune_is_old(sqlite3 *db, const struct prune_limits *limits, const struct prune_segment *segment, bool *ret_old)
{
	*ret_old = limits->before_us != 0 && segment->sealed_us < limits->before_us;
	if (*ret_old || limits->before_us == 0 || segment->sealed_us <= limits->now_us)
		return SQLITE_OK;
	return prune_is_followed_by_old(db, limits, segment->through, ret_old);
}

int
prune_find(sqlite3 *db, const struct prune_limits *limits, struct prune_segment *ret_segment, bool *ret_due)
{
	/* The first seal above what is gone, if there is another after it, and how much comes after it. */
	static const char sql[] =
	    "SELECT s.last_seq, s.ts, (SELECT max(last_seq) FROM seals) - s.last_seq FROM seals s WHERE s.last_seq > "
	    "(SELECT value FROM meta WHERE key = 'pruned_through') AND s.n < (SELECT max(n) FROM seals) "
	    "ORDER BY s.n LIMIT 1";
	uint64_t bytes = 0;
	sqlite3_stmt *stmt;
	int rc = SQLITE_OK;

	*ret_due = false;
	if (limits->bytes_max != 0)
		rc = prune_bytes_used(db, &bytes);
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		struct prune_segment segment = {
		    .through = sqlite3_column_int64(stmt, 0), .sealed_us = sqlite3_column_int64(stmt, 1)};
		bool old = false;

		rc = prune_is_old(db, limits, &segment, &old);
		segment.for_size = !old && limits->bytes_max != 0 && bytes > limits->bytes_max &&
		    sqlite3_column_int64(stmt, 2) >= SEAL_LINKS;
		*ret_due = old || segment.for_size;
		if (*ret_due)
			*ret_segment = segment;
	}
	sqlite3_finalize(stmt);
	if (*ret_due && rc == SQLITE_OK)
		return prune_extend(db, limits, ret_segment);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Run sql for its effect; :through is bound. Adds the rows it changed. */
static int
prune_run(struct insert *insert, const char *sql, struct prune_segment *segment)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(insert->db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(stmt, 1, segment->through);
	sqlite3_step(stmt);
	rc = sqlite3_finalize(stmt);
	if (rc == SQLITE_OK)
		segment->rows += (uint64_t)sqlite3_changes64(insert->db);
	return rc;
}

/* Give the row its next seq, and a link. */
static int
prune_carry_row(struct insert *insert, enum columns_table table, sqlite3_stmt *update, int64_t id)
{
	int rc;

	sqlite3_bind_int64(update, 1, insert->now.seq + 1);
	sqlite3_bind_int64(update, 2, id);
	sqlite3_step(update);
	rc = sqlite3_reset(update);
	return rc == SQLITE_OK ? insert_link(insert, table, id) : rc;
}

/* All rows of the table up to the segment's end that the condition holds for, one after the other: each leaves the
 * range as it gets its new seq. */
static int
prune_carry(struct insert *insert, enum columns_table table, const char *condition, const struct prune_segment *segment)
{
	sqlite3_stmt *next = NULL, *update = NULL;
	char sql[1536];
	int rc;

	snprintf(sql, sizeof(sql), "SELECT t.id FROM %s t WHERE t.seq <= ?1 AND (%s) LIMIT 1",
	    columns_table_name(table), condition);
	rc = sqlite3_prepare_v2(insert->db, sql, -1, &next, NULL);
	snprintf(sql, sizeof(sql), "UPDATE %s SET seq = ?1 WHERE id = ?2", columns_table_name(table));
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(insert->db, sql, -1, &update, NULL);
	if (rc == SQLITE_OK)
		sqlite3_bind_int64(next, 1, segment->through);
	while (rc == SQLITE_OK && sqlite3_step(next) == SQLITE_ROW) {
		int64_t id = sqlite3_column_int64(next, 0);

		rc = sqlite3_reset(next);
		if (rc == SQLITE_OK)
			rc = prune_carry_row(insert, table, update, id);
	}
	if (rc == SQLITE_OK)
		rc = sqlite3_reset(next);
	sqlite3_finalize(next);
	sqlite3_finalize(update);
	return rc;
}

/* The event that comes with this segment would hide that an earlier one is missing. */
static int
prune_look_back(struct insert *insert, struct prune_segment *segment)
{
	int64_t through;
	bool told;
	int rc = prune_told(insert->db, &through, &told);

	if (rc == SQLITE_OK)
		segment->untold = told ? 0 : through;
	return rc;
}

int
prune_drop(struct insert *insert, struct prune_segment *segment)
{
	uint64_t rows;
	int rc = prune_look_back(insert, segment);

	if (rc == SQLITE_OK)
		rc = prune_carry(insert, COLUMNS_CONNECTIONS, "t.end = 0", segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM connections WHERE seq <= ?1", segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM dns WHERE seq <= ?1", segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM events WHERE seq <= ?1", segment);
	if (rc == SQLITE_OK)
		rc = prune_carry(insert, COLUMNS_SANDBOXES,
		    "t.detached_ts IS NULL OR EXISTS (SELECT 1 FROM connections c WHERE c.sandbox_id = t.id) "
		    "OR EXISTS (SELECT 1 FROM dns d WHERE d.sandbox_id = t.id) "
		    "OR EXISTS (SELECT 1 FROM events e WHERE e.sandbox_id = t.id)",
		    segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM sandboxes WHERE seq <= ?1", segment);
	if (rc == SQLITE_OK)
		rc = prune_carry(
		    insert, COLUMNS_ACCOUNTS, "EXISTS (SELECT 1 FROM sandboxes s WHERE s.id = t.sandbox_id)", segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM accounts WHERE seq <= ?1", segment);
	rows = segment->rows;
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "DELETE FROM chain WHERE seq <= ?1", segment);
	if (rc == SQLITE_OK)
		rc = prune_run(insert, "UPDATE meta SET value = ?1 WHERE key = 'pruned_through'", segment);
	segment->rows = rows;
	return rc;
}
