/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/interim.h"

#include "base/clock.h"
#include "gateway/path/gateway.h"

/* Takes an entry out of the queue. */
static void
interim_unlink(struct interim_queue *queue, struct interim *interim)
{
	*(interim->previous == NULL ? &queue->first : &interim->previous->next) = interim->next;
	*(interim->next == NULL ? &queue->last : &interim->next->previous) = interim->previous;
	interim->next = interim->previous = NULL;
	interim->queued = false;
}

/* Puts an entry at the queue's end, due after one interval. */
static void
interim_append(struct interim_queue *queue, struct interim *interim)
{
	interim->due_ms = clock_mono_ms() + (queue->every_ms == 0 ? INTERIM_MS : queue->every_ms);
	interim->previous = queue->last;
	interim->next = NULL;
	*(queue->last == NULL ? &queue->first : &queue->last->next) = interim;
	queue->last = interim;
	interim->queued = true;
}

/* Without memory for a timer the next interim_add tries again. */
static void
interim_wait(struct interim_queue *queue, int64_t least_ms)
{
	int64_t left_ms;

	if (queue->first == NULL)
		return;
	left_ms = queue->first->due_ms - clock_mono_ms();
	(void)loop_timer_set(queue->gateway->loop, &queue->timer, left_ms > least_ms ? left_ms : least_ms);
}

/* Looks at the entries that are due, and tells those whose count has changed. */
static void
interim_timer_handler(struct loop_timer *timer)
{
	struct interim_queue *queue = loop_owner(timer, struct interim_queue, timer);
	const struct recorder *recorder = &queue->gateway->recorder;
	int64_t now_ms = clock_mono_ms();

	for (int i = 0; i < INTERIM_BATCH && queue->first != NULL && queue->first->due_ms <= now_ms; i++) {
		struct interim *interim = queue->first;
		uint64_t count = interim->count(interim);

		if (!recorder_ready(recorder) || recorder->queue_len >= INTERIM_QUEUE_MAX) {
			interim_wait(queue, INTERIM_RETRY_MS);
			return;
		}
		if (count != interim->told) {
			interim->told = count;
			interim->tell(interim);
		}
		interim_unlink(queue, interim);
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
		interim_unlink(&gateway->interim, interim);
}
