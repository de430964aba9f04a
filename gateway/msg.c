/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/msg.h"

#include <assert.h>

struct msg_shape {
	uint32_t size;
	size_t fds;
};

static const struct msg_shape msg_shapes[] = {
	[MSG_READY] = {0, 0},
	[MSG_CHANNEL] = {sizeof(struct msg_channel), 1},
	[MSG_RESULT] = {sizeof(struct msg_result), 0},
	[MSG_ATTACH] = {sizeof(struct msg_attach), 1},
	[MSG_ATTACHED] = {sizeof(struct msg_attached), 0},
	[MSG_DETACH] = {sizeof(struct msg_sandbox), 0},
	[MSG_POLICY] = {sizeof(struct msg_policy), 1},
	[MSG_POLICY_DONE] = {sizeof(struct msg_policy_done), 0},
	[MSG_STATUS] = {0, 0},
	[MSG_STATUS_DONE] = {sizeof(struct msg_status), 0},
	[MSG_LEASES] = {sizeof(struct msg_leases), 0},
	[MSG_LEASES_DONE] = {sizeof(struct msg_leases_done), 0},
	[MSG_SANDBOX_ADD] = {sizeof(struct msg_sandbox_add), TAP_SOCKET_MAX + 1},
	[MSG_SANDBOX_DEL] = {sizeof(struct msg_sandbox), 0},
	[MSG_UDP_PORT] = {sizeof(struct msg_udp_port), 2},
	[MSG_UDP_PORT_DEL] = {sizeof(struct msg_udp_port), 0},
	[MSG_LEASE_ADD] = {0, 0},
	[MSG_LEASE_DEL] = {0, 0},
	[MSG_COUNTERS] = {sizeof(struct msg_sandbox), 0},
	[MSG_COUNTERS_DONE] = {sizeof(struct msg_counters), 0},
	[MSG_RECORD] = {0, 0},
	[MSG_DURABLE] = {sizeof(struct msg_durable), 0},
	[MSG_SHUTDOWN] = {0, 0},
};
static_assert(sizeof(msg_shapes) / sizeof(msg_shapes[0]) == MSG_TYPE_MAX, "one shape per message type");
static_assert(sizeof(struct msg_lease) <= 65536, "a lease request fits one message");

uint32_t
msg_size(uint16_t type, size_t *ret_fds)
{
	if (type == 0 || type >= MSG_TYPE_MAX) {
		*ret_fds = 0;
		return 0;
	}
	*ret_fds = msg_shapes[type].fds;
	return msg_shapes[type].size;
}
