/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The audit database's tables, lookup words and views, and the check that a file is ours. postern-audit(5) describes
 * the views; they keep their columns within a schema version, the tables may change with it. */
#ifndef POSTERN_AUDIT_SCHEMA_H
#define POSTERN_AUDIT_SCHEMA_H

#include "base/error.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* PRAGMA application_id: "pstr"; tells file(1) and us whose file it is. */
#define SCHEMA_APPLICATION_ID 0x70737472
/* PRAGMA user_version. */
#define SCHEMA_VERSION 1

enum schema_state {
	SCHEMA_OURS,   /* ours, of this version */
	SCHEMA_EMPTY,  /* nothing in it yet */
	SCHEMA_NEWER,  /* ours, made by a newer postern */
	SCHEMA_FOREIGN /* somebody else's database */
};

/* Look at an open database. 0, or -1 when it cannot be read. */
int schema_inspect(sqlite3 *db, enum schema_state *ret_state, struct error *err);

/* Make tables, indexes and views in an empty database; one transaction. It and the next leave that open when they fail,
 * and so the connection's error code as it was: closing it rolls back. */
int schema_create(sqlite3 *db, struct error *err);

/* Bring the lookup tables up to this program's words (a newer program may know more of them). */
int schema_fill_words(sqlite3 *db, struct error *err);

/* Run constant SQL; what begins the message. On failure an open transaction is rolled back. 0 or -1. */
int schema_exec(sqlite3 *db, const char *sql, const char *what, struct error *err);

/* First column of the first row that constant SQL gives, 0 when there is none. 0 or -1. */
int schema_integer(sqlite3 *db, const char *sql, int64_t *ret_value, struct error *err);

/* Fill *err with "what: SQLite's message". A damaged file is ERROR_CORRUPT, a refused one ERROR_PERMISSION, all else
 * ERROR_SYSTEM. Returns -1. db may be NULL. */
int schema_error(struct error *err, sqlite3 *db, const char *what);

#endif
