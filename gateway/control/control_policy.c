/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changing a sandbox's policy: allow, deny, revoke, and a new policy file.
 *
 * A change is built beside what is in force: policy text, edits, snapshot. It is compiled (a mistake ends here),
 * written to disk, sent to the keeper, and taken over into the sandbox only when the gateways have it in force;
 * otherwise the old files are restored. When the keeper does not answer at all, it is unknown what is in force, so the
 * old policy is sent again as a newer generation. */
#include "gateway/control/control_policy.h"

#include "base/clock.h"
#include "gateway/control/control_compile.h"
#include "gateway/control/control_config.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_ends.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_state.h"
#include "gateway/control/control_usage.h"
#include "policy/compiled/terms.h"
#include "policy/verdict.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Lines that say what a new policy file changes; then a line that says how many more. */
#define POLICY_DIFF_MAX 1000

/* The data of a job that changes a policy, beginning as a copy of what is in force. */
struct change {
	bool preview;            /* nothing is to be changed: only say what would be */
	bool replaces_file;      /* policy_text and policy_file are the new ones; otherwise edits are */
	const char *policy_text; /* of control_sandbox_share_text */
	char policy_file[CONTROL_POLICY_FILE_MAX];
	int64_t applied_us;  /* clock_real_us at the beginning */
	struct policy edits; /* all of them, as they will be */
	int fd;              /* sealed snapshot; -1 until compiled */
	struct snapshot *snapshot;
	uint32_t generation;
	size_t changed;   /* rules added or withdrawn; 0: nothing is done */
	json_t *change;   /* ["+allow x", "-deny y"] */
	json_t *warnings; /* [text] */
};

static void
change_free(void *data)
{
	struct change *change = data;

	control_sandbox_release_text(change->policy_text);
	policy_free(&change->edits);
	if (change->fd >= 0)
		close(change->fd);
	snapshot_free(change->snapshot);
	json_decref(change->change);
	json_decref(change->warnings);
	free(change);
}

/* -- on disk ------------------------------------------------------------------------------------------------------- */

/* Writes one form of the sandbox to disk: the changed file, then the attachment that names generation and hash. */
static int
policy_store(struct control *control, const struct control_sandbox *stored, bool policy_file, struct error *err)
{
	const char *text = policy_file ? stored->policy_text : NULL;
	char *edits = NULL, *attachment;
	int rc = 0;

	if (!policy_file && stored->edits.rule_count > 0) {
		text = edits = control_edits_format(&stored->edits);
		if (edits == NULL)
			return error_set(err, ERROR_SYSTEM, "out of memory");
	}
	rc = control_state_write(control->state_fd, stored->name,
	    policy_file ? CONTROL_FILE_POLICY : CONTROL_FILE_EDITS, text, text == NULL ? 0 : strlen(text), err);
	free(edits);
	attachment = control_config_format_attachment(stored);
	if (rc == 0 && attachment == NULL)
		rc = error_set(err, ERROR_SYSTEM, "out of memory");
	if (rc == 0)
		rc = control_state_write(
		    control->state_fd, stored->name, CONTROL_FILE_ATTACHMENT, attachment, strlen(attachment), err);
	free(attachment);
	return rc;
}

/* The sandbox as it will be, for policy_store only: all its pointers are those of the two sources. */
static struct control_sandbox
change_result(const struct control_sandbox *sandbox, const struct change *change)
{
	struct control_sandbox result = *sandbox;

	result.generation = change->generation;
	snapshot_hash(change->snapshot, result.hash);
	result.edits = change->edits;
	if (change->replaces_file) {
		result.policy_text = change->policy_text;
		result.policy_applied_us = change->applied_us;
		memcpy(result.policy_file, change->policy_file, sizeof(result.policy_file));
	}
	return result;
}

/* Restores the old files; err says so when that fails as well. */
static void
policy_restore(
    struct control_job *job, const struct control_sandbox *sandbox, const struct change *change, struct error *err)
{
	struct error again;

	if (policy_store(job->control, sandbox, change->replaces_file, &again) < 0)
		error_prefix(err, "the old files could not be restored either (%s)", again.text);
}

/* -- what a new policy file changes -------------------------------------------------------------------------------- */

/* A rule with its terms, wherever it stands. */
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

/* The rules in order of text and terms, to be freed; NULL without memory or rules. */
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

/* Appends what only one of two policies says: "-mode: learn (file:2)", "-allow x (file:3)", "+deny y until
 * 2026-12-01T10:00:00Z (file:9)"; rules sorted by their text. before may be NULL. */
static void
policy_diff(const struct snapshot *before, const struct snapshot *after, json_t *lines)
{
	size_t old_count, new_count, i = 0, j = 0, told = 0;
	struct diff_rule *old = diff_sorted(before, &old_count), *new = diff_sorted(after, &new_count);
	char text[TERMS_LINE_MAX];

	for (unsigned int at = 0; at < POLICY_SETTING_MAX; at++) {
		char was[TERMS_TEXT_MAX] = "", is[TERMS_TEXT_MAX];

		if (before != NULL)
			terms_format_setting(before, at, was);
		if (strcmp(was, terms_format_setting(after, at, is)) == 0)
			continue;
		if (was[0] != '\0')
			json_array_append_new(
			    lines, json_sprintf("-%s (%s)", was, snapshot_setting_origin(before, at)));
		if (is[0] != '\0')
			json_array_append_new(lines, json_sprintf("+%s (%s)", is, snapshot_setting_origin(after, at)));
	}
	while (i < old_count || j < new_count) {
		int order = i == old_count ? 1 : j == new_count ? -1 : diff_compare(&old[i], &new[j]);
		const struct diff_rule *rule = order < 0 ? &old[i] : &new[j];

		i += order <= 0;
		j += order >= 0;
		if (order != 0 && told++ < POLICY_DIFF_MAX)
			json_array_append_new(lines,
			    json_sprintf("%c%s (%s)", order < 0 ? '-' : '+',
				terms_format_rule(rule->text, &rule->terms, text), rule->origin));
	}
	if (told > POLICY_DIFF_MAX)
		json_array_append_new(lines, json_sprintf("and %zu more", told - POLICY_DIFF_MAX));
	free(old);
	free(new);
}

/* -- the answer ---------------------------------------------------------------------------------------------------- */

/* Warns of an allow rule that has no effect, because a deny rule beats it. */
static void
policy_warn(const struct control *control, json_t *warnings, const struct snapshot *snapshot, const struct rule *rule)
{
	uint16_t port = rule->range_count == 0 ? 443 : rule->ranges[0].first;
	const struct prefix *prefix = &rule->prefix;
	int64_t now_us = clock_real_us();
	struct decision decision;
	struct geo_place place;
	char word[RULE_TEXT_MAX];

	if (rule->action != RULE_ALLOW || rule->wildcard)
		return;
	if (rule->kind == RULE_HOST) {
		decision = snapshot_decide_host(snapshot, &rule->name, rule->proto, port, now_us);
	} else if (prefix->bits == (prefix->addr.family == 6 ? 128 : 32)) {
		geo_lookup(&control->geo, &prefix->addr, &place);
		decision = verdict_address(snapshot, &prefix->addr, &place.at, rule->proto, port, now_us);
	} else { /* the addresses of a wider one can be in many places */
		decision = snapshot_decide_addr(snapshot, &prefix->addr, rule->proto, port, now_us);
	}
	if (decision.verdict == VERDICT_ALLOWED)
		return;
	if (decision.rule == SNAPSHOT_NO_RULE)
		json_array_append_new(warnings,
		    json_sprintf("%s stays denied: %s", rule_format(rule, word),
			decision.out_of_bounds ? "the organisation's policy does not allow it too"
					       : reason_sentence(decision.reason)));
	else
		json_array_append_new(warnings,
		    json_sprintf("%s stays denied by: %s (%s)", rule_format(rule, word),
			snapshot_rule_text(snapshot, decision.rule), snapshot_rule_origin(snapshot, decision.rule)));
}

/* The edits that came last are the ones of this change. */
static void
policy_warn_all(const struct control *control, const struct control_sandbox *sandbox, const struct change *change)
{
	bool learns = snapshot_mode(change->snapshot) == POLICY_MODE_LEARN,
	     learned = sandbox->snapshot != NULL && snapshot_mode(sandbox->snapshot) == POLICY_MODE_LEARN;
	size_t count = change->edits.rule_count, first = change->changed > count ? 0 : count - change->changed;

	if (!change->replaces_file)
		for (size_t i = first; i < count; i++)
			policy_warn(control, change->warnings, change->snapshot, &change->edits.rules[i]);
	if (learns && !learned)
		json_array_append_new(change->warnings,
		    json_sprintf("%s %s: what no rule allows is let through and marked, until mode: enforce",
			sandbox->name, change->preview ? "would learn" : "learns from now on"));
}

/* Answers the request. done NULL: nothing had to change. */
static void
policy_answer(struct control_job *job, const struct control_sandbox *sandbox, const struct change *change,
    const struct msg_policy_done *done)
{
	json_t *cut = json_array();

	for (uint32_t i = 0; done != NULL && i < done->cut_count && i < MSG_CUT_MAX; i++) {
		const struct msg_cut_flow *flow = &done->cut[i];
		char text[ADDR_TEXT_MAX];

		json_array_append_new(cut,
		    json_pack("{s:I, s:s%, s:s, s:i}", "record", (json_int_t)flow->record_id, "name", flow->name.text,
			(size_t)flow->name.len, "address", addr_format(&flow->dst, text), "port", (int)flow->dport));
	}
	control_job_end(job, 200,
	    json_pack("{s:s, s:b, s:I, s:I, s:s, s:O, s:I, s:o, s:O}", "name", sandbox->name, "preview",
		(int)change->preview, "generation", (json_int_t)sandbox->generation, "changed",
		(json_int_t)change->changed, "policy_hash", sandbox->hash, "change", change->change, "cut_count",
		(json_int_t)(done == NULL ? 0 : done->cut_count), "cut", cut, "warnings", change->warnings));
}

/* The change is in force everywhere: takes it over into the sandbox, and what it replaces into the change. */
static void
policy_commit(struct control *control, struct control_sandbox *sandbox, struct change *change)
{
	struct policy edits = sandbox->edits;
	struct snapshot *snapshot = sandbox->snapshot;

	control_ends_flush(control, sandbox);
	sandbox->generation = change->generation;
	sandbox->snapshot = change->snapshot;
	change->snapshot = snapshot;
	sandbox->edits = change->edits;
	change->edits = edits;
	snapshot_hash(sandbox->snapshot, sandbox->hash);
	if (change->replaces_file) {
		control_sandbox_release_text(sandbox->policy_text);
		sandbox->policy_text = change->policy_text;
		change->policy_text = NULL;
		sandbox->policy_applied_us = change->applied_us;
		memcpy(sandbox->policy_file, change->policy_file, sizeof(sandbox->policy_file));
	}
	sandbox->error[0] = '\0';
	control_usage_keep(control, sandbox);
	control_ends_begin(control, sandbox);
}

/* -- the keeper ---------------------------------------------------------------------------------------------------- */

static int
policy_ask(struct control_job *job, uint16_t type, const struct control_sandbox *sandbox, uint32_t generation, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err)
{
	struct msg_policy ask = {.id = sandbox->id, .generation = generation};

	return control_job_ask(job, type, &ask, sizeof(ask), fd, handler, err);
}

static void
resync_handler(struct control_job *job, const void *answer)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct error err;

	if (control_job_result(answer, &err) < 0) {
		error_prefix(&err, "the policy in force is unknown");
		if (sandbox != NULL)
			snprintf(sandbox->error, sizeof(sandbox->error), "%s", err.text);
		control_job_fail(job, &err);
		return;
	}
	control_job_end(job, 200, NULL);
}

/* Sends the policy on disk and in memory again, as the newest generation. */
static void
resync_start(struct control_job *job)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct snapshot *snapshot;
	struct error err;
	int fd, rc;

	if (sandbox == NULL || !sandbox->attached) {
		control_job_end(job, 200, NULL);
		return;
	}
	if (control_compile(job->control, sandbox->policy_text, sandbox->policy_file, sandbox->policy_applied_us,
		&sandbox->edits, &fd, &snapshot, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	sandbox->generation = ++sandbox->last_generation;
	rc = policy_store(job->control, sandbox, false, &err);
	if (rc == 0)
		rc = policy_ask(job, MSG_POLICY, sandbox, sandbox->generation, fd, resync_handler, &err);
	close(fd);
	snapshot_free(snapshot);
	if (rc < 0)
		control_job_fail(job, &err);
}

static void
policy_done_handler(struct control_job *job, const void *answer)
{
	const struct msg_policy_done *done = answer;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct change *change = job->data;
	struct error err;
	char hash[65];

	if (control_job_result(answer, &err) < 0) {
		if (!change->preview)
			policy_restore(job, sandbox, change, &err);
		if (!change->preview && done == NULL)
			control_job_submit(job->control, NULL, job->name, NULL, resync_start);
		control_job_fail(job, &err);
		return;
	}
	if (change->preview) {
		policy_answer(job, sandbox, change, done);
		return;
	}
	snapshot_hash(change->snapshot, hash);
	control_record_event(job->control, EVENT_POLICY, sandbox->id, &job->peer,
	    json_pack("{s:I, s:I, s:s, s:s, s:O, s:I}", "from", (json_int_t)sandbox->generation, "to",
		(json_int_t)change->generation, "hash_before", sandbox->hash, "hash", hash, "change", change->change,
		"cut", (json_int_t)done->cut_count));
	policy_commit(job->control, sandbox, change);
	policy_answer(job, sandbox, change, done);
}

/* Compiles, stores, sends, and answers the job; or fails it with all as it was. */
static void
policy_apply(struct control_job *job, struct control_sandbox *sandbox, struct change *change)
{
	struct control_sandbox result;
	struct error err;
	int rc;

	if (change->changed == 0) {
		policy_answer(job, sandbox, change, NULL);
		return;
	}
	if (control_compile(job->control, change->replaces_file ? change->policy_text : sandbox->policy_text,
		change->replaces_file ? change->policy_file : sandbox->policy_file,
		change->replaces_file ? change->applied_us : sandbox->policy_applied_us, &change->edits, &change->fd,
		&change->snapshot, &err) < 0 ||
	    control_compile_check_places(job->control, change->snapshot, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	policy_warn_all(job->control, sandbox, change);
	if (change->replaces_file)
		policy_diff(sandbox->snapshot, change->snapshot, change->change);
	if (change->preview) {
		if (policy_ask(job, MSG_POLICY_PREVIEW, sandbox, sandbox->generation, change->fd, policy_done_handler,
			&err) < 0)
			control_job_fail(job, &err);
		return;
	}
	change->generation = ++sandbox->last_generation;
	result = change_result(sandbox, change);
	rc = policy_store(job->control, &result, change->replaces_file, &err);
	if (rc == 0)
		rc = policy_ask(job, MSG_POLICY, sandbox, change->generation, change->fd, policy_done_handler, &err);
	if (rc < 0) {
		policy_restore(job, sandbox, change, &err);
		control_job_fail(job, &err);
	}
}

/* -- requests ------------------------------------------------------------------------------------------------------ */

/* Checks "if_generation", by which every request may say which generation it builds on, so that two people do not undo
 * each other's edits without noticing. Takes the member out of the body. */
static int
change_expects(json_t *body, const struct control_sandbox *sandbox, struct error *err)
{
	json_t *expected = json_object_get(body, "if_generation");
	int64_t generation = sandbox->generation;

	if (expected == NULL)
		return 0;
	if (!json_is_integer(expected))
		return error_set(err, ERROR_USAGE, "\"if_generation\" must be an integer");
	if (control_json_integer(expected, "if_generation", 0, UINT32_MAX, &generation, err) < 0)
		return -1;
	json_object_del(body, "if_generation");
	if (generation == sandbox->generation)
		return 0;
	return error_set(err, ERROR_EXISTS,
	    "the policy of %s is at generation %u, not %lld: it was changed meanwhile; look at it again", sandbox->name,
	    sandbox->generation, (long long)generation);
}

/* Begins a change of an attached sandbox, has it read from the request, and applies it. */
static void
policy_start(struct control_job *job,
    int (*read)(
	struct control_job *job, const struct control_sandbox *sandbox, struct change *change, struct error *err))
{
	struct error err;
	struct control_sandbox *sandbox = control_sandbox_settled(job->control, job->name, &err);
	struct change *change = calloc(1, sizeof(*change));

	if (change != NULL) {
		change->fd = -1;
		change->applied_us = clock_real_us();
		change->change = json_array();
		change->warnings = json_array();
		job->data = change;
		job->data_free = change_free;
	}
	if (change == NULL || change->change == NULL || change->warnings == NULL)
		error_set(&err, ERROR_SYSTEM, "out of memory");
	else if (sandbox != NULL && !sandbox->attached)
		error_set(&err, ERROR_EXISTS, "sandbox %s is not attached (%s); detach it and attach it again",
		    job->name, sandbox->error);
	else if (sandbox != NULL && change_expects(job->body, sandbox, &err) == 0 &&
	    policy_merge(&change->edits, &sandbox->edits, &err) == 0 && read(job, sandbox, change, &err) == 0) {
		policy_apply(job, sandbox, change);
		return;
	}
	control_job_fail(job, &err);
}

/* Reads {"action": ..., "rules": [...]}; action may be missing when optional (then *ret_any is set). ret_grant: also
 * "for", seconds from applied_us on that the rules hold, and "uses"; NULL: these are unknown members. */
static int
rules_read(json_t *body, bool optional, enum rule_action *ret_action, bool *ret_any, json_t **ret_rules,
    int64_t applied_us, struct control_edits_grant *ret_grant, struct error *err)
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

static int
edit_read(struct control_job *job, const struct control_sandbox *sandbox, struct change *change, struct error *err)
{
	struct control_edits_grant grant = {.sandbox = sandbox};
	enum rule_action action;
	json_t *words;
	bool any;

	if (rules_read(job->body, false, &action, &any, &words, change->applied_us, &grant, err) < 0)
		return -1;
	return control_edits_add(
	    &change->edits, action, words, &grant, job->peer.uid, &change->changed, change->change, err);
}

void
control_policy_edit_start(struct control_job *job)
{
	policy_start(job, edit_read);
}

static int
revoke_read(struct control_job *job, const struct control_sandbox *sandbox, struct change *change, struct error *err)
{
	enum rule_action action;
	json_t *words;
	bool any;

	if (rules_read(job->body, true, &action, &any, &words, 0, NULL, err) < 0)
		return -1;
	return control_edits_revoke(sandbox, &change->edits, action, any, words, &change->changed, change->change, err);
}

void
control_policy_revoke_start(struct control_job *job)
{
	policy_start(job, revoke_read);
}

static int
replace_read(struct control_job *job, const struct control_sandbox *sandbox, struct change *change, struct error *err)
{
	json_t *text, *file, *preview;
	const struct control_field fields[] = {
	    {"policy", JSON_STRING, true, &text},
	    {"policy_file", JSON_STRING, false, &file},
	    {"preview", JSON_TRUE, false, &preview},
	};

	(void)sandbox;
	if (control_json_fields(job->body, fields, sizeof(fields) / sizeof(fields[0]), err) < 0 ||
	    control_json_file_name(file, "policy_file", change->policy_file, sizeof(change->policy_file), err) < 0)
		return -1;
	change->policy_text = control_sandbox_share_text(json_string_value(text));
	if (change->policy_text == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	change->replaces_file = true;
	change->preview = json_is_true(preview);
	change->changed = 1;
	json_array_append_new(change->change,
	    json_sprintf("policy %s", change->policy_file[0] == '\0' ? "replaced" : change->policy_file));
	return 0;
}

void
control_policy_replace_start(struct control_job *job)
{
	policy_start(job, replace_read);
}
