/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files behind a store: where they are, that one process writes them, setting them aside, and noticing that they
 * are gone. Between audit/store.c and the file system; SQLite's own descriptors are not touched. */
#ifndef POSTERN_AUDIT_STORE_FILE_H
#define POSTERN_AUDIT_STORE_FILE_H

#include "audit/store.h"

#include <sys/types.h>

/* The database, its -wal and its -shm. */
#define STORE_FILE_PARTS 3

struct store_file {
	char path[PATH_MAX]; /* no symbolic link is left in its directory's part */
	int lock_fd;         /* -1 until locked */
	bool had_one;        /* the lock file says so: there had been a database, complete */
	struct {
		dev_t dev;
		ino_t ino;
	} parts[STORE_FILE_PARTS]; /* as opened */
};

/* Resolve the path and take the lock. 0, or -1 (ERROR_EXISTS: another process holds it). */
int store_file_lock(struct store_file *file, const char *path, struct error *err);
void store_file_unlock(struct store_file *file);
/* There is a complete database from now on: if it is not there next time, it was lost. */
void store_file_note(struct store_file *file);

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
