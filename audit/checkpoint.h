/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checkpoints of the write-ahead log in a thread and with a connection of their own, off the path of whoever waits for
 * a commit. */
#ifndef POSTERN_AUDIT_CHECKPOINT_H
#define POSTERN_AUDIT_CHECKPOINT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>

/* Frames (pages of 4 KiB) in the log that start a checkpoint: few enough that it takes milliseconds. */
#define CHECKPOINT_FRAMES 1000
/* Frames, 16 MiB, beyond which the writer lends a hand to start the log from its beginning again. */
#define CHECKPOINT_FRAMES_CUT 4096
/* Frames that may be left to copy then: the writer, and an opener behind it, waits for them. */
#define CHECKPOINT_FRAMES_LEFT 500
/* Frames, 64 MiB, beyond which a reader that stands in the way is worth a warning. */
#define CHECKPOINT_FRAMES_MAX 16384

struct checkpoint;

struct checkpoint_state {
	uint64_t frames;  /* in the log after the last commit */
	uint64_t runs;    /* checkpoints done */
	uint64_t blocked; /* attempts to cut an overlong log that a reader prevented; counts up */
	bool checked;     /* the whole file was, and is sound */
	char damage[256]; /* what that found instead; "" so far */
};

/* Start the thread on a database that exists in WAL mode; check: it has yet to be checked through, once, when there is
 * nothing else to do. Returns NULL with *err. */
struct checkpoint *checkpoint_start(const char *path, bool check, struct error *err);
/* Interrupts what is under way, and waits for that. Accepts NULL. */
void checkpoint_stop(struct checkpoint *checkpoint);

/* After a commit: the log has this many frames now. Wakes the thread when it is time. */
void checkpoint_note(struct checkpoint *checkpoint, uint64_t frames);

/* Should the writer, between two transactions, start the log anew? Then it tells how that went: blocked by a reader? */
bool checkpoint_cut_due(struct checkpoint *checkpoint);
void checkpoint_cut_done(struct checkpoint *checkpoint, bool blocked);

void checkpoint_state(struct checkpoint *checkpoint, struct checkpoint_state *ret_state);

#endif
