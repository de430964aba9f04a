/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log/log.h"

#include "audit/record.h"
#include "audit/show/render.h"
#include "audit/query/stats.h"
#include "base/clock.h"
#include "base/escape.h"
#include "cli/command.h"
#include "cli/log/log_filter.h"
#include "cli/table.h"
#include "policy/text/quantity.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Without --since. */
#define TOP_SINCE_US (3600 * 1000000ll)
#define TOP_ROWS 20
#define TOP_ROWS_MAX 10000
/* Between two looks with --watch. */
#define TOP_WATCH_S 2
/* Longest name, each byte escaped. */
#define TOP_TEXT_MAX 2048

const char cli_top_usage[] =
    "usage: postern top [options] [SANDBOX...]\n"
    "\n"
    "Show who was talked to most, or refused most; of the last hour.\n"
    "\n"
    "  --by WORD                 bytes, connections, denied or queries; what to order by\n"
    "  --group WORD              name, domain, ip, port, sandbox, rule, reason, country or asn; a line each\n"
    "  -n, --lines N             so many (20)\n"
    "  -w, --watch               again every 2 seconds\n"
    "  -o, --output FORMAT       text, or json: one object\n"
    "  -h, --help                this text\n"
    "\n";

enum top_option { TOP_BY = LOG_FILTER_OWN, TOP_GROUP };

static const struct option top_long_options[] = {
    {"by", required_argument, NULL, TOP_BY},
    {"group", required_argument, NULL, TOP_GROUP},
    {"lines", required_argument, NULL, 'n'},
    {"watch", no_argument, NULL, 'w'},
    {"output", required_argument, NULL, 'o'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

struct top_options {
	struct log_filter filter;
	enum stats_group group;
	enum stats_by by;
	size_t rows;
	bool json, watch;
};

/* What the rows become. */
struct top_output {
	struct table table;
	json_t *rows; /* NULL: a table */
};

static int
top_set_word(unsigned int max, const char *(*text)(unsigned int), const char *option, const char *value,
    unsigned int *ret_word, struct error *err)
{
	char words[256] = "";
	size_t len = 0;

	for (unsigned int i = 0; i < max; i++) {
		if (strcmp(value, text(i)) == 0) {
			*ret_word = i;
			return 0;
		}
		len += (size_t)snprintf(words + len, sizeof(words) - len, "%s%s", i == 0 ? "" : ", ", text(i));
	}
	return error_set(err, ERROR_USAGE, "--%s %.60s: one of %s", option, value, words);
}

static int
top_set(struct top_options *options, int option, const char *value, struct error *err)
{
	unsigned int word = 0;
	uint64_t rows;

	switch (option) {
	case TOP_BY:
		if (top_set_word(STATS_BY_MAX, stats_by_text, "by", value, &word, err) < 0)
			return -1;
		options->by = (enum stats_by)word;
		return 0;
	case TOP_GROUP:
		if (top_set_word(STATS_GROUP_MAX, stats_group_text, "group", value, &word, err) < 0)
			return -1;
		options->group = (enum stats_group)word;
		return 0;
	case 'n':
		if (!quantity_parse_count(value, strlen(value), TOP_ROWS_MAX, &rows) || rows == 0)
			return error_set(err, ERROR_USAGE, "-n %.60s: not a number up to %d", value, TOP_ROWS_MAX);
		options->rows = (size_t)rows;
		return 0;
	case 'w':
		options->watch = true;
		return 0;
	case 'o':
		options->json = strcmp(value, "json") == 0;
		if (!options->json && strcmp(value, "text") != 0)
			return error_set(err, ERROR_USAGE, "-o must be text or json");
		return 0;
	default:
		return error_set(err, ERROR_USAGE, "try: postern top --help");
	}
}

/* 0, -1 with *err, or 1 when help was wanted. */
static int
top_read_options(int argc, char **argv, struct top_options *options, struct error *err)
{
	struct option all[LOG_FILTER_OPTIONS_MAX];
	int option, rc;

	optind = 0;
	log_filter_init(&options->filter);
	log_filter_options(top_long_options, all);
	while ((option = getopt_long(argc, argv, "hn:wo:", all, NULL)) != -1) {
		if (option == 'h')
			return 1;
		rc = log_filter_set(&options->filter, option, optarg, err);
		if (rc < 0 || (rc == 0 && top_set(options, option, optarg, err) < 0))
			return -1;
	}
	for (; optind < argc; optind++)
		if (log_filter_add_sandbox(&options->filter, argv[optind], err) < 0)
			return -1;
	return log_filter_finish(&options->filter, err);
}

/* Printable. */
static const char *
top_text(struct query_text text, char ret_text[TOP_TEXT_MAX])
{
	escape_terminal(text.bytes, text.len, ret_text, TOP_TEXT_MAX);
	return ret_text;
}

static void
top_take_json(const struct top_output *output, const struct stats_row *row)
{
	char text[TOP_TEXT_MAX], time[40];
	json_t *object = json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "key", top_text(row->key, text), "connections",
	    (json_int_t)row->connections, "queries", (json_int_t)row->queries, "denied", (json_int_t)row->denied,
	    "bytes_out", (json_int_t)row->bytes_out, "bytes_in", (json_int_t)row->bytes_in);

	if (row->id.set)
		json_object_set_new(object, "sandbox_id", json_integer(row->id.value));
	if (row->label.len > 0)
		json_object_set_new(object, "as_org", json_string(top_text(row->label, text)));
	json_object_set_new(object, "first", json_string(render_time_utc(row->first_us, time)));
	json_object_set_new(object, "last", json_string(render_time_utc(row->last_us, time)));
	json_array_append_new(output->rows, object);
}

static void
top_take(const struct stats_row *row, void *context)
{
	struct top_output *output = context;
	char bytes[32];

	if (output->rows != NULL) {
		top_take_json(output, row);
		return;
	}
	table_addf(&output->table, "%lld", (long long)row->connections);
	table_addf(&output->table, "%lld", (long long)row->queries);
	table_addf(&output->table, "%lld", (long long)row->denied);
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
top_show(const struct top_options *options, int64_t since_us, struct error *err)
{
	const char *headings[] = {
	    "CONNECTIONS", "QUERIES", "DENIED", "OUT", "IN", stats_group_text((unsigned int)options->group)};
	struct query_filter filter = options->filter.filter;
	struct query *query = query_open(options->filter.db, err);
	struct top_output output = {.rows = options->json ? json_array() : NULL};
	char since[40];
	json_t *all;
	int rc;

	if (query == NULL) {
		json_decref(output.rows);
		return -1;
	}
	filter.since_us = since_us;
	table_init(&output.table, sizeof(headings) / sizeof(headings[0]), headings);
	rc = query_start(query, &filter, err);
	if (rc == 0)
		rc = stats_top(query, options->group, options->by, options->rows, top_take, &output, err);
	query_close(query);
	if (rc == 0 && options->json) {
		all = json_pack("{s:s, s:s, s:s, s:O}", "since", render_time_utc(since_us, since), "group",
		    stats_group_text((unsigned int)options->group), "by", stats_by_text((unsigned int)options->by),
		    "top", output.rows);
		command_print_json(all);
		json_decref(all);
	}
	if (rc == 0 && !options->json && options->watch)
		fputs("\x1b[H\x1b[2J", stdout);
	if (rc == 0 && !options->json)
		table_print(&output.table, stdout, "");
	json_decref(output.rows);
	return rc;
}

static int
top_run(const struct top_options *options, struct error *err)
{
	const struct timespec pause = {.tv_sec = TOP_WATCH_S};
	int64_t asked_us = options->filter.filter.since_us, started_us = clock_real_us(), now_us = started_us;
	int64_t span_us = asked_us == 0 ? TOP_SINCE_US : started_us - asked_us;
	int rc;

	/* Whoever watches sees the last hour at each moment, not the hour before the start. */
	for (;; now_us = clock_real_us()) {
		rc = top_show(options, now_us - span_us, err);
		if (rc < 0 || !options->watch)
			return rc;
		if (fflush(stdout) != 0)
			return error_set(err, ERROR_SYSTEM, "cannot write the output");
		nanosleep(&pause, NULL);
	}
}

int
cli_top(int argc, char **argv)
{
	static struct top_options options; /* large */
	struct error err;
	int rc;

	options = (struct top_options){.rows = TOP_ROWS};
	rc = top_read_options(argc, argv, &options, &err);
	if (rc == 1) {
		fputs(cli_top_usage, stdout);
		fputs(log_filter_usage, stdout);
		return 0;
	}
	if (rc == 0 && options.watch && (!isatty(STDOUT_FILENO) || options.json))
		rc = error_set(&err, ERROR_USAGE, "--watch redraws a terminal: there is none");
	if (rc == 0)
		rc = top_run(&options, &err);
	return rc == 0 ? 0 : command_fail(&err);
}
