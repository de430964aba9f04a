/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Points in time as people type them: "10m" (ago), "2h", "7d", or RFC 3339. */
#ifndef POSTERN_CLI_WHEN_H
#define POSTERN_CLI_WHEN_H

#include "base/error.h"

#include <stdint.h>

/* now_us: what a relative time counts back from. Units: s, m, h, d, w; several may follow each other ("1h30m").
 * Absolute: "2026-11-29T20:31:02.5Z", with "+01:00" for "Z" or without either in local time; seconds, or the whole time
 * of day, may be left out; "T" may be a space. *ret_us: microseconds since the epoch. Returns 0, or -1 with
 * ERROR_USAGE. */
int when_parse(const char *text, int64_t now_us, int64_t *ret_us, struct error *err);

#endif
