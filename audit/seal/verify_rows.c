/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every row, in the order of ids and from the tables themselves: a damaged index must not hide one. */
#include "audit/seal/verify_steps.h"

#include "audit/store/schema_check.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* Columns after those of row, link and indexes, for the table's own check. */
static const char *const rows_columns[] = {
    [COLUMNS_CONNECTIONS] = "t.sandbox_id, t.verdict, t.count, t.last_ts IS NOT NULL",
    [COLUMNS_DNS] = "t.sandbox_id, t.verdict, t.count, 0",
    [COLUMNS_EVENTS] = "t.kind, t.ts, t.detail",
    [COLUMNS_SANDBOXES] = "NULL",
    [COLUMNS_ACCOUNTS] = "NULL",
};
_Static_assert(sizeof(rows_columns) / sizeof(rows_columns[0]) == COLUMNS_TABLE_MAX, "columns of each table");

/* First of these columns. */
#define ROWS_OWN 5
/* Every index leads to the row. */
#define ROWS_INDEXED 4

/* Does the event say that something may be missing: lost records, a process that ended with unwritten records, a
 * replaced file, or a changed end of the log? */
static bool
rows_is_gap(int64_t kind, const char *detail)
{
	json_t *json;
	bool gap;

	if (kind == EVENT_ROLE_CRASH || kind == EVENT_AUDIT_REPLACED)
		return true;
	if (kind != EVENT_AUDIT_RESUMED && kind != EVENT_TAMPERED)
		return false;
	json = json_loads(detail, 0, NULL);
	gap = kind == EVENT_TAMPERED ? json_object_get(json, "log") != NULL
				     : json_integer_value(json_object_get(json, "lost")) != 0;
	json_decref(json);
	return gap;
}

/* Reports a gap, if the event says that there is one. */
static void
rows_event(struct verify *v, struct rows *row)
{
	int64_t kind = rows_integer(row, ROWS_OWN);
	struct verify_gap gap = {.ts_us = rows_integer(row, ROWS_OWN + 1),
	    .kind = (unsigned int)kind,
	    .detail = rows_text(row, ROWS_OWN + 2, NULL)};

	if (!rows_is_gap(kind, gap.detail))
		return;
	v->result->gaps++;
	if (v->options->gap_handler != NULL)
		v->options->gap_handler(&gap, v->options->context);
}

/* Adds an attempt to its account. */
static void
rows_attempt(struct verify *v, struct rows *row, enum record_attempt attempt)
{
	int64_t verdict = rows_integer(row, ROWS_OWN + 1);

	/* An invalid verdict belongs to no sum; the change of the row was already found. */
	if (verdict >= 0 && verdict < VERDICT_MAX)
		verify_accounts_add(v->accounts, attempt, rows_integer(row, ROWS_OWN), rows_integer(row, 0),
		    rows_integer(row, 1), (unsigned int)verdict, rows_integer(row, ROWS_OWN + 2));
}

/* The table's own check of the current row. */
static void
rows_own(struct verify *v, struct rows *row, enum columns_table table)
{
	switch (table) {
	case COLUMNS_CONNECTIONS:
		rows_attempt(
		    v, row, rows_integer(row, ROWS_OWN + 3) ? RECORD_ATTEMPT_REFUSED : RECORD_ATTEMPT_CONNECTION);
		break;
	case COLUMNS_DNS:
		rows_attempt(v, row, RECORD_ATTEMPT_DNS);
		break;
	case COLUMNS_EVENTS:
		rows_event(v, row);
		break;
	case COLUMNS_SANDBOXES:
	case COLUMNS_ACCOUNTS:
	case COLUMNS_TABLE_MAX:
		break;
	}
}

/* Is the link with the row's number about the row? Links that were not walked vouch for nothing: before 1 there are
 * none, and up to pruned_through none any more. */
static void
rows_check_number(struct verify *v, struct rows *row, unsigned int table)
{
	int64_t id = rows_integer(row, 0), seq = rows_integer(row, 1);
	int64_t link_table = rows_integer(row, 2), link_id = rows_integer(row, 3);
	bool linked = rows_type(row, 2) != ROWS_NULL;

	if (v->from.n > 0 && seq > 0 && seq <= v->from.last_seq)
		return;
	if (seq > 0 && seq <= v->result->pruned_through)
		verify_find(v, VERIFY_INSERTED, table, id, seq, 0,
		    "should have been pruned with the rows up to number %lld: it was inserted later",
		    (long long)v->result->pruned_through);
	else if (seq < 1 || !linked)
		verify_find(v, VERIFY_INSERTED, table, id, seq, 0,
		    "has no link in the chain: it was inserted, or its link was removed");
	else if (link_table != table || link_id != id)
		verify_find(v, VERIFY_REORDERED, table, id, seq, 0,
		    "has number %lld, which belongs to %s %016llx: numbers were swapped, or it was inserted",
		    (long long)seq,
		    link_table > 0 && link_table < COLUMNS_TABLE_MAX ? columns_table_name((unsigned int)link_table)
								     : "?",
		    (unsigned long long)link_id);
}

/* All checks of the current row. */
static void
rows_row(struct verify *v, struct rows *row, unsigned int table)
{
	v->result->rows[table]++;
	rows_check_number(v, row, table);
	if (rows_integer(row, ROWS_INDEXED) == 0)
		verify_find(v, VERIFY_CHANGED, table, rows_integer(row, 0), rows_integer(row, 1), 0,
		    "is missing in an index: queries may not find it");
	rows_own(v, row, (enum columns_table)table);
}

/* Rows from id *next on. 1: there are more, from *next; 0: done; -1. */
static int
rows_page(struct verify *v, struct rows *rows, unsigned int table, int64_t *next)
{
	int64_t id = *next;
	int count = 0;

	if (verify_begin(v) < 0)
		return -1;
	rows_set_integer(rows, 1, *next);
	rows_set_integer(rows, 2, VERIFY_PAGE);
	for (; rows_next(rows); count++) {
		id = rows_integer(rows, 0);
		rows_row(v, rows, table);
	}
	rows_again(rows);
	if (rows->code != 0 || verify_end(v) < 0)
		return -1;
	verify_progress(v, (uint64_t)count);
	if (count < VERIFY_PAGE || id == INT64_MAX)
		return 0;
	*next = id + 1;
	return 1;
}

/* Checks all rows of a table, a page at a time. */
static int
rows_table(struct verify *v, unsigned int table)
{
	const char *name = columns_table_name(table);
	struct rows rows;
	int64_t next = INT64_MIN;
	char *text = NULL;
	size_t size;
	FILE *sql = open_memstream(&text, &size);
	int rc = 0;

	if (sql == NULL)
		return verify_fail_memory(v);
	fputs("SELECT t.id, t.seq, c.tbl, c.id, ", sql);
	if (v->schema_ours)
		rc = schema_check_index_probe(v->reference, name, sql);
	else
		fputs("1", sql);
	fprintf(sql,
	    ", %s FROM %s t NOT INDEXED LEFT JOIN chain c ON c.seq = t.seq WHERE t.id >= ?1 ORDER BY t.id LIMIT ?2",
	    rows_columns[table], name);
	if (fclose(sql) != 0 || rc != 0) {
		free(text);
		return verify_fail_memory(v);
	}
	verify_prepare(v, &rows, text);
	free(text);
	do
		rc = rows_page(v, &rows, table, &next);
	while (rc > 0);
	return rows_finish(&rows) < 0 ? -1 : rc;
}

int
verify_rows(struct verify *v)
{
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++)
		if (rows_table(v, table) < 0)
			return -1;
	/* Rows pruned meanwhile are missing in the sums. */
	return verify_pruning(v);
}
