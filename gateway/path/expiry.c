/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every decision takes the time as an argument, so a rule past its deadline lets nothing new
 * through, timer or not. This file ends what it let through earlier: one timer per sandbox, armed for the earliest
 * deadline that lies ahead. When it fires, leases and live connections are gone over as after an edit
 * (gateway/path/repolicy.c). That a rule ended is recorded by control (gateway/control/control_ends.c). Deadlines are
 * wall-clock time and timers are not: no wait is longer than EXPIRY_LOOK_MS, so that setting the clock delays a cut by
 * no more than that. */
#include "gateway/path/expiry.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/repolicy.h"

/* Waits for the earliest deadline ahead, or for nothing. */
static void
expiry_arm(struct sandbox *sandbox, int64_t now_us)
{
	int64_t next_us = snapshot_next_expiry_us(sandbox->policy, sandbox->judged_us);
	int64_t left_ms;

	if (next_us == 0) {
		loop_timer_stop(sandbox->gateway->loop, &sandbox->expiry);
		return;
	}
	/* Rounded up: a moment late rather than a moment early, which would only mean another look. */
	left_ms = next_us <= now_us ? 0 : (next_us - now_us + 999) / 1000;
	if (left_ms > EXPIRY_LOOK_MS)
		left_ms = EXPIRY_LOOK_MS;
	if (loop_timer_set(sandbox->gateway->loop, &sandbox->expiry, left_ms) < 0)
		log_warnx("%s: no memory to wait for a rule's end", sandbox->name);
}

/* Judges anew if a deadline has passed, and waits for the next one. */
static void
expiry_handler(struct loop_timer *timer)
{
	struct sandbox *sandbox = loop_owner(timer, struct sandbox, expiry);
	int64_t now_us = clock_real_us(), next_us = snapshot_next_expiry_us(sandbox->policy, sandbox->judged_us);

	if (next_us != 0 && next_us <= now_us)
		repolicy_expire(sandbox, now_us);
	sandbox->judged_us = now_us;
	expiry_arm(sandbox, now_us);
}

void
expiry_start(struct sandbox *sandbox)
{
	sandbox->judged_us = clock_real_us();
	sandbox->expiry.handler = expiry_handler;
	expiry_arm(sandbox, sandbox->judged_us);
}

void
expiry_stop(struct sandbox *sandbox)
{
	loop_timer_stop(sandbox->gateway->loop, &sandbox->expiry);
}
