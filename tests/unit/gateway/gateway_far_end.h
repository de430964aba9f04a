/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Auditor and keeper as a gateway module sees them: the other ends of its two channels, on the test's own loop. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_FAR_END_H
#define POSTERN_TESTS_UNIT_GATEWAY_FAR_END_H

#include "base/clock.h"
#include "gateway/path/gateway.h"
#include "gateway/shared/usage.h"

#include <setjmp.h>
#include <limits.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#define FAR_END_RECORDS_MAX 4096

struct far_end {
	struct gateway gateway;
	struct ipc auditor, keeper; /* the far ends */
	struct record *records;     /* all that arrived, in order */
	size_t record_count;
	bool forgot;                      /* a test dropped some: the rows cannot be added up */
	bool ack;                         /* each record is durable at once */
	uint64_t totals[TAP_COUNTER_MAX]; /* what the kernel counted */
	size_t counters_asked;
	size_t leases_added, leases_deleted;
	struct usage_table usage; /* as told */
	struct msg_lease lease;   /* the last one added */
	struct msg_totals told;   /* the last ones, */
	size_t told_count;        /* and how often there were some */
	int64_t skew_ms;
};

static inline void
far_end_durable(struct far_end *far, uint64_t seq)
{
	struct msg_durable durable = {.seq = seq, .writable = 1};

	assert_int_equal(ipc_send(&far->auditor, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0), 0);
}

static inline bool
far_end_auditor_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct far_end *far = loop_owner(ipc, struct far_end, auditor);

	assert_int_equal(message->header.type, MSG_RECORD);
	assert_true(far->record_count < FAR_END_RECORDS_MAX);
	memset(&far->records[far->record_count], 0, sizeof(struct record));
	memcpy(&far->records[far->record_count], message->body, message->header.size);
	assert_true(record_valid(&far->records[far->record_count], message->header.size));
	far->record_count++;
	if (far->ack)
		far_end_durable(far, far->records[far->record_count - 1].seq);
	return true;
}

static inline bool
far_end_keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct far_end *far = loop_owner(ipc, struct far_end, keeper);
	struct msg_counters counters;

	if (message->header.type == MSG_LEASE_ADD) {
		far->leases_added++;
		memcpy(&far->lease, message->body, message->header.size);
		return true;
	}
	if (message->header.type == MSG_USAGE) {
		assert_true(msg_usage_valid(message->body));
		assert_true(usage_table_take(&far->usage, message->body) > 0);
		return true;
	}
	if (message->header.type == MSG_TOTALS) {
		assert_true(msg_totals_follow(message->body, &far->told));
		memcpy(&far->told, message->body, sizeof(far->told));
		far->told_count++;
		return true;
	}
	if (message->header.type == MSG_LEASE_DEL) {
		far->leases_deleted++;
		return true;
	}
	assert_int_equal(message->header.type, MSG_COUNTERS);
	memset(&counters, 0, sizeof(counters));
	memcpy(counters.totals, far->totals, sizeof(counters.totals));
	far->counters_asked++;
	ipc_send(ipc, MSG_COUNTERS_DONE, message->header.tag, &counters, sizeof(counters), NULL, 0);
	return true;
}

static inline bool
far_end_link_handler(struct ipc *ipc, struct ipc_message *message)
{
	return link_answer(loop_owner(ipc, struct link, ipc), message);
}

static inline void
far_end_broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	(void)why;
}

static inline void
far_end_open(struct far_end *far, struct ipc *ipc, enum msg_role self, enum msg_role peer,
    bool (*handler)(struct ipc *ipc, struct ipc_message *message), int fd)
{
	ipc->self = (uint8_t)self;
	ipc->peer = (uint8_t)peer;
	ipc->message_handler = handler;
	ipc->broken_handler = far_end_broken_handler;
	assert_int_equal(ipc_open(ipc, far->gateway.loop, fd), 0);
}

/* A (new) auditor that accepts records. */
static inline void
far_end_auditor(struct far_end *far)
{
	int fds[2];

	assert_int_equal(ipc_pair(fds), 0);
	far_end_open(far, &far->auditor, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, far_end_auditor_handler, fds[1]);
	assert_int_equal(recorder_connect(&far->gateway.recorder, fds[0], 1), 0);
}

static inline struct far_end *
far_end_new(void)
{
	struct far_end *far = calloc(1, sizeof(*far));
	int fds[2];

	assert_non_null(far);
	clock_skew_ms(0);
	far->gateway.fd_top = INT_MAX;
	far->records = calloc(FAR_END_RECORDS_MAX, sizeof(struct record));
	assert_non_null(far->records);
	far->gateway.loop = loop_new();
	assert_non_null(far->gateway.loop);
	assert_int_equal(route_open(&far->gateway.route), 0);
	far->ack = true;
	far->auditor.source.fd = -1;
	recorder_init(&far->gateway.recorder, far->gateway.loop, 1);
	far_end_auditor(far);
	assert_int_equal(ipc_pair(fds), 0);
	far_end_open(far, &far->keeper, MSG_ROLE_KEEPER, MSG_ROLE_GATEWAY, far_end_keeper_handler, fds[1]);
	far_end_open(far, &far->gateway.link.ipc, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, far_end_link_handler, fds[0]);
	return far;
}

static inline void far_end_settle(struct far_end *far);

/* Before anything is attached. The account's first record, which says that there is one, is taken away. */
static inline void
far_end_account(struct far_end *far, struct sandbox *sandbox)
{
	assert_ptr_equal(sandbox->gateway, &far->gateway);
	assert_int_equal(balance_attach(sandbox), 0);
	far_end_settle(far);
	assert_true(far->record_count == 1 && far->records[0].kind == RECORD_ACCOUNT);
	far->record_count = 0;
}

/* What the rows that arrived say of a sandbox, the last word of each row counting. */
static inline void
far_end_book(const struct far_end *far, int64_t sandbox, uint64_t ret_book[RECORD_ATTEMPT_MAX][VERDICT_MAX])
{
	memset(ret_book, 0, RECORD_ATTEMPT_MAX * VERDICT_MAX * sizeof(uint64_t));
	for (size_t i = 0; i < far->record_count; i++) {
		const struct record *r = &far->records[i];
		const struct record *earlier = NULL;

		if ((r->kind == RECORD_FLOW_OPEN || r->kind == RECORD_REFUSED) && r->flow.sandbox != sandbox)
			continue;
		for (size_t j = 0; j < i && (r->kind == RECORD_REFUSED || r->kind == RECORD_FLOW_CLOSE); j++)
			if ((far->records[j].kind == RECORD_REFUSED || far->records[j].kind == RECORD_FLOW_OPEN) &&
			    far->records[j].flow.id == (r->kind == RECORD_REFUSED ? r->flow.id : r->close.id))
				earlier = &far->records[j];
		if (r->kind == RECORD_FLOW_OPEN) {
			ret_book[RECORD_ATTEMPT_CONNECTION][r->flow.verdict] += r->flow.count;
		} else if (r->kind == RECORD_REFUSED) {
			ret_book[RECORD_ATTEMPT_REFUSED][r->flow.verdict] +=
			    r->flow.count - (earlier == NULL ? 0 : earlier->flow.count);
		} else if (r->kind == RECORD_FLOW_CLOSE && earlier != NULL && earlier->flow.sandbox == sandbox) {
			ret_book[RECORD_ATTEMPT_CONNECTION][earlier->flow.verdict]--;
			ret_book[RECORD_ATTEMPT_CONNECTION][r->close.verdict]++;
		} else if (r->kind == RECORD_DNS && r->dns.sandbox == sandbox) {
			ret_book[RECORD_ATTEMPT_DNS][r->dns.verdict] += r->dns.count;
		}
	}
}

/* Everything of the sandbox is detached: the final account comes, is the last word, and adds up with what came in and
 * with the rows. */
static inline void
far_end_account_end(struct far_end *far, struct sandbox *sandbox)
{
	uint64_t book[RECORD_ATTEMPT_MAX][VERDICT_MAX];
	const struct record_account *last;

	if (!ipc_is_open(&far->gateway.recorder.ipc))
		far_end_auditor(far);
	if (sandbox->balance != NULL)
		balance_release(sandbox->balance);
	sandbox->balance = NULL;
	far_end_settle(far);
	assert_true(far->record_count > 0);
	assert_int_equal(far->records[far->record_count - 1].kind, RECORD_ACCOUNT);
	last = &far->records[far->record_count - 1].account;
	assert_int_equal(last->final, 1);
	far_end_book(far, sandbox->id, book);
	for (int kind = 0; kind < RECORD_ATTEMPT_MAX; kind++) {
		uint64_t sum = 0;

		for (int verdict = 0; verdict < VERDICT_MAX; verdict++) {
			if (!far->forgot)
				assert_int_equal(last->recorded[kind][verdict], book[kind][verdict]);
			sum += last->recorded[kind][verdict];
		}
		assert_int_equal(last->attempts[kind], sum);
	}
}

/* Rounds until nothing is left to do at this moment. */
static inline void
far_end_settle(struct far_end *far)
{
	for (int i = 0; i < 20; i++)
		assert_int_equal(loop_round(far->gateway.loop, i < 4 ? 2 : 0), 0);
}

/* Let time pass, in steps, so that timers that others arm run too. */
static inline void
far_end_pass(struct far_end *far, int64_t ms)
{
	while (ms > 0) {
		int64_t step = ms > 500 ? 500 : ms;

		far->skew_ms += step;
		clock_skew_ms(far->skew_ms);
		for (int i = 0; i < 4; i++)
			assert_int_equal(loop_round(far->gateway.loop, 0), 0);
		ms -= step;
	}
	far_end_settle(far);
}

static inline void
far_end_free(struct far_end *far)
{
	loop_round(far->gateway.loop, 0); /* deferred frees */
	ipc_close(&far->auditor);
	ipc_close(&far->keeper);
	ipc_close(&far->gateway.link.ipc);
	recorder_free(&far->gateway.recorder);
	route_close(&far->gateway.route);
	loop_free(far->gateway.loop);
	usage_table_free(&far->usage);
	free(far->records);
	free(far);
	clock_skew_ms(0);
}

/* Records of a kind, and the last one of them. */
static inline size_t
far_end_count(const struct far_end *far, uint32_t kind, const struct record **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < far->record_count; i++)
		if (far->records[i].kind == kind) {
			count++;
			if (ret_last != NULL)
				*ret_last = &far->records[i];
		}
	return count;
}

/* Events of a kind, and the last one of them. */
static inline size_t
far_end_events(const struct far_end *far, enum event_kind kind, const struct record_event **ret_last)
{
	size_t count = 0;

	for (size_t i = 0; i < far->record_count; i++)
		if (far->records[i].kind == RECORD_EVENT && far->records[i].event.kind == kind) {
			count++;
			if (ret_last != NULL)
				*ret_last = &far->records[i].event;
		}
	return count;
}

/* Sum of counts over the rows (ids) of a reason, as the store would hold them: the latest per id. */
static inline uint64_t
far_end_total(const struct far_end *far, enum reason reason, size_t *ret_rows)
{
	uint64_t total = 0;

	*ret_rows = 0;
	for (size_t i = 0; i < far->record_count; i++) {
		const struct record *record = &far->records[i];
		bool latest = record->kind == RECORD_REFUSED && record->flow.reason == reason;

		for (size_t j = i + 1; latest && j < far->record_count; j++)
			if (far->records[j].kind == RECORD_REFUSED && far->records[j].flow.id == record->flow.id)
				latest = false;
		if (latest) {
			total += record->flow.count;
			(*ret_rows)++;
		}
	}
	return total;
}

#endif
