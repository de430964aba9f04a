/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. One process writes: a lock file beside the database says so (the database itself must not be
 * locked, its readers come and go; and no descriptor but SQLite's own may be opened on it, because closing one would
 * drop SQLite's locks). The lock file stays for ever and holds a word once there was a database, so that one that is
 * gone can be told from one that never was. The word also says how the last use of the database ended (enum
 * store_mark), and so how much of it is checked before it is used again: nothing after an orderly end; the newest rows
 * after a crash, all the rest meanwhile in the checkpoint thread; everything when damage was seen, or when that takes a
 * moment only.
 *
 * WAL, synchronous=FULL: a commit is one write to the log and one fdatasync. What store_commit has returned 0 for is
 * there after a power cut (CASES F-25). A failure anywhere rolls the whole batch back; the senders still have its
 * records and send them again. When a sync fails, what it was to write may be lost although it can still be read: then
 * the log is copied into the database, which is synced, before anything is built on it. A file that was unlinked or
 * replaced while open would take writes that nobody ever reads: before each commit the names are checked to lead to the
 * files that are open (CASES F-24). */
#include "audit/store/store_part.h"

#include "audit/store/schema.h"
#include "audit/store/seal_table.h"
#include "base/clock.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Free pages are kept for what comes next up to this many (16 MiB), and up to this share of the file. */
#define STORE_FREE_PAGES 4096
#define STORE_FREE_SHARE 8

int
store_exec(struct store *store, const char *sql, struct error *err)
{
	if (sqlite3_exec(store->db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return schema_error(err, store->db, store->file.path);
}

int
store_integer(struct store *store, const char *sql, int64_t *ret_value, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc;

	if (sqlite3_prepare_v2(store->db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	rc = sqlite3_step(stmt);
	*ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	if (rc != SQLITE_ROW)
		schema_error(err, store->db, store->file.path);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

bool
store_has_batch(const struct store *store)
{
	return !sqlite3_get_autocommit(store->db);
}

bool
store_changed_by_others(const struct store *store)
{
	return store->changed_by_others;
}

bool
store_must_reopen(const struct store *store)
{
	return store->must_reopen;
}

/* Only opening anew can help, and who opens it must know why. Marks are in order of severity. */
static void
store_distrust(struct store *store, enum store_mark mark)
{
	store->must_reopen = true;
	if (mark > store->file.mark)
		store_file_leave(&store->file, mark);
}

int
store_check(struct store *store, struct error *err)
{
	if (store_file_check(&store->file, err) == 0)
		return 0;
	store_distrust(store, STORE_MARK_OPEN);
	return -1;
}

/* Damage is only what another reader would meet: not that something is locked, full or out of memory. */
static bool
store_is_damage(int rc)
{
	return rc == SQLITE_CORRUPT || rc == SQLITE_NOTADB || rc == SQLITE_ERROR || rc == SQLITE_IOERR_SHORT_READ;
}

/* Does the file, as another connection sees it, end where we left it? Who cut the log off, wrote into its chain or put
 * an older file's content over it must not stay unnoticed until somebody verifies. What cannot be read now is no
 * answer. */
static int
store_look_at_end(struct store *store, sqlite3 *db, struct error *err)
{
	const struct seal *ours = &store->seal.durable;
	struct seal newest;
	bool whole;
	int64_t seq = 0;
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, "SELECT max(seq) FROM chain", -1, &stmt, NULL);

	if (rc == SQLITE_OK) {
		rc = sqlite3_step(stmt);
		seq = sqlite3_column_int64(stmt, 0);
		sqlite3_finalize(stmt);
	}
	if (rc != SQLITE_ROW || seal_table_newest(db, &newest, &whole) != SQLITE_OK || !whole)
		return 0;
	if (seq == store->insert.durable.seq && newest.n == ours->n &&
	    memcmp(newest.head, ours->head, CHAIN_DIGEST) == 0)
		return 0;
	store->must_reopen = store->changed_by_others = true;
	return error_set(err, ERROR_CORRUPT,
	    "%s was changed by another program: it ends with number %lld and seal %lld, not %lld and %lld",
	    store->file.path, (long long)seq, (long long)newest.n, (long long)store->insert.durable.seq,
	    (long long)ours->n);
}

int
store_look(struct store *store, struct error *err)
{
	static const char sql[] =
	    "SELECT max(id) FROM connections; SELECT max(id) FROM dns; SELECT max(id) FROM events";
	struct checkpoint_state state;
	sqlite3 *db;
	int rc;

	store_checkpoint_state(store, &state);
	if (state.damage[0] != '\0') {
		store_distrust(store, STORE_MARK_DAMAGED);
		return error_set(err, ERROR_CORRUPT, "%s", state.damage);
	}
	rc = sqlite3_open_v2(
	    store->file.path, &db, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL);
	if (rc == SQLITE_OK)
		rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	if (rc != SQLITE_OK && (store_is_damage(rc) || store_is_damage(sqlite3_extended_errcode(db)))) {
		error_set(err, ERROR_CORRUPT, "%s cannot be read back: %s", store->file.path, sqlite3_errmsg(db));
		store_distrust(store, STORE_MARK_DAMAGED);
		rc = -1;
	} else {
		rc = rc == SQLITE_OK ? store_look_at_end(store, db, err) : 0;
	}
	sqlite3_close(db);
	return rc;
}

/* Runs a statement without a result and resets it. An SQLite result code. */
static int
store_step(sqlite3_stmt *stmt)
{
	sqlite3_step(stmt);
	return sqlite3_reset(stmt);
}

/* Half a batch must not be there to be committed with the next. Closing rolls back, too, and that cannot fail. */
static void
store_roll_back(struct store *store)
{
	if (store_has_batch(store))
		store_step(store->rollback);
	if (store_has_batch(store))
		store_distrust(store, STORE_MARK_OPEN);
	insert_rolled_back(&store->insert);
	store_seal_rolled_back(&store->seal);
}

void
store_abandon(struct store *store)
{
	store_roll_back(store);
	store_distrust(store, STORE_MARK_OPEN);
}

/* The batch is lost. Full and busy pass by themselves; after anything else the connection is not trusted again. */
int
store_fail(struct store *store, int rc, struct error *err)
{
	int primary = rc & 0xff;

	schema_error(err, store->db, store->file.path);
	if (primary != SQLITE_FULL && primary != SQLITE_BUSY && primary != SQLITE_NOMEM)
		store_distrust(store,
		    primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ? STORE_MARK_DAMAGED : STORE_MARK_UNSYNCED);
	store_roll_back(store);
	return -1;
}

/* Copy the rest and start the log anew with the next commit. Waits so long for a reader or the other thread. */
static void
store_cut_within(struct store *store, int ms)
{
	enum checkpoint_cut cut = CHECKPOINT_CUT_FAILED;
	int rc;

	if (store_has_batch(store))
		return;
	sqlite3_busy_timeout(store->db, ms);
	rc = sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_RESTART, NULL, NULL);
	sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
	if (rc == SQLITE_OK) {
		store->log_frames = 0;
		cut = CHECKPOINT_CUT_DONE;
	} else if (rc == SQLITE_BUSY) {
		cut = CHECKPOINT_CUT_BLOCKED;
	}
	if (store->checkpoint != NULL)
		checkpoint_cut_done(store->checkpoint, cut);
}

void
store_cut(struct store *store)
{
	store_cut_within(store, 0);
}

int
store_begin(struct store *store, struct error *err)
{
	int rc = SQLITE_OK;

	if (store_has_batch(store))
		return 0;
	/* The thread that makes checkpoints may be what is in the way. */
	if (store->log_frames > store->limits.max)
		store_cut_within(store, STORE_CUT_MS);
	if (store->log_frames > store->limits.max)
		return error_set(err, ERROR_SYSTEM,
		    "%s-wal has grown to %" PRIu64 " MiB and cannot be cut while a reader holds an old view of it",
		    store->file.path, store->log_frames * CHECKPOINT_FRAME_BYTES >> 20);
	rc = store_step(store->begin);
	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

int
store_add(struct store *store, const struct record *record, struct error *err)
{
	int rc;

	if (store_begin(store, err) < 0)
		return -1;
	rc = insert_record(&store->insert, record);
	switch (rc & 0xff) {
	case SQLITE_OK:
		return 0;
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
	case SQLITE_RANGE:
	case SQLITE_MISUSE:
		/* The statement undid itself. To fail the batch would fail it again each time it is sent again. */
		return error_set(err, ERROR_USAGE, "record refused: %s", sqlite3_errstr(rc));
	default:
		return store_fail(store, rc, err);
	}
}

/* Was the id given out before the epoch that context points to? */
static bool
store_id_is_before(uint64_t id, void *context)
{
	return id >> 31 < *(const uint64_t *)context;
}

int
store_close_earlier(struct store *store, uint64_t epoch, struct error *err)
{
	int rc;

	if (store_begin(store, err) < 0)
		return -1;
	rc = insert_close_crashed(&store->insert, store_id_is_before, &epoch, store->last_known_us, END_DAEMON_CRASH);
	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

/* Links that no seal vouches for; 0 without a key to sign with. */
static int64_t
store_unsealed(const struct store *store)
{
	return store->seal.signer == NULL ? 0 : store_seal_links(&store->seal, &store->insert.now);
}

/* Adds a seal over all links to the batch. 0, or -1 as store_fail. */
static int
store_add_seal(struct store *store, struct error *err)
{
	int rc = store_seal_write(&store->seal, &store->insert.now, clock_real_us());

	return rc == SQLITE_OK ? 0 : store_fail(store, rc, err);
}

/* The first changes after an orderly end, too: without a seal they would look like somebody else's. */
static bool
store_seal_is_due(const struct store *store)
{
	int64_t links = store_unsealed(store);

	return links >= SEAL_LINKS || (links > 0 && store->seal.closing);
}

int
store_commit(struct store *store, struct error *err)
{
	int rc;

	if (!store_has_batch(store))
		return 0;
	if (store_check(store, err) < 0) {
		store_roll_back(store);
		return -1;
	}
	if (store_seal_is_due(store) && store_add_seal(store, err) < 0)
		return -1;
	rc = store_step(store->commit);
	if (rc != SQLITE_OK)
		return store_fail(store, rc, err);
	insert_committed(&store->insert);
	store_seal_committed(&store->seal);
	store_file_note(&store->file, &store->insert.durable);
	if (store->checkpoint != NULL && checkpoint_cut_due(store->checkpoint))
		store_cut(store);
	return 0;
}

/* Copies a text column into a buffer, cut to its size. */
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

/* Was all of it checked that had to be? */
static bool
store_is_checked(const struct store *store)
{
	struct checkpoint_state state;

	store_checkpoint_state(store, &state);
	return !store->check_due || state.checked;
}

void
store_close_db(struct store *store)
{
	checkpoint_stop(store->checkpoint);
	store->checkpoint = NULL;
	insert_finalize(&store->insert);
	store_seal_close(&store->seal);
	sqlite3_finalize(store->begin);
	sqlite3_finalize(store->commit);
	sqlite3_finalize(store->rollback);
	store->begin = store->commit = store->rollback = NULL;
	sqlite3_close(store->db);
	store->db = NULL;
}

void
store_close(struct store *store)
{
	if (store == NULL)
		return;
	if (store->db != NULL) {
		bool in_order = !store->must_reopen && store_is_checked(store);

		store_close_db(store);
		if (in_order)
			store_file_leave(&store->file, STORE_MARK_CLOSED);
	}
	store_file_unlock(&store->file);
	free(store);
}

void
store_limit_log(struct store *store, uint64_t bytes)
{
	store->limits = checkpoint_limits(bytes / CHECKPOINT_FRAME_BYTES);
}

int
store_start_checkpoints(struct store *store, struct error *err)
{
	if (store->checkpoint == NULL)
		store->checkpoint = checkpoint_start(store->file.path, &store->limits, store->check_due, err);
	return store->checkpoint == NULL ? -1 : 0;
}

void
store_checkpoint_state(const struct store *store, struct checkpoint_state *ret_state)
{
	memset(ret_state, 0, sizeof(*ret_state));
	if (store->checkpoint != NULL)
		checkpoint_state(store->checkpoint, ret_state);
}
