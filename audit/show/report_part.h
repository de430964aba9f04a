/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Between the report's files: report.c is the page, report_chart.c the time line, report_table.c everything in rows. */
#ifndef POSTERN_AUDIT_REPORT_PART_H
#define POSTERN_AUDIT_REPORT_PART_H

#include "audit/show/report.h"
#include "audit/store/rows.h"

/* Rows of a table at most: a page of a megabyte opens at once, on a phone too. */
#define REPORT_ROWS_MAX 500

struct report {
	FILE *out;
	struct sqlite3 *db;
	const struct report_options *options;
	int64_t sandbox_id;
	int64_t since_us, until_us; /* rows to take; never 0: the bounds of time where none were given */
	int64_t from_us, to_us;     /* of the time line: first and last sign of life among them */
};

/* Prepares SQL in which :sandbox, :since, :until, :from, :to and :max mean the report's, as rows_prepare. */
void report_prepare(const struct report *report, struct rows *ret_rows, const char *sql, struct error *err);

/* The time line: steps, connections by name, bytes out. 0 or -1. */
int report_chart(const struct report *report, struct error *err);

/* All tables of the page in their order, up to the policy; and those behind it. 0 or -1. */
int report_table_before_policy(const struct report *report, struct error *err);
int report_table_after_policy(const struct report *report, struct error *err);

/* For the style sheet: the columns' titles, for where there is no room for columns and each cell says which it is. */
void report_table_labels(FILE *out);

#endif
