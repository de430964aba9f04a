/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Replay of random records against the manual's words, on the worlds that the data path and postern test are held
 * against (tests/unit/gateway/gateway_verdict_property_test.c): the same verdict, reason and rule.
 *
 * POSTERN_TEST_LONG=1 (make test-long) asks in a hundred times as many worlds, POSTERN_TEST_SEED=N begins elsewhere. */
#include "tests/unit/policy/policy_worlds.h"

#include "audit/record.h"
#include "base/clock.h"
#include "cli/policy/replay.h"

#define RECORDS 300

static size_t seen[REASON_MAX];

static struct query_text
text_of(const char *text)
{
	return (struct query_text){.bytes = text, .len = strlen(text)};
}

/* The record of what the question is about; its verdict was some policy's. */
static struct query_row
row_of(const struct world *world, const struct world_question *q, bool allowed)
{
	bool placed = world->placed && !q->unplaced;
	struct query_row row = {.kind = QUERY_CONNECTION,
	    .count = 1,
	    .ts_us = 1700000000000000,
	    .proto = q->proto,
	    .dport = q->port,
	    .verdict = allowed ? VERDICT_ALLOWED : VERDICT_DENIED,
	    .reason = allowed ? REASON_ALLOWED
		: q->pardoned ? REASON_NO_RULE
			      : REASON_PLACE_UNKNOWN,
	    .name_source = q->naming == VERDICT_UNPROVEN ? NAME_SOURCE_CIDR : NAME_SOURCE_SNI};

	if (q->name != SIZE_MAX)
		row.name = text_of(world_names[q->name]);
	if (q->addr != SIZE_MAX)
		row.dst = text_of(world_addrs[q->addr].text);
	if (q->addr != SIZE_MAX && placed && world_addrs[q->addr].country[0] != '\0')
		row.country = text_of(world_addrs[q->addr].country);
	if (q->addr != SIZE_MAX && placed && world_addrs[q->addr].asn != 0)
		row.asn = (struct query_number){.set = true, .value = world_addrs[q->addr].asn};
	return row;
}

static bool
replay_agrees(struct world *world, const struct world_question *q)
{
	bool allowed = q->ech; /* no hello here: says how it ended then */
	struct query_row row = row_of(world, q, allowed);
	struct world_question asked = *q;
	struct oracle_answer want;
	struct history_target target;
	struct judgement got;
	enum replay_outcome outcome = replay_row(world->policy, &row, clock_real_us(), &target, &got);

	asked.ech = false;
	/* What is on the never list, no policy changes. */
	if (outcome == REPLAY_LEFT_OUT)
		return q->name == WORLD_NEVER_NAME;
	want = oracle_judge(world, NULL, 0, &asked);
	seen[got.reason]++;
	if (!world_agrees(world, &want, &got))
		return false;
	return outcome ==
	    ((want.reason == REASON_ALLOWED) == allowed ? REPLAY_SAME
		    : allowed                           ? REPLAY_BREAKS
							: REPLAY_OPENS);
}

static bool
questions_agree(struct world *world, const struct world_question *q)
{
	struct query_row row = {.kind = QUERY_DNS,
	    .count = 1,
	    .proto = IPPROTO_UDP,
	    .dport = 53,
	    .name = text_of(world_names[q->name]),
	    .verdict = VERDICT_ALLOWED,
	    .reason = REASON_ALLOWED};
	struct oracle_answer want = oracle_dns(world, q->name);
	struct history_target target;
	struct judgement got;

	if (replay_row(world->policy, &row, clock_real_us(), &target, &got) == REPLAY_LEFT_OUT)
		return q->name == WORLD_NEVER_NAME;
	return world_agrees(world, &want, &got);
}

static struct world_question
question_make(bool dns)
{
	struct world_question q = {.addr = world_below(WORLD_ADDRS_OPEN),
	    .proto = world_below(4) == 0 ? IPPROTO_UDP : IPPROTO_TCP,
	    .port = world_ports[world_below(4)],
	    .naming = world_below(3) == 0 ? VERDICT_UNPROVEN : VERDICT_PROVEN,
	    .name = world_below(WORLD_COUNT(world_names)),
	    .ech = world_below(2) == 0,
	    .unplaced = world_below(4) == 0,
	    .pardoned = true};

	if (dns)
		return q;
	if (world_below(5) == 0)
		q.name = SIZE_MAX;
	if (q.name == SIZE_MAX)
		q.naming = VERDICT_UNPROVEN;
	/* A refusal for want of a place counts as one again. */
	if (!q.ech && world_below(4) == 0)
		q.pardoned = false;
	return q;
}

static size_t
worlds_replay(size_t worlds, size_t *ret_disagreed)
{
	static struct world world;
	size_t asked = 0;

	for (size_t w = 0; w < worlds; w++) {
		unsigned int seed = world_seed;

		world_make(&world);
		if (!world_compile(&world))
			continue;
		for (size_t i = 0; i < RECORDS; i++) {
			bool (*agrees)(struct world *, const struct world_question *) =
			    i % 5 == 0 ? questions_agree : replay_agrees;
			struct world_question q = question_make(i % 5 == 0);

			asked++;
			if (agrees(&world, &q))
				continue;
			if (ret_disagreed != NULL) {
				(*ret_disagreed)++;
				continue;
			}
			world_shrink(&world, agrees, &q);
			(void)agrees(&world, &q);
			world_show(&world, &q, seed);
			fail_msg("replay: %s", world_said);
		}
		world_free(&world);
	}
	return asked;
}

static void
replay_agrees_with_the_manual(void **state)
{
	(void)state;
	world_seed = world_first_seed();
	world_mistake = WORLD_RIGHT;
	print_message("%zu records\n", worlds_replay(world_many(), NULL));
	/* The worlds test something. */
	assert_true(seen[REASON_ALLOWED] > 0 && seen[REASON_NO_RULE] > 0 && seen[REASON_RULE_DENY] > 0);
	assert_true(seen[REASON_EXPIRED] > 0 && seen[REASON_PLACE_UNKNOWN] > 0 && seen[REASON_NOT_LEASED] > 0);
	assert_true(seen[REASON_SNI_MISMATCH] > 0 && seen[REASON_HOST_MISMATCH] > 0);
}

/* Each mistake in the oracle that a record can show is noticed. */
static void
a_wrong_precedence_is_told_apart(void **state)
{
	static const enum world_mistake mistakes[] = {
	    WORLD_ENDED_ADDRESS_FORGOTTEN, WORLD_ADDRESS_BEATS_NAME, WORLD_ADDRESS_BEFORE_LEASE};

	(void)state;
	for (size_t i = 0; i < WORLD_COUNT(mistakes); i++) {
		size_t disagreed = 0;

		world_seed = WORLD_SEED;
		world_mistake = mistakes[i];
		(void)worlds_replay(60, &disagreed);
		print_message("mistake %d: %zu disagreements\n", (int)mistakes[i], disagreed);
		assert_true(disagreed > 0);
	}
	world_mistake = WORLD_RIGHT;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replay_agrees_with_the_manual),
	    cmocka_unit_test(a_wrong_precedence_is_told_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
