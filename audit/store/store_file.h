/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files behind a store: where they are, that one process writes them, setting them aside, and noticing that they
 * are gone. Between audit/store/store.c and the file system; SQLite's own descriptors are not touched. */
#ifndef POSTERN_AUDIT_STORE_FILE_H
#define POSTERN_AUDIT_STORE_FILE_H

#include "audit/store/insert.h"
#include "audit/store/store.h"

#include <sys/types.h>

/* The database, its -wal and its -shm. */
#define STORE_FILE_PARTS 3

/* What the last writer left in the lock file, a word: it tells how far the database can be trusted. While it is in
 * use, a later one is the graver one. */
enum store_mark {
	STORE_MARK_NONE,     /* there never was a complete database */
	STORE_MARK_OPEN,     /* it was not closed in order, or checking it had not come to its end */
	STORE_MARK_CLOSED,   /* closed in order, checked, and nobody has written to it since */
	STORE_MARK_UNSYNCED, /* writing it failed: what can be read of it may not be on the disk */
	STORE_MARK_DAMAGED,  /* damage was seen */
	STORE_MARK_MAX
};

struct store_file {
	char path[PATH_MAX]; /* no symbolic link is left in its directory's part */
	int lock_fd;         /* -1 until locked */
	enum store_mark mark;
	struct insert_state noted; /* in the lock file when it was locked, or since; seq 0: nothing */
	struct {
		dev_t dev;
		ino_t ino;
	} parts[STORE_FILE_PARTS]; /* as opened */
};

/* Resolve the path and take the lock. 0, or -1 (ERROR_EXISTS: another process holds it). */
int store_file_lock(struct store_file *file, const char *path, struct error *err);
void store_file_unlock(struct store_file *file);
/* Leave a mark, any but NONE. From the first on there is a complete database: if it is not there next time, it was
 * lost. CLOSED goes with the files' sizes and times, to notice if anybody writes to them meanwhile; after the last use
 * of them. On a full disk a mark may not get there: then it is as after a crash. */
void store_file_leave(struct store_file *file, enum store_mark mark);

/* Note in the lock file how far the log goes, after a commit, unsynced: what a power cut leaves of it may be older than
 * the log, never newer. A log that is behind it was cut off. */
void store_file_note(struct store_file *file, const struct insert_state *state);

/* Bytes of the database and its -wal. */
int64_t store_file_size(const struct store_file *file);

/* Do permissions let us write all of its parts that are there? */
bool store_file_writable(const struct store_file *file);

/* Make an empty database file with the right mode whatever the umask, unless there is one. A log left behind by a
 * database that is gone is set aside: it holds records. */
int store_file_make(struct store_file *file, struct store_opening *opening, struct error *err);

/* Rename the database and its companions to names that sqlite3 opens together, too. */
int store_file_set_aside(struct store_file *file, const char *why, struct store_opening *opening, struct error *err);

/* Remember which files these are, and see later whether the names still lead to them. */
int store_file_identify(struct store_file *file, struct error *err);
int store_file_check(const struct store_file *file, struct error *err);

#endif
