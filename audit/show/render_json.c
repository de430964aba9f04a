/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/render.h"

#include "audit/columns.h"
#include "audit/show/json_line.h"
#include "audit/record.h"

#include <jansson.h>

/* A JSON column: as it is when it is what it should be, else as one string. */
static void
render_json_put_loaded_own(json_t *object, const char *key, struct query_text text, json_t *value_own)
{
	if (value_own == NULL)
		json_line_put_bytes(object, key, text);
	else
		json_object_set_new(object, key, value_own);
}

static const char *
render_json_kind(const struct query_row *row)
{
	if (row->kind == QUERY_DNS)
		return "dns";
	if (row->kind == QUERY_EVENT)
		return "event";
	return row->verdict == VERDICT_ALLOWED ? "flow" : "deny";
}

/* The member that a column is, if there is something to say. */
static void
render_json_put(json_t *object, const struct column *column, const struct query_row *row)
{
	const char *key = column->json.name;
	char text[JSON_LINE_TEXT_MAX];
	struct query_number number;

	switch ((enum column_form)column->form) {
	case COLUMN_PLAIN:
		if (column->member == COLUMN_TEXT)
			json_line_put_bytes(object, key, columns_text(column, row));
		else
			json_line_put_number(object, key, columns_number(column, row));
		return;
	case COLUMN_NONZERO:
		number = columns_number(column, row);
		if (number.value != 0)
			json_line_put_number(object, key, number);
		return;
	case COLUMN_MILLISECONDS:
		number = columns_number(column, row);
		if (number.set && (column->member == COLUMN_NUMBER || number.value != 0))
			json_object_set_new(object, key, json_real((double)number.value / 1000));
		return;
	case COLUMN_HUNDREDTHS:
		number = columns_number(column, row);
		if (number.set)
			json_object_set_new(object, key, json_real((double)number.value / 100));
		return;
	case COLUMN_ARRAY:
		render_json_put_loaded_own(
		    object, key, columns_text(column, row), json_line_load_array(columns_text(column, row)));
		return;
	case COLUMN_OBJECT:
		render_json_put_loaded_own(
		    object, key, columns_text(column, row), json_line_load_object(columns_text(column, row)));
		return;
	case COLUMN_LABELS:
		json_line_put_own(object, key, json_line_load_object(columns_text(column, row)));
		return;
	case COLUMN_CURSOR:
		json_line_put_text(object, key, row->cursor);
		return;
	case COLUMN_KIND:
		json_line_put_text(object, key, render_json_kind(row));
		return;
	case COLUMN_LEARNED:
		if (render_is(row->rule, RECORD_RULE_LEARN))
			json_object_set_new(object, key, json_true());
		return;
	case COLUMN_ECH:
		json_object_set_new(object, key, json_boolean((row->flags & RECORD_FLAG_ECH) != 0));
		return;
	case COLUMN_TUNNEL:
		json_object_set_new(object, key, json_boolean((row->flags & RECORD_FLAG_TUNNEL) != 0));
		return;
	case COLUMN_TIME:
	case COLUMN_ID:
	case COLUMN_VERDICT:
	case COLUMN_REASON:
	case COLUMN_PROTO:
	case COLUMN_NAME_SOURCE:
	case COLUMN_TLS_VERSION:
	case COLUMN_END:
	case COLUMN_QTYPE:
	case COLUMN_RCODE:
	case COLUMN_EVENT:
	case COLUMN_NAME:
		json_line_put_text(object, key, render_word(column, row, text, sizeof(text)));
		return;
	}
}

int
render_json(FILE *out, const struct query_row *row)
{
	/* In the order of the output, sorted once; one thread renders. */
	static const struct column *columns[COLUMNS_TABLE_MAX][COLUMNS_MAX];
	static size_t counts[COLUMNS_TABLE_MAX];
	unsigned int table = row->kind == QUERY_DNS ? COLUMNS_DNS
	    : row->kind == QUERY_EVENT              ? COLUMNS_EVENTS
						    : COLUMNS_CONNECTIONS;
	json_t *object = json_object();

	if (counts[table] == 0)
		counts[table] = columns_sort(table, offsetof(struct column, json), columns[table]);
	json_line_put_integer(object, "v", RENDER_JSON_VERSION);
	for (size_t i = 0; i < counts[table]; i++)
		render_json_put(object, columns[table][i], row);
	return json_line_print_own(out, object);
}
