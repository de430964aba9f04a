/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Detach. The gateway closes what it has open of the sandbox, then the sandbox goes; a gateway that does not serve it,
 * or ends, has nothing open. */
#include "gateway/keeper/keeper.h"

static void detach_done(struct keeper *, const struct keeper_pending *, const void *);

static const struct keeper_operation detach_operation = {MSG_RESULT, detach_done};

/* The request. */

/* Asks the gateway, or removes the sandbox at once. */
static void
detach_start(struct keeper_role *control, struct keeper_sandbox *sandbox, uint64_t tag, bool keep)
{
	struct msg_sandbox body = {.id = sandbox->id};
	struct keeper_pending *pending;

	if (!sandbox->gateway->ready || !sandbox->served) {
		keeper_sandbox_free(control->keeper, sandbox, keep);
		keeper_answer(control, tag, ERROR_NONE, "");
		return;
	}
	pending = keeper_answer_await(control->keeper, &detach_operation, tag, sandbox);
	pending->keep = keep;
	ipc_send(&sandbox->gateway->ipc, MSG_SANDBOX_DEL, pending->tag, &body, sizeof(body), NULL, 0);
}

bool
keeper_detach_request(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_sandbox *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(control->keeper, body->id);

	if (sandbox == NULL)
		keeper_answer(control, message->header.tag, ERROR_NOT_FOUND, "no such sandbox");
	else
		detach_start(control, sandbox, message->header.tag, false);
	return true;
}

/* Control has lost all of a sandbox but its name: served here, or kept from an earlier run, or neither. */
bool
keeper_detach_forget(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_forget *body = message->body;
	struct keeper_sandbox *sandbox;

	if (!tap_config_name_valid(body->name, sizeof(body->name)))
		return false;
	sandbox = keeper_sandbox_find_name(control->keeper, body->name);
	if (sandbox != NULL) {
		detach_start(control, sandbox, message->header.tag, body->keep != 0);
		return true;
	}
	if (body->keep == 0)
		tap_detach_kept(body->name, control->keeper->options->netns_dir);
	keeper_answer(control, message->header.tag, ERROR_NONE, "");
	return true;
}

/* The gateway's answer. */

/* Whatever it is, nothing of the sandbox is open any more. */
static void
detach_done(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, pending->sandbox);

	(void)answer;
	if (sandbox != NULL)
		keeper_sandbox_free(keeper, sandbox, pending->keep);
	keeper_answer(keeper->control, pending->control_tag, ERROR_NONE, "");
}
