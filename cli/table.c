/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/table.h"

#include "base/escape.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* A formatted cell's longest text. */
#define TABLE_CELL_MAX 2048

void
table_init(struct table *table, size_t columns, const char *const *headings)
{
	*table = (struct table){.columns = columns};
	if (headings != NULL)
		table_add_cells(table, headings, columns);
}

void
table_add(struct table *table, const char *text)
{
	table_add_bytes(table, text, strlen(text));
}

void
table_add_cells(struct table *table, const char *const *cells, size_t count)
{
	for (size_t i = 0; i < count; i++)
		table_add(table, cells[i]);
}

void
table_add_number(struct table *table, long long number)
{
	table_addf(table, "%lld", number);
}

void
table_add_bytes(struct table *table, const char *text, size_t len)
{
	size_t size = len * 4 + 1;
	char *cell = malloc(size);

	if (table->count == table->size) {
		table->size = table->size == 0 ? 64 : table->size * 2;
		table->cells = reallocarray(table->cells, table->size, sizeof(*table->cells));
	}
	if (cell == NULL || table->cells == NULL) {
		fprintf(stderr, "postern: out of memory\n");
		exit(1);
	}
	escape_terminal(text, len, cell, size);
	table->cells[table->count++] = cell;
}

void
table_addf(struct table *table, const char *fmt, ...)
{
	char text[TABLE_CELL_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	table_add(table, text);
}

void
table_print(struct table *table, FILE *out, const char *indent)
{
	size_t widths[TABLE_COLUMNS_MAX] = {0};

	for (size_t i = 0; i < table->count; i++)
		if (strlen(table->cells[i]) > widths[i % table->columns])
			widths[i % table->columns] = strlen(table->cells[i]);
	for (size_t i = 0; i < table->count; i++) {
		size_t column = i % table->columns;

		if (column == 0)
			fputs(indent, out);
		if (column + 1 == table->columns)
			fprintf(out, "%s\n", table->cells[i]);
		else
			fprintf(out, "%-*s  ", (int)widths[column], table->cells[i]);
		free(table->cells[i]);
	}
	free(table->cells);
	*table = (struct table){.columns = table->columns};
}
