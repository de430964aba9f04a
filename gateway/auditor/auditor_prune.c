/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention in the background: one sealed segment at a time (some milliseconds), between batches, and no more than a
 * fifth of the time. Everything dropped in one go is told by one event, in the transactions that drop it. */
#include "gateway/auditor/auditor.h"

#include "audit/show/render.h"
#include "audit/store/store.h"
#include "base/clock.h"
#include "base/log.h"
#include "gateway/shared/options.h"
#include "gateway/auditor/retain_clock.h"
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

static struct {
	struct loop *loop;
	uint32_t keep_s;
	uint64_t keep_bytes;
	struct loop_timer timer;
	bool clock_known; /* the log could be asked what it says of it */
	struct retain_clock clock;
	struct record event; /* of the run under way; kind 0: none is */
	uint64_t rows;       /* dropped in it */
	int64_t began_ms;
} prune;

static void
prune_tell(const struct prune_segment *segment)
{
	char before[40];
	json_t *detail;

	prune.rows += segment->rows;
	detail =
	    json_pack("{s:I, s:I, s:s, s:s}", "through", (json_int_t)segment->through, "rows", (json_int_t)prune.rows,
		"before", render_time_utc(segment->sealed_us, before), "why", segment->for_size ? "size" : "age");
	if (prune.event.kind == 0) {
		auditor_own_record(&prune.event, EVENT_PRUNED, detail);
		prune.began_ms = clock_mono_ms();
	} else {
		auditor_own_detail(&prune.event, detail);
	}
	auditor_add_own(&prune.event);
}

/* Somebody dropped rows before: from now on only this event tells. */
static void
prune_tell_untold(const struct prune_segment *segment)
{
	struct record record;
	char what[96];

	if (segment->untold == 0)
		return;
	snprintf(what, sizeof(what), "records up to number %lld had been dropped, and not by retention",
	    (long long)segment->untold);
	log_warnx("%s: another program changed the log", what);
	auditor_own_record(&record, EVENT_TAMPERED, json_pack("{s:s}", "log", what));
	auditor_add_own(&record);
}

static void
prune_end_run(void)
{
	if (prune.event.kind != 0)
		log_info("dropped %llu old records of the log", (unsigned long long)prune.rows);
	prune.event.kind = 0;
	prune.rows = 0;
}

void
auditor_prune_lost(void)
{
	/* What the batch had dropped is there again, and perhaps the event that told of more is not: the next one
	 * counts anew. */
	prune.event.kind = 0;
	prune.rows = 0;
}

/* What makes up for the rows that are gone, in the same batch. 1: there may be more to do; 0: not
 * now. */
static int
prune_tell_all(struct store *store, const struct prune_segment *segment)
{
	struct error err;

	prune_tell(segment);
	if (auditor_is_writable())
		prune_tell_untold(segment);
	if (!auditor_is_writable())
		return 0;
	/* An event without a seal could be anybody's. */
	if (store_seal(store, true, &err) < 0) {
		auditor_fail(&err);
		return 0;
	}
	auditor_schedule(true);
	/* Where all of a segment was carried on, to drop more makes nothing smaller. */
	return !segment->for_size || segment->rows > 0;
}

static void
prune_tell_clock(int64_t ahead_us)
{
	int64_t ahead_s = ahead_us / 1000000;
	char duration[QUANTITY_TEXT_MAX], what[160];
	struct record record;

	snprintf(what, sizeof(what),
	    "the clock is ahead by %s, or nothing was written for as long: retention by age waits for a day, or as "
	    "long "
	    "as records are kept",
	    quantity_format_duration(ahead_s > UINT32_MAX ? UINT32_MAX : (uint32_t)ahead_s, duration));
	log_warnx("%s", what);
	auditor_own_record(
	    &record, EVENT_AUDIT_ALARM, json_pack("{s:s, s:I}", "what", what, "ahead_s", (json_int_t)ahead_s));
	auditor_add_own(&record);
}

/* Before this time records are too old; 0: none is, or the clock is not to be believed. */
static int64_t
prune_before_us(struct store *store)
{
	int64_t now_us = clock_real_us(), ahead_us;

	if (prune.keep_s == 0)
		return 0;
	if (!prune.clock_known)
		retain_clock_init(&prune.clock, prune.keep_s, store_newest_us(store), store_last_clock_alarm_us(store));
	prune.clock_known = true;
	ahead_us = retain_clock_look(&prune.clock, now_us, clock_mono_ms() * 1000);
	if (ahead_us != 0)
		prune_tell_clock(ahead_us);
	return retain_clock_waits(&prune.clock, now_us) ? 0 : now_us - (int64_t)prune.keep_s * 1000000;
}

/* Likewise. */
static int
prune_step(struct store *store)
{
	struct prune_limits limits = {
	    .bytes_max = prune.keep_bytes, .before_us = prune_before_us(store), .now_us = clock_real_us()};
	struct prune_segment segment;
	struct error err;
	int rc;

	if (!auditor_is_writable())
		return 0;
	rc = store_prune(store, &limits, &segment, &err);
	if (rc == 1)
		return prune_tell_all(store, &segment);
	if (rc == 0) {
		prune_end_run();
		rc = store_shrink(store, PRUNE_PAGES, &err);
	}
	if (rc < 0)
		auditor_fail(&err);
	return rc == 1;
}

static void
prune_handler(struct loop_timer *timer)
{
	int64_t began_ms, took_ms, rest_ms = PRUNE_IDLE_MS;
	struct store *store;

	/* Whoever waits for the batch goes first. It is not waited for: in a flood there always is one. */
	auditor_commit();
	store = auditor_store();
	began_ms = clock_mono_ms();
	if (prune.event.kind != 0 && began_ms - prune.began_ms > PRUNE_RUN_MS)
		prune_end_run();
	if (store != NULL && prune_step(store) == 1) {
		took_ms = clock_mono_ms() - began_ms;
		rest_ms = took_ms * PRUNE_REST < PRUNE_REST_MS_MIN ? PRUNE_REST_MS_MIN : took_ms * PRUNE_REST;
	}
	loop_timer_set(prune.loop, timer, rest_ms);
}

void
auditor_prune_start(struct loop *loop, const struct options *options)
{
	prune.loop = loop;
	prune.keep_s = options->retain_s;
	prune.keep_bytes = options->retain_bytes;
	prune.timer.handler = prune_handler;
	loop_timer_set(loop, &prune.timer, PRUNE_REST_MS_MIN);
}
