/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/integrity.h"

#include "audit/store/schema.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Has reading the database or its log failed through this connection? */
static bool
integrity_read_failed(sqlite3 *db)
{
	static const int pointers[] = {SQLITE_FCNTL_FILE_POINTER, SQLITE_FCNTL_JOURNAL_POINTER};

	for (size_t i = 0; i < sizeof(pointers) / sizeof(pointers[0]); i++) {
		sqlite3_file *file = NULL;
		int last_errno = 0;

		if (sqlite3_file_control(db, "main", pointers[i], &file) == SQLITE_OK && file != NULL &&
		    file->pMethods != NULL &&
		    file->pMethods->xFileControl(file, SQLITE_FCNTL_LAST_ERRNO, &last_errno) == SQLITE_OK &&
		    last_errno != 0)
			return true;
	}
	return false;
}

/* quick_check makes a finding of a page that cannot be read, too. Some findings have the code; else the file knows
 * whether a bad disk or a bad page is behind it. */
static bool
integrity_is_damage(sqlite3 *db, const char *finding)
{
	const char *code = strstr(finding, "error code=");
	int primary = code == NULL ? SQLITE_CORRUPT : atoi(code + strlen("error code=")) & 0xff;

	return (primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB) && !integrity_read_failed(db);
}

/* One line, for messages and events. */
static void
integrity_first_line(const char *finding, char *ret_line, size_t size)
{
	const char *title = "*** in database main ***\n";

	if (strncmp(finding, title, strlen(title)) == 0)
		finding += strlen(title);
	snprintf(ret_line, size, "%.*s", (int)strcspn(finding, "\n"), finding);
}

int
integrity_check(sqlite3 *db, const char *path, struct error *err)
{
	const char *finding = NULL;
	char line[160];
	sqlite3_stmt *stmt;
	int rc;

	if (sqlite3_prepare_v2(db, "PRAGMA quick_check(1)", -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, db, path);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		finding = (const char *)sqlite3_column_text(stmt, 0);
	if (rc != SQLITE_ROW) {
		rc = schema_error(err, db, path);
	} else if (finding == NULL) {
		rc = error_sys(err, ENOMEM, "%s", path);
	} else if (strcmp(finding, "ok") != 0) {
		integrity_first_line(finding, line, sizeof(line));
		rc = error_set(
		    err, integrity_is_damage(db, finding) ? ERROR_CORRUPT : ERROR_SYSTEM, "%s: %s", path, line);
	} else {
		rc = 0;
	}
	sqlite3_finalize(stmt);
	return rc;
}

/* sqlite3_exec has taken every column's text for us: so all of the row was read. */
static int
integrity_skip_row(void *context, int columns, char **values, char **names)
{
	(void)context, (void)columns, (void)values, (void)names;
	return 0;
}

int
integrity_check_newest(sqlite3 *db, const char *path, struct error *err)
{
	static const char *const tables[] = {"connections", "dns", "events"};
	char sql[160];

	for (size_t i = 0; i < sizeof(tables) / sizeof(tables[0]); i++) {
		snprintf(
		    sql, sizeof(sql), "SELECT * FROM %s ORDER BY id DESC LIMIT %d", tables[i], INTEGRITY_NEWEST_ROWS);
		if (sqlite3_exec(db, sql, integrity_skip_row, NULL, NULL) != SQLITE_OK)
			return schema_error(err, db, path);
	}
	return 0;
}
