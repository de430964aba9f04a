/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the keeper's children ask of it: two closed lists. A message that no honest child would send makes the handler
 * return false, which ends that child. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Control asks for a sandbox that is there already: it was restarted and reads its state again. */
static void
keeper_request_attach_again(struct keeper_sandbox *sandbox, uint64_t tag, const struct msg_attach *attach, int fd)
{
	struct error err;
	struct keeper_pending *pending;

	/* What it wrote down last may be behind. */
	sandbox->usage_unsent = sandbox->usage.count > 0;
	keeper_request_usage_forward(sandbox);
	if (attach->generation == sandbox->generation) {
		close(fd);
		keeper_attach_answer(tag, sandbox, ERROR_NONE, "");
		return;
	}
	pending = keeper_pending_add(MSG_ATTACH, tag, sandbox);
	pending->snapshot_fd = fd;
	pending->generation = attach->generation;
	if (keeper_sandbox_policy(sandbox, fd, attach->generation, pending->tag, &err) < 0) {
		free(keeper_pending_take(pending->tag, sandbox->gateway));
		close(fd);
		keeper_attach_answer(tag, NULL, err.code, err.text);
	}
}

static bool
keeper_request_attach(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_attach *attach = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(attach->id);
	uint64_t tag = message->header.tag;
	int fd = message->fds[0];
	struct error err;

	(void)control;
	message->fds[0] = -1;
	if (sandbox != NULL) {
		keeper_request_attach_again(sandbox, tag, attach, fd);
		return true;
	}
	sandbox = keeper_sandbox_attach(attach, fd, &err);
	if (sandbox == NULL) {
		keeper_attach_answer(tag, NULL, err.code, err.text);
		return true;
	}
	if (!sandbox->gateway->ready) /* served as soon as it is */
		keeper_attach_answer(tag, sandbox, ERROR_NONE, "");
	else
		keeper_sandbox_serve(sandbox, keeper_pending_add(MSG_ATTACH, tag, sandbox)->tag);
	return true;
}

static void
keeper_detach(struct keeper_sandbox *sandbox, uint64_t tag, bool keep)
{
	struct msg_sandbox body = {.id = sandbox->id};
	struct keeper_pending *pending;

	if (!sandbox->gateway->ready || !sandbox->served) {
		keeper_sandbox_free(sandbox, keep);
		keeper_answer(&keeper.control.ipc, tag, ERROR_NONE, "");
		return;
	}
	pending = keeper_pending_add(MSG_DETACH, tag, sandbox);
	pending->keep = keep;
	ipc_send(&sandbox->gateway->ipc, MSG_SANDBOX_DEL, pending->tag, &body, sizeof(body), NULL, 0);
}

static bool
keeper_request_detach(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_sandbox *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(body->id);

	if (sandbox == NULL)
		keeper_answer(&control->ipc, message->header.tag, ERROR_NOT_FOUND, "no such sandbox");
	else
		keeper_detach(sandbox, message->header.tag, false);
	return true;
}

/* Control has lost what it knew of a sandbox but its name: served here, or left from an earlier run, or neither. */
static bool
keeper_request_forget(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_forget *body = message->body;
	struct keeper_sandbox *sandbox;

	if (!tap_config_name_valid(body->name, sizeof(body->name)))
		return false;
	sandbox = keeper_sandbox_find_name(body->name);
	if (sandbox != NULL) {
		keeper_detach(sandbox, message->header.tag, body->keep != 0);
		return true;
	}
	if (body->keep == 0)
		tap_detach_kept(body->name, keeper.options->netns_dir);
	keeper_answer(&control->ipc, message->header.tag, ERROR_NONE, "");
	return true;
}

static bool
keeper_request_policy(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_policy *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(body->id);
	struct keeper_pending *pending;
	struct error err;

	(void)control;
	if (sandbox == NULL) {
		keeper_policy_answer(message->header.tag, ERROR_NOT_FOUND, "no such sandbox");
		return true;
	}
	if (!sandbox->gateway->ready) {
		keeper_policy_answer(message->header.tag, ERROR_SYSTEM, "the gateway is being restarted: try again");
		return true;
	}
	pending = keeper_pending_add(MSG_POLICY, message->header.tag, sandbox);
	pending->snapshot_fd = message->fds[0];
	pending->generation = body->generation;
	if (keeper_sandbox_policy(sandbox, pending->snapshot_fd, body->generation, pending->tag, &err) < 0) {
		free(keeper_pending_take(pending->tag, sandbox->gateway)); /* the descriptor is closed by the channel */
		keeper_policy_answer(message->header.tag, err.code, err.text);
		return true;
	}
	message->fds[0] = -1;
	return true;
}

/* Nothing of ours changes: the gateway alone knows the connections. */
static bool
keeper_request_preview(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_policy *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(body->id);
	struct keeper_pending *pending;

	(void)control;
	if (sandbox == NULL || !sandbox->gateway->ready) {
		keeper_policy_answer(message->header.tag, sandbox == NULL ? ERROR_NOT_FOUND : ERROR_SYSTEM,
		    sandbox == NULL ? "no such sandbox" : "the gateway is being restarted: try again");
		return true;
	}
	pending = keeper_pending_add(MSG_POLICY_PREVIEW, message->header.tag, sandbox);
	ipc_send(&sandbox->gateway->ipc, MSG_POLICY_PREVIEW, pending->tag, body, sizeof(*body), message->fds, 1);
	return true;
}

static bool
keeper_request_leases(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_leases *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(body->id);

	(void)control;
	if (sandbox == NULL || !sandbox->gateway->ready) {
		keeper_leases_answer(message->header.tag, sandbox == NULL ? ERROR_NOT_FOUND : ERROR_SYSTEM,
		    sandbox == NULL ? "no such sandbox" : "the gateway is being restarted: try again");
	} else {
		struct keeper_pending *pending = keeper_pending_add(MSG_LEASES, message->header.tag, sandbox);

		ipc_send(&sandbox->gateway->ipc, MSG_LEASES, pending->tag, body, sizeof(*body), NULL, 0);
	}
	return true;
}

static void
keeper_status_role(const struct keeper_role *role, struct msg_role_status *ret_status)
{
	ret_status->pid = role->ready ? role->pid : 0;
	ret_status->restarts = role->restarts;
}

static bool
keeper_request_status(struct keeper_role *control, struct ipc_message *message)
{
	struct msg_status status;

	memset(&status, 0, sizeof(status));
	status.keeper.pid = getpid();
	keeper_status_role(&keeper.auditor, &status.auditor);
	keeper_status_role(&keeper.control, &status.control);
	status.gateway_count = keeper.gateway_count;
	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		keeper_status_role(&keeper.gateways[i], &status.gateways[i]);
	status.sandboxes = (uint32_t)keeper.sandbox_count;
	status.rootless = keeper.options->rootless;
	status.host_chain = keeper.host_chain;
	status.audit_ok = recorder_ready(&keeper.recorder);
	status.started_us = keeper.started_us;
	status.tampered = keeper.tampered;
	status.totals = keeper_totals_sum();
	status.log = keeper.log;
	status.confined = 1; /* no role says it is ready before its filter is loaded: see confine_syscalls */
	ipc_send(&control->ipc, MSG_STATUS_DONE, message->header.tag, &status, sizeof(status), NULL, 0);
	return true;
}

/* A sandbox of this very gateway, or NULL: another's, or none (detached while the request was under way). */
static struct keeper_sandbox *
keeper_sandbox_of(const struct keeper_role *gateway, int64_t id)
{
	struct keeper_sandbox *sandbox = keeper_sandbox_find(id);

	return sandbox != NULL && sandbox->gateway == gateway ? sandbox : NULL;
}

static bool
keeper_request_lease(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_lease *body = message->body;
	struct keeper_sandbox *sandbox;
	struct error err = {.code = ERROR_NONE};

	sandbox = keeper_sandbox_of(gateway, body->id);
	if (sandbox == NULL)
		error_set(&err, ERROR_NOT_FOUND, "no such sandbox");
	else if (message->header.type == MSG_LEASE_ADD)
		tap_lease_add(sandbox->tap, body->leases, body->count, body->timeout_s, &err);
	else
		tap_lease_del(sandbox->tap, body->leases, body->count, &err);
	if (err.code == ERROR_CORRUPT) {
		log_warnx("%s: a lease no honest gateway asks for: %s", tap_config(sandbox->tap)->name, err.text);
		return false;
	}
	/* A full set is the guest's doing, as often as it likes, and the gateway records it. */
	if (err.code != ERROR_NONE && err.code != ERROR_LIMIT && sandbox != NULL)
		log_warnx("%s: lease: %s", tap_config(sandbox->tap)->name, err.text);
	if (message->header.tag != 0)
		keeper_answer(&gateway->ipc, message->header.tag, err.code, err.text);
	return true;
}

void
keeper_request_usage_forward(struct keeper_sandbox *sandbox)
{
	struct ipc *ipc = &keeper.control.ipc;

	/* A gateway must not be able to drown control: what is late is sent with what comes later. */
	if (!sandbox->usage_unsent || !keeper.control.ready || ipc->queue_len > KEEPER_USAGE_QUEUE_MAX)
		return;
	if (usage_table_send(&sandbox->usage, ipc, sandbox->id, tap_config(sandbox->tap)->name) == 0)
		sandbox->usage_unsent = false;
}

/* A gateway has counted something. */
static bool
keeper_request_usage(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;
	struct keeper_sandbox *sandbox;
	int rc;

	if (!msg_usage_valid(usage))
		return false;
	sandbox = keeper_sandbox_of(gateway, usage->id);
	if (sandbox == NULL)
		return true;
	rc = usage_table_take(&sandbox->usage, usage);
	if (rc < 0)
		log_warnx("%s: what it used cannot be kept: %s", tap_config(sandbox->tap)->name, strerror(-rc));
	sandbox->usage_unsent = sandbox->usage_unsent || rc > 0;
	keeper_request_usage_forward(sandbox);
	return rc != -ENOSPC;
}

/* Control says where to go on, before it attaches. */
static bool
keeper_request_usage_next(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;
	struct keeper_sandbox *sandbox;
	struct usage_table *table = &keeper.usage_next;

	(void)control;
	if (!msg_usage_valid(usage))
		return false;
	sandbox = keeper_sandbox_find(usage->id);
	if (sandbox != NULL) {
		table = &sandbox->usage;
	} else if (keeper.usage_next_id != usage->id) {
		usage_table_free(table);
		keeper.usage_next_id = usage->id;
	}
	return usage_table_take(table, usage) >= 0;
}

static bool
keeper_request_counters(struct keeper_role *gateway, struct ipc_message *message)
{
	const struct msg_sandbox *body = message->body;
	struct keeper_sandbox *sandbox = keeper_sandbox_of(gateway, body->id);
	struct msg_counters counters;
	struct error err = {.code = ERROR_NONE};

	memset(&counters, 0, sizeof(counters));
	if (sandbox == NULL)
		error_set(&err, ERROR_NOT_FOUND, "no such sandbox");
	else
		tap_counters(sandbox->tap, counters.totals, &err);
	keeper_result(&counters.result, err.code, err.text);
	ipc_send(&gateway->ipc, MSG_COUNTERS_DONE, message->header.tag, &counters, sizeof(counters), NULL, 0);
	return true;
}

static bool
keeper_request_totals(struct keeper_role *gateway, struct ipc_message *message)
{
	return keeper_totals_take(gateway, message->body);
}

static bool
keeper_request_log_state(struct keeper_role *auditor, struct ipc_message *message)
{
	(void)auditor;
	return keeper_totals_take_log(message->body);
}

static bool
keeper_request_sender_bad(struct keeper_role *auditor, struct ipc_message *message)
{
	const struct msg_sender *bad = message->body;
	struct keeper_role *role = keeper_role_by_epoch(bad->epoch);

	(void)auditor;
	if (role != NULL)
		keeper_role_kill(role, "the auditor got a record from it that no honest one makes");
	return true;
}

static bool
keeper_request_ready(struct keeper_role *role, struct ipc_message *message)
{
	const struct msg_ready *ready = message->body;

	if (role->ready)
		return false;
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++)
		if (!geo_about_valid(&ready->databases[kind]))
			return false;
	if (role->kind == MSG_ROLE_CONTROL)
		memcpy(keeper.databases, ready->databases, sizeof(keeper.databases));
	role->ready = true;
	keeper_role_ready(role);
	return true;
}

typedef bool keeper_request_handler(struct keeper_role *role, struct ipc_message *message);

/* What each child may send: as the message table says, which has been asked before. */
static keeper_request_handler *const keeper_request_handlers[MSG_ROLE_MAX][MSG_TYPE_MAX] = {
    [MSG_ROLE_AUDITOR] =
	{
	    [MSG_READY] = keeper_request_ready,
	    [MSG_LOG_STATE] = keeper_request_log_state,
	    [MSG_SENDER_BAD] = keeper_request_sender_bad,
	},
    [MSG_ROLE_CONTROL] =
	{
	    [MSG_READY] = keeper_request_ready,
	    [MSG_ATTACH] = keeper_request_attach,
	    [MSG_DETACH] = keeper_request_detach,
	    [MSG_FORGET] = keeper_request_forget,
	    [MSG_POLICY] = keeper_request_policy,
	    [MSG_POLICY_PREVIEW] = keeper_request_preview,
	    [MSG_LEASES] = keeper_request_leases,
	    [MSG_STATUS] = keeper_request_status,
	    [MSG_USAGE] = keeper_request_usage_next,
	},
    [MSG_ROLE_GATEWAY] =
	{
	    [MSG_READY] = keeper_request_ready,
	    [MSG_LEASE_ADD] = keeper_request_lease,
	    [MSG_LEASE_DEL] = keeper_request_lease,
	    [MSG_COUNTERS] = keeper_request_counters,
	    [MSG_USAGE] = keeper_request_usage,
	    [MSG_TOTALS] = keeper_request_totals,
	    [MSG_RESULT] = keeper_gateway_answer,
	    [MSG_POLICY_DONE] = keeper_gateway_answer,
	    [MSG_LEASES_DONE] = keeper_gateway_answer,
	},
};

/* A child's first message is that it is ready. */
bool
keeper_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct keeper_role *role = loop_owner(ipc, struct keeper_role, ipc);
	keeper_request_handler *handler = keeper_request_handlers[role->kind][message->header.type];

	return handler != NULL && (role->ready || message->header.type == MSG_READY) && handler(role, message);
}

/* The keeper has as many files open as it may: the request fails, and its sender is not to blame. */
bool
keeper_fds_lost_handler(struct ipc *ipc, const struct ipc_message *message)
{
	static const char why[] =
	    "posternd has no descriptors left: raise its limit of open files, or detach something";
	struct keeper_role *role = loop_owner(ipc, struct keeper_role, ipc);

	if (!role->ready || role->kind != MSG_ROLE_CONTROL)
		return false;
	if (message->header.type == MSG_ATTACH)
		keeper_attach_answer(message->header.tag, NULL, ERROR_LIMIT, why);
	else if (message->header.type == MSG_POLICY || message->header.type == MSG_POLICY_PREVIEW)
		keeper_policy_answer(message->header.tag, ERROR_LIMIT, why);
	else
		return false;
	return true;
}

static void
keeper_gateway_lost(struct keeper_sandbox *sandbox, void *context)
{
	struct error err;

	if (sandbox->gateway != context)
		return;
	sandbox->served = false;
	/* What the kernel refuses from here on is the next gateway's to record. */
	if (tap_counters(sandbox->tap, sandbox->refused_base, &err) < 0)
		log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
	if (tap_lease_flush(sandbox->tap, &err) < 0)
		log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
}

void
keeper_request_gateway_gone(struct keeper_role *gateway)
{
	keeper_totals_gateway_gone(gateway);
	keeper_sandbox_each(keeper_gateway_lost, gateway);
	keeper_pending_fail_all(gateway);
}

static void
keeper_gateway_serve(struct keeper_sandbox *sandbox, void *context)
{
	if (sandbox->gateway == context && !sandbox->served)
		keeper_sandbox_serve(sandbox, keeper_pending_add(MSG_ATTACH, 0, sandbox)->tag);
}

void
keeper_request_gateway_ready(struct keeper_role *gateway)
{
	keeper_sandbox_each(keeper_gateway_serve, gateway);
}
