/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Numbers as people write them in a policy: counts, sizes, durations, points in time. Strict: one spelling is one
 * value, no sign, no leading zero, no space, no locale. */
#ifndef POSTERN_POLICY_QUANTITY_H
#define POSTERN_POLICY_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* "18446744073709551615s" and more; "2026-12-01T10:00:00.123456Z". */
#define QUANTITY_TEXT_MAX 48

/* Decimal digits. False otherwise, or above max. */
bool quantity_parse_count(const char *text, size_t len, uint64_t max, uint64_t *ret_count);

/* Digits, and behind them nothing or one of KiB, MiB, GiB (powers of 1024), kB, MB, GB (powers of 1000). */
bool quantity_parse_size(const char *text, size_t len, uint64_t max, uint64_t *ret_bytes);
/* In the largest unit of 1024 that divides it. */
const char *quantity_format_size(uint64_t bytes, char ret_text[QUANTITY_TEXT_MAX]);

/* "90s", "10m", "2h", "7d", "2w"; several may follow each other, the larger first ("1h30m"). */
bool quantity_parse_duration(const char *text, size_t len, uint32_t max_s, uint32_t *ret_s);
const char *quantity_format_duration(uint32_t seconds, char ret_text[QUANTITY_TEXT_MAX]);

/* RFC 3339 section 5.6 with 'T' and a zone: "2026-12-01T10:00:00Z", "2026-12-01T11:00:00.5+01:00"; seconds may be left
 * out. Years 2000..9999, no leap seconds. *ret_us: microseconds since the epoch. */
bool quantity_parse_instant(const char *text, size_t len, int64_t *ret_us);
/* In UTC, with as many digits behind the point as it takes; what cannot be read back (before 2000) prints as well. */
const char *quantity_format_instant(int64_t us, char ret_text[QUANTITY_TEXT_MAX]);

#endif
