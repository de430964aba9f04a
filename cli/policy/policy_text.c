/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/policy_text.h"

#include "policy/text/policy.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the daemon keeps of a file's name. */
#define POLICY_TEXT_NAME_MAX 99

static int
policy_text_load(FILE *file, const char *path, char **ret_text, size_t *ret_len, struct error *err)
{
	size_t size = 65536, len = 0;
	char *text = malloc(size);

	while (text != NULL) {
		char *larger;

		len += fread(text + len, 1, size - len, file);
		if (len < size)
			break;
		larger = len > POLICY_FILE_MAX ? NULL : realloc(text, size *= 2);
		if (larger == NULL)
			free(text);
		text = larger;
	}
	if (text == NULL)
		return error_set(err, ERROR_POLICY, "%s: larger than %u bytes", path, POLICY_FILE_MAX);
	if (ferror(file)) {
		free(text);
		return error_sys(err, errno, "%s", path);
	}
	*ret_text = text;
	*ret_len = len;
	return 0;
}

static int
policy_text_check(const char *text, size_t len, const char *path, json_t *request, struct error *err)
{
	const char *slash = strrchr(path, '/'), *name = slash == NULL ? path : slash + 1;
	size_t name_len = strlen(name);
	struct policy policy;
	json_t *value;

	if (policy_parse(text, len, path, &policy, err) < 0)
		return -1;
	policy_free(&policy);
	value = json_stringn(text, len);
	if (value == NULL || memchr(text, '\0', len) != NULL) {
		json_decref(value);
		return error_set(err, ERROR_POLICY, "%s: not UTF-8 text", path);
	}
	json_object_set_new(request, "policy", value);
	if (name_len > POLICY_TEXT_NAME_MAX)
		name += name_len - POLICY_TEXT_NAME_MAX;
	value = json_string(name);
	if (value != NULL) /* a name in another encoding is left out */
		json_object_set_new(request, "policy_file", value);
	return 0;
}

int
policy_text_read(const char *path, json_t *request, struct error *err)
{
	bool standard = strcmp(path, "-") == 0;
	FILE *file = standard ? stdin : fopen(path, "re");
	const char *shown = standard ? "stdin" : path;
	char *text = NULL;
	size_t len = 0;
	int rc;

	if (file == NULL && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, ERROR_NOT_FOUND, "no policy file %s", path);
	if (file == NULL)
		return error_sys(err, errno, "%s", path);
	rc = policy_text_load(file, shown, &text, &len, err);
	if (!standard)
		fclose(file);
	if (rc < 0)
		return -1;
	rc = policy_text_check(text, len, shown, request, err);
	free(text);
	return rc;
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
