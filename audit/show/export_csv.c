/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSV (RFC 4180): one table for all kinds of rows, with a header line. Every cell is quoted, and one that a spreadsheet
 * would take for a formula gets an apostrophe in front, as OWASP's "CSV injection" advises (CASES F-29). */
#include "audit/show/export_formats.h"
#include "audit/show/export_row.h"
#include "audit/columns.h"
#include "audit/record.h"
#include "audit/show/render.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

/* A cell of printable ASCII. */
static void
csv_put(FILE *out, const char *text)
{
	fputc('"', out);
	/* A spreadsheet reads "=1+1", "+1", "-1" and "@SUM()" as formulas. A cell cannot begin with TAB, CR or LF: they
	 * are escaped. */
	if (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@')
		fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

/* One table for the three kinds of rows: each heading once, with the column that each kind has for it. Filled by
 * export_csv_begin; one thread exports. */
static struct csv_line {
	const char *heading;
	size_t place;
	const struct column *columns[QUERY_KINDS]; /* NULL: rows of the kind leave the cell empty */
} csv_table[QUERY_KINDS * COLUMNS_MAX];
static size_t csv_count;

static const char *
csv_cell(const struct column *column, const struct query_row *row, char *ret_text, size_t size)
{
	struct query_number number;

	if (column == NULL)
		return "";
	if (column->form >= COLUMN_WORD)
		return render_word(column, row, ret_text, size);
	if (column->form == COLUMN_KIND)
		return row->kind == QUERY_DNS ? "dns" : row->kind == QUERY_EVENT ? "event" : "connection";
	if (column->form == COLUMN_LEARNED)
		return export_row_learned(row) ? "1" : "0";
	if (column->form == COLUMN_ECH)
		return (row->flags & RECORD_FLAG_ECH) != 0 ? "1" : "0";
	if (column->form == COLUMN_TUNNEL)
		return (row->flags & RECORD_FLAG_TUNNEL) != 0 ? "1" : "0";
	if (column->member == COLUMN_TEXT)
		return render_escape(columns_text(column, row), ret_text, size);
	number = columns_number(column, row);
	snprintf(ret_text, size, "%" PRId64, number.value);
	return number.set ? ret_text : "";
}

/* Adds a column to the line of its heading, which it makes at its place if there is none. */
static void
csv_add(const struct column *column, size_t kind)
{
	size_t line = 0, place = column->csv.at != 0 ? column->csv.at : SIZE_MAX;

	while (line < csv_count && strcmp(csv_table[line].heading, column->csv.name) != 0)
		line++;
	if (line == csv_count) {
		/* Columns without a place come last. */
		for (line = csv_count++; line > 0 && csv_table[line - 1].place > place; line--)
			csv_table[line] = csv_table[line - 1];
		csv_table[line] = (struct csv_line){.heading = column->csv.name, .place = place};
	}
	csv_table[line].columns[kind] = column;
}

void
export_csv_begin(FILE *out)
{
	const struct column *sorted[COLUMNS_MAX];

	csv_count = 0;
	for (size_t kind = 0; kind < QUERY_KINDS; kind++) {
		size_t count = columns_sort((unsigned int)kind + 1, offsetof(struct column, csv), sorted);

		for (size_t i = 0; i < count; i++)
			csv_add(sorted[i], kind);
	}
	for (size_t i = 0; i < csv_count; i++) {
		fputs(i == 0 ? "" : ",", out);
		csv_put(out, csv_table[i].heading);
	}
	fputs("\r\n", out);
}

int
export_csv_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	size_t kind = row->kind == QUERY_CONNECTION ? 0 : row->kind == QUERY_DNS ? 1 : 2;
	char text[JSON_LINE_TEXT_MAX];

	(void)options;
	for (size_t i = 0; i < csv_count; i++) {
		fputs(i == 0 ? "" : ",", out);
		csv_put(out, csv_cell(csv_table[i].columns[kind], row, text, sizeof(text)));
	}
	fputs("\r\n", out);
	return 0;
}
