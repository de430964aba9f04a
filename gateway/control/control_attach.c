/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attach and detach are each written to disk first and then done in the kernel, and undone when a step fails. */
#include "gateway/control/control_attach.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/control/control_compile.h"
#include "gateway/control/control_config.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_ends.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_show.h"
#include "gateway/control/control_state.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int
control_attach_ask(struct control_job *job, const struct control_sandbox *sandbox, bool adopt, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err)
{
	const struct tap_config *config = &sandbox->config;
	struct msg_attach ask;

	memset(&ask, 0, sizeof(ask));
	ask.id = sandbox->id;
	ask.generation = sandbox->generation;
	ask.adopt = adopt;
	ask.kind = config->kind;
	ask.owner_uid = config->owner_uid;
	ask.owner_gid = config->owner_gid;
	ask.pid = sandbox->pid;
	ask.netns_dev = sandbox->netns_dev;
	ask.netns_ino = sandbox->netns_ino;
	memcpy(ask.netns_path, sandbox->netns_source, sizeof(ask.netns_path));
	memcpy(ask.name, config->name, sizeof(ask.name));
	memcpy(ask.ifname, config->ifname, sizeof(ask.ifname));
	memcpy(ask.guest_mac, config->guest_mac, sizeof(ask.guest_mac));
	ask.bits4 = config->bits4;
	ask.bits6 = config->bits6;
	ask.guest4 = config->guest4;
	ask.router4 = config->router4;
	ask.guest6 = config->guest6;
	ask.router6 = config->router6;
	/* Usage first: the keeper takes it for the sandbox that is attached next. */
	if (usage_table_send(&sandbox->usage, &job->control->keeper, sandbox->id, "") < 0)
		return error_set(err, ERROR_SYSTEM, "the keeper cannot be reached");
	return control_job_ask(job, MSG_ATTACH, &ask, sizeof(ask), fd, handler, err);
}

int
control_attach_take(
    struct control *control, struct control_sandbox *sandbox, const struct msg_attached *attached, struct error *err)
{
	char *text;
	int rc = 0;

	snprintf(sandbox->netns, sizeof(sandbox->netns), "%.*s", MSG_PATH_MAX - 1, attached->netns);
	snprintf(sandbox->config.ifname, sizeof(sandbox->config.ifname), "%.*s", (int)sizeof(attached->ifname) - 1,
	    attached->ifname);
	memcpy(sandbox->config.guest_mac, attached->guest_mac, sizeof(attached->guest_mac));
	memcpy(sandbox->router_mac, attached->router_mac, sizeof(attached->router_mac));
	sandbox->netns_dev = attached->netns_dev;
	sandbox->netns_ino = attached->netns_ino;
	sandbox->attached = true;
	sandbox->restoring = false;
	text = control_config_format_attachment(sandbox);
	if (text == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	/* After a start it is there already, and waiting for the disk for each of thousands would take seconds. */
	if (!control_state_holds(control->state_fd, sandbox->name, CONTROL_FILE_ATTACHMENT, text, strlen(text)))
		rc = control_state_write(
		    control->state_fd, sandbox->name, CONTROL_FILE_ATTACHMENT, text, strlen(text), err);
	free(text);
	return rc;
}

/* -- attach -------------------------------------------------------------------------------------------------------- */

struct attach {
	struct control_sandbox *sandbox; /* owned until it is in the table */
	int fd;                          /* snapshot */
};

static void
attach_free(void *data)
{
	struct attach *attach = data;

	control_sandbox_free(attach->sandbox);
	if (attach->fd >= 0)
		close(attach->fd);
	free(attach);
}

/* Body to sandbox: configuration, policy text, first live edits. */
static int
attach_read_body(struct control_job *job, struct control_sandbox *sandbox, struct error *err)
{
	json_t *policy, *allow, *deny, *parent;
	const struct control_field fields[] = {
	    {"policy", JSON_STRING, false, &policy},
	    {"allow", JSON_ARRAY, false, &allow},
	    {"deny", JSON_ARRAY, false, &deny},
	    {"parent", JSON_STRING, false, &parent},
	};
	size_t changed = 0;

	if (control_config_parse(job->body, fields, sizeof(fields) / sizeof(fields[0]), sandbox, err) < 0 ||
	    control_config_find_parent(job->control, parent, sandbox, err) < 0)
		return -1;
	if (policy != NULL) {
		sandbox->policy_text = control_sandbox_share_text(json_string_value(policy));
		if (sandbox->policy_text == NULL)
			return error_set(err, ERROR_SYSTEM, "out of memory");
	}
	sandbox->uid = job->peer.uid;
	if (control_edits_add(&sandbox->edits, RULE_ALLOW, allow, NULL, job->peer.uid, &changed, NULL, err) < 0)
		return -1;
	return control_edits_add(&sandbox->edits, RULE_DENY, deny, NULL, job->peer.uid, &changed, NULL, err);
}

static int
attach_store(struct control *control, const struct control_sandbox *sandbox, struct error *err)
{
	struct control_files files = {0};
	char *attachment = control_config_format_attachment(sandbox), *edits = NULL;
	int rc = 0;

	if (sandbox->edits.rule_count > 0)
		edits = control_edits_format(&sandbox->edits);
	if (attachment == NULL || (edits == NULL && sandbox->edits.rule_count > 0))
		rc = error_set(err, ERROR_SYSTEM, "out of memory");
	if (rc == 0) {
		files.files[CONTROL_FILE_ATTACHMENT] = (struct control_text){attachment, strlen(attachment)};
		if (edits != NULL)
			files.files[CONTROL_FILE_EDITS] = (struct control_text){edits, strlen(edits)};
		if (sandbox->policy_text != NULL)
			files.files[CONTROL_FILE_POLICY] = (struct control_text){
			    (char *)(uintptr_t)sandbox->policy_text, strlen(sandbox->policy_text)};
		rc = control_state_create(control->state_fd, sandbox->name, &files, err);
	}
	free(attachment);
	free(edits);
	return rc;
}

/* The attach failed: leave no trace on disk, and none in the kernel. */
static void
attach_undo(struct control_job *job, const struct control_sandbox *sandbox, bool in_kernel, const struct error *err)
{
	struct control *control = job->control;
	struct msg_sandbox ask = {.id = sandbox->id};
	struct error undo;

	if (control_state_retire(control->state_fd, sandbox->name, &undo) < 0 ||
	    control_state_purge(control->state_fd, sandbox->name, &undo) < 0)
		log_warnx("%s: undoing an attach: %s", sandbox->name, undo.text);
	if (in_kernel)
		ipc_send(&control->keeper, MSG_DETACH, ++control->last_tag, &ask, sizeof(ask), NULL, 0);
	control_record_sandbox(control, sandbox, true);
	control_job_fail(job, err);
}

static void
attach_answer(struct control_job *job, const void *answer)
{
	struct control *control = job->control;
	struct attach *attach = job->data;
	struct control_sandbox *sandbox = attach->sandbox;
	struct error err;
	int rc;

	if (control_job_result(answer, &err) < 0) {
		attach_undo(job, sandbox, answer == NULL, &err);
		return;
	}
	rc = control_attach_take(control, sandbox, answer, &err);
	if (rc == 0 && control_sandbox_insert(control, sandbox) < 0)
		rc = error_set(&err, ERROR_SYSTEM, "out of memory");
	if (rc < 0) {
		attach_undo(job, sandbox, true, &err);
		return;
	}
	attach->sandbox = NULL;
	control_record_sandbox(control, sandbox, false);
	control_record_event(control, EVENT_ATTACH, sandbox->id, &job->peer,
	    json_pack("{s:s, s:I, s:s, s:s}", "name", sandbox->name, "generation", (json_int_t)sandbox->generation,
		"hash", sandbox->hash, "policy_file", sandbox->policy_file));
	control_ends_begin(control, sandbox);
	control_job_end(job, 201, control_show_sandbox(sandbox));
}

static int
attach_prepare(struct control_job *job, struct attach *attach, struct error *err)
{
	struct control *control = job->control;
	struct control_sandbox *sandbox = attach->sandbox;

	if (attach_read_body(job, sandbox, err) < 0)
		return -1;
	if (control_sandbox_find(control, job->name) != NULL)
		return error_set(err, ERROR_EXISTS,
		    "sandbox %s is attached already; detach it first, or choose another name", job->name);
	if (control->sandbox_count >= CONTROL_SANDBOXES_MAX)
		return error_set(err, ERROR_LIMIT, "%d sandboxes are attached already", CONTROL_SANDBOXES_MAX);
	sandbox->policy_applied_us = clock_real_us();
	if (control_compile(control, sandbox->policy_text, sandbox->policy_file, sandbox->policy_applied_us,
		&sandbox->edits, &attach->fd, &sandbox->snapshot, err) < 0 ||
	    control_compile_check_places(control, sandbox->snapshot, err) < 0)
		return -1;
	snapshot_hash(sandbox->snapshot, sandbox->hash);
	sandbox->generation = sandbox->last_generation = 1;
	/* Microseconds since the epoch, but never an id that was given out before, even if the clock went back. */
	sandbox->id = sandbox->policy_applied_us > control->last_id ? sandbox->policy_applied_us : control->last_id + 1;
	if (control_state_write_last_id(control->state_fd, sandbox->id, err) < 0)
		return -1;
	control->last_id = sandbox->id;
	return attach_store(control, sandbox, err);
}

void
control_attach_start(struct control_job *job)
{
	struct attach *attach = calloc(1, sizeof(*attach));
	struct error err;

	error_set(&err, ERROR_SYSTEM, "out of memory");
	if (attach != NULL) {
		attach->fd = -1;
		attach->sandbox = control_sandbox_new(job->name);
		job->data = attach;
		job->data_free = attach_free;
	}
	if (attach == NULL || attach->sandbox == NULL || attach_prepare(job, attach, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	/* The log knows the sandbox before the gateways record anything about it. */
	control_record_sandbox(job->control, attach->sandbox, false);
	if (control_attach_ask(job, attach->sandbox, false, attach->fd, attach_answer, &err) < 0)
		attach_undo(job, attach->sandbox, false, &err);
}

/* -- detach -------------------------------------------------------------------------------------------------------- */

void
control_attach_finish_detach(
    struct control *control, struct control_sandbox *sandbox, const struct control_peer *peer, const char *why)
{
	struct error err;

	if (control_state_purge(control->state_fd, sandbox->name, &err) < 0)
		log_warnx("%s: %s", sandbox->name, err.text);
	control_record_event(
	    control, EVENT_DETACH, sandbox->id, peer, json_pack("{s:s, s:s*}", "name", sandbox->name, "why", why));
	if (sandbox->id != 0)
		control_record_sandbox(control, sandbox, true);
	control_sandbox_remove(control, sandbox);
}

static void
detach_answer(struct control_job *job, const void *answer)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->name);
	struct error err, back;

	if (control_job_result(answer, &err) == 0 || err.code == ERROR_NOT_FOUND) {
		control_attach_finish_detach(job->control, sandbox, &job->peer, NULL);
		control_job_end(job, 200, json_pack("{s:s, s:b}", "name", job->name, "detached", 1));
		return;
	}
	if (control_state_unretire(job->control->state_fd, job->name, &back) < 0)
		error_prefix(&err, "the folder could not be restored either (%s)", back.text);
	control_job_fail(job, &err);
}

void
control_attach_detach_start(struct control_job *job)
{
	struct error err;
	struct control_sandbox *sandbox = control_sandbox_settled(job->control, job->name, &err);
	struct msg_forget by_name = {.keep = 0};
	struct msg_sandbox by_id = {0};
	int rc;

	if (sandbox == NULL || control_state_retire(job->control->state_fd, job->name, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	by_id.id = sandbox->id;
	memcpy(by_name.name, sandbox->name, sizeof(by_name.name));
	if (sandbox->attached)
		rc = control_job_ask(job, MSG_DETACH, &by_id, sizeof(by_id), -1, detach_answer, &err);
	else /* not attached again after a start: the keeper may still hold it, or a part of it */
		rc = control_job_ask(job, MSG_FORGET, &by_name, sizeof(by_name), -1, detach_answer, &err);
	if (rc < 0) {
		control_state_unretire(job->control->state_fd, job->name, NULL);
		control_job_fail(job, &err);
	}
}
