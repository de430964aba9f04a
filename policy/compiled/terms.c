/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/compiled/terms.h"

#include "policy/text/quantity.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void terms_append(char text[TERMS_TEXT_MAX], const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Behind a comma, unless it is the first. */
static void
terms_append(char text[TERMS_TEXT_MAX], const char *fmt, ...)
{
	size_t len = strlen(text);
	va_list ap;

	if (len > 0)
		len += (size_t)snprintf(text + len, TERMS_TEXT_MAX - len, ", ");
	if (len >= TERMS_TEXT_MAX)
		return;
	va_start(ap, fmt);
	vsnprintf(text + len, TERMS_TEXT_MAX - len, fmt, ap);
	va_end(ap);
}

static void
terms_append_limit(char text[TERMS_TEXT_MAX], enum limit_kind kind, const struct limit *limit)
{
	char soft[QUANTITY_TEXT_MAX], hard[QUANTITY_TEXT_MAX];

	if (limit->hard == 0)
		return;
	limits_format_amount(kind, limit->hard, hard);
	if (limit->soft == limits_soft_of(limit->hard))
		terms_append(text, "%s %s", limits_kind_text(kind), hard);
	else
		terms_append(text, "%s %s (soft %s)", limits_kind_text(kind), hard,
		    limits_format_amount(kind, limit->soft, soft));
}

void
terms_of_rule(const struct snapshot *snapshot, uint32_t rule, struct terms *ret_terms)
{
	*ret_terms = (struct terms){.expires_us = snapshot_rule_expires_us(snapshot, rule),
	    .uses = snapshot_rule_uses(snapshot, rule),
	    .limits = *snapshot_rule_limits(snapshot, rule)};
}

const char *
terms_format(const struct terms *terms, char ret_text[TERMS_TEXT_MAX])
{
	char instant[QUANTITY_TEXT_MAX];

	ret_text[0] = '\0';
	if (terms->expires_us != 0)
		terms_append(ret_text, "until %s", quantity_format_instant(terms->expires_us, instant));
	if (terms->uses != 0)
		terms_append(ret_text, "%u use%s", terms->uses, terms->uses == 1 ? "" : "s");
	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++)
		terms_append_limit(ret_text, (enum limit_kind)kind, &terms->limits.of[kind]);
	return ret_text;
}

const char *
terms_format_rule(const char *rule, const struct terms *terms, char ret_text[TERMS_LINE_MAX])
{
	char text[TERMS_TEXT_MAX];

	terms_format(terms, text);
	snprintf(ret_text, TERMS_LINE_MAX, "%s%s%s", rule, text[0] == '\0' ? "" : " ", text);
	return ret_text;
}

const char *
terms_format_setting(const struct snapshot *snapshot, enum policy_setting setting, char ret_text[TERMS_TEXT_MAX])
{
	enum limit_kind kind = (enum limit_kind)(setting - POLICY_SETTING_LIMITS);
	char limit[TERMS_TEXT_MAX] = "";

	ret_text[0] = '\0';
	if (setting == POLICY_SETTING_MODE) {
		if (snapshot_mode(snapshot) == POLICY_MODE_LEARN)
			snprintf(ret_text, TERMS_TEXT_MAX, "mode: learn");
	} else if (setting == POLICY_SETTING_ECH) {
		if (snapshot_ech(snapshot) == POLICY_ECH_DENY)
			snprintf(ret_text, TERMS_TEXT_MAX, "ech: deny");
	} else {
		terms_append_limit(limit, kind, &snapshot_limits(snapshot)->of[kind]);
		if (limit[0] != '\0')
			snprintf(ret_text, TERMS_TEXT_MAX, "limits: %.*s", TERMS_TEXT_MAX - 16, limit);
	}
	return ret_text;
}

const char *
terms_setting_text(enum policy_setting setting)
{
	if (setting == POLICY_SETTING_MODE)
		return "mode";
	if (setting == POLICY_SETTING_ECH)
		return "ech";
	return limits_kind_text((unsigned int)setting - POLICY_SETTING_LIMITS);
}
