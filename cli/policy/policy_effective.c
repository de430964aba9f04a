/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/policy_effective.h"

#include "cli/command.h"
#include "policy/text/quantity.h"

#include <string.h>

static void
effective_limits(const json_t *limits, struct limits *ret_limits)
{
	*ret_limits = (struct limits){.of = {{0}}};
	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		const json_t *limit = json_object_get(limits, limits_kind_text(kind));

		ret_limits->of[kind].soft = (uint64_t)json_integer_value(json_object_get(limit, "soft"));
		ret_limits->of[kind].hard = (uint64_t)json_integer_value(json_object_get(limit, "hard"));
	}
}

void
policy_effective_terms(const json_t *rule, struct terms *ret_terms)
{
	const char *expires = command_text(rule, "expires");

	*ret_terms = (struct terms){.uses = (uint32_t)json_integer_value(json_object_get(rule, "uses"))};
	quantity_parse_instant(expires, strlen(expires), &ret_terms->expires_us);
	effective_limits(json_object_get(rule, "limits"), &ret_terms->limits);
}

static void
effective_join(char text[TERMS_TEXT_MAX], const char *words)
{
	size_t len = strlen(text);

	snprintf(text + len, TERMS_TEXT_MAX - len, "%s%s", len == 0 || words[0] == '\0' ? "" : ", ", words);
}

const char *
policy_effective_words(const json_t *rule, char ret_text[TERMS_TEXT_MAX])
{
	char words[TERMS_TEXT_MAX];
	struct terms terms;

	policy_effective_terms(rule, &terms);
	terms_format(&(struct terms){.expires_us = terms.expires_us}, ret_text);
	if (terms.uses != 0) {
		snprintf(words, sizeof(words), "%lld of %u used",
		    (long long)json_integer_value(json_object_get(rule, "used")), terms.uses);
		effective_join(ret_text, words);
	}
	effective_join(ret_text, terms_format(&(struct terms){.limits = terms.limits}, words));
	return ret_text;
}

const char *
policy_effective_setting(const json_t *sandbox, enum policy_setting setting, char ret_text[TERMS_TEXT_MAX])
{
	static const char *const odd[] = {[POLICY_SETTING_MODE] = "learn", [POLICY_SETTING_ECH] = "deny"};
	const char *word = terms_setting_text(setting);
	struct terms one = {.expires_us = 0};
	char text[TERMS_TEXT_MAX];
	struct limits limits;

	ret_text[0] = '\0';
	if (setting < POLICY_SETTING_LIMITS) {
		if (strcmp(command_text(sandbox, word), odd[setting]) == 0)
			snprintf(ret_text, TERMS_TEXT_MAX, "%s: %s", word, odd[setting]);
		return ret_text;
	}
	effective_limits(json_object_get(sandbox, "limits"), &limits);
	one.limits.of[setting - POLICY_SETTING_LIMITS] = limits.of[setting - POLICY_SETTING_LIMITS];
	if (limits_any(&one.limits))
		snprintf(ret_text, TERMS_TEXT_MAX, "limits: %.*s", TERMS_TEXT_MAX - 16, terms_format(&one, text));
	return ret_text;
}

const char *
policy_effective_rule(const json_t *rule, char ret_text[TERMS_LINE_MAX])
{
	bool bound = json_is_true(json_object_get(rule, "bound"));
	const char *text = command_text(rule, "rule");

	snprintf(
	    ret_text, TERMS_LINE_MAX, "%s%s", bound ? "allow at most " : "", bound ? text + strlen("allow ") : text);
	return ret_text;
}

void
policy_effective_print(FILE *out, const json_t *sandbox)
{
	const json_t *origins = json_object_get(sandbox, "origins"), *rule;
	bool bounded = json_is_true(json_object_get(sandbox, "bounded")), places = false;
	char line[TERMS_LINE_MAX], words[TERMS_TEXT_MAX];
	size_t i;

	/* Implicit, and above all others. */
	fprintf(out,
	    "deny the never list: private, metadata, reserved and the host's own addresses and names (built in)\n");
	fprintf(out, "deny port 53, but for the questions that postern answers itself, and UDP port 443 (built in)\n");
	for (unsigned int setting = 0; setting < POLICY_SETTING_MAX; setting++)
		if (policy_effective_setting(sandbox, (enum policy_setting)setting, words)[0] != '\0')
			fprintf(out, "%s (%s)\n", words,
			    command_text(origins, terms_setting_text((enum policy_setting)setting)));
	json_array_foreach(json_object_get(sandbox, "rules"), i, rule)
	{
		const char *text = command_text(rule, "rule");

		bounded = bounded && !json_is_true(json_object_get(rule, "bound"));
		places = places || strncmp(text, "deny country:", 13) == 0 || strncmp(text, "deny asn:", 9) == 0;
		policy_effective_words(rule, words);
		fprintf(out, "%s (%s)%s%s\n", policy_effective_rule(rule, line), command_text(rule, "origin"),
		    words[0] == '\0' ? "" : " ", words);
	}
	if (bounded)
		fprintf(out, "allow at most nothing (the organisation's policy)\n");
	if (places)
		fprintf(out,
		    "deny an address whose country or network is not known, where such a rule could apply (built "
		    "in)\n");
	if (strcmp(command_text(sandbox, "mode"), "learn") == 0)
		fprintf(out, "allow TCP to everything else by its name, and mark it (mode: learn)\n");
	fprintf(out, "deny everything else (built in)\n");
}
