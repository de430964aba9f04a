/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/store_part.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>

/* Free pages are kept for what comes next up to this many (16 MiB), and up to this share of the file. */
#define STORE_FREE_PAGES 4096
#define STORE_FREE_SHARE 8

static void
store_copy_text(sqlite3_stmt *stmt, int column, char *ret_text, size_t size)
{
	const unsigned char *text = sqlite3_column_text(stmt, column);

	snprintf(ret_text, size, "%s", text == NULL ? "" : (const char *)text);
}

size_t
store_live_sandboxes(struct store *store, struct record_sandbox *ret_sandboxes, size_t max)
{
	static const char sql[] =
	    "SELECT id, attached_ts, name, kind, uid, detail FROM sandboxes WHERE detached_ts IS NULL "
	    "ORDER BY id DESC LIMIT ?1";
	sqlite3_stmt *stmt;
	size_t count = 0;

	if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return 0;
	sqlite3_bind_int64(stmt, 1, (sqlite3_int64)max);
	while (count < max && sqlite3_step(stmt) == SQLITE_ROW) {
		struct record_sandbox *sandbox = &ret_sandboxes[count++];

		memset(sandbox, 0, sizeof(*sandbox));
		sandbox->id = sqlite3_column_int64(stmt, 0);
		sandbox->ts_us = sqlite3_column_int64(stmt, 1);
		store_copy_text(stmt, 2, sandbox->name, sizeof(sandbox->name));
		store_copy_text(stmt, 3, sandbox->kind, sizeof(sandbox->kind));
		sandbox->uid =
		    sqlite3_column_type(stmt, 4) == SQLITE_NULL ? UINT32_MAX : (uint32_t)sqlite3_column_int64(stmt, 4);
		store_copy_text(stmt, 5, sandbox->detail, sizeof(sandbox->detail));
	}
	sqlite3_finalize(stmt);
	return count;
}

/* A number that the log answers; 0: none, or it cannot be read. */
static int64_t
store_ask(struct store *store, const char *sql)
{
	sqlite3_stmt *stmt;
	int64_t value = 0;

	if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return 0;
	if (sqlite3_step(stmt) == SQLITE_ROW)
		value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return value;
}

unsigned int
store_last_daemon_event(struct store *store)
{
	_Static_assert(EVENT_DAEMON_START == 1 && EVENT_DAEMON_STOP == 2, "the numbers in the statement");
	return (unsigned int)store_ask(store, "SELECT kind FROM events WHERE kind IN (1, 2) ORDER BY id DESC LIMIT 1");
}

int64_t
store_newest_us(const struct store *store)
{
	return store->last_known_us;
}

int64_t
store_last_clock_alarm_us(struct store *store)
{
	_Static_assert(EVENT_AUDIT_ALARM == 15, "the number in the statement");
	return store_ask(store,
	    "SELECT max(ts) FROM events WHERE kind = 15 AND "
	    "CASE WHEN json_valid(detail) THEN json_extract(detail, '$.ahead_s') END IS NOT NULL");
}

void
store_set_signer(struct store *store, const struct seal_signer *signer)
{
	store->seal.signer = signer;
}

int64_t
store_unsealed(const struct store *store)
{
	return store->seal.signer == NULL ? 0 : store_seal_links(&store->seal, &store->insert.now);
}

int
store_add_seal(struct store *store, struct error *err)
{
	int rc = store_seal_write(&store->seal, &store->insert.now, clock_real_us());

	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

int
store_seal(struct store *store, bool at_end, struct error *err)
{
	int64_t age_us = clock_real_us() - store->seal.last.ts_us;

	/* A clock that was set back must not put seals off for as long. */
	if (store_unsealed(store) == 0 || (!at_end && age_us >= 0 && age_us < (int64_t)SEAL_INTERVAL_S * 1000000))
		return 0;
	return store_begin(store, err) < 0 ? -1 : store_add_seal(store, err);
}

void
store_state(const struct store *store, struct store_state *ret_state)
{
	const struct seal *sealed = &store->seal.durable;
	int64_t seq = store->insert.durable.seq;

	*ret_state = (struct store_state){.seq = seq,
	    .unsealed = store->seal.signer == NULL ? 0 : seq - sealed->last_seq,
	    .sealed_us = sealed->ts_us,
	    .bytes = store_file_size(&store->file)};
}

int
store_prune(
    struct store *store, const struct prune_limits *limits, struct prune_segment *ret_segment, struct error *err)
{
	bool due;
	int rc = prune_find(store->db, limits, ret_segment, &due);

	if (rc != SQLITE_OK)
		return store_fail(store, rc, err);
	if (!due)
		return 0;
	if (store_begin(store, err) < 0)
		return -1;
	rc = prune_drop(&store->insert, ret_segment);
	return rc == SQLITE_OK ? 1 : store_fail(store, rc, err);
}

int
store_shrink(struct store *store, unsigned int pages, struct error *err)
{
	int64_t count, unused;
	char sql[64];

	if (store_has_batch(store))
		return 0;
	if (store_integer(store, "PRAGMA page_count", &count, err) < 0 ||
	    store_integer(store, "PRAGMA freelist_count", &unused, err) < 0)
		return store_fail(store, sqlite3_errcode(store->db), err);
	if (unused < STORE_FREE_PAGES || unused < count / STORE_FREE_SHARE)
		return 0;
	snprintf(sql, sizeof(sql), "PRAGMA incremental_vacuum(%u)", pages);
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) != SQLITE_OK)
		return store_fail(store, sqlite3_errcode(store->db), err);
	return 1;
}

int
store_probe(struct store *store, struct error *err)
{
	/* 64 KiB: room for the first batch to come, so that a disk with room for one page does not flap. */
	static const char *const writes[] = {"UPDATE meta SET value = zeroblob(65536) WHERE key = 'probe'",
	    "UPDATE meta SET value = NULL WHERE key = 'probe'"};

	for (size_t i = 0; i < sizeof(writes) / sizeof(writes[0]); i++) {
		int rc;

		if (store_begin(store, err) < 0)
			return -1;
		rc = sqlite3_exec(store->db, writes[i], NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			return store_fail(store, rc, err);
		if (store_commit(store, err) < 0)
			return -1;
	}
	return 0;
}
