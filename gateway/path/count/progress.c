/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/progress.h"

#include "base/clock.h"
#include "gateway/path/gateway.h"

static int64_t
progress_every_ms(const struct progress_queue *queue)
{
	return queue->every_ms == 0 ? PROGRESS_MS : queue->every_ms;
}

static void
progress_unlink(struct progress_queue *queue, struct progress *progress)
{
	*(progress->previous == NULL ? &queue->first : &progress->previous->next) = progress->next;
	*(progress->next == NULL ? &queue->last : &progress->next->previous) = progress->previous;
	progress->next = progress->previous = NULL;
	progress->queued = false;
}

static void
progress_append(struct progress_queue *queue, struct progress *progress)
{
	progress->due_ms = clock_mono_ms() + progress_every_ms(queue);
	progress->previous = queue->last;
	progress->next = NULL;
	*(queue->last == NULL ? &queue->first : &queue->last->next) = progress;
	queue->last = progress;
	progress->queued = true;
}

static bool
progress_may_tell(const struct recorder *recorder)
{
	return recorder_ready(recorder) && recorder->queue_len < PROGRESS_QUEUE_MAX;
}

static void
progress_look(struct progress *progress)
{
	uint64_t count = progress->count(progress);

	if (count == progress->told)
		return;
	progress->told = count;
	progress->tell(progress);
}

/* Without memory for a timer the next progress_add tries again. */
static void
progress_wait(struct progress_queue *queue, int64_t least_ms)
{
	int64_t left_ms;

	if (queue->first == NULL)
		return;
	left_ms = queue->first->due_ms - clock_mono_ms();
	(void)loop_timer_set(queue->gateway->loop, &queue->timer, left_ms > least_ms ? left_ms : least_ms);
}

static void
progress_timer_handler(struct loop_timer *timer)
{
	struct progress_queue *queue = loop_owner(timer, struct progress_queue, timer);
	int64_t now_ms = clock_mono_ms();

	for (int i = 0; i < PROGRESS_BATCH && queue->first != NULL && queue->first->due_ms <= now_ms; i++) {
		struct progress *progress = queue->first;

		if (!progress_may_tell(&queue->gateway->recorder)) {
			progress_wait(queue, PROGRESS_RETRY_MS);
			return;
		}
		progress_look(progress);
		progress_unlink(queue, progress);
		progress_append(queue, progress);
	}
	progress_wait(queue, PROGRESS_STEP_MS);
}

void
progress_add(struct gateway *gateway, struct progress *progress)
{
	struct progress_queue *queue = &gateway->progress;

	if (progress->queued)
		return;
	queue->gateway = gateway;
	queue->timer.handler = progress_timer_handler;
	progress->told = 0;
	progress_append(queue, progress);
	if (!loop_timer_armed(&queue->timer))
		progress_wait(queue, PROGRESS_STEP_MS);
}

void
progress_remove(struct gateway *gateway, struct progress *progress)
{
	if (progress->queued)
		progress_unlink(&gateway->progress, progress);
}
