/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/rows.h"
#include "tests/unit/audit/audit_fixture.h"

#include <string.h>

static sqlite3 *db;

static int
open_memory(void **state)
{
	(void)state;
	return sqlite3_open(":memory:", &db);
}

static int
close_memory(void **state)
{
	(void)state;
	return sqlite3_close(db);
}

static void
test_columns(void **state)
{
	uint8_t bytes[2] = {0};
	struct error err;
	struct rows rows;
	size_t len;

	(void)state;
	rows_prepare(&rows, db, "SELECT ?1, :name, NULL, 'abc', x'00ff', x'', 1.5", "log", &err);
	rows_set_integer(&rows, 1, INT64_MIN);
	rows_set_named(&rows, ":name", 7);
	rows_set_named(&rows, ":absent", 8);
	assert_true(rows_next(&rows));
	assert_int_equal(rows_count(&rows), 7);
	assert_int_equal(rows_integer(&rows, 0), INT64_MIN);
	assert_int_equal(rows_integer(&rows, 1), 7);
	assert_string_equal(rows_text(&rows, 1, NULL), "7");
	assert_int_equal(rows_type(&rows, 2), ROWS_NULL);
	assert_string_equal(rows_text(&rows, 2, &len), "");
	assert_int_equal(len, 0);
	assert_string_equal(rows_text(&rows, 3, &len), "abc");
	assert_int_equal(len, 3);
	assert_false(rows_bytes(&rows, 3, bytes, sizeof(bytes)));
	assert_true(rows_bytes(&rows, 4, bytes, sizeof(bytes)));
	assert_int_equal(bytes[1], 0xff);
	assert_int_equal(rows_type(&rows, 5), ROWS_BLOB);
	assert_string_equal(rows_text(&rows, 5, &len), "");
	assert_string_equal(rows_text(&rows, 6, &len), "1.5");
	assert_false(rows_next(&rows));
	assert_int_equal(rows_finish(&rows), 0);
}

static void
test_again(void **state)
{
	struct rows rows;

	(void)state;
	rows_prepare(&rows, db, "SELECT 1 WHERE ?1 = 'a'", "log", NULL);
	rows_set_text(&rows, 1, "a");
	assert_true(rows_next(&rows));
	rows_again(&rows);
	assert_true(rows_next(&rows));
	rows_again(&rows);
	rows_set_text(&rows, 1, NULL);
	assert_false(rows_next(&rows));
	assert_int_equal(rows_finish(&rows), 0);
}

/* Also a statement that could not be prepared can be asked, and the first error is the one reported. */
static void
test_first_error_sticks(void **state)
{
	struct error err = {.code = ERROR_SYSTEM};
	struct rows rows, other;

	(void)state;
	rows_prepare(&rows, db, "SELECT x FROM missing", "the log", &err);
	assert_int_equal(rows.code, SQLITE_ERROR);
	assert_string_equal(err.text, "the log: no such table: missing");
	rows_prepare(&other, db, "SELECT 1", "another", NULL);
	rows_set_integer(&rows, 1, 1);
	rows_set_named(&rows, ":a", 1);
	assert_false(rows_next(&rows));
	assert_int_equal(rows_integer(&rows, 0), 0);
	assert_int_equal(rows_type(&rows, 0), ROWS_NULL);
	rows_again(&rows);
	assert_int_equal(rows_finish(&rows), -1);
	assert_string_equal(err.text, "the log: no such table: missing");
	assert_int_equal(rows_finish(&other), 0);
}

/* An error in the middle ends the rows; without an error object too. */
static void
test_failing_step(void **state)
{
	struct rows rows;

	(void)state;
	rows_prepare(&rows, db, "SELECT abs(column1) FROM (VALUES (1), (-9223372036854775808))", "the log", NULL);
	assert_true(rows_next(&rows));
	assert_false(rows_next(&rows));
	assert_int_not_equal(rows.code, 0);
	rows_again(&rows);
	assert_false(rows_next(&rows));
	assert_int_equal(rows_finish(&rows), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_columns, open_memory, close_memory),
	    cmocka_unit_test_setup_teardown(test_again, open_memory, close_memory),
	    cmocka_unit_test_setup_teardown(test_first_error_sticks, open_memory, close_memory),
	    cmocka_unit_test_setup_teardown(test_failing_step, open_memory, close_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
