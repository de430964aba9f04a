/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A statement and the rows that it returns: how files outside store and query read the log. The first SQLite error
 * sticks: it goes to the caller's *err at once, and later calls do nothing, so that one check after the last row is
 * enough. */
#ifndef POSTERN_AUDIT_ROWS_H
#define POSTERN_AUDIT_ROWS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct sqlite3;
struct sqlite3_stmt;

/* SQLite's numbers. */
enum rows_type { ROWS_INTEGER = 1, ROWS_FLOAT, ROWS_TEXT, ROWS_BLOB, ROWS_NULL };

struct rows {
	struct sqlite3 *db;        /* not owned */
	struct sqlite3_stmt *stmt; /* owned */
	int code;                  /* SQLite's result code of the first call that failed; 0: none did */
	const char *what;          /* begins the message */
	struct error *err;         /* filled then */
};

/* Prepares SQL. On the first error, here or later, *err (may be NULL) becomes "what: SQLite's message", coded as
 * schema_error; what and err stay in use until rows_finish, which is called in any case. */
void rows_prepare(struct rows *ret_rows, struct sqlite3 *db, const char *sql, const char *what, struct error *err);

/* Set a parameter, by number from 1 or by name (":x"; a name that the statement lacks is ignored), before the first
 * row or after rows_again. The text must outlive the statement; NULL sets NULL. */
void rows_set_integer(struct rows *rows, int number, int64_t value);
void rows_set_text(struct rows *rows, int number, const char *text);
void rows_set_named(struct rows *rows, const char *name, int64_t value);

/* Steps to the next row. False: there is none, or rows->code says what failed. */
bool rows_next(struct rows *rows);
/* Makes the statement ready to run again; parameters keep their values. */
void rows_again(struct rows *rows);

/* Frees the statement. 0, or -1: a call failed, and *err says how. */
int rows_finish(struct rows *rows);

/* Columns of the current row, from 0; without a row they are 0, NULL and "". */
int rows_count(const struct rows *rows);
enum rows_type rows_type(const struct rows *rows, int column);
int64_t rows_integer(const struct rows *rows, int column);
/* Bytes of a text or blob, a number as text, "" for NULL; never NULL; valid until the next row. A text is followed by a
 * NUL. ret_len may be NULL. */
const char *rows_text(struct rows *rows, int column, size_t *ret_len);
/* Copies a value of exactly size bytes. False: it has another size, and nothing is copied. */
bool rows_bytes(struct rows *rows, int column, void *ret_bytes, size_t size);

#endif
