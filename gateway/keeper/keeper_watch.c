/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Are the sandboxes as they were made? Each one's rules are compared every WATCH_MS, and its
 * sockets are counted at every WATCH_SOCKETS_LOOKS-th of these looks. All sandboxes stand in one list and are looked at
 * in steps, a part of the list each, so that a large fleet does not hold up the keeper's other work for one long
 * moment.
 *
 * Counting is cheap and listing is not: to list one namespace's sockets the kernel goes through those of the whole
 * machine. So sockets are listed when their number is another one than at the last listing, and every WATCH_LIST_MS
 * (one that came as another one went); in the order in which that was found, and at most WATCH_LISTS_MAX in WATCH_MS: a
 * bounded share of the processor, however many sandboxes there are. In a fleet where more than that change all the
 * time, foreign sockets are found later. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"

/* How often rules and the host chain are looked at. */
#define WATCH_MS 500
/* Steps of a round, and the number of sandboxes that adds one. */
#define WATCH_STEPS_MAX 10
#define WATCH_STEP_SANDBOXES 16
#define WATCH_SOCKETS_LOOKS 10
#define WATCH_LIST_MS (5 * 60 * 1000)
#define WATCH_LISTS_MAX 10

/* Lists the sockets of a sandbox's namespace. Only our own belong there. Others get no packet from the guest (the table
 * accepts for transparent ones only); that one was made is reported all the same. (CASES E-10) */
static void
watch_list_sockets(struct keeper *keeper, struct keeper_sandbox *sandbox)
{
	const char *name = tap_config(sandbox->tap)->name;
	size_t sockets, foreign;
	struct error err;

	TAILQ_REMOVE(&keeper->listed, sandbox, listed);
	sandbox->sockets_due = false;
	/* Counted first: what comes meanwhile is listed again. */
	if (tap_sockets_count(sandbox->tap, &sockets, &err) < 0 ||
	    tap_sockets_foreign(sandbox->tap, &foreign, &err) < 0) {
		log_warnx("%s: %s", name, err.text);
		return;
	}
	if (foreign > sandbox->foreign_sockets) {
		log_warnx("%s: foreign sockets in its network namespace: %zu", name, foreign);
		keeper_event(keeper, EVENT_TAMPERED, sandbox->id, "{\"foreign_sockets\":%zu}", foreign);
	}
	sandbox->sockets = sockets;
	sandbox->foreign_sockets = foreign;
	sandbox->sockets_listed_ms = clock_mono_ms();
}

/* Counts the sockets of a sandbox's namespace, and has them listed when that is due. */
static void
watch_count_sockets(struct keeper *keeper, struct keeper_sandbox *sandbox)
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
	    clock_mono_ms() - sandbox->sockets_listed_ms < WATCH_LIST_MS)
		return;
	sandbox->sockets_due = true;
	TAILQ_INSERT_TAIL(&keeper->listed, sandbox, listed);
}

/* Compares a sandbox's rules, and restores what was changed. */
static void
watch_rules(struct keeper *keeper, struct keeper_sandbox *sandbox)
{
	const char *name = tap_config(sandbox->tap)->name;
	struct error err;

	if (tap_intact(sandbox->tap)) {
		sandbox->tampered = false;
		return;
	}
	if (tap_intact_load(sandbox->tap, &err) < 0) {
		if (!sandbox->tampered)
			log_warnx(
			    "%s: nftables rules were modified externally and cannot be restored: %s", name, err.text);
	} else {
		if (keeper_policy_apply(sandbox, sandbox->snapshot, &err) < 0)
			log_warnx("%s: %s", name, err.text);
		log_warnx("%s: nftables rules were modified externally; restored", name);
		keeper_event(keeper, EVENT_TAMPERED, sandbox->id, "{\"repaired\":true}");
	}
	sandbox->tampered = true;
}

/* Puts the host's chain back when it was removed. */
static void
watch_host_chain(struct keeper *keeper)
{
	int64_t now_ms = clock_mono_ms();
	struct error err;

	if (!keeper->host_chain || now_ms - keeper->host_chain_ms < WATCH_MS)
		return;
	keeper->host_chain_ms = now_ms;
	if (tap_host_chain_present(keeper->host_table))
		return;
	log_warnx("table inet %s was removed externally; restoring it", keeper->host_table);
	keeper_event(keeper, EVENT_TAMPERED, 0, "{\"table\":\"%s\"}", keeper->host_table);
	if (keeper_setup_host_chain(keeper, &err) < 0)
		log_warnx("%s", err.text);
}

int64_t
keeper_watch_look(struct keeper *keeper)
{
	size_t steps = keeper->sandbox_count / WATCH_STEP_SANDBOXES + 1;

	steps = steps > WATCH_STEPS_MAX ? WATCH_STEPS_MAX : steps;
	for (size_t count = (keeper->sandbox_count + steps - 1) / steps; count > 0; count--) {
		struct keeper_sandbox *sandbox = TAILQ_FIRST(&keeper->watched);

		TAILQ_REMOVE(&keeper->watched, sandbox, watched);
		TAILQ_INSERT_TAIL(&keeper->watched, sandbox, watched);
		keeper_usage_forward(sandbox);
		if (sandbox->looks++ % WATCH_SOCKETS_LOOKS == 0)
			watch_count_sockets(keeper, sandbox);
		watch_rules(keeper, sandbox);
	}
	for (size_t i = 0; i < WATCH_LISTS_MAX / steps && !TAILQ_EMPTY(&keeper->listed); i++)
		watch_list_sockets(keeper, TAILQ_FIRST(&keeper->listed));
	watch_host_chain(keeper);
	return WATCH_MS / (int64_t)steps;
}
