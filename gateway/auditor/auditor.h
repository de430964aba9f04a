/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The auditor role's state, and what its files ask of each other. From the bottom up: auditor_sender.c knows the
 * channels that records come by, auditor_batch.c what is written next, auditor_channel.c takes records,
 * auditor_alarm.c, auditor_prune.c and auditor_state.c look at the log from time to time, auditor.c opens it and runs
 * all of them. */
#ifndef POSTERN_GATEWAY_AUDITOR_H
#define POSTERN_GATEWAY_AUDITOR_H

#include "audit/record.h"
#include "audit/store/store.h"
#include "base/error.h"
#include "base/loop.h"
#include "gateway/auditor/retain_clock.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

/* Keeper, control, 16 gateways, and those that are being replaced. */
#define AUDITOR_SENDERS_MAX 64
/* Between attempts to write again. */
#define AUDITOR_RETRY_MS 500

struct options;
struct role;

/* The far end of a channel for records. */
struct auditor_sender {
	struct auditor_sender *next;
	struct auditor *auditor;
	struct ipc ipc;
	struct loop_deferred gone; /* frees it after the round */
	enum msg_role role;
	uint64_t epoch;
	bool known;           /* a record came; a sender begins with the first that is not durable */
	uint64_t seq;         /* last record in the batch or the file */
	uint64_t durable_seq; /* last record committed */
	bool resync;          /* ignore all but durable_seq + 1: older ones are still on their way */
	bool has_gap;         /* the keeper said that the sender is gone; more may be in its channel */
	struct record gap;
};

struct auditor {
	const struct options *options;
	char path[PATH_MAX]; /* of the database */
	struct loop *loop;
	struct ipc keeper;
	struct store *store; /* NULL while it cannot be opened */
	struct seal_signer signer;
	bool writable;
	bool confined;
	bool stopping;
	struct auditor_sender *senders;
	size_t sender_count;
	uint64_t keeper_epoch;
	/* The open batch. */
	bool commit_wanted; /* a sender waits for it */
	size_t batch;       /* records in it */
	uint64_t counter;   /* of own record ids */
	struct loop_deferred commit;
	struct loop_timer lazy_timer;
	/* The log cannot be written, or something must be said in it when it can. */
	int64_t out_since_us; /* when writing failed; 0: it did not */
	char out_why[256];
	char still_why[256];   /* last said about it */
	bool had_one;          /* it was open before */
	bool replaced_pending; /* the event about it is not in the file yet */
	char tampered[256];    /* another program changed the log, and how; likewise */
	struct store_opening opening;
	struct record_sandbox *carried; /* sandboxes of the file that was lost */
	size_t carried_count;
	struct loop_timer retry_timer, tick_timer;
	/* The end. */
	struct record last_word; /* written behind everything else, with the seal that closes the log; kind 0: none */
	int64_t stop_by_ms;
	struct loop_timer stop_timer;
	/* A write-ahead log that cannot shrink. */
	struct {
		uint64_t bytes;  /* of the log; 0: no alarm */
		uint64_t untold; /* bytes that an event has yet to tell of; 0: none */
		int64_t said_ms;
	} alarm;
	/* Retention. */
	struct {
		struct loop_timer timer;
		bool clock_known; /* the log has been asked what it says of the clock */
		struct retain_clock clock;
		struct record event; /* of the run under way; kind 0: none is */
		uint64_t rows;       /* dropped in it */
		int64_t began_ms;
	} prune;
	struct msg_log_state told; /* to the keeper, last */
};

/* auditor.c */

/* Be the auditor role: set up, confine, say MSG_READY, serve until told to stop. Returns the exit status. */
int auditor_run(const struct role *role, const struct options *options);

/* auditor_sender.c */

/* How things stand, to each sender. */
void auditor_sender_tell_all(const struct auditor *auditor);
void auditor_sender_tell(const struct auditor *auditor, struct auditor_sender *sender);
/* The batch is committed: tell each sender how far. */
void auditor_sender_durable(const struct auditor *auditor);
/* The batch is lost and the log cannot be written: tell all. */
void auditor_sender_lost(const struct auditor *auditor);
/* The log can be written again: tell all, and take from each what comes after its last durable record. */
void auditor_sender_resume(const struct auditor *auditor);
/* Is there more to read, that the batch could take along? */
bool auditor_sender_any_waits(const struct auditor *auditor);

/* auditor_batch.c */

void auditor_batch_init(struct auditor *auditor);
/* Add to the batch. False: the record alone was refused. */
bool auditor_batch_add(struct auditor *auditor, const struct record *record);
/* Add what must not be missing: without it nothing of the batch is kept, and the log counts as not writable. */
void auditor_batch_add_own(struct auditor *auditor, const struct record *record);
/* Commit within a moment; awaited: at the end of the round. */
void auditor_batch_schedule(struct auditor *auditor, bool awaited);
/* Make the batch durable now. */
void auditor_batch_commit(struct auditor *auditor);
/* Writing failed, and the batch is gone. */
void auditor_batch_fail(struct auditor *auditor, const struct error *why);
/* An event of the auditor's own, with an id of its own; takes detail (NULL: no memory). */
void auditor_batch_own(struct auditor *auditor, struct record *ret_record, enum event_kind kind, json_t *detail);
/* Another detail for it. */
void auditor_batch_own_detail(struct record *record, json_t *detail);

/* auditor_channel.c */

/* A sender's channel; takes fd. 0 or -errno. */
int auditor_channel_add(struct auditor *auditor, const struct msg_channel *channel, int fd);

/* auditor_alarm.c */

/* Each second while the log is open: does a reader keep it from shrinking? */
void auditor_alarm_look(struct auditor *auditor);

/* auditor_state.c */

/* Each second while the log is open: tell the keeper how it stands, if that has changed. */
void auditor_state_tell(struct auditor *auditor);

/* auditor_prune.c */

void auditor_prune_start(struct auditor *auditor);

#endif
