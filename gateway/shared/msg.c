/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/shared/msg.h"

#include <stddef.h>
#include <string.h>

enum {
	KEEPER = 1 << MSG_ROLE_KEEPER,
	AUDITOR = 1 << MSG_ROLE_AUDITOR,
	CONTROL = 1 << MSG_ROLE_CONTROL,
	GATEWAY = 1 << MSG_ROLE_GATEWAY,
	SENDER = 1 << MSG_ROLE_SENDER,
	CHILD = AUDITOR | CONTROL | GATEWAY,
};

#define SIZE(body) sizeof(struct msg_##body)
/* A message of exactly size bytes. */
#define ROW(word, senders, receivers, bytes, descriptors, answered)                                                    \
	{                                                                                                              \
		.type = MSG_##word, .name = #word, .from = (senders), .to = (receivers), .size = (bytes),              \
		.fds = (descriptors), .answer = (answered)                                                             \
	}
/* A message that ends with as many elements as its member count says. */
#define LIST(word, senders, receivers, body, elements, most, answered)                                                 \
	{                                                                                                              \
		.type = MSG_##word, .name = #word, .from = (senders), .to = (receivers),                               \
		.size = offsetof(struct body, elements),                                                               \
		.list = {offsetof(struct body, count), sizeof(((struct body *)0)->elements[0]), (most)},               \
		.answer = (answered)                                                                                   \
	}

static const struct msg_row msg_table[] = {
    ROW(READY, CHILD, KEEPER, SIZE(ready), 0, 0),
    ROW(CHANNEL, KEEPER, CHILD, SIZE(channel), 1, 0),
    ROW(SHUTDOWN, KEEPER, CHILD, 0, 0, 0),
    ROW(RESULT, KEEPER, CONTROL | GATEWAY, SIZE(result), 0, 0),
    ROW(RESULT, GATEWAY, KEEPER, SIZE(result), 0, 0),

    ROW(ATTACH, CONTROL, KEEPER, SIZE(attach), 1, MSG_ATTACHED),
    ROW(ATTACHED, KEEPER, CONTROL, SIZE(attached), 0, 0),
    ROW(DETACH, CONTROL, KEEPER, SIZE(sandbox), 0, MSG_RESULT),
    ROW(FORGET, CONTROL, KEEPER, SIZE(forget), 0, MSG_RESULT),
    ROW(STATUS, CONTROL, KEEPER, 0, 0, MSG_STATUS_DONE),
    ROW(STATUS_DONE, KEEPER, CONTROL, SIZE(status), 0, 0),

    ROW(POLICY, CONTROL, KEEPER, SIZE(policy), 1, MSG_POLICY_DONE),
    ROW(POLICY, KEEPER, GATEWAY, SIZE(policy), 1, MSG_POLICY_DONE),
    ROW(POLICY_PREVIEW, CONTROL, KEEPER, SIZE(policy), 1, MSG_POLICY_DONE),
    ROW(POLICY_PREVIEW, KEEPER, GATEWAY, SIZE(policy), 1, MSG_POLICY_DONE),
    ROW(POLICY_DONE, GATEWAY, KEEPER, SIZE(policy_done), 0, 0),
    ROW(POLICY_DONE, KEEPER, CONTROL, SIZE(policy_done), 0, 0),
    ROW(LEASES, CONTROL, KEEPER, SIZE(leases), 0, MSG_LEASES_DONE),
    ROW(LEASES, KEEPER, GATEWAY, SIZE(leases), 0, MSG_LEASES_DONE),
    ROW(LEASES_DONE, GATEWAY, KEEPER, SIZE(leases_done), 0, 0),
    ROW(LEASES_DONE, KEEPER, CONTROL, SIZE(leases_done), 0, 0),

    ROW(SANDBOX_ADD, KEEPER, GATEWAY, SIZE(sandbox_add), TAP_SOCKET_MAX + 1, MSG_RESULT),
    ROW(SANDBOX_DEL, KEEPER, GATEWAY, SIZE(sandbox), 0, MSG_RESULT),
    ROW(UDP_PORT, KEEPER, GATEWAY, SIZE(udp_port), 2, 0),
    ROW(UDP_PORT_DEL, KEEPER, GATEWAY, SIZE(udp_port), 0, 0),

    LIST(LEASE_ADD, GATEWAY, KEEPER, msg_lease, leases, TAP_LEASE_BATCH_MAX, MSG_RESULT),
    LIST(LEASE_DEL, GATEWAY, KEEPER, msg_lease, leases, TAP_LEASE_BATCH_MAX, MSG_RESULT),
    ROW(COUNTERS, GATEWAY, KEEPER, SIZE(sandbox), 0, MSG_COUNTERS_DONE),
    ROW(COUNTERS_DONE, KEEPER, GATEWAY, SIZE(counters), 0, 0),

    LIST(USAGE, GATEWAY | CONTROL, KEEPER, msg_usage, rows, MSG_USAGE_MAX, 0),
    LIST(USAGE, KEEPER, GATEWAY | CONTROL, msg_usage, rows, MSG_USAGE_MAX, 0),
    ROW(TOTALS, GATEWAY, KEEPER, SIZE(totals), 0, 0),
    ROW(LOG_STATE, AUDITOR, KEEPER, SIZE(log_state), 0, 0),

    {.type = MSG_RECORD, .name = "RECORD", .from = SENDER, .to = AUDITOR, .record = true},
    ROW(DURABLE, AUDITOR, SENDER, SIZE(durable), 0, 0),
    ROW(SENDER_BAD, AUDITOR, KEEPER, SIZE(sender), 0, 0),
};
#define MSG_ROWS (sizeof(msg_table) / sizeof(msg_table[0]))

const struct msg_row *
msg_rows(size_t *ret_count)
{
	*ret_count = MSG_ROWS;
	return msg_table;
}

const struct msg_row *
msg_row_find(uint16_t type, enum msg_role from, enum msg_role to)
{
	for (size_t i = 0; i < MSG_ROWS; i++)
		if (msg_table[i].type == type && (msg_table[i].from >> from & 1) != 0 &&
		    (msg_table[i].to >> to & 1) != 0)
			return &msg_table[i];
	return NULL;
}

/* Is the body as long as the row says? */
static bool
msg_size_right(const struct msg_row *row, const void *body, uint32_t size)
{
	uint32_t count;

	if (row->record)
		return size >= offsetof(struct record, flow) &&
		    size == record_size(((const struct record *)body)->kind);
	if (row->list.max == 0)
		return size == row->size;
	if (size < row->size)
		return false;
	memcpy(&count, (const char *)body + row->list.count_at, sizeof(count));
	return count > 0 && count <= row->list.max && size == row->size + count * row->list.element;
}

const char *
msg_wrong(uint16_t type, enum msg_role from, enum msg_role to, const void *body, uint32_t size, size_t fd_count)
{
	const struct msg_row *row = msg_row_find(type, from, to);

	if (row == NULL)
		return "no such message goes this way";
	if (!msg_size_right(row, body, size))
		return "wrong size";
	return fd_count == row->fds ? NULL : "wrong number of descriptors";
}

/* Any row of the type; NULL: it is unknown. */
static const struct msg_row *
msg_row_of(uint16_t type)
{
	for (size_t i = 0; i < MSG_ROWS; i++)
		if (msg_table[i].type == type)
			return &msg_table[i];
	return NULL;
}

uint16_t
msg_answer_type(uint16_t request)
{
	const struct msg_row *row = msg_row_of(request);

	return row == NULL ? 0 : row->answer;
}

const char *
msg_name(uint16_t type)
{
	const struct msg_row *row = msg_row_of(type);

	return row == NULL ? "?" : row->name;
}

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

/* Is it an address of a known family? */
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
msg_usage_valid(const struct msg_usage *usage)
{
	return memchr(usage->name, '\0', sizeof(usage->name)) != NULL;
}

/* Does the count not fall, nor pass what a gateway can come to? */
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
