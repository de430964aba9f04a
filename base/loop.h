/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The event loop of a role: epoll for descriptors, a heap of timers, deferred calls at the end of a round.
 *
 * Theory of operation. A source is embedded in its owner and names one descriptor and one handler. Within one round
 * of epoll_wait several events may belong to the same owner, and the first handler may decide to free it. So an owner
 * never frees itself inside a handler: it removes its sources (loop_source_remove makes later events of the same round
 * fall through) and hands itself to loop_defer, whose calls run when the round is over. */
#ifndef POSTERN_BASE_LOOP_H
#define POSTERN_BASE_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Events taken from the kernel in one round: bounds how long timers wait behind descriptors. */
#define LOOP_ROUND_MAX 128

struct loop;

struct loop_source {
	int fd;          /* -1 while not added; not owned */
	uint32_t events; /* EPOLL* bits asked for */
	void (*handler)(struct loop_source *source, uint32_t events);
};

struct loop_timer {
	int64_t due_ms; /* clock_mono_ms; valid while armed */
	size_t heap_at; /* position + 1 in the heap; 0 while not armed */
	void (*handler)(struct loop_timer *timer);
};

struct loop_deferred {
	struct loop_deferred *next;
	bool queued;
	void (*handler)(struct loop_deferred *deferred);
};

/* Get the struct that a member is embedded in. */
#define loop_owner(member_ptr, type, member) ((type *)(void *)((char *)(member_ptr)-offsetof(type, member)))

/* NULL with errno on failure. */
struct loop *loop_new(void);
void loop_free(struct loop *loop);

/* Watch source->fd (must be >= 0). Returns 0 or -errno. */
int loop_source_add(struct loop *loop, struct loop_source *source, uint32_t events);
/* Change the events; 0 keeps it registered but quiet (EPOLLERR and EPOLLHUP still come). No system call when equal. */
int loop_source_set(struct loop *loop, struct loop_source *source, uint32_t events);
/* Stop watching; harmless when not added. The descriptor stays open, source->fd becomes -1. Returns the descriptor. */
int loop_source_remove(struct loop *loop, struct loop_source *source);

/* (Re)arm a timer to fire once, delay_ms >= 0 from now. Returns 0 or -ENOMEM. */
int loop_timer_set(struct loop *loop, struct loop_timer *timer, int64_t delay_ms);
void loop_timer_stop(struct loop *loop, struct loop_timer *timer);
static inline bool
loop_timer_armed(const struct loop_timer *timer)
{
	return timer->heap_at != 0;
}

/* Call deferred->handler once after this round. Queueing twice is one call. */
void loop_defer(struct loop *loop, struct loop_deferred *deferred);

/* Run until loop_stop. Returns 0, or -errno when epoll itself failed. */
int loop_run(struct loop *loop);
/* One round, waiting at most timeout_ms (-1: until something happens). For tests and for a library's own loop. */
int loop_round(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);

#endif
