/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention in the background: one sealed segment at a time (some milliseconds), between batches, and no more than a
 * fifth of the time. One event tells of everything that one run drops, in the transactions that drop it. */
#include "gateway/auditor/auditor.h"

#include "audit/show/render.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/options.h"
#include "policy/text/quantity.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>

/* Between looks whether something is due. */
#define PRUNE_IDLE_MS 10000
/* A step that took t is followed by a rest of at least this many t: an opener rarely meets one. */
#define PRUNE_REST 4
#define PRUNE_REST_MS_MIN 5
/* One event tells of so much at most; then the next one begins. */
#define PRUNE_RUN_MS 3600000
/* Pages given back in one step. */
#define PRUNE_PAGES 256

/* Adds the run's event to the batch, or raises its counts. */
static void
auditor_prune_tell(struct auditor *auditor, const struct prune_segment *segment)
{
	char before[40];
	json_t *detail;

	auditor->prune.rows += segment->rows;
	detail = json_pack("{s:I, s:I, s:s, s:s}", "through", (json_int_t)segment->through, "rows",
	    (json_int_t)auditor->prune.rows, "before", render_time_utc(segment->sealed_us, before), "why",
	    segment->for_size ? "size" : "age");
	if (auditor->prune.event.kind == 0) {
		auditor_batch_own(auditor, &auditor->prune.event, EVENT_PRUNED, detail);
		auditor->prune.began_ms = clock_mono_ms();
	} else {
		auditor_batch_own_detail(&auditor->prune.event, detail);
	}
	auditor_batch_add_own(auditor, &auditor->prune.event);
}

/* Records that rows are missing which no retention dropped. */
static void
auditor_prune_tell_untold(struct auditor *auditor, const struct prune_segment *segment)
{
	struct record record;
	char what[96];

	if (segment->untold == 0)
		return;
	snprintf(what, sizeof(what), "records up to number %lld had been dropped, and not by retention",
	    (long long)segment->untold);
	log_warnx("%s: another program changed the log", what);
	auditor_batch_own(auditor, &record, EVENT_TAMPERED, json_pack("{s:s}", "log", what));
	auditor_batch_add_own(auditor, &record);
}

/* The next row that is dropped begins another event. */
static void
auditor_prune_end_run(struct auditor *auditor)
{
	if (auditor->prune.event.kind != 0)
		log_info("dropped %llu old records of the log", (unsigned long long)auditor->prune.rows);
	auditor->prune.event.kind = 0;
	auditor->prune.rows = 0;
}

/* Adds events and a seal for the rows that are gone to the same batch. 1: there may be more to do; 0: not now. */
static int
auditor_prune_tell_all(struct auditor *auditor, const struct prune_segment *segment)
{
	struct error err;

	auditor_prune_tell(auditor, segment);
	if (auditor->writable)
		auditor_prune_tell_untold(auditor, segment);
	if (!auditor->writable)
		return 0;
	/* An event without a seal could be anybody's. */
	if (store_seal(auditor->store, true, &err) < 0) {
		auditor_batch_fail(auditor, &err);
		return 0;
	}
	auditor_batch_schedule(auditor, true);
	/* Where all of a segment was carried on, to drop more makes nothing smaller. */
	return !segment->for_size || segment->rows > 0;
}

/* Raises the alarm that the clock jumped. */
static void
auditor_prune_tell_clock(struct auditor *auditor, int64_t ahead_us)
{
	int64_t ahead_s = ahead_us / 1000000;
	char duration[QUANTITY_TEXT_MAX], what[160];
	struct record record;

	snprintf(what, sizeof(what),
	    "the clock is ahead by %s, or nothing was written for as long: retention by age waits for a day, or as "
	    "long as records are kept",
	    quantity_format_duration(ahead_s > UINT32_MAX ? UINT32_MAX : (uint32_t)ahead_s, duration));
	log_warnx("%s", what);
	auditor_batch_own(
	    auditor, &record, EVENT_AUDIT_ALARM, json_pack("{s:s, s:I}", "what", what, "ahead_s", (json_int_t)ahead_s));
	auditor_batch_add_own(auditor, &record);
}

/* The time before which records are too old; 0: none is, or the clock has jumped. */
static int64_t
auditor_prune_before_us(struct auditor *auditor)
{
	int64_t now_us = clock_real_us(), ahead_us;

	if (auditor->options->retain_s == 0)
		return 0;
	if (!auditor->prune.clock_known)
		retain_clock_init(&auditor->prune.clock, auditor->options->retain_s, store_newest_us(auditor->store),
		    store_last_clock_alarm_us(auditor->store));
	auditor->prune.clock_known = true;
	ahead_us = retain_clock_look(&auditor->prune.clock, now_us, clock_mono_ms() * 1000);
	if (ahead_us != 0)
		auditor_prune_tell_clock(auditor, ahead_us);
	return retain_clock_waits(&auditor->prune.clock, now_us)
	    ? 0
	    : now_us - (int64_t)auditor->options->retain_s * 1000000;
}

/* Drops one segment, or shrinks the file. 1: there may be more to do; 0: not now. */
static int
auditor_prune_step(struct auditor *auditor)
{
	struct prune_limits limits = {.bytes_max = auditor->options->retain_bytes,
	    .before_us = auditor_prune_before_us(auditor),
	    .now_us = clock_real_us()};
	struct prune_segment segment;
	struct error err;
	int rc;

	if (!auditor->writable)
		return 0;
	rc = store_prune(auditor->store, &limits, &segment, &err);
	if (rc == 1)
		return auditor_prune_tell_all(auditor, &segment);
	if (rc == 0) {
		auditor_prune_end_run(auditor);
		rc = store_shrink(auditor->store, PRUNE_PAGES, &err);
	}
	if (rc < 0)
		auditor_batch_fail(auditor, &err);
	return rc == 1;
}

/* One step, then a rest in proportion to the time that it took. */
static void
auditor_prune_handler(struct loop_timer *timer)
{
	struct auditor *auditor = loop_owner(timer, struct auditor, prune.timer);
	int64_t began_ms, took_ms, rest_ms = PRUNE_IDLE_MS;

	/* What waits for the batch goes first. The batch is not waited for: in a flood there always is one. */
	auditor_batch_commit(auditor);
	began_ms = clock_mono_ms();
	if (auditor->prune.event.kind != 0 && began_ms - auditor->prune.began_ms > PRUNE_RUN_MS)
		auditor_prune_end_run(auditor);
	if (auditor->writable && auditor_prune_step(auditor) == 1) {
		took_ms = clock_mono_ms() - began_ms;
		rest_ms = took_ms * PRUNE_REST < PRUNE_REST_MS_MIN ? PRUNE_REST_MS_MIN : took_ms * PRUNE_REST;
	}
	loop_timer_set(auditor->loop, timer, rest_ms);
}

void
auditor_prune_start(struct auditor *auditor)
{
	auditor->prune.timer.handler = auditor_prune_handler;
	loop_timer_set(auditor->loop, &auditor->prune.timer, PRUNE_REST_MS_MIN);
}
