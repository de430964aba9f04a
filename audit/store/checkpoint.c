/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A passive checkpoint copies committed pages from the log into the database while the writer goes
 * on; once all are copied and no reader needs the log, the next commit starts it from the beginning. Under constant
 * load there is always a last commit that is not copied yet, and the log would grow for ever: so beyond
 * CHECKPOINT_FRAMES_CUT, right after a checkpoint of ours, the writer itself copies the few pages that are left and
 * starts the log anew (between two transactions; it waits for nobody). A reader that holds an old snapshot for long
 * prevents that; it costs disk space, is told by an alarm, and in the end the store takes no more (CASES F-23).
 *
 * A large database that was not closed in order is checked through here, too, while it is already in use: seconds for
 * each GiB in which the thread makes no checkpoint, so the log grows and is cut afterwards. */
#include "audit/store/checkpoint.h"

#include "audit/store/integrity.h"
#include "audit/store/schema.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between two interruptions of a thread that is to stop: one may come before there is anything to interrupt. */
#define CHECKPOINT_STOP_MS 10

struct checkpoint {
	sqlite3 *db; /* the thread's own */
	pthread_t thread;
	pthread_mutex_t mutex;
	pthread_cond_t cond;
	struct checkpoint_limits limits;
	bool wanted, stopping;
	bool check_due; /* now; after a failure of the check itself: after the next checkpoint */
	bool check_failed;
	uint64_t next_frames; /* the log's length that starts the next one */
	uint64_t done_frames; /* the log's length that the last one began with */
	bool cut_due;
	struct checkpoint_state state;
};

/* The usual limit, or a share of the longest log where that is less; at least one page. */
static uint64_t
checkpoint_limit(uint64_t usual, uint64_t max, uint64_t share)
{
	uint64_t limit = max / share;

	if (limit == 0)
		limit = 1;
	return limit < usual ? limit : usual;
}

struct checkpoint_limits
checkpoint_limits(uint64_t max)
{
	return (struct checkpoint_limits){
	    .run = checkpoint_limit(CHECKPOINT_FRAMES, max, 128),
	    .cut = checkpoint_limit(CHECKPOINT_FRAMES_CUT, max, 32),
	    .left = checkpoint_limit(CHECKPOINT_FRAMES_LEFT, max, 256),
	    .alarm = checkpoint_limit(CHECKPOINT_FRAMES_ALARM, max, 8),
	    .max = max,
	};
}

/* Mutex held, but not while SQLite works. */
static void
checkpoint_run(struct checkpoint *checkpoint)
{
	int rc = SQLITE_OK;

	/* The second time for what was committed during the first: little. A failure (disk full, file gone) is the
	 * writer's to notice: it meets the same file. */
	for (int i = 0; i < 2 && rc == SQLITE_OK; i++) {
		uint64_t frames = checkpoint->state.frames;

		pthread_mutex_unlock(&checkpoint->mutex);
		rc = sqlite3_wal_checkpoint_v2(checkpoint->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
		pthread_mutex_lock(&checkpoint->mutex);
		if (rc == SQLITE_OK)
			checkpoint->done_frames = frames;
	}
	checkpoint->state.runs += rc == SQLITE_OK;
	checkpoint->check_due |= checkpoint->check_failed;
	checkpoint->cut_due = rc == SQLITE_OK && checkpoint->state.frames > checkpoint->limits.cut;
}

/* Likewise. */
static void
checkpoint_check(struct checkpoint *checkpoint)
{
	struct error err;
	int rc;

	pthread_mutex_unlock(&checkpoint->mutex);
	rc = integrity_check(checkpoint->db, sqlite3_db_filename(checkpoint->db, "main"), &err);
	pthread_mutex_lock(&checkpoint->mutex);
	checkpoint->check_due = false;
	checkpoint->check_failed = rc < 0 && err.code != ERROR_CORRUPT;
	/* An interrupted check may end early with nothing found. */
	if (checkpoint->stopping)
		return;
	checkpoint->state.checked = rc == 0;
	if (rc < 0 && err.code == ERROR_CORRUPT)
		snprintf(checkpoint->state.damage, sizeof(checkpoint->state.damage), "%.255s", err.text);
}

/* The thread: waits for work, checkpoints, until it is told to end. */
static void *
checkpoint_main(void *context)
{
	struct checkpoint *checkpoint = context;

	pthread_mutex_lock(&checkpoint->mutex);
	while (!checkpoint->stopping) {
		if (checkpoint->wanted) {
			checkpoint->wanted = false;
			checkpoint_run(checkpoint);
		} else if (checkpoint->check_due) {
			checkpoint_check(checkpoint);
		} else {
			pthread_cond_wait(&checkpoint->cond, &checkpoint->mutex);
		}
	}
	pthread_mutex_unlock(&checkpoint->mutex);
	return NULL;
}

/* Opens the thread's own connection to the database. */
static int
checkpoint_open(struct checkpoint *checkpoint, const char *path, struct error *err)
{
	int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_NOFOLLOW;
	int one = 1;

	/* Reading something makes the connection notice that the file is in WAL mode. */
	if (sqlite3_open_v2(path, &checkpoint->db, flags, NULL) != SQLITE_OK ||
	    sqlite3_file_control(checkpoint->db, "main", SQLITE_FCNTL_PERSIST_WAL, &one) != SQLITE_OK ||
	    sqlite3_exec(checkpoint->db, "PRAGMA synchronous = FULL; SELECT count(*) FROM meta", NULL, NULL, NULL) !=
		SQLITE_OK)
		return schema_error(err, checkpoint->db, "cannot open the audit database for checkpoints");
	return 0;
}

/* The thread takes no signals: they are the loop's.
 * syscalls: clone clone3 mmap(PROT_NONE) mprotect(PROT_READ|PROT_WRITE) */
static int
checkpoint_spawn(struct checkpoint *checkpoint, struct error *err)
{
	sigset_t all, before;
	int rc;

	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	rc = pthread_create(&checkpoint->thread, NULL, checkpoint_main, checkpoint);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc == 0 ? 0 : error_sys(err, rc, "cannot start the checkpoint thread");
}

struct checkpoint *
checkpoint_start(const char *path, const struct checkpoint_limits *limits, bool check, struct error *err)
{
	struct checkpoint *checkpoint = calloc(1, sizeof(*checkpoint));

	if (checkpoint == NULL) {
		error_sys(err, ENOMEM, "cannot start checkpoints");
		return NULL;
	}
	checkpoint->limits = *limits;
	checkpoint->next_frames = limits->run;
	checkpoint->check_due = check;
	pthread_mutex_init(&checkpoint->mutex, NULL);
	pthread_cond_init(&checkpoint->cond, NULL);
	if (checkpoint_open(checkpoint, path, err) < 0 || checkpoint_spawn(checkpoint, err) < 0) {
		sqlite3_close(checkpoint->db);
		free(checkpoint);
		return NULL;
	}
	return checkpoint;
}

/* Ends the thread and waits for it. */
static void
checkpoint_join(struct checkpoint *checkpoint)
{
	struct timespec until;

	do {
		sqlite3_interrupt(checkpoint->db);
		clock_gettime(CLOCK_REALTIME, &until);
		until.tv_nsec += CHECKPOINT_STOP_MS * 1000000L;
		until.tv_sec += until.tv_nsec / 1000000000;
		until.tv_nsec %= 1000000000;
	} while (pthread_timedjoin_np(checkpoint->thread, NULL, &until) == ETIMEDOUT);
}

void
checkpoint_stop(struct checkpoint *checkpoint)
{
	if (checkpoint == NULL)
		return;
	pthread_mutex_lock(&checkpoint->mutex);
	checkpoint->stopping = true;
	pthread_cond_signal(&checkpoint->cond);
	pthread_mutex_unlock(&checkpoint->mutex);
	checkpoint_join(checkpoint);
	sqlite3_close(checkpoint->db);
	pthread_cond_destroy(&checkpoint->cond);
	pthread_mutex_destroy(&checkpoint->mutex);
	free(checkpoint);
}

/* The log starts from its beginning. */
static void
checkpoint_begin_anew(struct checkpoint *checkpoint)
{
	checkpoint->next_frames = checkpoint->limits.run;
	checkpoint->done_frames = 0;
	checkpoint->cut_due = false;
	checkpoint->state.frames = 0;
	checkpoint->state.blocked = false;
}

void
checkpoint_note(struct checkpoint *checkpoint, uint64_t frames)
{
	pthread_mutex_lock(&checkpoint->mutex);
	if (frames < checkpoint->state.frames)
		checkpoint_begin_anew(checkpoint);
	checkpoint->state.frames = frames;
	/* While a reader keeps the log growing, once for each such length is enough. */
	if (frames >= checkpoint->next_frames) {
		checkpoint->next_frames = frames + checkpoint->limits.run;
		checkpoint->wanted = true;
		pthread_cond_signal(&checkpoint->cond);
	}
	pthread_mutex_unlock(&checkpoint->mutex);
}

void
checkpoint_state(struct checkpoint *checkpoint, struct checkpoint_state *ret_state)
{
	pthread_mutex_lock(&checkpoint->mutex);
	*ret_state = checkpoint->state;
	pthread_mutex_unlock(&checkpoint->mutex);
}

bool
checkpoint_cut_due(struct checkpoint *checkpoint)
{
	bool due;

	pthread_mutex_lock(&checkpoint->mutex);
	/* Few pages are left, or the batches are so large that there never are few. */
	due = checkpoint->cut_due &&
	    (checkpoint->state.frames <= checkpoint->done_frames + checkpoint->limits.left ||
		checkpoint->state.frames > checkpoint->limits.alarm);
	/* Once for each checkpoint: a reader in the way is not asked at every commit. */
	if (due)
		checkpoint->cut_due = false;
	pthread_mutex_unlock(&checkpoint->mutex);
	return due;
}

void
checkpoint_cut_done(struct checkpoint *checkpoint, enum checkpoint_cut cut)
{
	pthread_mutex_lock(&checkpoint->mutex);
	if (cut == CHECKPOINT_CUT_DONE)
		checkpoint_begin_anew(checkpoint);
	checkpoint->state.blocked =
	    cut == CHECKPOINT_CUT_BLOCKED && checkpoint->state.frames > checkpoint->limits.alarm;
	pthread_mutex_unlock(&checkpoint->mutex);
}
