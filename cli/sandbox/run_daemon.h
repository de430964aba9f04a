/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A daemon that `postern run` starts when none answers; it stops when no sandbox is left. */
#ifndef POSTERN_CLI_RUN_DAEMON_H
#define POSTERN_CLI_RUN_DAEMON_H

#include "base/error.h"

/* The posternd beside this program, else the installed one; NULL: there is none. Static storage. */
const char *run_daemon_path(void);

/* Start posternd in the background with --exit-idle and wait
 * until it answers. Its messages go to log_path. 0, or -1 with the end of what it said. */
int run_daemon_start(const char *log_path, struct error *err);

#endif
