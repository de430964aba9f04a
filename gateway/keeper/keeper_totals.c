/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Counts, kept for control's question how the daemon is. The keeper outlives the roles: a gateway's last report stays
 * in the sum when it dies, so that a count falls only when the whole daemon starts anew. */
#include "gateway/keeper/keeper.h"

#include <string.h>
#include <unistd.h>

/* From a gateway: what it has on record. */
bool
keeper_totals_take(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_totals *totals = message->body;

	if (!msg_totals_follow(totals, &gateway->totals))
		return false;
	gateway->totals = *totals;
	return true;
}

/* From the auditor: how the log stands. */
bool
keeper_totals_log(struct keeper_role *auditor, struct ipc_message *message)
{
	const struct msg_log_state *log = message->body;

	if (log->sealed_us < 0 || log->unsealed > log->changes)
		return false;
	auditor->keeper->log = *log;
	return true;
}

/* From a gateway: what has the kernel refused of a sandbox? */
bool
keeper_totals_refused(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_sandbox *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find_of(gateway, body->id);
	struct msg_counters counters;
	struct error err = {.code = ERROR_NONE};

	memset(&counters, 0, sizeof(counters));
	if (sandbox == NULL)
		error_set(&err, ERROR_NOT_FOUND, "no such sandbox");
	else
		tap_counters(sandbox->tap, counters.totals, &err);
	keeper_answer_result(&counters.result, err.code, err.text);
	ipc_send(&gateway->ipc, MSG_COUNTERS_DONE, message->header.tag, &counters, sizeof(counters), NULL, 0);
	return true;
}

/* Adds a gateway's counts to a sum. */
static void
totals_add(struct msg_totals *sum, const struct msg_totals *totals)
{
	for (size_t kind = 0; kind < RECORD_ATTEMPT_MAX; kind++)
		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			sum->recorded[kind][verdict] += totals->recorded[kind][verdict];
	sum->upload += totals->upload;
	sum->download += totals->download;
	sum->open += totals->open;
	sum->waiting += totals->waiting;
}

/* The connections it had open end as they were recorded: allowed. */
void
keeper_totals_gateway_gone(struct keeper_role *gateway)
{
	struct msg_totals *last = &gateway->totals;

	last->recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] += last->open;
	last->open = last->waiting = 0;
	totals_add(&gateway->keeper->ended, last);
	memset(last, 0, sizeof(*last));
}

struct msg_totals
keeper_totals_sum(const struct keeper *keeper)
{
	struct msg_totals sum = keeper->ended;

	for (unsigned int i = 0; i < keeper->gateway_count; i++)
		totals_add(&sum, &keeper->gateways[i].totals);
	return sum;
}

/* A role's process as the status names it; pid 0 while it is not ready. */
static struct msg_role_status
totals_role(const struct keeper_role *role)
{
	return (struct msg_role_status){.pid = role->ready ? role->pid : 0, .restarts = role->restarts};
}

/* From control: how is the daemon? */
bool
keeper_totals_status(struct keeper_role *control, struct ipc_message *message)
{
	const struct keeper *keeper = control->keeper;
	struct msg_status status;

	memset(&status, 0, sizeof(status));
	status.keeper.pid = getpid();
	status.auditor = totals_role(keeper->auditor);
	status.control = totals_role(keeper->control);
	status.gateway_count = keeper->gateway_count;
	for (unsigned int i = 0; i < keeper->gateway_count; i++)
		status.gateways[i] = totals_role(&keeper->gateways[i]);
	status.sandboxes = (uint32_t)keeper->sandbox_count;
	status.rootless = keeper->options->rootless;
	status.host_chain = keeper->host_chain;
	status.audit_ok = recorder_ready(&keeper->recorder);
	status.started_us = keeper->started_us;
	status.tampered = keeper->tampered;
	status.totals = keeper_totals_sum(keeper);
	status.log = keeper->log;
	status.confined = 1; /* no role says it is ready before its filter is loaded: see confine_syscalls */
	ipc_send(&control->ipc, MSG_STATUS_DONE, message->header.tag, &status, sizeof(status), NULL, 0);
	return true;
}
