/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changing a sandbox's policy: allow, deny, revoke, and a new policy file.
 *
 * A change is built beside what is in force: policy text, edits, snapshot. It is compiled (a mistake ends here),
 * written to disk, sent to the keeper, and becomes the sandbox's own only when the gateways have it in force; otherwise
 * the old files are put back. When the keeper does not answer at all, what is in force is unknown, so the old policy is
 * sent again as a newer generation. */
#include "gateway/control/control.h"

#include "gateway/control/control_json.h"
#include "gateway/control/control_state.h"

#include "base/clock.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void
change_free(void *data)
{
	struct control_change *change = data;

	if (change == NULL)
		return;
	control_text_release(change->policy_text);
	policy_free(&change->edits);
	if (change->fd >= 0)
		close(change->fd);
	snapshot_free(change->snapshot);
	json_decref(change->change);
	json_decref(change->warnings);
	free(change);
}

/* Every request for a change may say which generation it builds on, so that two people do not undo each other's edits
 * unseen. Takes the member out of the body. */
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
	    "the policy of %s is at generation %u, not %lld: somebody changed it; look at it again", sandbox->name,
	    sandbox->generation, (long long)generation);
}

struct control_change *
control_change_begin(struct control_job *job, struct control_sandbox **ret_sandbox)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct control_change *change = calloc(1, sizeof(*change));
	struct error err = {0};

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
	else if (sandbox == NULL)
		error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", job->name);
	else if (sandbox->restoring)
		error_set(&err, ERROR_EXISTS, "sandbox %s is being re-attached after a start; try again", job->name);
	else if (!sandbox->attached)
		error_set(&err, ERROR_EXISTS, "sandbox %s is not attached (%s); detach it and attach it again",
		    job->name, sandbox->error);
	else if (change_expects(job->body, sandbox, &err) == 0 &&
	    control_policy_copy(&change->edits, &sandbox->edits, &err) == 0) {
		*ret_sandbox = sandbox;
		return change;
	}
	control_job_fail(job, &err);
	return NULL;
}

/* Write one form of the sandbox to disk: the changed file, then the attachment that names generation and hash. */
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
	attachment = control_attachment_format(stored);
	if (rc == 0 && attachment == NULL)
		rc = error_set(err, ERROR_SYSTEM, "out of memory");
	if (rc == 0)
		rc = control_state_write(
		    control->state_fd, stored->name, CONTROL_FILE_ATTACHMENT, attachment, strlen(attachment), err);
	free(attachment);
	return rc;
}

/* The sandbox as it will be, for policy_store only: shares everything with its two sources. */
static struct control_sandbox
change_preview(const struct control_sandbox *sandbox, const struct control_change *change)
{
	struct control_sandbox preview = *sandbox;

	preview.generation = change->generation;
	snapshot_hash(change->snapshot, preview.hash);
	preview.edits = change->edits;
	if (change->replaces_file) {
		preview.policy_text = change->policy_text;
		preview.policy_applied_us = change->applied_us;
		memcpy(preview.policy_file, change->policy_file, sizeof(preview.policy_file));
	}
	return preview;
}

static json_t *
policy_cut_json(const struct msg_policy_done *done)
{
	json_t *cut = json_array();

	for (uint32_t i = 0; i < done->cut_count && i < MSG_CUT_MAX; i++) {
		const struct msg_cut_flow *flow = &done->cut[i];
		char text[ADDR_TEXT_MAX];

		json_array_append_new(cut,
		    json_pack("{s:I, s:s%, s:s, s:i}", "record", (json_int_t)flow->record_id, "name", flow->name.text,
			(size_t)flow->name.len, "address", addr_format(&flow->dst, text), "port", (int)flow->dport));
	}
	return cut;
}

/* An allow rule that a deny rule beats does nothing: say so instead of leaving people to wonder. */
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
		decision = snapshot_decide_located(snapshot, &prefix->addr, &place.at, rule->proto, port, now_us);
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
policy_warn_all(
    const struct control *control, const struct control_sandbox *sandbox, const struct control_change *change)
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

/* done NULL: nothing had to change. */
static void
policy_answer(struct control_job *job, const struct control_sandbox *sandbox, const struct control_change *change,
    const struct msg_policy_done *done)
{
	json_t *cut = done == NULL ? json_array() : policy_cut_json(done);

	control_job_end(job, 200,
	    json_pack("{s:s, s:b, s:I, s:I, s:s, s:O, s:I, s:o, s:O}", "name", sandbox->name, "preview",
		(int)change->preview, "generation", (json_int_t)sandbox->generation, "changed",
		(json_int_t)change->changed, "policy_hash", sandbox->hash, "change", change->change, "cut_count",
		(json_int_t)(done == NULL ? 0 : done->cut_count), "cut", cut, "warnings", change->warnings));
}

static void
policy_record(struct control_job *job, const struct control_sandbox *sandbox, const struct control_change *change,
    const char *new_hash, uint32_t cut)
{
	control_record_event(job->control, EVENT_POLICY, sandbox->id, &job->peer,
	    json_pack("{s:I, s:I, s:s, s:s, s:O, s:I}", "from", (json_int_t)sandbox->generation, "to",
		(json_int_t)change->generation, "hash_before", sandbox->hash, "hash", new_hash, "change",
		change->change, "cut", (json_int_t)cut));
}

/* In force everywhere: the change becomes the sandbox's. */
static void
policy_commit(struct control *control, struct control_sandbox *sandbox, struct control_change *change)
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
		control_text_release(sandbox->policy_text);
		sandbox->policy_text = change->policy_text;
		change->policy_text = NULL;
		sandbox->policy_applied_us = change->applied_us;
		memcpy(sandbox->policy_file, change->policy_file, sizeof(sandbox->policy_file));
	}
	sandbox->error[0] = '\0';
	control_usage_keep(control, sandbox);
	control_ends_begin(control, sandbox);
}

/* -- the keeper's part --------------------------------------------------------------------------------------------- */

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
	const struct msg_policy_done *done = answer;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct error err;

	if (control_job_result(done == NULL ? NULL : &done->result, &err) < 0) {
		error_prefix(&err, "the policy in force is not known");
		if (sandbox != NULL)
			snprintf(sandbox->error, sizeof(sandbox->error), "%s", err.text);
		control_job_fail(job, &err);
		return;
	}
	control_job_end(job, 200, NULL);
}

/* Send what is on disk and in memory again, as the newest generation. */
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
	if (control_policy_compile(job->control, sandbox->policy_text, sandbox->policy_file, sandbox->policy_applied_us,
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

/* The old files come back; what cannot be put back is said as well. */
static void
policy_roll_back(struct control_job *job, const struct control_sandbox *sandbox, const struct control_change *change,
    struct error *err)
{
	struct error again;

	if (policy_store(job->control, sandbox, change->replaces_file, &again) < 0)
		error_prefix(err, "%s; and then", again.text);
}

static void
policy_done_handler(struct control_job *job, const void *answer)
{
	const struct msg_policy_done *done = answer;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct control_change *change = job->data;
	struct error err;
	char hash[65];

	if (control_job_result(done == NULL ? NULL : &done->result, &err) < 0) {
		policy_roll_back(job, sandbox, change, &err);
		if (done == NULL)
			control_job_submit(job->control, NULL, job->name, NULL, resync_start);
		control_job_fail(job, &err);
		return;
	}
	snapshot_hash(change->snapshot, hash);
	policy_record(job, sandbox, change, hash, done->cut_count);
	policy_commit(job->control, sandbox, change);
	policy_answer(job, sandbox, change, done);
}

static void
policy_preview_handler(struct control_job *job, const void *answer)
{
	const struct msg_policy_done *done = answer;
	struct error err;

	if (control_job_result(done == NULL ? NULL : &done->result, &err) < 0)
		control_job_fail(job, &err);
	else
		policy_answer(job, control_sandbox_find(job->control, job->name), job->data, done);
}

void
control_change_apply(struct control_job *job, struct control_sandbox *sandbox, struct control_change *change)
{
	struct control_sandbox preview;
	struct error err;
	int rc;

	if (change->changed == 0) {
		policy_answer(job, sandbox, change, NULL);
		return;
	}
	if (control_policy_compile(job->control, change->replaces_file ? change->policy_text : sandbox->policy_text,
		change->replaces_file ? change->policy_file : sandbox->policy_file,
		change->replaces_file ? change->applied_us : sandbox->policy_applied_us, &change->edits, &change->fd,
		&change->snapshot, &err) < 0 ||
	    control_places_check(job->control, change->snapshot, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	policy_warn_all(job->control, sandbox, change);
	if (change->replaces_file)
		control_diff(sandbox->snapshot, change->snapshot, change->change);
	if (change->preview) {
		if (policy_ask(job, MSG_POLICY_PREVIEW, sandbox, sandbox->generation, change->fd,
			policy_preview_handler, &err) < 0)
			control_job_fail(job, &err);
		return;
	}
	change->generation = ++sandbox->last_generation;
	preview = change_preview(sandbox, change);
	rc = policy_store(job->control, &preview, change->replaces_file, &err);
	if (rc == 0)
		rc = policy_ask(job, MSG_POLICY, sandbox, change->generation, change->fd, policy_done_handler, &err);
	if (rc < 0) {
		policy_roll_back(job, sandbox, change, &err);
		control_job_fail(job, &err);
	}
}
