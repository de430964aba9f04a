/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/log.h"

#include "audit/query.h"
#include "audit/render.h"
#include "base/clock.h"
#include "base/escape.h"
#include "base/paths.h"
#include "cli/when.h"

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
    "usage: postern log [options] [SANDBOX]\n"
    "\n"
    "Show what sandboxes tried to reach, and what came of it; oldest first.\n"
    "\n"
    "  SANDBOX, --sandbox NAME   only this sandbox\n"
    "  --denied                  only what was not allowed\n"
    "  --host HOST               only this host; *.example.com: only hosts below it\n"
    "  --kind KIND               connection, dns or event; may be given several times\n"
    "  --since TIME              from then on: 10m, 2h, 7d ago, or 2026-11-29T20:31:00Z\n"
    "  --until TIME              before then\n"
    "  -n, --lines N             only the last N (200; with --since: all)\n"
    "  -f, --follow              wait for more; an open connection is shown again when it is closed\n"
    "  -o, --output FORMAT       short; wide: more of each, on one line;\n"
    "                            json: one object a line, see postern-audit(5)\n"
    "  --db FILE                 read this database\n"
    "  -h, --help                this text\n";

enum log_format { LOG_FORMAT_SHORT, LOG_FORMAT_WIDE, LOG_FORMAT_JSON, LOG_FORMAT_MAX };

static const char *const log_formats[] = {"short", "wide", "json"};
_Static_assert(sizeof(log_formats) / sizeof(log_formats[0]) == LOG_FORMAT_MAX, "a word for each format");

struct log_options {
	struct query_filter filter;
	char db[PATH_MAX];
	enum log_format format;
	bool lines_set, follow, colour;
};

enum log_option {
	LOG_SANDBOX = 256,
	LOG_DENIED,
	LOG_HOST,
	LOG_KIND,
	LOG_SINCE,
	LOG_UNTIL,
	LOG_DB,
};

static const struct option log_long_options[] = {
    {"sandbox", required_argument, NULL, LOG_SANDBOX},
    {"denied", no_argument, NULL, LOG_DENIED},
    {"host", required_argument, NULL, LOG_HOST},
    {"kind", required_argument, NULL, LOG_KIND},
    {"since", required_argument, NULL, LOG_SINCE},
    {"until", required_argument, NULL, LOG_UNTIL},
    {"lines", required_argument, NULL, 'n'},
    {"follow", no_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"db", required_argument, NULL, LOG_DB},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static int
log_set_host(struct query_filter *filter, const char *text, struct error *err)
{
	enum name_error bad;

	filter->has_host = true;
	filter->host_wildcard = strncmp(text, "*.", 2) == 0;
	if (filter->host_wildcard)
		text += 2;
	bad = name_from_user(text, strlen(text), &filter->host);
	return bad == NAME_OK ? 0 : error_set(err, ERROR_USAGE, "--host %s: %s", text, name_error_text(bad));
}

static int
log_set_kind(struct query_filter *filter, const char *text, struct error *err)
{
	if (strcmp(text, "connection") == 0)
		filter->kinds |= QUERY_CONNECTION;
	else if (strcmp(text, "dns") == 0)
		filter->kinds |= QUERY_DNS;
	else if (strcmp(text, "event") == 0)
		filter->kinds |= QUERY_EVENT;
	else
		return error_set(err, ERROR_USAGE, "--kind %s: connection, dns or event", text);
	return 0;
}

static int
log_set_lines(struct log_options *options, const char *text, struct error *err)
{
	char *end;
	long long lines = strtoll(text, &end, 10);

	if (*text == '\0' || *end != '\0' || lines < 0)
		return error_set(err, ERROR_USAGE, "-n %s: not a number of lines", text);
	options->filter.last = (uint64_t)lines;
	options->lines_set = true;
	return 0;
}

static int
log_set_output(struct log_options *options, const char *text, struct error *err)
{
	for (unsigned int i = 0; i < LOG_FORMAT_MAX; i++) {
		if (strcmp(text, log_formats[i]) != 0)
			continue;
		options->format = (enum log_format)i;
		return 0;
	}
	return error_set(err, ERROR_USAGE, "-o %s: short, wide or json", text);
}

static int
log_set_sandbox(struct log_options *options, const char *name, struct error *err)
{
	if (options->filter.sandbox != NULL)
		return error_set(err, ERROR_USAGE, "one sandbox only: %s or %s", options->filter.sandbox, name);
	options->filter.sandbox = name;
	return 0;
}

static int
log_set_db(struct log_options *options, const char *path, struct error *err)
{
	if (strlen(path) >= sizeof(options->db))
		return error_set(err, ERROR_USAGE, "--db: the path is too long");
	memcpy(options->db, path, strlen(path) + 1);
	return 0;
}

static int
log_set(struct log_options *options, int option, const char *value, struct error *err)
{
	switch (option) {
	case LOG_SANDBOX:
		return log_set_sandbox(options, value, err);
	case LOG_DENIED:
		options->filter.denied = true;
		return 0;
	case LOG_HOST:
		return log_set_host(&options->filter, value, err);
	case LOG_KIND:
		return log_set_kind(&options->filter, value, err);
	case LOG_SINCE:
		return when_parse(value, clock_real_us(), &options->filter.since_us, err);
	case LOG_UNTIL:
		return when_parse(value, clock_real_us(), &options->filter.until_us, err);
	case 'n':
		return log_set_lines(options, value, err);
	case 'f':
		options->follow = true;
		return 0;
	case 'o':
		return log_set_output(options, value, err);
	case LOG_DB:
		return log_set_db(options, value, err);
	default:
		/* getopt_long has said what is wrong. */
		return error_set(err, ERROR_USAGE, "try: postern log --help");
	}
}

static int
log_check(struct log_options *options, struct error *err)
{
	if ((options->filter.denied || options->filter.has_host) && options->filter.kinds == QUERY_EVENT)
		return error_set(err, ERROR_USAGE,
		    "events have neither host nor verdict: --kind event cannot be with --host "
		    "or --denied");
	if (options->follow && options->filter.until_us != 0)
		return error_set(err, ERROR_USAGE, "--follow and --until contradict each other");
	return 0;
}

/* 0, -1 with *err, or 1 when help was wanted. */
static int
log_read_options(int argc, char **argv, struct log_options *options, struct error *err)
{
	int option;

	optind = 0; /* postern itself may have used getopt before */
	snprintf(options->db, sizeof(options->db), "%s/audit/audit.db", paths_state_dir());
	while ((option = getopt_long(argc, argv, "hn:fo:", log_long_options, NULL)) != -1) {
		if (option == 'h')
			return 1;
		if (log_set(options, option, optarg, err) < 0)
			return -1;
	}
	for (; optind < argc; optind++)
		if (log_set_sandbox(options, argv[optind], err) < 0)
			return -1;
	if (!options->lines_set && options->filter.since_us == 0)
		options->filter.last = LOG_LAST;
	options->filter.will_follow = options->follow;
	options->colour = isatty(STDOUT_FILENO) && getenv("NO_COLOR") == NULL;
	return log_check(options, err);
}

static int
log_print(const struct log_options *options, const struct query_row *row, struct error *err)
{
	switch (options->format) {
	case LOG_FORMAT_SHORT:
		render_short(stdout, row, options->colour);
		break;
	case LOG_FORMAT_WIDE:
		render_wide(stdout, row, options->colour);
		break;
	case LOG_FORMAT_JSON:
		if (render_json(stdout, row) < 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		break;
	case LOG_FORMAT_MAX:
		break;
	}
	return 0;
}

/* Everything there is: 0 or -1. */
static int
log_print_all(const struct log_options *options, struct query *query,
    int (*next)(struct query *query, const struct query_row **ret_row, struct error *err), struct error *err)
{
	const struct query_row *row;
	int rc;

	while ((rc = next(query, &row, err)) == 1)
		if (log_print(options, row, err) < 0)
			return -1;
	if (rc == 0 && (fflush(stdout) != 0 || ferror(stdout)))
		return error_set(err, ERROR_SYSTEM, "cannot write the output");
	return rc;
}

/* The file is another one now (it was set aside, or rotated): all of the new one is news. */
static int
log_reopen(const struct log_options *options, struct query **query, struct error *err)
{
	struct query_filter filter = options->filter;
	struct query *fresh = query_open(options->db, err);

	if (fresh == NULL)
		return -1;
	filter.last = 0;
	if (query_start(fresh, &filter, err) < 0 || log_print_all(options, fresh, query_next, err) < 0) {
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
		if (log_print_all(options, *query, query_follow, err) < 0)
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
	struct query *query = query_open(options->db, err);
	int rc;

	if (query == NULL)
		return -1;
	rc = query_start(query, &options->filter, err);
	/* "-n 0 -f": only what is new. */
	if (rc == 0 && !(options->lines_set && options->filter.last == 0))
		rc = log_print_all(options, query, query_next, err);
	if (rc == 0 && options->follow)
		rc = log_follow(options, &query, err);
	query_close(query);
	return rc;
}

int
cli_log(int argc, char **argv)
{
	struct log_options options = {.format = LOG_FORMAT_SHORT};
	char safe[ERROR_TEXT_MAX];
	struct error err;
	int rc = log_read_options(argc, argv, &options, &err);

	if (rc == 1) {
		fputs(cli_log_usage, stdout);
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
