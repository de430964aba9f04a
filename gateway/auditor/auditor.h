/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the auditor's files ask of each other: auditor.c has the log and its batches, auditor_sender.c the channels that
 * records come by, auditor_prune.c the retention, auditor_state.c what the keeper is told. */
#ifndef POSTERN_GATEWAY_AUDITOR_H
#define POSTERN_GATEWAY_AUDITOR_H

#include "audit/record.h"
#include "base/error.h"
#include "base/loop.h"
#include "gateway/shared/ipc.h"
#include "gateway/shared/msg.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct options;
struct role;
struct store;

/* Keeper, control, 16 gateways, and those that are being replaced. */
#define AUDITOR_SENDERS_MAX 64

/* auditor.c */
/* Be the auditor role: set up, confine, say MSG_READY, serve until told to stop. Returns the exit status. */
int auditor_run(const struct role *role, const struct options *options);
bool auditor_is_writable(void);
/* Add to the batch. False: the record alone was refused. */
bool auditor_add(const struct record *record);
/* The daemon stops in order: to be written behind everything else, with the seal that closes the log. */
void auditor_hold_last_word(const struct record *record);
/* Add what must not be missing: without it nothing of the batch is kept, and the log counts as not writable. */
void auditor_add_own(const struct record *record);
/* Commit within a moment; awaited: at the end of the round. */
void auditor_schedule(bool awaited);
/* A channel is closed, for this reason: what was read from it may be waited for. */
void auditor_sender_gone(uint64_t epoch, const char *why);

/* Make the batch durable now. */
void auditor_commit(void);
/* The log, NULL while it cannot be written. */
struct store *auditor_store(void);
/* Writing failed, and the batch is gone. */
void auditor_fail(const struct error *why);
/* An event of the auditor's own, with an id of its own; takes detail (NULL: no memory). */
void auditor_own_record(struct record *ret_record, enum event_kind kind, json_t *detail);
/* Another detail for it. */
void auditor_own_detail(struct record *record, json_t *detail);

/* auditor_alarm.c */

/* Each second while the log is open: does a reader keep it from shrinking? */
void auditor_alarm_look(struct store *store, const char *path);
/* MiB of a write-ahead log that cannot shrink; 0: there is no alarm. */
uint32_t auditor_alarm_mib(void);

/* auditor_state.c */

/* Each second while the log is open: tell the keeper how it stands, if that has changed. */
void auditor_state_tell(const struct store *store, struct ipc *keeper);

/* auditor_prune.c */
void auditor_prune_start(struct loop *loop, const struct options *options);
/* The batch is lost. */
void auditor_prune_lost(void);

/* auditor_sender.c */

/* How things stand, to each sender. */
void auditor_sender_all_tell(void);

/* A sender's channel; takes fd. 0 or -errno. */
int auditor_sender_add(struct loop *loop, const struct msg_channel *channel, int fd);
/* The batch is committed: tell each sender how far. */
void auditor_sender_all_durable(void);
/* The batch is lost and the log cannot be written: tell all. */
void auditor_sender_all_lost(void);
/* The log can be written again: tell all, and take from each what comes after its last durable record. */
void auditor_sender_all_resume(void);
/* Is there more to read, that the batch could take along? */
bool auditor_sender_any_waits(void);

#endif
