/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The three ways to change a policy: add live edits, withdraw them, replace the policy file. */
#include "gateway/control/control.h"

#include "gateway/control/control_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads {"action": ..., "rules": [...]}; action may be missing when optional (then *ret_any is set). ret_grant: also
 * "for", seconds from applied_us on that the rules hold, and "uses"; NULL where that makes no sense. */
static int
rules_read(json_t *body, bool optional, enum rule_action *ret_action, bool *ret_any, json_t **ret_rules,
    int64_t applied_us, struct control_grant *ret_grant, struct error *err)
{
	json_t *action, *duration = NULL, *count = NULL;
	int64_t for_s = 0, uses = 0;
	const struct control_field fields[] = {
	    {"action", JSON_STRING, !optional, &action},
	    {"rules", JSON_ARRAY, true, ret_rules},
	    {"for", JSON_INTEGER, false, &duration},
	    {"uses", JSON_INTEGER, false, &count},
	};

	if (control_json_fields(body, fields, ret_grant == NULL ? 2 : sizeof(fields) / sizeof(fields[0]), err) < 0)
		return -1;
	if (ret_grant != NULL) {
		if (control_json_integer(duration, "for", 1, RULE_EXPIRES_AFTER_MAX_S, &for_s, err) < 0 ||
		    control_json_integer(count, "uses", 1, RULE_USES_MAX, &uses, err) < 0)
			return -1;
		ret_grant->expires_us = for_s == 0 ? 0 : applied_us + for_s * 1000000;
		ret_grant->uses = (uint32_t)uses;
	}
	if (json_array_size(*ret_rules) == 0)
		return error_set(err, ERROR_USAGE, "\"rules\" is empty");
	*ret_any = action == NULL;
	*ret_action = RULE_ALLOW;
	if (action == NULL || strcmp(json_string_value(action), "allow") == 0)
		return 0;
	if (strcmp(json_string_value(action), "deny") != 0)
		return error_set(err, ERROR_USAGE, "\"action\" must be \"allow\" or \"deny\"");
	if (uses != 0)
		return error_set(err, ERROR_USAGE, "\"uses\" is for \"allow\" only");
	*ret_action = RULE_DENY;
	return 0;
}

static void
rules_start(struct control_job *job)
{
	struct control_sandbox *sandbox;
	struct control_change *change = control_change_begin(job, &sandbox);
	enum rule_action action;
	json_t *words;
	struct error err;
	struct control_grant grant = {0};
	bool any;

	if (change == NULL)
		return;
	grant.sandbox = sandbox;
	if (rules_read(job->body, false, &action, &any, &words, change->applied_us, &grant, &err) < 0 ||
	    control_edits_add(
		&change->edits, action, words, &grant, job->peer.uid, &change->changed, change->change, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	control_change_apply(job, sandbox, change);
}

void
control_rules_handler(struct control_request *request, json_t *body)
{
	control_job_submit(request->control, request, request->name, body, rules_start);
}

/* -- revoke -------------------------------------------------------------------------------------------------------- */

/* Withdraw the edit that equals the rule; 1 when there was one. */
static size_t
revoke_edit(struct control_change *change, const struct rule *rule)
{
	struct policy *edits = &change->edits;
	char word[RULE_TEXT_MAX];

	for (size_t i = 0; i < edits->rule_count; i++) {
		if (!rule_equal(&edits->rules[i], rule))
			continue;
		edits->rule_count--;
		memmove(&edits->rules[i], &edits->rules[i + 1], (edits->rule_count - i) * sizeof(edits->rules[0]));
		json_array_append_new(change->change,
		    json_sprintf("-%s %s", rule->action == RULE_ALLOW ? "allow" : "deny", rule_format(rule, word)));
		return 1;
	}
	return 0;
}

/* No edit says this: is it the policy file that does? */
static int
revoke_complain(
    const struct control_sandbox *sandbox, const struct rule *rules, size_t count, const char *word, struct error *err)
{
	struct policy file = {0};
	int rc = error_set(err, ERROR_NOT_FOUND, "no live edit of %s says '%s'; postern show %s lists them",
	    sandbox->name, word, sandbox->name);

	if (sandbox->policy_text == NULL ||
	    policy_parse(sandbox->policy_text, strlen(sandbox->policy_text),
		sandbox->policy_file[0] == '\0' ? "policy.yaml" : sandbox->policy_file, &file, NULL) < 0)
		return rc;
	for (size_t i = 0; i < file.rule_count; i++)
		for (size_t j = 0; j < count; j++)
			if (rule_equal(&file.rules[i], &rules[j]))
				error_set(err, ERROR_EXISTS,
				    "'%s' comes from the policy file (%s), not from a live edit; edit the file%s", word,
				    file.rules[i].origin,
				    rules[j].action == RULE_ALLOW ? ", or lay a deny over it with postern deny" : "");
	policy_free(&file);
	return rc;
}

static int
revoke_word(const struct control_sandbox *sandbox, struct control_change *change, const char *word,
    enum rule_action action, bool any, struct error *err)
{
	struct rule rules[2];
	size_t count = 0, revoked = 0;
	struct error deny_err;

	/* Some words are good for deny only; as an allow rule they cannot have been made, so that error counts for
	 * nothing when the other way is open. */
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
	for (size_t i = 0; i < count; i++)
		revoked += revoke_edit(change, &rules[i]);
	if (revoked == 0)
		return revoke_complain(sandbox, rules, count, word, err);
	change->changed += revoked;
	return 0;
}

static int
revoke_all(
    struct control_job *job, const struct control_sandbox *sandbox, struct control_change *change, struct error *err)
{
	enum rule_action action;
	json_t *words;
	bool any;

	if (rules_read(job->body, true, &action, &any, &words, 0, NULL, err) < 0)
		return -1;
	for (size_t i = 0; i < json_array_size(words); i++) {
		const char *word = json_string_value(json_array_get(words, i));

		if (word == NULL)
			return error_set(err, ERROR_USAGE, "rules must be an array of strings");
		if (revoke_word(sandbox, change, word, action, any, err) < 0)
			return -1;
	}
	return 0;
}

static void
revoke_start(struct control_job *job)
{
	struct control_sandbox *sandbox;
	struct control_change *change = control_change_begin(job, &sandbox);
	struct error err;

	if (change == NULL)
		return;
	if (revoke_all(job, sandbox, change, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	control_change_apply(job, sandbox, change);
}

void
control_revoke_handler(struct control_request *request, json_t *body)
{
	control_job_submit(request->control, request, request->name, body, revoke_start);
}

/* -- policy -------------------------------------------------------------------------------------------------------- */

static int
policy_read_body(struct control_job *job, struct control_change *change, struct error *err)
{
	json_t *text, *file, *preview;
	const struct control_field fields[] = {
	    {"policy", JSON_STRING, true, &text},
	    {"policy_file", JSON_STRING, false, &file},
	    {"preview", JSON_TRUE, false, &preview},
	};

	if (control_json_fields(job->body, fields, sizeof(fields) / sizeof(fields[0]), err) < 0 ||
	    control_json_file_name(file, "policy_file", change->policy_file, sizeof(change->policy_file), err) < 0)
		return -1;
	change->policy_text = control_text_share(json_string_value(text));
	if (change->policy_text == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	change->replaces_file = true;
	change->preview = json_is_true(preview);
	change->changed = 1;
	json_array_append_new(change->change,
	    json_sprintf("policy %s", change->policy_file[0] == '\0' ? "replaced" : change->policy_file));
	return 0;
}

static void
policy_start(struct control_job *job)
{
	struct control_sandbox *sandbox;
	struct control_change *change = control_change_begin(job, &sandbox);
	struct error err;

	if (change == NULL)
		return;
	if (policy_read_body(job, change, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	control_change_apply(job, sandbox, change);
}

void
control_policy_handler(struct control_request *request, json_t *body)
{
	control_job_submit(request->control, request, request->name, body, policy_start);
}
