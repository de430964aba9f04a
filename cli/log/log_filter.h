/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What log, top and stats select rows by: the same options, words and meaning. */
#ifndef POSTERN_CLI_LOG_FILTER_H
#define POSTERN_CLI_LOG_FILTER_H

#include "audit/query/query_filter.h"
#include "base/error.h"

#include <getopt.h>
#include <limits.h>

/* Values that getopt_long returns for the options of log_filter_options; a command's own begin at LOG_FILTER_OWN. */
#define LOG_FILTER_FIRST 1000
#define LOG_FILTER_OWN 2000
/* Options of a command, its own and these. */
#define LOG_FILTER_OPTIONS_MAX 64

struct log_filter {
	struct query_filter filter; /* its terms are those below: it must not be copied away from them */
	struct query_term terms[QUERY_TERMS_MAX];
	unsigned int kinds, not_kinds;
	bool negate; /* the next filter is negated */
	char db[PATH_MAX];
};

/* Help for these options. */
extern const char log_filter_usage[];

/* Begin with what holds without options: the daemon's database, everything in it. */
void log_filter_init(struct log_filter *filter);

/* Own options (NULL-terminated) and these, together in ret_options. */
void log_filter_options(const struct option *own, struct option ret_options[LOG_FILTER_OPTIONS_MAX]);

/* One option that getopt_long returned: 1 when it was one of these, 0 when it is the command's own, -1 with
 * ERROR_USAGE. value must stay. */
int log_filter_set(struct log_filter *filter, int option, const char *value, struct error *err);

/* A word that is no option: a sandbox's name. 0, or -1 with ERROR_USAGE. */
int log_filter_add_sandbox(struct log_filter *filter, const char *name, struct error *err);

/* After the last option: is what was said possible? 0, or -1 with ERROR_USAGE. */
int log_filter_finish(struct log_filter *filter, struct error *err);

#endif
