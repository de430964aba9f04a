/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sums and differences of numbers from a log that may hold any: they stop at the largest and the smallest there is. */
#ifndef POSTERN_AUDIT_SATURATE_H
#define POSTERN_AUDIT_SATURATE_H

#include <stdint.h>

static inline int64_t
saturate_add(int64_t a, int64_t b)
{
	int64_t sum;

	return !__builtin_add_overflow(a, b, &sum) ? sum : b < 0 ? INT64_MIN : INT64_MAX;
}

static inline int64_t
saturate_sub(int64_t a, int64_t b)
{
	int64_t difference;

	return !__builtin_sub_overflow(a, b, &difference) ? difference : b < 0 ? INT64_MAX : INT64_MIN;
}

/* The same for statements: sum_capped(X) is SQLite's sum(X) of whole numbers, which fails when it becomes too large,
 * and one row could so hide all others. Returns SQLite's code. */
struct sqlite3;
int saturate_functions(struct sqlite3 *db);

#endif
