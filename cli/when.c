/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/when.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

/* A relative time further back than this is a mistake; the limit also keeps the arithmetic in range. */
#define WHEN_DAYS_MAX 36500

static bool
when_is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* "1h30m": true and the sum, or false when text is something else. */
static bool
when_relative(const char *text, int64_t *ret_s)
{
	static const char units[] = "smhdw";
	static const int64_t units_s[] = {1, 60, 3600, 86400, 7 * 86400};
	int64_t sum_s = 0;

	if (*text == '\0')
		return false;
	while (*text != '\0') {
		const char *unit;
		int64_t value = 0;

		if (!when_is_digit(*text))
			return false;
		for (; when_is_digit(*text); text++) {
			value = value * 10 + (*text - '0');
			if (value > (int64_t)WHEN_DAYS_MAX * 86400)
				return false;
		}
		unit = *text == '\0' ? NULL : strchr(units, *text);
		if (unit == NULL)
			return false;
		sum_s += value * units_s[unit - units];
		if (sum_s > (int64_t)WHEN_DAYS_MAX * 86400)
			return false;
		text++;
	}
	*ret_s = sum_s;
	return true;
}

/* Exactly count digits, between min and max. Moves *text. */
static bool
when_digits(const char **text, int count, int min, int max, int *ret_value)
{
	int value = 0;

	for (int i = 0; i < count; i++, (*text)++) {
		if (!when_is_digit(**text))
			return false;
		value = value * 10 + (**text - '0');
	}
	*ret_value = value;
	return value >= min && value <= max;
}

static bool
when_literal(const char **text, char c)
{
	if (**text != c)
		return false;
	(*text)++;
	return true;
}

/* ".5": digits beyond microseconds are dropped. */
static bool
when_fraction(const char **text, int64_t *ret_us)
{
	int64_t us = 0, unit_us = 100000;

	if (!when_is_digit(**text))
		return false;
	for (; when_is_digit(**text); (*text)++, unit_us /= 10)
		us += (**text - '0') * unit_us;
	*ret_us = us;
	return true;
}

/* "20:31[:02[.5]]" after the date; without a time of day it is midnight. */
static bool
when_time_of_day(const char **text, struct tm *tm, int64_t *ret_us)
{
	if (**text == '\0')
		return true;
	if (!when_literal(text, 'T') && !when_literal(text, 't') && !when_literal(text, ' '))
		return false;
	if (!when_digits(text, 2, 0, 23, &tm->tm_hour) || !when_literal(text, ':') ||
	    !when_digits(text, 2, 0, 59, &tm->tm_min))
		return false;
	if (!when_literal(text, ':'))
		return true;
	if (!when_digits(text, 2, 0, 60, &tm->tm_sec))
		return false;
	return !when_literal(text, '.') || when_fraction(text, ret_us);
}

/* "Z", "+01:00" or the end (local time). */
static bool
when_zone(const char **text, struct tm *tm, int64_t *ret_s)
{
	int hours, minutes, sign;

	if (**text == '\0') {
		tm->tm_isdst = -1;
		*ret_s = mktime(tm);
		return true;
	}
	*ret_s = timegm(tm);
	if (when_literal(text, 'Z') || when_literal(text, 'z'))
		return **text == '\0';
	sign = **text == '-' ? 1 : -1;
	if (!when_literal(text, '+') && !when_literal(text, '-'))
		return false;
	if (!when_digits(text, 2, 0, 23, &hours) || !when_literal(text, ':') || !when_digits(text, 2, 0, 59, &minutes))
		return false;
	*ret_s += sign * (hours * 3600 + minutes * 60);
	return **text == '\0';
}

static bool
when_absolute(const char *text, int64_t *ret_us)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	struct tm tm = {0};
	int64_t seconds, us = 0;
	int year, month, day;

	if (!when_digits(&text, 4, 1970, 9999, &year) || !when_literal(&text, '-') ||
	    !when_digits(&text, 2, 1, 12, &month) || !when_literal(&text, '-') || !when_digits(&text, 2, 1, 31, &day))
		return false;
	if (day > days[month - 1] + (month == 2 && ((year % 4 == 0 && year % 100 != 0) || year % 400 == 0)))
		return false;
	tm.tm_year = year - 1900;
	tm.tm_mon = month - 1;
	tm.tm_mday = day;
	if (!when_time_of_day(&text, &tm, &us) || !when_zone(&text, &tm, &seconds))
		return false;
	*ret_us = seconds * 1000000 + us;
	return true;
}

int
when_parse(const char *text, int64_t now_us, int64_t *ret_us, struct error *err)
{
	int64_t ago_s;

	if (when_relative(text, &ago_s))
		*ret_us = now_us - ago_s * 1000000;
	else if (!when_absolute(text, ret_us))
		return error_set(
		    err, ERROR_USAGE, "not a time; write how long ago (10m, 2h, 7d), or when (2026-11-29T20:31:00Z)");
	return 0;
}
