/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A new policy for a sandbox. The sealed block is verified; its ranges and the sockets of its UDP ports are put in
 * force; the gateway swaps to it; only then the old one is closed and control gets the answer. A step that fails, a
 * gateway that refuses or ends: the old policy is in force again. In between both are: the kernel lets in what either
 * allows, and the gateway decides. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"

#include <errno.h>
#include <unistd.h>

static void policy_done(struct keeper *, const struct keeper_pending *, const void *);

static const struct keeper_operation policy_operation = {MSG_POLICY_DONE, policy_done};
static const struct keeper_operation policy_preview_operation = {MSG_POLICY_DONE, keeper_answer_pass_on};

/* The request. */

bool
keeper_policy_request(struct keeper_role *control, struct ipc_message *message)
{
	const struct msg_policy *body = message->body;
	struct keeper_sandbox *sandbox = keeper_answer_sandbox(control->keeper, message);
	struct keeper_pending *pending;
	struct error err;

	if (sandbox == NULL)
		return true;
	pending = keeper_answer_await(control->keeper, &policy_operation, message->header.tag, sandbox);
	pending->snapshot_fd = message->fds[0];
	pending->generation = body->generation;
	if (keeper_policy_offer(sandbox, pending->snapshot_fd, body->generation, pending->tag, &err) < 0) {
		keeper_answer_cancel(control->keeper); /* the channel closes the descriptor */
		keeper_answer_refuse(control->keeper, MSG_POLICY_DONE, message->header.tag, err.code, err.text);
		return true;
	}
	message->fds[0] = -1;
	return true;
}

/* Nothing of ours changes: the gateway alone knows the connections. */
bool
keeper_policy_preview(struct keeper_role *control, struct ipc_message *message)
{
	struct keeper_sandbox *sandbox = keeper_answer_sandbox(control->keeper, message);
	struct keeper_pending *pending;

	if (sandbox == NULL)
		return true;
	pending = keeper_answer_await(control->keeper, &policy_preview_operation, message->header.tag, sandbox);
	ipc_send(&sandbox->gateway->ipc, MSG_POLICY_PREVIEW, pending->tag, message->body, sizeof(struct msg_policy),
	    message->fds, 1);
	return true;
}

int
keeper_policy_apply(struct keeper_sandbox *sandbox, const struct snapshot *snapshot, struct error *err)
{
	size_t count;
	const struct addr_range *ranges = snapshot_ranges(snapshot, &count);

	return tap_ranges_set(sandbox->tap, ranges, count, err);
}

/* Does the policy allow UDP to the port? */
static bool
policy_udp_has(const struct snapshot *snapshot, uint16_t port)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(snapshot, &count);

	for (size_t i = 0; i < count; i++)
		if (ports[i] == port)
			return true;
	return false;
}

int
keeper_policy_udp_open(
    struct keeper_sandbox *sandbox, const struct snapshot *wanted, const struct snapshot *have, struct error *err)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(wanted, &count);
	int fds[2];

	for (size_t i = 0; i < count; i++) {
		struct msg_udp_port body = {.id = sandbox->id, .port = ports[i]};

		if (have != NULL && policy_udp_has(have, ports[i]))
			continue;
		fds[0] = tap_socket_udp(sandbox->tap, 4, ports[i], err);
		if (fds[0] < 0)
			return -1;
		fds[1] = tap_socket_udp(sandbox->tap, 6, ports[i], err);
		if (fds[1] >= 0) {
			ipc_send(&sandbox->gateway->ipc, MSG_UDP_PORT, 0, &body, sizeof(body), fds, 2);
			close(fds[1]);
		}
		close(fds[0]);
		if (fds[1] < 0)
			return -1;
	}
	return 0;
}

/* Has the gateway close the sockets of the UDP ports that had has and wanted has not. */
static void
policy_udp_close(struct keeper_sandbox *sandbox, const struct snapshot *had, const struct snapshot *wanted)
{
	size_t count;
	const uint16_t *ports = snapshot_udp_ports(had, &count);

	for (size_t i = 0; i < count; i++) {
		struct msg_udp_port body = {.id = sandbox->id, .port = ports[i]};

		if (!policy_udp_has(wanted, ports[i]))
			ipc_send(&sandbox->gateway->ipc, MSG_UDP_PORT_DEL, 0, &body, sizeof(body), NULL, 0);
	}
}

/* Puts the old policy in force again after a step of the new one failed, or the gateway refused it. */
static void
policy_back(struct keeper_sandbox *sandbox, const struct snapshot *refused)
{
	struct error err;

	if (keeper_policy_apply(sandbox, sandbox->snapshot, &err) < 0)
		log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
	if (refused != NULL)
		policy_udp_close(sandbox, refused, sandbox->snapshot);
}

int
keeper_policy_offer(
    struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, uint64_t tag, struct error *err)
{
	struct msg_policy body = {.id = sandbox->id, .generation = generation};
	struct snapshot *snapshot = snapshot_open(snapshot_fd, err);
	int rc;

	if (snapshot == NULL)
		return -1;
	if (keeper_policy_apply(sandbox, snapshot, err) < 0) {
		snapshot_free(snapshot);
		return -1;
	}
	rc = keeper_policy_udp_open(sandbox, snapshot, sandbox->snapshot, err);
	if (rc == 0) {
		rc = ipc_send(&sandbox->gateway->ipc, MSG_POLICY, tag, &body, sizeof(body), &snapshot_fd, 1);
		if (rc < 0)
			error_sys(err, -rc, "the gateway does not answer");
	}
	if (rc < 0) {
		policy_back(sandbox, snapshot);
		snapshot_free(snapshot);
		return -1;
	}
	snapshot_free(sandbox->offered);
	sandbox->offered = snapshot;
	return 0;
}

/* The gateway's answer. */

void
keeper_policy_settle(struct keeper_sandbox *sandbox, int snapshot_fd, uint32_t generation, bool taken)
{
	struct error err;
	struct snapshot *snapshot = snapshot_open(snapshot_fd, &err);

	snapshot_free(sandbox->offered);
	sandbox->offered = NULL;
	if (taken && snapshot != NULL) {
		policy_udp_close(sandbox, sandbox->snapshot, snapshot);
		snapshot_free(sandbox->snapshot);
		close(sandbox->snapshot_fd);
		sandbox->snapshot = snapshot;
		sandbox->snapshot_fd = snapshot_fd;
		sandbox->generation = generation;
		usage_table_keep(&sandbox->usage, snapshot);
		return;
	}
	policy_back(sandbox, snapshot);
	snapshot_free(snapshot);
	close(snapshot_fd);
}

/* Keeps the new policy or goes back to the old one, and answers. */
static void
policy_done(struct keeper *keeper, const struct keeper_pending *pending, const void *answer)
{
	const struct msg_policy_done *done = answer;
	struct keeper_sandbox *sandbox = keeper_sandbox_find(keeper, pending->sandbox);

	if (sandbox != NULL)
		keeper_policy_settle(sandbox, pending->snapshot_fd, pending->generation,
		    done != NULL && done->result.code == ERROR_NONE);
	else
		close(pending->snapshot_fd);
	keeper_answer_pass_on(keeper, pending, answer);
}
