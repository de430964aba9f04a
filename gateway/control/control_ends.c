/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ends of rules with a deadline, for the log: each once, even if no process ran at the time.
 *
 * Theory of operation. The gateways judge by the clock and cut at the second by themselves (gateway/path/expiry.c).
 * This role records the ends, because only its memory outlives all processes: a file per sandbox says up to when ends
 * are on record. One timer waits for the earliest end of all sandboxes. Ends since the last look at a sandbox are
 * recorded, and the file is written only when those records are on disk. After a start the same look finds the ends of
 * the time in between, and their events say so ("noticed"). If the daemon is killed between the two writes, an end is
 * recorded twice rather than never.
 *
 * A rule whose deadline has passed when it is put in force never began, and has no end. Deadlines are of the wall
 * clock, the timer is not: it looks every CONTROL_ENDS_LOOK_MS while an end lies ahead, in case the clock is set. */
#include "gateway/control/control_ends.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_state.h"
#include "policy/text/quantity.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL_ENDS_LOOK_MS 10000

/* Ends that are on their way to the disk. */
struct ends_wait {
	struct recorder_wait wait;
	struct control *control;
	char name[TAP_NAME_MAX];
	int64_t id;       /* the sandbox's; another one may have the name by then */
	int64_t until_us; /* all up to here */
};

static void
ends_store(struct control *control, struct control_sandbox *sandbox, int64_t until_us)
{
	char text[64];
	struct error err;
	int len = snprintf(text, sizeof(text), "{\"version\": 1, \"told_us\": %" PRId64 "}\n", until_us);

	sandbox->ends_told_us = until_us;
	if (control_state_write(control->state_fd, sandbox->name, CONTROL_FILE_ENDS, text, (size_t)len, &err) < 0)
		log_warnx("%s: the end of a rule may be recorded again after a start: %s", sandbox->name, err.text);
}

static void
ends_durable(struct recorder_wait *wait)
{
	struct ends_wait *ends = loop_owner(wait, struct ends_wait, wait);
	struct control_sandbox *sandbox = control_sandbox_find(ends->control, ends->name);

	if (sandbox != NULL && sandbox->id == ends->id && sandbox->ends_told_us < ends->until_us)
		ends_store(ends->control, sandbox, ends->until_us);
	free(ends);
}

/* Records one end; with a wait, the file is written once the record is on disk. */
static void
ends_record(struct control *control, struct control_sandbox *sandbox, uint32_t rule, bool late, struct ends_wait *wait)
{
	char ended[QUANTITY_TEXT_MAX];
	int64_t ts_us;
	uint64_t id;

	quantity_format_instant(snapshot_rule_expires_us(sandbox->snapshot, rule), ended);
	if (control_record_waited(control, EVENT_GRANT_EXPIRED, sandbox->id, CONTROL_PEER_NOBODY.uid,
		json_pack("{s:s, s:s, s:s, s:s*}", "rule", snapshot_rule_text(sandbox->snapshot, rule), "origin",
		    snapshot_rule_origin(sandbox->snapshot, rule), "ended", ended, "noticed", late ? "start" : NULL),
		wait == NULL ? NULL : &wait->wait, &id, &ts_us) < 0)
		free(wait);
}

/* Records the ends since the last look. */
static void
ends_look(struct control *control, struct control_sandbox *sandbox, int64_t now_us, bool late)
{
	size_t count = snapshot_rule_count(sandbox->snapshot);
	uint32_t last = SNAPSHOT_NO_RULE;
	struct ends_wait *wait;

	for (uint32_t rule = 0; rule < count; rule++) {
		int64_t expires_us = snapshot_rule_expires_us(sandbox->snapshot, rule);

		if (expires_us <= sandbox->ends_seen_us || expires_us > now_us)
			continue;
		if (last != SNAPSHOT_NO_RULE)
			ends_record(control, sandbox, last, late, NULL);
		last = rule;
	}
	if (last != SNAPSHOT_NO_RULE) {
		wait = calloc(1, sizeof(*wait)); /* without memory the end may be recorded again after a start */
		if (wait != NULL) {
			*wait = (struct ends_wait){
			    .wait.handler = ends_durable, .control = control, .id = sandbox->id, .until_us = now_us};
			memcpy(wait->name, sandbox->name, sizeof(wait->name));
		}
		ends_record(control, sandbox, last, late, wait);
	}
	sandbox->ends_seen_us = now_us;
	sandbox->ends_next_us = snapshot_next_expiry_us(sandbox->snapshot, now_us);
}

/* -- the timer ----------------------------------------------------------------------------------------------------- */

struct ends_round {
	struct control *control;
	int64_t now_us, next_us;
};

static void
ends_visit(struct control_sandbox *sandbox, void *context)
{
	struct ends_round *round = context;

	if (sandbox->ends_next_us == 0)
		return;
	if (sandbox->ends_next_us <= round->now_us)
		ends_look(round->control, sandbox, round->now_us, false);
	if (sandbox->ends_next_us != 0 && (round->next_us == 0 || sandbox->ends_next_us < round->next_us))
		round->next_us = sandbox->ends_next_us;
}

/* For an end at next_us, unless it waits for an earlier one. */
static void
ends_arm(struct control *control, int64_t next_us, int64_t now_us)
{
	struct loop_timer *timer = &control->ends_timer;
	int64_t left_ms = next_us <= now_us ? 0 : (next_us - now_us + 999) / 1000;

	if (left_ms > CONTROL_ENDS_LOOK_MS)
		left_ms = CONTROL_ENDS_LOOK_MS;
	if (loop_timer_armed(timer) && timer->due_ms <= clock_mono_ms() + left_ms)
		return;
	if (loop_timer_set(control->loop, timer, left_ms) < 0)
		log_warnx("out of memory: the end of a rule is not recorded in time");
}

static void
ends_timer_handler(struct loop_timer *timer)
{
	struct ends_round round = {.control = loop_owner(timer, struct control, ends_timer), .now_us = clock_real_us()};

	loop_timer_stop(round.control->loop, timer);
	control_sandbox_each(round.control, ends_visit, &round);
	if (round.next_us != 0)
		ends_arm(round.control, round.next_us, round.now_us);
}

/* -- a sandbox ----------------------------------------------------------------------------------------------------- */

/* Arms the timer for the sandbox's next end. */
static void
ends_wait_for_next(struct control *control, struct control_sandbox *sandbox, int64_t now_us)
{
	control->ends_timer.handler = ends_timer_handler;
	if (sandbox->ends_next_us != 0)
		ends_arm(control, sandbox->ends_next_us, now_us);
}

void
control_ends_begin(struct control *control, struct control_sandbox *sandbox)
{
	int64_t now_us = clock_real_us();

	sandbox->ends_seen_us = now_us;
	sandbox->ends_next_us = snapshot_next_expiry_us(sandbox->snapshot, now_us);
	if (sandbox->ends_next_us != 0 && sandbox->ends_told_us == 0)
		ends_store(control, sandbox, now_us);
	ends_wait_for_next(control, sandbox, now_us);
}

void
control_ends_restored(struct control *control, struct control_sandbox *sandbox)
{
	int64_t now_us = clock_real_us();

	/* Without the file there never was a rule with an end: nothing is late. */
	if (sandbox->ends_told_us == 0) {
		control_ends_begin(control, sandbox);
		return;
	}
	sandbox->ends_seen_us =
	    sandbox->ends_told_us > sandbox->policy_applied_us ? sandbox->ends_told_us : sandbox->policy_applied_us;
	ends_look(control, sandbox, now_us, true);
	ends_wait_for_next(control, sandbox, now_us);
}

void
control_ends_parse(struct control_sandbox *sandbox, const char *text, size_t len)
{
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL);
	json_int_t told_us = 0;
	int version = 0;

	if (json_unpack(object, "{s:i, s:I !}", "version", &version, "told_us", &told_us) == 0 && version == 1 &&
	    told_us > 0)
		sandbox->ends_told_us = told_us;
	else
		log_warnx("%s: ends.json cannot be read; ends since then are not recorded", sandbox->name);
	json_decref(object);
}

void
control_ends_flush(struct control *control, struct control_sandbox *sandbox)
{
	if (sandbox->snapshot != NULL && sandbox->ends_next_us != 0)
		ends_look(control, sandbox, clock_real_us(), false);
}
