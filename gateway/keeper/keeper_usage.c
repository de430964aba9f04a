/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a sandbox has used up, on its way from the gateway that counts it to control that stores it, and back to the
 * next gateway. The keeper outlives both and holds the newest totals. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <errno.h>
#include <string.h>

/* Messages waiting for control beyond which usage waits for the next look. */
#define USAGE_QUEUE_MAX 256

/* From a gateway: it counted something. */
bool
keeper_usage_count(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;
	struct keeper_sandbox *sandbox;
	int rc;

	if (!msg_usage_valid(usage))
		return false;
	sandbox = keeper_sandbox_find_of(gateway, usage->id);
	if (sandbox == NULL)
		return true;
	rc = usage_table_take(&sandbox->usage, usage);
	if (rc < 0)
		log_warnx("%s: what it used cannot be kept: %s", tap_config(sandbox->tap)->name, strerror(-rc));
	sandbox->usage_unsent = sandbox->usage_unsent || rc > 0;
	keeper_usage_forward(sandbox);
	return rc != -ENOSPC;
}

void
keeper_usage_forward(struct keeper_sandbox *sandbox)
{
	struct keeper_role *control = sandbox->gateway->keeper->control;

	/* A gateway must not be able to drown control: what is late is sent with what comes later. */
	if (!sandbox->usage_unsent || !control->ready || control->ipc.queue_len > USAGE_QUEUE_MAX)
		return;
	if (usage_table_send(&sandbox->usage, &control->ipc, sandbox->id, tap_config(sandbox->tap)->name) == 0)
		sandbox->usage_unsent = false;
}

/* From control, before it attaches: where counting goes on. */
bool
keeper_usage_resume(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;
	struct keeper *keeper = control->keeper;
	struct keeper_sandbox *sandbox;
	struct usage_table *table = &keeper->usage_next;

	if (!msg_usage_valid(usage))
		return false;
	sandbox = keeper_sandbox_find(keeper, usage->id);
	if (sandbox != NULL) {
		table = &sandbox->usage;
	} else if (keeper->usage_next_id != usage->id) {
		usage_table_free(table);
		keeper->usage_next_id = usage->id;
	}
	return usage_table_take(table, usage) >= 0;
}

void
keeper_usage_claim(struct keeper *keeper, struct keeper_sandbox *sandbox)
{
	if (keeper->usage_next_id != sandbox->id)
		return;
	sandbox->usage = keeper->usage_next;
	keeper->usage_next = (struct usage_table){0};
	keeper->usage_next_id = 0;
}
