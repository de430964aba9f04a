/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The channels that records come by: which record is the next of its sender, and whether it is the sender's to write.
 *
 * A sender numbers its records without holes and keeps them until they are durable, so that each is taken once, in
 * order, through restarts of the auditor and failures of the log (gateway/auditor/auditor.c,
 * gateway/shared/recorder.c). */
#include "gateway/auditor/auditor.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The role that may record such an event; MSG_ROLE_AUDITOR: no sender may. */
static enum msg_role
auditor_channel_of_event(enum event_kind kind)
{
	switch (kind) {
	case EVENT_DAEMON_START:
	case EVENT_DAEMON_STOP:
	case EVENT_ROLE_CRASH:
	case EVENT_TAMPERED:
		return MSG_ROLE_KEEPER;
	case EVENT_ATTACH:
	case EVENT_DETACH:
	case EVENT_POLICY:
	case EVENT_RESTORED:
	case EVENT_MARK:
	case EVENT_GRANT_EXPIRED:
		return MSG_ROLE_CONTROL;
	case EVENT_GRANT_USED_UP:
	case EVENT_LIMIT_SOFT:
		return MSG_ROLE_GATEWAY;
	case EVENT_AUDIT_RESUMED:
	case EVENT_AUDIT_REPLACED:
	case EVENT_AUDIT_ALARM:
	case EVENT_PRUNED:
	case EVENT_RECORDS_LOST:
	case EVENT_KIND_MAX:
		break;
	}
	return MSG_ROLE_AUDITOR;
}

/* Each role has its kinds, and ids of its own. A gateway that a guest took over must not write another's history: the
 * store keeps the first of two records with one id, closes what a close names, and crashes what a gap names. */
static bool
auditor_channel_may_say(const struct auditor_sender *sender, const struct record *record)
{
	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
	case RECORD_REFUSED:
		return sender->role == MSG_ROLE_GATEWAY && record_id_is_of(record->flow.id, sender->epoch);
	case RECORD_FLOW_CLOSE:
	case RECORD_PROGRESS:
		return sender->role == MSG_ROLE_GATEWAY && record_id_is_of(record->close.id, sender->epoch);
	case RECORD_ACCOUNT:
		return sender->role == MSG_ROLE_GATEWAY && record_id_is_of(record->account.id, sender->epoch);
	case RECORD_DNS:
		return sender->role == MSG_ROLE_GATEWAY && record_id_is_of(record->dns.id, sender->epoch);
	case RECORD_EVENT:
		return sender->role == auditor_channel_of_event((enum event_kind)record->event.kind) &&
		    record_id_is_of(record->event.id, sender->epoch);
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
		return sender->role == MSG_ROLE_CONTROL;
	case RECORD_GAP:
		return sender->role == MSG_ROLE_KEEPER;
	case RECORD_KIND_MAX:
		break;
	}
	return false;
}

/* Is this the record to take now: the next one, or the first after a hole that it tells of? */
static bool
auditor_channel_expects(const struct auditor_sender *sender, const struct record *record)
{
	if (record->seq <= sender->seq)
		return false;
	return !sender->resync || record->seq - record->lost <= sender->durable_seq + 1;
}

/* Records which numbers are missing before the record. */
static void
auditor_channel_mark_lost(struct auditor *auditor, const struct auditor_sender *sender, const struct record *record)
{
	uint64_t from = sender->seq + 1, to = record->seq - 1;
	struct record event;

	if (from > to)
		return;
	log_warnx("records %llu to %llu of epoch %llu were lost", (unsigned long long)from, (unsigned long long)to,
	    (unsigned long long)sender->epoch);
	auditor_batch_own(auditor, &event, EVENT_RECORDS_LOST,
	    json_pack("{s:I, s:I, s:I, s:I}", "epoch", (json_int_t)sender->epoch, "from", (json_int_t)from, "to",
		(json_int_t)to, "count", (json_int_t)(to - from + 1)));
	auditor_batch_add_own(auditor, &event);
}

/* Marks the start when the daemon before it crashed: the log's last word on it is not that it stops. */
static void
auditor_channel_note_start(const struct auditor *auditor, struct record *record)
{
	int64_t ts_us = record->event.ts_us;
	json_t *detail;

	if (store_last_daemon_event(auditor->store) != EVENT_DAEMON_START)
		return;
	detail = json_loads(record->event.detail, 0, NULL);
	if (detail == NULL)
		return;
	json_object_set_new(detail, "after", json_string("crash"));
	auditor_batch_own_detail(record, detail);
	record->event.ts_us = ts_us;
}

/* Takes a record: into the batch, or aside, or not (it comes again). False: no honest sender makes it. */
static bool
auditor_channel_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct auditor_sender *sender = loop_owner(ipc, struct auditor_sender, ipc);
	struct auditor *auditor = sender->auditor;
	struct record record;

	memcpy(&record, message->body, message->header.size);
	if (!record_valid(&record, message->header.size) || !auditor_channel_may_say(sender, &record))
		return false;
	if (!sender->known) {
		sender->known = true;
		sender->seq = sender->durable_seq = record.seq - record.lost - 1;
	}
	if (!auditor->writable)
		return true; /* it comes again */
	if (!auditor_channel_expects(sender, &record)) {
		auditor_batch_schedule(auditor, false);
		return true;
	}
	sender->resync = false;
	auditor_channel_mark_lost(auditor, sender, &record);
	if (!auditor->writable)
		return true;
	/* Not taken yet: its sender keeps it until it is in the log. */
	if (record.kind == RECORD_EVENT && record.event.kind == EVENT_DAEMON_STOP) {
		auditor->last_word = record;
		return true;
	}
	/* A gateway's last records may still be in its channel when the keeper reports its end: the gap is written
	 * again when the channel is empty. */
	for (struct auditor_sender *other = auditor->senders; record.kind == RECORD_GAP && other != NULL;
	     other = other->next) {
		if (other->epoch == record.gap.sender_epoch) {
			other->gap = record;
			other->has_gap = true;
		}
	}
	if (record.kind == RECORD_EVENT && record.event.kind == EVENT_DAEMON_START)
		auditor_channel_note_start(auditor, &record);
	if (!auditor_batch_add(auditor, &record))
		return false;
	if (auditor->writable)
		sender->seq = record.seq;
	return true;
}

/* Frees a sender whose channel is closed, when the round is over. */
static void
auditor_channel_gone_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct auditor_sender, gone));
}

/* The channel is closed. The keeper hears of a sender that broke the rules: without a channel it can record nothing and
 * so will do nothing; a restart is better. */
static void
auditor_channel_broken_handler(struct ipc *ipc, const char *why)
{
	struct auditor_sender *sender = loop_owner(ipc, struct auditor_sender, ipc);
	struct auditor *auditor = sender->auditor;
	struct auditor_sender **at = &auditor->senders;
	struct msg_sender bad = {.epoch = sender->epoch};

	while (*at != sender)
		at = &(*at)->next;
	*at = sender->next;
	auditor->sender_count--;
	if (sender->has_gap && auditor->writable)
		auditor_batch_add(auditor, &sender->gap);
	if (!auditor->stopping && strcmp(why, "peer closed") != 0)
		log_warnx("channel of epoch %llu closed: %s", (unsigned long long)sender->epoch, why);
	if (strcmp(why, IPC_WHY_MALFORMED) == 0)
		ipc_send(&auditor->keeper, MSG_SENDER_BAD, 0, &bad, sizeof(bad), NULL, 0);
	if (auditor->commit_wanted)
		loop_defer(auditor->loop, &auditor->commit);
	loop_defer(auditor->loop, &sender->gone);
}

int
auditor_channel_add(struct auditor *auditor, const struct msg_channel *channel, int fd)
{
	struct auditor_sender *sender = auditor->sender_count < AUDITOR_SENDERS_MAX ? calloc(1, sizeof(*sender)) : NULL;
	int rc;

	if (sender == NULL) {
		close(fd);
		return -ENOMEM;
	}
	sender->auditor = auditor;
	sender->role = (enum msg_role)channel->role;
	sender->epoch = channel->epoch;
	sender->gone.handler = auditor_channel_gone_handler;
	ipc_init(&sender->ipc, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, auditor_channel_message_handler,
	    auditor_channel_broken_handler);
	rc = ipc_open(&sender->ipc, auditor->loop, fd);
	if (rc < 0) {
		close(fd);
		free(sender);
		return rc;
	}
	sender->next = auditor->senders;
	auditor->senders = sender;
	auditor->sender_count++;
	auditor_sender_tell(auditor, sender);
	return 0;
}
