/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/window.h"

#include <string.h>

void
window_init(struct window *window, int64_t span_ms)
{
	memset(window, 0, sizeof(*window));
	window->part_ms = span_ms / WINDOW_STEPS;
}

uint64_t
window_count(struct window *window, int64_t now_ms)
{
	int64_t now = now_ms / window->part_ms;
	int64_t steps = now - window->at > WINDOW_PARTS ? WINDOW_PARTS : now - window->at;

	for (int64_t i = 1; i <= steps; i++) {
		uint32_t *part = &window->parts[(now - steps + i) % WINDOW_PARTS];

		window->sum -= *part;
		*part = 0;
	}
	if (now > window->at)
		window->at = now;
	return window->sum;
}

void
window_add(struct window *window, int64_t now_ms)
{
	window_count(window, now_ms);
	window->parts[window->at % WINDOW_PARTS]++;
	window->sum++;
}
