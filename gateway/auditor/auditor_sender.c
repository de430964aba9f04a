/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The channels that records come by: which record is the next of its sender, and what each is told.
 *
 * A sender numbers its records without holes and keeps them until they are durable, so that each is taken once, in
 * order, whatever the auditor or the log went through (gateway/auditor/auditor.c, gateway/shared/recorder.c). */
#include "gateway/auditor/auditor.h"

#include "audit/store/store.h"
#include "base/log.h"
#include "gateway/shared/ipc.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct sender {
	struct sender *next;
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

static struct sender *senders;
static size_t sender_count;

static void
sender_tell(struct sender *sender)
{
	struct msg_durable durable = {
	    .seq = sender->durable_seq, .writable = auditor_is_writable(), .wal_mib = auditor_alarm_mib()};

	ipc_send(&sender->ipc, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0);
}

void
auditor_sender_all_tell(void)
{
	for (struct sender *sender = senders; sender != NULL; sender = sender->next)
		sender_tell(sender);
}

void
auditor_sender_all_durable(void)
{
	for (struct sender *sender = senders; sender != NULL; sender = sender->next) {
		if (sender->seq == sender->durable_seq)
			continue;
		sender->durable_seq = sender->seq;
		sender_tell(sender);
	}
}

void
auditor_sender_all_lost(void)
{
	for (struct sender *sender = senders; sender != NULL; sender = sender->next) {
		sender->seq = sender->durable_seq;
		sender_tell(sender);
	}
}

void
auditor_sender_all_resume(void)
{
	for (struct sender *sender = senders; sender != NULL; sender = sender->next) {
		sender->resync = sender->known;
		sender_tell(sender);
	}
}

bool
auditor_sender_any_waits(void)
{
	struct pollfd fds[AUDITOR_SENDERS_MAX];
	nfds_t count = 0;

	for (struct sender *sender = senders; sender != NULL && count < AUDITOR_SENDERS_MAX; sender = sender->next)
		if (ipc_is_open(&sender->ipc))
			fds[count++] = (struct pollfd){.fd = sender->ipc.source.fd, .events = POLLIN};
	return count > 0 && poll(fds, count, 0) > 0;
}

/* A gateway's last records may still be in its channel when the keeper reports its end: the gap is written again when
 * the channel is empty. */
static void
sender_note_gap(const struct record *record)
{
	for (struct sender *sender = senders; sender != NULL; sender = sender->next) {
		if (sender->epoch == record->gap.sender_epoch) {
			sender->gap = *record;
			sender->has_gap = true;
		}
	}
}

/* Who may say that such a thing happened? */
static enum msg_role
sender_of_event(enum event_kind kind)
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
	return MSG_ROLE_AUDITOR; /* which is no sender */
}

/* Each role has its kinds, and ids of its own. A gateway that a guest took over must not write another's history: the
 * store keeps the first of two records with one id, closes what a close names, and crashes what a gap names. */
static bool
sender_may_say(const struct sender *sender, const struct record *record)
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
		return sender->role == sender_of_event((enum event_kind)record->event.kind) &&
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

/* Is this the record to take now? Then it is the next one, or tells why there is none. */
static bool
sender_expects(const struct sender *sender, const struct record *record)
{
	if (record->seq <= sender->seq)
		return false;
	return !sender->resync || record->seq - record->lost <= sender->durable_seq + 1;
}

/* Numbers are missing before the record: whatever they stood for, the log says that it does not have it. */
static void
sender_mark_lost(const struct sender *sender, const struct record *record)
{
	uint64_t from = sender->seq + 1, to = record->seq - 1;
	struct record event;

	if (from > to)
		return;
	log_warnx("records %llu to %llu of epoch %llu were lost", (unsigned long long)from, (unsigned long long)to,
	    (unsigned long long)sender->epoch);
	auditor_own_record(&event, EVENT_RECORDS_LOST,
	    json_pack("{s:I, s:I, s:I, s:I}", "epoch", (json_int_t)sender->epoch, "from", (json_int_t)from, "to",
		(json_int_t)to, "count", (json_int_t)(to - from + 1)));
	auditor_add_own(&event);
}

/* Only the log knows how the last daemon ended: in order, when its last word is that it stops. */
static void
sender_note_start(struct record *record)
{
	int64_t ts_us = record->event.ts_us;
	json_t *detail;

	if (store_last_daemon_event(auditor_store()) != EVENT_DAEMON_START)
		return;
	detail = json_loads(record->event.detail, 0, NULL);
	if (detail == NULL)
		return;
	json_object_set_new(detail, "after", json_string("crash"));
	auditor_own_detail(record, detail);
	record->event.ts_us = ts_us;
}

static bool
sender_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct sender *sender = loop_owner(ipc, struct sender, ipc);
	static struct record record; /* one thread, and not small */
	uint32_t size = message->header.size;

	memcpy(&record, message->body, size);
	if (!record_valid(&record, size) || !sender_may_say(sender, &record))
		return false;
	if (!sender->known) {
		sender->known = true;
		sender->seq = sender->durable_seq = record.seq - record.lost - 1;
	}
	if (!auditor_is_writable())
		return true; /* it comes again */
	if (!sender_expects(sender, &record)) {
		auditor_schedule(false);
		return true;
	}
	sender->resync = false;
	sender_mark_lost(sender, &record);
	if (!auditor_is_writable())
		return true;
	/* Not taken yet: its sender keeps it until it is in the log. */
	if (record.kind == RECORD_EVENT && record.event.kind == EVENT_DAEMON_STOP) {
		auditor_hold_last_word(&record);
		return true;
	}
	if (record.kind == RECORD_GAP)
		sender_note_gap(&record);
	if (record.kind == RECORD_EVENT && record.event.kind == EVENT_DAEMON_START)
		sender_note_start(&record);
	if (!auditor_add(&record))
		return false;
	if (auditor_is_writable())
		sender->seq = record.seq;
	return true;
}

static void
sender_gone_handler(struct loop_deferred *deferred)
{
	free(loop_owner(deferred, struct sender, gone));
}

static void
sender_broken_handler(struct ipc *ipc, const char *why)
{
	struct sender *sender = loop_owner(ipc, struct sender, ipc);
	struct sender **at = &senders;

	while (*at != sender)
		at = &(*at)->next;
	*at = sender->next;
	sender_count--;
	if (sender->has_gap && auditor_is_writable())
		auditor_add(&sender->gap);
	auditor_sender_gone(sender->epoch, why);
	loop_defer(ipc->loop, &sender->gone);
}

int
auditor_sender_add(struct loop *loop, const struct msg_channel *channel, int fd)
{
	struct sender *sender = sender_count < AUDITOR_SENDERS_MAX ? calloc(1, sizeof(*sender)) : NULL;
	int rc;

	if (sender == NULL) {
		close(fd);
		return -ENOMEM;
	}
	sender->role = (enum msg_role)channel->role;
	sender->epoch = channel->epoch;
	sender->gone.handler = sender_gone_handler;
	sender->ipc.self = MSG_ROLE_AUDITOR;
	sender->ipc.peer = MSG_ROLE_SENDER;
	sender->ipc.message_handler = sender_message_handler;
	sender->ipc.broken_handler = sender_broken_handler;
	rc = ipc_open(&sender->ipc, loop, fd);
	if (rc < 0) {
		close(fd);
		free(sender);
		return rc;
	}
	sender->next = senders;
	senders = sender;
	sender_count++;
	sender_tell(sender);
	return 0;
}
