/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What came in and what is on record, through the real recorder, aggregate and account. */
#include "tests/unit/gateway/gateway_far_end.h"

#include "gateway/path/count/aggregate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* Sequences tried, and steps of one. */
#define SEQUENCES 20
#define STEPS 400
#define OPEN_MAX 64

struct fixture {
	struct far_end *far;
	struct sandbox sandbox;
	struct aggregate aggregate;
	uint64_t open[OPEN_MAX]; /* connections that are allowed and not closed */
	size_t open_count;
	size_t undecided; /* came in, no record yet */
};

static unsigned int seed;

static unsigned int
pick(unsigned int below)
{
	seed = seed * 1103515245u + 12345u;
	return (seed >> 16) % below;
}

static void
fixture_open(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->far = far_end_new();
	f->sandbox.gateway = &f->far->gateway;
	f->sandbox.id = 4711;
	snprintf(f->sandbox.name, sizeof(f->sandbox.name), "task");
	far_end_account(f->far, &f->sandbox);
	aggregate_init(&f->aggregate, f->far->gateway.loop, f->sandbox.balance, 4);
}

/* What was not allowed says why. */
static uint8_t
reason_of(enum verdict verdict)
{
	return verdict == VERDICT_ALLOWED ? REASON_ALLOWED : REASON_NO_RULE;
}

static struct record
flow_of(struct fixture *f, enum verdict verdict)
{
	struct record record = {.kind = RECORD_FLOW_OPEN};

	record.flow = (struct record_flow){.id = recorder_id(&f->far->gateway.recorder),
	    .sandbox = f->sandbox.id,
	    .ts_us = clock_real_us(),
	    .count = 1,
	    .verdict = (uint8_t)verdict,
	    .reason = reason_of(verdict),
	    .end = verdict == VERDICT_ALLOWED ? END_OPEN : END_REFUSED};
	return record;
}

/* A connection that came in gets its record. */
static void
decide(struct fixture *f)
{
	enum verdict verdict = (enum verdict)pick(VERDICT_MAX);
	struct record record;

	if (f->undecided == 0)
		return;
	if (verdict == VERDICT_ALLOWED && f->open_count == OPEN_MAX)
		verdict = VERDICT_LIMITED;
	record = flow_of(f, verdict);
	assert_int_equal(balance_send(f->sandbox.balance, &record, 0, NULL), 0);
	f->undecided--;
	if (verdict == VERDICT_ALLOWED)
		f->open[f->open_count++] = record.flow.id;
}

static void
close_one(struct fixture *f, enum verdict verdict)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE};
	size_t which;

	if (f->open_count == 0)
		return;
	which = pick((unsigned int)f->open_count);
	record.close = (struct record_close){.id = f->open[which],
	    .ts_us = clock_real_us(),
	    .end = END_FIN,
	    .verdict = (uint8_t)verdict,
	    .reason = reason_of(verdict)};
	f->open[which] = f->open[--f->open_count];
	assert_int_equal(balance_send(f->sandbox.balance, &record, 0, NULL), 0);
}

static void
query(struct fixture *f)
{
	struct record record = {.kind = RECORD_DNS};
	enum verdict verdict = (enum verdict)pick(VERDICT_MAX);

	record.dns = (struct record_dns){.id = recorder_id(&f->far->gateway.recorder),
	    .sandbox = f->sandbox.id,
	    .ts_us = clock_real_us(),
	    .count = 1 + pick(500),
	    .verdict = (uint8_t)verdict,
	    .reason = reason_of(verdict)};
	balance_arrive(f->sandbox.balance, RECORD_ATTEMPT_DNS, record.dns.count);
	assert_int_equal(balance_send(f->sandbox.balance, &record, 0, NULL), 0);
}

/* Packets that the kernel refused, or (relay) a datagram that came in as the start of a flow. */
static void
refuse(struct fixture *f, bool relay)
{
	uint64_t packets = relay ? 1 : 1 + pick(1000);
	struct aggregate_key key = {.class = (uint8_t)pick(3), .dport = (uint16_t)pick(8)};
	struct record record = flow_of(f, key.class == 0 ? VERDICT_DENIED : VERDICT_LIMITED);

	balance_arrive(f->sandbox.balance, relay ? RECORD_ATTEMPT_CONNECTION : RECORD_ATTEMPT_REFUSED, packets);
	if (relay)
		balance_reclass(f->sandbox.balance, RECORD_ATTEMPT_CONNECTION, RECORD_ATTEMPT_REFUSED);
	if (!aggregate_bump(&f->aggregate, &key, packets))
		assert_int_equal(aggregate_open(&f->aggregate, &key, &record.flow, packets), 0);
}

static void
auditor_comes_or_goes(struct fixture *f)
{
	if (ipc_is_open(&f->far->auditor))
		ipc_close(&f->far->auditor);
	else
		far_end_auditor(f->far);
	far_end_settle(f->far);
}

static void
step(struct fixture *f)
{
	switch (pick(16)) {
	case 0:
	case 1:
	case 2:
		balance_arrive(f->sandbox.balance, RECORD_ATTEMPT_CONNECTION, 1);
		f->undecided++;
		break;
	case 3:
	case 4:
	case 5:
		decide(f);
		break;
	case 6:
	case 7:
		close_one(f, VERDICT_ALLOWED);
		break;
	case 8:
		close_one(f, VERDICT_FAILED);
		break;
	case 9:
	case 10:
		query(f);
		break;
	case 11:
	case 12:
		refuse(f, false);
		break;
	case 13:
		refuse(f, true);
		break;
	case 14:
		far_end_pass(f->far, pick(4000));
		break;
	case 15:
		if (pick(8) == 0)
			auditor_comes_or_goes(f);
		break;
	}
}

/* Every account on the way says what the rows before it said, and no more than came in. */
static void
check_accounts(struct fixture *f)
{
	size_t all = f->far->record_count;
	int64_t last_us = 0;

	for (size_t i = 0; i < all; i++) {
		const struct record_account *account = &f->far->records[i].account;
		uint64_t book[RECORD_ATTEMPT_MAX][VERDICT_MAX];

		if (f->far->records[i].kind != RECORD_ACCOUNT)
			continue;
		f->far->record_count = i;
		far_end_book(f->far, f->sandbox.id, book);
		f->far->record_count = all;
		for (int kind = 0; kind < RECORD_ATTEMPT_MAX; kind++) {
			uint64_t sum = 0;

			for (int verdict = 0; verdict < VERDICT_MAX; verdict++) {
				assert_int_equal(account->recorded[kind][verdict], book[kind][verdict]);
				sum += book[kind][verdict];
			}
			assert_true(account->attempts[kind] >= sum);
		}
		/* Not more often than one in BALANCE_SEND_MS, but for the last. */
		if (account->final == 0 && last_us != 0)
			assert_true(account->ts_us - last_us >= (BALANCE_SEND_MS - 1000) * 1000);
		last_us = account->ts_us;
	}
}

/* The sum of all sandboxes, here one, is the same. */
static void
check_sum(const struct fixture *f)
{
	const struct balance_queue *balances = &f->far->gateway.balances;

	assert_memory_equal(balances->recorded, f->sandbox.balance->counts.recorded, sizeof(balances->recorded));
	assert_int_equal(balances->open, f->open_count);
}

/* The auditor of the far end takes again what it had not acknowledged: it acknowledges at once, so that is little. Rows
 * that came twice are counted once. */
static void
drop_repeated(struct far_end *far)
{
	uint64_t seen = 0;
	size_t kept = 0;

	for (size_t i = 0; i < far->record_count; i++) {
		if (far->records[i].seq <= seen)
			continue;
		seen = far->records[i].seq;
		far->records[kept++] = far->records[i];
	}
	far->record_count = kept;
}

static void
case_F_12_random_traffic_adds_up(void **state)
{
	(void)state;
	for (unsigned int sequence = 1; sequence <= SEQUENCES; sequence++) {
		struct fixture f;

		seed = sequence;
		fixture_open(&f);
		metrics_start(&f.far->gateway); /* the far end finds that none falls */
		for (int i = 0; i < STEPS; i++) {
			step(&f);
			check_sum(&f);
		}
		/* Detach. */
		while (f.undecided > 0)
			decide(&f);
		while (f.open_count > 0)
			close_one(&f, VERDICT_ALLOWED);
		aggregate_close(&f.aggregate);
		if (!ipc_is_open(&f.far->auditor))
			far_end_auditor(f.far);
		balance_release(f.sandbox.balance);
		f.sandbox.balance = NULL;
		far_end_settle(f.far);
		drop_repeated(f.far);
		far_end_account_end(f.far, &f.sandbox);
		check_accounts(&f);
		far_end_free(f.far);
	}
}

/* A record that finds no room is missing in the account: it came in, and is not on record. */
static void
test_what_is_lost_shows(void **state)
{
	struct fixture f;
	struct record record;
	const struct record *last = NULL;
	size_t room;

	(void)state;
	fixture_open(&f);
	balance_arrive(f.sandbox.balance, RECORD_ATTEMPT_CONNECTION, 2);
	record = flow_of(&f, VERDICT_DENIED);
	assert_int_equal(balance_send(f.sandbox.balance, &record, 0, NULL), 0);
	room = f.far->gateway.recorder.queue_len;
	f.far->gateway.recorder.queue_len = RECORDER_MAX;
	record = flow_of(&f, VERDICT_DENIED);
	assert_int_equal(balance_send(f.sandbox.balance, &record, 0, NULL), -ENOBUFS);
	f.far->gateway.recorder.queue_len = room;
	aggregate_close(&f.aggregate);
	balance_release(f.sandbox.balance);
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_ACCOUNT, &last), 1);
	assert_int_equal(last->lost, 1); /* and the numbers of the records say so, too */
	assert_int_equal(last->account.final, 1);
	assert_int_equal(last->account.attempts[RECORD_ATTEMPT_CONNECTION], 2);
	assert_int_equal(last->account.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_DENIED], 1);
	far_end_free(f.far);
}

/* Many sandboxes at once: a bounded number in one round, none forgotten, none without a change. */
static void
test_accounts_of_many_sandboxes(void **state)
{
	enum { SANDBOXES = 3 * BALANCE_BATCH_MAX };
	struct far_end *far = far_end_new();
	struct sandbox *sandboxes = calloc(SANDBOXES, sizeof(*sandboxes));

	(void)state;
	assert_non_null(sandboxes);
	for (size_t i = 0; i < SANDBOXES; i++) {
		sandboxes[i].gateway = &far->gateway;
		sandboxes[i].id = (int64_t)i + 1;
		assert_int_equal(balance_attach(&sandboxes[i]), 0);
	}
	/* Each at its beginning. */
	far_end_settle(far);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), SANDBOXES);
	far->record_count = 0;
	for (size_t i = 0; i < SANDBOXES; i++)
		balance_reclass(sandboxes[i].balance, RECORD_ATTEMPT_DNS, RECORD_ATTEMPT_DNS);
	far_end_pass(far, BALANCE_SEND_MS - 500);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), 0);
	clock_skew_ms(far->skew_ms += 600);
	loop_round(far->gateway.loop, 0);
	assert_int_equal(far->gateway.recorder.next_seq, 1 + SANDBOXES + BALANCE_BATCH_MAX);
	far_end_pass(far, 1000);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), SANDBOXES);
	balance_reclass(sandboxes[5].balance, RECORD_ATTEMPT_DNS, RECORD_ATTEMPT_DNS);
	far_end_pass(far, 5 * BALANCE_SEND_MS);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), SANDBOXES + 1);
	/* An end in the midst of the queue. */
	for (size_t i = 0; i < SANDBOXES; i++)
		balance_reclass(sandboxes[i].balance, RECORD_ATTEMPT_DNS, RECORD_ATTEMPT_DNS);
	for (size_t i = 0; i < SANDBOXES; i += 2)
		balance_release(sandboxes[i].balance);
	balance_release(sandboxes[SANDBOXES - 1].balance);
	far_end_pass(far, 2 * BALANCE_SEND_MS);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), SANDBOXES + 1 + SANDBOXES);
	for (size_t i = 1; i < SANDBOXES - 1; i += 2)
		balance_release(sandboxes[i].balance);
	assert_true(TAILQ_EMPTY(&far->gateway.balances.waiting));
	far_end_free(far);
	free(sandboxes);
}

/* Something happened, that leaves everything as it was. */
static void
change(struct sandbox *sandbox)
{
	balance_reclass(sandbox->balance, RECORD_ATTEMPT_DNS, RECORD_ATTEMPT_DNS);
}

/* One that has to wait for the auditor keeps no other one waiting. */
static void
test_an_account_put_off_delays_no_other(void **state)
{
	struct far_end *far = far_end_new();
	struct sandbox first = {.gateway = &far->gateway, .id = 1}, second = {.gateway = &far->gateway, .id = 2};
	const struct record *last = NULL;

	(void)state;
	far_end_account(far, &first);
	far_end_account(far, &second);
	change(&first);
	far_end_pass(far, BALANCE_SEND_MS / 2);
	change(&second);
	ipc_close(&far->auditor);
	far_end_pass(far, BALANCE_SEND_MS / 2 + 100); /* the first one is due */
	far_end_auditor(far);
	far_end_pass(far, BALANCE_SEND_MS / 2);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, &last), 1);
	assert_int_equal(last->account.sandbox, 2);
	far_end_pass(far, BALANCE_SEND_MS / 2);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, NULL), 2);
	balance_release(first.balance);
	balance_release(second.balance);
	far_end_free(far);
}

/* The log keeps the later of two: the final one is that, whatever the clock says by then. */
static void
test_accounts_rise_though_the_clock_falls(void **state)
{
	struct far_end *far = far_end_new();
	struct sandbox sandbox = {.gateway = &far->gateway, .id = 1};
	const struct record *last = NULL;
	int64_t before_us;

	(void)state;
	far_end_account(far, &sandbox);
	change(&sandbox);
	far_end_pass(far, BALANCE_SEND_MS + 100);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, &last), 1);
	before_us = last->account.ts_us;
	clock_skew_ms(far->skew_ms -= 3600000);
	balance_release(sandbox.balance);
	far_end_settle(far);
	assert_int_equal(far_end_count(far, RECORD_ACCOUNT, &last), 2);
	assert_int_equal(last->account.final, 1);
	assert_true(last->account.ts_us > before_us);
	far_end_free(far);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_F_12_random_traffic_adds_up),
	    cmocka_unit_test(test_what_is_lost_shows),
	    cmocka_unit_test(test_accounts_of_many_sandboxes),
	    cmocka_unit_test(test_an_account_put_off_delays_no_other),
	    cmocka_unit_test(test_accounts_rise_though_the_clock_falls),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
