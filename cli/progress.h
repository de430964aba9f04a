/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The progress of a long task on a terminal: a percentage on standard error, erased at the end. */
#ifndef POSTERN_CLI_PROGRESS_H
#define POSTERN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;    /* standard error is a terminal */
	int64_t shown_ms; /* last; 0: not yet */
};

/* Nothing is shown unless standard error is a terminal. */
void progress_start(struct progress *progress);

/* A progress_handler; context is the struct progress: done of total is done; total 0 counts as all. Shown a few times a
 * second at most. */
void progress_show(uint64_t done, uint64_t total, void *context);

/* Erase the percentage. */
void progress_end(struct progress *progress);

#endif
