/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a gateway tells of its work as a whole: soon, never less than before, and nothing when there is nothing new. */
#include "tests/unit/gateway/gateway_far_end.h"

#include "gateway/path/count/quota.h"
#include "gateway/path/count/metrics.h"

#include <stdio.h>

struct fixture {
	struct far_end *far;
	struct sandbox sandbox;
	uint64_t record_id;
};

static void
fixture_open(struct fixture *f)
{
	memset(f, 0, sizeof(*f));
	f->far = far_end_new();
	f->sandbox.gateway = &f->far->gateway;
	f->sandbox.id = 4711;
	snprintf(f->sandbox.name, sizeof(f->sandbox.name), "task");
	far_end_account(f->far, &f->sandbox);
	metrics_start(&f->far->gateway);
	far_end_pass(f->far, 2 * METRICS_SEND_MS);
	f->far->told_count = 0;
}

static void
fixture_close(struct fixture *f)
{
	balance_release(f->sandbox.balance);
	far_end_free(f->far);
}

static void
open_one(struct fixture *f)
{
	struct record record = {.kind = RECORD_FLOW_OPEN};

	f->record_id = recorder_id(&f->far->gateway.recorder);
	record.flow = (struct record_flow){
	    .id = f->record_id, .sandbox = f->sandbox.id, .ts_us = clock_real_us(), .count = 1, .end = END_OPEN};
	assert_int_equal(balance_send(f->sandbox.balance, &record, 0, NULL), 0);
}

static void
close_one(struct fixture *f, enum verdict verdict)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE};

	record.close = (struct record_close){.id = f->record_id,
	    .ts_us = clock_real_us(),
	    .end = END_FIN,
	    .verdict = (uint8_t)verdict,
	    .reason = verdict == VERDICT_ALLOWED ? REASON_ALLOWED : REASON_UPSTREAM_ERROR};
	assert_int_equal(balance_send(f->sandbox.balance, &record, 0, NULL), 0);
}

static void
test_an_attempt_counts_when_its_verdict_is_final(void **state)
{
	struct fixture f;
	const uint64_t *connections;

	(void)state;
	fixture_open(&f);
	connections = f.far->told.recorded[RECORD_ATTEMPT_CONNECTION];
	open_one(&f);
	far_end_pass(f.far, METRICS_SEND_MS);
	assert_int_equal(f.far->told.open, 1);
	assert_int_equal(connections[VERDICT_ALLOWED], 0);
	close_one(&f, VERDICT_FAILED);
	far_end_pass(f.far, METRICS_SEND_MS);
	assert_int_equal(f.far->told.open, 0);
	assert_int_equal(connections[VERDICT_ALLOWED], 0);
	assert_int_equal(connections[VERDICT_FAILED], 1);
	open_one(&f);
	close_one(&f, VERDICT_ALLOWED);
	far_end_pass(f.far, METRICS_SEND_MS);
	assert_int_equal(connections[VERDICT_ALLOWED], 1);
	fixture_close(&f);
}

static void
test_a_gateway_at_rest_says_nothing(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f);
	far_end_pass(f.far, 60 * METRICS_SEND_MS);
	assert_int_equal(f.far->told_count, 0);
	assert_false(loop_timer_armed(&f.far->gateway.metrics.timer));
	/* Any number of changes is told once. */
	for (int i = 0; i < 1000; i++)
		metrics_add_bytes(&f.far->gateway, 1, 2);
	far_end_pass(f.far, METRICS_SEND_MS);
	assert_int_equal(f.far->told_count, 1);
	assert_int_equal(f.far->told.upload, 1000);
	assert_int_equal(f.far->told.download, 2000);
	far_end_pass(f.far, 60 * METRICS_SEND_MS);
	assert_int_equal(f.far->told_count, 1);
	assert_false(loop_timer_armed(&f.far->gateway.metrics.timer));
	fixture_close(&f);
}

/* Nobody touches an account when the auditor is back: it is told all the same. */
static void
test_records_wait_and_then_do_not(void **state)
{
	struct fixture f;

	(void)state;
	fixture_open(&f);
	ipc_close(&f.far->auditor);
	open_one(&f);
	far_end_pass(f.far, 2 * METRICS_SEND_MS);
	assert_int_equal(f.far->told.waiting, f.far->gateway.recorder.queue_len);
	assert_true(f.far->told.waiting > 0);
	far_end_pass(f.far, 60 * METRICS_SEND_MS);
	far_end_auditor(f.far);
	far_end_pass(f.far, 3 * METRICS_SEND_MS);
	assert_int_equal(f.far->told.waiting, 0);
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_an_attempt_counts_when_its_verdict_is_final),
	    cmocka_unit_test(test_a_gateway_at_rest_says_nothing),
	    cmocka_unit_test(test_records_wait_and_then_do_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
