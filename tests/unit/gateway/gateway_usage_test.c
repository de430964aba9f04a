/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What was used: raised and never lowered, bounded, pruned with the policy, and the same at the other end of a channel.
 */
#include "gateway/shared/usage.h"
#include "gateway/path/count/window.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static struct msg_usage_row
row(uint64_t rule, uint64_t uses, uint64_t upload)
{
	return (struct msg_usage_row){.rule = rule, .uses = uses, .upload = upload};
}

static void
rows_are_only_raised(void **state)
{
	static const uint64_t rules[] = {7, 3, 9, 0, 5};
	struct usage_table table = {0};
	struct msg_usage_row one;

	(void)state;
	assert_null(usage_table_find(&table, 7));
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		one = row(rules[i], 2, 20);
		assert_int_equal(usage_table_raise(&table, &one), 1);
		assert_int_equal(usage_table_raise(&table, &one), 0);
	}
	assert_int_equal(table.count, 5);
	for (size_t i = 1; i < table.count; i++)
		assert_true(table.rows[i - 1].rule < table.rows[i].rule);
	/* The larger of each. */
	one = row(9, 1, 30);
	assert_int_equal(usage_table_raise(&table, &one), 1);
	assert_int_equal(usage_table_find(&table, 9)->uses, 2);
	assert_int_equal(usage_table_find(&table, 9)->upload, 30);
	usage_table_free(&table);
	assert_null(table.rows);
}

static void
rows_are_bounded(void **state)
{
	struct usage_table table = {0};
	struct msg_usage_row one;

	(void)state;
	for (uint64_t i = 0; i < USAGE_ROWS_MAX; i++) {
		one = row(i * 7919 % 1000003, 1, 0);
		assert_int_equal(usage_table_raise(&table, &one), 1);
	}
	one = row(UINT64_MAX, 1, 0);
	assert_int_equal(usage_table_raise(&table, &one), -ENOSPC);
	one = row(7919, 2, 0);
	assert_int_equal(usage_table_raise(&table, &one), 1);
	usage_table_free(&table);
}

static struct snapshot *
compiled(const char *const *words)
{
	struct policy policy;
	struct error err;

	policy_init(&policy);
	for (; *words != NULL; words++) {
		struct rule rule;

		assert_int_equal(rule_parse(RULE_ALLOW, *words, &rule, &err), 0);
		rule.uses = 5;
		assert_int_equal(policy_add(&policy, &rule, &err), 0);
	}
	return snapshot_of_own(&policy);
}

static void
rows_live_as_long_as_their_rules(void **state)
{
	static const char *const two[] = {"a.site.com", "b.site.com", NULL};
	static const char *const one[] = {"b.site.com", NULL};
	struct snapshot *before = compiled(two), *after = compiled(one);
	struct usage_table table = {0};
	struct msg_usage_row each;

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		each = row(snapshot_rule_id(before, i), i + 1, 0);
		usage_table_raise(&table, &each);
	}
	each = row(0, 0, 100);
	usage_table_raise(&table, &each);
	assert_false(usage_table_keep(&table, before));
	assert_true(usage_table_keep(&table, after));
	assert_int_equal(table.count, 2);
	assert_int_equal(usage_table_find(&table, 0)->upload, 100);
	assert_int_equal(usage_table_find(&table, snapshot_rule_id(after, 0))->uses, 2);
	usage_table_free(&table);
	snapshot_free(before);
	snapshot_free(after);
}

static struct usage_table arrived;

static bool
arrived_handler(struct ipc *ipc, struct ipc_message *message)
{
	(void)ipc;
	assert_int_equal(message->header.type, MSG_USAGE);
	assert_true(msg_usage_valid(message->body));
	assert_int_equal(((const struct msg_usage *)message->body)->id, 42);
	assert_string_equal(((const struct msg_usage *)message->body)->name, "box");
	assert_true(usage_table_take(&arrived, message->body) >= 0);
	return true;
}

static void
broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	fail_msg("%s", why);
}

static void
all_rows_arrive(void **state)
{
	struct ipc near = {.broken_handler = broken_handler}, far = {.broken_handler = broken_handler};
	struct usage_table table = {0};
	struct loop *loop = loop_new();
	int fds[2];

	(void)state;
	near.self = far.peer = MSG_ROLE_KEEPER;
	near.peer = far.self = MSG_ROLE_CONTROL;
	near.message_handler = far.message_handler = arrived_handler;
	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(ipc_open(&near, loop, fds[0]), 0);
	assert_int_equal(ipc_open(&far, loop, fds[1]), 0);
	for (uint64_t i = 0; i < 3 * MSG_USAGE_MAX + 1; i++) {
		struct msg_usage_row each = row(i, i + 1, i * 2);

		usage_table_raise(&table, &each);
	}
	assert_int_equal(usage_table_send(&table, &near, 42, "box"), 0);
	for (int i = 0; i < 20; i++)
		loop_round(loop, 0);
	assert_int_equal(arrived.count, table.count);
	assert_memory_equal(arrived.rows, table.rows, table.count * sizeof(table.rows[0]));
	usage_table_free(&table);
	usage_table_free(&arrived);
	ipc_close(&near);
	ipc_close(&far);
	loop_free(loop);
}

static void
a_name_that_does_not_end(void **state)
{
	struct msg_usage usage = {.id = 1, .count = 2};

	(void)state;
	assert_true(msg_usage_valid(&usage));
	memset(usage.name, 'x', sizeof(usage.name));
	assert_false(msg_usage_valid(&usage));
}

static void
a_window_slides(void **state)
{
	struct window window;

	(void)state;
	window_init(&window, 60000);
	assert_int_equal(window_count(&window, 1000000), 0);
	for (int i = 0; i < 60; i++)
		window_add(&window, 1000000 + i * 1000);
	assert_int_equal(window_count(&window, 1059999), 60);
	assert_in_range(window_count(&window, 1090000), 30, 32);
	assert_int_equal(window_count(&window, 1121000), 0);
	window_add(&window, 1121000);
	/* A clock that steps back forgets nothing. */
	assert_int_equal(window_count(&window, 1000), 1);
	assert_int_equal(window_count(&window, 1121000 + 3600000), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rows_are_only_raised),
	    cmocka_unit_test(rows_are_bounded),
	    cmocka_unit_test(rows_live_as_long_as_their_rules),
	    cmocka_unit_test(all_rows_arrive),
	    cmocka_unit_test(a_name_that_does_not_end),
	    cmocka_unit_test(a_window_slides),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
