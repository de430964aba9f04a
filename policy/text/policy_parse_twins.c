/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same rule twice in one text.
 *
 * Mostly that is no mistake worth a word: lists are put together from others. But what a rule has used up is counted by
 * its text (snapshot_rule_id), so two with the same text would share one count: "uses: 3" twice is three uses, or six,
 * as somebody else reads it. So where both count, they are an error. */
#include "policy/text/policy_parse.h"

#include <stdlib.h>
#include <string.h>

struct twin {
	uint64_t hash;
	uint32_t rule;
};

static int
twin_compare(const void *a, const void *b)
{
	const struct twin *left = a, *right = b;

	if (left->hash != right->hash)
		return left->hash < right->hash ? -1 : 1;
	return (left->rule > right->rule) - (left->rule < right->rule);
}

/* FNV-1a of what the rule says. */
static uint64_t
twin_hash(const struct rule *rule)
{
	uint64_t hash = 0xcbf29ce484222325u;
	char word[RULE_TEXT_MAX];

	hash ^= (uint64_t)rule->action;
	for (const char *at = rule_format(rule, word); *at != '\0'; at++)
		hash = (hash ^ (uint8_t)*at) * 0x100000001b3u;
	return hash;
}

static bool
twin_counts(const struct rule *rule)
{
	return rule->uses != 0 || limits_any(&rule->limits);
}

static void
twins_report(struct parse *p, const struct twin *twins, size_t count)
{
	for (size_t i = 1; i < count; i++) {
		const struct rule *first = &p->policy.rules[twins[i - 1].rule], *rule = &p->policy.rules[twins[i].rule];
		const struct policy_place *at = &p->places[twins[i].rule];

		if (twins[i - 1].hash == twins[i].hash && rule_equal(first, rule))
			events_report(&p->in, (struct place){at->line, at->column},
			    "the same rule as in line %u, and what they may be used would be counted together; keep "
			    "one",
			    p->places[twins[i - 1].rule].line);
	}
}

int
policy_parse_twins(struct parse *p)
{
	size_t count = 0;
	struct twin *twins = calloc(p->policy.rule_count + 1, sizeof(*twins));

	if (twins == NULL) {
		events_report(&p->in, events_here(&p->in), "no memory to read it");
		p->in.code = ERROR_LIMIT;
		return -1;
	}
	for (size_t i = 0; i < p->policy.rule_count; i++)
		if (twin_counts(&p->policy.rules[i]))
			twins[count++] = (struct twin){.hash = twin_hash(&p->policy.rules[i]), .rule = (uint32_t)i};
	qsort(twins, count, sizeof(*twins), twin_compare);
	twins_report(p, twins, count);
	free(twins);
	return 0;
}
