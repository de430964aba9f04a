/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is the database whole? All of it, or, when that would take long, what was written last. */
#ifndef POSTERN_AUDIT_INTEGRITY_H
#define POSTERN_AUDIT_INTEGRITY_H

#include "base/error.h"

#include <sqlite3.h>

/* Rows at the end of each table that integrity_check_newest reads: what a crash could have caught half written is far
 * less. */
#define INTEGRITY_NEWEST_ROWS 1000

/* Every page of the file: several seconds for each GiB. path is for the message. 0, or -1: ERROR_CORRUPT, or, when it
 * could not be found out (input/output error, no memory, interrupted), ERROR_SYSTEM. */
int integrity_check(sqlite3 *db, const char *path, struct error *err);

/* The newest rows of each table, all columns; milliseconds. Fails likewise. */
int integrity_check_newest(sqlite3 *db, const char *path, struct error *err);

#endif
