/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The audit database as its one writer sees it: opened whole or set aside, written in batches, synced at each commit.
 * One thread uses a store. */
#ifndef POSTERN_AUDIT_STORE_H
#define POSTERN_AUDIT_STORE_H

#include "audit/store/checkpoint.h"
#include "audit/store/prune.h"
#include "audit/record.h"
#include "audit/seal/seal.h"
#include "base/error.h"

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* A statement waits this long for another process's write lock; then the log counts as not writable. */
#define STORE_BUSY_MS 2000
/* So long for a log that is too long to be cut; then it counts as not writable, too. */
#define STORE_CUT_MS 200
/* Files set aside in one second: beyond it opening fails. */
#define STORE_SET_ASIDE_MAX 100
/* A file that was not closed in order is checked through before it is used up to this size, 32 MiB: 0.15 s. A larger
 * one is checked in the checkpoint thread, after a look at its newest rows. */
#define STORE_CHECK_NOW_MAX (32 << 20)

struct store;

/* What opening came upon; the auditor makes a log line and an event of it. Also of an opening that failed: the old file
 * is set aside, and there is no new one yet. */
struct store_opening {
	bool created;            /* a new database was made */
	bool replaced;           /* there had been one: it is gone, or was set aside as moved_to */
	char why[256];           /* replaced: what was wrong with it */
	char moved_to[PATH_MAX]; /* replaced: its new name; "" when the file was gone */
	char changed[256];       /* another program changed the file since it was last written, and how; "": none did */
};

/* Open or make the database at path; its directory must exist. Checks as much of it as the end of its last use asks
 * for; a corrupt or foreign file is renamed path.corrupt-TIME (with its -wal and -shm) and a new one made. Returns NULL
 * with *err: ERROR_EXISTS      another process has it open for writing ERROR_USAGE       a newer postern made it
 *   ERROR_PERMISSION  as it says
 *   others            may pass (disk full, input/output error): try again */
struct store *store_open(const char *path, struct store_opening *ret_opening, struct error *err);
/* Rolls back what is not committed. The -wal and -shm files stay, for readers that cannot make them. Accepts NULL. */
void store_close(struct store *store);

/* How long the write-ahead log may become, in bytes, before nothing more is taken: a reader that holds an old view
 * keeps it growing. Default: CHECKPOINT_FRAMES_MAX. Before store_start_checkpoints. */
void store_limit_log(struct store *store, uint64_t bytes);

/* Start the checkpoint thread, which also checks the rest of the file if there is one. Without it the log grows until
 * the store is closed, and the store is not closed in order. */
int store_start_checkpoints(struct store *store, struct error *err);

/* Add a record (record_valid has accepted it) to the open batch, beginning one if there is none, which fails while the
 * write-ahead log is too long. On failure returns -1: with ERROR_USAGE the record alone was refused, with any other
 * code the whole batch is rolled back. */
int store_add(struct store *store, const struct record *record, struct error *err);

/* Close, as END_DAEMON_CRASH, open connections of epochs before this one, in the batch. Their time of closing is the
 * last sign of life found when the store was opened. Fails as store_add does. */
int store_close_earlier(struct store *store, uint64_t epoch, struct error *err);

/* The sandboxes that are attached, according to the file; at most max, newest first. Also from a file that is gone from
 * the directory: so they can be carried over to the one that replaces it. Returns how many, 0 on any failure. */
size_t store_live_sandboxes(struct store *store, struct record_sandbox *ret_sandboxes, size_t max);
/* The last that a daemon said of itself: EVENT_DAEMON_START or EVENT_DAEMON_STOP; 0: nothing, or it cannot be read. */
unsigned int store_last_daemon_event(struct store *store);

/* When the file was opened: newest time in it, in µs since the epoch; 0: there was none. */
int64_t store_newest_us(const struct store *store);
/* Time of the newest EVENT_AUDIT_ALARM whose detail has "ahead_s"; 0: there is none, or it cannot be read. */
int64_t store_last_clock_alarm_us(struct store *store);

/* Commit and sync the batch. 0: it is durable (also when it was empty); -1: nothing of it is there (when the sync
 * itself failed: nothing or all of it, once the store was opened anew; to send it again is right, twice is once). Fails
 * when the files are no longer the ones under their names: what is written to a deleted file is lost. */
int store_commit(struct store *store, struct error *err);
bool store_has_batch(const struct store *store);
/* The batch must not be kept: what belongs into it cannot be added. Nothing of it is there, and the store must be
 * opened anew. */
void store_abandon(struct store *store);

/* Are the database and its -wal and -shm still the files that were opened? If not: -1, and the store must be opened
 * anew. */
int store_check(struct store *store, struct error *err);

/* Read the newest rows, links and seal as anybody else would: our own connection holds pages in memory and would notice
 * only late that the files were damaged or changed. If they were, or the check in the checkpoint thread has found
 * damage: -1, and the store must be opened anew. Costs a fraction of a millisecond. */
int store_look(struct store *store, struct error *err);

/* Start the write-ahead log anew if no reader stands in the way; not within a batch. A commit does it by itself. */
void store_cut(struct store *store);

/* After a failure: try to write and remove 64 KiB. 0: the store can be used again. */
int store_probe(struct store *store, struct error *err);

/* Did a failure mean that only opening anew can help (corrupt, replaced, input/output error)? */
bool store_must_reopen(const struct store *store);
/* Was that because another program changed the log? */
bool store_changed_by_others(const struct store *store);

/* Sign seals with this key from now on (it must stay; NULL: write none). A seal is then due with a commit after
 * SEAL_LINKS links; for what is added more slowly the caller calls store_seal. */
void store_set_signer(struct store *store, const struct seal_signer *signer);

/* Are there links that no seal vouches for, the newest seal being older than SEAL_INTERVAL_S (or unsealed links at all,
 * at the end)? Then add one to the batch; the caller commits. 0: none was due, or it is in the batch; -1 as store_add.
 */
int store_seal(struct store *store, bool at_end, struct error *err);

struct store_state {
	int64_t seq;       /* of the newest change */
	int64_t unsealed;  /* changes that no seal vouches for; 0 when nobody can sign */
	int64_t sealed_us; /* time of the newest seal, in µs since the epoch; 0: there is none */
	int64_t bytes;     /* of the database and its -wal */
};
/* What is on disk. Looks at the files' sizes. */
void store_state(const struct store *store, struct store_state *ret_state);

/* Drop the oldest sealed segment in the batch, if the limits say so; the caller adds the event that tells, seals
 * (store_seal, at_end) and commits. Returns 1 and *ret_segment, 0 when nothing is due, or -1 as store_add. Takes some
 * milliseconds for each 1,000 rows. */
int store_prune(
    struct store *store, const struct prune_limits *limits, struct prune_segment *ret_segment, struct error *err);

/* Give at most so many free pages back to the file system, in a transaction of its own, if there are more of them than
 * is good. 1: there are still; 0: done, or a batch is open; -1 as store_add. */
int store_shrink(struct store *store, unsigned int pages, struct error *err);

/* Zeroes while the checkpoint thread does not run. */
void store_checkpoint_state(const struct store *store, struct checkpoint_state *ret_state);

#endif
