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

#include <inttypes.h>
#include <string.h>

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
