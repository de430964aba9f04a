/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Times as people type them. */
#include "cli/when.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

/* 2026-11-29T20:31:00Z */
#define NOW_S 1795984260

static void
test_good_times(void **state)
{
	static const struct {
		const char *text;
		int64_t want_us;
	} cases[] = {
	    {"0s", NOW_S * 1000000ll},
	    {"10m", (NOW_S - 600) * 1000000ll},
	    {"2h", (NOW_S - 7200) * 1000000ll},
	    {"1h30m", (NOW_S - 5400) * 1000000ll},
	    {"7d", (NOW_S - 7 * 86400) * 1000000ll},
	    {"1w", (NOW_S - 7 * 86400) * 1000000ll},
	    {"2026-11-29T20:31:00Z", NOW_S * 1000000ll},
	    {"2026-11-29t20:31:00z", NOW_S * 1000000ll},
	    {"2026-11-29 20:31:00.25Z", NOW_S * 1000000ll + 250000},
	    {"2026-11-29T20:31:00.1234567Z", NOW_S * 1000000ll + 123456},
	    {"2026-11-29T21:31:00+01:00", NOW_S * 1000000ll},
	    {"2026-11-29T15:01:00-05:30", NOW_S * 1000000ll},
	    {"2026-11-29T20:31Z", NOW_S * 1000000ll},
	    /* Local time: two hours east. */
	    {"2026-11-29T22:31:00", NOW_S * 1000000ll},
	    {"2026-11-29", (NOW_S - 20 * 3600 - 31 * 60 - 2 * 3600) * 1000000ll},
	    {"2024-02-29T00:00:00Z", 1709164800ll * 1000000},
	    {"1970-01-01T00:00:00Z", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err;
		int64_t us;

		if (when_parse(cases[i].text, NOW_S * 1000000ll, &us, &err) < 0)
			fail_msg("%s: %s", cases[i].text, err.text);
		if (us != cases[i].want_us)
			fail_msg("%s: %lld", cases[i].text, (long long)us);
	}
}

static void
test_bad_times(void **state)
{
	static const char *const texts[] = {"", " ", "10", "m", "10x", "10m ", "-10m", "1.5h", "99999999999999999999h",
	    "100000d", "2026", "2026-11", "2026-13-01", "2026-02-30", "2025-02-29", "2026-11-31", "2026-11-29T",
	    "2026-11-29T24:00Z", "2026-11-29T20:60Z", "2026-11-29T20:31:00.Z", "2026-11-29T20:31:00ZZ",
	    "2026-11-29T20:31:00+0100", "2026-11-29T20:31:00+01", "20261129", "1969-12-31", "yesterday",
	    "2026-11-29T20:31:00Z; rm"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct error err;
		int64_t us = 77;

		if (when_parse(texts[i], NOW_S * 1000000ll, &us, &err) == 0)
			fail_msg("'%s' was taken for a time", texts[i]);
		assert_int_equal(err.code, ERROR_USAGE);
		assert_int_equal(us, 77);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_good_times),
	    cmocka_unit_test(test_bad_times),
	};

	setenv("TZ", "EET-2", 1);
	tzset();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
