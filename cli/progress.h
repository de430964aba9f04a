/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How far a long look at something has come, on a terminal: a percentage on standard error that is gone at the end. */
#ifndef POSTERN_CLI_PROGRESS_H
#define POSTERN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct progress {
	bool is_shown;    /* somebody is there to see it */
	int64_t shown_ms; /* last; 0: not yet */
};

/* Standard error is a terminal, or nothing is ever shown. */
void progress_start(struct progress *progress);

/* So much of total is done; total 0 counts as all. Shown some times a second at most. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total);

/* Leave the line as it was. */
void progress_end(struct progress *progress);

#endif
