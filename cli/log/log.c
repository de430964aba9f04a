/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern log: rows of the audit log, read from the database itself, with the daemon running or not. */
#include "audit/query/query.h"
#include "audit/show/export.h"
#include "audit/show/render.h"
#include "cli/commands.h"
#include "cli/log/log_filter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Rows shown without -n and --since. */
#define LOG_LAST 200
/* Between readings with --follow. */
#define LOG_FOLLOW_MS 200

enum log_format { LOG_FORMAT_SHORT, LOG_FORMAT_WIDE, LOG_FORMAT_JSON, LOG_FORMAT_EXPORT, LOG_FORMAT_MAX };

static const char *const log_formats[] = {"short", "wide", "json"}; /* and those of audit/show/export.h */
_Static_assert(sizeof(log_formats) / sizeof(log_formats[0]) == LOG_FORMAT_EXPORT, "a word for each format");

static struct {
	struct query_filter filter;
	const char *db;
	const char *after; /* NULL: in the order of time */
	int64_t lines;     /* -1: not said */
	enum log_format format;
	const struct export_format *export; /* of LOG_FORMAT_EXPORT */
	struct export_options export_options;
	bool follow, colour, show_cursor;
} options = {.lines = -1, .export_options.ocsf = EXPORT_OCSF_1_8};

static int
log_parse_output(const struct args_option *option, const char *text, struct error *err)
{
	unsigned int i = 0;

	(void)option;
	while (i < LOG_FORMAT_EXPORT && strcmp(text, log_formats[i]) != 0)
		i++;
	options.format = (enum log_format)i;
	options.export = i < LOG_FORMAT_EXPORT ? NULL : export_find(text);
	if (i < LOG_FORMAT_EXPORT || options.export != NULL)
		return 0;
	return error_set(
	    err, ERROR_USAGE, "not one of short, wide, json, csv, ocsf, ecs, zeek, zeek-dns, zeek-ssl, zeek-http");
}

static int
log_parse_ocsf(const struct args_option *option, const char *text, struct error *err)
{
	(void)option;
	return export_parse_ocsf(text, &options.export_options.ocsf, err);
}

static const struct args_option log_options[] = {
    {'n', "lines", "N", "the last N (200; with --since and in export formats all); with --after the first N",
	.parse = command_parse_number, .target = &options.lines, .max = INT64_MAX},
    {'f', "follow", NULL, "wait for more; open connections come again at their end and with each minute's bytes",
	.flag = &options.follow},
    {'o', "output", "FORMAT", "short, wide, json (one object a line); csv, ocsf, ecs, zeek, zeek-dns, -ssl, -http",
	.parse = log_parse_output},
    {0, "ocsf-version", "VERSION", "of -o ocsf: 1.1, 1.3, 1.5 or 1.8 (1.8)", .parse = log_parse_ocsf},
    {0, "after", "CURSOR", "what came or changed after this cursor, in that order; \"begin\": everything",
	.text = &options.after},
    {0, "show-cursor", NULL, "print the cursor to continue from with --after on standard error",
	.flag = &options.show_cursor},
    {0},
};

static int
log_check(const struct command *command, struct error *err)
{
	struct query_filter *filter = &options.filter;

	if (log_filter_finish(&command->operands, filter, &options.db, err) < 0)
		return -1;
	/* A format's kinds of rows limit those asked for, so that -n counts what is printed. */
	if (options.export != NULL) {
		filter->kinds &= options.export->kinds;
		if (filter->kinds == 0)
			return error_set(
			    err, ERROR_USAGE, "-o %s has no place for rows of that --kind", options.export->word);
	}
	if (options.follow && filter->until_us != 0)
		return command_usage(err, "--follow and --until contradict each other");
	if (options.follow && options.after != NULL && options.lines >= 0)
		return command_usage(err, "--follow has no end: it excludes --after with -n");
	if (options.after != NULL)
		filter->last = 0;
	else if (options.lines >= 0)
		filter->last = (uint64_t)options.lines;
	else if (filter->since_us == 0 && options.export == NULL) /* an export is complete */
		filter->last = LOG_LAST;
	/* A reader that continues from a cursor must neither miss nor repeat what changes meanwhile. */
	filter->will_follow = options.follow || options.after != NULL || options.show_cursor;
	options.export_options.following = filter->will_follow;
	options.colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	return 0;
}

static int
log_print(const struct query_row *row, struct error *err)
{
	switch (options.format) {
	case LOG_FORMAT_SHORT:
		render_line_short(stdout, row, options.colour);
		break;
	case LOG_FORMAT_WIDE:
		render_line_wide(stdout, row, options.colour);
		break;
	case LOG_FORMAT_JSON:
		if (render_json(stdout, row) < 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		break;
	case LOG_FORMAT_EXPORT:
		if (options.export->row(stdout, &options.export_options, row) < 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		break;
	case LOG_FORMAT_MAX:
		break;
	}
	return 0;
}

/* Prints all rows, or (max above 0) so many. 0 or -1. */
static int
log_print_all(struct query *query,
    int (*next)(struct query *query, const struct query_row **ret_row, struct error *err), int64_t max,
    struct error *err)
{
	const struct query_row *row;
	int64_t rows = 0;
	int rc = 0;

	while ((max <= 0 || rows < max) && (rc = next(query, &row, err)) == 1) {
		if (log_print(row, err) < 0)
			return -1;
		rows++;
	}
	if (rc < 0)
		return -1;
	return command_flush(err);
}

/* Continues after a cursor; warns when rows are missing since, or the log is another one. */
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
		command_warn("rows after the cursor have been pruned");
		break;
	case QUERY_SEEK_OTHER_LOG:
		command_warn("the cursor is from another log; all of this one follows");
		break;
	}
	return 0;
}

/* The file has been replaced (set aside, or rotated): all rows of the new one are new. */
static int
log_reopen(struct query **query, struct error *err)
{
	struct query_filter filter = options.filter;
	struct query *fresh = query_open(options.db, err);
	char cursor[QUERY_CURSOR_MAX];
	enum query_seek_result result;

	if (fresh == NULL)
		return -1;
	filter.last = 0;
	query_cursor(*query, cursor);
	if (query_start(fresh, &filter, err) < 0 || query_seek(fresh, cursor, &result, err) < 0 ||
	    log_print_all(fresh, query_follow, 0, err) < 0) {
		query_close(fresh);
		return -1;
	}
	query_close(*query);
	*query = fresh;
	return 0;
}

static int
log_follow(struct query **query, struct error *err)
{
	const struct timespec pause = {.tv_nsec = LOG_FOLLOW_MS * 1000000L};

	for (;;) {
		if (log_print_all(*query, query_follow, 0, err) < 0)
			return -1;
		nanosleep(&pause, NULL);
		/* While the file is being replaced there is none for a moment. */
		if (query_is_stale(*query) && log_reopen(query, err) < 0 && err->code != ERROR_NOT_FOUND &&
		    err->code != ERROR_CORRUPT)
			return -1;
	}
}

static int
log_run(const struct command *command, struct error *err)
{
	char cursor[QUERY_CURSOR_MAX];
	struct query *query;
	int rc;

	if (log_check(command, err) < 0 || (query = query_open(options.db, err)) == NULL)
		return -1;
	rc = query_start(query, &options.filter, err);
	if (rc == 0 && options.after != NULL)
		rc = log_seek(query, options.after, err);
	if (rc == 0 && options.export != NULL && options.export->begin != NULL)
		options.export->begin(stdout);
	/* "-n 0 -f": only what is new. */
	if (rc == 0 && !(options.lines == 0))
		rc = options.after == NULL ? log_print_all(query, query_next, 0, err)
					   : log_print_all(query, query_follow, options.lines, err);
	if (rc == 0 && options.follow)
		rc = log_follow(&query, err);
	if (rc == 0 && options.export != NULL && options.export->end != NULL)
		options.export->end(stdout);
	if (rc == 0 && options.show_cursor) {
		query_cursor(query, cursor);
		fprintf(stderr, "cursor: %s\n", cursor);
	}
	query_close(query);
	return rc;
}

const struct command_row log_command = {
    .name = "log",
    .operands = "[SANDBOX]...",
    .summary = "Show what sandboxes tried to reach, and what came of it; oldest first.",
    .page = "postern-log(1)",
    .syntax = {.groups = {log_options, log_filter_options}, .before = log_filter_before, .abbreviates = true},
    .run = log_run,
};
