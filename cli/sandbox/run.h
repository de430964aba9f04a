/* SPDX-License-Identifier: GPL-3.0-or-later */
/* `postern run`: one command in a sandbox of its own, and what it reached. */
#ifndef POSTERN_CLI_RUN_H
#define POSTERN_CLI_RUN_H

extern const char cli_run_usage[];
int cli_run(int argc, char **argv);

#endif
