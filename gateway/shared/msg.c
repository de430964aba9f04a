/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/msg.h"

#include <assert.h>
#include <stddef.h>
#include <string.h>

struct msg_shape {
	uint32_t size;
	size_t fds;
};

static const struct msg_shape msg_shapes[] = {
    [MSG_READY] = {sizeof(struct msg_ready), 0},
    [MSG_CHANNEL] = {sizeof(struct msg_channel), 1},
    [MSG_RESULT] = {sizeof(struct msg_result), 0},
    [MSG_ATTACH] = {sizeof(struct msg_attach), 1},
    [MSG_ATTACHED] = {sizeof(struct msg_attached), 0},
    [MSG_DETACH] = {sizeof(struct msg_sandbox), 0},
    [MSG_FORGET] = {sizeof(struct msg_forget), 0},
    [MSG_POLICY] = {sizeof(struct msg_policy), 1},
    [MSG_POLICY_PREVIEW] = {sizeof(struct msg_policy), 1},
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
    [MSG_USAGE] = {0, 0},
    [MSG_TOTALS] = {sizeof(struct msg_totals), 0},
    [MSG_LOG_STATE] = {sizeof(struct msg_log_state), 0},
    [MSG_RECORD] = {0, 0},
    [MSG_DURABLE] = {sizeof(struct msg_durable), 0},
    [MSG_SENDER_BAD] = {sizeof(struct msg_sender), 0},
    [MSG_SHUTDOWN] = {0, 0},
};
static_assert(sizeof(msg_shapes) / sizeof(msg_shapes[0]) == MSG_TYPE_MAX, "one shape per message type");
static_assert(sizeof(struct msg_lease) <= 65536, "a lease request fits one message");

bool
msg_result_valid(const struct msg_result *result)
{
	return result->code < ERROR_CODE_MAX && memchr(result->text, '\0', sizeof(result->text)) != NULL;
}

/* Canonical to the last byte, or nothing at all. */
static bool
msg_name_valid(const struct name *name)
{
	struct name canonical = {0};

	if (name->len > 0 &&
	    (name->len > NAME_TEXT_MAX || name_canonical(name->text, name->len, &canonical) != NAME_OK))
		return false;
	return memcmp(&canonical, name, sizeof(canonical)) == 0;
}

static bool
msg_addr_valid(const struct addr *addr)
{
	return addr->family == 4 || addr->family == 6;
}

bool
msg_leases_done_valid(const struct msg_leases_done *leases)
{
	if (!msg_result_valid(&leases->result) || leases->count > MSG_LEASES_MAX)
		return false;
	for (uint32_t i = 0; i < leases->count; i++)
		if (!msg_addr_valid(&leases->rows[i].addr) || leases->rows[i].name.len == 0 ||
		    !msg_name_valid(&leases->rows[i].name))
			return false;
	return true;
}

bool
msg_policy_done_valid(const struct msg_policy_done *done)
{
	uint32_t listed = done->cut_count < MSG_CUT_MAX ? done->cut_count : MSG_CUT_MAX;

	if (!msg_result_valid(&done->result))
		return false;
	for (uint32_t i = 0; i < listed; i++)
		if (!msg_addr_valid(&done->cut[i].dst) || !msg_name_valid(&done->cut[i].name))
			return false;
	return true;
}

bool
msg_usage_valid(const struct msg_usage *usage, uint32_t size)
{
	return size >= offsetof(struct msg_usage, rows) && usage->count > 0 && usage->count <= MSG_USAGE_MAX &&
	    size == offsetof(struct msg_usage, rows) + usage->count * sizeof(struct msg_usage_row) &&
	    memchr(usage->name, '\0', sizeof(usage->name)) != NULL;
}

static bool
msg_total_follows(uint64_t total, uint64_t before)
{
	return total >= before && total <= MSG_TOTAL_MAX;
}

bool
msg_totals_follow(const struct msg_totals *totals, const struct msg_totals *before)
{
	for (size_t kind = 0; kind < RECORD_ATTEMPT_MAX; kind++)
		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			if (!msg_total_follows(totals->recorded[kind][verdict], before->recorded[kind][verdict]))
				return false;
	return msg_total_follows(totals->upload, before->upload) &&
	    msg_total_follows(totals->download, before->download) && totals->open <= MSG_TOTAL_MAX &&
	    totals->waiting <= MSG_TOTAL_MAX;
}

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
