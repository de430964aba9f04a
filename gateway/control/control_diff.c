/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a new policy says that the old one does not, and the other way round: settings, and rules with their terms,
 * wherever they stand. */
#include "gateway/control/control.h"

#include "policy/text/terms.h"

#include <stdlib.h>
#include <string.h>

struct diff_rule {
	const char *text, *origin;
	struct terms terms;
	bool bound;
};

static int
diff_compare(const void *a, const void *b)
{
	const struct diff_rule *left = a, *right = b;
	int order = strcmp(left->text, right->text);

	if (order != 0)
		return order;
	if (left->bound != right->bound)
		return left->bound ? -1 : 1;
	if (left->terms.expires_us != right->terms.expires_us)
		return left->terms.expires_us < right->terms.expires_us ? -1 : 1;
	if (left->terms.uses != right->terms.uses)
		return left->terms.uses < right->terms.uses ? -1 : 1;
	return memcmp(&left->terms.limits, &right->terms.limits, sizeof(left->terms.limits));
}

/* The rules in an order of what they say; NULL without memory or rules. */
static struct diff_rule *
diff_sorted(const struct snapshot *snapshot, size_t *ret_count)
{
	size_t count = snapshot == NULL ? 0 : snapshot_rule_count(snapshot);
	struct diff_rule *rules = count == 0 ? NULL : calloc(count, sizeof(*rules));

	*ret_count = rules == NULL ? 0 : count;
	for (uint32_t i = 0; i < *ret_count; i++) {
		rules[i].text = snapshot_rule_text(snapshot, i);
		rules[i].origin = snapshot_rule_origin(snapshot, i);
		rules[i].bound = snapshot_rule_is_bound(snapshot, i);
		terms_of_rule(snapshot, i, &rules[i].terms);
	}
	if (rules != NULL)
		qsort(rules, count, sizeof(*rules), diff_compare);
	return rules;
}

static const char *
diff_setting(const struct snapshot *snapshot, enum policy_setting setting, char ret_text[TERMS_TEXT_MAX])
{
	ret_text[0] = '\0';
	return snapshot == NULL ? ret_text : terms_format_setting(snapshot, setting, ret_text);
}

static void
diff_settings(const struct snapshot *before, const struct snapshot *after, json_t *lines)
{
	char old[TERMS_TEXT_MAX], new[TERMS_TEXT_MAX];

	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++) {
		enum policy_setting setting = (enum policy_setting)i;

		if (strcmp(diff_setting(before, setting, old), diff_setting(after, setting, new)) == 0)
			continue;
		if (old[0] != '\0')
			json_array_append_new(
			    lines, json_sprintf("-%s (%s)", old, snapshot_setting_origin(before, setting)));
		if (new[0] != '\0')
			json_array_append_new(
			    lines, json_sprintf("+%s (%s)", new, snapshot_setting_origin(after, setting)));
	}
}

void
control_diff(const struct snapshot *before, const struct snapshot *after, json_t *lines)
{
	size_t old_count, new_count, i = 0, j = 0, told = 0;
	struct diff_rule *old = diff_sorted(before, &old_count), *new = diff_sorted(after, &new_count);
	char text[TERMS_LINE_MAX];

	diff_settings(before, after, lines);
	while (i < old_count || j < new_count) {
		int order = i == old_count ? 1 : j == new_count ? -1 : diff_compare(&old[i], &new[j]);
		const struct diff_rule *rule = order < 0 ? &old[i] : &new[j];

		i += order <= 0;
		j += order >= 0;
		if (order != 0 && told++ < CONTROL_DIFF_MAX)
			json_array_append_new(lines,
			    json_sprintf("%c%s (%s)", order < 0 ? '-' : '+',
				terms_format_rule(rule->text, &rule->terms, text), rule->origin));
	}
	if (told > CONTROL_DIFF_MAX)
		json_array_append_new(lines, json_sprintf("and %zu more", told - CONTROL_DIFF_MAX));
	free(old);
	free(new);
}
