/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Answers to control, and the gateways' answers that they are made of. A request that needs a gateway waits under a tag
 * of our own until the gateway answers or ends; then its operation's done is called, exactly once. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void
keeper_answer_result(struct msg_result *ret_result, enum error_code code, const char *text)
{
	memset(ret_result, 0, sizeof(*ret_result));
	ret_result->code = code;
	snprintf(ret_result->text, sizeof(ret_result->text), "%s", text);
}

void
keeper_answer(struct keeper_role *role, uint64_t tag, enum error_code code, const char *text)
{
	struct msg_result result;

	keeper_answer_result(&result, code, text);
	ipc_send(&role->ipc, MSG_RESULT, tag, &result, sizeof(result), NULL, 0);
}

void
keeper_answer_refuse(struct keeper *keeper, uint16_t type, uint64_t tag, enum error_code code, const char *text)
{
	static _Alignas(8) unsigned char body[IPC_BODY_MAX]; /* zeros behind the result */

	keeper_answer_result((struct msg_result *)(void *)body, code, text);
	ipc_send(&keeper->control->ipc, type, tag, body, msg_row_find(type, MSG_ROLE_KEEPER, MSG_ROLE_CONTROL)->size,
	    NULL, 0);
}

struct keeper_sandbox *
keeper_answer_sandbox(struct keeper *keeper, const struct ipc_message *message)
{
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, *(const int64_t *)message->body);

	if (sandbox != NULL && sandbox->gateway->ready)
		return sandbox;
	keeper_answer_refuse(keeper, msg_answer_type(message->header.type), message->header.tag,
	    sandbox == NULL ? ERROR_NOT_FOUND : ERROR_SYSTEM,
	    sandbox == NULL ? "no such sandbox" : "the gateway is being restarted: try again");
	return NULL;
}

void
keeper_answer_pass_on(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	uint16_t type = pending->operation->answer;

	if (answer == NULL)
		keeper_answer_refuse(keeper, type, pending->control_tag, ERROR_SYSTEM,
		    "the gateway ended unexpectedly and is being restarted: try again");
	else
		ipc_send(&keeper->control->ipc, type, pending->control_tag, answer,
		    msg_row_find(type, MSG_ROLE_KEEPER, MSG_ROLE_CONTROL)->size, NULL, 0);
}

struct keeper_pending *
keeper_answer_await(struct keeper *keeper, const struct keeper_operation *operation, uint64_t control_tag,
    const struct keeper_sandbox *sandbox)
{
	struct keeper_pending *pending = calloc(1, sizeof(*pending));

	if (pending == NULL)
		log_fatalx("no memory");
	pending->operation = operation;
	pending->tag = ++keeper->next_tag;
	pending->control_tag = control_tag;
	pending->sandbox = sandbox->id;
	pending->gateway = sandbox->gateway;
	pending->snapshot_fd = -1;
	pending->next = keeper->pending;
	keeper->pending = pending;
	return pending;
}

void
keeper_answer_cancel(struct keeper *keeper)
{
	struct keeper_pending *last = keeper->pending;

	keeper->pending = last->next;
	free(last);
}

/* Control prints what is in an answer: codes, counts, names and texts must hold together. */
static bool
answer_valid(const struct ipc_message *message)
{
	if (message->header.type == MSG_LEASES_DONE)
		return msg_leases_done_valid(message->body);
	if (message->header.type == MSG_POLICY_DONE)
		return msg_policy_done_valid(message->body);
	return msg_result_valid(message->body);
}

bool
keeper_answer_take(struct keeper_role *gateway, struct ipc_message *message)
{
	struct keeper *keeper = gateway->keeper;

	if (!answer_valid(message))
		return false;
	for (struct keeper_pending **at = &keeper->pending; *at != NULL; at = &(*at)->next) {
		struct keeper_pending *pending = *at;
		bool good = message->header.type == pending->operation->answer;

		if (pending->tag != message->header.tag || pending->gateway != gateway)
			continue;
		*at = pending->next;
		pending->operation->done(keeper, pending, good ? message->body : NULL);
		free(pending);
		return good;
	}
	return true; /* its request failed while the answer was under way */
}

void
keeper_answer_fail_all(struct keeper_role *gateway)
{
	struct keeper_pending **at = &gateway->keeper->pending;

	while (*at != NULL) {
		struct keeper_pending *pending = *at;

		if (pending->gateway != gateway) {
			at = &pending->next;
			continue;
		}
		*at = pending->next;
		pending->operation->done(gateway->keeper, pending, NULL);
		free(pending);
	}
}
