/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Are the sandboxes as they were made? Each one's rules are compared every KEEPER_WATCH_MS, and
 * its sockets are counted at every KEEPER_SOCKETS_LOOKS-th of these looks. All stand in one ring and are looked at in
 * steps, a part of the ring each, so that a large fleet does not hold up the keeper's other work for one long moment.
 *
 * Counting is cheap and listing is not: to list one namespace's sockets the kernel goes through those of the whole
 * machine. So sockets are listed when their number is another one than at the last listing, and every KEEPER_LIST_MS
 * (one that came as another one went); in the order in which that was found, and at most KEEPER_LISTS_MAX in
 * KEEPER_WATCH_MS: a bounded share of the processor, however many sandboxes there are. In a fleet where more than that
 * change all the time, foreign sockets are found later. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"

/* Steps of a round, and sandboxes from which on there is another one. */
#define KEEPER_STEPS_MAX 10
#define KEEPER_STEP_SANDBOXES 16
#define KEEPER_SOCKETS_LOOKS 10
#define KEEPER_LIST_MS (5 * 60 * 1000)
#define KEEPER_LISTS_MAX 10

TAILQ_HEAD(keeper_watch_list, keeper_sandbox);

static struct keeper_watch_list keeper_ring = TAILQ_HEAD_INITIALIZER(keeper_ring);
static struct keeper_watch_list keeper_listings = TAILQ_HEAD_INITIALIZER(keeper_listings);
static struct loop_timer keeper_watch_timer;
static int64_t keeper_host_chain_ms; /* when it was looked at */

void
keeper_watch_add(struct keeper_sandbox *sandbox)
{
	/* Behind those that have waited longer; and not all that came at once count their sockets at once. */
	TAILQ_INSERT_TAIL(&keeper_ring, sandbox, watched);
	sandbox->looks = (uint32_t)(keeper_sandbox_turn(sandbox->id) % KEEPER_SOCKETS_LOOKS);
}

void
keeper_watch_remove(struct keeper_sandbox *sandbox)
{
	TAILQ_REMOVE(&keeper_ring, sandbox, watched);
	if (sandbox->sockets_due)
		TAILQ_REMOVE(&keeper_listings, sandbox, listed);
	sandbox->sockets_due = false;
}

/* Only our own sockets belong into a sandbox's namespace. Others get no packet from the guest (the table accepts for
 * transparent ones only); somebody who made one should be heard of all the same. (CASES E-10) */
static void
keeper_watch_list_sockets(struct keeper_sandbox *sandbox)
{
	const char *name = tap_config(sandbox->tap)->name;
	size_t sockets, foreign;
	struct error err;

	TAILQ_REMOVE(&keeper_listings, sandbox, listed);
	sandbox->sockets_due = false;
	/* Counted first: what comes meanwhile is listed again. */
	if (tap_sockets_count(sandbox->tap, &sockets, &err) < 0 ||
	    tap_sockets_foreign(sandbox->tap, &foreign, &err) < 0) {
		log_warnx("%s: %s", name, err.text);
		return;
	}
	if (foreign > sandbox->foreign_sockets) {
		log_warnx("%s: %zu sockets in its namespace are not ours", name, foreign);
		keeper_event(EVENT_TAMPERED, sandbox->id, "{\"foreign_sockets\":%zu}", foreign);
	}
	sandbox->sockets = sockets;
	sandbox->foreign_sockets = foreign;
	sandbox->sockets_listed_ms = clock_mono_ms();
}

static void
keeper_watch_count_sockets(struct keeper_sandbox *sandbox)
{
	size_t sockets;
	struct error err;

	if (sandbox->sockets_due)
		return;
	if (tap_sockets_count(sandbox->tap, &sockets, &err) < 0) {
		log_warnx("%s: %s", tap_config(sandbox->tap)->name, err.text);
		return;
	}
	if (sockets == sandbox->sockets && sandbox->sockets_listed_ms != 0 &&
	    clock_mono_ms() - sandbox->sockets_listed_ms < KEEPER_LIST_MS)
		return;
	sandbox->sockets_due = true;
	TAILQ_INSERT_TAIL(&keeper_listings, sandbox, listed);
}

static void
keeper_watch_rules(struct keeper_sandbox *sandbox)
{
	const char *name = tap_config(sandbox->tap)->name;
	struct error err;

	if (tap_intact(sandbox->tap)) {
		sandbox->tampered = false;
		return;
	}
	if (tap_intact_load(sandbox->tap, &err) < 0) {
		if (!sandbox->tampered)
			log_warnx("%s: its rules were changed and cannot be repaired: %s", name, err.text);
	} else {
		size_t count;
		const struct addr_range *ranges = snapshot_ranges(sandbox->snapshot, &count);

		if (tap_ranges_set(sandbox->tap, ranges, count, &err) < 0)
			log_warnx("%s: %s", name, err.text);
		log_warnx("%s: somebody changed its nftables rules; they are as they were", name);
		keeper_event(EVENT_TAMPERED, sandbox->id, "{\"repaired\":true}");
	}
	sandbox->tampered = true;
}

/* The next part of the ring. */
static void
keeper_watch_sandboxes(size_t count)
{
	for (; count > 0 && !TAILQ_EMPTY(&keeper_ring); count--) {
		struct keeper_sandbox *sandbox = TAILQ_FIRST(&keeper_ring);

		TAILQ_REMOVE(&keeper_ring, sandbox, watched);
		TAILQ_INSERT_TAIL(&keeper_ring, sandbox, watched);
		keeper_request_usage_forward(sandbox);
		if (sandbox->looks++ % KEEPER_SOCKETS_LOOKS == 0)
			keeper_watch_count_sockets(sandbox);
		keeper_watch_rules(sandbox);
	}
}

static void
keeper_watch_host_chain(void)
{
	int64_t now_ms = clock_mono_ms();
	struct error err;

	if (!keeper.host_chain || now_ms - keeper_host_chain_ms < KEEPER_WATCH_MS)
		return;
	keeper_host_chain_ms = now_ms;
	if (tap_host_chain_present(keeper.host_table))
		return;
	log_warnx("somebody removed table inet %s: putting it back", keeper.host_table);
	keeper_event(EVENT_TAMPERED, 0, "{\"table\":\"%s\"}", keeper.host_table);
	if (keeper_host_chain(&err) < 0)
		log_warnx("%s", err.text);
}

/* A daemon that `postern run` started for itself ends when nobody needs it any more. */
static bool
keeper_watch_idle(void)
{
	int64_t now_ms = clock_mono_ms();

	if (keeper.sandbox_count > 0 || keeper.busy_ms == 0)
		keeper.busy_ms = now_ms;
	return keeper.options->exit_idle_s > 0 && now_ms - keeper.busy_ms > (int64_t)keeper.options->exit_idle_s * 1000;
}

static void
keeper_watch_handler(struct loop_timer *timer)
{
	size_t steps = keeper.sandbox_count / KEEPER_STEP_SANDBOXES + 1;

	if (keeper_watch_idle()) {
		log_info("no sandbox for %u s: stopping", keeper.options->exit_idle_s);
		keeper_stop();
		return;
	}
	steps = steps > KEEPER_STEPS_MAX ? KEEPER_STEPS_MAX : steps;
	keeper_watch_sandboxes((keeper.sandbox_count + steps - 1) / steps);
	for (size_t i = 0; i < KEEPER_LISTS_MAX / steps && !TAILQ_EMPTY(&keeper_listings); i++)
		keeper_watch_list_sockets(TAILQ_FIRST(&keeper_listings));
	keeper_watch_host_chain();
	loop_timer_set(keeper.loop, timer, KEEPER_WATCH_MS / (int64_t)steps);
}

void
keeper_watch_start(void)
{
	keeper_watch_timer.handler = keeper_watch_handler;
	loop_timer_set(keeper.loop, &keeper_watch_timer, KEEPER_WATCH_MS);
}

void
keeper_watch_stop(void)
{
	loop_timer_stop(keeper.loop, &keeper_watch_timer);
}
