/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policy text: whatever is accepted prints, reads back to the same rules, and compiles to a block that opens. */
#include "policy/compiled/snapshot.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

/* Printing puts allow rules first; the same action's rules keep their order. */
static void
expect_same(const struct policy *policy, const struct policy *again, enum rule_action action, size_t *at)
{
	for (size_t i = 0; i < policy->rule_count; i++) {
		if (policy->rules[i].action != action)
			continue;
		if (!rule_identical(&policy->rules[i], &again->rules[(*at)++]))
			abort();
	}
}

static void
expect_round_trip(const struct policy *policy)
{
	char *text = policy_format(policy);
	struct policy again;
	size_t at = 0;

	if (text == NULL)
		return;
	if (policy_parse(text, strlen(text), "printed", &again, NULL) < 0 || again.rule_count != policy->rule_count)
		abort();
	if (strcmp(again.name, policy->name) != 0 || again.ech != policy->ech || again.ech_set != policy->ech_set)
		abort();
	if (again.mode != policy->mode || again.mode_set != policy->mode_set || again.has_allow != policy->has_allow ||
	    again.include_count != policy->include_count || !limits_equal(&again.limits, &policy->limits))
		abort();
	expect_same(policy, &again, RULE_ALLOW, &at);
	expect_same(policy, &again, RULE_DENY, &at);
	policy_free(&again);
	free(text);
}

static void
expect_opens(const struct policy *policy)
{
	struct error err = {.code = ERROR_NONE};
	struct snapshot *snapshot;
	int fd = snapshot_compile(policy, &err);

	if (fd < 0 && err.code != ERROR_LIMIT)
		abort();
	if (fd < 0)
		return;
	snapshot = snapshot_open(fd, &err);
	if (snapshot == NULL || snapshot_rule_count(snapshot) != policy->rule_count)
		abort();
	snapshot_free(snapshot);
	close(fd);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct error err = {.code = ERROR_NONE};
	struct policy policy;

	if (policy_parse((const char *)bytes, len, "fuzz.yaml", &policy, &err) < 0) {
		if (err.code == ERROR_NONE || err.text[0] == '\0')
			abort();
		return 0;
	}
	expect_round_trip(&policy);
	policy.include_count = 0;
	policy_resolve(&policy, INT64_C(1700000000000000));
	expect_opens(&policy);
	policy_free(&policy);
	return 0;
}
