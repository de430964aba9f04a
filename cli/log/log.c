/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log/log.h"

#include "audit/show/export.h"
#include "audit/query/query.h"
#include "audit/show/render.h"
#include "base/escape.h"
#include "cli/log/log_filter.h"

#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Rows shown when nobody says how many or since when. */
#define LOG_LAST 200
/* Between looks for new rows. */
#define LOG_FOLLOW_MS 200

const char cli_log_usage[] =
    "usage: postern log [options] [SANDBOX...]\n"
    "\n"
    "Show what sandboxes tried to reach, and what came of it; oldest first.\n"
    "\n"
    "  -n, --lines N             only the last N (200; with --since, or to take away: all); with --after: the first N\n"
    "  -f, --follow              wait for more; an open connection is shown again when it is closed, and after each\n"
    "                            minute in which bytes passed\n"
    "  -o, --output FORMAT       short; wide: more of each, on one line;\n"
    "                            json: one object a line, see postern-audit(5); to take away:\n"
    "                            csv, ocsf, ecs, and zeek (conn.log), zeek-dns, zeek-ssl, zeek-http\n"
    "  --ocsf-version VERSION    of -o ocsf: 1.1, 1.3, 1.5 or 1.8 (1.8)\n"
    "  --after CURSOR            all that came or changed after this cursor, in that order; \"begin\": everything\n"
    "  --show-cursor             at the end, say on standard error where to go on with --after\n"
    "  -h, --help                this text\n"
    "\n";

enum log_format { LOG_FORMAT_SHORT, LOG_FORMAT_WIDE, LOG_FORMAT_JSON, LOG_FORMAT_EXPORT, LOG_FORMAT_MAX };

static const char *const log_formats[] = {"short", "wide", "json"}; /* and those of audit/show/export.h */
_Static_assert(sizeof(log_formats) / sizeof(log_formats[0]) == LOG_FORMAT_EXPORT, "a word for each format");

struct log_options {
	struct log_filter filter;
	const char *after; /* NULL: in the order of time */
	uint64_t lines;
	enum log_format format;
	const struct export_format *export; /* of LOG_FORMAT_EXPORT */
	struct export_options export_options;
	bool lines_set, follow, colour, show_cursor;
};

enum log_option { LOG_AFTER = LOG_FILTER_OWN, LOG_SHOW_CURSOR, LOG_OCSF_VERSION };

static const struct option log_long_options[] = {
    {"lines", required_argument, NULL, 'n'},
    {"follow", no_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"after", required_argument, NULL, LOG_AFTER},
    {"show-cursor", no_argument, NULL, LOG_SHOW_CURSOR},
    {"ocsf-version", required_argument, NULL, LOG_OCSF_VERSION},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int
log_set_lines(struct log_options *options, const char *text, struct error *err)
{
	char *end;
	long long lines = strtoll(text, &end, 10);

	if (*text == '\0' || *end != '\0' || lines < 0)
		return error_set(err, ERROR_USAGE, "-n %s: not a number of lines", text);
	options->lines = (uint64_t)lines;
	options->lines_set = true;
	return 0;
}

static int
log_set_output(struct log_options *options, const char *text, struct error *err)
{
	unsigned int i = 0;

	while (i < LOG_FORMAT_EXPORT && strcmp(text, log_formats[i]) != 0)
		i++;
	options->format = (enum log_format)i;
	options->export = i < LOG_FORMAT_EXPORT ? NULL : export_find(text);
	if (i < LOG_FORMAT_EXPORT || options->export != NULL)
		return 0;
	return error_set(
	    err, ERROR_USAGE, "-o %s: short, wide, json, csv, ocsf, ecs, zeek, zeek-dns, zeek-ssl or zeek-http", text);
}

static int
log_set(struct log_options *options, int option, const char *value, struct error *err)
{
	switch (option) {
	case 'n':
		return log_set_lines(options, value, err);
	case 'f':
		options->follow = true;
		return 0;
	case 'o':
		return log_set_output(options, value, err);
	case LOG_AFTER:
		options->after = value;
		return 0;
	case LOG_SHOW_CURSOR:
		options->show_cursor = true;
		return 0;
	case LOG_OCSF_VERSION:
		return export_parse_ocsf(value, &options->export_options.ocsf, err);
	default:
		/* getopt_long has said what is wrong. */
		return error_set(err, ERROR_USAGE, "try: postern log --help");
	}
}

/* A format's place for kinds of rows limits which are asked for, so that -n counts what is printed. */
static int
log_check_export(struct log_options *options, struct error *err)
{
	if (options->export == NULL)
		return 0;
	options->filter.filter.kinds &= options->export->kinds;
	return options->filter.filter.kinds != 0
	    ? 0
	    : error_set(err, ERROR_USAGE, "-o %s has no place for rows of that --kind", options->export->word);
}

static int
log_check(struct log_options *options, struct error *err)
{
	struct query_filter *filter = &options->filter.filter;

	if (log_filter_finish(&options->filter, err) < 0 || log_check_export(options, err) < 0)
		return -1;
	if (options->follow && filter->until_us != 0)
		return error_set(err, ERROR_USAGE, "--follow and --until contradict each other");
	if (options->follow && options->after != NULL && options->lines_set)
		return error_set(err, ERROR_USAGE, "--follow has no end: it cannot be with --after and -n");
	if (options->after != NULL)
		filter->last = 0;
	else if (options->lines_set)
		filter->last = options->lines;
	else if (filter->since_us == 0 && options->export == NULL) /* what is taken away is all there is */
		filter->last = LOG_LAST;
	/* Whoever goes on from a cursor must neither miss nor repeat what changes meanwhile. */
	filter->will_follow = options->follow || options->after != NULL || options->show_cursor;
	options->export_options.following = filter->will_follow;
	options->colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	return 0;
}

/* 0, -1 with *err, or 1 when help was wanted. */
static int
log_read_options(int argc, char **argv, struct log_options *options, struct error *err)
{
	struct option all[LOG_FILTER_OPTIONS_MAX];
	int option, rc;

	optind = 0; /* postern itself may have used getopt before */
	log_filter_init(&options->filter);
	log_filter_options(log_long_options, all);
	while ((option = getopt_long(argc, argv, "hn:fo:", all, NULL)) != -1) {
		if (option == 'h')
			return 1;
		rc = log_filter_set(&options->filter, option, optarg, err);
		if (rc < 0 || (rc == 0 && log_set(options, option, optarg, err) < 0))
			return -1;
	}
	for (; optind < argc; optind++)
		if (log_filter_add_sandbox(&options->filter, argv[optind], err) < 0)
			return -1;
	return log_check(options, err);
}

static int
log_print(const struct log_options *options, const struct query_row *row, struct error *err)
{
	switch (options->format) {
	case LOG_FORMAT_SHORT:
		render_line_short(stdout, row, options->colour);
		break;
	case LOG_FORMAT_WIDE:
		render_line_wide(stdout, row, options->colour);
		break;
	case LOG_FORMAT_JSON:
		if (render_json(stdout, row) < 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		break;
	case LOG_FORMAT_EXPORT:
		if (options->export->row(stdout, &options->export_options, row) < 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		break;
	case LOG_FORMAT_MAX:
		break;
	}
	return 0;
}

/* Everything there is, or (max not 0) so many rows: 0 or -1. */
static int
log_print_all(const struct log_options *options, struct query *query,
    int (*next)(struct query *query, const struct query_row **ret_row, struct error *err), uint64_t max,
    struct error *err)
{
	const struct query_row *row;
	uint64_t rows = 0;
	int rc = 0;

	while ((max == 0 || rows < max) && (rc = next(query, &row, err)) == 1) {
		if (log_print(options, row, err) < 0)
			return -1;
		rows++;
	}
	if (rc < 0)
		return -1;
	if (fflush(stdout) != 0 || ferror(stdout))
		return error_set(err, ERROR_SYSTEM, "cannot write the output");
	return 0;
}

/* Go on behind a cursor; say so when the log is not what it was then. */
static int
log_seek(struct query *query, const char *cursor, struct error *err)
{
	enum query_seek_result result;

	if (query_seek(query, cursor, &result, err) < 0)
		return -1;
	switch (result) {
	case QUERY_SEEK_SAME:
		break;
	case QUERY_SEEK_PRUNED:
		fputs("postern log: rows behind the cursor were dropped for their age since\n", stderr);
		break;
	case QUERY_SEEK_OTHER_LOG:
		fputs("postern log: this is another log than the cursor's; all of it follows\n", stderr);
		break;
	}
	return 0;
}

/* The file is another one now (it was set aside, or rotated): all of the new one is news. */
static int
log_reopen(const struct log_options *options, struct query **query, struct error *err)
{
	struct query_filter filter = options->filter.filter;
	struct query *fresh = query_open(options->filter.db, err);
	char cursor[QUERY_CURSOR_MAX];
	enum query_seek_result result;

	if (fresh == NULL)
		return -1;
	filter.last = 0;
	query_cursor(*query, cursor);
	if (query_start(fresh, &filter, err) < 0 || query_seek(fresh, cursor, &result, err) < 0 ||
	    log_print_all(options, fresh, query_follow, 0, err) < 0) {
		query_close(fresh);
		return -1;
	}
	query_close(*query);
	*query = fresh;
	return 0;
}

static int
log_follow(const struct log_options *options, struct query **query, struct error *err)
{
	const struct timespec pause = {.tv_nsec = LOG_FOLLOW_MS * 1000000L};

	for (;;) {
		if (log_print_all(options, *query, query_follow, 0, err) < 0)
			return -1;
		nanosleep(&pause, NULL);
		/* Between two files there is a moment without one. */
		if (query_is_stale(*query) && log_reopen(options, query, err) < 0 && err->code != ERROR_NOT_FOUND &&
		    err->code != ERROR_CORRUPT)
			return -1;
	}
}

static int
log_run(const struct log_options *options, struct error *err)
{
	struct query *query = query_open(options->filter.db, err);
	char cursor[QUERY_CURSOR_MAX];
	int rc;

	if (query == NULL)
		return -1;
	rc = query_start(query, &options->filter.filter, err);
	if (rc == 0 && options->after != NULL)
		rc = log_seek(query, options->after, err);
	if (rc == 0 && options->export != NULL && options->export->begin != NULL)
		options->export->begin(stdout);
	/* "-n 0 -f": only what is new. */
	if (rc == 0 && !(options->lines_set && options->lines == 0))
		rc = options->after == NULL ? log_print_all(options, query, query_next, 0, err)
					    : log_print_all(options, query, query_follow, options->lines, err);
	if (rc == 0 && options->follow)
		rc = log_follow(options, &query, err);
	if (rc == 0 && options->export != NULL && options->export->end != NULL)
		options->export->end(stdout);
	if (rc == 0 && options->show_cursor) {
		query_cursor(query, cursor);
		fprintf(stderr, "cursor: %s\n", cursor);
	}
	query_close(query);
	return rc;
}

int
cli_log(int argc, char **argv)
{
	static struct log_options options; /* large */
	char safe[ERROR_TEXT_MAX];
	struct error err;
	int rc;

	options = (struct log_options){.format = LOG_FORMAT_SHORT, .export_options.ocsf = EXPORT_OCSF_1_8};
	rc = log_read_options(argc, argv, &options, &err);

	if (rc == 1) {
		fputs(cli_log_usage, stdout);
		fputs(log_filter_usage, stdout);
		return 0;
	}
	if (rc == 0)
		rc = log_run(&options, &err);
	if (rc == 0)
		return 0;
	escape_terminal(err.text, strlen(err.text), safe, sizeof(safe));
	fprintf(stderr, "postern log: %s\n", safe);
	return error_exit_status(err.code);
}
