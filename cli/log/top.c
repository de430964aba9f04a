/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern top: the largest sums of the audit log. */
#include "audit/query/stats.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "base/clock.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/log/log_filter.h"
#include "cli/table.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Without --since. */
#define TOP_SINCE_US (3600 * 1000000ll)
#define TOP_ROWS 20
#define TOP_ROWS_MAX 10000
/* Between two readings with --watch. */
#define TOP_WATCH_S 2
/* Longest name, each byte escaped. */
#define TOP_TEXT_MAX 2048

static struct {
	unsigned int group, by; /* enum stats_group, enum stats_by */
	int64_t rows;
	bool watch;
} options = {.rows = TOP_ROWS};

/* Where the rows go: a table or JSON. */
struct top_output {
	struct table table;
	json_t *rows; /* NULL: a table */
};

static const struct args_option top_options[] = {
    {0, "by", "WORD", "bytes, connections, denied or queries: the order", .parse = command_parse_word,
	.target = &options.by, .max = STATS_BY_MAX, .words = stats_top_by_text},
    {0, "group", "WORD", "name, domain, ip, port, sandbox, rule, reason, country or asn: one line each",
	.parse = command_parse_word, .target = &options.group, .max = STATS_GROUP_MAX, .words = stats_top_group_text},
    {'n', "lines", "N", "so many (20)", .parse = command_parse_number, .target = &options.rows, .min = 1,
	.max = TOP_ROWS_MAX},
    {'w', "watch", NULL, "again every 2 seconds", .flag = &options.watch},
    {0},
};

/* The text with unprintable bytes escaped. */
static const char *
top_text(struct query_text text, char ret_text[TOP_TEXT_MAX])
{
	escape_terminal(text.bytes, text.len, ret_text, TOP_TEXT_MAX);
	return ret_text;
}

static void
top_take(const struct stats_row *row, void *context)
{
	struct top_output *output = context;
	char bytes[32], text[TOP_TEXT_MAX], time[40];
	json_t *object;

	if (output->rows != NULL) {
		object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "key", top_text(row->key, text), "connections",
		    (json_int_t)row->connections, "queries", (json_int_t)row->queries, "denied",
		    (json_int_t)row->denied, "bytes_out", (json_int_t)row->bytes_out, "bytes_in",
		    (json_int_t)row->bytes_in);
		if (row->id.set)
			json_object_set_new(object, "sandbox_id", json_integer(row->id.value));
		if (row->label.len > 0)
			json_object_set_new(object, "as_org", json_string(top_text(row->label, text)));
		json_object_set_new(object, "first", json_string(render_time_utc(row->first_us, time)));
		json_object_set_new(object, "last", json_string(render_time_utc(row->last_us, time)));
		json_array_append_new(output->rows, object);
		return;
	}
	table_add_number(&output->table, row->connections);
	table_add_number(&output->table, row->queries);
	table_add_number(&output->table, row->denied);
	table_add(&output->table, render_bytes(row->bytes_out, bytes));
	table_add(&output->table, render_bytes(row->bytes_in, bytes));
	if (row->key.len == 0)
		table_add(&output->table, "-");
	else if (row->label.len > 0)
		table_addf(&output->table, "%.*s %.*s", (int)row->key.len, row->key.bytes, (int)row->label.len,
		    row->label.bytes);
	else
		table_add_bytes(&output->table, row->key.bytes, row->key.len);
}

static int
top_show(const struct command *command, const char *db, const struct query_filter *filter, struct error *err)
{
	const char *headings[] = {"CONNECTIONS", "QUERIES", "DENIED", "OUT", "IN", stats_top_group_text(options.group)};
	struct query *query = query_open(db, err);
	struct top_output output = {.rows = command->json ? json_array() : NULL};
	char since[40];
	int rc;

	if (query == NULL) {
		json_decref(output.rows);
		return -1;
	}
	table_init(&output.table, sizeof(headings) / sizeof(headings[0]), headings);
	rc = query_start(query, filter, err);
	if (rc == 0)
		rc = stats_top(query, (enum stats_group)options.group, (enum stats_by)options.by, (size_t)options.rows,
		    top_take, &output, err);
	query_close(query);
	if (rc == 0 && options.watch)
		fputs("\x1b[H\x1b[2J", stdout);
	if (rc == 0 && !command->json)
		table_print(&output.table, stdout, "");
	if (rc == 0 && command->json)
		command_print(command,
		    json_pack("{s:s, s:s, s:s, s:O}", "since", render_time_utc(filter->since_us, since), "group",
			stats_top_group_text(options.group), "by", stats_top_by_text(options.by), "top", output.rows),
		    NULL);
	json_decref(output.rows);
	return rc;
}

static int
top_run(const struct command *command, struct error *err)
{
	const struct timespec pause = {.tv_sec = TOP_WATCH_S};
	int64_t now_us = clock_real_us(), span_us = TOP_SINCE_US;
	struct query_filter filter;
	const char *db;

	if (log_filter_finish(&command->operands, &filter, &db, err) < 0)
		return -1;
	if (options.watch && (!isatty(STDOUT_FILENO) || command->json))
		return command_usage(err, "--watch needs a terminal and no -o json");
	if (filter.since_us != 0)
		span_us = now_us - filter.since_us;
	/* With --watch the span ends now, at each moment. */
	for (;; now_us = clock_real_us()) {
		filter.since_us = now_us - span_us;
		if (top_show(command, db, &filter, err) < 0)
			return -1;
		if (!options.watch)
			return 0;
		if (command_flush(err) < 0)
			return -1;
		nanosleep(&pause, NULL);
	}
}

const struct command_row top_command = {
    .name = "top",
    .operands = "[SANDBOX]...",
    .summary = "Show the largest sums by name, address, sandbox, rule, ...; of the last hour.",
    .page = "postern-log(1)",
    .syntax = {.groups = {top_options, command_output, log_filter_options},
	.before = log_filter_before,
	.abbreviates = true},
    .run = top_run,
};
