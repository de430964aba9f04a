/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "limits" in a policy's YAML: numbers and sizes, each as one value (the hard limit) or as {soft: A, hard: B}. */
#include "policy/text/policy_parse.h"

#include "policy/text/quantity.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One limit while it is read. */
struct reading {
	enum limit_kind kind;
	struct limit limit;
	struct place soft_at; /* line 0: none yet */
};

/* One number. *ret_value stays as it is after a complaint. */
static int
read_amount(struct parse *p, enum limit_kind kind, uint64_t *ret_value)
{
	bool bytes = limits_kind_is_bytes(kind), ok, good;
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

/* "soft" or "hard" of a pair. */
static int
read_mark(void *parse, void *into, unsigned int hard)
{
	struct parse *p = parse;
	struct reading *reading = into;

	if (!hard)
		reading->soft_at = events_here(&p->in);
	return read_amount(p, reading->kind, hard ? &reading->limit.hard : &reading->limit.soft);
}

static const struct events_key pair_keys[] = {{"soft", read_mark, false}, {"hard", read_mark, true}};
const struct events_keys policy_parse_limits_pair_keys = {pair_keys, COUNT(pair_keys)};

/* {soft: A, hard: B} */
static int
read_pair(struct parse *p, enum limit_kind kind, struct limit *ret_limit)
{
	struct reading reading = {.kind = kind, .soft_at = events_here(&p->in)};
	struct place at = events_here(&p->in), places[EVENTS_KEYS_MAX];
	size_t errors_before = p->in.error_count;

	if (events_read_mapping(&p->in, &policy_parse_limits_pair_keys, p, &reading, places) < 0)
		return -1;
	if (p->in.error_count > errors_before)
		return 0;
	if (reading.limit.hard == 0)
		events_report(
		    &p->in, at, "the limit has no 'hard'; write hard, and soft if an event shall come before it");
	else if (reading.limit.soft > reading.limit.hard)
		events_report(&p->in, reading.soft_at, "soft is above hard; it has to come first");
	if (reading.limit.soft == 0)
		reading.limit.soft = limits_soft_of(reading.limit.hard);
	*ret_limit = reading.limit;
	return 0;
}

/* The value of one kind's key. Limits of a sandbox have a place each, those of a rule have the rule's. */
static int
read_limit(struct parse *p, struct limits *limits, enum limit_kind kind)
{
	uint64_t hard = 0;

	if (p->in.event.type == YAML_MAPPING_START_EVENT)
		return read_pair(p, kind, &limits->of[kind]);
	if (read_amount(p, kind, &hard) < 0)
		return -1;
	limits->of[kind] = (struct limit){limits_soft_of(hard), hard};
	return 0;
}

static int
read_rule_limit(void *parse, void *limits, unsigned int kind)
{
	return read_limit(parse, limits, (enum limit_kind)kind);
}

static int
read_sandbox_limit(void *parse, void *limits, unsigned int kind)
{
	policy_parse_setting(parse, POLICY_SETTING_LIMITS + kind);
	return read_limit(parse, limits, (enum limit_kind)kind);
}

int
policy_parse_limits(void *parse, void *limits, unsigned int of_rule)
{
	struct parse *p = parse;
	struct events_key keys[LIMIT_KIND_MAX];
	struct events_keys known = {.keys = keys};
	struct place at = events_here(&p->in), places[EVENTS_KEYS_MAX];
	size_t errors_before = p->in.error_count;
	bool any = false;

	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (!of_rule || limits_kind_is_of_rules((enum limit_kind)kind))
			keys[known.count++] = (struct events_key){
			    limits_kind_text(kind), of_rule ? read_rule_limit : read_sandbox_limit, kind};
	if (p->in.event.type != YAML_MAPPING_START_EVENT)
		return events_refuse_mapping(&p->in, "'limits' has keys; known here: ", &known);
	if (events_read_mapping(&p->in, &known, p, limits, places) < 0)
		return -1;
	for (size_t i = 0; i < known.count; i++)
		any = any || places[i].line != 0;
	if (!any && p->in.error_count == errors_before)
		events_report(&p->in, at, "'limits' is empty; name one or leave it out");
	return 0;
}
