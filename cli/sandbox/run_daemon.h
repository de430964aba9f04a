/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A daemon for `postern run` when none answers: ours alone, stopping by itself when no sandbox is left. */
#ifndef POSTERN_CLI_RUN_DAEMON_H
#define POSTERN_CLI_RUN_DAEMON_H

#include "base/error.h"

/* Start posternd (beside this program, else from PATH's system folders) in the background with --exit-idle and wait
 * until it answers. Its messages go to log_path. 0, or -1 with the end of what it said. */
int run_daemon_start(const char *log_path, struct error *err);

#endif
