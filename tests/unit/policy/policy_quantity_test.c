/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts, sizes, durations and points in time: one spelling is one value, and printing reads back. */
#include "policy/text/quantity.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

static void
counts(void **state)
{
	static const char *const bad[] = {"", "-1", "+1", " 1", "1 ", "01", "00", "1.0", "1e3", "0x1", "1_0", "ten",
	    "101", "99999999999999999999999999", "18446744073709551616", "\xd9\xa1"};
	uint64_t count = 77;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(quantity_parse_count(bad[i], strlen(bad[i]), 100, &count));
	assert_int_equal(count, 77);
	assert_true(quantity_parse_count("0", 1, 100, &count) && count == 0);
	assert_true(quantity_parse_count("100", 3, 100, &count) && count == 100);
	assert_true(quantity_parse_count("5", 1, 5, &count) && count == 5);
	assert_false(quantity_parse_count("6", 1, 5, &count));
	assert_true(quantity_parse_count("18446744073709551615", 20, UINT64_MAX, &count) && count == UINT64_MAX);
	assert_false(quantity_parse_count("1\0", 2, 5, &count));
}

static void
sizes(void **state)
{
	static const struct {
		const char *text;
		uint64_t bytes;
		const char *printed;
	} good[] = {{"0", 0, "0"}, {"1", 1, "1"}, {"1000", 1000, "1000"}, {"1024", 1024, "1KiB"}, {"1kB", 1000, "1000"},
	    {"1KiB", 1024, "1KiB"}, {"1536KiB", 1572864, "1536KiB"}, {"1MB", 1000000, "1000000"},
	    {"1024MiB", 1073741824, "1GiB"}, {"3GB", UINT64_C(3000000000), "3000000000"},
	    {"15GiB", UINT64_C(16106127360), "15GiB"}};
	static const char *const bad[] = {
	    "KiB", "1 KiB", "1K", "1k", "1B", "1KB", "1kiB", "1KiBs", "1.5GiB", "-1KiB", "17179869184GiB", "1\0KiB"};
	char text[QUANTITY_TEXT_MAX];
	uint64_t bytes;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(quantity_parse_size(good[i].text, strlen(good[i].text), UINT64_MAX, &bytes));
		assert_int_equal(bytes, good[i].bytes);
		quantity_format_size(bytes, text);
		assert_true(quantity_parse_size(text, strlen(text), UINT64_MAX, &bytes));
		assert_int_equal(bytes, good[i].bytes);
		if (strcmp(good[i].printed, text) != 0)
			fail_msg("%s prints as %s", good[i].text, text);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(quantity_parse_size(bad[i], strlen(bad[i]) + (i == 11 ? 4 : 0), UINT64_MAX, &bytes));
}

static void
durations(void **state)
{
	static const uint32_t values[] = {
	    1, 59, 60, 61, 3599, 3600, 5400, 86399, 86400, 86401, 604800, 1209600, 788645, 3653 * 86400};
	static const struct {
		uint32_t seconds;
		const char *text;
	} printed[] = {
	    {0, "0s"}, {5400, "1h30m"}, {7200, "2h"}, {86400, "1d"}, {1209600, "2w"}, {788645, "1w2d3h4m5s"}};
	char text[QUANTITY_TEXT_MAX];
	uint32_t seconds;

	(void)state;
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
		quantity_format_duration(values[i], text);
		assert_true(quantity_parse_duration(text, strlen(text), UINT32_MAX, &seconds));
		assert_int_equal(seconds, values[i]);
	}
	for (size_t i = 0; i < sizeof(printed) / sizeof(printed[0]); i++)
		assert_string_equal(quantity_format_duration(printed[i].seconds, text), printed[i].text);
	assert_false(quantity_parse_duration("", 0, 100, &seconds));
	assert_false(quantity_parse_duration("101s", 4, 100, &seconds));
	assert_false(quantity_parse_duration("1m41s", 5, 100, &seconds));
	assert_true(quantity_parse_duration("1m40s", 5, 100, &seconds));
}

/* Against the C library's calendar, every day of four hundred years and a time of day with each. */
static void
instants(void **state)
{
	(void)state;
	for (int64_t day = 10957; day < 10957 + 146097; day++) {
		int64_t us = (day * 86400 + day % 86400) * 1000000 + (day % 7 == 0 ? day % 1000000 : 0), again;
		time_t seconds = (time_t)(us / 1000000);
		char text[QUANTITY_TEXT_MAX], expected[QUANTITY_TEXT_MAX];
		struct tm tm;
		size_t len;

		gmtime_r(&seconds, &tm);
		len = strftime(expected, sizeof(expected), "%Y-%m-%dT%H:%M:%S", &tm);
		quantity_format_instant(us, text);
		assert_memory_equal(text, expected, len);
		assert_true(quantity_parse_instant(text, strlen(text), &again));
		assert_int_equal(again, us);
	}
}

static void
instants_are_strict(void **state)
{
	static const char *const bad[] = {"", "2026", "2026-12-01", "2026-12-01T", "2026-12-01T10", "2026-12-01T10:00",
	    "2026-12-01T10:00:00", "2026-12-01t10:00:00Z", "2026-12-01T10:00:00z", "2026-12-01 10:00:00Z",
	    "2026-12-01T10:00:00.Z", "2026-12-01T10:00:00Z ", "2026-12-01T10:00:00ZZ", "2026-12-01T10:00:00+01",
	    "2026-12-01T10:00:00+0100", "2026-12-01T10:00:00+24:00", "2026-12-01T10:00:00+01:60", "2026-1-01T10:00:00Z",
	    "2026-12-1T10:00:00Z", "2026-12-32T10:00:00Z", "2026-00-01T10:00:00Z", "2026-04-31T10:00:00Z",
	    "2100-02-29T10:00:00Z", "10000-01-01T10:00:00Z", "-2026-12-01T10:00:00Z", "2026-12-01T1a:00:00Z",
	    "2026-12-01T10:60:00Z", "+026-12-01T10:00:00Z"};
	int64_t us;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (quantity_parse_instant(bad[i], strlen(bad[i]), &us))
			fail_msg("'%s' was taken", bad[i]);
	assert_true(quantity_parse_instant("2000-02-29T00:00Z", 17, &us));
	assert_int_equal(us, INT64_C(951782400000000));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(counts),
	    cmocka_unit_test(sizes),
	    cmocka_unit_test(durations),
	    cmocka_unit_test(instants),
	    cmocka_unit_test(instants_are_strict),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
