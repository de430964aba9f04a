/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which role may send the keeper which message, and the operation that takes it. A message that no honest role sends
 * makes the handler return false, which ends that role. */
#include "gateway/keeper/keeper.h"

/* The auditor got a record that no honest role sends, over the channel of the role with this epoch. */
static bool
request_sender_bad(struct keeper_role *auditor, struct ipc_message *message)
{
	const struct msg_sender *bad = message->body;
	struct keeper_role *role = keeper_role_by_epoch(auditor->keeper, bad->epoch);

	(void)auditor;
	if (role != NULL)
		keeper_role_kill(role, "it sent the auditor a malformed record");
	return true;
}

typedef bool request_handler(struct keeper_role *role, struct ipc_message *message);

/* What each role may send, besides MSG_READY: as the message table (msg.c) says, which the channel has asked before. */
static request_handler *const request_handlers[MSG_ROLE_MAX][MSG_TYPE_MAX] = {
    [MSG_ROLE_AUDITOR] =
	{
	    [MSG_LOG_STATE] = keeper_totals_log,
	    [MSG_SENDER_BAD] = request_sender_bad,
	},
    [MSG_ROLE_CONTROL] =
	{
	    [MSG_ATTACH] = keeper_attach_request,
	    [MSG_DETACH] = keeper_detach_request,
	    [MSG_FORGET] = keeper_detach_forget,
	    [MSG_POLICY] = keeper_policy_request,
	    [MSG_POLICY_PREVIEW] = keeper_policy_preview,
	    [MSG_LEASES] = keeper_lease_list,
	    [MSG_STATUS] = keeper_totals_status,
	    [MSG_USAGE] = keeper_usage_resume,
	},
    [MSG_ROLE_GATEWAY] =
	{
	    [MSG_LEASE_ADD] = keeper_lease_request,
	    [MSG_LEASE_DEL] = keeper_lease_request,
	    [MSG_COUNTERS] = keeper_totals_refused,
	    [MSG_USAGE] = keeper_usage_count,
	    [MSG_TOTALS] = keeper_totals_take,
	    [MSG_RESULT] = keeper_answer_take,
	    [MSG_POLICY_DONE] = keeper_answer_take,
	    [MSG_LEASES_DONE] = keeper_answer_take,
	},
};

bool
keeper_request_take(struct keeper_role *role, struct ipc_message *message)
{
	request_handler *handler = request_handlers[role->row->kind][message->header.type];

	return handler != NULL && handler(role, message);
}

/* The request fails, and its sender is not to blame. */
bool
keeper_request_fds_lost_handler(struct ipc *ipc, const struct ipc_message *message)
{
	struct keeper_role *role = loop_owner(ipc, struct keeper_role, ipc);
	const struct msg_row *row = msg_row_find(message->header.type, MSG_ROLE_CONTROL, MSG_ROLE_KEEPER);

	if (!role->ready || role != role->keeper->control || row == NULL || row->fds == 0)
		return false;
	keeper_answer_refuse(role->keeper, row->answer, message->header.tag, ERROR_LIMIT,
	    "posternd has no descriptors left: raise its limit of open files, or detach something");
	return true;
}
