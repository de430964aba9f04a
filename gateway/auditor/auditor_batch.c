/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The open batch: the records that the next commit makes durable.
 *
 * Theory of operation. Records join the batch as they are read. A sender waits for a connection that is about to be
 * opened, for events and for sandboxes: these are committed at the end of the loop's round, with all that is in the
 * channels by then (group commit), unless the batch has AUDITOR_BATCH_MAX records already. All else rides along or
 * waits AUDITOR_BATCH_LAZY_MS. When a step fails, the whole batch is rolled back and the log counts as not writable:
 * the senders still have the records, and auditor.c makes the log writable again. */
#include "gateway/auditor/auditor.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/options.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Records that nothing waits for are committed within this. */
#define AUDITOR_BATCH_LAZY_MS 20
/* A batch is not made longer than this for what else is in the channels: an opener waits for all of it. */
#define AUDITOR_BATCH_MAX 512

void
auditor_batch_fail(struct auditor *auditor, const struct error *why)
{
	log_warnx("the log cannot be written, new connections are refused: %s", why->text);
	if (auditor->out_since_us == 0) {
		auditor->out_since_us = clock_real_us();
		snprintf(auditor->out_why, sizeof(auditor->out_why), "%.255s", why->text);
		snprintf(auditor->still_why, sizeof(auditor->still_why), "%.255s", why->text);
	}
	auditor->writable = false;
	auditor->commit_wanted = false;
	auditor->batch = 0;
	/* The rows that the batch dropped are there again, and the event may have been rolled back: the next event
	 * counts anew. */
	auditor->prune.event.kind = 0;
	auditor->prune.rows = 0;
	loop_timer_stop(auditor->loop, &auditor->lazy_timer);
	loop_timer_set(auditor->loop, &auditor->retry_timer, AUDITOR_RETRY_MS);
	auditor_sender_lost(auditor);
}

void
auditor_batch_commit(struct auditor *auditor)
{
	struct error err;

	loop_timer_stop(auditor->loop, &auditor->lazy_timer);
	auditor->commit_wanted = false;
	auditor->batch = 0;
	if (!auditor->writable)
		return;
	if (store_commit(auditor->store, &err) < 0)
		auditor_batch_fail(auditor, &err);
	else
		auditor_sender_durable(auditor);
}

/* Commits, unless the next round brings more for the batch and calls this again. */
static void
auditor_batch_commit_handler(struct loop_deferred *deferred)
{
	struct auditor *auditor = loop_owner(deferred, struct auditor, commit);

	if (auditor->batch >= AUDITOR_BATCH_MAX || !auditor_sender_any_waits(auditor))
		auditor_batch_commit(auditor);
}

/* Commits what nothing waits for. */
static void
auditor_batch_lazy_handler(struct loop_timer *timer)
{
	auditor_batch_commit(loop_owner(timer, struct auditor, lazy_timer));
}

void
auditor_batch_init(struct auditor *auditor)
{
	auditor->commit.handler = auditor_batch_commit_handler;
	auditor->lazy_timer.handler = auditor_batch_lazy_handler;
}

void
auditor_batch_schedule(struct auditor *auditor, bool awaited)
{
	auditor->commit_wanted |= awaited;
	if (!loop_timer_armed(&auditor->lazy_timer))
		loop_timer_set(auditor->loop, &auditor->lazy_timer, AUDITOR_BATCH_LAZY_MS);
	if (auditor->commit_wanted || auditor->batch >= AUDITOR_BATCH_MAX)
		loop_defer(auditor->loop, &auditor->commit);
}

/* Does its sender hold something back until this is durable? */
static bool
auditor_batch_is_awaited(const struct record *record)
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

bool
auditor_batch_add(struct auditor *auditor, const struct record *record)
{
	struct error err;

	if (store_add(auditor->store, record, &err) == 0) {
		auditor->batch++;
		auditor_batch_schedule(auditor, auditor_batch_is_awaited(record));
		return true;
	}
	if (err.code == ERROR_USAGE) {
		log_warnx("%s", err.text);
		return false;
	}
	auditor_batch_fail(auditor, &err);
	return true;
}

void
auditor_batch_add_own(struct auditor *auditor, const struct record *record)
{
	struct error why;

	if (auditor_batch_add(auditor, record))
		return;
	error_set(
	    &why, ERROR_CORRUPT, "%s takes no event \"%s\"", auditor->path, record_event_text(record->event.kind));
	store_abandon(auditor->store);
	auditor_batch_fail(auditor, &why);
}

void
auditor_batch_own_detail(struct record *record, json_t *detail)
{
	char *text = detail == NULL ? NULL : json_dumps(detail, JSON_COMPACT | JSON_ENSURE_ASCII);

	record->event.ts_us = clock_real_us();
	if (text != NULL && strlen(text) < sizeof(record->event.detail))
		memcpy(record->event.detail, text, strlen(text) + 1);
	free(text);
	json_decref(detail);
}

void
auditor_batch_own(struct auditor *auditor, struct record *ret_record, enum event_kind kind, json_t *detail)
{
	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = RECORD_EVENT;
	ret_record->seq = ++auditor->counter;
	ret_record->event.id = RECORD_ID(auditor->options->epoch, auditor->counter);
	ret_record->event.kind = (uint8_t)kind;
	ret_record->event.uid = UINT32_MAX;
	auditor_batch_own_detail(ret_record, detail);
}
