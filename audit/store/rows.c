/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/rows.h"

#include "audit/store/schema.h"

#include <sqlite3.h>
#include <string.h>

_Static_assert(ROWS_INTEGER == SQLITE_INTEGER && ROWS_FLOAT == SQLITE_FLOAT && ROWS_TEXT == SQLITE_TEXT &&
	ROWS_BLOB == SQLITE_BLOB && ROWS_NULL == SQLITE_NULL,
    "the types are SQLite's");

/* Keeps the first error, and reports it. */
static void
rows_note(struct rows *rows, int code)
{
	if (rows->code != SQLITE_OK || code == SQLITE_OK)
		return;
	rows->code = code;
	schema_error(rows->err, rows->db, rows->what);
}

void
rows_prepare(struct rows *ret_rows, struct sqlite3 *db, const char *sql, const char *what, struct error *err)
{
	*ret_rows = (struct rows){.db = db, .what = what, .err = err};
	rows_note(ret_rows, sqlite3_prepare_v2(db, sql, -1, &ret_rows->stmt, NULL));
}

void
rows_set_integer(struct rows *rows, int number, int64_t value)
{
	if (rows->code == SQLITE_OK)
		rows_note(rows, sqlite3_bind_int64(rows->stmt, number, value));
}

void
rows_set_text(struct rows *rows, int number, const char *text)
{
	if (rows->code == SQLITE_OK)
		rows_note(rows, sqlite3_bind_text(rows->stmt, number, text, -1, SQLITE_STATIC));
}

void
rows_set_named(struct rows *rows, const char *name, int64_t value)
{
	int number = rows->stmt == NULL ? 0 : sqlite3_bind_parameter_index(rows->stmt, name);

	if (number > 0)
		rows_set_integer(rows, number, value);
}

bool
rows_next(struct rows *rows)
{
	int rc = rows->code == SQLITE_OK ? sqlite3_step(rows->stmt) : SQLITE_DONE;

	if (rc != SQLITE_ROW && rc != SQLITE_DONE)
		rows_note(rows, rc);
	return rc == SQLITE_ROW;
}

void
rows_again(struct rows *rows)
{
	sqlite3_reset(rows->stmt);
}

int
rows_finish(struct rows *rows)
{
	int rc = rows->code == SQLITE_OK ? 0 : -1;

	sqlite3_finalize(rows->stmt);
	*rows = (struct rows){.stmt = NULL};
	return rc;
}

int
rows_count(const struct rows *rows)
{
	return sqlite3_column_count(rows->stmt);
}

enum rows_type
rows_type(const struct rows *rows, int column)
{
	return (enum rows_type)sqlite3_column_type(rows->stmt, column);
}

int64_t
rows_integer(const struct rows *rows, int column)
{
	return sqlite3_column_int64(rows->stmt, column);
}

const char *
rows_text(struct rows *rows, int column, size_t *ret_len)
{
	int type = sqlite3_column_type(rows->stmt, column);
	const char *bytes = type == SQLITE_BLOB ? sqlite3_column_blob(rows->stmt, column)
						: (const void *)sqlite3_column_text(rows->stmt, column);

	/* An empty blob has no address, and NULL has no text; else the conversion ran out of memory. */
	if (bytes == NULL && type != SQLITE_BLOB && type != SQLITE_NULL)
		rows_note(rows, SQLITE_NOMEM);
	if (ret_len != NULL)
		*ret_len = bytes == NULL ? 0 : (size_t)sqlite3_column_bytes(rows->stmt, column);
	return bytes == NULL ? "" : bytes;
}

bool
rows_bytes(struct rows *rows, int column, void *ret_bytes, size_t size)
{
	size_t len;
	const char *bytes = rows_text(rows, column, &len);

	if (len != size)
		return false;
	memcpy(ret_bytes, bytes, size);
	return true;
}
