/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A balance that changes joins a queue, unless it is in it, and is sent when it has been there for
 * BALANCE_SEND_MS: one timer for all sandboxes, and work for those alone where something happened. The record says how
 * things stand at its place in the sender's sequence: the rows sent before it are the ones it counts. After a sandbox's
 * last record goes the final balance, whether or not it adds up. */
#include "gateway/path/count/balance.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/gateway.h"
#include "gateway/path/count/metrics.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Waits for the balance that is due first. */
static void
balance_queue_arm(struct balance_queue *queue)
{
	int64_t ms;

	if (TAILQ_EMPTY(&queue->waiting) || loop_timer_armed(&queue->timer))
		return;
	ms = TAILQ_FIRST(&queue->waiting)->due_ms - clock_mono_ms();
	/* Without memory for it, by the next change. */
	(void)loop_timer_set(queue->loop, &queue->timer, ms > BALANCE_STEP_MS ? ms : BALANCE_STEP_MS);
}

/* Puts the balance at the queue's end, due in BALANCE_SEND_MS, unless it is queued. */
static void
balance_enqueue(struct balance *balance)
{
	if (balance->queued)
		return;
	balance->queued = true;
	balance->due_ms = clock_mono_ms() + BALANCE_SEND_MS;
	TAILQ_INSERT_TAIL(&balance->queue->waiting, balance, next);
}

/* The counts have changed: they are to be sent. */
static void
balance_touch(struct balance *balance)
{
	balance_enqueue(balance);
	balance_queue_arm(balance->queue);
}

/* Takes the balance out of the queue. */
static void
balance_unqueue(struct balance *balance)
{
	if (balance->queued)
		TAILQ_REMOVE(&balance->queue->waiting, balance, next);
	balance->queued = false;
}

/* Sends the counts as a record of kind RECORD_ACCOUNT. 0 or -ENOBUFS. */
static int
balance_tell(struct balance *balance, bool final)
{
	int64_t now_us = clock_real_us();
	struct record record;

	/* Of two balances the log keeps the later one: a clock that is set back must not turn them round. */
	balance->counts.ts_us = now_us > balance->counts.ts_us ? now_us : balance->counts.ts_us + 1;
	memset(&record, 0, sizeof(record));
	record.kind = RECORD_ACCOUNT;
	record.account = balance->counts;
	record.account.final = final;
	return recorder_send(balance->recorder, &record, NULL);
}

/* While the log takes nothing, balances wait; the final one does not. */
static void
balance_timer_handler(struct loop_timer *timer)
{
	struct balance_queue *queue = loop_owner(timer, struct balance_queue, timer);
	int64_t now_ms = clock_mono_ms();
	struct balance *balance;

	for (int i = 0; i < BALANCE_BATCH_MAX && (balance = TAILQ_FIRST(&queue->waiting)) != NULL; i++) {
		if (balance->due_ms > now_ms)
			break;
		balance_unqueue(balance);
		if (!recorder_ready(balance->recorder) || balance_tell(balance, false) < 0)
			balance_enqueue(balance);
	}
	balance_queue_arm(queue);
}

int
balance_attach(struct sandbox *sandbox)
{
	struct balance *balance = calloc(1, sizeof(*balance));

	if (balance == NULL)
		return -ENOMEM;
	balance->queue = &sandbox->gateway->balances;
	if (balance->queue->loop == NULL)
		TAILQ_INIT(&balance->queue->waiting);
	balance->queue->loop = sandbox->gateway->loop;
	balance->queue->timer.handler = balance_timer_handler;
	balance->recorder = &sandbox->gateway->recorder;
	balance->holders = 1;
	memcpy(balance->name, sandbox->name, sizeof(balance->name));
	balance->counts.id = recorder_id(balance->recorder);
	balance->counts.sandbox = sandbox->id;
	sandbox->balance = balance;
	/* The first record says that this gateway serves the sandbox, in case it crashes. */
	if (balance_tell(balance, false) < 0)
		balance_touch(balance);
	return 0;
}

struct balance *
balance_hold(struct balance *balance)
{
	balance->holders++;
	return balance;
}

/* Warns of each kind of attempt that does not add up. */
static void
balance_check(const struct balance *balance)
{
	static const char *const kinds[] = {"connections", "queries", "refused packets"};

	_Static_assert(sizeof(kinds) / sizeof(kinds[0]) == RECORD_ATTEMPT_MAX, "a word for each kind");
	for (enum record_attempt kind = 0; kind < RECORD_ATTEMPT_MAX; kind++) {
		uint64_t came = balance->counts.attempts[kind];
		uint64_t recorded = 0;

		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			recorded += balance->counts.recorded[kind][verdict];
		if (came != recorded)
			log_warnx("%s: %llu %s came in, %llu are on record", balance->name, (unsigned long long)came,
			    kinds[kind], (unsigned long long)recorded);
	}
}

void
balance_release(struct balance *balance)
{
	if (balance == NULL || --balance->holders > 0)
		return;
	balance_unqueue(balance);
	balance_check(balance);
	if (balance_tell(balance, true) < 0)
		log_warnx("%s: its final balance could not be recorded", balance->name);
	free(balance);
}

void
balance_arrive(struct balance *balance, enum record_attempt kind, uint64_t count)
{
	if (count == 0)
		return;
	balance->counts.attempts[kind] += count;
	balance_touch(balance);
}

void
balance_reclass(struct balance *balance, enum record_attempt from, enum record_attempt to)
{
	balance->counts.attempts[from]--;
	balance->counts.attempts[to]++;
	balance_touch(balance);
}

/* False: the record is not about an attempt. */
static bool
balance_book(uint64_t recorded[RECORD_ATTEMPT_MAX][VERDICT_MAX], const struct record *record, uint64_t before)
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

int
balance_send(struct balance *balance, struct record *record, uint64_t before, struct recorder_wait *wait)
{
	struct balance_queue *queue = balance->queue;
	int rc = recorder_send(balance->recorder, record, wait);

	if (rc < 0 || !balance_book(balance->counts.recorded, record, before))
		return rc;
	/* The same in the sum of all sandboxes. What is let through is open until its close. */
	(void)balance_book(queue->recorded, record, before);
	if (record->kind == RECORD_FLOW_OPEN && record->flow.verdict == VERDICT_ALLOWED)
		queue->open++;
	if (record->kind == RECORD_FLOW_CLOSE)
		queue->open--;
	metrics_changed(loop_owner(queue, struct gateway, balances));
	balance_touch(balance);
	return 0;
}
