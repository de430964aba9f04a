/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/text/quantity.h"

#include "base/reader.h"

#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

#define DAY_S 86400
#define YEAR_FIRST 2000

struct unit {
	const char *text;
	uint64_t factor;
};

/* For each base the largest last: printing takes the last that fits. */
static const struct unit sizes[] = {
    {"kB", 1000},
    {"MB", 1000 * 1000},
    {"GB", 1000 * 1000 * 1000},
    {"KiB", UINT64_C(1) << 10},
    {"MiB", UINT64_C(1) << 20},
    {"GiB", UINT64_C(1) << 30},
};
#define SIZES_BINARY 3

static const struct unit durations[] = {{"w", 7 * DAY_S}, {"d", DAY_S}, {"h", 3600}, {"m", 60}, {"s", 1}};

/* The digits at the reader's place; at least one, none in front but "0" itself. */
static bool
digits_read(struct reader *r, uint64_t max, uint64_t *ret_value)
{
	size_t start = r->at;
	uint64_t value = 0;

	while (r->at < r->len && r->bytes[r->at] >= '0' && r->bytes[r->at] <= '9') {
		uint64_t digit = r->bytes[r->at] - '0';

		if (value > (max - digit) / 10 || digit > max)
			return false;
		value = value * 10 + digit;
		r->at++;
	}
	if (r->at == start || (r->bytes[start] == '0' && r->at - start > 1))
		return false;
	*ret_value = value;
	return true;
}

bool
quantity_parse_count(const char *text, size_t len, uint64_t max, uint64_t *ret_count)
{
	struct reader r = reader_make(text, len);
	uint64_t count;

	if (!digits_read(&r, max, &count) || !reader_done(&r))
		return false;
	*ret_count = count;
	return true;
}

/* The rest of the text names a unit, all of it. */
static const struct unit *
unit_read(const struct reader *r, const struct unit *units, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		size_t len = strlen(units[i].text);

		if (reader_left(r) == len && memcmp(r->bytes + r->at, units[i].text, len) == 0)
			return &units[i];
	}
	return NULL;
}

bool
quantity_parse_size(const char *text, size_t len, uint64_t max, uint64_t *ret_bytes)
{
	struct reader r = reader_make(text, len);
	const struct unit *unit;
	uint64_t number;

	if (!digits_read(&r, max, &number))
		return false;
	if (reader_left(&r) == 0) {
		*ret_bytes = number;
		return true;
	}
	unit = unit_read(&r, sizes, COUNT(sizes));
	if (unit == NULL || number > max / unit->factor)
		return false;
	*ret_bytes = number * unit->factor;
	return true;
}

const char *
quantity_format_size(uint64_t bytes, char ret_text[QUANTITY_TEXT_MAX])
{
	const struct unit *unit = NULL;

	for (size_t i = SIZES_BINARY; i < COUNT(sizes); i++)
		if (bytes != 0 && bytes % sizes[i].factor == 0)
			unit = &sizes[i];
	snprintf(ret_text, QUANTITY_TEXT_MAX, "%llu%s",
	    (unsigned long long)(unit == NULL ? bytes : bytes / unit->factor), unit == NULL ? "" : unit->text);
	return ret_text;
}

bool
quantity_parse_duration(const char *text, size_t len, uint32_t max_s, uint32_t *ret_s)
{
	struct reader r = reader_make(text, len);
	uint64_t sum_s = 0;
	size_t next = 0;

	while (reader_left(&r) > 0) {
		uint64_t number;

		if (!digits_read(&r, max_s, &number) || reader_left(&r) == 0)
			return false;
		while (next < COUNT(durations) && (uint8_t)durations[next].text[0] != r.bytes[r.at])
			next++;
		if (next == COUNT(durations) || number > max_s / durations[next].factor)
			return false;
		sum_s += number * durations[next++].factor;
		r.at++;
	}
	if (sum_s == 0 || sum_s > max_s)
		return false;
	*ret_s = (uint32_t)sum_s;
	return true;
}

const char *
quantity_format_duration(uint32_t seconds, char ret_text[QUANTITY_TEXT_MAX])
{
	size_t len = 0;

	snprintf(ret_text, QUANTITY_TEXT_MAX, "0s");
	for (size_t i = 0; i < COUNT(durations); i++) {
		uint32_t factor = (uint32_t)durations[i].factor;

		if (seconds >= factor)
			len += (size_t)snprintf(
			    ret_text + len, QUANTITY_TEXT_MAX - len, "%u%s", seconds / factor, durations[i].text);
		seconds %= factor;
	}
	return ret_text;
}

/* Exactly count digits, between min and max. */
static int
field_read(struct reader *r, size_t count, int min, int max)
{
	const uint8_t *digits = reader_bytes(r, count);
	int value = 0;

	for (size_t i = 0; digits != NULL && i < count; i++) {
		if (digits[i] < '0' || digits[i] > '9')
			reader_fail(r);
		value = value * 10 + (digits[i] - '0');
	}
	if (value < min || value > max)
		reader_fail(r);
	return value;
}

static void
literal_read(struct reader *r, char c)
{
	if (reader_u8(r) != (uint8_t)c)
		reader_fail(r);
}

static bool
next_is(const struct reader *r, char c)
{
	return reader_left(r) > 0 && r->bytes[r->at] == (uint8_t)c;
}

/* Days since the epoch of a day of the Gregorian calendar; years counted from March, so that February ends them. */
static int64_t
days_of(int year, int month, int day)
{
	int64_t from_march = month > 2 ? month - 3 : month + 9;
	int64_t y = month > 2 ? year : year - 1;

	return y * 365 + y / 4 - y / 100 + y / 400 + (153 * from_march + 2) / 5 + day - 1 - 719468;
}

static int
month_days(int year, int month)
{
	static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
	bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;

	return days[month - 1] + (month == 2 && leap);
}

/* "2026-12-01T" as seconds since the epoch. */
static int64_t
date_read(struct reader *r)
{
	int year = field_read(r, 4, YEAR_FIRST, 9999), month, day;

	literal_read(r, '-');
	month = field_read(r, 2, 1, 12);
	literal_read(r, '-');
	day = field_read(r, 2, 1, 31);
	literal_read(r, 'T');
	if (!reader_ok(r) || day > month_days(year, month)) {
		reader_fail(r);
		return 0;
	}
	return days_of(year, month, day) * DAY_S;
}

/* "10:00", "10:00:00", "10:00:00.5" in microseconds. */
static int64_t
time_read(struct reader *r)
{
	int64_t us = field_read(r, 2, 0, 23) * INT64_C(3600000000), unit_us = 100000;

	literal_read(r, ':');
	us += field_read(r, 2, 0, 59) * INT64_C(60000000);
	if (!next_is(r, ':'))
		return us;
	literal_read(r, ':');
	us += field_read(r, 2, 0, 59) * INT64_C(1000000);
	if (!next_is(r, '.'))
		return us;
	literal_read(r, '.');
	us += field_read(r, 1, 0, 9) * unit_us;
	while (reader_ok(r) && reader_left(r) > 0 && r->bytes[r->at] >= '0' && r->bytes[r->at] <= '9') {
		unit_us /= 10;
		if (unit_us == 0)
			reader_fail(r);
		us += field_read(r, 1, 0, 9) * unit_us;
	}
	return us;
}

/* "Z" or "+01:00", in seconds east of Greenwich. */
static int64_t
zone_read(struct reader *r)
{
	int64_t offset_s;
	uint8_t sign = reader_u8(r);

	if (sign == 'Z')
		return 0;
	if (sign != '+' && sign != '-')
		reader_fail(r);
	offset_s = field_read(r, 2, 0, 23) * 3600;
	literal_read(r, ':');
	offset_s += field_read(r, 2, 0, 59) * 60;
	return sign == '-' ? -offset_s : offset_s;
}

bool
quantity_parse_instant(const char *text, size_t len, int64_t *ret_us)
{
	struct reader r = reader_make(text, len);
	int64_t us = date_read(&r) * 1000000;

	us += time_read(&r);
	us -= zone_read(&r) * 1000000;
	if (!reader_done(&r))
		return false;
	*ret_us = us;
	return true;
}

/* The calendar day of a day since the epoch: the inverse of days_of. */
static void
date_of(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t left = days + 719468, era, y, m;

	era = left / 146097;
	left -= era * 146097;
	y = (left - left / 1460 + left / 36524 - left / 146096) / 365;
	left -= y * 365 + y / 4 - y / 100;
	m = (5 * left + 2) / 153;
	*ret_day = (int)(left - (153 * m + 2) / 5 + 1);
	*ret_month = (int)(m < 10 ? m + 3 : m - 9);
	*ret_year = (int)(era * 400 + y + (*ret_month <= 2));
}

const char *
quantity_format_instant(int64_t us, char ret_text[QUANTITY_TEXT_MAX])
{
	int64_t seconds = us / 1000000, fraction = us % 1000000, in_day;
	int year, month, day, len, digits = 6;

	date_of(seconds / DAY_S, &year, &month, &day);
	in_day = seconds % DAY_S;
	len = snprintf(ret_text, QUANTITY_TEXT_MAX, "%04d-%02d-%02dT%02d:%02d:%02d", year, month, day,
	    (int)(in_day / 3600), (int)(in_day / 60 % 60), (int)(in_day % 60));
	for (; fraction != 0 && fraction % 10 == 0; digits--)
		fraction /= 10;
	if (fraction != 0)
		len += snprintf(ret_text + len, QUANTITY_TEXT_MAX - (size_t)len, ".%0*d", digits, (int)fraction);
	snprintf(ret_text + len, QUANTITY_TEXT_MAX - (size_t)len, "Z");
	return ret_text;
}
