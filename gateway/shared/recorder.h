/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records on their way to the auditor: numbered, kept until durable, sent again to a restarted auditor.
 *
 * recorder_ready says whether new work may be taken on. When it is false (auditor gone, log not writable, too much
 * unacknowledged) DNS answers SERVFAIL and new connections are reset, reason audit_unavailable; closes and refusals are
 * still queued. A record in the queue is never dropped before it is durable. The reserve between RECORDER_BUSY and
 * RECORDER_MAX is for the closes of what is already open: once recorder_has_room is false, refusals that a guest can
 * cause at will are counted in a few records that wait with their senders. A record that finds no room all the same
 * leaves a hole in the numbers, which the auditor makes an event of. */
#ifndef POSTERN_GATEWAY_RECORDER_H
#define POSTERN_GATEWAY_RECORDER_H

#include "audit/record.h"
#include "base/loop.h"
#include "gateway/shared/ipc.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>

/* Unacknowledged records at which new work is refused, and the hard maximum. */
#define RECORDER_BUSY 16384
#define RECORDER_MAX 65536
/* Records waiting in the channel's own queue: the rest waits here, since that queue breaks the channel when it
 * overflows. */
#define RECORDER_CHANNEL_MAX 2048

struct recorder_wait {
	STAILQ_ENTRY(recorder_wait) next;
	uint64_t seq;                                /* 0: not waiting */
	void (*handler)(struct recorder_wait *wait); /* the record is durable */
};

struct recorder {
	struct loop *loop;
	struct ipc ipc;        /* to the auditor; closed while there is none */
	uint64_t epoch;        /* this process's, from the keeper */
	uint64_t next_counter; /* for record ids */
	uint64_t next_seq, durable_seq;
	uint32_t lost; /* records that found no room since the last one that did; the next one tells */
	bool writable;
	uint32_t wal_mib;                     /* as the auditor last said */
	STAILQ_HEAD(, recorder_queued) queue; /* not yet durable, in order */
	struct recorder_queued *unsent;       /* the first of them that is not on its way; NULL: all are */
	size_t queue_len;
	STAILQ_HEAD(, recorder_wait) waits; /* by seq */
	/* The log could not be written and now can; it may be another one. May be NULL; set after init. */
	void (*resumed_handler)(struct recorder *recorder);
};

/* epoch: known from the start, because refusals are recorded before there is an auditor, and their ids must be ours. */
void recorder_init(struct recorder *recorder, struct loop *loop, uint64_t epoch);
/* A (new) channel to the auditor, made for the sender of this epoch; takes fd. Sends everything not yet durable again.
 * 0 or -errno; -EINVAL: it was made for another sender. */
int recorder_connect(struct recorder *recorder, int fd, uint64_t epoch);
void recorder_free(struct recorder *recorder);

bool recorder_ready(const struct recorder *recorder);
/* May a refusal have a record of its own? */
bool recorder_has_room(const struct recorder *recorder);

/* A record id that was never used and never will be. */
uint64_t recorder_id(struct recorder *recorder);

/* Queue and send a record (copied; kind decides its size; seq is filled in). wait may be NULL; otherwise its handler
 * runs once the record is durable. Returns 0, or -ENOBUFS at RECORDER_MAX (wait is then not armed). */
int recorder_send(struct recorder *recorder, struct record *record, struct recorder_wait *wait);
/* The owner goes away. Harmless when not waiting. */
void recorder_cancel(struct recorder *recorder, struct recorder_wait *wait);

#endif
