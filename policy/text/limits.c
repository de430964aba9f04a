/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/text/limits.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

struct limit_row {
	const char *text;
	bool bytes, of_rules;
};

static const struct limit_row rows[] = {
    [LIMIT_CONNECTIONS] = {"connections", false, true},
    [LIMIT_NEW_CONNECTIONS_PER_MINUTE] = {"new_connections_per_minute", false, false},
    [LIMIT_DNS_QUERIES_PER_SECOND] = {"dns_queries_per_second", false, false},
    [LIMIT_UNIQUE_NAMES_PER_MINUTE] = {"unique_names_per_minute", false, false},
    [LIMIT_UPLOAD] = {"upload", true, true},
    [LIMIT_DOWNLOAD] = {"download", true, true},
};
static_assert(COUNT(rows) == LIMIT_KIND_MAX, "one row per kind of limit");

const char *
limits_kind_text(unsigned int kind)
{
	return kind < LIMIT_KIND_MAX ? rows[kind].text : "?";
}

bool
limits_kind_is_bytes(enum limit_kind kind)
{
	return rows[kind].bytes;
}

const char *
limits_format_amount(enum limit_kind kind, uint64_t amount, char ret_text[QUANTITY_TEXT_MAX])
{
	if (limits_kind_is_bytes(kind))
		return quantity_format_size(amount, ret_text);
	snprintf(ret_text, QUANTITY_TEXT_MAX, "%llu", (unsigned long long)amount);
	return ret_text;
}

bool
limits_kind_is_of_rules(enum limit_kind kind)
{
	return rows[kind].of_rules;
}

uint64_t
limits_soft_of(uint64_t hard)
{
	return hard - hard / 5;
}

bool
limits_is_sound(enum limit_kind kind, struct limit limit)
{
	if (limit.hard == 0)
		return limit.soft == 0;
	return limit.soft > 0 && limit.soft <= limit.hard &&
	    limit.hard <= (rows[kind].bytes ? LIMIT_BYTES_MAX : LIMIT_COUNT_MAX);
}

bool
limits_any(const struct limits *limits)
{
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (limits->of[kind].hard != 0)
			return true;
	return false;
}

bool
limits_equal(const struct limits *a, const struct limits *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

void
limits_tighten(struct limits *limits, const struct limits *other)
{
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		struct limit *limit = &limits->of[kind];
		const struct limit *more = &other->of[kind];

		if (more->hard == 0)
			continue;
		if (limit->hard == 0) {
			*limit = *more;
			continue;
		}
		if (more->hard < limit->hard)
			limit->hard = more->hard;
		if (more->soft < limit->soft)
			limit->soft = more->soft;
		if (limit->soft > limit->hard)
			limit->soft = limit->hard;
	}
}
