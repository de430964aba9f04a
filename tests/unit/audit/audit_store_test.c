/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The writer: what is stored, that twice is once, and what becomes of open connections. */
#include "audit_fixture.h"

#include <sys/stat.h>

static void
test_file_modes_do_not_depend_on_umask(void **state)
{
	static const char *const names[] = {"audit.db", "audit.db-wal", "audit.db-shm", "audit.db.lock"};
	struct store *store;
	mode_t before = umask(0);

	(void)state;
	store = fixture_open(NULL);
	umask(before);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		char path[PATH_MAX * 2];
		struct stat st;

		snprintf(path, sizeof(path), "%s/%s", fixture_dir, names[i]);
		assert_int_equal(stat(path, &st), 0);
		assert_int_equal(st.st_mode & 0777, 0640);
	}
	store_close(store);
}

static void
test_sqlite3_reads_views_and_comments(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	char command[PATH_MAX * 2], line[1024] = "";
	FILE *pipe;

	(void)state;
	fixture_add(store, &record);
	record = fixture_flow(1, "github.com");
	fixture_add(store, &record);
	record = fixture_close(1);
	fixture_add(store, &record);
	record = fixture_dns(2, "github.com", 10);
	fixture_add(store, &record);
	record = fixture_event(3, EVENT_ATTACH, "{\"x\":1}");
	fixture_add(store, &record);
	fixture_commit(store);

	snprintf(command, sizeof(command),
	    "sqlite3 -readonly %s \"SELECT time, sandbox, verdict, proto, dst, dport, name, name_source, bytes_in, end "
	    "FROM v_connections\"",
	    fixture_db);
	pipe = popen(command, "r");
	assert_non_null(pipe);
	assert_non_null(fgets(line, sizeof(line), pipe));
	pclose(pipe);
	assert_string_equal(
	    line, "2023-11-14T22:13:20.124456Z|task1|allowed|tcp|140.82.121.4|443|github.com|sni|5678901|fin\n");
	assert_string_equal(
	    fixture_text("SELECT qtype || ' ' || qname || ' ' || rcode FROM v_dns"), "A github.com NOERROR");
	assert_string_equal(fixture_text("SELECT event FROM v_events"), "attach");
	assert_int_equal(fixture_integer("SELECT count(*) FROM v_log"), 3);
	assert_non_null(
	    strstr(fixture_text("SELECT sql FROM sqlite_schema WHERE name = 'connections'"), "-- first seen"));
	assert_int_equal(fixture_integer("SELECT count(*) FROM reasons"), REASON_MAX);
	store_close(store);
}

static void
test_twice_is_once(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record records[6];
	int64_t seq;

	(void)state;
	records[0] = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	records[1] = fixture_flow(1, "github.com");
	records[2] = fixture_denied(2, "evil.example", 12);
	records[3] = fixture_dns(3, "github.com", 10);
	records[4] = fixture_event(4, EVENT_POLICY, "{}");
	records[5] = fixture_close(1);
	for (size_t i = 0; i < 6; i++)
		fixture_add(store, &records[i]);
	fixture_commit(store);
	seq = fixture_integer("SELECT max(seq) FROM connections");
	for (size_t i = 0; i < 6; i++)
		fixture_add(store, &records[i]);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM dns"), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM events"), 1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), 1);
	assert_int_equal(fixture_integer("SELECT end FROM connections WHERE name = 'github.com'"), END_FIN);
	assert_int_equal(fixture_integer("SELECT bytes_in FROM connections WHERE name = 'github.com'"), 5678901);
	/* What did not change has no new seq: a follower does not see it again. */
	assert_int_equal(fixture_integer("SELECT max(seq) FROM connections"), seq);
	store_close(store);
}

static void
test_refused_counts_only_grow(void **state)
{
	static const struct {
		uint64_t count;
		int64_t last, want_count, want_last;
	} steps[] = {
	    {5, FIXTURE_TS + 5, 5, FIXTURE_TS + 5},
	    {90, FIXTURE_TS + 90, 90, FIXTURE_TS + 90},
	    {5, FIXTURE_TS + 5, 90, FIXTURE_TS + 90}, /* sent again, late */
	    {UINT64_MAX, FIXTURE_TS + 99, INT64_MAX, FIXTURE_TS + 99},
	};
	struct store *store = fixture_open(NULL);
	struct record record = fixture_denied(1, "", 0);

	(void)state;
	record.kind = RECORD_REFUSED;
	record.flow.reason = REASON_NEVER_ADDRESS;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		record.flow.count = steps[i].count;
		record.flow.last_us = steps[i].last;
		fixture_add(store, &record);
		fixture_commit(store);
		assert_int_equal(fixture_integer("SELECT count FROM connections"), steps[i].want_count);
		assert_int_equal(fixture_integer("SELECT last_ts FROM connections"), steps[i].want_last);
	}
	store_close(store);
}

static void
test_gap_closes_only_its_epoch(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		record = fixture_flow(i, "github.com");
		fixture_add(store, &record);
	}
	record = fixture_close(3);
	fixture_add(store, &record);
	/* The last id before its own, and the first behind: others'. */
	record = fixture_flow(1, "github.com");
	record.flow.id = RECORD_ID(FIXTURE_EPOCH, 0) - 1;
	fixture_add(store, &record);
	record.flow.id = RECORD_ID(FIXTURE_EPOCH + RECORD_EPOCH_SPAN, 0);
	fixture_add(store, &record);
	/* The record after 2^31 others is its own. */
	record.flow.id = RECORD_ID(FIXTURE_EPOCH, UINT64_C(1) << 31);
	fixture_add(store, &record);
	record = (struct record){.kind = RECORD_GAP,
	    .seq = 9,
	    .gap = {.sender_epoch = FIXTURE_EPOCH, .ts_us = FIXTURE_TS + 77000000, .end = END_GATEWAY_CRASH}};
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 11 AND bytes_out IS NULL"), 3);
	assert_int_equal(fixture_integer("SELECT closed_ts FROM connections WHERE end = 11"), FIXTURE_TS + 77000000);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 1"), 1);
	/* A follower sees each of them: no two changes share a number. */
	assert_int_equal(fixture_integer("SELECT count(DISTINCT seq) FROM connections"), 6);
	/* The sender was alive after all: its own word about the end wins. */
	record = fixture_close(1);
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 11"), 2);
	store_close(store);
}

static void
test_connections_of_an_earlier_daemon_are_closed_as_daemon_crash(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_flow(1, "github.com");
	struct error err;

	(void)state;
	fixture_add(store, &record);
	record = fixture_dns(50, "github.com", 10); /* the last sign of life */
	fixture_add(store, &record);
	fixture_commit(store);
	store_close(store);

	store = fixture_open(NULL);
	record = fixture_flow(2, "github.com");
	record.flow.id = RECORD_ID(FIXTURE_EPOCH + 10, 1);
	fixture_add(store, &record);
	assert_int_equal(store_close_earlier(store, FIXTURE_EPOCH + 10, &err), 0);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 12"), 1);
	assert_int_equal(fixture_integer("SELECT closed_ts FROM connections WHERE end = 12"), FIXTURE_TS + 50000);
	assert_int_equal(fixture_integer("SELECT duration_us FROM connections WHERE end = 12"), 49000);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 1);
	/* Again, as after a restart of the auditor alone: nothing more. */
	assert_int_equal(store_close_earlier(store, FIXTURE_EPOCH + 10, &err), 0);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections WHERE end = 0"), 1);
	store_close(store);
}

static void
test_sandboxes_come_and_go(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_sandbox(10, "task1");
	struct record_sandbox live[4];

	(void)state;
	fixture_add(store, &record);
	record = fixture_sandbox(20, "task2");
	fixture_add(store, &record);
	record = fixture_sandbox(10, "task1");
	record.kind = RECORD_SANDBOX_END;
	record.sandbox.ts_us = 15;
	fixture_add(store, &record);
	/* The beginning, sent again after the end, does not bring it back. */
	record = fixture_sandbox(10, "task1");
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT detached_ts FROM sandboxes WHERE id = 10"), 15);
	assert_int_equal(store_live_sandboxes(store, live, 4), 1);
	assert_string_equal(live[0].name, "task2");
	assert_string_equal(live[0].detail, "{\"guest\":\"172.16.0.2\"}");
	assert_int_equal(live[0].uid, 1000);
	store_close(store);
}

static void
case_F_30_names_are_bound_not_spliced(void **state)
{
	static const char *const names[] = {
	    "'); DROP TABLE connections;--", "\" OR 1=1 --", "%s%n", "a'b", "`x`", "<img onerror=x>"};
	struct store *store = fixture_open(NULL);
	const size_t count = sizeof(names) / sizeof(names[0]);

	(void)state;
	for (size_t i = 0; i < count; i++) {
		struct record record = fixture_denied(i + 1, names[i], strlen(names[i]));

		snprintf(record.flow.detail, sizeof(record.flow.detail), "%s", names[i]);
		fixture_add(store, &record);
		record = fixture_dns(100 + i, names[i], strlen(names[i]));
		fixture_add(store, &record);
		record = fixture_sandbox((int64_t)i + 1, names[i]);
		fixture_add(store, &record);
	}
	fixture_commit(store);
	assert_int_equal(
	    fixture_integer("SELECT count(*) FROM connections WHERE name IS NULL AND name_raw = CAST(detail AS BLOB)"),
	    count);
	assert_int_equal(
	    fixture_integer("SELECT count(*) FROM dns WHERE qname IS NULL AND length(qname_raw) > 0"), count);
	assert_int_equal(fixture_integer("SELECT count(*) FROM sandboxes"), count);
	store_close(store);
}

static void
case_F_28_hostile_bytes_are_kept_as_blob(void **state)
{
	static const uint8_t raw[] = {'a', 0, 0x1b, ']', '0', ';', 0x9b, 0xe2, 0x80, 0xae, '\r', '\n', 0xff};
	struct store *store = fixture_open(NULL);
	struct record record = fixture_denied(1, raw, sizeof(raw));

	(void)state;
	snprintf(record.flow.detail, sizeof(record.flow.detail), "\x1b[2J\xc3\xa9");
	fixture_add(store, &record);
	record = fixture_dns(2, "Upper.Example", 13);
	snprintf(record.dns.answers, sizeof(record.dns.answers), "[\"A 1.2.3.4\", not json \x1b");
	fixture_add(store, &record);
	record = fixture_event(3, EVENT_POLICY, "{\"name\":\"caf\xc3\xa9\"}");
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT name_raw = X'61001b5d303b9be280ae0d0aff' FROM connections"), 1);
	assert_string_equal(fixture_text("SELECT detail FROM connections"), "\\x1b[2J\\xc3\\xa9");
	assert_string_equal(fixture_text("SELECT qname_raw FROM dns"), "Upper.Example");
	/* JSON columns are JSON whatever came. */
	assert_int_equal(fixture_integer("SELECT json_valid(answers) FROM dns"), 1);
	assert_int_equal(fixture_integer("SELECT json_valid(detail) FROM events"), 1);
	assert_string_equal(fixture_text("SELECT detail FROM events"), "{\"name\":\"caf\\u00E9\"}");
	store_close(store);
}

static void
test_one_writer_only(void **state)
{
	struct store *store = fixture_open(NULL);
	struct store_opening opening;
	struct error err;

	(void)state;
	assert_null(store_open(fixture_db, &opening, &err));
	assert_int_equal(err.code, ERROR_EXISTS);
	store_close(store);
	store = fixture_open(&opening);
	assert_false(opening.created);
	assert_false(opening.replaced);
	store_close(store);
}

static void
test_a_newer_schema_is_refused_and_left_alone(void **state)
{
	struct store *store = fixture_open(NULL);
	struct store_opening opening;
	struct query *query;
	struct error err;
	sqlite3 *db;

	(void)state;
	store_close(store);
	assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA user_version = 99", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	fixture_shell("sqlite3 $DB 'PRAGMA wal_checkpoint(TRUNCATE)' > /dev/null; cp $DB $DIR/before");
	assert_null(store_open(fixture_db, &opening, &err));
	assert_int_equal(err.code, ERROR_USAGE);
	assert_non_null(strstr(err.text, "was made by a newer postern (schema after 1); upgrade this one, or move"));
	assert_false(opening.replaced);
	fixture_shell("cmp $DB $DIR/before");
	query = query_open(fixture_db, &err);
	assert_null(query);
	assert_int_equal(err.code, ERROR_USAGE);
}

static void
test_rollback_leaves_nothing(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record = fixture_flow(1, "github.com");

	(void)state;
	fixture_add(store, &record);
	assert_true(store_has_batch(store));
	store_close(store);
	store = fixture_open(NULL);
	assert_false(store_has_batch(store));
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 0);
	store_close(store);
}

static void
test_checkpoints_keep_the_log_short(void **state)
{
	struct store *store = fixture_open(NULL);
	struct checkpoint_state checkpoints;
	struct error err;
	char path[PATH_MAX * 2];
	struct stat st;

	(void)state;
	assert_int_equal(store_start_checkpoints(store, &err), 0);
	/* Without a pause: there is always a commit that the thread has not copied yet. */
	for (uint64_t i = 1; i <= 20000; i++) {
		struct record record = fixture_flow(i, "github.com");

		fixture_add(store, &record);
		if (i % 10 == 0)
			fixture_commit(store);
	}
	store_checkpoint_state(store, &checkpoints);
	assert_true(checkpoints.runs > 0);
	assert_false(checkpoints.blocked);
	snprintf(path, sizeof(path), "%s-wal", fixture_db);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size < (off_t)(CHECKPOINT_FRAMES_CUT + 4 * CHECKPOINT_FRAMES) * 4120);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 20000);
	store_close(store);
	/* Readers without write permission need them. */
	assert_int_equal(stat(path, &st), 0);
	snprintf(path, sizeof(path), "%s-shm", fixture_db);
	assert_int_equal(stat(path, &st), 0);
}

static void
case_F_23_a_long_reader_is_noticed_and_does_not_stop_the_writer(void **state)
{
	struct store *store = fixture_open(NULL);
	struct checkpoint_state checkpoints;
	struct record record = fixture_flow(1, "github.com");
	struct error err;
	sqlite3 *reader;
	uint64_t i = 2;

	(void)state;
	assert_int_equal(store_start_checkpoints(store, &err), 0);
	fixture_add(store, &record);
	fixture_commit(store);
	assert_int_equal(sqlite3_open_v2(fixture_db, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM connections", NULL, NULL, NULL), SQLITE_OK);
	do {
		for (int k = 0; k < 50; k++, i++) {
			record = fixture_flow(i, "github.com");
			fixture_add(store, &record);
		}
		fixture_commit(store);
		store_checkpoint_state(store, &checkpoints);
	} while (checkpoints.frames < CHECKPOINT_FRAMES_ALARM + 2 * CHECKPOINT_FRAMES && i < 500000);
	usleep(100000);
	store_checkpoint_state(store, &checkpoints);
	assert_true(checkpoints.blocked);
	assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(reader);
	/* Now it can be cut. */
	for (int k = 0; k < 3000 && checkpoints.frames > CHECKPOINT_FRAMES_ALARM; k++, i++) {
		record = fixture_flow(i, "github.com");
		fixture_add(store, &record);
		fixture_commit(store);
		store_checkpoint_state(store, &checkpoints);
	}
	assert_true(checkpoints.frames < CHECKPOINT_FRAMES_ALARM);
	assert_false(checkpoints.blocked);
	store_close(store);
}

/* Let it go on until it does not, at most so many batches; returns how many were taken. */
static uint64_t
write_until_refused(struct store *store, uint64_t *next, uint64_t max, struct error *err)
{
	uint64_t batches;

	for (batches = 0; batches < max; batches++) {
		struct record record = fixture_flow((*next)++, "github.com");

		if (store_add(store, &record, err) < 0 || store_commit(store, err) < 0)
			break;
	}
	return batches;
}

static void
case_F_23_the_log_does_not_grow_without_limit(void **state)
{
	struct store *store = fixture_open(NULL);
	struct checkpoint_state checkpoints;
	struct error err;
	sqlite3 *reader;
	uint64_t next = 1, batches;
	char path[PATH_MAX];
	struct stat st;

	(void)state;
	store_limit_log(store, 4 << 20);
	assert_int_equal(store_start_checkpoints(store, &err), 0);
	assert_int_equal(sqlite3_open_v2(fixture_db, &reader, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(reader, "BEGIN; SELECT count(*) FROM connections", NULL, NULL, NULL), SQLITE_OK);
	batches = write_until_refused(store, &next, 20000, &err);
	assert_true(batches > 10 && batches < 20000);
	assert_int_equal(err.code, ERROR_SYSTEM);
	assert_non_null(strstr(err.text, "a reader holds an old view"));
	assert_false(store_has_batch(store));
	assert_false(store_must_reopen(store));
	store_checkpoint_state(store, &checkpoints);
	assert_true(checkpoints.blocked);
	snprintf(path, sizeof(path), "%s-wal", fixture_db);
	assert_int_equal(stat(path, &st), 0);
	assert_true(st.st_size > 4 << 20 && st.st_size < 5 << 20);
	assert_int_equal(store_probe(store, &err), -1);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), batches);
	/* The reader goes: it goes on by itself, from the beginning of the log. */
	assert_int_equal(sqlite3_exec(reader, "COMMIT", NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(reader);
	assert_int_equal(store_probe(store, &err), 0);
	store_checkpoint_state(store, &checkpoints);
	assert_true(checkpoints.frames < 100);
	assert_false(checkpoints.blocked);
	/* And on and on, though on a busy machine the other thread may now and then be in the way. */
	for (int i = 0; i < 10; i++) {
		uint64_t before = batches;

		for (int k = 0; k < 100 && batches == before; k++) {
			if (store_probe(store, &err) == 0)
				batches += write_until_refused(store, &next, 200, &err);
			if (batches == before)
				usleep(100000);
		}
		assert_true(batches > before);
	}
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), batches);
	store_close(store);
}

#define STORE_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    STORE_TEST(test_file_modes_do_not_depend_on_umask),
	    STORE_TEST(test_sqlite3_reads_views_and_comments),
	    STORE_TEST(test_twice_is_once),
	    STORE_TEST(test_refused_counts_only_grow),
	    STORE_TEST(test_gap_closes_only_its_epoch),
	    STORE_TEST(test_connections_of_an_earlier_daemon_are_closed_as_daemon_crash),
	    STORE_TEST(test_sandboxes_come_and_go),
	    STORE_TEST(case_F_30_names_are_bound_not_spliced),
	    STORE_TEST(case_F_28_hostile_bytes_are_kept_as_blob),
	    STORE_TEST(test_one_writer_only),
	    STORE_TEST(test_a_newer_schema_is_refused_and_left_alone),
	    STORE_TEST(test_rollback_leaves_nothing),
	    STORE_TEST(test_checkpoints_keep_the_log_short),
	    STORE_TEST(case_F_23_the_log_does_not_grow_without_limit),
	    STORE_TEST(case_F_23_a_long_reader_is_noticed_and_does_not_stop_the_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
