/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/loop.h"

#include "base/clock.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

struct loop {
	int epoll_fd;
	bool stopping;
	struct epoll_event
	    events[LOOP_ROUND_MAX]; /* the round under way; data.ptr is NULL once its source was removed */
	int round_len;
	struct loop_timer **heap;
	size_t heap_len, heap_size;
	struct loop_deferred *deferred;
};

struct loop *
loop_new(void)
{
	struct loop *loop = calloc(1, sizeof(*loop));

	if (loop == NULL)
		return NULL;
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		free(loop);
		return NULL;
	}
	return loop;
}

void
loop_free(struct loop *loop)
{
	if (loop == NULL)
		return;
	close(loop->epoll_fd);
	free(loop->heap);
	free(loop);
}

/* syscalls: epoll_ctl */
int
loop_source_add(struct loop *loop, struct loop_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, source->fd, &ev) < 0)
		return -errno;
	source->events = events;
	return 0;
}

/* syscalls: epoll_ctl */
int
loop_source_set(struct loop *loop, struct loop_source *source, uint32_t events)
{
	struct epoll_event ev = {.events = events, .data.ptr = source};

	if (source->events == events)
		return 0;
	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, source->fd, &ev) < 0)
		return -errno;
	source->events = events;
	return 0;
}

/* syscalls: epoll_ctl */
int
loop_source_remove(struct loop *loop, struct loop_source *source)
{
	int fd = source->fd;

	if (fd < 0)
		return -1;
	epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
	for (int i = 0; i < loop->round_len; i++)
		if (loop->events[i].data.ptr == source)
			loop->events[i].data.ptr = NULL;
	source->fd = -1;
	source->events = 0;
	return fd;
}

static void
loop_heap_place(struct loop *loop, size_t at, struct loop_timer *timer)
{
	loop->heap[at] = timer;
	timer->heap_at = at + 1;
}

static void
loop_heap_up(struct loop *loop, size_t at)
{
	struct loop_timer *timer = loop->heap[at];

	while (at > 0) {
		size_t parent = (at - 1) / 2;

		if (loop->heap[parent]->due_ms <= timer->due_ms)
			break;
		loop_heap_place(loop, at, loop->heap[parent]);
		at = parent;
	}
	loop_heap_place(loop, at, timer);
}

static void
loop_heap_down(struct loop *loop, size_t at)
{
	struct loop_timer *timer = loop->heap[at];

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= loop->heap_len)
			break;
		if (child + 1 < loop->heap_len && loop->heap[child + 1]->due_ms < loop->heap[child]->due_ms)
			child++;
		if (timer->due_ms <= loop->heap[child]->due_ms)
			break;
		loop_heap_place(loop, at, loop->heap[child]);
		at = child;
	}
	loop_heap_place(loop, at, timer);
}

void
loop_timer_stop(struct loop *loop, struct loop_timer *timer)
{
	size_t at;
	struct loop_timer *last;

	if (timer->heap_at == 0)
		return;
	at = timer->heap_at - 1;
	timer->heap_at = 0;
	last = loop->heap[--loop->heap_len];
	if (last == timer)
		return;
	loop_heap_place(loop, at, last);
	loop_heap_up(loop, at);
	loop_heap_down(loop, last->heap_at - 1);
}

int
loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t delay_ms)
{
	loop_timer_stop(loop, timer);
	if (loop->heap_len == loop->heap_size) {
		size_t size = loop->heap_size == 0 ? 64 : loop->heap_size * 2;
		struct loop_timer **heap = reallocarray(loop->heap, size, sizeof(struct loop_timer *));

		if (heap == NULL)
			return -ENOMEM;
		loop->heap = heap;
		loop->heap_size = size;
	}
	timer->due_ms = clock_mono_ms() + delay_ms;
	loop->heap[loop->heap_len] = timer;
	loop_heap_up(loop, loop->heap_len++);
	return 0;
}

void
loop_defer(struct loop *loop, struct loop_deferred *deferred)
{
	if (deferred->queued)
		return;
	deferred->queued = true;
	deferred->next = loop->deferred;
	loop->deferred = deferred;
}

static void
loop_run_deferred(struct loop *loop)
{
	while (loop->deferred != NULL) {
		struct loop_deferred *deferred = loop->deferred;

		loop->deferred = deferred->next;
		deferred->queued = false;
		deferred->handler(deferred);
	}
}

static void
loop_run_timers(struct loop *loop)
{
	int64_t now_ms = clock_mono_ms();

	while (loop->heap_len > 0 && loop->heap[0]->due_ms <= now_ms) {
		struct loop_timer *timer = loop->heap[0];

		loop_timer_stop(loop, timer);
		timer->handler(timer);
	}
}

/* The wait until the first timer, at most limit_ms (-1: no limit). */
static int
loop_wait_ms(const struct loop *loop, int limit_ms)
{
	int64_t wait_ms;

	if (loop->heap_len == 0)
		return limit_ms;
	wait_ms = loop->heap[0]->due_ms - clock_mono_ms();
	if (wait_ms < 0)
		wait_ms = 0;
	if (limit_ms >= 0 && wait_ms > limit_ms)
		wait_ms = limit_ms;
	return wait_ms > 60000 ? 60000 : (int)wait_ms;
}

/* syscalls: epoll_wait epoll_pwait */
int
loop_round(struct loop *loop, int timeout_ms)
{
	int n = epoll_wait(loop->epoll_fd, loop->events, LOOP_ROUND_MAX, loop_wait_ms(loop, timeout_ms));

	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	loop->round_len = n;
	for (int i = 0; i < loop->round_len; i++) {
		struct loop_source *source = loop->events[i].data.ptr;

		if (source != NULL)
			source->handler(source, loop->events[i].events);
	}
	loop->round_len = 0;
	loop_run_timers(loop);
	loop_run_deferred(loop);
	return 0;
}

int
loop_run(struct loop *loop)
{
	loop->stopping = false;
	while (!loop->stopping) {
		int rc = loop_round(loop, -1);

		if (rc < 0)
			return rc;
	}
	return 0;
}

void
loop_stop(struct loop *loop)
{
	loop->stopping = true;
}
