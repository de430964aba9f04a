/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A log of schema version 1 (audit_schema_1.sql, as it was made then): all of it is still there, and verifies from then
 * on. */
#include "audit/store/schema.h"

#include "audit/seal/verify.h"
#include "audit_fixture.h"

static struct seal_signer signer;

static int
migrate_setup(void **state)
{
	char path[PATH_MAX];
	struct error err;
	bool made;

	if (fixture_setup(state) < 0)
		return -1;
	fixture_shell("sqlite3 \"$DB\" < tests/unit/audit/audit_schema_1.sql > /dev/null");
	snprintf(path, sizeof(path), "%s/seal.key", fixture_dir);
	return seal_signer_load(&signer, path, &made, &err);
}

static int
migrate_teardown(void **state)
{
	seal_signer_free(&signer);
	return fixture_teardown(state);
}

static void
migrate_run(struct verify_result *ret_result)
{
	const struct verify_options options = {.keys = &signer.key, .key_count = 1};
	struct error err;

	if (verify_run(fixture_db, &options, ret_result, &err) < 0)
		fail_msg("verify_run: %s", err.text);
}

static void
migrate_verify(uint64_t links)
{
	struct verify_result result;

	migrate_run(&result);
	if (result.fault_count > 0)
		fail_msg("number %lld: %s", (long long)result.first.seq, result.first.text);
	assert_int_equal(result.links, links);
}

/* As fixture_text, for what is longer. */
static void
read_text(const char *sql, char *ret_text, size_t size)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_true((size_t)sqlite3_column_bytes(stmt, 0) < size);
	snprintf(ret_text, size, "%s", sqlite3_column_text(stmt, 0));
	sqlite3_finalize(stmt);
	sqlite3_close(db);
}

static void
test_all_rows_are_kept(void **state)
{
	struct store_opening opening;
	struct store *store = fixture_open(&opening);

	(void)state;
	assert_false(opening.created);
	assert_false(opening.replaced);
	assert_int_equal(fixture_integer("PRAGMA user_version"), SCHEMA_VERSION);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 4);
	assert_int_equal(fixture_integer("SELECT count(*) FROM dns"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM events"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), 2);
	assert_string_equal(
	    fixture_text("SELECT sandbox || ' ' || name || ' ' || rule || ' ' || bytes_in || ' ' || alpn || ' ' || end "
			 "FROM v_connections ORDER BY id LIMIT 1"),
	    "task1 news.lab-site.org allow news.lab-site.org (v1.yaml:3) 4321 h2,http/1.1 fin");
	assert_string_equal(
	    fixture_text("SELECT name FROM v_connections WHERE verdict = 'denied' ORDER BY id LIMIT 1"), "hex:C3A9");
	assert_string_equal(fixture_text("SELECT answers FROM v_dns ORDER BY id LIMIT 1"), "[\"A 45.45.45.10\"]");
	/* Sandboxes had no numbers; the others keep theirs. */
	assert_string_equal(fixture_text("SELECT group_concat(seq) FROM (SELECT seq FROM chain ORDER BY seq)"),
	    "1,2,3,4,5,7,9,10,11,12");
	assert_int_equal(fixture_integer("SELECT seq FROM sandboxes WHERE name = 'task1'"), 11);
	migrate_verify(10);
	store_close(store);
}

/* Old rows have the two figures of a name that a new row of that name has; what is no name has none. */
static void
test_old_names_are_measured(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_dns(100, "news.lab-site.org", 17);

	(void)state;
	fixture_add(store, &record);
	record = fixture_flow(101, "git.lab-code.org");
	fixture_add(store, &record);
	fixture_commit(store);
	assert_string_equal(fixture_text("SELECT group_concat(domain || ' ' || n) FROM (SELECT domain, count(*) AS n "
					 "FROM connections WHERE domain IS NOT NULL GROUP BY domain ORDER BY domain)"),
	    "lab-code.org 2,lab-site.org 1");
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE name IS NULL AND domain IS NULL"), 2);
	assert_string_equal(
	    fixture_text("SELECT group_concat(domain || ' ' || entropy || ' ' || n) FROM (SELECT "
			 "domain, entropy, count(*) AS n FROM v_dns GROUP BY domain, entropy ORDER BY 1)"),
	    "lab-b.net 0.0 1,lab-site.org 2.0 2");
	store_close(store);
}

/* Tables have the new columns behind the old ones; what is made of them is the same. */
static void
test_indexes_and_views_are_those_of_a_new_log(void **state)
{
	static const char list[] =
	    "SELECT count(*) || group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE type IN "
	    "('index', 'view') AND sql IS NOT NULL ORDER BY name)";
	struct store *store = fixture_open(NULL);
	static char migrated[32768];
	static char made[32768];

	(void)state;
	store_close(store);
	read_text(list, migrated, sizeof(migrated));
	fixture_shell("rm \"$DB\"*");
	store = fixture_open(NULL);
	store_close(store);
	read_text(list, made, sizeof(made));
	assert_string_equal(migrated, made);
}

/* Version 2 had other indexes by name: no more than these is made anew, and nobody is said to have changed anything. */
static void
test_version_2_gets_other_indexes(void **state)
{
	static const char list[] =
	    "SELECT group_concat(sql, ';') FROM (SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL "
	    "ORDER BY name)";
	static char made[32768], migrated[32768];
	struct record record = fixture_flow(1, "a.example");
	struct store_opening opening;
	struct store *store;

	(void)state;
	fixture_shell("rm \"$DB\"");
	store = fixture_open(NULL);
	store_set_signer(store, &signer);
	fixture_add(store, &record);
	fixture_commit(store);
	store_close(store);
	read_text(list, made, sizeof(made));
	fixture_shell("sqlite3 \"$DB\" 'DROP INDEX connections_name; DROP INDEX dns_name; CREATE INDEX "
		      "connections_name ON connections (name, ts) WHERE name IS NOT NULL; CREATE INDEX dns_name ON dns "
		      "(qname, ts) WHERE qname IS NOT NULL; PRAGMA user_version = 2'");
	store = fixture_open(&opening);
	store_close(store);
	assert_string_equal(opening.changed, "");
	read_text(list, migrated, sizeof(migrated));
	assert_string_equal(migrated, made);
	assert_int_equal(fixture_integer("PRAGMA user_version"), SCHEMA_VERSION);
	migrate_verify(1);
}

/* Old connections are closed, new ones come after, all are sealed. */
static void
test_the_log_goes_on(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_flow(100, "a.example");
	struct verify_result result;
	struct error err;

	(void)state;
	store_set_signer(store, &signer);
	assert_int_equal(store_close_earlier(store, UINT64_MAX >> 31, &err), 0);
	fixture_add(store, &record);
	fixture_commit(store);
	migrate_verify(12);
	assert_int_equal(store_seal(store, true, &err), 0);
	fixture_commit(store);
	migrate_verify(12);
	store_close(store);
	store_close(fixture_open(NULL));
	migrate_verify(12);
	assert_int_equal(fixture_integer("SELECT last_seq FROM seals WHERE n = 1"), 14);
	assert_int_equal(fixture_integer("SELECT end FROM connections WHERE id = 3650722201600000004"), 12);
	/* Holes that the numbers had before do not hide a link that is gone. */
	fixture_shell("sqlite3 \"$DB\" 'DELETE FROM chain WHERE seq = 5; DELETE FROM connections WHERE seq = 5'");
	migrate_run(&result);
	assert_int_equal(result.first.fault, VERIFY_REMOVED);
}

/* A reader cannot bring it over, and says who does. */
static void
test_a_reader_says_what_to_do(void **state)
{
	const struct verify_options options = {.key_count = 0};
	struct verify_result result;
	struct error err;

	(void)state;
	assert_int_equal(verify_run(fixture_db, &options, &result, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
	assert_non_null(strstr(err.text, "older postern"));
}

#define MIGRATE_TEST(test) cmocka_unit_test_setup_teardown(test, migrate_setup, migrate_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    MIGRATE_TEST(test_all_rows_are_kept),
	    MIGRATE_TEST(test_old_names_are_measured),
	    MIGRATE_TEST(test_indexes_and_views_are_those_of_a_new_log),
	    MIGRATE_TEST(test_version_2_gets_other_indexes),
	    MIGRATE_TEST(test_the_log_goes_on),
	    MIGRATE_TEST(test_a_reader_says_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
