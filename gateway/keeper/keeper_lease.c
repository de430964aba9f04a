/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Leases: what a gateway has the kernel let in, and control's question which there are. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

static const struct keeper_operation lease_list_operation = {MSG_LEASES_DONE, keeper_answer_pass_on};

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

bool
keeper_lease_list(struct keeper_role *control, struct ipc_message *message)
{
	struct keeper_sandbox *sandbox = keeper_answer_sandbox(control->keeper, message);
	struct keeper_pending *pending;

	if (sandbox == NULL)
		return true;
	pending = keeper_answer_await(control->keeper, &lease_list_operation, message->header.tag, sandbox);
	ipc_send(&sandbox->gateway->ipc, MSG_LEASES, pending->tag, message->body, sizeof(struct msg_leases), NULL, 0);
	return true;
}
