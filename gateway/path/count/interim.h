/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What open records have come to so far, written every minute: a crash leaves the last count and not none.
 *
 * Theory of operation. Every open record has the same interval, so a queue in the order in which they were opened or
 * last looked at is a queue by time: one timer waits for its head. A look costs a comparison; only a record whose count
 * has changed is sent. A tick looks at INTERIM_BATCH of them at most, so that ten thousand connections that were opened
 * in one second do not hold the loop up a minute later. While the recorder is busy nothing is sent, and what is due
 * stays due: an interim count is worth less than the records that it would delay. */
#ifndef POSTERN_GATEWAY_INTERIM_H
#define POSTERN_GATEWAY_INTERIM_H

#include "base/loop.h"
#include "gateway/shared/recorder.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* A record is looked at this long after it was opened, and then at this interval. */
#define INTERIM_MS 60000
/* Records looked at in one tick, and the pause before the next one when more are due. */
#define INTERIM_BATCH 64
#define INTERIM_STEP_MS 20
/* Above this number of records that are not durable yet the recorder is busy: far from RECORDER_BUSY, at which
 * connections are refused; a count so far must never be the reason. */
#define INTERIM_QUEUE_MAX (RECORDER_BUSY / 4)
/* The recorder was busy: looked at again after this. */
#define INTERIM_RETRY_MS 1000

struct gateway;

/* Embedded in what has an open record; zeroed: in no queue. */
struct interim {
	TAILQ_ENTRY(interim) next;
	bool queued;
	int64_t due_ms; /* clock_mono_ms */
	uint64_t told;  /* bytes both ways, when last sent */
	/* Bytes both ways so far. */
	uint64_t (*count)(struct interim *interim);
	/* Send a record of kind RECORD_PROGRESS. */
	void (*tell)(struct interim *interim);
};

struct interim_queue {
	TAILQ_HEAD(, interim) open; /* by time; made by the first interim_add */
	struct loop_timer timer;
	struct gateway *gateway;
	int64_t every_ms; /* 0: INTERIM_MS */
};

/* A record was opened: interim->count and ->tell are set and may be called from now on until interim_remove. */
void interim_add(struct gateway *gateway, struct interim *interim);
/* Harmless when not queued. */
void interim_remove(struct gateway *gateway, struct interim *interim);

#endif
