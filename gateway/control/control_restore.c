/* SPDX-License-Identifier: GPL-3.0-or-later */
/* After a start: the sandboxes of the state folder are attached again, a window of them at a time.
 *
 * Nothing stored is trusted: names, addresses and policy text are parsed as untrusted input. A sandbox whose attachment
 * cannot be read stays visible as broken and is not attached. One whose policy cannot be compiled is attached with an
 * empty policy: nothing is reachable, and each attempt is answered and recorded. A container whose namespace is gone is
 * dropped. */
#include "gateway/control/control_restore.h"

#include "base/log.h"
#include "gateway/control/control_attach.h"
#include "gateway/control/control_compile.h"
#include "gateway/control/control_config.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_ends.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_state.h"
#include "gateway/control/control_usage.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Restores in progress at once after a start. */
#define CONTROL_RESTORE_WINDOW 16

static void
restore_break(struct control_sandbox *sandbox, const struct error *err)
{
	snprintf(sandbox->error, sizeof(sandbox->error), "%s", err->text);
	log_warnx("sandbox %s is broken: %s", sandbox->name, err->text);
}

static int
restore_read(struct control *control, struct control_sandbox *sandbox, struct error *err)
{
	struct control_files files;
	const struct control_text *attachment = &files.files[CONTROL_FILE_ATTACHMENT],
				  *policy = &files.files[CONTROL_FILE_POLICY],
				  *edits = &files.files[CONTROL_FILE_EDITS], *usage = &files.files[CONTROL_FILE_USAGE],
				  *ends = &files.files[CONTROL_FILE_ENDS];
	int rc;

	if (control_state_read(control->state_fd, sandbox->name, &files, err) < 0)
		return -1;
	rc = control_config_parse_attachment(sandbox, attachment->text, attachment->len, err);
	if (rc == 0) {
		sandbox->restoring = true;
		sandbox->policy_text = control_sandbox_share_text(policy->text);
		if (policy->text != NULL && sandbox->policy_text == NULL)
			rc = error_set(err, ERROR_SYSTEM, "out of memory");
		else if (policy->text != NULL && memchr(policy->text, '\0', policy->len) != NULL)
			rc = error_set(err, ERROR_POLICY, "policy.yaml: contains a NUL byte"); /* which would cut it */
	}
	if (rc == 0 && edits->text != NULL) {
		policy_free(&sandbox->edits);
		rc = control_edits_parse(edits->text, edits->len, &sandbox->edits, err);
		if (rc < 0)
			policy_init(&sandbox->edits);
	}
	if (rc == 0 && usage->text != NULL)
		rc = control_usage_parse(sandbox, usage->text, usage->len, err);
	if (rc == 0 && ends->text != NULL)
		control_ends_parse(sandbox, ends->text, ends->len);
	control_state_free(&files);
	return rc;
}

static void
restore_load(const char *name, void *context)
{
	struct control *control = context;
	struct msg_forget forget = {.keep = 1};
	struct control_sandbox *sandbox;
	struct error err;

	if (!tap_config_name_valid(name, TAP_NAME_MAX) || control->sandbox_count >= CONTROL_SANDBOXES_MAX) {
		log_warnx("state: ignoring %s: %s", name,
		    control->sandbox_count >= CONTROL_SANDBOXES_MAX ? "too many" : "not a sandbox's name");
		return;
	}
	sandbox = control_sandbox_new(name);
	if (sandbox == NULL || control_sandbox_insert(control, sandbox) < 0)
		log_fatalx("out of memory while loading sandboxes");
	if (restore_read(control, sandbox, &err) < 0) {
		restore_break(sandbox, &err);
		/* Control alone may have been restarted: then the keeper still serves the sandbox, by a policy that
		 * cannot be shown any more. It keeps namespace and device, closed. */
		memcpy(forget.name, sandbox->name, sizeof(forget.name));
		if (!sandbox->restoring)
			ipc_send(&control->keeper, MSG_FORGET, 0, &forget, sizeof(forget), NULL, 0);
	}
	if (sandbox->id > control->last_id)
		control->last_id = sandbox->id;
}

/* -- one sandbox --------------------------------------------------------------------------------------------------- */

static void restore_pump(struct control *control);

static void
restore_finished(struct control *control)
{
	control->restores_active--;
	control->restores_left--;
	restore_pump(control);
	if (control->restores_left == 0)
		control->restore_done(control);
}

/* A container that is gone is dropped; anything else is broken. */
static void
restore_failed(struct control_job *job, struct control_sandbox *sandbox, const struct error *err)
{
	struct control *control = job->control;
	struct error state;

	sandbox->restoring = false;
	if (sandbox->config.kind == TAP_KIND_NETNS && err->code == ERROR_NOT_FOUND) {
		log_warnx("sandbox %s is dropped: %s", sandbox->name, err->text);
		if (control_state_retire(control->state_fd, sandbox->name, &state) < 0)
			log_warnx("%s: %s", sandbox->name, state.text);
		control_attach_finish_detach(control, sandbox, &CONTROL_PEER_NOBODY, err->text);
	} else {
		restore_break(sandbox, err);
		control_record_event(control, EVENT_RESTORED, sandbox->id, &CONTROL_PEER_NOBODY,
		    json_pack("{s:s, s:s}", "name", sandbox->name, "error", sandbox->error));
	}
	control_job_end(job, 200, NULL);
	restore_finished(control);
}

static void
restore_answer(struct control_job *job, const void *answer)
{
	struct control *control = job->control;
	struct control_sandbox *sandbox = control_sandbox_find(control, job->name);
	struct error err;

	if (control_job_result(answer, &err) < 0) {
		restore_failed(job, sandbox, &err);
		return;
	}
	if (control_attach_take(control, sandbox, answer, &err) < 0)
		log_warnx("%s: %s", sandbox->name, err.text);
	control_record_sandbox(control, sandbox, false);
	control_record_event(control, EVENT_RESTORED, sandbox->id, &CONTROL_PEER_NOBODY,
	    json_pack("{s:s, s:I, s:s, s:s*}", "name", sandbox->name, "generation", (json_int_t)sandbox->generation,
		"hash", sandbox->hash, "error", sandbox->error[0] == '\0' ? NULL : sandbox->error));
	if (sandbox->error[0] == '\0')
		control_ends_restored(control, sandbox);
	control_job_end(job, 200, NULL);
	restore_finished(control);
}

/* Attaches with the policy as stored; with an empty one when that is broken. A changed outcome is a new generation. */
static void
restore_start(struct control_job *job)
{
	struct control *control = job->control;
	struct control_sandbox *sandbox = control_sandbox_find(control, job->name);
	struct policy nothing;
	struct error err;
	char hash[65];
	int fd = -1, rc = -1;

	if (sandbox->error[0] == '\0') {
		rc = control_compile(control, sandbox->policy_text, sandbox->policy_file, sandbox->policy_applied_us,
		    &sandbox->edits, &fd, &sandbox->snapshot, &err);
		if (rc < 0)
			restore_break(sandbox, &err);
	}
	if (rc < 0) {
		policy_init(&nothing);
		rc = control_compile(control, NULL, "", 0, &nothing, &fd, &sandbox->snapshot, &err);
		policy_free(&nothing);
	}
	if (rc == 0) {
		control_usage_retire(sandbox);
		snapshot_hash(sandbox->snapshot, hash);
		if (strcmp(hash, sandbox->hash) != 0)
			sandbox->generation = ++sandbox->last_generation;
		memcpy(sandbox->hash, hash, sizeof(hash));
		rc = control_attach_ask(job, sandbox, true, fd, restore_answer, &err);
		close(fd);
	}
	if (rc < 0)
		restore_failed(job, sandbox, &err);
}

/* -- all of them --------------------------------------------------------------------------------------------------- */

/* Jobs may end before their submission returns; the flag keeps that from going deeper and deeper. */
static void
restore_pump(struct control *control)
{
	if (control->restore_pumping)
		return;
	control->restore_pumping = true;
	while (control->restore_at < control->restore_count && control->restores_active < CONTROL_RESTORE_WINDOW) {
		control->restores_active++;
		control_job_submit(control, NULL, control->restore_names[control->restore_at++], NULL, restore_start);
	}
	control->restore_pumping = false;
	if (control->restores_left == 0) {
		free(control->restore_names);
		control->restore_names = NULL;
		control->restore_at = control->restore_count = 0;
	}
}

static void
restore_collect(struct control_sandbox *sandbox, void *context)
{
	struct control *control = context;

	if (sandbox->restoring)
		memcpy(control->restore_names[control->restore_count++], sandbox->name, TAP_NAME_MAX);
}

int
control_restore(struct control *control, void (*done)(struct control *control), struct error *err)
{
	int rc;

	control->restore_done = done;
	if (control_state_read_last_id(control->state_fd, &control->last_id, err) < 0) {
		if (err->code != ERROR_CORRUPT)
			return -1;
		/* It guards against a clock that goes back; so do the ids of the stored sandboxes, almost as well. */
		log_warnx("%s: continuing from the highest id in use", err->text);
	}
	rc = control_state_list(control->state_fd, restore_load, control, err);
	if (rc < 0)
		return -1;
	if (rc > 0)
		log_warnx("%s", err->text);
	control->restore_names = calloc(control->sandbox_count + 1, TAP_NAME_MAX);
	if (control->restore_names == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	control_sandbox_each(control, restore_collect, control);
	control->restores_left = control->restore_count;
	if (control->restores_left == 0)
		control->restore_done(control);
	restore_pump(control);
	return 0;
}
