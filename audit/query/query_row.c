/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/query_row.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(COLUMNS_CONNECTIONS == 1 && COLUMNS_DNS == 2 && COLUMNS_EVENTS == QUERY_KINDS, "tables that are read");

/* The member that a line of the plan is about. */
static const struct column *
query_row_member(const struct query_row_plan *plan, size_t line)
{
	for (size_t i = 0; i + 1 < QUERY_KINDS; i++)
		if (plan->columns[line][i] != NULL)
			return plan->columns[line][i];
	return plan->columns[line][QUERY_KINDS - 1];
}

void
query_row_plan(struct query_row_plan *ret_plan)
{
	*ret_plan = (struct query_row_plan){.count = 0};
	for (unsigned int table = 1; table <= QUERY_KINDS; table++) {
		const struct columns *columns = columns_of(table);

		for (size_t i = 0; i < columns->count; i++) {
			const struct column *column = &columns->columns[i];
			size_t line = 0;

			if (column->member == COLUMN_ABSENT)
				continue;
			while (line < ret_plan->count && query_row_member(ret_plan, line)->row < column->row)
				line++;
			if (line == ret_plan->count || query_row_member(ret_plan, line)->row != column->row) {
				memmove(&ret_plan->columns[line + 1], &ret_plan->columns[line],
				    (ret_plan->count - line) * sizeof(ret_plan->columns[0]));
				memset(&ret_plan->columns[line], 0, sizeof(ret_plan->columns[0]));
				ret_plan->count++;
			}
			ret_plan->columns[line][table - 1] = column;
		}
	}
}

void
query_row_select(sqlite3_str *sql, const struct query_row_plan *plan, enum columns_table table, unsigned int row_kind)
{
	sqlite3_str_appendf(sql, "%u AS kind", row_kind);
	for (size_t line = 0; line < plan->count; line++) {
		const struct column *column = plan->columns[line][table - 1];

		if (column == NULL)
			sqlite3_str_appendall(sql, ", NULL");
		else if (column->select != NULL)
			sqlite3_str_appendf(sql, ", %s", column->select);
		else if (column->row <= offsetof(struct query_row, ts_us))
			sqlite3_str_appendf(sql, ", t.%s AS %s", column->name, column->name);
		else
			sqlite3_str_appendf(sql, ", t.%s", column->name);
	}
}

struct query_text
query_row_text(sqlite3_stmt *stmt, int column)
{
	struct query_text text = {.bytes = NULL};
	int type = sqlite3_column_type(stmt, column);

	/* Asked before the length: a foreign file may hold UTF-16, which is converted here. */
	if (type == SQLITE_TEXT)
		text.bytes = (const char *)sqlite3_column_text(stmt, column);
	else if (type == SQLITE_BLOB)
		text.bytes = sqlite3_column_blob(stmt, column);
	if (text.bytes != NULL)
		text.len = (size_t)sqlite3_column_bytes(stmt, column);
	return text;
}

void *
query_row_take(sqlite3_stmt *stmt, const struct query_row_plan *plan, struct query_row *ret_row)
{
	size_t bytes = 1; /* never a malloc of nothing */
	char *memory, *at;

	for (size_t line = 0; line < plan->count; line++)
		if (query_row_member(plan, line)->member == COLUMN_TEXT)
			bytes += query_row_text(stmt, (int)line + 1).len;
	memory = at = malloc(bytes);
	if (memory == NULL)
		return NULL;
	memset(ret_row, 0, sizeof(*ret_row));
	ret_row->kind = (unsigned int)sqlite3_column_int(stmt, 0);
	for (size_t line = 0; line < plan->count; line++) {
		const struct column *column = query_row_member(plan, line);
		int from = (int)line + 1;
		void *member = (char *)ret_row + column->row;

		if (column->member == COLUMN_TEXT) {
			struct query_text text = query_row_text(stmt, from);

			if (text.bytes != NULL)
				text.bytes = memcpy(at, text.bytes, text.len);
			at += text.len;
			*(struct query_text *)member = text;
		} else if (column->member == COLUMN_NUMBER) {
			*(struct query_number *)member =
			    (struct query_number){.set = sqlite3_column_type(stmt, from) == SQLITE_INTEGER,
				.value = sqlite3_column_int64(stmt, from)};
		} else {
			*(int64_t *)member = sqlite3_column_int64(stmt, from);
		}
	}
	return memory;
}
