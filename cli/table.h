/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Aligned columns for people: cells are escaped, the last column is not padded, nothing is cut. */
#ifndef POSTERN_CLI_TABLE_H
#define POSTERN_CLI_TABLE_H

#include <stddef.h>
#include <stdio.h>

#define TABLE_COLUMNS_MAX 12

struct table {
	size_t columns;
	char **cells; /* row by row; owned */
	size_t count, size;
};

/* Begin with the heading, or with none (headings[0] NULL). */
void table_init(struct table *table, size_t columns, const char *const *headings);
/* The next cell, from left to right, row by row. Out of memory ends the program. */
void table_add(struct table *table, const char *text);
void table_add_bytes(struct table *table, const char *text, size_t len);
void table_addf(struct table *table, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Several cells at once. */
#define table_add_row(table, ...)                                                                                      \
	table_add_cells(table, (const char *const[]){__VA_ARGS__},                                                     \
	    sizeof((const char *const[]){__VA_ARGS__}) / sizeof(const char *))
void table_add_cells(struct table *table, const char *const *cells, size_t count);
void table_add_number(struct table *table, long long number);
/* Print and free; each line begins with indent. */
void table_print(struct table *table, FILE *out, const char *indent);

#endif
