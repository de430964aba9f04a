/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. An account that changes joins a queue, unless it is in it, and is sent when it has been there
 * for ACCOUNT_SEND_MS: one timer for all sandboxes, and work for those alone where something happened. The record says
 * how things stand at its place in the sender's sequence: the rows sent before it are the ones it counts. Behind a
 * sandbox's last record goes the final account, whether or not it adds up. */
#include "gateway/path/count/account.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/gateway.h"
#include "gateway/path/count/totals.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void
account_queue_arm(struct account_queue *queue)
{
	int64_t ms;

	if (queue->head == NULL || loop_timer_armed(&queue->timer))
		return;
	ms = queue->head->due_ms - clock_mono_ms();
	/* Without memory for it, by the next change. */
	(void)loop_timer_set(queue->loop, &queue->timer, ms > ACCOUNT_STEP_MS ? ms : ACCOUNT_STEP_MS);
}

static void
account_enqueue(struct account *account)
{
	struct account_queue *queue = account->queue;

	if (account->queued)
		return;
	account->queued = true;
	account->next = NULL;
	account->due_ms = clock_mono_ms() + ACCOUNT_SEND_MS;
	if (queue->tail != NULL)
		queue->tail->next = account;
	else
		queue->head = account;
	queue->tail = account;
}

static void
account_touch(struct account *account)
{
	account_enqueue(account);
	account_queue_arm(account->queue);
}

static void
account_unqueue(struct account *account)
{
	struct account_queue *queue = account->queue;
	struct account *before = NULL, **at = &queue->head;

	if (!account->queued)
		return;
	for (; *at != account; at = &(*at)->next)
		before = *at;
	*at = account->next;
	if (queue->tail == account)
		queue->tail = before;
	account->queued = false;
}

static int
account_tell(struct account *account, bool final)
{
	int64_t now_us = clock_real_us();
	struct record record;

	/* Of two accounts the log keeps the later one: a clock that is set back must not turn them round. */
	account->counts.ts_us = now_us > account->counts.ts_us ? now_us : account->counts.ts_us + 1;
	memset(&record, 0, sizeof(record));
	record.kind = RECORD_ACCOUNT;
	record.account = account->counts;
	record.account.final = final;
	return recorder_send(account->recorder, &record, NULL);
}

/* While the log takes nothing, what is there to say waits; the final account does not. */
static void
account_timer_handler(struct loop_timer *timer)
{
	struct account_queue *queue = loop_owner(timer, struct account_queue, timer);
	int64_t now_ms = clock_mono_ms();

	for (int i = 0; i < ACCOUNT_BATCH_MAX && queue->head != NULL && queue->head->due_ms <= now_ms; i++) {
		struct account *account = queue->head;

		account_unqueue(account);
		if (!recorder_ready(account->recorder) || account_tell(account, false) < 0)
			account_enqueue(account);
	}
	account_queue_arm(queue);
}

int
account_attach(struct sandbox *sandbox)
{
	struct account *account = calloc(1, sizeof(*account));

	if (account == NULL)
		return -ENOMEM;
	account->queue = &sandbox->gateway->accounts;
	account->queue->loop = sandbox->gateway->loop;
	account->queue->timer.handler = account_timer_handler;
	account->recorder = &sandbox->gateway->recorder;
	account->holders = 1;
	memcpy(account->name, sandbox->name, sizeof(account->name));
	account->counts.id = recorder_id(account->recorder);
	account->counts.sandbox = sandbox->id;
	sandbox->account = account;
	/* That this gateway serves it is worth a line, which is there should the gateway crash. */
	if (account_tell(account, false) < 0)
		account_touch(account);
	return 0;
}

struct account *
account_hold(struct account *account)
{
	account->holders++;
	return account;
}

static uint64_t
account_recorded(const struct record_account *counts, enum record_attempt kind)
{
	uint64_t sum = 0;

	for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
		sum += counts->recorded[kind][verdict];
	return sum;
}

static void
account_check(const struct account *account)
{
	static const char *const kinds[] = {"connections", "queries", "refused packets"};

	_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == RECORD_ATTEMPT_MAX, "a word for each kind");
	for (enum record_attempt kind = 0; kind < RECORD_ATTEMPT_MAX; kind++) {
		uint64_t came = account->counts.attempts[kind];
		uint64_t recorded = account_recorded(&account->counts, kind);

		if (came != recorded)
			log_warnx("%s: %llu %s came in, %llu are on record", account->name, (unsigned long long)came,
			    kinds[kind], (unsigned long long)recorded);
	}
}

void
account_release(struct account *account)
{
	if (account == NULL || --account->holders > 0)
		return;
	account_unqueue(account);
	account_check(account);
	if (account_tell(account, true) < 0)
		log_warnx("%s: its final account could not be recorded", account->name);
	free(account);
}

void
account_arrive(struct account *account, enum record_attempt kind, uint64_t count)
{
	if (count == 0)
		return;
	account->counts.attempts[kind] += count;
	account_touch(account);
}

void
account_reclass(struct account *account, enum record_attempt from, enum record_attempt to)
{
	account->counts.attempts[from]--;
	account->counts.attempts[to]++;
	account_touch(account);
}

/* False: the record is not about an attempt. */
static bool
account_book(uint64_t recorded[RECORD_ATTEMPT_MAX][VERDICT_MAX], const struct record *record, uint64_t before)
{
	const struct record_flow *flow = &record->flow;

	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
		recorded[RECORD_ATTEMPT_CONNECTION][flow->verdict] += flow->count - before;
		return true;
	case RECORD_REFUSED:
		recorded[RECORD_ATTEMPT_REFUSED][flow->verdict] += flow->count - before;
		return true;
	case RECORD_FLOW_CLOSE:
		recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED]--;
		recorded[RECORD_ATTEMPT_CONNECTION][record->close.verdict]++;
		return true;
	case RECORD_DNS:
		recorded[RECORD_ATTEMPT_DNS][record->dns.verdict] += record->dns.count - before;
		return true;
	case RECORD_PROGRESS:
	case RECORD_EVENT:
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
	case RECORD_GAP:
	case RECORD_ACCOUNT:
	case RECORD_KIND_MAX:
		break;
	}
	return false;
}

/* The same in the sum of all sandboxes. What is let through is open until its close. */
static void
account_queue_book(struct account_queue *queue, const struct record *record, uint64_t before)
{
	(void)account_book(queue->recorded, record, before);
	if (record->kind == RECORD_FLOW_OPEN && record->flow.verdict == VERDICT_ALLOWED)
		queue->open++;
	if (record->kind == RECORD_FLOW_CLOSE)
		queue->open--;
	totals_changed(loop_owner(queue, struct gateway, accounts));
}

int
account_send(struct account *account, struct record *record, uint64_t before, struct recorder_wait *wait)
{
	int rc = recorder_send(account->recorder, record, wait);

	if (rc == 0 && account_book(account->counts.recorded, record, before)) {
		account_queue_book(account->queue, record, before);
		account_touch(account);
	}
	return rc;
}
