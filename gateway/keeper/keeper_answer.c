/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's answers to control, and the gateways' answers that they are made of. A request that needs a gateway
 * waits in keeper.pending under a tag of our own until the gateway answers or dies; every request gets exactly one
 * answer. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void
keeper_result(struct msg_result *ret_result, enum error_code code, const char *text)
{
	memset(ret_result, 0, sizeof(*ret_result));
	ret_result->code = code;
	snprintf(ret_result->text, sizeof(ret_result->text), "%s", text);
}

void
keeper_answer(struct ipc *ipc, uint64_t tag, enum error_code code, const char *text)
{
	struct msg_result result;

	keeper_result(&result, code, text);
	ipc_send(ipc, MSG_RESULT, tag, &result, sizeof(result), NULL, 0);
}

struct keeper_pending *
keeper_pending_add(uint16_t type, uint64_t control_tag, struct keeper_sandbox *sandbox)
{
	struct keeper_pending *pending = calloc(1, sizeof(*pending));

	if (pending == NULL)
		log_fatalx("no memory");
	pending->type = type;
	pending->tag = ++keeper.next_tag;
	pending->control_tag = control_tag;
	pending->sandbox = sandbox->id;
	pending->gateway = sandbox->gateway;
	pending->snapshot_fd = -1;
	pending->next = keeper.pending;
	keeper.pending = pending;
	return pending;
}

struct keeper_pending *
keeper_pending_take(uint64_t tag, const struct keeper_role *gateway)
{
	for (struct keeper_pending **at = &keeper.pending; *at != NULL; at = &(*at)->next) {
		struct keeper_pending *pending = *at;

		if (pending->tag != tag || pending->gateway != gateway)
			continue;
		*at = pending->next;
		return pending;
	}
	return NULL;
}

void
keeper_attach_answer(uint64_t control_tag, struct keeper_sandbox *sandbox, enum error_code code, const char *text)
{
	struct msg_attached attached;

	memset(&attached, 0, sizeof(attached));
	if (code == ERROR_NONE && sandbox != NULL)
		keeper_sandbox_describe(sandbox, &attached);
	keeper_result(&attached.result, code, text);
	if (control_tag != 0)
		ipc_send(&keeper.control.ipc, MSG_ATTACHED, control_tag, &attached, sizeof(attached), NULL, 0);
}

void
keeper_policy_answer(uint64_t control_tag, enum error_code code, const char *text)
{
	struct msg_policy_done done;

	memset(&done, 0, sizeof(done));
	keeper_result(&done.result, code, text);
	ipc_send(&keeper.control.ipc, MSG_POLICY_DONE, control_tag, &done, sizeof(done), NULL, 0);
}

void
keeper_leases_answer(uint64_t control_tag, enum error_code code, const char *text)
{
	struct msg_leases_done done;

	memset(&done, 0, sizeof(done));
	keeper_result(&done.result, code, text);
	ipc_send(&keeper.control.ipc, MSG_LEASES_DONE, control_tag, &done, sizeof(done), NULL, 0);
}

static void
keeper_pending_fail(struct keeper_pending *pending)
{
	static const char why[] = "the gateway ended unexpectedly and is being restarted: try again";
	struct keeper_sandbox *sandbox = keeper_sandbox_find(pending->sandbox);

	switch (pending->type) {
	case MSG_ATTACH:
		/* Attached as far as the keeper goes; served when the gateway is back. */
		if (pending->snapshot_fd >= 0 && sandbox != NULL)
			keeper_sandbox_policy_done(sandbox, pending->snapshot_fd, pending->generation, true);
		else if (pending->snapshot_fd >= 0)
			close(pending->snapshot_fd);
		keeper_attach_answer(pending->control_tag, sandbox, ERROR_NONE, "");
		break;
	case MSG_DETACH:
		if (sandbox != NULL)
			keeper_sandbox_free(sandbox, pending->keep);
		keeper_answer(&keeper.control.ipc, pending->control_tag, ERROR_NONE, "");
		break;
	case MSG_POLICY:
		if (sandbox != NULL)
			keeper_sandbox_policy_done(sandbox, pending->snapshot_fd, pending->generation, false);
		else
			close(pending->snapshot_fd);
		keeper_policy_answer(pending->control_tag, ERROR_SYSTEM, why);
		break;
	case MSG_POLICY_PREVIEW:
		keeper_policy_answer(pending->control_tag, ERROR_SYSTEM, why);
		break;
	default:
		keeper_leases_answer(pending->control_tag, ERROR_SYSTEM, why);
		break;
	}
}

/* What the gateway must answer a pending request with. */
static uint16_t
keeper_answer_type(const struct keeper_pending *pending)
{
	if (pending->type == MSG_POLICY || pending->type == MSG_POLICY_PREVIEW || pending->snapshot_fd >= 0)
		return MSG_POLICY_DONE;
	return pending->type == MSG_LEASES ? MSG_LEASES_DONE : MSG_RESULT;
}

static void
keeper_serve_done(const struct keeper_pending *pending, const struct msg_result *result)
{
	struct keeper_sandbox *sandbox = keeper_sandbox_find(pending->sandbox);

	if (result->code != ERROR_NONE && sandbox != NULL && pending->control_tag != 0) {
		keeper_sandbox_free(sandbox, false);
		sandbox = NULL;
	}
	if (result->code != ERROR_NONE && sandbox != NULL)
		sandbox->served = false; /* by a gateway that was started again: the next one is asked, too */
	if (result->code != ERROR_NONE)
		log_warnx("the gateway refused a sandbox: %.256s", result->text);
	keeper_attach_answer(pending->control_tag, sandbox, (enum error_code)result->code, result->text);
}

static void
keeper_policy_done(struct keeper_pending *pending, const struct ipc_message *message)
{
	const struct msg_policy_done *done = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(pending->sandbox);
	bool taken = done->result.code == ERROR_NONE;

	if (pending->type == MSG_POLICY_PREVIEW)
		; /* nothing to keep */
	else if (sandbox != NULL)
		keeper_sandbox_policy_done(sandbox, pending->snapshot_fd, pending->generation, taken);
	else
		close(pending->snapshot_fd);
	if (pending->type == MSG_ATTACH)
		keeper_attach_answer(
		    pending->control_tag, sandbox, (enum error_code)done->result.code, done->result.text);
	else
		ipc_send(&keeper.control.ipc, MSG_POLICY_DONE, pending->control_tag, done, sizeof(*done), NULL, 0);
}

/* Control prints what comes out of here. */
static bool
keeper_answer_valid(const struct ipc_message *message)
{
	if (message->header.type == MSG_LEASES_DONE)
		return msg_leases_done_valid(message->body);
	if (message->header.type == MSG_POLICY_DONE)
		return msg_policy_done_valid(message->body);
	return msg_result_valid(message->body);
}

bool
keeper_gateway_answer(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_result *result = message->body; /* every answer begins with one */
	struct keeper_pending *pending;

	if (!keeper_answer_valid(message))
		return false;
	pending = keeper_pending_take(message->header.tag, gateway);
	if (pending == NULL)
		return true;
	if (message->header.type != keeper_answer_type(pending)) {
		keeper_pending_fail(pending);
		free(pending);
		return false;
	}
	if (message->header.type == MSG_POLICY_DONE) {
		keeper_policy_done(pending, message);
	} else if (message->header.type == MSG_LEASES_DONE) {
		ipc_send(&keeper.control.ipc, MSG_LEASES_DONE, pending->control_tag, message->body,
		    sizeof(struct msg_leases_done), NULL, 0);
	} else if (pending->type == MSG_DETACH) {
		struct keeper_sandbox *sandbox = keeper_sandbox_find(pending->sandbox);

		if (sandbox != NULL)
			keeper_sandbox_free(sandbox, pending->keep);
		keeper_answer(&keeper.control.ipc, pending->control_tag, ERROR_NONE, "");
	} else {
		keeper_serve_done(pending, result);
	}
	free(pending);
	return true;
}

void
keeper_pending_fail_all(const struct keeper_role *gateway)
{
	struct keeper_pending **at = &keeper.pending;

	while (*at != NULL) {
		struct keeper_pending *pending = *at;

		if (pending->gateway != gateway) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		keeper_pending_fail(pending);
		free(pending);
	}
}
