/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What log, top and stats select rows by: the same options with the same meaning. */
#ifndef POSTERN_CLI_LOG_FILTER_H
#define POSTERN_CLI_LOG_FILTER_H

#include "audit/query/query_filter.h"
#include "cli/command.h"

/* The filters, for a command's syntax, and its check that --not stands before one. They fill the one filter of this
 * process. */
extern const struct args_option log_filter_options[];
int log_filter_before(const struct args_option *option, struct error *err);

/* After the options: add the operands, names of sandboxes, and check that rows can match. *ret_filter points to static
 * storage; *ret_db is the database to read. 0, or -1 with ERROR_USAGE. */
int log_filter_finish(
    const struct args_list *sandboxes, struct query_filter *ret_filter, const char **ret_db, struct error *err);

#endif
