/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A policy in memory: building and merging. The reader of files is policy_file.c, of text policy_parse.c, the printer
 * policy_format.c. */
#include "policy/text/policy.h"

#include <stdlib.h>
#include <string.h>

#define RULES_SIZE_FIRST 16

void
policy_init(struct policy *policy)
{
	*policy = (struct policy){.rules = NULL};
}

void
policy_free(struct policy *policy)
{
	free(policy->rules);
	free(policy->includes);
	policy_init(policy);
}

static int
rules_reserve(struct policy *policy, size_t count, struct error *err)
{
	size_t size = policy->rule_size == 0 ? RULES_SIZE_FIRST : policy->rule_size;
	struct rule *rules;

	if (count > POLICY_RULES_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d rules", POLICY_RULES_MAX);
	if (count <= policy->rule_size)
		return 0;
	while (size < count)
		size *= 2;
	rules = reallocarray(policy->rules, size, sizeof(*rules));
	if (rules == NULL)
		return error_set(err, ERROR_LIMIT, "no memory for %zu rules", count);
	policy->rules = rules;
	policy->rule_size = size;
	return 0;
}

int
policy_add(struct policy *policy, const struct rule *rule, struct error *err)
{
	if (rules_reserve(policy, policy->rule_count + 1, err) < 0)
		return -1;
	policy->rules[policy->rule_count++] = *rule;
	return 0;
}

void
policy_resolve(struct policy *policy, int64_t applied_us)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		struct rule *rule = &policy->rules[i];

		if (rule->expires_after_s == 0)
			continue;
		rule->expires_us = applied_us + (int64_t)rule->expires_after_s * 1000000;
		rule->expires_after_s = 0;
	}
}

static int
includes_append(struct policy *base, const struct policy *layer, struct error *err)
{
	size_t count = base->include_count + layer->include_count;
	struct policy_include *includes;

	if (layer->include_count == 0)
		return 0;
	if (count > POLICY_INCLUDES_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d presets", POLICY_INCLUDES_MAX);
	includes = reallocarray(base->includes, count, sizeof(*includes));
	if (includes == NULL)
		return error_set(err, ERROR_LIMIT, "no memory for %zu presets", count);
	memcpy(includes + base->include_count, layer->includes, layer->include_count * sizeof(*includes));
	base->includes = includes;
	base->include_count = count;
	return 0;
}

void
policy_tighten(struct policy *policy, const struct policy *layer)
{
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		size_t setting = POLICY_SETTING_LIMITS + kind;
		uint64_t old = policy->limits.of[kind].hard, hard = layer->limits.of[kind].hard;

		if (hard != 0 && (old == 0 || hard < old))
			memcpy(policy->setting_origins[setting], layer->setting_origins[setting], RULE_ORIGIN_MAX);
	}
	limits_tighten(&policy->limits, &layer->limits);
}

int
policy_merge(struct policy *base, const struct policy *layer, struct error *err)
{
	if (rules_reserve(base, base->rule_count + layer->rule_count, err) < 0 || includes_append(base, layer, err) < 0)
		return -1;
	if (layer->rule_count > 0)
		memcpy(base->rules + base->rule_count, layer->rules, layer->rule_count * sizeof(*layer->rules));
	base->rule_count += layer->rule_count;
	if (layer->name[0] != '\0')
		memcpy(base->name, layer->name, sizeof(base->name));
	if (layer->ech_set) {
		base->ech = layer->ech;
		base->ech_set = true;
		memcpy(base->setting_origins[POLICY_SETTING_ECH], layer->setting_origins[POLICY_SETTING_ECH],
		    RULE_ORIGIN_MAX);
	}
	if (layer->mode_set) {
		base->mode = layer->mode;
		base->mode_set = true;
		memcpy(base->setting_origins[POLICY_SETTING_MODE], layer->setting_origins[POLICY_SETTING_MODE],
		    RULE_ORIGIN_MAX);
	}
	base->has_allow = base->has_allow || layer->has_allow;
	base->bounded = base->bounded || layer->bounded;
	policy_tighten(base, layer);
	return 0;
}

bool
policy_preset_is_name(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		bool alnum = (text[i] >= 'a' && text[i] <= 'z') || (text[i] >= '0' && text[i] <= '9');

		if (!alnum && (i == 0 || text[i] != '-'))
			return false;
	}
	return len > 0 && len < POLICY_INCLUDE_NAME_MAX;
}
