/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention believes a clock that goes on, not one that jumps. */
#include "gateway/auditor/retain_clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define S INT64_C(1000000)
#define HOUR (3600 * S)
#define DAY (24 * HOUR)
#define NOW (20000 * DAY)
#define KEEP_S (90 * 24 * 3600)

static struct retain_clock retain;

static void
test_a_clock_that_goes_on_is_believed(void **state)
{
	(void)state;
	retain_clock_init(&retain, KEEP_S, NOW - HOUR, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 100 * S), 0);
	assert_false(retain_clock_waits(&retain, NOW));
	/* Also over a sleep, which the time since boot counts, and over what a time server sets right. */
	assert_int_equal(retain_clock_look(&retain, NOW + 80 * DAY, 100 * S + 80 * DAY), 0);
	assert_int_equal(retain_clock_look(&retain, NOW + 80 * DAY + 2 * HOUR, 100 * S + 80 * DAY), 0);
	assert_int_equal(retain_clock_look(&retain, NOW + DAY, 200 * S + 80 * DAY), 0);
	assert_false(retain_clock_waits(&retain, NOW + DAY));
}

static void
test_a_jump_ahead_is_waited_out(void **state)
{
	int64_t wrong = NOW + 100 * 365 * DAY;

	(void)state;
	retain_clock_init(&retain, KEEP_S, NOW, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 100 * S), 0);
	assert_int_equal(retain_clock_look(&retain, wrong + 10 * S, 110 * S), wrong - NOW);
	assert_true(retain_clock_waits(&retain, wrong + 10 * S));
	/* Told once. */
	assert_int_equal(retain_clock_look(&retain, wrong + 20 * S, 120 * S), 0);
	assert_true(retain_clock_waits(&retain, wrong + DAY));
	/* Who lets it stand for a day means it. */
	assert_false(retain_clock_waits(&retain, wrong + DAY + 11 * S));
	/* Or it is set right again, and then jumps once more. */
	assert_int_equal(retain_clock_look(&retain, NOW + 30 * S, 130 * S), 0);
	assert_false(retain_clock_waits(&retain, NOW + 30 * S));
	assert_int_equal(retain_clock_look(&retain, NOW + 40 * DAY, 140 * S), 40 * DAY - 40 * S);
	assert_true(retain_clock_waits(&retain, NOW + 40 * DAY));
}

static void
test_a_start_with_a_wrong_clock_is_waited_out(void **state)
{
	(void)state;
	retain_clock_init(&retain, KEEP_S, NOW - 60 * DAY, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 5 * S), 60 * DAY);
	assert_true(retain_clock_waits(&retain, NOW));
	/* Started again meanwhile: the newest record is of the wrong time, too. */
	retain_clock_init(&retain, KEEP_S, NOW + HOUR, NOW);
	assert_int_equal(retain_clock_look(&retain, NOW + 2 * HOUR, 5 * S), 0);
	assert_true(retain_clock_waits(&retain, NOW + 2 * HOUR));
	assert_false(retain_clock_waits(&retain, NOW + DAY));
	/* A weekend, or a new log. */
	retain_clock_init(&retain, KEEP_S, NOW - 3 * DAY, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 5 * S), 0);
	retain_clock_init(&retain, KEEP_S, 0, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 5 * S), 0);
	assert_false(retain_clock_waits(&retain, NOW));
}

/* Who keeps an hour does not wait for a day, and who keeps a minute has no alarm at each start. */
static void
test_short_times(void **state)
{
	(void)state;
	retain_clock_init(&retain, 3600, NOW, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 100 * S), 0);
	assert_int_equal(retain_clock_look(&retain, NOW + HOUR, 100 * S), HOUR);
	assert_true(retain_clock_waits(&retain, NOW + HOUR + HOUR - S));
	assert_false(retain_clock_waits(&retain, NOW + HOUR + HOUR));
	retain_clock_init(&retain, 60, NOW - 60 * S, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 100 * S), 0);
	retain_clock_init(&retain, 0, NOW - 1000 * DAY, 0);
	assert_int_equal(retain_clock_look(&retain, NOW, 100 * S), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_a_clock_that_goes_on_is_believed),
	    cmocka_unit_test(test_a_jump_ahead_is_waited_out),
	    cmocka_unit_test(test_a_start_with_a_wrong_clock_is_waited_out),
	    cmocka_unit_test(test_short_times),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
