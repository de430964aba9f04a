/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern log, top and stats: the audit log, read from the database itself, with the daemon running or not. */
#ifndef POSTERN_CLI_LOG_H
#define POSTERN_CLI_LOG_H

extern const char cli_log_usage[];
extern const char cli_top_usage[];
extern const char cli_stats_usage[];

/* argv[0] is the command's name. Return the exit status. */
int cli_log(int argc, char **argv);
int cli_top(int argc, char **argv);
int cli_stats(int argc, char **argv);

#endif
