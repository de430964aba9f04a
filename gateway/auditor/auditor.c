/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The auditor role: takes records from every other role, writes them in batches, says what is durable.
 *
 * Theory of operation. Each sender has a channel and numbers its records without holes; it keeps them until MSG_DURABLE
 * says that they are committed and synced. Records join the open batch as they are read. Somebody waits for a
 * connection that is about to be opened, for events and for sandboxes: these are committed at the end of the loop's
 * round, with all that is in the channels by then (group commit). All else rides along or waits AUDITOR_LAZY_MS.
 *
 * When anything fails, the batch is rolled back and forgotten: the senders have it. They are told that the log is not
 * writable, and refuse new work until it is (CASES F-22). A write is tried every AUDITOR_RETRY_MS; when it works, an
 * event says since when the log was out, the senders are told, and each sends again everything after its last durable
 * record. What is still in a channel from before is ignored until the first of those comes.
 *
 *   writable --failure--> not writable --probe (or new file) and event committed--> writable
 *
 * Order of set-up: network namespace, identity, database, system calls, checkpoint thread, ready. */
#include "gateway/auditor/auditor.h"

#include "audit/show/render.h"
#include "audit/store/store.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/role.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Records that nobody waits for are committed within this. */
#define AUDITOR_LAZY_MS 20
/* Between attempts to write again. */
#define AUDITOR_RETRY_MS 500
/* Between looks at the files' names and the log's length. */
#define AUDITOR_TICK_MS 1000
/* A batch is not made longer than this for what else is in the channels: an opener waits for all of it. */
#define AUDITOR_BATCH_MAX 512
/* Sandboxes carried over to a new file; as many as control takes. */
#define AUDITOR_SANDBOXES_MAX 4096
/* At the end, how long records may still come. */
#define AUDITOR_STOP_MS 2000

static struct {
	const struct options *options;
	char path[PATH_MAX];
	struct loop *loop;
	struct ipc keeper;
	struct store *store; /* NULL while it cannot be opened */
	struct seal_signer signer;
	bool writable;
	bool confined;
	bool stopping;
	bool commit_wanted; /* somebody waits */
	size_t batch;       /* records in it */
	uint64_t keeper_epoch;
	uint64_t counter;     /* of own record ids */
	int64_t out_since_us; /* when writing failed; 0: it did not */
	char out_why[256];
	char still_why[256];   /* last said about it */
	bool had_one;          /* it was open before */
	bool replaced_pending; /* the event about it is not in the file yet */
	char tampered[256];    /* another program changed the log, and how; likewise */
	struct store_opening opening;
	struct record_sandbox *carried; /* sandboxes of the file that was lost */
	size_t carried_count;
	struct record last_word; /* kind 0: none */
	int64_t stop_by_ms;
	struct loop_deferred commit;
	struct loop_timer lazy_timer, retry_timer, tick_timer, stop_timer;
} auditor;

bool
auditor_is_writable(void)
{
	return auditor.writable;
}

struct store *
auditor_store(void)
{
	return auditor.writable ? auditor.store : NULL;
}

/* Nobody may count on the log until auditor_resume has worked. */
void
auditor_fail(const struct error *why)
{
	log_warnx("the log cannot be written, new connections are refused: %s", why->text);
	if (auditor.out_since_us == 0) {
		auditor.out_since_us = clock_real_us();
		snprintf(auditor.out_why, sizeof(auditor.out_why), "%.255s", why->text);
		snprintf(auditor.still_why, sizeof(auditor.still_why), "%.255s", why->text);
	}
	auditor.writable = false;
	auditor.commit_wanted = false;
	auditor.batch = 0;
	loop_timer_stop(auditor.loop, &auditor.lazy_timer);
	loop_timer_set(auditor.loop, &auditor.retry_timer, AUDITOR_RETRY_MS);
	auditor_prune_lost();
	auditor_sender_all_lost();
}

void
auditor_commit(void)
{
	struct error err;

	loop_timer_stop(auditor.loop, &auditor.lazy_timer);
	auditor.commit_wanted = false;
	auditor.batch = 0;
	if (!auditor.writable)
		return;
	if (store_commit(auditor.store, &err) < 0)
		auditor_fail(&err);
	else
		auditor_sender_all_durable();
}

static void
auditor_commit_handler(struct loop_deferred *deferred)
{
	(void)deferred;
	/* What can be read now brings the next round, and that brings us here again. */
	if (auditor.batch < AUDITOR_BATCH_MAX && auditor_sender_any_waits())
		return;
	auditor_commit();
}

static void
auditor_lazy_handler(struct loop_timer *timer)
{
	(void)timer;
	auditor_commit();
}

/* Does its sender hold something back until this is durable? */
static bool
auditor_is_awaited(const struct record *record)
{
	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
		return record->flow.verdict == VERDICT_ALLOWED;
	case RECORD_EVENT:
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
	case RECORD_GAP:
		return true;
	case RECORD_FLOW_CLOSE:
	case RECORD_REFUSED:
	case RECORD_DNS:
	case RECORD_PROGRESS:
	case RECORD_ACCOUNT:
	case RECORD_KIND_MAX:
		break;
	}
	return false;
}

/* At the latest within AUDITOR_LAZY_MS, at once when somebody waits. */
void
auditor_schedule(bool awaited)
{
	auditor.commit_wanted |= awaited;
	if (!loop_timer_armed(&auditor.lazy_timer))
		loop_timer_set(auditor.loop, &auditor.lazy_timer, AUDITOR_LAZY_MS);
	if (auditor.commit_wanted || auditor.batch >= AUDITOR_BATCH_MAX)
		loop_defer(auditor.loop, &auditor.commit);
}

bool
auditor_add(const struct record *record)
{
	struct error err;

	if (store_add(auditor.store, record, &err) == 0) {
		auditor.batch++;
		auditor_schedule(auditor_is_awaited(record));
		return true;
	}
	if (err.code == ERROR_USAGE) {
		log_warnx("%s", err.text);
		return false;
	}
	auditor_fail(&err);
	return true;
}

void
auditor_add_own(const struct record *record)
{
	struct error why;

	if (auditor_add(record))
		return;
	error_set(&why, ERROR_CORRUPT, "%s takes no event \"%s\"", auditor.path, event_kind_text(record->event.kind));
	store_abandon(auditor.store);
	auditor_fail(&why);
}

void
auditor_hold_last_word(const struct record *record)
{
	auditor.last_word = *record;
}

/* All connections of earlier daemons were cut when they ended: each epoch is later than any before it, and the keeper's
 * is the first of this daemon. */
static int
auditor_close_earlier(struct error *err)
{
	return auditor.keeper_epoch == 0 ? 0 : store_close_earlier(auditor.store, auditor.keeper_epoch, err);
}

static void
auditor_add_sender(const struct msg_channel *channel, int fd)
{
	struct error err;
	int rc = auditor_sender_add(auditor.loop, channel, fd);

	if (rc < 0) {
		log_warnx("no room for another sender: %s", strerror(-rc));
		return;
	}
	if (channel->role != MSG_ROLE_KEEPER)
		return;
	auditor.keeper_epoch = channel->epoch;
	if (auditor.writable && auditor_close_earlier(&err) < 0)
		auditor_fail(&err);
	else
		auditor_schedule(false);
}

void
auditor_sender_gone(uint64_t epoch, const char *why)
{
	struct msg_sender bad = {.epoch = epoch};

	if (!auditor.stopping && strcmp(why, "peer closed") != 0)
		log_warnx("channel of epoch %llu closed: %s", (unsigned long long)epoch, why);
	/* A sender without a channel can record nothing, and so will do nothing: better that it starts anew. */
	if (strcmp(why, IPC_WHY_MALFORMED) == 0)
		ipc_send(&auditor.keeper, MSG_SENDER_BAD, 0, &bad, sizeof(bad), NULL, 0);
	if (auditor.commit_wanted)
		loop_defer(auditor.loop, &auditor.commit);
}

void
auditor_own_detail(struct record *record, json_t *detail)
{
	char *text = detail == NULL ? NULL : json_dumps(detail, JSON_COMPACT | JSON_ENSURE_ASCII);

	record->event.ts_us = clock_real_us();
	if (text != NULL && strlen(text) < sizeof(record->event.detail))
		memcpy(record->event.detail, text, strlen(text) + 1);
	free(text);
	json_decref(detail);
}

void
auditor_own_record(struct record *ret_record, enum event_kind kind, json_t *detail)
{
	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = RECORD_EVENT;
	ret_record->seq = ++auditor.counter;
	ret_record->event.id = RECORD_ID(auditor.options->epoch, auditor.counter);
	ret_record->event.kind = (uint8_t)kind;
	ret_record->event.uid = UINT32_MAX;
	auditor_own_detail(ret_record, detail);
}

/* What the new file must say before anything else goes in: who is attached, and what happened. In the batch. */
static int
auditor_add_history(struct error *err)
{
	struct record record;
	char since[40];

	for (size_t i = 0; i < auditor.carried_count; i++) {
		record = (struct record){.kind = RECORD_SANDBOX, .seq = 1, .sandbox = auditor.carried[i]};
		if (store_add(auditor.store, &record, err) < 0)
			return -1;
	}
	if (auditor.replaced_pending) {
		auditor_own_record(&record, EVENT_AUDIT_REPLACED,
		    json_pack("{s:s, s:s}", "why", auditor.opening.why, "moved_to", auditor.opening.moved_to));
		if (store_add(auditor.store, &record, err) < 0)
			return -1;
	}
	if (auditor.tampered[0] != '\0') {
		auditor_own_record(&record, EVENT_TAMPERED, json_pack("{s:s}", "log", auditor.tampered));
		if (store_add(auditor.store, &record, err) < 0)
			return -1;
	}
	if (auditor.out_since_us != 0) {
		auditor_own_record(&record, EVENT_AUDIT_RESUMED,
		    json_pack("{s:i, s:s, s:s}", "lost", 0, "since", render_time_utc(auditor.out_since_us, since),
			"why", auditor.out_why));
		if (store_add(auditor.store, &record, err) < 0)
			return -1;
	}
	return auditor_close_earlier(err);
}

/* Keep in memory who is attached, as the lost file knew it. */
static void
auditor_carry(void)
{
	if (auditor.carried != NULL)
		return;
	auditor.carried = calloc(AUDITOR_SANDBOXES_MAX, sizeof(*auditor.carried));
	if (auditor.carried != NULL)
		auditor.carried_count = store_live_sandboxes(auditor.store, auditor.carried, AUDITOR_SANDBOXES_MAX);
}

/* Once, though it may take several openings until there is a file that takes the event. */
static void
auditor_note_opening(struct store_opening *opening)
{
	if (opening->created)
		log_info("made a new database, %s", auditor.path);
	/* Not even the lock file was there, which would have told the store so. */
	if (opening->created && auditor.had_one && !opening->replaced && !auditor.replaced_pending) {
		opening->replaced = true;
		snprintf(opening->why, sizeof(opening->why), "the database is gone, and its directory");
	}
	auditor.had_one |= auditor.store != NULL;
	if (!opening->replaced || (auditor.replaced_pending && opening->moved_to[0] == '\0'))
		return;
	log_warnx("DATABASE REPLACED: %s%s%s", opening->why, opening->moved_to[0] == '\0' ? "" : "; it is now ",
	    opening->moved_to);
	auditor.opening = *opening;
	auditor.replaced_pending = true;
}

/* The first that is found, until it is on record. */
static void
auditor_note_tampered(const char *how)
{
	if (auditor.tampered[0] == '\0')
		snprintf(auditor.tampered, sizeof(auditor.tampered), "%.255s", how);
}

static int
auditor_open(struct error *err)
{
	struct store_opening opening;

	auditor.store = store_open(auditor.path, &opening, err);
	auditor_note_opening(&opening);
	if (opening.changed[0] != '\0') {
		log_warnx("another program changed the log: %s", opening.changed);
		auditor_note_tampered(opening.changed);
	}
	if (auditor.store == NULL)
		return -1;
	store_set_signer(auditor.store, &auditor.signer);
	if (auditor.options->wal_limit != 0)
		store_limit_log(auditor.store, auditor.options->wal_limit);
	if (auditor.confined && store_start_checkpoints(auditor.store, err) < 0) {
		store_close(auditor.store);
		auditor.store = NULL;
		return -1;
	}
	return 0;
}

/* Make the log writable: open it when it is not open or cannot be trusted, write something, add what must be said. */
static int
auditor_resume(struct error *err)
{
	if (auditor.store != NULL && store_must_reopen(auditor.store)) {
		auditor_carry();
		store_close(auditor.store);
		auditor.store = NULL;
	}
	if (auditor.store == NULL && auditor_open(err) < 0)
		return -1;
	if (store_probe(auditor.store, err) < 0 || auditor_add_history(err) < 0 || store_commit(auditor.store, err) < 0)
		return -1;
	if (auditor.out_since_us != 0)
		log_info("the log can be written again");
	free(auditor.carried);
	auditor.carried = NULL;
	auditor.carried_count = 0;
	auditor.replaced_pending = false;
	auditor.tampered[0] = '\0';
	auditor.out_since_us = 0;
	auditor.writable = true;
	auditor_sender_all_resume();
	return 0;
}

static void
auditor_retry_handler(struct loop_timer *timer)
{
	struct error err;

	if (auditor_resume(&err) == 0)
		return;
	loop_timer_set(auditor.loop, timer, AUDITOR_RETRY_MS);
	if (strncmp(err.text, auditor.still_why, sizeof(auditor.still_why) - 1) == 0)
		return;
	log_warnx("the log still cannot be written: %s", err.text);
	snprintf(auditor.still_why, sizeof(auditor.still_why), "%.255s", err.text);
}

static void
auditor_tick_handler(struct loop_timer *timer)
{
	struct error err;

	loop_timer_set(auditor.loop, timer, AUDITOR_TICK_MS);
	if (auditor.store != NULL && !store_must_reopen(auditor.store)) {
		auditor_alarm_look(auditor.store, auditor.path);
		auditor_state_tell(auditor.store, &auditor.keeper);
	}
	if (!auditor.writable)
		return;
	if (store_seal(auditor.store, false, &err) < 0) {
		auditor_fail(&err);
		return;
	}
	if (store_has_batch(auditor.store))
		auditor_schedule(false);
	if (store_check(auditor.store, &err) < 0 || store_look(auditor.store, &err) < 0) {
		if (store_changed_by_others(auditor.store))
			auditor_note_tampered(err.text);
		auditor_fail(&err);
	}
}

/* Until the channels are empty (their senders are gone or silent), or the time is over. */
static void
auditor_stop_handler(struct loop_timer *timer)
{
	struct error err;

	if (auditor_sender_any_waits() && clock_mono_ms() < auditor.stop_by_ms) {
		loop_timer_set(auditor.loop, timer, 1);
		return;
	}
	if (auditor.writable && auditor.last_word.kind != 0)
		auditor_add(&auditor.last_word);
	if (auditor.writable && store_seal(auditor.store, true, &err) < 0)
		auditor_fail(&err);
	auditor_commit();
	loop_stop(auditor.loop);
}

static void
auditor_stop(void)
{
	if (auditor.stopping)
		return;
	auditor.stopping = true;
	auditor.stop_by_ms = clock_mono_ms() + AUDITOR_STOP_MS;
	loop_timer_set(auditor.loop, &auditor.stop_timer, 1);
}

static bool
auditor_keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	(void)ipc;
	if (message->header.type == MSG_SHUTDOWN) {
		auditor_stop();
	} else {
		auditor_add_sender(message->body, message->fds[0]);
		message->fds[0] = -1;
	}
	return true;
}

/* The keeper is gone or mad: what it started ends. */
static void
auditor_keeper_broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	if (!auditor.stopping)
		log_warnx("the keeper's channel: %s", why);
	auditor_stop();
}

/* The first opening. A disk that is full passes; what does not pass ends the start. */
static int
auditor_first_open(struct error *err)
{
	if (auditor_open(err) == 0)
		return 0;
	if (err->code == ERROR_USAGE || err->code == ERROR_EXISTS || err->code == ERROR_PERMISSION ||
	    err->code == ERROR_NOT_FOUND)
		log_fatalx("%s", err->text);
	return -1;
}

static void
auditor_timers(void)
{
	auditor.commit.handler = auditor_commit_handler;
	auditor.lazy_timer.handler = auditor_lazy_handler;
	auditor.retry_timer.handler = auditor_retry_handler;
	auditor.tick_timer.handler = auditor_tick_handler;
	auditor.stop_timer.handler = auditor_stop_handler;
	loop_timer_set(auditor.loop, &auditor.tick_timer, AUDITOR_TICK_MS);
}

static void
auditor_setup(const struct options *options)
{
	auditor.options = options;
	auditor.keeper.source.fd = -1;
	auditor.keeper.self = MSG_ROLE_AUDITOR;
	auditor.keeper.peer = MSG_ROLE_KEEPER;
	auditor.keeper.message_handler = auditor_keeper_handler;
	auditor.keeper.broken_handler = auditor_keeper_broken_handler;
	if (snprintf(auditor.path, sizeof(auditor.path), "%s/audit/audit.db", options->state_dir) >=
	    (int)sizeof(auditor.path))
		log_fatalx("the path of the state directory is too long");
	auditor.loop = loop_new();
	if (auditor.loop == NULL)
		log_fatal("epoll");
	auditor_timers();
}

/* The group that may read the log may have changed since the files were made. Their owner may give them to a group of
 * its own; before system calls are given up. */
static void
auditor_regroup(void)
{
	static const char *const suffixes[] = {"", "-wal", "-shm"};
	char path[PATH_MAX + 8];

	for (size_t i = 0; i < sizeof(suffixes) / sizeof(suffixes[0]); i++) {
		snprintf(path, sizeof(path), "%s%s", auditor.path, suffixes[i]);
		if (lchown(path, (uid_t)-1, getegid()) < 0 && errno != ENOENT)
			log_warnx("%s: cannot be given to the group: %s", path, strerror(errno));
	}
}

/* Without a key nothing can be sealed; what cannot be sealed is not written. */
static void
auditor_load_key(void)
{
	char path[PATH_MAX + 16];
	struct error err;
	bool made;

	snprintf(path, sizeof(path), "%.*s/seal.key", (int)(strlen(auditor.path) - strlen("/audit.db")), auditor.path);
	if (seal_signer_load(&auditor.signer, path, &made, &err) < 0)
		log_fatalx("%s", err.text);
	if (made)
		log_info("made a key for the seals, %s; keep a copy of %s.pub elsewhere", path, path);
}

int
auditor_run(const struct role *role, const struct options *options)
{
	const struct msg_ready ready = {0};
	struct error err;
	int rc;

	log_init("auditor");
	role_confine(role, options);
	auditor_setup(options);
	auditor_regroup();
	auditor_load_key();
	rc = auditor_first_open(&err);
	confine_syscalls(role->confinement.syscalls);
	auditor.confined = true;
	if (rc == 0 && store_start_checkpoints(auditor.store, &err) < 0)
		log_fatalx("%s", err.text);
	if (rc < 0 || auditor_resume(&err) < 0)
		auditor_fail(&err);
	if (ipc_open(&auditor.keeper, auditor.loop, options->role_fd) < 0)
		log_fatal("channel to the keeper");
	auditor_prune_start(auditor.loop, options);
	ipc_send(&auditor.keeper, MSG_READY, 0, &ready, sizeof(ready), NULL, 0);
	rc = loop_run(auditor.loop);
	if (!auditor.writable)
		log_warnx("ending while the log cannot be written: what its senders still held is lost");
	store_close(auditor.store);
	seal_signer_free(&auditor.signer);
	return rc < 0 || !auditor.writable ? 1 : 0;
}
