/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chain, against figures that another program made from the description in postern-audit(5); and what the writer
 * links. */
#include "audit/seal/chain.h"
#include "audit/columns.h"

#include "audit/store/schema.h"
#include "audit_fixture.h"

static const char *
hex(const uint8_t digest[CHAIN_DIGEST])
{
	static char text[2 * CHAIN_DIGEST + 1];

	for (size_t i = 0; i < CHAIN_DIGEST; i++)
		snprintf(text + 2 * i, 3, "%02x", digest[i]);
	return text;
}

static void
test_heads(void **state)
{
	struct chain_link link = {.seq = 1, .table = COLUMNS_EVENTS, .id = -2};
	struct chain *chain = chain_new();
	uint8_t head[CHAIN_DIGEST];

	(void)state;
	memset(link.digest, 0x11, sizeof(link.digest));
	chain_begin(chain, "0123456789abcdef0123456789abcdef", head);
	assert_string_equal(hex(head), "3eb1bd439947eb762998e566ccc2e099c791118b2f40579cc4f7da2b5061b7f9");
	chain_advance(chain, head, &link);
	assert_string_equal(hex(head), "6847300a524d97a1ca6193b99ca9be89151a7289f59d1e4115879520fef10499");
	link.seq = INT64_MAX;
	chain_advance(chain, head, &link);
	assert_string_equal(hex(head), "a5486fe703548a9f7630261706dd080f006f78aea5506b3b6114b91837bef8f6");
	chain_free(chain);
}

static void
digest_of(const char *sql, uint8_t ret_digest[CHAIN_DIGEST])
{
	struct chain *chain = chain_new();
	sqlite3_stmt *stmt;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(":memory:", &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(chain_digest(chain, &(struct rows){.stmt = stmt}, ret_digest), SQLITE_OK);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	chain_free(chain);
}

static void
test_digest_of_a_row(void **state)
{
	uint8_t digest[CHAIN_DIGEST];

	(void)state;
	digest_of("SELECT 1, -5, NULL, 'abc', x'00ff', ''", digest);
	assert_string_equal(hex(digest), "773465bae9844467916099191afb9a32cf9fd66b5d5007650cdb694c76137647");
}

/* No two different rows have one digest because their bytes run into each other, or their types are not looked at. */
static void
test_rows_that_look_alike(void **state)
{
	static const char *const rows[] = {"SELECT 'ab', 'c'", "SELECT 'a', 'bc'", "SELECT 'abc', ''",
	    "SELECT 'abc', NULL", "SELECT 'abc'", "SELECT x'616263'", "SELECT 'abc', NULL, NULL", "SELECT 1",
	    "SELECT '1'", "SELECT 1.0", "SELECT NULL", "SELECT 0", "SELECT ''", "SELECT x''"};
	uint8_t digests[sizeof(rows) / sizeof(rows[0])][CHAIN_DIGEST];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		digest_of(rows[i], digests[i]);
		for (size_t j = 0; j < i; j++)
			assert_memory_not_equal(digests[i], digests[j], CHAIN_DIGEST);
	}
}

/* A column that no digest takes in could be changed unseen. */
static void
test_all_columns_of_each_table_are_in_the_digest(void **state)
{
	struct store *store = fixture_open(NULL);
	char list[COLUMNS_TEXT_MAX];

	(void)state;
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		char sql[256];
		int64_t columns = 1;

		for (const char *c = columns_chained(table, list); *c != '\0'; c++)
			columns += *c == ',';
		snprintf(sql, sizeof(sql), "SELECT count(*) FROM pragma_table_info('%s')", columns_table_name(table));
		assert_int_equal(fixture_integer(sql), columns);
	}
	assert_null(columns_table_name(0));
	assert_null(columns_table_name(COLUMNS_TABLE_MAX));
	assert_null(columns_chained(COLUMNS_TABLE_MAX, list));
	store_close(store);
}

static void
test_what_is_done_twice_is_linked_once(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_flow(1, "a.example");

	(void)state;
	fixture_add(store, &record);
	fixture_add(store, &record);
	fixture_commit(store);
	fixture_add(store, &record);
	record = fixture_close(1);
	fixture_add(store, &record);
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM chain"), 2);
	assert_int_equal(fixture_integer("SELECT max(seq) FROM chain"), 2);
	store_close(store);
}

#define CHAIN_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_heads),
	    cmocka_unit_test(test_digest_of_a_row),
	    cmocka_unit_test(test_rows_that_look_alike),
	    CHAIN_TEST(test_all_columns_of_each_table_are_in_the_digest),
	    CHAIN_TEST(test_what_is_done_twice_is_linked_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
