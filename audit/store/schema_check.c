/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/schema_check.h"

#include "audit/store/schema.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SCHEMA_OBJECTS "SELECT type, name, tbl_name, sql FROM main.sqlite_schema"

static const char *const schema_word_tables[] = {"verdicts", "reasons", "ends", "name_sources", "event_kinds"};

sqlite3 *
schema_check_reference(struct error *err)
{
	sqlite3 *db;

	if (sqlite3_open_v2(":memory:", &db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL) !=
	    SQLITE_OK)
		schema_error(err, db, "memory");
	else if (schema_create(db, err) == 0 && schema_fill_words(db, err) == 0)
		return db;
	sqlite3_close(db);
	return NULL;
}

void
schema_check_reference_close(sqlite3 *reference)
{
	sqlite3_close(reference);
}

/* SQL without comments, and with no more space than its words need. A quotation is never ours, so that it makes a
 * difference whatever becomes of what is in it. The caller frees it; NULL: no memory. */
static char *
schema_compact(const char *sql)
{
	char *text = malloc(strlen(sql) + 1), *to = text;
	bool space = false;

	if (text == NULL)
		return NULL;
	for (; *sql != '\0'; sql++) {
		if (sql[0] == '-' && sql[1] == '-') {
			sql += strcspn(sql, "\n");
			space = true;
			if (*sql == '\0')
				break;
			continue;
		}
		if (strchr(" \t\n\r\f", *sql) != NULL) {
			space = true;
			continue;
		}
		if (space && to > text && strchr("(),", to[-1]) == NULL && strchr("(),", *sql) == NULL)
			*to++ = ' ';
		space = false;
		*to++ = *sql;
	}
	*to = '\0';
	return text;
}

/* NULL: it is NULL, or there was no memory, which *rc then says. What is not read for want of memory must not look like
 * somebody's doing. */
static const char *
schema_column(sqlite3_stmt *stmt, int column, int *rc)
{
	const char *text = (const char *)sqlite3_column_text(stmt, column);

	if (text == NULL && sqlite3_column_type(stmt, column) != SQLITE_NULL)
		*rc = SQLITE_NOMEM;
	return text;
}

/* Do the objects that two statements stand on mean the same? An SQLite result code. */
static int
schema_compare(sqlite3_stmt *a, sqlite3_stmt *b, int *ret_same)
{
	int rc = SQLITE_OK;
	const char *ours_sql = schema_column(a, 3, &rc), *theirs_sql = schema_column(b, 3, &rc);
	char *ours, *theirs;

	if (rc != SQLITE_OK)
		return rc;
	/* An index that belongs to a constraint has no SQL. */
	*ret_same = ours_sql == theirs_sql;
	if (ours_sql == NULL || theirs_sql == NULL)
		return SQLITE_OK;
	ours = schema_compact(ours_sql);
	theirs = schema_compact(theirs_sql);
	if (ours == NULL || theirs == NULL)
		rc = SQLITE_NOMEM;
	else
		*ret_same = strcmp(ours, theirs) == 0;
	free(ours);
	free(theirs);
	return rc;
}

/* The object that stmt stands on, as the other database has it: 1 the same, 0 another, -1 it has none. An SQLite result
 * code. */
static int
schema_find(sqlite3_stmt *object, sqlite3 *other, int *ret_found)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(
	    other, SCHEMA_OBJECTS " WHERE type = ?1 AND name = ?2 AND tbl_name = ?3", -1, &stmt, NULL);

	*ret_found = -1;
	if (rc != SQLITE_OK)
		return rc;
	for (int i = 0; rc == SQLITE_OK && i < 3; i++)
		rc = sqlite3_bind_value(stmt, i + 1, sqlite3_column_value(object, i));
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		rc = schema_compare(object, stmt, ret_found);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Describes an object that differs, and says whether it is a table. */
static int
schema_say(sqlite3_stmt *object, const char *how, char ret_what[SCHEMA_CHECK_TEXT_MAX], bool *ret_table)
{
	int rc = SQLITE_OK;
	const char *type = schema_column(object, 0, &rc), *name = schema_column(object, 1, &rc);

	if (rc != SQLITE_OK)
		return rc;
	snprintf(ret_what, SCHEMA_CHECK_TEXT_MAX, "%.16s %.64s %s", type == NULL ? "object" : type,
	    name == NULL ? "without a name" : name, how);
	*ret_table = type != NULL && strcmp(type, "table") == 0;
	return SQLITE_OK;
}

/* The objects of one database, each asked for in the other, until there is a difference. */
static int
schema_walk(sqlite3 *db, sqlite3 *other, const char *missing, char ret_what[SCHEMA_CHECK_TEXT_MAX], bool *ret_table)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, SCHEMA_OBJECTS, -1, &stmt, NULL), found;

	if (rc != SQLITE_OK)
		return rc;
	while (ret_what[0] == '\0' && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = schema_find(stmt, other, &found);
		if (rc == SQLITE_OK && found != 1)
			rc = schema_say(stmt, found < 0 ? missing : "is not as postern makes it", ret_what, ret_table);
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
schema_check(sqlite3 *db, sqlite3 *reference, char ret_what[SCHEMA_CHECK_TEXT_MAX], bool *ret_table)
{
	int rc;

	ret_what[0] = '\0';
	/* Ours first: a table of ours that is gone is graver than what else there is. */
	rc = schema_walk(reference, db, "is missing", ret_what, ret_table);
	if (rc == SQLITE_OK && ret_what[0] == '\0') {
		rc = schema_walk(db, reference, "is not one that postern makes", ret_what, ret_table);
		*ret_table = false;
	}
	return rc;
}

/* Is the row of words that each of two statements stands on the same? */
static int
schema_compare_words(sqlite3_stmt *a, sqlite3_stmt *b, int *ret_same)
{
	int rc = SQLITE_OK;

	*ret_same = sqlite3_column_count(a) == sqlite3_column_count(b);
	for (int i = 0; *ret_same && rc == SQLITE_OK && i < sqlite3_column_count(a); i++) {
		const char *ours = schema_column(a, i, &rc), *theirs = schema_column(b, i, &rc);

		*ret_same = ours != NULL && theirs != NULL && strcmp(ours, theirs) == 0;
	}
	return rc;
}

/* Is the reference's row of a table of words in the database, and the same? */
static int
schema_find_word(sqlite3_stmt *word, sqlite3 *db, const char *table, int *ret_same)
{
	sqlite3_stmt *stmt;
	char sql[96];
	int rc;

	*ret_same = 0;
	snprintf(sql, sizeof(sql), "SELECT * FROM %s WHERE id = ?1", table);
	rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_bind_value(stmt, 1, sqlite3_column_value(word, 0));
	if (rc == SQLITE_OK)
		rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		rc = schema_compare_words(word, stmt, ret_same);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Compares one table of words with the reference; ret_what says what differs. */
static int
schema_check_table_words(sqlite3 *db, sqlite3 *reference, const char *table, char ret_what[SCHEMA_CHECK_TEXT_MAX])
{
	sqlite3_stmt *stmt;
	int rc, same = 1;
	char sql[96];

	snprintf(sql, sizeof(sql), "SELECT * FROM %s", table);
	rc = sqlite3_prepare_v2(reference, sql, -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return rc;
	while (same && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = schema_find_word(stmt, db, table, &same);
		if (rc != SQLITE_OK)
			break;
		if (!same)
			snprintf(ret_what, SCHEMA_CHECK_TEXT_MAX, "word %d of table %s is not \"%.40s\"",
			    sqlite3_column_int(stmt, 0), table, schema_column(stmt, 1, &rc));
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
schema_check_words(sqlite3 *db, sqlite3 *reference, char ret_what[SCHEMA_CHECK_TEXT_MAX])
{
	int rc = SQLITE_OK;

	ret_what[0] = '\0';
	for (size_t i = 0;
	     rc == SQLITE_OK && ret_what[0] == '\0' && i < sizeof(schema_word_tables) / sizeof(schema_word_tables[0]);
	     i++)
		rc = schema_check_table_words(db, reference, schema_word_tables[i], ret_what);
	return rc;
}

/* The statement that drops an object; to be freed with sqlite3_free. */
static int
schema_drop_text(sqlite3_stmt *object, char **ret_sql)
{
	int rc = SQLITE_OK;
	const char *type = schema_column(object, 0, &rc), *name = schema_column(object, 1, &rc);

	if (rc == SQLITE_OK)
		*ret_sql = sqlite3_mprintf("DROP %s \"%w\"", type, name);
	return *ret_sql == NULL ? SQLITE_NOMEM : SQLITE_OK;
}

/* The first object that can be dropped and should be, as a statement that does it; NULL: there is none. */
static int
schema_find_foreign(sqlite3 *db, sqlite3 *reference, char **ret_sql)
{
	sqlite3_stmt *stmt;
	int rc, found = 1;

	*ret_sql = NULL;
	/* An index without SQL belongs to its table. */
	rc = sqlite3_prepare_v2(db, SCHEMA_OBJECTS " WHERE type <> 'table' AND sql IS NOT NULL", -1, &stmt, NULL);
	if (rc != SQLITE_OK)
		return rc;
	while (found == 1 && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = schema_find(stmt, reference, &found);
		if (rc == SQLITE_OK && found != 1)
			rc = schema_drop_text(stmt, ret_sql);
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

/* Drops what the reference does not have, one object at a time. */
static int
schema_drop_foreign(sqlite3 *db, sqlite3 *reference)
{
	char *sql;
	int rc;

	/* One by one: a view may go with what it is about. */
	while ((rc = schema_find_foreign(db, reference, &sql)) == SQLITE_OK && sql != NULL) {
		rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
		sqlite3_free(sql);
		if (rc != SQLITE_OK)
			break;
	}
	return rc;
}

/* Makes what the reference has and the database lacks, but for tables. */
static int
schema_make_missing(sqlite3 *db, sqlite3 *reference)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(
	    reference, SCHEMA_OBJECTS " WHERE type <> 'table' AND sql IS NOT NULL ORDER BY rowid", -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		int found;
		const char *sql;

		rc = schema_find(stmt, db, &found);
		sql = schema_column(stmt, 3, &rc);
		if (rc == SQLITE_OK && found < 0)
			rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
		if (rc != SQLITE_OK)
			break;
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
schema_check_mend(sqlite3 *db, sqlite3 *reference)
{
	int rc = sqlite3_exec(db, "BEGIN IMMEDIATE", NULL, NULL, NULL);

	if (rc == SQLITE_OK)
		rc = schema_drop_foreign(db, reference);
	if (rc == SQLITE_OK)
		rc = schema_make_missing(db, reference);
	return rc == SQLITE_OK ? sqlite3_exec(db, "COMMIT", NULL, NULL, NULL) : rc;
}

/* " AND EXISTS (...)" for one index, which may have a condition of its own, after WHERE. */
static int
schema_append_probe(sqlite3 *reference, const char *table, const char *index, const char *condition, FILE *sql)
{
	const char *column;
	sqlite3_stmt *stmt;
	int rc =
	    sqlite3_prepare_v2(reference, "SELECT name FROM pragma_index_info(?1) ORDER BY seqno", -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_bind_text(stmt, 1, index, -1, SQLITE_TRANSIENT);
	condition = condition == NULL ? "1" : condition + strlen(" WHERE ");
	fprintf(sql, " AND (NOT (%s) OR EXISTS (SELECT 1 FROM %s i INDEXED BY %s WHERE %s AND i.id = t.id", condition,
	    table, index, condition);
	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		column = schema_column(stmt, 0, &rc);
		if (rc == SQLITE_OK)
			fprintf(sql, " AND i.%s IS t.%s", column, column);
	}
	fputs("))", sql);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int
schema_check_index_probe(sqlite3 *reference, const char *table, FILE *sql)
{
	const char *index, *create;
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(
	    reference, SCHEMA_OBJECTS " WHERE type = 'index' AND tbl_name = ?1 AND sql IS NOT NULL", -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return rc;
	rc = sqlite3_bind_text(stmt, 1, table, -1, SQLITE_TRANSIENT);
	fputs("(1", sql);
	while (rc == SQLITE_OK && (rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		rc = SQLITE_OK;
		index = schema_column(stmt, 1, &rc);
		create = schema_column(stmt, 3, &rc);
		if (rc == SQLITE_OK)
			rc = schema_append_probe(reference, table, index, strstr(create, " WHERE "), sql);
	}
	fputs(")", sql);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? SQLITE_OK : rc;
}
