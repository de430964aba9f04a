/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Opening an audit database to read it: with the daemon running or not, or a copy on another machine. Nothing is
 * written, and nothing in the file is believed. */
#ifndef POSTERN_AUDIT_OPEN_H
#define POSTERN_AUDIT_OPEN_H

#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <sys/stat.h>

struct sqlite3;

struct open_file {
	struct sqlite3 *db; /* owned */
	char path[PATH_MAX];
	struct stat file; /* as opened */
	bool immutable;   /* read without locks: nothing changes it */
};

/* Fill *ret_file. 0, or -1 with ERROR_NOT_FOUND, ERROR_PERMISSION, ERROR_USAGE (made by another version of postern),
 * ERROR_CORRUPT (not an audit database) or ERROR_SYSTEM; then nothing stays open. */
int open_read_only(struct open_file *ret_file, const char *path, struct error *err);
void open_close(struct open_file *file); /* accepts one that is closed, or all zero */

/* Is the file under its path another one now, or was it opened as an unchanging copy? */
bool open_is_stale(const struct open_file *file);

#endif
