/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the control role reads from disk and from people: attachment.json, edits.yaml, a test's target. What is accepted
 * comes back the same after it was stored. */
#include "gateway/control/control_config.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_explain.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

static bool
same_labels(const struct control_sandbox *first, const struct control_sandbox *second)
{
	if (first->labels == NULL || second->labels == NULL)
		return first->labels == second->labels;
	return json_equal(first->labels, second->labels) != 0;
}

static void
fuzz_attachment(const char *text, size_t len)
{
	struct control_sandbox *first = control_sandbox_new("vm1"), *second = control_sandbox_new("vm1");
	struct error err;
	char *stored;

	if (first == NULL || second == NULL)
		abort();
	if (control_config_parse_attachment(first, text, len, &err) == 0) {
		stored = control_config_format_attachment(first);
		if (stored == NULL || control_config_parse_attachment(second, stored, strlen(stored), &err) < 0)
			abort();
		if (first->id != second->id || first->netns_ino != second->netns_ino ||
		    memcmp(&first->config, &second->config, sizeof(first->config)) != 0)
			abort();
		if (!same_labels(first, second) || strcmp(first->parent, second->parent) != 0 ||
		    first->parent_id != second->parent_id)
			abort();
		free(stored);
	}
	control_sandbox_free(first);
	control_sandbox_free(second);
}

static void
fuzz_edits(const char *text, size_t len)
{
	struct policy first = {0}, second = {0};
	struct error err;
	char *stored;

	if (control_edits_parse(text, len, &first, &err) < 0)
		return;
	stored = control_edits_format(&first);
	if (stored == NULL || control_edits_parse(stored, strlen(stored), &second, &err) < 0 ||
	    first.rule_count != second.rule_count)
		abort();
	free(stored);
	policy_free(&first);
	policy_free(&second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct control_target target;
	struct error err;
	char *text;

	if (len == 0)
		return 0;
	text = malloc(len);
	if (text == NULL)
		abort();
	memcpy(text, bytes + 1, len - 1);
	text[len - 1] = '\0';
	switch (bytes[0] % 3) {
	case 0:
		fuzz_attachment(text, len - 1);
		break;
	case 1:
		fuzz_edits(text, len - 1);
		break;
	default:
		control_explain_parse_target(text, &target, &err);
		break;
	}
	free(text);
	return 0;
}
