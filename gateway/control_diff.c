/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a new policy says that the old one does not, and the other way round: by the text of each rule, wherever it stands. */
#include "gateway/control.h"

#include <stdlib.h>
#include <string.h>

struct diff_rule {
	const char *text, *origin;
};

static int
diff_compare(const void *a, const void *b)
{
	const struct diff_rule *left = a, *right = b;

	return strcmp(left->text, right->text);
}

/* The rules by text; NULL without memory or rules. */
static struct diff_rule *
diff_sorted(const struct snapshot *snapshot, size_t *ret_count)
{
	size_t count = snapshot == NULL ? 0 : snapshot_rule_count(snapshot);
	struct diff_rule *rules = count == 0 ? NULL : calloc(count, sizeof(*rules));

	*ret_count = rules == NULL ? 0 : count;
	for (uint32_t i = 0; i < *ret_count; i++)
		rules[i] = (struct diff_rule){snapshot_rule_text(snapshot, i), snapshot_rule_origin(snapshot, i)};
	if (rules != NULL)
		qsort(rules, count, sizeof(*rules), diff_compare);
	return rules;
}

void
control_diff(const struct snapshot *before, const struct snapshot *after, json_t *lines)
{
	size_t old_count, new_count, i = 0, j = 0, told = 0;
	struct diff_rule *old = diff_sorted(before, &old_count), *new = diff_sorted(after, &new_count);

	while (i < old_count || j < new_count) {
		int order = i == old_count ? 1 : j == new_count ? -1 : strcmp(old[i].text, new[j].text);
		const struct diff_rule *rule = order < 0 ? &old[i] : &new[j];

		i += order <= 0;
		j += order >= 0;
		if (order != 0 && told++ < CONTROL_DIFF_MAX)
			json_array_append_new(
			    lines, json_sprintf("%c%s (%s)", order < 0 ? '-' : '+', rule->text, rule->origin));
	}
	if (told > CONTROL_DIFF_MAX)
		json_array_append_new(lines, json_sprintf("and %zu more", told - CONTROL_DIFF_MAX));
	free(old);
	free(new);
}
