/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What somebody put into the file beside its rows: the writer is not led by it, says so, and makes anew what it can. */
#include "audit/store/schema.h"
#include "audit/store/schema_check.h"

#include "audit_fixture.h"

static void
tamper(const char *sql)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

static const char *
difference(void)
{
	static char what[SCHEMA_CHECK_TEXT_MAX];
	sqlite3 *db, *reference;
	struct error err;
	bool table;

	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	reference = schema_check_reference(&err);
	assert_non_null(reference);
	assert_int_equal(schema_check(db, reference, what, &table), SQLITE_OK);
	if (what[0] == '\0')
		assert_int_equal(schema_check_words(db, reference, what), SQLITE_OK);
	sqlite3_close(reference);
	sqlite3_close(db);
	return what;
}

static void
test_what_postern_makes_is_as_it_makes_it(void **state)
{
	struct store_opening opening;

	(void)state;
	store_close(fixture_open(&opening));
	assert_string_equal(difference(), "");
	assert_string_equal(opening.changed, "");
	store_close(fixture_open(&opening));
	assert_string_equal(opening.changed, "");
}

static void
test_what_holds_no_rows_is_made_anew(void **state)
{
	static const struct {
		const char *sql, *what;
	} cases[] = {
	    {"DROP VIEW v_log; CREATE VIEW v_log AS SELECT 1", "view v_log is not as postern makes it"},
	    {"DROP VIEW v_connections", "view v_connections is missing"},
	    {"DROP INDEX connections_ts; CREATE INDEX connections_ts ON connections (ts) WHERE name IS NULL",
		"index connections_ts is not as postern makes it"},
	    {"CREATE UNIQUE INDEX one ON connections (name)", "index one is not one that postern makes"},
	    {"CREATE VIEW more AS SELECT 1", "view more is not one that postern makes"},
	    {"CREATE TRIGGER \"a\"\"b\" AFTER INSERT ON connections BEGIN DELETE FROM connections; END",
		"trigger a\"b is not one that postern makes"},
	};
	struct store_opening opening;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_close(fixture_open(NULL));
		tamper(cases[i].sql);
		assert_string_equal(difference(), cases[i].what);
		store_close(fixture_open(&opening));
		assert_string_equal(opening.changed, cases[i].what);
		assert_false(opening.replaced);
		assert_string_equal(difference(), "");
		fixture_shell("rm -f \"$DB\"*");
	}
}

/* A table that is none of ours may be somebody's notes: it stays, and is told of. */
static void
test_a_table_of_somebody_else_stays(void **state)
{
	struct store_opening opening;

	(void)state;
	store_close(fixture_open(NULL));
	tamper("CREATE TABLE notes (text); INSERT INTO notes VALUES ('x')");
	store_close(fixture_open(&opening));
	assert_string_equal(opening.changed, "table notes is not one that postern makes");
	assert_int_equal(fixture_integer("SELECT count(*) FROM notes"), 1);
}

/* One of ours with another shape may lose rows without a word: it is set aside. */
static void
test_a_table_of_another_shape_is_set_aside(void **state)
{
	static const char *const cases[] = {
	    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, 'detail TEXT ', "
	    "'detail TEXT CHECK (1)') WHERE name = 'events'",
	    "ALTER TABLE dns ADD COLUMN more TEXT",
	    "ALTER TABLE dns RENAME TO dns_rows; CREATE VIEW dns AS SELECT * FROM dns_rows",
	    "DROP TABLE accounts; CREATE TABLE accounts (id INTEGER PRIMARY KEY, sandbox_id UNIQUE ON CONFLICT IGNORE)",
	    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = sql || ' ' || '-- STRICT' WHERE name = 'dns'; "
	    "UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', ')') WHERE name = 'events'",
	};
	struct store_opening opening;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store_close(fixture_open(NULL));
		tamper(cases[i]);
		store_close(fixture_open(&opening));
		if (!opening.replaced)
			fail_msg("not set aside after %s", cases[i]);
		assert_non_null(strstr(opening.why, "table "));
		fixture_shell("rm -f \"$DB\"*");
	}
}

/* A row is linked as it is after the insert: nobody may come between. */
static void
test_a_trigger_does_nothing(void **state)
{
	struct record record = fixture_flow(1, "evil.example");
	struct store *store = fixture_open(NULL);

	(void)state;
	tamper("CREATE TRIGGER a AFTER INSERT ON connections BEGIN UPDATE connections SET name = 'good.example'; END;"
	       "CREATE TRIGGER b BEFORE INSERT ON dns BEGIN SELECT raise(IGNORE); END");
	fixture_add(store, &record);
	record = fixture_dns(2, "evil.example", 12);
	fixture_add(store, &record);
	fixture_commit(store);
	store_close(store);
	assert_string_equal(fixture_text("SELECT name FROM connections"), "evil.example");
	assert_int_equal(fixture_integer("SELECT count(*) FROM dns"), 1);
}

#define SCHEMA_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    SCHEMA_TEST(test_what_postern_makes_is_as_it_makes_it),
	    SCHEMA_TEST(test_what_holds_no_rows_is_made_anew),
	    SCHEMA_TEST(test_a_table_of_somebody_else_stays),
	    SCHEMA_TEST(test_a_table_of_another_shape_is_set_aside),
	    SCHEMA_TEST(test_a_trigger_does_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
