/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records of progress: when, of what, and how many at once. */
#include "gateway/path/count/interim.h"
#include "tests/unit/gateway/gateway_far_end.h"

struct counted {
	struct interim interim;
	uint64_t bytes;
	size_t told;
};

static uint64_t
counted_count(struct interim *interim)
{
	return loop_owner(interim, struct counted, interim)->bytes;
}

static void
counted_tell(struct interim *interim)
{
	loop_owner(interim, struct counted, interim)->told++;
}

static void
counted_add(struct far_end *far, struct counted *counted)
{
	counted->interim.count = counted_count;
	counted->interim.tell = counted_tell;
	interim_add(&far->gateway, &counted->interim);
}

static void
only_what_changed_and_once_a_minute(void **state)
{
	struct far_end *far = far_end_new();
	struct counted busy = {.bytes = 0}, idle = {.bytes = 0};

	(void)state;
	counted_add(far, &busy);
	far_end_pass(far, 1000);
	counted_add(far, &idle);
	busy.bytes = 100;
	far_end_pass(far, INTERIM_MS - 3000);
	assert_int_equal(busy.told, 0);
	far_end_pass(far, 3000);
	assert_int_equal(busy.told, 1);
	busy.bytes = 200;
	far_end_pass(far, INTERIM_MS - 3000);
	assert_int_equal(busy.told, 1);
	far_end_pass(far, 4000);
	assert_int_equal(busy.told, 2);
	far_end_pass(far, 3 * INTERIM_MS);
	assert_int_equal(busy.told, 2);
	assert_int_equal(idle.told, 0);
	idle.bytes = 1;
	far_end_pass(far, INTERIM_MS);
	assert_int_equal(idle.told, 1);
	interim_remove(&far->gateway, &busy.interim);
	interim_remove(&far->gateway, &idle.interim);
	far_end_free(far);
}

static void
in_any_order_of_coming_and_going(void **state)
{
	struct far_end *far = far_end_new();
	struct counted all[4] = {{.bytes = 1}, {.bytes = 1}, {.bytes = 1}, {.bytes = 1}};

	(void)state;
	for (size_t i = 0; i < 4; i++)
		counted_add(far, &all[i]);
	counted_add(far, &all[0]); /* is there already */
	interim_remove(&far->gateway, &all[0].interim);
	interim_remove(&far->gateway, &all[0].interim);
	interim_remove(&far->gateway, &all[2].interim);
	far_end_pass(far, INTERIM_MS + 1000);
	assert_int_equal(all[0].told + all[2].told, 0);
	assert_int_equal(all[1].told, 1);
	assert_int_equal(all[3].told, 1);
	interim_remove(&far->gateway, &all[3].interim);
	interim_remove(&far->gateway, &all[1].interim);
	far_end_pass(far, 2 * INTERIM_MS);
	/* Another record of the same owner begins at nothing told. */
	all[1].bytes = 1;
	counted_add(far, &all[1]);
	far_end_pass(far, INTERIM_MS + 1000);
	assert_int_equal(all[1].told, 2);
	interim_remove(&far->gateway, &all[1].interim);
	far_end_free(far);
}

static size_t
told_of(const struct counted *all, size_t count)
{
	size_t told = 0;

	for (size_t i = 0; i < count; i++)
		told += all[i].told;
	return told;
}

/* All due in one moment: a batch a tick, and in the end each of them once. */
static void
many_at_once_take_turns(void **state)
{
	static struct counted all[10 * INTERIM_BATCH];
	const size_t count = sizeof(all) / sizeof(all[0]);
	struct far_end *far = far_end_new();

	(void)state;
	for (size_t i = 0; i < count; i++) {
		all[i] = (struct counted){.bytes = 1};
		counted_add(far, &all[i]);
	}
	clock_skew_ms(INTERIM_MS + 1000);
	assert_int_equal(loop_round(far->gateway.loop, 0), 0);
	assert_int_equal(told_of(all, count), INTERIM_BATCH);
	far->skew_ms = INTERIM_MS + 1000;
	far_end_pass(far, 10000);
	assert_int_equal(told_of(all, count), count);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(all[i].told, 1);
		interim_remove(&far->gateway, &all[i].interim);
	}
	far_end_free(far);
}

/* What is due waits for a log that can be written, and is not forgotten. */
static void
nothing_while_the_recorder_has_much_to_do(void **state)
{
	struct far_end *far = far_end_new();
	struct counted busy = {.bytes = 1};

	(void)state;
	counted_add(far, &busy);
	far->gateway.recorder.writable = false;
	far_end_pass(far, 2 * INTERIM_MS);
	assert_int_equal(busy.told, 0);
	far->gateway.recorder.writable = true;
	far_end_pass(far, INTERIM_RETRY_MS + 1000);
	assert_int_equal(busy.told, 1);
	busy.bytes = 2;
	far->gateway.recorder.queue_len = INTERIM_QUEUE_MAX;
	far_end_pass(far, 2 * INTERIM_MS);
	assert_int_equal(busy.told, 1);
	far->gateway.recorder.queue_len = 0;
	far_end_pass(far, INTERIM_RETRY_MS + 1000);
	assert_int_equal(busy.told, 2);
	interim_remove(&far->gateway, &busy.interim);
	far_end_free(far);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_what_changed_and_once_a_minute),
	    cmocka_unit_test(in_any_order_of_coming_and_going),
	    cmocka_unit_test(many_at_once_take_turns),
	    cmocka_unit_test(nothing_while_the_recorder_has_much_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
