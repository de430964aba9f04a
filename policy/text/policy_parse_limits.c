/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "limits" in a policy's YAML: numbers and sizes, each as one value (the hard limit) or as {soft: A, hard: B}. */
#include "policy/text/policy_parse.h"

#include "policy/text/quantity.h"

#include <assert.h>

enum { LIMIT_KEY_SOFT = 0, LIMIT_KEY_HARD };

/* One number. *ret_value stays as it is after a complaint. */
static int
read_amount(struct parse *p, enum limit_kind kind, uint64_t *ret_value)
{
	bool bytes = limit_kind_is_bytes(kind), ok, good;
	const char *text;
	uint64_t value;
	size_t len;

	if (events_want_scalar(&p->in, bytes ? "a size, as in 50MiB" : "a number, as in 256", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (bytes)
		good = quantity_parse_size(text, len, LIMIT_BYTES_MAX, &value);
	else
		good = quantity_parse_count(text, len, LIMIT_COUNT_MAX, &value);
	/* JSON has to quote what has a unit; a quoted number is a mistake there too. */
	if (good && value > 0 && (events_scalar_is_plain(&p->in) || text[len - 1] == 'B'))
		*ret_value = value;
	else if (bytes)
		events_report(&p->in, events_here(&p->in),
		    "'%s' is no size; write bytes, or KiB, MiB, GiB (or kB, MB, GB) behind the number, as in 50MiB",
		    events_quote(&p->in).text);
	else
		events_report(&p->in, events_here(&p->in), "'%s' is no number from 1 to %u", events_quote(&p->in).text,
		    LIMIT_COUNT_MAX);
	return 0;
}

/* {soft: A, hard: B} */
static int
read_pair(struct parse *p, enum limit_kind kind, struct limit *ret_limit)
{
	struct events_keys keys = parse_keys_begin(PARSE_LIMIT);
	struct place at = events_here(&p->in), soft_at = at;
	size_t errors_before = p->in.error_count;
	struct limit limit = {0, 0};
	int key, result = 0;

	for (;;) {
		if (events_next_key(&p->in, &keys, &key) < 0)
			return -1;
		if (key == EVENTS_KEY_END)
			break;
		if (key == LIMIT_KEY_SOFT) {
			soft_at = events_here(&p->in);
			result = read_amount(p, kind, &limit.soft);
		} else if (key == LIMIT_KEY_HARD) {
			result = read_amount(p, kind, &limit.hard);
		}
		if (result < 0)
			return -1;
	}
	if (p->in.error_count > errors_before)
		return 0;
	if (limit.hard == 0)
		events_report(
		    &p->in, at, "the limit has no 'hard'; write hard, and soft if an event shall come before it");
	else if (limit.soft > limit.hard)
		events_report(&p->in, soft_at, "soft is above hard; it has to come first");
	if (limit.soft == 0)
		limit.soft = limit_soft_of(limit.hard);
	*ret_limit = limit;
	return 0;
}

static int
read_limit(struct parse *p, enum limit_kind kind, struct limit *ret_limit)
{
	uint64_t hard = 0;

	if (p->in.event.type == YAML_MAPPING_START_EVENT)
		return read_pair(p, kind, ret_limit);
	if (read_amount(p, kind, &hard) < 0)
		return -1;
	*ret_limit = (struct limit){limit_soft_of(hard), hard};
	return 0;
}

/* The kind that a key of parse_keys names. */
static enum limit_kind
kind_of_key(bool of_rule, int key)
{
	int at = 0;

	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		if (of_rule && !limit_kind_is_of_rules((enum limit_kind)kind))
			continue;
		if (at++ == key)
			return (enum limit_kind)kind;
	}
	assert(!"a key of the table");
	return LIMIT_CONNECTIONS;
}

int
parse_limits(struct parse *p, bool of_rule, struct limits *ret_limits)
{
	struct events_keys keys = parse_keys_begin(of_rule ? PARSE_RULE_LIMITS : PARSE_LIMITS);
	struct place at = events_here(&p->in);
	bool any = false;
	int key;

	if (p->in.event.type != YAML_MAPPING_START_EVENT) {
		if (p->in.event.type != YAML_ALIAS_EVENT)
			events_report(&p->in, at, "'limits' has keys; known here: %s", keys.known);
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next_key(&p->in, &keys, &key) < 0)
			return -1;
		if (key == EVENTS_KEY_END)
			break;
		any = true;
		if (key >= 0) {
			enum limit_kind kind = kind_of_key(of_rule, key);

			if (!of_rule)
				parse_setting(p, POLICY_SETTING_LIMITS + kind);
			if (read_limit(p, kind, &ret_limits->of[kind]) < 0)
				return -1;
		}
	}
	if (!any)
		events_report(&p->in, at, "'limits' is empty; name one or leave it out");
	return 0;
}
