/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures of a benchmark beside what they ought to be. */
#ifndef POSTERN_TESTS_BENCH_FIGURES_H
#define POSTERN_TESTS_BENCH_FIGURES_H

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

/* Was one above its most? */
static bool missed;

static inline void fail(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

static inline void
fail(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	exit(2);
}

/* most 0: there is no such thing. */
static inline void
show(const char *what, double value, const char *unit, double most)
{
	bool over = most > 0 && value > most;

	printf("%-44s %10.3f %s", what, value, unit);
	if (most > 0)
		printf("  (at most %g)%s", most, over ? "  MISSED" : "");
	printf("\n");
	missed = missed || over;
}

#endif
