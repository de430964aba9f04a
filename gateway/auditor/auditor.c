/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The auditor role: takes records from every other role, writes them in batches, says what is durable.
 *
 * Theory of operation. Each sender has a channel (auditor_channel.c) and numbers its records without holes; it keeps
 * them until MSG_DURABLE says that they are committed and synced. Records join the open batch (auditor_batch.c) as they
 * are read.
 *
 *   writable --a write fails--> not writable --probe (or new file) and event committed--> writable
 *
 * When anything fails, the batch is rolled back and forgotten: the senders have it. They hear that the log is not
 * writable, and refuse new work until it is (CASES F-22). A write is tried every AUDITOR_RETRY_MS, in a new file where
 * the old one cannot be trusted. When it works, an event says since when the log was out, the senders hear of it, and
 * each sends again everything after its last durable record. What is still in a channel from before is ignored until
 * the first of those comes.
 *
 * Trust: the keeper's channel is obeyed; records are checked against the role of their sender. A message that no honest
 * sender makes costs it the channel, and the keeper restarts it. Without its keeper the auditor ends.
 *
 * Order of set-up: network namespace, identity, database, system calls, checkpoint thread, ready. */
#include "gateway/auditor/auditor.h"

#include "audit/show/render.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/role.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Between looks at the files' names and the log's length. */
#define AUDITOR_TICK_MS 1000
/* Sandboxes carried over to a new file; as many as control takes. */
#define AUDITOR_SANDBOXES_MAX 4096
/* At the end, how long records may still come. */
#define AUDITOR_STOP_MS 2000

/* All connections of earlier daemons were cut when they ended: each epoch is later than any before it, and the keeper's
 * is the first of this daemon. */
static int
auditor_close_earlier(struct auditor *auditor, struct error *err)
{
	return auditor->keeper_epoch == 0 ? 0 : store_close_earlier(auditor->store, auditor->keeper_epoch, err);
}

/* Opens a sender's channel; the keeper's says which connections are of earlier daemons. */
static void
auditor_add_sender(struct auditor *auditor, const struct msg_channel *channel, int fd)
{
	struct error err;
	int rc = auditor_channel_add(auditor, channel, fd);

	if (rc < 0) {
		log_warnx("no room for another sender: %s", strerror(-rc));
		return;
	}
	if (channel->role != MSG_ROLE_KEEPER)
		return;
	auditor->keeper_epoch = channel->epoch;
	if (auditor->writable && auditor_close_earlier(auditor, &err) < 0)
		auditor_batch_fail(auditor, &err);
	else
		auditor_batch_schedule(auditor, false);
}

/* Adds an event of the auditor's own; takes detail. */
static int
auditor_add_event(struct auditor *auditor, enum event_kind kind, json_t *detail, struct error *err)
{
	struct record record;

	auditor_batch_own(auditor, &record, kind, detail);
	return store_add(auditor->store, &record, err);
}

/* Adds to the batch what the log must say before anything else: who is attached, and what happened to it. */
static int
auditor_add_history(struct auditor *auditor, struct error *err)
{
	struct record record;
	char since[40];

	for (size_t i = 0; i < auditor->carried_count; i++) {
		record = (struct record){.kind = RECORD_SANDBOX, .seq = 1, .sandbox = auditor->carried[i]};
		if (store_add(auditor->store, &record, err) < 0)
			return -1;
	}
	if (auditor->replaced_pending &&
	    auditor_add_event(auditor, EVENT_AUDIT_REPLACED,
		json_pack("{s:s, s:s}", "why", auditor->opening.why, "moved_to", auditor->opening.moved_to), err) < 0)
		return -1;
	if (auditor->tampered[0] != '\0' &&
	    auditor_add_event(auditor, EVENT_TAMPERED, json_pack("{s:s}", "log", auditor->tampered), err) < 0)
		return -1;
	if (auditor->out_since_us != 0 &&
	    auditor_add_event(auditor, EVENT_AUDIT_RESUMED,
		json_pack("{s:i, s:s, s:s}", "lost", 0, "since", render_time_utc(auditor->out_since_us, since), "why",
		    auditor->out_why),
		err) < 0)
		return -1;
	return auditor_close_earlier(auditor, err);
}

/* Keeps in memory who is attached, as the lost file knew it. */
static void
auditor_carry(struct auditor *auditor)
{
	if (auditor->carried != NULL)
		return;
	auditor->carried = calloc(AUDITOR_SANDBOXES_MAX, sizeof(*auditor->carried));
	if (auditor->carried != NULL)
		auditor->carried_count = store_live_sandboxes(auditor->store, auditor->carried, AUDITOR_SANDBOXES_MAX);
}

/* Notes that the log is another file: once, though it may take several openings until one takes the event. */
static void
auditor_note_opening(struct auditor *auditor, struct store_opening *opening)
{
	if (opening->created)
		log_info("made a new database, %s", auditor->path);
	/* Not even the lock file was there, which would have told the store so. */
	if (opening->created && auditor->had_one && !opening->replaced && !auditor->replaced_pending) {
		opening->replaced = true;
		snprintf(opening->why, sizeof(opening->why), "the database is gone, and its directory");
	}
	auditor->had_one |= auditor->store != NULL;
	if (!opening->replaced || (auditor->replaced_pending && opening->moved_to[0] == '\0'))
		return;
	log_warnx("DATABASE REPLACED: %s%s%s", opening->why, opening->moved_to[0] == '\0' ? "" : "; it is now ",
	    opening->moved_to);
	auditor->opening = *opening;
	auditor->replaced_pending = true;
}

/* Keeps the first change by another program until it is on record. */
static void
auditor_note_tampered(struct auditor *auditor, const char *how)
{
	if (auditor->tampered[0] == '\0')
		snprintf(auditor->tampered, sizeof(auditor->tampered), "%.255s", how);
}

/* Opens the log, and notes what the store found wrong with it. */
static int
auditor_open(struct auditor *auditor, struct error *err)
{
	struct store_opening opening;

	auditor->store = store_open(auditor->path, &opening, err);
	auditor_note_opening(auditor, &opening);
	if (opening.changed[0] != '\0') {
		log_warnx("another program changed the log: %s", opening.changed);
		auditor_note_tampered(auditor, opening.changed);
	}
	if (auditor->store == NULL)
		return -1;
	store_set_signer(auditor->store, &auditor->signer);
	if (auditor->options->wal_limit != 0)
		store_limit_log(auditor->store, auditor->options->wal_limit);
	if (auditor->confined && store_start_checkpoints(auditor->store, err) < 0) {
		store_close(auditor->store);
		auditor->store = NULL;
		return -1;
	}
	return 0;
}

/* Make the log writable: open it when it is not open or cannot be trusted, write something, add what must be said. */
static int
auditor_resume(struct auditor *auditor, struct error *err)
{
	if (auditor->store != NULL && store_must_reopen(auditor->store)) {
		auditor_carry(auditor);
		store_close(auditor->store);
		auditor->store = NULL;
	}
	if (auditor->store == NULL && auditor_open(auditor, err) < 0)
		return -1;
	if (store_probe(auditor->store, err) < 0 || auditor_add_history(auditor, err) < 0 ||
	    store_commit(auditor->store, err) < 0)
		return -1;
	if (auditor->out_since_us != 0)
		log_info("the log can be written again");
	free(auditor->carried);
	auditor->carried = NULL;
	auditor->carried_count = 0;
	auditor->replaced_pending = false;
	auditor->tampered[0] = '\0';
	auditor->out_since_us = 0;
	auditor->writable = true;
	auditor_sender_resume(auditor);
	return 0;
}

/* Tries to write again; says so when the reason has changed. */
static void
auditor_retry_handler(struct loop_timer *timer)
{
	struct auditor *auditor = loop_owner(timer, struct auditor, retry_timer);
	struct error err;

	if (auditor_resume(auditor, &err) == 0)
		return;
	loop_timer_set(auditor->loop, timer, AUDITOR_RETRY_MS);
	if (strncmp(err.text, auditor->still_why, sizeof(auditor->still_why) - 1) == 0)
		return;
	log_warnx("the log still cannot be written: %s", err.text);
	snprintf(auditor->still_why, sizeof(auditor->still_why), "%.255s", err.text);
}

/* Looks at the log: its length, its seals, whether it is still the file that it was. */
static void
auditor_tick_handler(struct loop_timer *timer)
{
	struct auditor *auditor = loop_owner(timer, struct auditor, tick_timer);
	struct error err;

	loop_timer_set(auditor->loop, timer, AUDITOR_TICK_MS);
	if (auditor->store != NULL && !store_must_reopen(auditor->store)) {
		auditor_alarm_look(auditor);
		auditor_state_tell(auditor);
	}
	if (!auditor->writable)
		return;
	if (store_seal(auditor->store, false, &err) < 0) {
		auditor_batch_fail(auditor, &err);
		return;
	}
	if (store_has_batch(auditor->store))
		auditor_batch_schedule(auditor, false);
	if (store_check(auditor->store, &err) < 0 || store_look(auditor->store, &err) < 0) {
		if (store_changed_by_others(auditor->store))
			auditor_note_tampered(auditor, err.text);
		auditor_batch_fail(auditor, &err);
	}
}

/* Waits until the channels are empty or the time is over; then writes the last word. */
static void
auditor_stop_handler(struct loop_timer *timer)
{
	struct auditor *auditor = loop_owner(timer, struct auditor, stop_timer);
	struct error err;

	if (auditor_sender_any_waits(auditor) && clock_mono_ms() < auditor->stop_by_ms) {
		loop_timer_set(auditor->loop, timer, 1);
		return;
	}
	if (auditor->writable && auditor->last_word.kind != 0)
		auditor_batch_add(auditor, &auditor->last_word);
	if (auditor->writable && store_seal(auditor->store, true, &err) < 0)
		auditor_batch_fail(auditor, &err);
	auditor_batch_commit(auditor);
	loop_stop(auditor->loop);
}

/* Begins the end. */
static void
auditor_stop(struct auditor *auditor)
{
	if (auditor->stopping)
		return;
	auditor->stopping = true;
	auditor->stop_by_ms = clock_mono_ms() + AUDITOR_STOP_MS;
	loop_timer_set(auditor->loop, &auditor->stop_timer, 1);
}

/* The keeper says that a sender connects, or that the daemon stops. */
static bool
auditor_keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct auditor *auditor = loop_owner(ipc, struct auditor, keeper);

	if (message->header.type == MSG_SHUTDOWN) {
		auditor_stop(auditor);
	} else {
		auditor_add_sender(auditor, message->body, message->fds[0]);
		message->fds[0] = -1;
	}
	return true;
}

/* Ends when the keeper is gone or sends nonsense. */
static void
auditor_keeper_broken_handler(struct ipc *ipc, const char *why)
{
	struct auditor *auditor = loop_owner(ipc, struct auditor, keeper);

	if (!auditor->stopping)
		log_warnx("the keeper's channel: %s", why);
	auditor_stop(auditor);
}

/* What needs no log: path, loop, timers. */
static void
auditor_setup(struct auditor *auditor, const struct options *options)
{
	auditor->options = options;
	ipc_init(
	    &auditor->keeper, MSG_ROLE_AUDITOR, MSG_ROLE_KEEPER, auditor_keeper_handler, auditor_keeper_broken_handler);
	if (snprintf(auditor->path, sizeof(auditor->path), "%s/audit/audit.db", options->state_dir) >=
	    (int)sizeof(auditor->path))
		log_fatalx("the path of the state directory is too long");
	auditor->loop = loop_new();
	if (auditor->loop == NULL)
		log_fatal("epoll");
	auditor_batch_init(auditor);
	auditor->retry_timer.handler = auditor_retry_handler;
	auditor->tick_timer.handler = auditor_tick_handler;
	auditor->stop_timer.handler = auditor_stop_handler;
	loop_timer_set(auditor->loop, &auditor->tick_timer, AUDITOR_TICK_MS);
}

/* The group that may read the log may have changed since the files were made. Their owner may give them to a group of
 * its own; before system calls are given up. */
static void
auditor_regroup(struct auditor *auditor)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char path[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", auditor->path, suffixes[i]);
		if (lchown(path, (uid_t)-1, getegid()) < 0 && errno != ENOENT)
			log_warnx("%s: cannot be given to the group: %s", path, strerror(errno));
	}
}

/* Without a key nothing can be sealed; what cannot be sealed is not written. */
static void
auditor_load_key(struct auditor *auditor)
{
	char path[PATH_MAX + 16];
	struct error err;
	bool made;

	snprintf(
	    path, sizeof(path), "%.*s/seal.key", (int)(strlen(auditor->path) - strlen("/audit.db")), auditor->path);
	if (seal_signer_load(&auditor->signer, path, &made, &err) < 0)
		log_fatalx("%s", err.text);
	if (made)
		log_info("made a key for the seals, %s; keep a copy of %s.pub elsewhere", path, path);
}

int
auditor_run(const struct role *role, const struct options *options)
{
	static struct auditor one; /* a process has one; large */
	const struct msg_ready ready = {0};
	struct auditor *auditor = &one;
	struct error err;
	int rc;

	log_init("auditor");
	role_confine(role, options);
	auditor_setup(auditor, options);
	auditor_regroup(auditor);
	auditor_load_key(auditor);
	rc = auditor_open(auditor, &err);
	/* A full disk passes, and is waited for. */
	if (rc < 0 &&
	    (err.code == ERROR_USAGE || err.code == ERROR_EXISTS || err.code == ERROR_PERMISSION ||
		err.code == ERROR_NOT_FOUND))
		log_fatalx("%s", err.text);
	confine_syscalls(role->confinement.syscalls);
	auditor->confined = true;
	if (rc == 0 && store_start_checkpoints(auditor->store, &err) < 0)
		log_fatalx("%s", err.text);
	if (rc < 0 || auditor_resume(auditor, &err) < 0)
		auditor_batch_fail(auditor, &err);
	if (ipc_open(&auditor->keeper, auditor->loop, options->role_fd) < 0)
		log_fatal("channel to the keeper");
	auditor_prune_start(auditor);
	ipc_send(&auditor->keeper, MSG_READY, 0, &ready, sizeof(ready), NULL, 0);
	rc = loop_run(auditor->loop);
	if (!auditor->writable)
		log_warnx("ending while the log cannot be written: what its senders still held is lost");
	store_close(auditor->store);
	seal_signer_free(&auditor->signer);
	return rc < 0 || !auditor->writable ? 1 : 0;
}
