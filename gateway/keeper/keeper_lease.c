/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Leases: what a gateway has the kernel let in, and control's question which there are. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <string.h>

static void lease_list_done(struct keeper *, const struct keeper_pending *, const void *);

static const struct keeper_operation lease_list_operation = {MSG_LEASES_DONE, lease_list_done};

/* A gateway's request: MSG_LEASE_ADD, MSG_LEASE_DEL. */
bool
keeper_lease_request(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_lease *body = message->body;
	struct keeper_sandbox *sandbox;
	struct error err = {.code = ERROR_NONE};

	sandbox = keeper_sandbox_find_of(gateway, body->id);
	if (sandbox == NULL)
		error_set(&err, ERROR_NOT_FOUND, "no such sandbox");
	else if (message->header.type == MSG_LEASE_ADD)
		tap_lease_add(sandbox->tap, body->leases, body->count, body->timeout_s, &err);
	else
		tap_lease_del(sandbox->tap, body->leases, body->count, &err);
	if (err.code == ERROR_CORRUPT) {
		log_warnx("%s: the gateway asked for a forbidden lease: %s", tap_config(sandbox->tap)->name, err.text);
		return false;
	}
	/* A guest can fill its set as often as it likes, and the gateway records that. */
	if (err.code != ERROR_NONE && err.code != ERROR_LIMIT && sandbox != NULL)
		log_warnx("%s: lease: %s", tap_config(sandbox->tap)->name, err.text);
	if (message->header.tag != 0)
		keeper_answer(gateway, message->header.tag, err.code, err.text);
	return true;
}

void
keeper_lease_gateway_gone(struct keeper_role *gateway)
{
	struct keeper_sandbox *sandbox;
	struct error err;

	TAILQ_FOREACH(sandbox, &gateway->keeper->watched, watched)
	{
		if (sandbox->gateway != gateway)
			continue;
		sandbox->served = false;
		/* What the kernel refuses from here on is the next gateway's to record. */
		if (tap_counters(sandbox->tap, sandbox->refused_base, &err) < 0)
			log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
		if (tap_lease_flush(sandbox->tap, &err) < 0)
			log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
	}
}

/* Control's question. The kernel knows addresses; their names and connections are the gateway's. */

/* Answers without a gateway's help. */
static void
lease_list_fail(struct keeper *keeper, uint64_t control_tag, enum error_code code, const char *text)
{
	struct msg_leases_done done;

	memset(&done, 0, sizeof(done));
	keeper_answer_result(&done.result, code, text);
	ipc_send(&keeper->control->ipc, MSG_LEASES_DONE, control_tag, &done, sizeof(done), NULL, 0);
}

bool
keeper_lease_list(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_leases *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(control->keeper, body->id);
	struct keeper_pending *pending;

	if (sandbox == NULL || !sandbox->gateway->ready) {
		lease_list_fail(control->keeper, message->header.tag, sandbox == NULL ? ERROR_NOT_FOUND : ERROR_SYSTEM,
		    sandbox == NULL ? "no such sandbox" : "the gateway is being restarted: try again");
		return true;
	}
	pending = keeper_answer_await(control->keeper, &lease_list_operation, message->header.tag, sandbox);
	ipc_send(&sandbox->gateway->ipc, MSG_LEASES, pending->tag, body, sizeof(*body), NULL, 0);
	return true;
}

/* The gateway's answer, passed on; NULL: it ended. */
static void
lease_list_done(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	if (answer == NULL)
		lease_list_fail(keeper, pending->control_tag, ERROR_SYSTEM,
		    "the gateway ended unexpectedly and is being restarted: try again");
	else
		ipc_send(&keeper->control->ipc, MSG_LEASES_DONE, pending->control_tag, answer,
		    sizeof(struct msg_leases_done), NULL, 0);
}
