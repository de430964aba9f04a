/* SPDX-License-Identifier: GPL-3.0-or-later */
/* verify: a whole log passes; each way of tampering is found, in each table, and the first bad record named. */
#include "audit/seal/verify.h"
#include "audit/columns.h"

#include "audit/store/seal_table.h"
#include "audit/store/store_seal.h"
#include "audit_fixture.h"

/* Of the log that verify_make makes: what its links are about. */
enum {
	SEQ_SANDBOX = 1,
	SEQ_FLOW,
	SEQ_DNS,
	SEQ_EVENT,
	SEQ_ACCOUNT,
	SEQ_FLOW_2,
	SEQ_CLOSE,
	SEQ_SEALED = 7,
	SEQ_DNS_2,
	SEQ_FLOW_3,
	SEQ_SEALED_2 = 9,
	SEQ_TAIL
};

static struct seal_signer signer;

static int
verify_setup(void **state)
{
	char path[PATH_MAX];
	struct error err;
	bool made;

	if (fixture_setup(state) < 0)
		return -1;
	snprintf(path, sizeof(path), "%s/seal.key", fixture_dir);
	return seal_signer_load(&signer, path, &made, &err);
}

static int
verify_teardown(void **state)
{
	seal_signer_free(&signer);
	return fixture_teardown(state);
}

static void
verify_seal_now(struct store *store)
{
	struct error err;

	assert_int_equal(store_seal(store, true, &err), 0);
	fixture_commit(store);
}

static struct record
verify_account(uint64_t connections, uint64_t allowed, uint64_t queries, bool final)
{
	struct record record = {.kind = RECORD_ACCOUNT, .seq = 1};

	record.account.id = RECORD_ID(FIXTURE_EPOCH, 100);
	record.account.sandbox = FIXTURE_SANDBOX;
	record.account.ts_us = FIXTURE_TS + final;
	record.account.final = final;
	record.account.attempts[RECORD_ATTEMPT_CONNECTION] = connections;
	record.account.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] = allowed;
	record.account.attempts[RECORD_ATTEMPT_DNS] = queries;
	record.account.recorded[RECORD_ATTEMPT_DNS][VERDICT_ALLOWED] = queries;
	return record;
}

static void
verify_add(struct store *store, struct record record)
{
	fixture_add(store, &record);
}

/* Two sealed segments and one link after them. The open store comes back when it is wanted. */
static struct store *
verify_make_open(void)
{
	struct store *store = fixture_open(NULL);

	store_set_signer(store, &signer);
	verify_add(store, fixture_sandbox(FIXTURE_SANDBOX, "task1"));
	verify_add(store, fixture_flow(1, "a.example"));
	verify_add(store, fixture_dns(2, "a.example", 9));
	verify_add(store, fixture_event(3, EVENT_MARK, "{\"text\":\"x\"}"));
	verify_add(store, verify_account(2, 1, 1, false));
	verify_add(store, fixture_flow(4, "b.example"));
	verify_add(store, fixture_close(1));
	verify_seal_now(store);
	verify_add(store, fixture_dns(5, "b.example", 9));
	verify_add(store, fixture_flow(6, "c.example"));
	verify_seal_now(store);
	verify_add(store, fixture_event(7, EVENT_MARK, "{\"text\":\"y\"}"));
	fixture_commit(store);
	return store;
}

static void
verify_make(void)
{
	store_close(verify_make_open());
}

static void
verify_with(const struct verify_options *options, struct verify_result *ret_result)
{
	struct error err;

	if (verify_run(fixture_db, options, ret_result, &err) < 0)
		fail_msg("verify_run: %s", err.text);
}

static struct verify_result
verify_now(void)
{
	const struct verify_options options = {.keys = &signer.key, .key_count = 1};
	struct verify_result result;

	verify_with(&options, &result);
	return result;
}

static void
verify_ok(const struct verify_result *result)
{
	if (result->fault_count > 0)
		fail_msg("%s %lld: %s (%s)", columns_table_name(result->first.table), (long long)result->first.seq,
		    result->first.text, verify_fault_text(result->first.fault));
}

static sqlite3 *
tamper_open(void)
{
	sqlite3 *db;

	assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA synchronous = OFF", NULL, NULL, NULL), SQLITE_OK);
	return db;
}

static void
tamper(const char *sql)
{
	sqlite3 *db = tamper_open();

	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	sqlite3_close(db);
}

/* The link is made to fit the row that is now behind it. */
static void
forge_link(int64_t seq)
{
	sqlite3 *db = tamper_open();
	struct chain *chain = chain_new();
	uint8_t digest[CHAIN_DIGEST];
	sqlite3_stmt *stmt;
	char list[COLUMNS_TEXT_MAX], sql[COLUMNS_TEXT_MAX + 128];
	unsigned int table;

	assert_int_equal(sqlite3_prepare_v2(db, "SELECT tbl FROM chain WHERE seq = ?", -1, &stmt, NULL), SQLITE_OK);
	sqlite3_bind_int64(stmt, 1, seq);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	table = (unsigned int)sqlite3_column_int(stmt, 0);
	sqlite3_finalize(stmt);
	snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE id = (SELECT id FROM chain WHERE seq = %lld)",
	    columns_chained(table, list), columns_table_name(table), (long long)seq);
	assert_int_equal(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	assert_int_equal(chain_digest(chain, &(struct rows){.stmt = stmt}, digest), SQLITE_OK);
	sqlite3_finalize(stmt);
	assert_int_equal(
	    sqlite3_prepare_v2(db, "UPDATE chain SET digest = ? WHERE seq = ?", -1, &stmt, NULL), SQLITE_OK);
	sqlite3_bind_blob(stmt, 1, digest, sizeof(digest), SQLITE_STATIC);
	sqlite3_bind_int64(stmt, 2, seq);
	assert_int_equal(sqlite3_step(stmt), SQLITE_DONE);
	sqlite3_finalize(stmt);
	chain_free(chain);
	sqlite3_close(db);
}

static void
verify_finds(enum verify_fault fault, unsigned int table, int64_t seq)
{
	struct verify_result result = verify_now();

	if (result.fault_count == 0)
		fail_msg("nothing found");
	if (result.first.fault != fault || result.first.table != table || result.first.seq != seq)
		fail_msg("table %u number %lld: %s (%s)", result.first.table, (long long)result.first.seq,
		    result.first.text, verify_fault_text(result.first.fault));
}

static void
test_a_whole_log_passes(void **state)
{
	struct verify_result result;

	(void)state;
	verify_make();
	result = verify_now();
	verify_ok(&result);
	assert_true(result.pinned);
	assert_int_equal(result.seals, 2);
	assert_int_equal(result.newest.n, 2);
	assert_int_equal(result.links, SEQ_TAIL);
	assert_int_equal(result.unsealed, 1);
	assert_int_equal(result.rows[COLUMNS_CONNECTIONS], 3);
	assert_int_equal(result.rows[COLUMNS_DNS], 2);
	assert_int_equal(result.rows[COLUMNS_EVENTS], 2);
	assert_int_equal(result.rows[COLUMNS_SANDBOXES], 1);
	assert_int_equal(result.rows[COLUMNS_ACCOUNTS], 1);
	assert_int_equal(result.accounts, 1);
}

static void
test_an_empty_log_passes(void **state)
{
	struct verify_result result;

	(void)state;
	store_close(fixture_open(NULL));
	result = verify_now();
	verify_ok(&result);
	assert_int_equal(result.links, 0);
}

/* What is done to a fresh log, and the record that must be named. */
struct tampering {
	const char *sql;
	unsigned int table;
	int64_t seq;
};

static void
tamper_each(const struct tampering *cases, size_t count, enum verify_fault fault)
{
	for (size_t i = 0; i < count; i++) {
		verify_make();
		tamper(cases[i].sql);
		verify_finds(fault, cases[i].table, cases[i].seq);
		fixture_shell("rm -f \"$DB\"*");
	}
}

/* Each table's rows: changed, removed, inserted. */
static void
test_a_changed_row_is_named(void **state)
{
	static const struct tampering cases[] = {
	    {"UPDATE connections SET name = 'evil.example' WHERE seq = 6", COLUMNS_CONNECTIONS, SEQ_FLOW_2},
	    {"UPDATE connections SET bytes_out = 0 WHERE seq = 7", COLUMNS_CONNECTIONS, SEQ_CLOSE},
	    {"UPDATE connections SET sandbox_id = 5 WHERE seq = 9", COLUMNS_CONNECTIONS, SEQ_FLOW_3},
	    {"UPDATE dns SET qname = NULL, qname_raw = CAST('a.example' AS BLOB) WHERE seq = 3", COLUMNS_DNS, SEQ_DNS},
	    {"UPDATE events SET uid = NULL WHERE seq = 4", COLUMNS_EVENTS, SEQ_EVENT},
	    {"UPDATE events SET detail = '{\"text\":\"z\"}' WHERE seq = 10", COLUMNS_EVENTS, SEQ_TAIL},
	    {"UPDATE sandboxes SET name = 'task2'", COLUMNS_SANDBOXES, SEQ_SANDBOX},
	    {"UPDATE accounts SET connections = 1", COLUMNS_ACCOUNTS, SEQ_ACCOUNT},
	    {"UPDATE accounts SET seq = 5, final = 1", COLUMNS_ACCOUNTS, SEQ_ACCOUNT},
	};

	(void)state;
	tamper_each(cases, sizeof(cases) / sizeof(cases[0]), VERIFY_CHANGED);
}

static void
test_a_removed_row_is_named(void **state)
{
	static const struct tampering cases[] = {
	    {"DELETE FROM connections WHERE seq = 6", COLUMNS_CONNECTIONS, SEQ_FLOW_2},
	    {"DELETE FROM connections WHERE seq = 7", COLUMNS_CONNECTIONS,
		SEQ_FLOW}, /* its first link is the first bad */
	    {"DELETE FROM dns WHERE seq = 8", COLUMNS_DNS, SEQ_DNS_2},
	    {"DELETE FROM events", COLUMNS_EVENTS, SEQ_EVENT},
	    {"DELETE FROM sandboxes", COLUMNS_SANDBOXES, SEQ_SANDBOX},
	    {"DELETE FROM accounts", COLUMNS_ACCOUNTS, SEQ_ACCOUNT},
	};

	(void)state;
	tamper_each(cases, sizeof(cases) / sizeof(cases[0]), VERIFY_REMOVED);
}

static void
test_an_inserted_row_is_named(void **state)
{
	static const struct {
		const char *sql;
		enum verify_fault fault;
		unsigned int table;
		int64_t seq;
	} cases[] = {
	    {"INSERT INTO dns SELECT * FROM dns WHERE 0; INSERT INTO events VALUES (99, 50, 0, 1, 14, NULL, '{}')",
		VERIFY_INSERTED, COLUMNS_EVENTS, 50},
	    {"INSERT INTO events VALUES (-9223372036854775808, 0, 0, 1, 14, NULL, '{}')", VERIFY_INSERTED,
		COLUMNS_EVENTS, 0},
	    {"INSERT INTO events VALUES (9223372036854775807, 4, 0, 1, 14, NULL, '{}')", VERIFY_REORDERED,
		COLUMNS_EVENTS, 4},
	    /* With a link of its own, where nobody walks. */
	    {"INSERT INTO events VALUES (99, -5, 0, 1, 14, NULL, '{}'); INSERT INTO chain VALUES (-5, 3, 99, "
	     "zeroblob(32))",
		VERIFY_INSERTED, COLUMNS_EVENTS, -5},
	    {"INSERT INTO sandboxes VALUES (1, 11, 'x', 'tap', 1, NULL, NULL, NULL)", VERIFY_INSERTED,
		COLUMNS_SANDBOXES, 11},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		tamper(cases[i].sql);
		verify_finds(cases[i].fault, cases[i].table, cases[i].seq);
		fixture_shell("rm -f \"$DB\"*");
	}
	(void)state;
}

static void
copy_database(sqlite3 *from, sqlite3 *to)
{
	sqlite3_backup *backup = sqlite3_backup_init(to, "main", from, "main");

	assert_non_null(backup);
	assert_int_equal(sqlite3_backup_step(backup, -1), SQLITE_DONE);
	assert_int_equal(sqlite3_backup_finish(backup), SQLITE_OK);
}

/* One value of the table is another one. False: there is no such row, or the table does not take the value. */
static bool
change_value(const char *table, const char *column, const char *other, int row)
{
	sqlite3 *db = tamper_open();
	char sql[512];
	bool changed;

	snprintf(sql, sizeof(sql),
	    "UPDATE %s SET %s = %s WHERE rowid = (SELECT rowid FROM %s ORDER BY rowid LIMIT 1 OFFSET %d) AND %s IS NOT "
	    "%s",
	    table, column, other, table, row, column, other);
	changed = sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK && sqlite3_changes(db) == 1;
	sqlite3_close(db);
	return changed;
}

/* Every value of every row that counts, in turn, by whatever its column takes. */
static void
test_any_changed_value_is_found(void **state)
{
	static const char *const others[] = {"12345", "'x'", "x'01'", "NULL"};
	sqlite3 *memory, *db = NULL;
	sqlite3_stmt *columns;
	int tried = 0;

	(void)state;
	verify_make();
	assert_int_equal(sqlite3_open(":memory:", &memory), SQLITE_OK);
	db = tamper_open();
	copy_database(db, memory);
	assert_int_equal(sqlite3_prepare_v2(memory,
			     "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c WHERE m.name IN "
			     "('connections', "
			     "'dns', 'events', 'sandboxes', 'accounts', 'chain', 'seals')",
			     -1, &columns, NULL),
	    SQLITE_OK);
	while (sqlite3_step(columns) == SQLITE_ROW) {
		const char *table = (const char *)sqlite3_column_text(columns, 0);
		const char *column = (const char *)sqlite3_column_text(columns, 1);

		/* Of each table's rows the oldest and the second. */
		for (int i = 0; i < 2 * (int)(sizeof(others) / sizeof(others[0])); i++) {
			if (!change_value(table, column, others[i / 2], i % 2))
				continue;
			if (verify_now().fault_count == 0)
				fail_msg("nothing found after %s.%s = %s", table, column, others[i / 2]);
			copy_database(memory, db);
			tried++;
		}
	}
	assert_true(tried > 200);
	sqlite3_finalize(columns);
	sqlite3_close(memory);
	sqlite3_close(db);
}

/* An index that does not have the row any more hides it from everybody who asks through it, not from verify. */
static void
test_a_row_that_no_index_has_is_named(void **state)
{
	(void)state;
	verify_make();
	tamper(
	    "DROP INDEX events_seq; INSERT INTO events VALUES (99, 50, 0, 1, 14, NULL, '{}');"
	    "PRAGMA writable_schema = ON; INSERT INTO sqlite_schema SELECT 'index', 'events_seq', 'events', rootpage,"
	    "'CREATE INDEX events_seq ON events (seq)' FROM sqlite_schema WHERE name = 'accounts_seq'");
	/* Whose entries the index has instead, the rows before it are not among. */
	verify_finds(VERIFY_CHANGED, COLUMNS_EVENTS, SEQ_EVENT);
	assert_int_equal(verify_now().faults[VERIFY_INSERTED], 1);
}

/* The other way round: the row is there, and the index by which it would be found has no entry. */
#define HIDE_FROM(index, on)                                                                                           \
	"DROP INDEX " index "; CREATE INDEX " index " ON " on " WHERE seq <> 9; PRAGMA writable_schema = ON;"          \
	"UPDATE sqlite_schema SET sql = 'CREATE INDEX " index " ON " on "' WHERE name = '" index "'"

static void
test_a_row_that_is_hidden_from_an_index_is_named(void **state)
{
	static const struct tampering cases[] = {
	    {HIDE_FROM("connections_ts", "connections (ts)"), COLUMNS_CONNECTIONS, SEQ_FLOW_3},
	    {HIDE_FROM("connections_sandbox", "connections (sandbox_id, ts)"), COLUMNS_CONNECTIONS, SEQ_FLOW_3},
	    {HIDE_FROM("connections_dst", "connections (dst, ts)"), COLUMNS_CONNECTIONS, SEQ_FLOW_3},
	    {HIDE_FROM("connections_seq", "connections (seq)"), COLUMNS_CONNECTIONS, SEQ_FLOW_3},
	};

	(void)state;
	tamper_each(cases, sizeof(cases) / sizeof(cases[0]), VERIFY_CHANGED);
}

/* What is no row of the chain, and yet what people are shown. */
static void
test_a_schema_that_is_not_postern_s_is_told(void **state)
{
	static const struct {
		const char *sql, *text;
	} cases[] = {
	    {"DROP VIEW v_log; CREATE VIEW v_log AS SELECT * FROM v_connections WHERE name <> 'b.example'",
		"view v_log is not as postern makes it"},
	    {"DROP VIEW v_seals", "view v_seals is missing"},
	    {"CREATE TRIGGER t AFTER INSERT ON connections BEGIN DELETE FROM connections; END",
		"trigger t is not one that postern makes"},
	    {"CREATE INDEX more ON connections (ts) WHERE name IS NULL", "index more is not one that postern makes"},
	    {"DROP INDEX dns_name", "index dns_name is missing"},
	    {"CREATE TABLE notes (text)", "table notes is not one that postern makes"},
	    {"ANALYZE", "table sqlite_stat1 is not one that postern makes"},
	    {"UPDATE verdicts SET word = CASE id WHEN 0 THEN 'denied' ELSE 'allowed' END WHERE id < 2",
		"word 0 of table verdicts is not \"allowed\""},
	    {"UPDATE reasons SET sentence = 'x' WHERE id = 3", "word 3 of table reasons is not \""},
	    {"DELETE FROM event_kinds WHERE id = 7", "word 7 of table event_kinds is not \"tampered\""},
	};
	struct verify_result result;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		tamper(cases[i].sql);
		result = verify_now();
		assert_int_equal(result.fault_count, 1);
		assert_int_equal(result.first.fault, VERIFY_CHANGED);
		assert_int_equal(result.first.table, 0);
		if (strncmp(result.first.text, cases[i].text, strlen(cases[i].text)) != 0)
			fail_msg("%s: %s", cases[i].sql, result.first.text);
		/* A record says more. */
		tamper("UPDATE connections SET name = 'evil.example' WHERE seq = 6");
		verify_finds(VERIFY_CHANGED, COLUMNS_CONNECTIONS, SEQ_FLOW_2);
		fixture_shell("rm -f \"$DB\"*");
	}
}

static void
test_numbers_that_were_exchanged(void **state)
{
	(void)state;
	verify_make();
	tamper("UPDATE events SET seq = 14 - seq");
	verify_finds(VERIFY_REORDERED, COLUMNS_EVENTS, SEQ_EVENT);
}

static void
test_a_row_that_was_put_back(void **state)
{
	(void)state;
	verify_make();
	/* As it was when it was opened. */
	tamper("UPDATE connections SET seq = 2, end = 0, closed_ts = NULL, bytes_out = NULL, bytes_in = NULL, "
	       "packets_out = NULL, packets_in = NULL, duration_us = NULL WHERE seq = 7");
	verify_finds(VERIFY_ROLLED_BACK, COLUMNS_CONNECTIONS, SEQ_CLOSE);
}

/* Whoever computes the digests anew is found by the sealed head. */
static void
test_digests_that_were_computed_anew(void **state)
{
	struct verify_result result;

	(void)state;
	verify_make();
	tamper("UPDATE connections SET name = 'evil.example' WHERE seq = 9");
	forge_link(SEQ_FLOW_3);
	verify_finds(VERIFY_REWRITTEN, 0, SEQ_SEALED + 1);
	/* The first segment stays proven. */
	result = verify_now();
	assert_int_equal(result.fault_count, 1);
	/* A record that is named in the same segment tells more. */
	tamper("UPDATE dns SET rcode = 3 WHERE seq = 8");
	verify_finds(VERIFY_CHANGED, COLUMNS_DNS, SEQ_DNS_2);
}

/* Also when its link goes with it. */
static void
test_a_removed_link(void **state)
{
	(void)state;
	verify_make();
	tamper("DELETE FROM events WHERE seq = 4; DELETE FROM chain WHERE seq = 4");
	verify_finds(VERIFY_REMOVED, 0, SEQ_EVENT);
	fixture_shell("rm -f \"$DB\"*");
	verify_make();
	tamper("DELETE FROM chain WHERE seq = 4");
	verify_finds(VERIFY_INSERTED, COLUMNS_EVENTS, SEQ_EVENT);
}

static void
test_links_that_were_exchanged(void **state)
{
	(void)state;
	verify_make();
	/* With the rows' numbers: each record is then right by itself. */
	tamper(
	    "UPDATE chain SET seq = -3 WHERE seq = 3; UPDATE chain SET seq = 3 WHERE seq = 4; UPDATE chain SET seq = 4 "
	    "WHERE seq = -3; UPDATE dns SET seq = 4 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 4");
	forge_link(3);
	forge_link(4);
	verify_finds(VERIFY_REWRITTEN, 0, 1);
}

static void
test_damaged_links(void **state)
{
	static const char *const cases[] = {"UPDATE chain SET tbl = 9 WHERE seq = 3",
	    "UPDATE chain SET tbl = -1 WHERE seq = 3", "UPDATE chain SET digest = x'00' WHERE seq = 3",
	    "UPDATE chain SET tbl = 4294967298 WHERE seq = 3"};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		tamper(cases[i]);
		verify_finds(VERIFY_REWRITTEN, 0, SEQ_DNS);
		fixture_shell("rm -f \"$DB\"*");
	}
}

static void
test_seals_that_were_tampered_with(void **state)
{
	static const struct {
		const char *sql;
		int64_t seq;
	} cases[] = {
	    {"UPDATE seals SET head = zeroblob(32) WHERE n = 2", 8},
	    {"UPDATE seals SET signature = zeroblob(64) WHERE n = 1", 1},
	    {"UPDATE seals SET ts = ts + 1 WHERE n = 2", 8},
	    {"UPDATE seals SET first_seq = 7 WHERE n = 2", 7},
	    {"UPDATE seals SET last_seq = 10 WHERE n = 2", 8},
	    {"UPDATE seals SET signature = x'00' WHERE n = 2", 8},
	    {"UPDATE seals SET key_id = 4294967296 WHERE n = 2", 8},
	    {"UPDATE seals SET n = 3 WHERE n = 2", 8},
	    {"DELETE FROM seals WHERE n = 1", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		tamper(cases[i].sql);
		verify_finds(VERIFY_BAD_SEAL, 0, cases[i].seq);
		fixture_shell("rm -f \"$DB\"*");
	}
}

/* A whole log, but of somebody else's making. */
static void
test_another_key(void **state)
{
	struct verify_options options = {.key_count = 0};
	struct seal_key keys[2];
	struct seal_signer other;
	struct verify_result result;
	char path[PATH_MAX];
	struct error err;
	bool made;

	(void)state;
	verify_make();
	snprintf(path, sizeof(path), "%s/other.key", fixture_dir);
	assert_int_equal(seal_signer_load(&other, path, &made, &err), 0);
	/* Not pinned: the file's own key counts, and the result says so. */
	verify_with(&options, &result);
	verify_ok(&result);
	assert_false(result.pinned);
	options.keys = &other.key;
	options.key_count = 1;
	verify_with(&options, &result);
	assert_int_equal(result.first.fault, VERIFY_BAD_SEAL);
	assert_int_equal(result.faults[VERIFY_BAD_SEAL], 2);
	assert_non_null(strstr(result.first.text, "not among the keys"));
	/* The id of a key alone does not sign. */
	keys[0] = other.key;
	keys[0].id = signer.key.id;
	options.keys = keys;
	verify_with(&options, &result);
	assert_non_null(strstr(result.first.text, "wrong signature"));
	keys[1] = signer.key;
	options.key_count = 2;
	verify_with(&options, &result);
	verify_ok(&result);
	seal_signer_free(&other);
}

/* A key that was put in the other's place goes on with the same chain. */
static void
test_a_rotated_key(void **state)
{
	struct verify_options options = {.key_count = 0};
	struct seal_key keys[2] = {signer.key};
	struct verify_result result;
	struct store *store;
	char path[PATH_MAX];
	struct error err;
	bool made;

	(void)state;
	verify_make();
	seal_signer_free(&signer);
	snprintf(path, sizeof(path), "%s/new.key", fixture_dir);
	assert_int_equal(seal_signer_load(&signer, path, &made, &err), 0);
	store = fixture_open(NULL);
	store_set_signer(store, &signer);
	verify_add(store, fixture_flow(8, "d.example"));
	verify_seal_now(store);
	store_close(store);
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.seals, 3);
	keys[1] = signer.key;
	options = (struct verify_options){.keys = keys, .key_count = 2};
	verify_with(&options, &result);
	verify_ok(&result);
	options.key_count = 1;
	verify_with(&options, &result);
	assert_int_equal(result.fault_count, 1);
	assert_int_equal(result.first.fault, VERIFY_BAD_SEAL);
}

/* The file's own keys must be what their ids say. */
static void
test_keys_in_the_file(void **state)
{
	struct verify_options options = {.key_count = 0};
	struct verify_result result;

	(void)state;
	verify_make();
	tamper("UPDATE seal_keys SET public = zeroblob(32)");
	verify_with(&options, &result);
	assert_int_equal(result.first.fault, VERIFY_BAD_SEAL);
	tamper("DELETE FROM seal_keys");
	verify_with(&options, &result);
	assert_int_equal(result.first.fault, VERIFY_BAD_SEAL);
}

/* Seals as they were before somebody cut the log off. */
static size_t
notes_take(struct verify_note notes[static 8])
{
	sqlite3 *db = tamper_open();
	struct rows next;
	size_t count = 0;
	bool whole;

	seal_table_prepare(&next, db, "", NULL);
	while (count < 8 && seal_table_next(&next, (int64_t)count, &notes[count].seal, &whole)) {
		assert_int_equal(seal_table_log_id(db, notes[count].log_id), SQLITE_OK);
		count++;
	}
	assert_int_equal(rows_finish(&next), 0);
	sqlite3_close(db);
	return count;
}

static struct verify_result
verify_with_notes(const struct verify_note *notes, size_t count)
{
	const struct verify_options options = {
	    .keys = &signer.key, .key_count = 1, .notes = notes, .note_count = count};
	struct verify_result result;

	verify_with(&options, &result);
	return result;
}

static void
test_a_log_that_was_cut_off(void **state)
{
	struct verify_note notes[8];
	struct verify_result result;
	size_t count;

	(void)state;
	verify_make();
	count = notes_take(notes);
	assert_int_equal(count, 2);
	result = verify_with_notes(notes, count);
	verify_ok(&result);
	assert_int_equal(result.notes_matched, 2);
	/* Everything after the first seal, and the seal: what is left is whole by itself. */
	tamper("DELETE FROM chain WHERE seq > 7; DELETE FROM connections WHERE seq > 7; DELETE FROM dns WHERE seq > 7; "
	       "DELETE FROM events WHERE seq > 7; DELETE FROM seals WHERE n > 1");
	result = verify_now();
	verify_ok(&result);
	result = verify_with_notes(notes, count);
	assert_int_equal(result.first.fault, VERIFY_TRUNCATED);
	assert_int_equal(result.notes_matched, 1);
	/* Links gone, seal still there. */
	fixture_shell("rm -f \"$DB\"*");
	verify_make();
	tamper("DELETE FROM chain WHERE seq > 7; DELETE FROM connections WHERE seq > 7; DELETE FROM dns WHERE seq > 7; "
	       "DELETE FROM events WHERE seq > 7");
	verify_finds(VERIFY_TRUNCATED, 0, SEQ_DNS_2);
}

/* The key's holder writes another history: right by itself, but not the one whose seals were taken. */
static void
test_a_history_that_was_written_anew(void **state)
{
	struct verify_note notes[8];
	struct verify_result result;
	struct store *store;
	size_t count;

	(void)state;
	verify_make();
	count = notes_take(notes);
	tamper("DELETE FROM chain WHERE seq > 7; DELETE FROM connections WHERE seq > 7; DELETE FROM dns WHERE seq > 7; "
	       "DELETE FROM events WHERE seq > 7; DELETE FROM seals WHERE n > 1");
	store = fixture_open(NULL);
	store_set_signer(store, &signer);
	verify_add(store, fixture_dns(5, "b.example", 9));
	verify_add(store, fixture_flow(6, "innocent.example"));
	verify_seal_now(store);
	store_close(store);
	result = verify_now();
	verify_ok(&result);
	result = verify_with_notes(notes, count);
	assert_int_equal(result.first.fault, VERIFY_REWRITTEN);
	assert_int_equal(result.first.seq, SEQ_SEALED + 1);
	/* Or begins a log of its own. */
	fixture_shell("rm -f \"$DB\"*");
	verify_make();
	result = verify_with_notes(notes, count);
	assert_int_equal(result.first.fault, VERIFY_TRUNCATED);
	assert_int_equal(result.notes_of_others, 2);
	/* What was taken must be signed, too: anybody can write a note. */
	count = notes_take(notes);
	notes[1].seal.last_seq = 12;
	result = verify_with_notes(notes, count);
	assert_int_equal(result.first.fault, VERIFY_BAD_SEAL);
}

static void
test_a_beginning_in_the_middle(void **state)
{
	struct verify_options options = {.keys = &signer.key, .key_count = 1, .since_seq = SEQ_SEALED + 2};
	struct verify_result result;

	(void)state;
	verify_make();
	tamper("UPDATE events SET uid = 7 WHERE seq = 4");
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.from_seq, SEQ_SEALED);
	assert_int_equal(result.links, 3);
	assert_int_equal(result.seals, 1);
	options.since_seq = SEQ_SEALED;
	verify_with(&options, &result);
	assert_int_equal(result.from_seq, 0);
	assert_int_equal(result.first.seq, SEQ_EVENT);
	options.since_seq = 0;
	options.since_us = INT64_MAX;
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.links, 1);
	/* What comes after the beginning is found. */
	tamper("UPDATE events SET uid = 7 WHERE seq = 10");
	verify_with(&options, &result);
	assert_int_equal(result.first.seq, SEQ_TAIL);
	/* A seal that proves nothing is no beginning. */
	tamper("UPDATE seals SET signature = zeroblob(64)");
	verify_with(&options, &result);
	assert_int_equal(result.from_seq, 0);
	assert_int_equal(result.first.seq, SEQ_EVENT);
	assert_int_equal(result.faults[VERIFY_BAD_SEAL], 2);
}

/* The links that are not sealed yet, as if the clock said ts_us. */
static void
seal_at(int64_t ts_us)
{
	sqlite3 *db = tamper_open();
	struct insert_state state;
	struct store_seal seal;

	assert_int_equal(store_seal_open(&seal, db, &(struct insert_state){.seq = 0}, &state), SQLITE_OK);
	seal.signer = &signer;
	assert_int_equal(store_seal_write(&seal, &state, ts_us), SQLITE_OK);
	store_seal_close(&seal);
	sqlite3_close(db);
}

/* Seals made after the clock was set back look older than the time that was asked for. */
static void
test_a_beginning_before_the_clock_was_set_back(void **state)
{
	struct verify_options options = {.keys = &signer.key, .key_count = 1};
	struct verify_result result;

	(void)state;
	verify_make();
	options.since_us = fixture_integer("SELECT ts FROM seals WHERE n = 2");
	verify_with(&options, &result);
	assert_int_equal(result.from_seq, SEQ_SEALED);
	assert_int_equal(result.from_us, fixture_integer("SELECT ts FROM seals WHERE n = 1"));
	seal_at(FIXTURE_TS);
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.from_seq, SEQ_SEALED);
	assert_int_equal(result.newest.n, 3);
}

/* The oldest segment goes as the auditor lets it go. */
static int64_t
prune_segment(struct store *store)
{
	const struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment segment;
	char detail[64];
	struct error err;

	assert_int_equal(store_prune(store, &limits, &segment, &err), 1);
	assert_int_equal(segment.untold, 0);
	snprintf(detail, sizeof(detail), "{\"through\":%lld}", (long long)segment.through);
	verify_add(store, fixture_event(90000, EVENT_PRUNED, detail));
	verify_seal_now(store);
	return segment.through;
}

static void
prune_oldest(void)
{
	struct store *store = fixture_open(NULL);

	store_set_signer(store, &signer);
	assert_int_equal(prune_segment(store), SEQ_SEALED);
	store_close(store);
}

/* As somebody else would: the same rows and links, the number, and no word of it. */
#define PRUNE                                                                                                          \
	"DELETE FROM connections WHERE seq <= 7; DELETE FROM dns WHERE seq <= 7; DELETE FROM events WHERE seq <= 7; "  \
	"DELETE FROM sandboxes WHERE seq <= 7; DELETE FROM accounts WHERE seq <= 7; DELETE FROM chain WHERE seq <= "   \
	"7; "                                                                                                          \
	"UPDATE meta SET value = 7 WHERE key = 'pruned_through'"

static void
test_a_pruned_log_passes(void **state)
{
	struct verify_note notes[8];
	struct verify_result result;
	size_t count;

	(void)state;
	verify_make();
	count = notes_take(notes);
	prune_oldest();
	result = verify_with_notes(notes, count);
	verify_ok(&result);
	assert_int_equal(result.pruned_through, 7);
	assert_int_equal(result.from_seq, 7);
	assert_int_equal(result.seals, 3);
	assert_int_equal(result.unsealed, 0);
	/* Carried on: the connection that is open, the sandbox, its account; and the event. */
	assert_int_equal(result.links, SEQ_TAIL - SEQ_SEALED + 4);
	assert_int_equal(result.notes_matched, 2);
	/* And is as good a witness for the rest. */
	tamper("UPDATE connections SET name = 'evil.example' WHERE seq = 9");
	verify_finds(VERIFY_CHANGED, COLUMNS_CONNECTIONS, SEQ_FLOW_3);
	forge_link(SEQ_FLOW_3);
	verify_finds(VERIFY_REWRITTEN, 0, SEQ_SEALED + 1);
	/* A row that was put where all are dropped. */
	tamper("INSERT INTO events VALUES (99, 4, 0, 1, 14, NULL, '{}')");
	verify_finds(VERIFY_INSERTED, COLUMNS_EVENTS, 4);
	/* Also with a link beside it. */
	tamper("INSERT INTO chain VALUES (4, 3, 99, zeroblob(32))");
	verify_finds(VERIFY_INSERTED, COLUMNS_EVENTS, 4);
}

static void
test_pruning_ends_with_a_seal(void **state)
{
	(void)state;
	verify_make();
	prune_oldest();
	tamper("UPDATE meta SET value = 6 WHERE key = 'pruned_through'");
	verify_finds(VERIFY_REMOVED, 0, 1);
	/* That, and that no event says 6. */
	assert_int_equal(verify_now().faults[VERIFY_REMOVED], 2);
	/* Seals stay. */
	tamper("UPDATE meta SET value = 7 WHERE key = 'pruned_through'; DELETE FROM seals WHERE n = 1");
	verify_finds(VERIFY_BAD_SEAL, 0, 1);
}

/* Rows, links and the number of a log whose beginning somebody wants to be forgotten. */
static void
test_pruning_that_nobody_tells_of(void **state)
{
	static const char *const lies[] = {
	    "INSERT INTO events VALUES (99, 11, 0, 1, 16, NULL, '{\"through\":7}')",
	    "INSERT INTO events VALUES (99, 11, 0, 1, 16, NULL, '{\"through\":')",
	    "INSERT INTO events VALUES (99, 11, 0, 1, 16, NULL, NULL)",
	    "UPDATE events SET kind = 16, detail = '{\"through\":7}' WHERE seq = 10",
	};
	struct verify_result result;

	(void)state;
	verify_make();
	tamper(PRUNE);
	verify_finds(VERIFY_REMOVED, 0, 1);
	result = verify_now();
	assert_int_equal(result.fault_count, 1);
	assert_string_equal(result.first.text, "rows up to number 7 were pruned, but no event of retention says so");
	/* An event that says so is a row like any other: it must have been written by the log's writer. */
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		fixture_shell("rm -f \"$DB\"*");
		verify_make();
		tamper(PRUNE);
		tamper(lies[i]);
		assert_true(verify_now().fault_count > 0);
	}
	/* One that tells of less does not tell of all. */
	fixture_shell("rm -f \"$DB\"*");
	verify_make();
	prune_oldest();
	tamper(
	    "DELETE FROM connections WHERE seq <= 9; DELETE FROM dns WHERE seq <= 9; DELETE FROM chain WHERE seq <= 9;"
	    "UPDATE meta SET value = 9 WHERE key = 'pruned_through'");
	verify_finds(VERIFY_REMOVED, 0, 1);
	assert_int_equal(verify_now().fault_count, 1);
}

/* Links after the newest seal are not proven: with an event among them that nobody but the auditor writes, all the rest
 * could be dropped. */
static void
test_pruning_that_nothing_signed_tells_of(void **state)
{
	struct verify_result result;
	struct store *store;

	(void)state;
	verify_make();
	/* Without a key: a store does for whoever forges it. */
	store = fixture_open(NULL);
	verify_add(store, fixture_event(90000, EVENT_PRUNED, "{\"through\":7}"));
	fixture_commit(store);
	store_close(store);
	result = verify_now();
	verify_ok(&result);
	tamper(PRUNE);
	verify_finds(VERIFY_REMOVED, 0, 1);
	assert_int_equal(verify_now().fault_count, 1);
}

/* What retention drops later must not hide it. */
static void
test_retention_notices_pruning_that_nobody_told_of(void **state)
{
	const struct prune_limits limits = {.before_us = INT64_MAX, .now_us = INT64_MAX};
	struct prune_segment segment;
	struct store *store;
	struct error err;

	(void)state;
	verify_make();
	tamper(PRUNE);
	store = fixture_open(NULL);
	store_set_signer(store, &signer);
	verify_seal_now(store);
	assert_int_equal(store_prune(store, &limits, &segment, &err), 1);
	assert_int_equal(segment.untold, SEQ_SEALED);
	store_close(store);
}

struct prune_meanwhile {
	struct store *store;
	bool done, by_hand;
};

/* Segments go while they are walked. */
static void
prune_on_the_way(uint64_t done, uint64_t total, void *context)
{
	struct prune_meanwhile *prune = context;

	(void)total;
	if (prune->done || done == 0)
		return;
	prune->done = true;
	for (int i = 0; i < 4 && !prune->by_hand; i++)
		prune_segment(prune->store);
	if (prune->by_hand)
		tamper("UPDATE meta SET value = (SELECT last_seq FROM seals WHERE n = 6) WHERE key = 'pruned_through';"
		       "DELETE FROM connections WHERE seq <= (SELECT last_seq FROM seals WHERE n = 6);"
		       "DELETE FROM chain WHERE seq <= (SELECT last_seq FROM seals WHERE n = 6)");
}

static void
test_a_log_that_is_pruned_meanwhile(void **state)
{
	struct prune_meanwhile prune = {.done = false};
	const struct verify_options options = {
	    .keys = &signer.key, .key_count = 1, .progress_handler = prune_on_the_way, .context = &prune};
	struct store *store = prune.store = verify_make_open();
	struct verify_result result;

	(void)state;
	for (uint64_t i = 10; i < 6000; i++) {
		verify_add(store, fixture_denied(i, "a.example", 9));
		if (i % 500 == 0)
			fixture_commit(store);
	}
	verify_seal_now(store);
	assert_true(fixture_integer("SELECT max(n) FROM seals") > 5);
	verify_with(&options, &result);
	verify_ok(&result);
	assert_true(prune.done);
	assert_true(result.pruned_through > 1500);
	assert_true(result.links < 6000 && result.links > 2000);
	prune = (struct prune_meanwhile){.store = store, .by_hand = true};
	verify_add(store, fixture_denied(6000, "a.example", 9));
	verify_seal_now(store);
	verify_with(&options, &result);
	assert_true(prune.done);
	assert_int_equal(result.first.fault, VERIFY_REMOVED);
	assert_int_equal(result.first.seq, 1);
	store_close(store);
}

static void
test_accounts_that_do_not_add_up(void **state)
{
	struct verify_result result;
	struct store *store = fixture_open(NULL);

	(void)state;
	store_set_signer(store, &signer);
	verify_add(store, fixture_sandbox(FIXTURE_SANDBOX, "task1"));
	verify_add(store, fixture_flow(1, "a.example"));
	verify_add(store, fixture_dns(2, "a.example", 9));
	/* Two accepted, one recorded. */
	verify_add(store, verify_account(2, 1, 1, false));
	fixture_commit(store);
	result = verify_now();
	verify_ok(&result);
	/* More recorded than there are. */
	verify_add(store, fixture_flow(3, "a.example"));
	verify_add(store, verify_account(3, 3, 1, true));
	fixture_commit(store);
	result = verify_now();
	assert_int_equal(result.first.fault, VERIFY_ACCOUNT);
	assert_int_equal(result.first.table, COLUMNS_ACCOUNTS);
	assert_int_equal(result.accounts, 0);
	/* The one that was missing. */
	verify_add(store, fixture_flow(4, "a.example"));
	fixture_commit(store);
	result = verify_now();
	verify_ok(&result);
	assert_int_equal(result.accounts, 1);
	/* One too many after the end. */
	verify_add(store, fixture_dns(5, "a.example", 9));
	fixture_commit(store);
	result = verify_now();
	assert_int_equal(result.first.fault, VERIFY_ACCOUNT);
	assert_non_null(strstr(result.first.text, "queries"));
	store_close(store);
}

/* A sum that is wrong because of a record that is gone is not the first to be named. */
static void
test_a_missing_record_is_named_before_the_sum(void **state)
{
	struct verify_result result;
	struct store *store = fixture_open(NULL);

	(void)state;
	store_set_signer(store, &signer);
	verify_add(store, fixture_sandbox(FIXTURE_SANDBOX, "task1"));
	verify_add(store, fixture_flow(1, "a.example"));
	verify_add(store, fixture_dns(2, "a.example", 9));
	verify_add(store, verify_account(1, 1, 1, true));
	verify_seal_now(store);
	store_close(store);
	tamper("DELETE FROM dns; DELETE FROM chain WHERE seq = 3");
	verify_finds(VERIFY_REMOVED, 0, 3);
	result = verify_now();
	assert_int_equal(result.faults[VERIFY_ACCOUNT], 1);
}

static void
test_refused_packets_are_counted_by_the_kernel(void **state)
{
	struct verify_result result;
	struct record refused = fixture_denied(1, "", 0), account = verify_account(0, 0, 0, false);
	struct store *store = fixture_open(NULL);

	(void)state;
	refused.kind = RECORD_REFUSED;
	refused.flow.count = 5;
	refused.flow.last_us = FIXTURE_TS + 1;
	verify_add(store, fixture_sandbox(FIXTURE_SANDBOX, "task1"));
	verify_add(store, refused);
	account.account.attempts[RECORD_ATTEMPT_REFUSED] = 7;
	account.account.recorded[RECORD_ATTEMPT_REFUSED][VERDICT_DENIED] = 5;
	verify_add(store, account);
	fixture_commit(store);
	result = verify_now();
	verify_ok(&result);
	account.account.recorded[RECORD_ATTEMPT_REFUSED][VERDICT_DENIED] = 7;
	account.account.final = 1;
	account.account.ts_us++;
	verify_add(store, account);
	fixture_commit(store);
	result = verify_now();
	assert_int_equal(result.first.fault, VERIFY_ACCOUNT);
	refused.flow.count = 7;
	verify_add(store, refused);
	fixture_commit(store);
	result = verify_now();
	verify_ok(&result);
	store_close(store);
}

/* Rows of a sandbox that was there before the newest pruning may be gone: its accounts prove nothing. */
static void
test_accounts_of_pruned_sandboxes_are_left_alone(void **state)
{
	struct verify_result result;
	struct store *store = fixture_open(NULL);
	struct record account = verify_account(5, 5, 5, true);

	(void)state;
	store_set_signer(store, &signer);
	verify_add(store, fixture_sandbox(FIXTURE_SANDBOX, "task1"));
	verify_add(store, fixture_denied(1, "a.example", 9));
	verify_seal_now(store);
	verify_add(store, account);
	verify_seal_now(store);
	result = verify_now();
	assert_int_equal(result.first.fault, VERIFY_ACCOUNT);
	assert_int_equal(prune_segment(store), 2);
	assert_int_equal(fixture_integer("SELECT count(*) FROM connections"), 0);
	result = verify_now();
	verify_ok(&result);
	assert_int_equal(result.accounts_pruned, 1);
	store_close(store);
}

static void
count_gap(const struct verify_gap *gap, void *context)
{
	*(unsigned int *)context |= 1u << gap->kind;
}

static void
test_gaps_are_told_and_are_no_faults(void **state)
{
	unsigned int seen = 0;
	struct verify_options options = {.gap_handler = count_gap, .context = &seen};
	struct verify_result result;
	struct store *store = fixture_open(NULL);

	(void)state;
	verify_add(store, fixture_event(1, EVENT_ROLE_CRASH, "{\"role\":\"gateway\"}"));
	verify_add(store, fixture_event(2, EVENT_AUDIT_RESUMED, "{\"lost\":0}"));
	verify_add(store, fixture_event(3, EVENT_AUDIT_RESUMED, "{\"lost\":3}"));
	verify_add(store, fixture_event(4, EVENT_AUDIT_REPLACED, "{}"));
	verify_add(store, fixture_event(5, EVENT_TAMPERED, "{\"repaired\":true}"));
	verify_add(store, fixture_event(6, EVENT_TAMPERED, "{\"log\":\"x\"}"));
	fixture_commit(store);
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.gaps, 4);
	assert_int_equal(seen,
	    1u << EVENT_ROLE_CRASH | 1u << EVENT_AUDIT_RESUMED | 1u << EVENT_AUDIT_REPLACED | 1u << EVENT_TAMPERED);
	store_close(store);
}

/* More than one page of everything, while it is written. */
static void
test_a_long_log_that_is_still_written(void **state)
{
	struct store *store = verify_make_open();
	struct verify_result result;

	(void)state;
	for (uint64_t i = 10; i < 5000; i++) {
		verify_add(store, fixture_flow(i, "a.example"));
		if (i % 700 == 0)
			fixture_commit(store);
	}
	result = verify_now();
	verify_ok(&result);
	fixture_commit(store);
	result = verify_now();
	verify_ok(&result);
	assert_int_equal(result.links, 5000);
	assert_true(result.seals >= 5);
	tamper("DELETE FROM connections WHERE seq = 3000");
	verify_finds(VERIFY_REMOVED, COLUMNS_CONNECTIONS, 3000);
	store_close(store);
}

/* Closed in order: the daemon's word that it stops, and a seal over it. */
static void
verify_make_closed(void)
{
	struct store *store = verify_make_open();

	verify_add(store, fixture_event(20, EVENT_DAEMON_STOP, "{}"));
	verify_seal_now(store);
	store_close(store);
}

/* What an opening says that was done to the log since it was last written. */
static const char *
opening_finds(void)
{
	static struct store_opening opening;
	struct store *store = fixture_open(&opening);

	store_set_signer(store, &signer);
	assert_false(opening.replaced);
	store_close(store);
	return opening.changed;
}

static void
found_at_opening(const char *text)
{
	const char *found = opening_finds();

	if (strstr(found, text) == NULL)
		fail_msg("found: %s, not: %s", found, text);
}

/* Links that fit need no key. Behind an end in order there are none. */
static void
test_changes_after_the_log_was_closed(void **state)
{
	struct verify_result result;
	struct store *store;

	(void)state;
	verify_make_closed();
	assert_string_equal(opening_finds(), "");
	/* A store without a key does for whoever adds them. */
	store = fixture_open(NULL);
	verify_add(store, fixture_dns(30, "forged.example", 14));
	verify_add(store, fixture_flow(31, "forged.example"));
	fixture_commit(store);
	store_close(store);
	verify_finds(VERIFY_INSERTED, 0, 12);
	assert_int_equal(verify_now().fault_count, 1);
	found_at_opening("2 changes were added after number 11, with which it had been closed");
	/* The next start's own first changes are sealed with them; after that an end without a seal is a crash's. */
	fixture_shell("rm -f \"$DB\"*");
	verify_make_closed();
	store = fixture_open(NULL);
	store_set_signer(store, &signer);
	verify_add(store, fixture_event(40, EVENT_DAEMON_START, "{}"));
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT max(last_seq) FROM seals"), 12);
	verify_add(store, fixture_event(41, EVENT_MARK, "{}"));
	fixture_commit(store);
	assert_int_equal(fixture_integer("SELECT max(last_seq) FROM seals"), 12);
	store_close(store);
	result = verify_now();
	verify_ok(&result);
	assert_int_equal(result.unsealed, 1);
	assert_string_equal(opening_finds(), "");
}

/* As many links as make a seal due have one: whoever took the seals away, to write all of it anew, is found. */
static void
test_more_links_than_a_writer_leaves_without_a_seal(void **state)
{
	struct store *store = verify_make_open();

	(void)state;
	for (uint64_t i = 100; i < 100 + SEAL_LINKS; i++)
		verify_add(store, fixture_denied(i, "a.example", 9));
	fixture_commit(store);
	verify_seal_now(store);
	store_close(store);
	tamper("DELETE FROM seals");
	verify_finds(VERIFY_BAD_SEAL, 0, 1);
	found_at_opening("1010 changes after number 0 are under no seal");
}

/* F-24: the writer knows how far it had come, and which chain that was. */
static void
case_F_24_an_end_that_is_not_the_one_that_was_written(void **state)
{
	static const struct {
		const char *shell, *text;
	} cases[] = {
	    {"cp \"$DIR/before.db\" \"$DB\"", "it ends with number 10, and with 11 when it was last written"},
	    {"sqlite3 \"$DB\" 'DELETE FROM seals WHERE n = 3; DELETE FROM events WHERE seq = 11; "
	     "DELETE FROM chain WHERE seq = 11'",
		"it ends with number 10, and with 11"},
	    {"sqlite3 \"$DB\" 'DELETE FROM seals; UPDATE events SET detail = NULL WHERE seq = 10; "
	     "UPDATE chain SET digest = zeroblob(32) WHERE seq = 10'",
		"its end up to number 11 is not what was written"},
	    {"sqlite3 \"$DB\" 'UPDATE chain SET digest = zeroblob(32) WHERE seq = 4; UPDATE seals SET head = "
	     "zeroblob(32) "
	     "WHERE n = 3'",
		"its end up to number 11 is not what was written"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		assert_string_equal(opening_finds(), "");
		fixture_shell("sqlite3 \"$DB\" '.backup '\"$DIR/before.db\"''");
		struct store *store = fixture_open(NULL);
		store_set_signer(store, &signer);
		verify_add(store, fixture_event(20, EVENT_MARK, "{}"));
		verify_seal_now(store);
		store_close(store);
		fixture_shell("sqlite3 \"$DB\" 'PRAGMA wal_checkpoint(TRUNCATE)' > /dev/null");
		assert_string_equal(opening_finds(), "");
		fixture_shell(cases[i].shell);
		found_at_opening(cases[i].text);
		fixture_shell("rm -f \"$DB\"*");
	}
	/* A new file owes nothing to the one before it. */
	verify_make_closed();
	fixture_shell("rm -f \"$DB\" \"$DB-wal\" \"$DB-shm\"");
	store_close(fixture_open(NULL));
	assert_string_equal(opening_finds(), "");
}

/* The writer itself notices when the end of its file is not what it wrote. */
static void
test_the_writer_looks_at_the_end(void **state)
{
	static const char *const cases[] = {"DELETE FROM chain WHERE seq = 10", "DELETE FROM seals WHERE n = 2",
	    "INSERT INTO chain VALUES (11, 3, 1, zeroblob(32))", "UPDATE seals SET head = zeroblob(32) WHERE n = 2",
	    "DELETE FROM chain"};
	struct store *store;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		store = verify_make_open();
		assert_int_equal(store_look(store, &err), 0);
		verify_add(store, fixture_flow(8, "d.example"));
		assert_int_equal(store_look(store, &err), 0); /* not committed yet */
		fixture_commit(store);
		assert_int_equal(store_look(store, &err), 0);
		verify_seal_now(store);
		assert_int_equal(store_look(store, &err), 0);
		assert_false(store_changed_by_others(store));
		store_close(store);
		fixture_shell("rm -f \"$DB\"*");
		store = verify_make_open();
		tamper(cases[i]);
		assert_int_equal(store_look(store, &err), -1);
		assert_true(store_changed_by_others(store));
		assert_true(store_must_reopen(store));
		store_close(store);
		fixture_shell("rm -f \"$DB\"*");
	}
}

/* Numbers at the ends of what a column takes; for a build with sanitizers, too. */
static void
test_extreme_numbers(void **state)
{
	static const char *const columns[] = {"chain.seq", "chain.tbl", "chain.id", "seals.n", "seals.first_seq",
	    "seals.last_seq", "seals.ts", "seals.key_id", "connections.id", "connections.seq", "connections.count",
	    "connections.sandbox_id", "connections.verdict", "dns.count", "events.kind", "events.ts", "accounts.id",
	    "accounts.seq", "accounts.sandbox_id", "accounts.queries", "accounts.queries_allowed", "sandboxes.id"};
	static const char *const numbers[] = {
	    "9223372036854775807", "-9223372036854775807 - 1", "0", "-1", "4294967296"};

	(void)state;
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]) * 5; i++) {
		char table[32];
		const char *column = columns[i / 5];
		size_t len = strcspn(column, ".");

		memcpy(table, column, len);
		table[len] = '\0';
		verify_make();
		if (change_value(table, column + len + 1, numbers[i % 5], 1) |
		    change_value(table, column + len + 1, numbers[i % 5], 0))
			if (verify_now().fault_count == 0)
				fail_msg("nothing found after %s = %s", column, numbers[i % 5]);
		fixture_shell("rm -f \"$DB\"*");
	}
}

static void
test_hostile_schemas_fail(void **state)
{
	static const char *const cases[] = {"DROP TABLE chain", "DROP TABLE seals", "DROP TABLE accounts",
	    "UPDATE meta SET value = 'x' WHERE key = 'log_id'", "DELETE FROM meta", "PRAGMA application_id = 1",
	    "ALTER TABLE connections ADD COLUMN more TEXT",
	    "ALTER TABLE connections RENAME TO more; CREATE VIEW connections AS SELECT * FROM more"};
	const struct verify_options options = {.key_count = 0};
	struct verify_result result;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		verify_make();
		tamper(cases[i]);
		assert_int_equal(verify_run(fixture_db, &options, &result, &err), -1);
		fixture_shell("rm -f \"$DB\"*");
	}
	assert_int_equal(verify_run(fixture_db, &options, &result, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void
test_one_sandbox(void **state)
{
	struct verify_options options = {.sandbox = "task1"};
	struct verify_result result;
	struct error err;

	(void)state;
	verify_make();
	verify_with(&options, &result);
	verify_ok(&result);
	assert_int_equal(result.accounts, 1);
	options.sandbox = "task2";
	assert_int_equal(verify_run(fixture_db, &options, &result, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

#define VERIFY_TEST(test) cmocka_unit_test_setup_teardown(test, verify_setup, verify_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    VERIFY_TEST(test_a_whole_log_passes),
	    VERIFY_TEST(test_an_empty_log_passes),
	    VERIFY_TEST(test_a_changed_row_is_named),
	    VERIFY_TEST(test_a_removed_row_is_named),
	    VERIFY_TEST(test_an_inserted_row_is_named),
	    VERIFY_TEST(test_any_changed_value_is_found),
	    VERIFY_TEST(test_a_row_that_no_index_has_is_named),
	    VERIFY_TEST(test_a_row_that_is_hidden_from_an_index_is_named),
	    VERIFY_TEST(test_a_schema_that_is_not_postern_s_is_told),
	    VERIFY_TEST(test_numbers_that_were_exchanged),
	    VERIFY_TEST(test_a_row_that_was_put_back),
	    VERIFY_TEST(test_digests_that_were_computed_anew),
	    VERIFY_TEST(test_a_removed_link),
	    VERIFY_TEST(test_links_that_were_exchanged),
	    VERIFY_TEST(test_damaged_links),
	    VERIFY_TEST(test_seals_that_were_tampered_with),
	    VERIFY_TEST(test_another_key),
	    VERIFY_TEST(test_a_rotated_key),
	    VERIFY_TEST(test_keys_in_the_file),
	    VERIFY_TEST(test_a_log_that_was_cut_off),
	    VERIFY_TEST(test_a_history_that_was_written_anew),
	    VERIFY_TEST(test_a_beginning_in_the_middle),
	    VERIFY_TEST(test_a_beginning_before_the_clock_was_set_back),
	    VERIFY_TEST(test_a_pruned_log_passes),
	    VERIFY_TEST(test_pruning_ends_with_a_seal),
	    VERIFY_TEST(test_pruning_that_nobody_tells_of),
	    VERIFY_TEST(test_pruning_that_nothing_signed_tells_of),
	    VERIFY_TEST(test_retention_notices_pruning_that_nobody_told_of),
	    VERIFY_TEST(test_a_log_that_is_pruned_meanwhile),
	    VERIFY_TEST(test_accounts_that_do_not_add_up),
	    VERIFY_TEST(test_a_missing_record_is_named_before_the_sum),
	    VERIFY_TEST(test_refused_packets_are_counted_by_the_kernel),
	    VERIFY_TEST(test_accounts_of_pruned_sandboxes_are_left_alone),
	    VERIFY_TEST(test_gaps_are_told_and_are_no_faults),
	    VERIFY_TEST(test_a_long_log_that_is_still_written),
	    VERIFY_TEST(test_changes_after_the_log_was_closed),
	    VERIFY_TEST(test_more_links_than_a_writer_leaves_without_a_seal),
	    VERIFY_TEST(case_F_24_an_end_that_is_not_the_one_that_was_written),
	    VERIFY_TEST(test_the_writer_looks_at_the_end),
	    VERIFY_TEST(test_extreme_numbers),
	    VERIFY_TEST(test_hostile_schemas_fail),
	    VERIFY_TEST(test_one_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
