/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/store_part.h"

#include "audit/store/integrity.h"
#include "audit/store/schema.h"
#include "audit/store/schema_check.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* SQLite's hook after a commit: how long the write-ahead log is now. */
static int
store_hook(void *context, sqlite3 *db, const char *name, int frames)
{
	struct store *store = context;

	(void)db;
	(void)name;
	store->log_frames = frames < 0 ? 0 : (uint64_t)frames;
	if (store->checkpoint != NULL && frames >= 0)
		checkpoint_note(store->checkpoint, (uint64_t)frames);
	return SQLITE_OK;
}

/* Sets what the writer's connection needs. */
static int
store_configure(struct store *store, struct error *err)
{
	int one = 1;

	sqlite3_busy_timeout(store->db, STORE_BUSY_MS);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	/* None of ours, and one of somebody else's could change a row between its insert and its link. */
	sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	if (sqlite3_file_control(store->db, "main", SQLITE_FCNTL_PERSIST_WAL, &one) != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	return store_exec(store,
	    "PRAGMA synchronous = FULL; PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY; "
	    "PRAGMA cache_size = -16384; PRAGMA journal_size_limit = 67108864; PRAGMA wal_autocheckpoint = 0",
	    err);
}

/* As much of the file as must not be taken on trust. */
static int
store_examine(struct store *store, struct error *err)
{
	switch (store->file.mark) {
	case STORE_MARK_CLOSED:
		return 0;
	case STORE_MARK_NONE:
	case STORE_MARK_OPEN:
	case STORE_MARK_UNSYNCED:
		if (store_file_size(&store->file) <= STORE_CHECK_NOW_MAX)
			break;
		store->check_due = true;
		return integrity_check_newest(store->db, store->file.path, err);
	case STORE_MARK_DAMAGED:
	case STORE_MARK_MAX:
		break;
	}
	return integrity_check(store->db, store->file.path, err);
}

/* A sync failed. What is in the log can be read, but a later sync would not write it any more: copied, it is written
 * again. Not while a reader needs the log. */
static int
store_rewrite_log(struct store *store, struct error *err)
{
	if (store->file.mark != STORE_MARK_UNSYNCED)
		return 0;
	if (sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	return 0;
}

/* Whatever is not as we make it is somebody else's doing. A table of another shape may lose rows by itself: the file is
 * not written any more. All else is made anew. */
static int
store_mend(struct store *store, sqlite3 *reference, struct store_opening *opening, struct error *err)
{
	char what[SCHEMA_CHECK_TEXT_MAX];
	bool table;
	int rc = schema_check(store->db, reference, what, &table);

	if (rc == SQLITE_OK && what[0] == '\0')
		return 0;
	if (rc == SQLITE_OK && table)
		return error_set(err, ERROR_CORRUPT, "%s: %s", store->file.path, what);
	if (rc == SQLITE_OK)
		rc = schema_check_mend(store->db, reference);
	if (rc != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	if (opening->changed[0] == '\0')
		snprintf(opening->changed, sizeof(opening->changed), "%s", what);
	return 0;
}

/* Compares the schema with a new one in memory, and mends what can be mended. */
static int
store_check_schema(struct store *store, struct store_opening *opening, struct error *err)
{
	sqlite3 *reference = schema_check_reference(err);
	int rc;

	if (reference == NULL)
		return -1;
	rc = store_mend(store, reference, opening, err);
	sqlite3_close(reference);
	return rc;
}

/* Tables as they should be, in WAL mode. ERROR_CORRUPT: not ours to mend. */
static int
store_load(struct store *store, struct store_opening *opening, struct error *err)
{
	static const struct insert_state nothing = {.seq = 0};
	enum schema_state state;

	if (store_configure(store, err) < 0 || schema_inspect(store->db, &state, err) < 0)
		return -1;
	if (state == SCHEMA_NEWER)
		return error_set(err, ERROR_USAGE,
		    "%s was made by a newer postern (schema after %d); upgrade this one, or move "
		    "the file away",
		    store->file.path, SCHEMA_VERSION);
	if (state == SCHEMA_FOREIGN)
		return error_set(err, ERROR_CORRUPT, "%s is another program's database", store->file.path);
	if (state == SCHEMA_OURS && store_examine(store, err) < 0)
		return -1;
	if (state == SCHEMA_EMPTY && store->file.mark != STORE_MARK_NONE && !opening->replaced)
		return error_set(err, ERROR_CORRUPT, "%s has lost its tables", store->file.path);
	/* Only a file without tables can be told to give pages back later. */
	if (state == SCHEMA_EMPTY && store_exec(store, "PRAGMA auto_vacuum = INCREMENTAL", err) < 0)
		return -1;
	if (store_exec(store, "PRAGMA journal_mode = WAL", err) < 0 || store_rewrite_log(store, err) < 0)
		return -1;
	if (state == SCHEMA_EMPTY) {
		if (schema_create(store->db, err) < 0)
			return -1;
		opening->created = true;
		store_file_note(&store->file, &nothing);
	}
	if (store_check_schema(store, opening, err) < 0 || schema_fill_words(store->db, err) < 0)
		return -1;
	store_file_leave(&store->file, STORE_MARK_OPEN);
	return 0;
}

/* Statements, numbering, time of the last sign of life, and which files these are. */
static int
store_prepare(struct store *store, struct store_opening *opening, struct error *err)
{
	struct insert_state state;
	int rc;

	if (store_integer(store,
		"SELECT max(coalesce((SELECT max(ts) FROM connections), 0), coalesce((SELECT max(ts) FROM dns), 0), "
		"coalesce((SELECT max(ts) FROM events), 0))",
		&store->last_known_us, err) < 0)
		return -1;
	rc = store_seal_open(&store->seal, store->db, &store->file.noted, &state);
	/* Said of what was read well: SQLite has nothing to report. */
	if (rc == SQLITE_CORRUPT && sqlite3_errcode(store->db) != SQLITE_CORRUPT)
		return error_set(err, ERROR_CORRUPT, "%s: its chain or seals are damaged", store->file.path);
	if (rc != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	if (opening->changed[0] == '\0')
		store_seal_suspect(
		    &store->seal, &store->file.noted, &state, opening->changed, sizeof(opening->changed));
	if (insert_prepare(&store->insert, store->db, &state) != SQLITE_OK ||
	    sqlite3_prepare_v2(store->db, "BEGIN IMMEDIATE", -1, &store->begin, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(store->db, "COMMIT", -1, &store->commit, NULL) != SQLITE_OK ||
	    sqlite3_prepare_v2(store->db, "ROLLBACK", -1, &store->rollback, NULL) != SQLITE_OK)
		return schema_error(err, store->db, store->file.path);
	sqlite3_wal_hook(store->db, store_hook, store);
	return store_file_identify(&store->file, err);
}

/* Opening failed: does the file's content explain it? Our statements are constant, so an error in one is the file's. */
static bool
store_blames_file(struct store *store)
{
	switch (sqlite3_errcode(store->db)) {
	case SQLITE_ERROR: /* a table or column is not there, or the header names an unknown format */
	case SQLITE_SCHEMA:
	case SQLITE_CONSTRAINT:
	case SQLITE_MISMATCH:
	case SQLITE_TOOBIG:
		return true;
	case SQLITE_READONLY: /* the header says so, unless permissions do */
		return store_file_writable(&store->file);
	default:
		return false;
	}
}

/* Makes or opens the file and prepares it for writing; err->code says whether a failure is the file's. */
static int
store_open_file(struct store *store, struct store_opening *opening, struct error *err)
{
	if (store_file_make(&store->file, opening, err) < 0)
		return -1;
	if (sqlite3_open_v2(store->file.path, &store->db,
		SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW, NULL) != SQLITE_OK)
		schema_error(err, store->db, store->file.path);
	else if (store_load(store, opening, err) == 0 && store_prepare(store, opening, err) == 0)
		return 0;
	else if (err->code == ERROR_SYSTEM && store_blames_file(store))
		err->code = ERROR_CORRUPT;
	store_close_db(store);
	return -1;
}

struct store *
store_open(const char *path, struct store_opening *ret_opening, struct error *err)
{
	struct store *store = calloc(1, sizeof(*store));
	struct store_opening opening = {0};
	struct error why;
	int rc;

	*ret_opening = opening;
	if (store == NULL) {
		error_sys(err, ENOMEM, "%s", path);
		return NULL;
	}
	store->limits = checkpoint_limits(CHECKPOINT_FRAMES_MAX);
	if (store_file_lock(&store->file, path, err) < 0) {
		store_close(store);
		return NULL;
	}
	rc = store_open_file(store, &opening, &why);
	if (rc < 0 && why.code == ERROR_CORRUPT && store_file_set_aside(&store->file, why.text, &opening, &why) == 0)
		rc = store_open_file(store, &opening, &why);
	*ret_opening = opening;
	if (rc < 0) {
		error_set(err, why.code, "%s", why.text);
		store_close(store);
		return NULL;
	}
	return store;
}
