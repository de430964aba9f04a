/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern log: the audit log, read from the database itself, with the daemon running or not. */
#ifndef POSTERN_CLI_LOG_H
#define POSTERN_CLI_LOG_H

extern const char cli_log_usage[];

/* argv[0] is "log". Returns the exit status. */
int cli_log(int argc, char **argv);

#endif
