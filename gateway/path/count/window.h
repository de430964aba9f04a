/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How many times something happened within the last second or minute: a window that slides in steps. */
#ifndef POSTERN_GATEWAY_WINDOW_H
#define POSTERN_GATEWAY_WINDOW_H

#include <stdint.h>

/* Steps that a window slides in: it forgets what is older than its span by up to one of them, and nothing younger. */
#define WINDOW_STEPS 50
#define WINDOW_PARTS (WINDOW_STEPS + 1)

struct window {
	int64_t part_ms; /* span divided by WINDOW_STEPS */
	int64_t at;      /* number of the newest part since the clock began */
	uint64_t sum;
	uint32_t parts[WINDOW_PARTS];
};

void window_init(struct window *window, int64_t span_ms);
/* Times within the span that ends now. now_ms: clock_mono_ms, never less than before. */
uint64_t window_count(struct window *window, int64_t now_ms);
void window_add(struct window *window, int64_t now_ms);

#endif
