/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/interim.h"

#include "base/clock.h"
#include "gateway/path/gateway.h"

/* Puts an entry at the queue's end, due after one interval. */
static void
interim_append(struct interim_queue *queue, struct interim *interim)
{
	interim->due_ms = clock_mono_ms() + (queue->every_ms == 0 ? INTERIM_MS : queue->every_ms);
	TAILQ_INSERT_TAIL(&queue->open, interim, next);
	interim->queued = true;
}

/* Without memory for a timer the next interim_add tries again. */
static void
interim_wait(struct interim_queue *queue, int64_t least_ms)
{
	int64_t left_ms;

	if (TAILQ_EMPTY(&queue->open))
		return;
	left_ms = TAILQ_FIRST(&queue->open)->due_ms - clock_mono_ms();
	(void)loop_timer_set(queue->gateway->loop, &queue->timer, left_ms > least_ms ? left_ms : least_ms);
}

/* Looks at the entries that are due, and tells those whose count has changed. */
static void
interim_timer_handler(struct loop_timer *timer)
{
	struct interim_queue *queue = loop_owner(timer, struct interim_queue, timer);
	const struct recorder *recorder = &queue->gateway->recorder;
	int64_t now_ms = clock_mono_ms();

	struct interim *interim;

	for (int i = 0; i < INTERIM_BATCH && (interim = TAILQ_FIRST(&queue->open)) != NULL; i++) {
		uint64_t count;

		if (interim->due_ms > now_ms)
			break;
		if (!recorder_ready(recorder) || recorder->queue_len >= INTERIM_QUEUE_MAX) {
			interim_wait(queue, INTERIM_RETRY_MS);
			return;
		}
		count = interim->count(interim);
		if (count != interim->told) {
			interim->told = count;
			interim->tell(interim);
		}
		TAILQ_REMOVE(&queue->open, interim, next);
		interim_append(queue, interim);
	}
	interim_wait(queue, INTERIM_STEP_MS);
}

void
interim_add(struct gateway *gateway, struct interim *interim)
{
	struct interim_queue *queue = &gateway->interim;

	if (interim->queued)
		return;
	if (queue->gateway == NULL)
		TAILQ_INIT(&queue->open);
	queue->gateway = gateway;
	queue->timer.handler = interim_timer_handler;
	interim->told = 0;
	interim_append(queue, interim);
	if (!loop_timer_armed(&queue->timer))
		interim_wait(queue, INTERIM_STEP_MS);
}

void
interim_remove(struct gateway *gateway, struct interim *interim)
{
	if (interim->queued)
		TAILQ_REMOVE(&gateway->interim.open, interim, next);
	interim->queued = false;
}
