/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/progress.h"

#include "base/clock.h"

#include <stdio.h>
#include <unistd.h>

/* Between two percentages: no flicker, and no time lost. */
#define PROGRESS_MS 200

void
progress_start(struct progress *progress)
{
	*progress = (struct progress){.is_shown = isatty(STDERR_FILENO) == 1};
}

void
progress_show(uint64_t done, uint64_t total, void *context)
{
	struct progress *progress = context;
	int64_t now_ms = clock_mono_ms();

	if (!progress->is_shown || now_ms - progress->shown_ms < PROGRESS_MS)
		return;
	progress->shown_ms = now_ms;
	fprintf(stderr, "\r%3d %%", total == 0 ? 100 : (int)((double)done / (double)total * 100));
}

void
progress_end(struct progress *progress)
{
	if (progress->shown_ms != 0)
		fprintf(stderr, "\r     \r");
}
