/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention: whole sealed segments go, their seals stay, what still matters is carried on, and the rest of the chain
 * begins where the last seal that went ended. */
#include "audit_fixture.h"

#include "audit/seal/chain.h"

static struct seal_signer signer;

/* A store that seals. */
static struct store *
prune_open(void)
{
	struct store *store = fixture_open(NULL);
	char path[128];
	struct error err;
	bool made;

	snprintf(path, sizeof(path), "%s/seal.key", fixture_dir);
	if (signer.pkey == NULL && seal_signer_load(&signer, path, &made, &err) < 0)
		fail_msg("%s", err.text);
	store_set_signer(store, &signer);
	return store;
}

static int
prune_teardown(void **state)
{
	seal_signer_free(&signer);
	return fixture_teardown(state);
}

/* Connections first..last, closed, a seal being due every SEAL_LINKS links. */
static void
prune_fill(struct store *store, uint64_t first, uint64_t last)
{
	for (uint64_t i = first; i <= last; i++) {
		struct record record = fixture_flow(i, "github.com");

		fixture_add(store, &record);
		record = fixture_close(i);
		fixture_add(store, &record);
		if (i % 100 == 0)
			fixture_commit(store);
	}
	fixture_commit(store);
}

static void
prune_seal(struct store *store)
{
	struct error err;

	assert_int_equal(store_seal(store, true, &err), 0);
	fixture_commit(store);
}

/* All steps there are; returns how many. */
static int
prune_all(struct store *store, const struct prune_limits *limits, struct prune_segment *ret_last)
{
	struct error err;
	int steps = 0, rc;

	while ((rc = store_prune(store, limits, ret_last, &err)) == 1) {
		fixture_commit(store);
		steps++;
	}
	assert_int_equal(rc, 0);
	return steps;
}

/* From the head of the last seal that went over all links that are there: what the newest seal says? */
static void
prune_check_chain(void)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	struct chain *chain = chain_new();
	uint8_t head[CHAIN_DIGEST];
	int links = 0;

	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(
	    sqlite3_prepare_v2(db,
		"SELECT head FROM seals WHERE last_seq = (SELECT value FROM meta WHERE key = 'pruned_through')", -1,
		&stmt, NULL),
	    SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	memcpy(head, sqlite3_column_blob(stmt, 0), sizeof(head));
	sqlite3_finalize(stmt);
	assert_int_equal(
	    sqlite3_prepare_v2(db, "SELECT seq, tbl, id, digest FROM chain ORDER BY seq", -1, &stmt, NULL), SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		struct chain_link link = {.seq = sqlite3_column_int64(stmt, 0),
		    .table = (unsigned int)sqlite3_column_int(stmt, 1),
		    .id = sqlite3_column_int64(stmt, 2)};

		memcpy(link.digest, sqlite3_column_blob(stmt, 3), CHAIN_DIGEST);
		chain_advance(chain, head, &link);
		links++;
	}
	sqlite3_finalize(stmt);
	assert_int_equal(
	    sqlite3_prepare_v2(db, "SELECT head FROM seals ORDER BY n DESC LIMIT 1", -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_true(links > 0);
	assert_memory_equal(head, sqlite3_column_blob(stmt, 0), CHAIN_DIGEST);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	chain_free(chain);
}

static void
test_old_segments_go_whole_and_the_chain_goes_on(void **state)
{
	struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment last;
	struct store *store = prune_open();
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task");
	int64_t seals;

	(void)state;
	fixture_add(store, &record);
	record = fixture_flow(1, "open.example.org"); /* stays open */
	fixture_add(store, &record);
	prune_fill(store, 2, 2500);
	prune_seal(store);
	seals = fixture_integer("SELECT count(*) FROM seals");
	assert_true(seals >= 4);
	assert_int_equal(prune_all(store, &limits, &last), seals - 1);

	/* Seals all stay, the newest segment does too, and nothing older but what still matters. */
	assert_int_equal(fixture_integer("SELECT count(*) FROM seals"), seals);
	assert_int_equal(last.through, fixture_integer("SELECT last_seq FROM seals ORDER BY n DESC LIMIT 1 OFFSET 1"));
	assert_int_equal(fixture_integer("SELECT value FROM meta WHERE key = 'pruned_through'"), last.through);
	assert_int_equal(fixture_integer("SELECT min(seq) > (SELECT value FROM meta WHERE key = 'pruned_through') FROM "
					 "(SELECT seq FROM connections UNION ALL SELECT seq FROM sandboxes)"),
	    1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 1);
	assert_string_equal(fixture_text("SELECT name FROM connections WHERE end = 0"), "open.example.org");
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), 1);
	prune_seal(store);
	prune_check_chain();

	/* It is closed later as ever, and a new start goes on. */
	record = fixture_close(1);
	fixture_add(store, &record);
	fixture_commit(store);
	store_close(store);
	store = prune_open();
	prune_fill(store, 3000, 3010);
	prune_seal(store);
	prune_check_chain();
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 0);
	store_close(store);
}

static void
test_nothing_goes_before_its_time(void **state)
{
	struct prune_limits limits = {.before_us = FIXTURE_TS}; /* before any seal was made */
	struct prune_segment last;
	struct store *store = prune_open();

	(void)state;
	prune_fill(store, 1, 1200);
	prune_seal(store);
	assert_int_equal(prune_all(store, &limits, &last), 0);
	limits = (struct prune_limits){.bytes_max = UINT64_C(1) << 30};
	assert_int_equal(prune_all(store, &limits, &last), 0);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1200);
	store_close(store);
}

/* As many small ones as make a full one; what is younger than wanted ends them. */
static void
test_small_segments_go_together(void **state)
{
	struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment last;
	struct store *store = prune_open();

	(void)state;
	for (uint64_t i = 1; i <= 700; i += 100) {
		prune_fill(store, i, i + 99);
		prune_seal(store);
	}
	assert_int_equal(fixture_integer("SELECT count(*) FROM seals"), 7);
	limits.before_us = fixture_integer("SELECT ts FROM seals WHERE n = 3");
	assert_int_equal(prune_all(store, &limits, &last), 1);
	assert_int_equal(last.through, 400);
	assert_int_equal(last.sealed_us, fixture_integer("SELECT ts FROM seals WHERE n = 2"));
	limits.before_us = INT64_MAX;
	assert_int_equal(prune_all(store, &limits, &last), 1);
	assert_int_equal(last.through, 1200);
	/* Never the newest ones for their size. */
	limits = (struct prune_limits){.bytes_max = 1};
	prune_fill(store, 800, 900);
	prune_seal(store);
	assert_int_equal(prune_all(store, &limits, &last), 0);
	prune_fill(store, 1000, 1500);
	prune_seal(store);
	assert_int_equal(prune_all(store, &limits, &last), 1);
	store_close(store);
}

/* A clock that was a hundred years ahead for a while must not keep the log for a hundred years. */
static void
test_what_was_sealed_in_the_future_goes_with_what_came_later(void **state)
{
	struct prune_limits limits = {.before_us = 0};
	struct prune_segment last;
	struct store *store = prune_open();

	(void)state;
	for (uint64_t i = 1; i <= 400; i += 100) {
		prune_fill(store, i, i + 99);
		prune_seal(store);
	}
	fixture_shell("sqlite3 \"$DB\" 'UPDATE seals SET ts = CASE n WHEN 2 THEN 9000 ELSE n * 10 END'");
	limits.now_us = 100;
	limits.before_us = 25;
	assert_int_equal(prune_all(store, &limits, &last), 1); /* nothing is known of the second */
	assert_int_equal(last.through, 200);
	limits.before_us = 35;
	assert_int_equal(prune_all(store, &limits, &last), 2);
	assert_int_equal(last.through, 600);
	store_close(store);
}

static void
test_size_drops_the_oldest_until_it_fits(void **state)
{
	struct prune_limits limits = {.bytes_max = UINT64_C(1) << 20};
	struct prune_segment last;
	struct store *store = prune_open();
	struct error err;
	int64_t pages;

	(void)state;
	prune_fill(store, 1, 12000);
	prune_seal(store);
	pages = fixture_integer("SELECT page_count FROM pragma_page_count");
	assert_true(pages * 4096 > 4 << 20);
	assert_true(prune_all(store, &limits, &last) > 1);
	assert_true(last.for_size);
	assert_true((fixture_integer("SELECT page_count FROM pragma_page_count") -
			fixture_integer("SELECT freelist_count FROM pragma_freelist_count")) *
		4096 <=
	    1 << 20);
	/* The newest are there. */
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE id = (1700000000 << 31) + 12000"), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE id = (1700000000 << 31) + 1"), 0);
	prune_check_chain();
	/* Too few free pages to be worth giving back. */
	assert_int_equal(store_shrink(store, 256, &err), pages > 8192 ? 1 : 0);
	store_close(store);
}

static void
test_a_sandbox_goes_with_the_last_that_speaks_of_it(void **state)
{
	struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment last;
	struct store *store = prune_open();
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "gone");

	(void)state;
	fixture_add(store, &record);
	record = fixture_flow(1, "github.com");
	fixture_add(store, &record);
	record = fixture_close(1);
	fixture_add(store, &record);
	record = (struct record){.kind = RECORD_ACCOUNT,
	    .seq = 1,
	    .account = {
		.id = RECORD_ID(FIXTURE_EPOCH, 9), .sandbox = FIXTURE_SANDBOX, .ts_us = FIXTURE_TS, .final = 1}};
	fixture_add(store, &record);
	record = fixture_sandbox(FIXTURE_SANDBOX, "gone");
	record.kind = RECORD_SANDBOX_END;
	fixture_add(store, &record);
	prune_seal(store);
	record = fixture_event(50, EVENT_DAEMON_STOP, "{}");
	fixture_add(store, &record);
	prune_seal(store);
	assert_int_equal(prune_all(store, &limits, &last), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), 0);
	assert_int_equal(fixture_integer("SELECT count(*) FROM accounts"), 0);
	assert_int_equal(fixture_integer("SELECT count(*) FROM events"), 1);
	store_close(store);
}

static void
test_an_undone_prune_leaves_all(void **state)
{
	struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment segment;
	struct store *store = prune_open();
	struct error err;

	(void)state;
	prune_fill(store, 1, 1200);
	prune_seal(store);
	assert_int_equal(store_prune(store, &limits, &segment, &err), 1);
	assert_true(segment.rows > 0);
	store_close(store); /* as a crash before the commit */
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 1200);
	assert_int_equal(fixture_integer("SELECT value FROM meta WHERE key = 'pruned_through'"), 0);
}

#define PRUNE_TEST(test) cmocka_unit_test_setup_teardown(test, fixture_setup, prune_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    PRUNE_TEST(test_old_segments_go_whole_and_the_chain_goes_on),
	    PRUNE_TEST(test_nothing_goes_before_its_time),
	    PRUNE_TEST(test_small_segments_go_together),
	    PRUNE_TEST(test_what_was_sealed_in_the_future_goes_with_what_came_later),
	    PRUNE_TEST(test_size_drops_the_oldest_until_it_fits),
	    PRUNE_TEST(test_a_sandbox_goes_with_the_last_that_speaks_of_it),
	    PRUNE_TEST(test_an_undone_prune_leaves_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
