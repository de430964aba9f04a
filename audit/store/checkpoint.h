/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints of the write-ahead log in a thread and with a connection of their own, off the path of whoever waits for
 * a commit. */
#ifndef POSTERN_AUDIT_CHECKPOINT_H
#define POSTERN_AUDIT_CHECKPOINT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* A frame of the log is a page of the database and its header. */
#define CHECKPOINT_FRAME_BYTES 4120
/* Frames in the log that start a checkpoint: few enough that it takes milliseconds. */
#define CHECKPOINT_FRAMES 1000
/* Frames, 16 MiB, beyond which the writer lends a hand to start the log from its beginning again. */
#define CHECKPOINT_FRAMES_CUT 4096
/* Frames that may be left to copy then: the writer, and an opener behind it, waits for them. */
#define CHECKPOINT_FRAMES_LEFT 500
/* Frames, 64 MiB, beyond which a reader that stands in the way is worth an alarm. */
#define CHECKPOINT_FRAMES_ALARM 16384
/* Frames, 1 GiB, beyond which the log counts as not writable: what some ten thousand connections write, and less
 * than anybody's disk misses. */
#define CHECKPOINT_FRAMES_MAX 260000

/* All of them for a log of at most so many frames: the numbers above, or as much smaller as max is. */
struct checkpoint_limits {
	uint64_t run, cut, left, alarm, max;
};
struct checkpoint_limits checkpoint_limits(uint64_t max);

struct checkpoint;

struct checkpoint_state {
	uint64_t frames;  /* in the log after the last commit; 0 once it will begin anew with the next */
	uint64_t runs;    /* checkpoints done */
	bool blocked;     /* it is longer than the alarm's limit, and a reader prevented the last attempt to cut it */
	bool checked;     /* the whole file was, and is sound */
	char damage[256]; /* what that found instead; "" so far */
};

/* Start the thread on a database that exists in WAL mode; check: it has yet to be checked through, once, when there is
 * nothing else to do. Returns NULL with *err. */
struct checkpoint *checkpoint_start(
    const char *path, const struct checkpoint_limits *limits, bool check, struct error *err);
/* Interrupts what is under way, and waits for that. Accepts NULL. */
void checkpoint_stop(struct checkpoint *checkpoint);

/* After a commit: the log has this many frames now. Wakes the thread when it is time. */
void checkpoint_note(struct checkpoint *checkpoint, uint64_t frames);

/* Should the writer, between two transactions, start the log anew? Whenever it did so it tells how that went. */
bool checkpoint_cut_due(struct checkpoint *checkpoint);
enum checkpoint_cut { CHECKPOINT_CUT_DONE, CHECKPOINT_CUT_BLOCKED, CHECKPOINT_CUT_FAILED };
void checkpoint_cut_done(struct checkpoint *checkpoint, enum checkpoint_cut cut);

void checkpoint_state(struct checkpoint *checkpoint, struct checkpoint_state *ret_state);

#endif
