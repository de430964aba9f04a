/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/policy_text.h"

#include "cli/input.h"
#include "policy/text/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The daemon keeps this much of a file's name. */
#define POLICY_TEXT_NAME_MAX 99

int
policy_text_read(const char *path, json_t *request, struct error *err)
{
	const char *shown = strcmp(path, "-") == 0 ? "stdin" : path, *slash = strrchr(shown, '/');
	const char *name = slash == NULL ? shown : slash + 1;
	struct policy policy;
	json_t *value;
	size_t len;
	char *text = input_read(path, POLICY_FILE_MAX, &len, err);

	if (text == NULL && (err->sys_errno == ENOENT || err->sys_errno == ENOTDIR))
		return error_set(err, ERROR_NOT_FOUND, "no policy file %s", path);
	if (text == NULL && err->code == ERROR_LIMIT)
		err->code = ERROR_POLICY;
	if (text == NULL)
		return -1;
	if (policy_parse(text, len, shown, &policy, err) < 0) {
		free(text);
		return -1;
	}
	policy_free(&policy);
	value = memchr(text, '\0', len) != NULL ? NULL : json_stringn(text, len);
	free(text);
	if (value == NULL)
		return error_set(err, ERROR_POLICY, "%s: not UTF-8 text", shown);
	json_object_set_new(request, "policy", value);
	if (strlen(name) > POLICY_TEXT_NAME_MAX)
		name += strlen(name) - POLICY_TEXT_NAME_MAX;
	value = json_string(name);
	if (value != NULL) /* a name in another encoding is left out */
		json_object_set_new(request, "policy_file", value);
	return 0;
}

int
policy_text_rules(json_t *request, const char *member, enum rule_action action, const char *const *words, size_t count,
    struct error *err)
{
	struct error all = {0}, one;
	json_t *rules = json_array();

	json_object_set_new(request, member, rules);
	for (size_t i = 0; i < count; i++) {
		struct rule rule;
		size_t len = strlen(all.text);

		if (rule_parse(action, words[i], &rule, &one) < 0) {
			all.code = one.code;
			snprintf(all.text + len, sizeof(all.text) - len, "%s%.900s", len == 0 ? "" : "\n", one.text);
		} else if (json_array_append_new(rules, json_string(words[i])) < 0) {
			error_set(&all, ERROR_POLICY, "a rule is not UTF-8");
		}
	}
	if (all.code == ERROR_NONE)
		return 0;
	*err = all;
	return -1;
}

int
policy_text_add(
    json_t *request, const char *path, const struct args_list *allow, const struct args_list *deny, struct error *err)
{
	if (path != NULL && policy_text_read(path, request, err) < 0)
		return -1;
	if (allow->count > 0 && policy_text_rules(request, "allow", RULE_ALLOW, allow->items, allow->count, err) < 0)
		return -1;
	return deny->count == 0 ? 0 : policy_text_rules(request, "deny", RULE_DENY, deny->items, deny->count, err);
}
