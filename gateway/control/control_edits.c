/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live edits on disk: YAML as policy_format writes it, under comment lines that keep who made which rule, since the
 * policy text itself has no place for that. A person may read the file, and a rule without its comment still counts. */
#include "gateway/control/control_edits.h"

#include "base/clock.h"
#include "policy/text/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EDITS_FILE "edits.yaml"
#define EDITS_HEAD "# Live edits: postern allow, deny and revoke. Written by posternd, read when it starts.\n"
#define EDITS_MARK "# "
#define EDITS_BY "edit by uid "

static const char *
edits_action(const struct rule *rule)
{
	return rule->action == RULE_ALLOW ? "allow" : "deny";
}

char *
control_edits_format(const struct policy *edits)
{
	char *yaml = policy_format(edits), *text = NULL, word[RULE_TEXT_MAX];
	size_t size;
	FILE *out = yaml == NULL ? NULL : open_memstream(&text, &size);

	if (out == NULL) {
		free(yaml);
		return NULL;
	}
	fputs(EDITS_HEAD, out);
	for (size_t i = 0; i < edits->rule_count; i++) {
		const struct rule *rule = &edits->rules[i];

		if (strncmp(rule->origin, EDITS_BY, strlen(EDITS_BY)) == 0)
			fprintf(
			    out, EDITS_MARK "%s: %s %s\n", rule->origin, edits_action(rule), rule_format(rule, word));
	}
	fputs(yaml, out);
	free(yaml);
	if (fclose(out) != 0) {
		free(text);
		return NULL;
	}
	return text;
}

/* A comment line, cut at its end and at the ": " between author and rule. */
struct edits_mark {
	const char *origin, *rule;
};

/* Gives each rule the origin that the comment lines in text have for it; cuts text up. */
static void
edits_set_origins(struct policy *edits, char *text, struct edits_mark marks[CONTROL_EDITS_MAX])
{
	char *save = NULL, *line = strtok_r(text, "\n", &save), *colon;
	char mark[RULE_TEXT_MAX + 16], word[RULE_TEXT_MAX];
	size_t count = 0, at = 0;

	for (; line != NULL && count < CONTROL_EDITS_MAX; line = strtok_r(NULL, "\n", &save)) {
		if (strncmp(line, EDITS_MARK EDITS_BY, strlen(EDITS_MARK EDITS_BY)) != 0)
			continue;
		colon = strstr(line, ": ");
		if (colon == NULL)
			continue;
		*colon = '\0';
		marks[count++] = (struct edits_mark){.origin = line + strlen(EDITS_MARK), .rule = colon + 2};
	}
	for (size_t i = 0; i < edits->rule_count; i++) {
		struct rule *rule = &edits->rules[i];

		snprintf(mark, sizeof(mark), "%s %s", edits_action(rule), rule_format(rule, word));
		/* Mostly in the same order: begin where the last one was found. */
		for (size_t tries = 0; tries < count; tries++, at = (at + 1) % count) {
			if (strcmp(marks[at].rule, mark) != 0)
				continue;
			snprintf(rule->origin, sizeof(rule->origin), "%s", marks[at].origin);
			break;
		}
	}
}

int
control_edits_parse(const char *text, size_t len, struct policy *ret_edits, struct error *err)
{
	struct edits_mark *marks;
	char *copy;

	if (memchr(text, '\0', len) != NULL)
		return error_set(err, ERROR_POLICY, EDITS_FILE ": contains a NUL byte");
	if (policy_parse(text, len, EDITS_FILE, ret_edits, err) < 0)
		return -1;
	copy = strdup(text);
	marks = calloc(CONTROL_EDITS_MAX, sizeof(*marks));
	if (copy != NULL && marks != NULL)
		edits_set_origins(ret_edits, copy, marks);
	free(copy);
	free(marks);
	return 0;
}

/* -- allow and deny ------------------------------------------------------------------------------------------------ */

/* Appends the error of one word, so that all bad words are named, a line each, as far as they fit. */
static void
edits_add_error(struct error *err, const struct error *one)
{
	size_t len = strlen(err->text);

	err->code = one->code;
	if (len > 0 && len + 1 < sizeof(err->text))
		err->text[len++] = '\n';
	snprintf(err->text + len, sizeof(err->text) - len, "%.*s", (int)(sizeof(err->text) - 1 - len), one->text);
}

static struct rule *
edits_find(const struct policy *edits, const struct rule *rule)
{
	for (size_t i = 0; i < edits->rule_count; i++)
		if (rule_equal(&edits->rules[i], rule))
			return &edits->rules[i];
	return NULL;
}

/* How often the policy in force used the rule, if that is an edit of it. */
static uint64_t
edits_uses(const struct control_sandbox *sandbox, const struct rule *rule)
{
	size_t rules = sandbox->snapshot == NULL ? 0 : snapshot_rule_count(sandbox->snapshot);
	char word[RULE_TEXT_MAX], text[RULE_TEXT_MAX + 8];

	snprintf(text, sizeof(text), "%s %s", edits_action(rule), rule_format(rule, word));
	for (uint32_t i = 0; i < rules; i++)
		if (strcmp(snapshot_rule_origin(sandbox->snapshot, i), rule->origin) == 0 &&
		    strcmp(snapshot_rule_text(sandbox->snapshot, i), text) == 0)
			return control_sandbox_uses(sandbox, i);
	return 0;
}

/* Describes an added rule: what, until when, how often. */
static json_t *
edits_describe(const struct rule *rule, uint32_t uses)
{
	char word[RULE_TEXT_MAX], until[QUANTITY_TEXT_MAX] = "", count[32] = "";

	rule_format(rule, word);
	if (rule->expires_us != 0)
		quantity_format_instant(rule->expires_us, until);
	if (uses != 0)
		snprintf(count, sizeof(count), ", %u use%s", uses, uses == 1 ? "" : "s");
	return json_sprintf("+%s %s%s%s%s", edits_action(rule), word, until[0] == '\0' ? "" : " until ", until, count);
}

/* Adds a rule, or renews the same one with another end. 1; 0 when it is there with this end; -1. */
static int
edits_add_word(struct policy *edits, enum rule_action action, const char *word, const struct control_edits_grant *grant,
    uint32_t uid, json_t *change, struct error *err)
{
	struct rule rule, *same;
	uint64_t uses;

	if (rule_parse(action, word, &rule, err) < 0)
		return -1;
	snprintf(rule.origin, sizeof(rule.origin), EDITS_BY "%u", uid);
	rule.expires_us = grant->expires_us;
	/* Uses are counted over the rule's whole life: those that are granted now are added. */
	uses = grant->uses == 0 ? 0 : grant->uses + edits_uses(grant->sandbox, &rule);
	if (uses > RULE_USES_MAX)
		return error_set(
		    err, ERROR_LIMIT, "more than %d uses in all; revoke the rule and allow it anew", RULE_USES_MAX);
	rule.uses = (uint32_t)uses;
	same = edits_find(edits, &rule);
	if (same != NULL && rule_identical(same, &rule))
		return 0;
	if (same == NULL && edits->rule_count >= CONTROL_EDITS_MAX)
		return error_set(
		    err, ERROR_LIMIT, "more than %d live edits; write them into a policy file", CONTROL_EDITS_MAX);
	if (same != NULL)
		*same = rule;
	else if (policy_add(edits, &rule, err) < 0)
		return -1;
	if (change != NULL)
		json_array_append_new(change, edits_describe(&rule, grant->uses));
	return 1;
}

int
control_edits_add(struct policy *edits, enum rule_action action, const json_t *words,
    const struct control_edits_grant *grant, uint32_t uid, size_t *ret_changed, json_t *change, struct error *err)
{
	static const struct control_edits_grant unlimited;
	struct error all = {0}, one;
	size_t changed = 0, kept = 0;
	int64_t now_us = clock_real_us();

	for (size_t i = 0; i < edits->rule_count; i++)
		if (edits->rules[i].expires_us == 0 || edits->rules[i].expires_us > now_us)
			edits->rules[kept++] = edits->rules[i];
	edits->rule_count = kept;
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));
		int rc;

		if (word == NULL)
			return error_set(err, ERROR_USAGE, "rules must be an array of strings");
		rc = edits_add_word(edits, action, word, grant == NULL ? &unlimited : grant, uid, change, &one);
		if (rc < 0)
			edits_add_error(&all, &one);
		else
			changed += (size_t)rc;
	}
	if (all.code != ERROR_NONE) {
		*err = all;
		return -1;
	}
	*ret_changed += changed;
	return 0;
}

/* -- revoke -------------------------------------------------------------------------------------------------------- */

/* There is no such edit; the error says so when the policy file has the rule. */
static int
revoke_explain(
    const struct control_sandbox *sandbox, const struct rule *rules, size_t count, const char *word, struct error *err)
{
	struct policy file = {0};
	int rc = error_set(err, ERROR_NOT_FOUND, "%s has no live edit '%s'; postern show %s lists them", sandbox->name,
	    word, sandbox->name);

	if (sandbox->policy_text == NULL ||
	    policy_parse(sandbox->policy_text, strlen(sandbox->policy_text),
		sandbox->policy_file[0] == '\0' ? CONTROL_POLICY_FILE_DEFAULT : sandbox->policy_file, &file, NULL) < 0)
		return rc;
	for (size_t j = 0; j < count; j++) {
		const struct rule *same = edits_find(&file, &rules[j]);

		if (same != NULL)
			error_set(err, ERROR_EXISTS,
			    "'%s' comes from the policy file (%s), not from a live edit; edit the file%s", word,
			    same->origin, rules[j].action == RULE_ALLOW ? ", or override it with postern deny" : "");
	}
	policy_free(&file);
	return rc;
}

static int
revoke_word(const struct control_sandbox *sandbox, struct policy *edits, enum rule_action action, bool any,
    const char *word, size_t *ret_changed, json_t *change, struct error *err)
{
	size_t count = 0, revoked = 0;
	char text[RULE_TEXT_MAX];
	struct error deny_err;
	struct rule rules[2];

	/* Some words are valid for deny only. No allow rule can have been made of them, so that error does not count
	 * when deny is possible as well. */
	if (action == RULE_ALLOW && rule_parse(RULE_ALLOW, word, &rules[count], err) == 0)
		count++;
	if (any || action == RULE_DENY) {
		if (rule_parse(RULE_DENY, word, &rules[count], &deny_err) == 0)
			count++;
		else if (count == 0)
			*err = deny_err;
	}
	if (count == 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		struct rule *edit = edits_find(edits, &rules[i]);

		if (edit == NULL)
			continue;
		json_array_append_new(
		    change, json_sprintf("-%s %s", edits_action(&rules[i]), rule_format(&rules[i], text)));
		edits->rule_count--;
		memmove(edit, edit + 1, (size_t)(edits->rules + edits->rule_count - edit) * sizeof(*edit));
		revoked++;
	}
	*ret_changed += revoked;
	return revoked > 0 ? 0 : revoke_explain(sandbox, rules, count, word, err);
}

int
control_edits_revoke(const struct control_sandbox *sandbox, struct policy *edits, enum rule_action action, bool any,
    const json_t *words, size_t *ret_changed, json_t *change, struct error *err)
{
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));

		if (word == NULL)
			return error_set(err, ERROR_USAGE, "rules must be an array of strings");
		if (revoke_word(sandbox, edits, action, any, word, ret_changed, change, err) < 0)
			return -1;
	}
	return 0;
}
