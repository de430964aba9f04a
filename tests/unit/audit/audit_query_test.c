/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The reader: order, filters, last N, following, copies, summaries. */
#include "audit_fixture.h"
#include "policy/verdict.h"

#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>

#define OTHER_SANDBOX (FIXTURE_SANDBOX + 100)

/* Counters of the ids that a filter leaves, as "1 2 3". */
static const char *
ids(struct query *query, const struct query_filter *filter)
{
	static char text[4096];
	const struct query_row *row;
	struct error err;
	size_t len = 0;
	int rc;

	text[0] = '\0';
	if (query_start(query, filter, &err) < 0)
		fail_msg("query_start: %s", err.text);
	while ((rc = query_next(query, &row, &err)) == 1)
		len += (size_t)snprintf(
		    text + len, sizeof(text) - len, "%s%d", len > 0 ? " " : "", (int)(row->id & 0x7fffffff));
	if (rc < 0)
		fail_msg("query_next: %s", err.text);
	return text;
}

static const char *
followed(struct query *query)
{
	static char text[4096];
	const struct query_row *row;
	struct error err;
	size_t len = 0;
	int rc;

	text[0] = '\0';
	while ((rc = query_follow(query, &row, &err)) == 1)
		len += (size_t)snprintf(
		    text + len, sizeof(text) - len, "%s%d", len > 0 ? " " : "", (int)(row->id & 0x7fffffff));
	if (rc < 0)
		fail_msg("query_follow: %s", err.text);
	return text;
}

/* All that came after a cursor, in the order of change. */
static const char *
after(struct query *query, const struct query_filter *filter, const char *cursor)
{
	enum query_seek_result result;
	struct error err;

	if (query_start(query, filter, &err) < 0 || query_seek(query, cursor, &result, &err) < 0)
		fail_msg("%s", err.text);
	return followed(query);
}

static struct query *
open_query(void)
{
	struct error err;
	struct query *query = query_open(fixture_db, &err);

	if (query == NULL)
		fail_msg("query_open: %s", err.text);
	return query;
}

static struct name
host(const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

/* 1 flow github.com, 2 denied evil.example, 3 dns api.github.com, 4 event, 5 flow of another sandbox, 6 refused dns,
 * 7 flow a.b.github.com, 8 flow notgithub.com, 9 event of the sandbox; each a millisecond after the one before. */
static struct store *
make_mixture(void)
{
	struct store *store = fixture_open(NULL);
	struct record records[11];

	records[0] = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	records[1] = fixture_flow(1, "github.com");
	records[2] = fixture_denied(2, "evil.example", 12);
	records[3] = fixture_dns(3, "api.github.com", 14);
	records[4] = fixture_event(4, EVENT_DAEMON_START, "{}");
	records[5] = fixture_flow(5, "github.com");
	records[5].flow.sandbox = OTHER_SANDBOX;
	records[6] = fixture_dns(6, "evil.example", 12);
	records[6].dns.verdict = VERDICT_DENIED;
	records[6].dns.reason = REASON_NO_RULE;
	records[6].dns.rcode = 3;
	records[7] = fixture_flow(7, "a.b.github.com");
	records[8] = fixture_flow(8, "notgithub.com");
	records[9] = fixture_event(9, EVENT_POLICY, "{}");
	records[9].event.sandbox = FIXTURE_SANDBOX;
	records[10] = fixture_sandbox(OTHER_SANDBOX, "task2");
	for (size_t i = 0; i < 11; i++)
		fixture_add(store, &records[i]);
	fixture_commit(store);
	return store;
}

static void
test_filters(void **state)
{
	const struct query_term denied = {.field = QUERY_FIELD_DENIED, .low = 1, .high = INT64_MAX};
	const struct query_term exact = {.field = QUERY_FIELD_HOST, .name = host("github.com")};
	const struct query_term below = {.field = QUERY_FIELD_HOST, .name = host("github.com"), .below = true};
	const struct query_term evil[] = {denied, {.field = QUERY_FIELD_HOST, .name = host("evil.example")}};
	const struct {
		struct query_filter filter;
		const char *want;
	} cases[] = {
	    {{.kinds = 0}, "1 2 3 4 5 6 7 8 9"},
	    {{.kinds = QUERY_DNS}, "3 6"},
	    {{.kinds = QUERY_CONNECTION}, "1 2 5 7 8"},
	    {{.kinds = QUERY_EVENT}, "4 9"},
	    {{.kinds = QUERY_DNS | QUERY_EVENT}, "3 4 6 9"},
	    {{.terms = &denied, .term_count = 1}, "2 6"},
	    {{.terms = &denied, .term_count = 1, .kinds = QUERY_EVENT}, ""},
	    {{.sandbox = "task1"}, "1 2 3 6 7 8 9"},
	    {{.sandbox = "task2"}, "5"},
	    {{.sandbox_id = OTHER_SANDBOX}, "5"},
	    {{.sandbox_id = OTHER_SANDBOX, .sandbox = "task1"}, ""},
	    {{.terms = &exact, .term_count = 1}, "1 5"},
	    {{.terms = &below, .term_count = 1}, "3 7"},
	    {{.terms = evil, .term_count = 2, .kinds = QUERY_CONNECTION}, "2"},
	    {{.since_us = FIXTURE_TS + 7000}, "7 8 9"},
	    {{.until_us = FIXTURE_TS + 3000}, "1 2"},
	    {{.since_us = FIXTURE_TS + 2000, .until_us = FIXTURE_TS + 5000}, "2 3 4"},
	    {{.last = 3}, "7 8 9"},
	    {{.last = 1}, "9"},
	    {{.last = 100}, "1 2 3 4 5 6 7 8 9"},
	    {{.last = UINT64_MAX}, "1 2 3 4 5 6 7 8 9"},
	    {{.last = 2, .sandbox = "task1", .kinds = QUERY_CONNECTION}, "7 8"},
	    {{.last = 2, .until_us = FIXTURE_TS + 5000}, "3 4"},
	    {{.last = 2, .since_us = FIXTURE_TS + 9000}, "9"},
	};
	static const char *const nobody[] = {"task", "' OR 1=1 --"};
	struct store *store = make_mixture();
	struct query *query = open_query();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(ids(query, &cases[i].filter), cases[i].want);
	for (size_t i = 0; i < sizeof(nobody) / sizeof(nobody[0]); i++) {
		struct query_filter filter = {.sandbox = nobody[i]};
		struct error err;

		assert_int_equal(query_start(query, &filter, &err), -1);
		assert_int_equal(err.code, ERROR_NOT_FOUND);
	}
	query_close(query);
	store_close(store);
}

static void
test_a_name_that_two_sandboxes_had_finds_both(void **state)
{
	struct query_filter filter = {.sandbox = "task1"};
	struct store *store = make_mixture();
	struct record record = fixture_sandbox(OTHER_SANDBOX, "task1");
	struct query *query;

	(void)state;
	fixture_add(store, &record);
	fixture_commit(store);
	query = open_query();
	assert_string_equal(ids(query, &filter), "1 2 3 5 6 7 8 9");
	query_close(query);
	store_close(store);
}

static void
test_rows_carry_what_was_stored(void **state)
{
	struct query_filter filter = {.kinds = QUERY_CONNECTION, .last = 1};
	struct store *store = fixture_open(NULL);
	struct record record = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	const struct query_row *row;
	struct query *query;
	struct error err;

	(void)state;
	fixture_add(store, &record);
	record = fixture_flow(1, "github.com");
	record.flow.flags = RECORD_FLAG_ECH;
	snprintf(record.flow.alpn, sizeof(record.flow.alpn), "h2");
	fixture_add(store, &record);
	record = fixture_close(1);
	fixture_add(store, &record);
	fixture_commit(store);
	query = open_query();
	assert_int_equal(query_start(query, &filter, &err), 0);
	assert_int_equal(query_next(query, &row, &err), 1);
	assert_int_equal(row->id, RECORD_ID(FIXTURE_EPOCH, 1));
	assert_int_equal(row->ts_us, FIXTURE_TS + 1000);
	assert_int_equal(row->sandbox.len, 5);
	assert_memory_equal(row->sandbox.bytes, "task1", 5);
	assert_memory_equal(row->dst.bytes, "140.82.121.4", 12);
	assert_int_equal(row->dport, 443);
	assert_int_equal(row->flags, RECORD_FLAG_ECH);
	assert_memory_equal(row->alpn.bytes, "h2", 2);
	assert_true(row->bytes_in.set);
	assert_int_equal(row->bytes_in.value, 5678901);
	assert_int_equal(row->duration_us.value, 1203000);
	assert_int_equal(row->end, END_FIN);
	assert_null(row->name_raw.bytes);
	assert_false(row->last_us.set);
	assert_int_equal(query_next(query, &row, &err), 0);
	assert_int_equal(query_next(query, &row, &err), 0);
	query_close(query);
	store_close(store);
}

/* More rows than a page, many with equal times: each comes exactly once and in order. */
static void
test_pages_join_without_gap_or_repeat(void **state)
{
	struct query_filter filter = {.kinds = 0};
	struct store *store = fixture_open(NULL);
	const struct query_row *row;
	const int total = QUERY_PAGE * 3 + 17;
	struct query *query;
	struct error err;
	int count = 0;
	int64_t ts = 0;
	uint64_t sum = 0, want = 0;

	(void)state;
	for (int i = 1; i <= total; i++) {
		struct record record = i % 3 == 0 ? fixture_dns((uint64_t)i, "x.example", 9)
		    : i % 7 == 0                  ? fixture_event((uint64_t)i, EVENT_ATTACH, "{}")
						  : fixture_flow((uint64_t)i, "github.com");

		if (record.kind == RECORD_DNS)
			record.dns.ts_us = FIXTURE_TS + i / 400;
		else if (record.kind == RECORD_EVENT)
			record.event.ts_us = FIXTURE_TS + i / 400;
		else
			record.flow.ts_us = FIXTURE_TS + i / 400;
		fixture_add(store, &record);
		want += (uint64_t)i;
	}
	fixture_commit(store);
	query = open_query();
	assert_int_equal(query_start(query, &filter, &err), 0);
	while (query_next(query, &row, &err) == 1) {
		assert_true(row->ts_us >= ts);
		ts = row->ts_us;
		sum += row->id & 0x7fffffff;
		count++;
	}
	assert_int_equal(count, total);
	assert_int_equal(sum, want);
	filter.last = QUERY_PAGE + 5;
	assert_int_equal(query_start(query, &filter, &err), 0);
	for (count = 0; query_next(query, &row, &err) == 1; count++)
		;
	assert_int_equal(count, QUERY_PAGE + 5);
	query_close(query);
	store_close(store);
}

static void
test_following_sees_late_commits_and_closes(void **state)
{
	struct query_filter filter = {.last = 2, .will_follow = true};
	struct store *store = make_mixture();
	struct query *query = open_query();
	struct record record;

	(void)state;
	assert_string_equal(ids(query, &filter), "8 9");
	assert_string_equal(followed(query), "");
	/* Older than everything shown, committed later. */
	record = fixture_flow(20, "late.example");
	record.flow.ts_us = FIXTURE_TS - 60000000;
	fixture_add(store, &record);
	fixture_commit(store);
	assert_string_equal(followed(query), "20");
	/* A connection shown long ago is closed: again, with its end. */
	record = fixture_close(1);
	fixture_add(store, &record);
	record = fixture_dns(21, "x.example", 9);
	fixture_add(store, &record);
	assert_string_equal(followed(query), "");
	fixture_commit(store);
	assert_string_equal(followed(query), "1 21");
	assert_string_equal(followed(query), "");
	query_close(query);
	store_close(store);
}

static void
test_following_filters(void **state)
{
	const struct query_term denied = {.field = QUERY_FIELD_DENIED, .low = 1, .high = INT64_MAX};
	struct query_filter filter = {.terms = &denied, .term_count = 1, .sandbox = "task9", .will_follow = true};
	struct store *store = make_mixture();
	struct query *query = open_query();
	struct record record;

	(void)state;
	/* The sandbox comes later than the follower. */
	assert_string_equal(ids(query, &filter), "");
	record = fixture_sandbox(777, "task9");
	fixture_add(store, &record);
	record = fixture_denied(30, "x", 1);
	fixture_add(store, &record);
	record.flow.id++;
	record.flow.sandbox = 777;
	fixture_add(store, &record);
	fixture_commit(store);
	assert_string_equal(followed(query), "31");
	query_close(query);
	store_close(store);
}

/* A row that changes between the beginning and the first look of the follower comes once, as it is now. */
static void
test_changes_while_starting_come_once(void **state)
{
	struct query_filter filter = {.kinds = QUERY_CONNECTION, .will_follow = true};
	struct store *store = make_mixture();
	struct query *query = open_query();
	struct record record = fixture_close(7);
	const struct query_row *row;
	struct error err;
	char text[256] = "";

	(void)state;
	assert_int_equal(query_start(query, &filter, &err), 0);
	fixture_add(store, &record);
	fixture_commit(store);
	while (query_next(query, &row, &err) == 1)
		snprintf(text + strlen(text), sizeof(text) - strlen(text), "%d ", (int)(row->id & 0x7fffffff));
	assert_string_equal(text, "1 2 5 8 ");
	assert_string_equal(followed(query), "7");
	query_close(query);
	store_close(store);
}

/* A writer in another process, a follower here: every row and every close, each once. */
static void
test_following_while_a_writer_writes(void **state)
{
	enum { ROWS = 3000 };
	struct query_filter filter = {.will_follow = true};
	unsigned char opened[ROWS + 1] = {0}, closed[ROWS + 1] = {0};
	struct store *store = fixture_open(NULL);
	const struct query_row *row;
	struct query *query;
	struct error err;
	bool ended = false;
	pid_t pid;

	(void)state;
	store_close(store);
	query = open_query();
	assert_int_equal(query_start(query, &filter, &err), 0);
	assert_int_equal(query_next(query, &row, &err), 0);
	pid = fork();
	if (pid == 0) {
		struct store_opening opening;

		store = store_open(fixture_db, &opening, &err);
		if (store == NULL || store_start_checkpoints(store, &err) < 0)
			_exit(1);
		for (uint64_t i = 1; i <= ROWS + 100; i++) {
			struct record record = i <= ROWS ? fixture_flow(i, "github.com") : fixture_close(i - 100);

			/* Times run backwards: the order of commits is what counts. */
			record.flow.ts_us = i <= ROWS ? FIXTURE_TS - (int64_t)i : record.flow.ts_us;
			if (store_add(store, &record, &err) < 0)
				_exit(2);
			if (i > 100) {
				record = fixture_close(i - 100);
				if (store_add(store, &record, &err) < 0)
					_exit(3);
			}
			if (i % 5 == 0 && store_commit(store, &err) < 0)
				_exit(4);
		}
		store_commit(store, &err);
		store_close(store);
		_exit(0);
	}
	for (;;) {
		int status, rc;

		while ((rc = query_follow(query, &row, &err)) == 1) {
			uint64_t i = row->id & 0x7fffffff;

			assert_in_range(i, 1, ROWS);
			if (row->end == END_OPEN)
				opened[i]++;
			else
				closed[i]++;
		}
		assert_int_equal(rc, 0);
		if (ended)
			break;
		ended = waitpid(pid, &status, WNOHANG) == pid;
		if (ended)
			assert_int_equal(status, 0);
		usleep(1000);
	}
	for (int i = 1; i <= ROWS; i++) {
		assert_true(opened[i] <= 1); /* opened and closed between two looks: seen closed only */
		assert_int_equal(closed[i], 1);
	}
	query_close(query);
}

static void
test_copies_are_read_without_their_log(void **state)
{
	struct query_filter filter = {.kinds = 0};
	struct store *store = make_mixture();
	struct query *query;
	char original[96];

	(void)state;
	store_close(store);
	fixture_shell("mkdir $DIR/copy && cp $DB \"$DIR/copy/a?b#%41.db\" && chmod 0555 $DIR/copy");
	memcpy(original, fixture_db, sizeof(original));
	snprintf(fixture_db, sizeof(fixture_db), "%s/copy/a?b#%%41.db", fixture_dir);
	query = open_query();
	assert_true(query_is_stale(query));
	assert_string_equal(ids(query, &filter), "1 2 3 4 5 6 7 8 9");
	query_close(query);
	/* Nothing was made beside it. */
	memcpy(fixture_db, original, sizeof(original));
	fixture_shell("test $(ls $DIR/copy | wc -l) = 1 && chmod 0755 $DIR/copy");
}

static void
test_a_replaced_file_is_stale(void **state)
{
	struct store *store = make_mixture();
	struct query *query = open_query();

	(void)state;
	assert_false(query_is_stale(query));
	store_close(store);
	fixture_shell("cp $DB $DB.new && mv $DB.new $DB");
	assert_true(query_is_stale(query));
	fixture_shell("rm $DB");
	assert_true(query_is_stale(query));
	query_close(query);
}

static void
test_what_is_no_audit_log_is_refused(void **state)
{
	static const struct {
		const char *make;
		enum error_code code;
		const char *says;
	} cases[] = {
	    {"rm -rf $DB", ERROR_NOT_FOUND, "posternd has not run"},
	    {"echo x > $DB", ERROR_CORRUPT, "is not an audit database, nor any of SQLite's"},
	    {": > $DB", ERROR_CORRUPT, "is not an audit database"},
	    {"rm $DB; sqlite3 $DB 'CREATE TABLE connections (id)'", ERROR_CORRUPT, "is not an audit database"},
	    {"truncate -s 4096 $DB", ERROR_CORRUPT, "is damaged, or a part of a copy"},
	    {"rm $DB; sqlite3 $DB 'PRAGMA application_id = 1886614642; PRAGMA user_version = 99; CREATE TABLE t (id)'",
		ERROR_USAGE, "upgrade this one"},
	    {"rm $DB; mkdir $DB", ERROR_USAGE, "is a directory"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct error err;

		fixture_shell(cases[i].make);
		assert_null(query_open(fixture_db, &err));
		assert_int_equal(err.code, cases[i].code);
		if (strstr(err.text, cases[i].says) == NULL)
			fail_msg("%s: %s", cases[i].make, err.text);
	}
	fixture_shell("rmdir $DB");
}

/* 1 flow 443 to 140.82.121.4 closed with bytes, in US and AS 36459; 2 udp to 2606:4700::1111 port 853, limited; 3 dns
 * TXT; 4 mark; 5 a flow of a sandbox with labels, by another rule; 6 spoofed source, no name. */
static struct store *
make_fields(void)
{
	struct store *store = fixture_open(NULL);
	struct record records[9];
	const uint8_t six[16] = {0x26, 0x06, 0x47, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x11, 0x11};

	records[0] = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	records[1] = fixture_sandbox(OTHER_SANDBOX, "task2");
	snprintf(records[1].sandbox.detail, sizeof(records[1].sandbox.detail),
	    "{\"labels\":{\"team\":\"red\",\"a.b/c\":\"x=y\"}}");
	records[2] = fixture_flow(1, "github.com");
	memcpy(records[2].flow.country, "US", 3);
	records[2].flow.asn = 36459;
	records[3] = fixture_denied(2, "one.example", 11);
	records[3].flow.proto = 17;
	records[3].flow.dport = 853;
	records[3].flow.dst = addr_from_ipv6(six);
	records[3].flow.verdict = VERDICT_LIMITED;
	records[3].flow.reason = REASON_LIMIT_RATE;
	records[4] = fixture_dns(3, "t.github.com", 12);
	records[4].dns.qtype = 16;
	records[5] = fixture_event(4, EVENT_MARK, "{\"text\":\"x\"}");
	records[6] = fixture_flow(5, "a.b.example");
	records[6].flow.sandbox = OTHER_SANDBOX;
	snprintf(records[6].flow.rule, sizeof(records[6].flow.rule), "allow *.b.example (org.yaml:2)");
	records[7] = fixture_denied(6, "", 0);
	records[7].flow.src = fixture_addr(10, 9, 8, 7);
	records[7].flow.reason = REASON_SPOOFED_SOURCE;
	records[8] = fixture_close(1);
	/* The end of the first comes before the second, so that the order of change is that of time. */
	for (size_t i = 0; i < 3; i++)
		fixture_add(store, &records[i]);
	fixture_add(store, &records[8]);
	for (size_t i = 3; i < 8; i++)
		fixture_add(store, &records[i]);
	fixture_commit(store);
	return store;
}

static struct query_term
range(enum query_field field, int64_t low, int64_t high)
{
	return (struct query_term){.field = field, .low = low, .high = high};
}

static struct query_term
text(enum query_field field, const char *what, const char *value)
{
	return (struct query_term){.field = field, .text = what, .value = value};
}

static struct query_term
ip(const char *prefix)
{
	struct query_term term = {.field = QUERY_FIELD_IP};

	assert_true(addr_prefix_parse(prefix, strlen(prefix), &term.prefix));
	return term;
}

static struct query_term
src(const char *prefix)
{
	struct query_term term = ip(prefix);

	term.field = QUERY_FIELD_SRC;
	return term;
}

/* Each field alone, and its negation, which is about every row that the field itself does not find. */
static void
test_each_field_and_its_negation(void **state)
{
	const struct {
		struct query_term term;
		const char *want, *negated;
	} cases[] = {
	    {range(QUERY_FIELD_DENIED, 1, INT64_MAX), "2 6", "1 3 4 5"},
	    {range(QUERY_FIELD_VERDICT, VERDICT_LIMITED, VERDICT_LIMITED), "2", "1 3 4 5 6"},
	    {range(QUERY_FIELD_REASON, REASON_SPOOFED_SOURCE, REASON_SPOOFED_SOURCE), "6", "1 2 3 4 5"},
	    {{.field = QUERY_FIELD_HOST, .name = host("github.com")}, "1", "2 3 4 5 6"},
	    {{.field = QUERY_FIELD_HOST, .name = host("github.com"), .below = true}, "3", "1 2 4 5 6"},
	    {{.field = QUERY_FIELD_HOST, .name = host("b.example"), .below = true}, "5", "1 2 3 4 6"},
	    {{.field = QUERY_FIELD_HOST, .name = host("example"), .below = true}, "2 5", "1 3 4 6"},
	    {{.field = QUERY_FIELD_HOST, .name = host("ample"), .below = true}, "", "1 2 3 4 5 6"},
	    {ip("140.82.121.4"), "1 3 5 6", "2 4"},
	    {ip("140.82.112.0/20"), "1 3 5 6", "2 4"},
	    {ip("140.82.121.0/30"), "", "1 2 3 4 5 6"},
	    {ip("172.16.0.2"), "", "1 2 3 4 5 6"},
	    {ip("8.8.8.8"), "", "1 2 3 4 5 6"},
	    {ip("2606:4700::/32"), "2", "1 3 4 5 6"},
	    {ip("2606:4700::1111"), "2", "1 3 4 5 6"},
	    {ip("::/0"), "2", "1 3 4 5 6"},
	    {ip("0.0.0.0/0"), "1 3 5 6", "2 4"},
	    {ip("9.0.0.0/8"), "", "1 2 3 4 5 6"},
	    {src("172.16.0.2"), "1 2 3 5", "4 6"},
	    {src("10.0.0.0/8"), "6", "1 2 3 4 5"},
	    {src("140.82.121.4"), "", "1 2 3 4 5 6"},
	    {src("::/0"), "", "1 2 3 4 5 6"},
	    {range(QUERY_FIELD_PORT, 53, 53), "3", "1 2 4 5 6"},
	    {range(QUERY_FIELD_PORT, 443, 900), "1 2 5 6", "3 4"},
	    {range(QUERY_FIELD_PROTO, 17, 17), "2 3", "1 4 5 6"},
	    {text(QUERY_FIELD_RULE, "github.com (test.yaml", NULL), "1", "2 3 4 5 6"},
	    {range(QUERY_FIELD_END, END_FIN, END_FIN), "1", "2 3 4 5 6"},
	    {range(QUERY_FIELD_EVENT, EVENT_MARK, EVENT_MARK), "4", "1 2 3 5 6"},
	    {text(QUERY_FIELD_COUNTRY, "US", NULL), "1", "2 3 4 5 6"},
	    {range(QUERY_FIELD_ASN, 36459, 36459), "1", "2 3 4 5 6"},
	    {range(QUERY_FIELD_QTYPE, 16, 16), "3", "1 2 4 5 6"},
	    {range(QUERY_FIELD_BYTES, 5680135, INT64_MAX), "1", "2 3 4 5 6"},
	    {range(QUERY_FIELD_BYTES, 5680136, INT64_MAX), "", "1 2 3 4 5 6"},
	    {range(QUERY_FIELD_ID, RECORD_ID(FIXTURE_EPOCH, 3), RECORD_ID(FIXTURE_EPOCH, 3)), "3", "1 2 4 5 6"},
	    {text(QUERY_FIELD_SANDBOX, "task2", NULL), "5", "1 2 3 4 6"},
	    {range(QUERY_FIELD_SANDBOX_ID, OTHER_SANDBOX, OTHER_SANDBOX), "5", "1 2 3 4 6"},
	    {text(QUERY_FIELD_LABEL, "team", "red"), "5", "1 2 3 4 6"},
	    {text(QUERY_FIELD_LABEL, "a.b/c", "x=y"), "5", "1 2 3 4 6"},
	    {text(QUERY_FIELD_LABEL, "team", NULL), "5", "1 2 3 4 6"},
	    {text(QUERY_FIELD_LABEL, "team", "blue"), "", "1 2 3 4 5 6"},
	    {text(QUERY_FIELD_LABEL, "guest", NULL), "", "1 2 3 4 5 6"},
	    {text(QUERY_FIELD_RULE, "' OR 1=1 --", NULL), "", "1 2 3 4 5 6"},
	};
	struct store *store = make_fields();
	struct query *query = open_query();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct query_term term = cases[i].term;
		struct query_filter filter = {.terms = &term, .term_count = 1};
		const char *got = ids(query, &filter);

		if (strcmp(got, cases[i].want) != 0)
			fail_msg("case %zu: wanted %s, got %s", i, cases[i].want, got);
		term.negated = true;
		got = ids(query, &filter);
		if (strcmp(got, cases[i].negated) != 0)
			fail_msg("case %zu negated: wanted %s, got %s", i, cases[i].negated, got);
		/* The same through the other two statements. */
		term.negated = false;
		filter.last = 100;
		assert_string_equal(ids(query, &filter), cases[i].want);
		filter.last = 0;
		filter.will_follow = true;
		assert_string_equal(after(query, &filter, QUERY_CURSOR_BEGIN), cases[i].want);
	}
	query_close(query);
	store_close(store);
}

static void
test_repeats_are_or_and_fields_are_and(void **state)
{
	struct query_term not_udp = range(QUERY_FIELD_PROTO, 17, 17);
	const struct query_term either[] = {{.field = QUERY_FIELD_HOST, .name = host("github.com")},
	    {.field = QUERY_FIELD_HOST, .name = host("github.com"), .below = true}};
	const struct query_term both[] = {either[0], either[1], range(QUERY_FIELD_PROTO, 6, 6)};
	const struct query_term sandboxes[] = {
	    text(QUERY_FIELD_SANDBOX, "task1", NULL), text(QUERY_FIELD_SANDBOX, "task2", NULL)};
	struct query_term except[] = {ip("140.82.121.4"), ip("2606:4700::/32"), range(QUERY_FIELD_REASON, 0, 0),
	    range(QUERY_FIELD_REASON, REASON_LIMIT_RATE, REASON_LIMIT_RATE)};
	const struct {
		struct query_filter filter;
		const char *want;
	} cases[] = {
	    {{.terms = either, .term_count = 2}, "1 3"},
	    {{.terms = both, .term_count = 3}, "1"},
	    {{.terms = sandboxes, .term_count = 2}, "1 2 3 5 6"},
	    {{.terms = &not_udp, .term_count = 1}, "1 4 5 6"},
	    {{.terms = except, .term_count = 4}, "6"},
	};
	struct store *store = make_fields();
	struct query *query = open_query();

	(void)state;
	not_udp.negated = true;
	except[2].negated = except[3].negated = true;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = ids(query, &cases[i].filter);

		if (strcmp(got, cases[i].want) != 0)
			fail_msg("case %zu: wanted %s, got %s", i, cases[i].want, got);
	}
	query_close(query);
	store_close(store);
}

/* What SQLite was asked last for a page or for its first row, and where. */
static struct {
	sqlite3 *db;
	char sql[300000];
} traced;

static int
trace(unsigned int event, void *context, void *stmt, void *sql)
{
	(void)event;
	(void)sql;
	if (strstr(sqlite3_sql(stmt), context) != NULL)
		snprintf(traced.sql, sizeof(traced.sql), "%s", sqlite3_sql(stmt));
	return 0;
}

static int
trace_page(sqlite3 *db, char **ret_error, const struct sqlite3_api_routines *api)
{
	static char page[] = "ORDER BY ts, id, kind LIMIT";

	(void)ret_error;
	(void)api;
	traced.db = db;
	return sqlite3_trace_v2(db, SQLITE_TRACE_STMT, trace, page);
}

/* The plan of a statement, a line a step. */
static const char *
explain_sql(sqlite3 *db, const char *sql)
{
	static char text[65536];
	char *explain = sqlite3_mprintf("EXPLAIN QUERY PLAN %s", sql);
	sqlite3_stmt *stmt;
	size_t len = 0;

	text[0] = '\0';
	if (sqlite3_prepare_v2(db, explain, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	while (sqlite3_step(stmt) == SQLITE_ROW)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s\n", sqlite3_column_text(stmt, 3));
	sqlite3_finalize(stmt);
	sqlite3_free(explain);
	return text;
}

/* That of the page that a filter leads to. */
static const char *
plan(const struct query_filter *filter)
{
	const char *text;
	struct query *query;

	assert_int_equal(sqlite3_auto_extension((void (*)(void))trace_page), SQLITE_OK);
	query = open_query();
	sqlite3_reset_auto_extension();
	traced.sql[0] = '\0';
	ids(query, filter);
	text = explain_sql(traced.db, traced.sql);
	query_close(query);
	return text;
}

/* Each question goes by the index made for it, and no page is sorted: what a page costs does not depend on the log. */
static void
test_plans(void **state)
{
	struct query_term many[] = {{.field = QUERY_FIELD_HOST, .name = host("github.com")},
	    {.field = QUERY_FIELD_HOST, .name = host("one.example")}};
	struct query_term tree = {.field = QUERY_FIELD_HOST, .name = host("example"), .below = true};
	struct query_term sandbox = text(QUERY_FIELD_SANDBOX, "task2", NULL);
	struct query_term label = text(QUERY_FIELD_LABEL, "team", "red");
	struct query_term reason = range(QUERY_FIELD_REASON, REASON_SPOOFED_SOURCE, REASON_SPOOFED_SOURCE);
	struct query_term denied = range(QUERY_FIELD_DENIED, 1, INT64_MAX);
	struct query_term id = range(QUERY_FIELD_ID, RECORD_ID(FIXTURE_EPOCH, 3), RECORD_ID(FIXTURE_EPOCH, 3));
	struct query_term country = text(QUERY_FIELD_COUNTRY, "US", NULL);
	struct query_term verdict = range(QUERY_FIELD_VERDICT, VERDICT_LIMITED, VERDICT_LIMITED);
	struct query_term one = ip("140.82.121.4"), network = ip("140.82.112.0/20"), source = src("10.0.0.0/8");
	struct query_term address_and_name[] = {one, many[0]};
	const struct {
		struct query_filter filter;
		const char *want[3];
	} cases[] = {
	    {{.kinds = 0}, {"connections_ts (ts>?)", "dns_ts (ts>?)", "events_ts (ts>?)"}},
	    {{.terms = &sandbox, .term_count = 1},
		{"connections_sandbox (sandbox_id=? AND ts>?)", "dns_sandbox (sandbox_id=? AND ts>?)",
		    "events_sandbox (sandbox_id=? AND ts>?)"}},
	    {{.terms = &label, .term_count = 1}, {"connections_sandbox (sandbox_id=? AND ts>?)"}},
	    {{.terms = many, .term_count = 2},
		{"connections_name (name=? AND verdict=? AND ts>?)", "dns_name (qname=? AND verdict=? AND ts>?)"}},
	    {{.terms = &tree, .term_count = 1}, {"connections_domain (domain=? AND ts>?)"}},
	    {{.terms = &one, .term_count = 1}, {"connections_dst (dst=? AND ts>?)", "dns_ts (ts>?)"}},
	    {{.terms = &network, .term_count = 1}, {"connections_dst (dst=? AND ts>?)", "dns_ts (ts>?)"}},
	    {{.terms = &one, .term_count = 1, .kinds = QUERY_DNS}, {"dns_ts (ts>?)"}},
	    {{.terms = address_and_name, .term_count = 2},
		{"connections_name (name=? AND verdict=? AND ts>?)", "dns_name (qname=? AND verdict=? AND ts>?)"}},
	    {{.terms = &source, .term_count = 1}, {"connections_ts (ts>?)", "dns_ts (ts>?)"}},
	    {{.terms = &reason, .term_count = 1}, {"connections_reason (reason=? AND ts>?)"}},
	    {{.terms = &denied, .term_count = 1},
		{"connections_reason (reason=? AND ts>?)", "dns_reason (reason=? AND ts>?)"}},
	    {{.terms = &verdict, .term_count = 1}, {"connections_reason (reason=? AND ts>?)"}},
	    {{.terms = &id, .term_count = 1}, {"INTEGER PRIMARY KEY (rowid=?)"}},
	    {{.terms = &country, .term_count = 1}, {"connections_ts (ts>?)"}},
	    {{.kinds = 0, .since_us = FIXTURE_TS, .until_us = FIXTURE_TS + 1000000},
		{"connections_ts (ts>? AND ts<?)"}},
	};
	struct store *store = make_fields();

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = plan(&cases[i].filter);

		for (size_t j = 0; j < 3 && cases[i].want[j] != NULL; j++)
			if (strstr(got, cases[i].want[j]) == NULL)
				fail_msg("case %zu: no %s in\n%s", i, cases[i].want[j], got);
		if (strstr(got, "SCAN t") != NULL || (strstr(got, "TEMP B-TREE") != NULL))
			fail_msg("case %zu:\n%s", i, got);
	}
	store_close(store);
}

static size_t
count_of(const char *text, const char *part)
{
	size_t count = 0;

	for (; (text = strstr(text, part)) != NULL; text += strlen(part))
		count++;
	return count;
}

/* What was refused of a name that is mostly allowed: the way leads past all that was. */
static void
test_denials_of_a_name_meet_no_other_row(void **state)
{
	struct query_term terms[] = {{.field = QUERY_FIELD_HOST, .name = host("github.com")},
	    {.field = QUERY_FIELD_HOST, .name = host("one.example")}, range(QUERY_FIELD_DENIED, 1, INT64_MAX),
	    range(QUERY_FIELD_VERDICT, VERDICT_LIMITED, VERDICT_LIMITED)};
	struct query_filter filter = {.terms = terms, .term_count = 2};
	struct store *store = make_fields();
	struct query *query = open_query();
	const size_t ways = 4; /* two names in two tables */

	(void)state;
	assert_string_equal(ids(query, &filter), "1 2");
	assert_int_equal(count_of(plan(&filter), "verdict=?"), ways * VERDICT_MAX);
	filter.term_count = 3;
	assert_string_equal(ids(query, &filter), "2");
	assert_int_equal(count_of(plan(&filter), "verdict=?"), ways * (VERDICT_MAX - 1));
	filter.term_count = 4;
	assert_string_equal(ids(query, &filter), "2");
	assert_int_equal(count_of(plan(&filter), "verdict=?"), ways);
	/* Neither can be. */
	terms[3] = range(QUERY_FIELD_VERDICT, VERDICT_ALLOWED, VERDICT_ALLOWED);
	assert_string_equal(ids(query, &filter), "");
	/* What must not be leads nowhere. */
	terms[2].negated = true;
	filter.term_count = 3;
	assert_string_equal(ids(query, &filter), "1");
	query_close(query);
	store_close(store);
}

/* The questions to views that postern-audit(5) calls fast, asked as other programs ask them. */
static void
test_plans_of_views(void **state)
{
	static const struct {
		const char *sql, *want[3];
	} cases[] = {
	    {"SELECT * FROM v_log ORDER BY ts DESC LIMIT 50",
		{"t USING INDEX connections_ts", "t USING INDEX dns_ts", "t USING INDEX events_ts"}},
	    {"SELECT time, what, ts FROM v_log WHERE ts > 5 AND verdict = 'denied' ORDER BY ts",
		{"connections_ts (ts>?)", "dns_ts (ts>?)"}},
	    {"SELECT time, what FROM v_log WHERE ts > 5",
		{"connections_ts (ts>?)", "dns_ts (ts>?)", "events_ts (ts>?)"}},
	    {"SELECT time FROM v_connections ORDER BY ts DESC LIMIT 50", {"t USING INDEX connections_ts"}},
	    {"SELECT time FROM v_dns WHERE ts > 5 ORDER BY ts", {"dns_ts (ts>?)"}},
	    {"SELECT time FROM v_connections WHERE domain = 'a.example' ORDER BY ts",
		{"connections_domain (domain=?)"}},
	    {"SELECT time FROM v_connections WHERE dst = '192.0.2.1' ORDER BY ts", {"connections_dst (dst=?)"}},
	    {"SELECT time FROM v_dns WHERE domain = 'a.example' AND qname = 'x.a.example' ORDER BY ts",
		{"dns_domain (domain=?)"}},
	    {"SELECT time FROM v_connections WHERE sandbox = 'task1' AND ts > 5",
		{"connections_sandbox (sandbox_id=? AND ts>?)"}},
	    {"SELECT * FROM v_dns_domains WHERE domain = 'a.example'", {"dns_domain (domain=?)"}},
	};
	struct store *store = make_fields();
	sqlite3 *db;

	(void)state;
	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *got = explain_sql(db, cases[i].sql);

		for (size_t j = 0; j < 3 && cases[i].want[j] != NULL; j++)
			if (strstr(got, cases[i].want[j]) == NULL)
				fail_msg("%s: no %s in\n%s", cases[i].sql, cases[i].want[j], got);
		if (strstr(got, "FOR ORDER BY") != NULL)
			fail_msg("%s:\n%s", cases[i].sql, got);
	}
	sqlite3_close(db);
	store_close(store);
}

/* More values than arms: by what they have in common, and every row is still tested. */
static void
test_more_keys_than_a_statement_takes(void **state)
{
	struct query_term terms[QUERY_TERMS_MAX];
	struct query_filter filter = {.terms = terms, .term_count = QUERY_TERMS_MAX};
	struct store *store = make_fields();
	struct query *query = open_query();
	char name[48];

	(void)state;
	for (size_t i = 0; i < filter.term_count; i++) {
		snprintf(name, sizeof(name), "host%zu.example", i);
		terms[i] = (struct query_term){.field = QUERY_FIELD_HOST, .name = host(i == 30 ? "github.com" : name)};
	}
	assert_string_equal(ids(query, &filter), "1");
	query_close(query);
	assert_non_null(strstr(plan(&filter), "connections_domain (domain=? AND ts>?)"));
	store_close(store);
}

/* A row that two terms lead to comes once. */
static void
test_a_row_comes_once(void **state)
{
	struct query_term terms[] = {ip("140.82.121.4"), ip("140.82.112.0/20"), ip("8.8.8.8")};
	struct query_filter filter = {.terms = terms, .term_count = 3};
	struct store *store = make_fields();
	struct query *query = open_query();

	(void)state;
	assert_string_equal(ids(query, &filter), "1 3 5 6");
	terms[0] = ip("0.0.0.0/0");
	assert_string_equal(ids(query, &filter), "1 3 5 6");
	query_close(query);
	store_close(store);
}

/* Answers are addresses by their type and value, whatever else stands in the list, or is no list at all. */
static void
test_addresses_among_answers(void **state)
{
	static const struct {
		const char *answers, *ip;
		bool found;
	} cases[] = {
	    {"[\"A 192.0.2.1\"]", "192.0.2.1", true},
	    {"[\"A 192.0.2.1\"]", "192.0.2.0/24", true},
	    {"[\"A 192.0.2.11\"]", "192.0.2.1", false},
	    {"[\"CNAME a.example\",\"A 198.51.100.1\",\"A 192.0.2.1\"]", "192.0.2.1", true},
	    {"[ \"AAAA 2001:DB8:0:0::1\" ]", "2001:db8::1", true},
	    {"[\"AAAA 2001:db8::1\"]", "2001:db8::/32", true},
	    {"[\"hint 192.0.2.1\"]", "192.0.2.1", false},
	    {"[\"TXT \\\"A 192.0.2.1\\\"\"]", "192.0.2.1", false},
	    {"[\"TXT \\\\\",\"A 192.0.2.1\"]", "192.0.2.1", true},
	    {"[\"A 192.0.2.1", "192.0.2.1", false},
	    {"[\"A \",\"A\",\"\",\"\\", "0.0.0.0/0", false},
	    {"", "0.0.0.0/0", false},
	};
	struct store *store = fixture_open(NULL);
	struct query *query;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct record record = fixture_dns(i + 1, "a.example", 9);

		snprintf(record.dns.answers, sizeof(record.dns.answers), "%s", cases[i].answers);
		fixture_add(store, &record);
	}
	fixture_commit(store);
	query = open_query();
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const int64_t ts = FIXTURE_TS + ((int64_t)i + 1) * 1000;
		const struct query_term term = ip(cases[i].ip);
		const struct query_filter filter = {
		    .terms = &term, .term_count = 1, .since_us = ts, .until_us = ts + 1};
		bool found = ids(query, &filter)[0] != '\0';

		if (found != cases[i].found)
			fail_msg("%s in %s: %d", cases[i].ip, cases[i].answers, found);
	}
	query_close(query);
	store_close(store);
}

/* One cursor after the other, through readers that come and go. */
static void
test_a_cursor_goes_on_without_loss_or_repeats(void **state)
{
	struct query_filter filter = {.will_follow = true};
	struct query *query;
	struct store *store = make_mixture();
	char cursor[QUERY_CURSOR_MAX];
	struct record record;
	struct error err;

	(void)state;
	query = open_query();
	assert_int_equal(query_start(query, &filter, &err), 0);
	query_cursor(query, cursor);
	assert_string_equal(ids(query, &filter), "1 2 3 4 5 6 7 8 9");
	query_close(query);
	/* An old row changes, a new one comes with an old time. */
	record = fixture_close(1);
	fixture_add(store, &record);
	record = fixture_flow(10, "late.example");
	record.flow.ts_us = FIXTURE_TS - 1;
	fixture_add(store, &record);
	fixture_commit(store);
	query = open_query();
	assert_string_equal(after(query, &filter, cursor), "1 10");
	query_cursor(query, cursor);
	query_close(query);
	query = open_query();
	assert_string_equal(after(query, &filter, cursor), "");
	query_close(query);
	store_close(store);
}

static void
test_cursors_know_their_log(void **state)
{
	struct query_filter filter = {.will_follow = true};
	struct store *store = make_mixture();
	struct query *query = open_query();
	static const char *const bad[] = {"", ":", "x", "x:", "x:-1", "x:1a", ":1", "x:1 "};
	enum query_seek_result result;
	char cursor[QUERY_CURSOR_MAX];
	struct error err;

	(void)state;
	assert_int_equal(query_start(query, &filter, &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(query_seek(query, bad[i], &result, &err), -1);
		assert_int_equal(err.code, ERROR_USAGE);
	}
	assert_int_equal(query_seek(query, "0123456789abcdef0123456789abcdef:3", &result, &err), 0);
	assert_int_equal(result, QUERY_SEEK_OTHER_LOG);
	assert_string_equal(followed(query), "1 2 3 4 5 6 7 8 9");
	query_cursor(query, cursor);
	assert_int_equal(query_seek(query, cursor, &result, &err), 0);
	assert_int_equal(result, QUERY_SEEK_SAME);
	fixture_shell("sqlite3 $DB \"UPDATE meta SET value = 1000 WHERE key = 'pruned_through'\"");
	assert_int_equal(query_seek(query, cursor, &result, &err), 0);
	assert_int_equal(result, QUERY_SEEK_PRUNED);
	assert_string_equal(followed(query), "");
	query_close(query);
	store_close(store);
}

/* A reader that stops in the middle of its page goes on right there. */
static void
test_a_cursor_in_the_middle_of_a_page(void **state)
{
	struct query_filter filter = {.will_follow = true};
	struct store *store = make_mixture();
	struct query *query = open_query();
	const struct query_row *row;
	enum query_seek_result result;
	char cursor[QUERY_CURSOR_MAX];
	struct error err;

	(void)state;
	assert_int_equal(query_start(query, &filter, &err), 0);
	assert_int_equal(query_seek(query, QUERY_CURSOR_BEGIN, &result, &err), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(query_follow(query, &row, &err), 1);
	query_cursor(query, cursor);
	assert_string_equal(row->cursor, cursor);
	query_close(query);
	query = open_query();
	assert_string_equal(after(query, &filter, cursor), "5 6 7 8 9");
	query_close(query);
	store_close(store);
}

struct groups {
	char text[1024];
};

static void
take_group(const struct query_group *group, void *context)
{
	struct groups *groups = context;
	size_t len = strlen(groups->text);

	snprintf(groups->text + len, sizeof(groups->text) - len, "%s%.*s:%d %s %s x%d %d/%d\n",
	    group->kind == QUERY_DNS ? "dns " : "", (int)group->name.len, group->name.bytes, (int)group->dport,
	    verdict_text((unsigned int)group->verdict), reason_text((unsigned int)group->reason), (int)group->count,
	    (int)group->bytes_out, (int)group->bytes_in);
}

static void
test_summary(void **state)
{
	struct store *store = fixture_open(NULL);
	struct record record;
	struct groups groups = {""};
	struct query *query;
	struct error err;

	(void)state;
	for (uint64_t i = 1; i <= 3; i++) {
		record = fixture_flow(i, "github.com");
		fixture_add(store, &record);
		record = fixture_close(i);
		fixture_add(store, &record);
	}
	record = fixture_denied(4, "", 0);
	record.kind = RECORD_REFUSED;
	record.flow.count = 40;
	record.flow.reason = REASON_NEVER_ADDRESS;
	fixture_add(store, &record);
	record = fixture_dns(5, "evil.example", 12);
	record.dns.verdict = VERDICT_DENIED;
	record.dns.reason = REASON_NO_RULE;
	fixture_add(store, &record);
	record = fixture_dns(6, "github.com", 10);
	fixture_add(store, &record);
	record = fixture_flow(7, "other.example");
	record.flow.sandbox = OTHER_SANDBOX;
	fixture_add(store, &record);
	fixture_commit(store);
	query = open_query();
	assert_int_equal(query_summary(query, FIXTURE_SANDBOX, 0, 100, take_group, &groups, &err), 0);
	assert_string_equal(groups.text,
	    "140.82.121.4:443 denied never_address x40 0/0\n"
	    "github.com:443 allowed allowed x3 3702/17036703\n"
	    "dns evil.example:0 denied no_rule x1 0/0\n");
	groups.text[0] = '\0';
	assert_int_equal(
	    query_summary(query, FIXTURE_SANDBOX, RECORD_ID(FIXTURE_EPOCH, 3), 1, take_group, &groups, &err), 0);
	assert_string_equal(groups.text, "140.82.121.4:443 denied never_address x40 0/0\n");
	query_close(query);
	store_close(store);
}

/* A reader in the middle of its rows holds nothing: the log can be checkpointed whole. */
static void
case_F_23_a_reader_that_pauses_holds_no_transaction(void **state)
{
	struct query_filter filter = {.kinds = 0};
	struct store *store = make_mixture();
	struct query *query = open_query();
	const struct query_row *row;
	struct error err;
	sqlite3 *db;

	(void)state;
	assert_int_equal(query_start(query, &filter, &err), 0);
	assert_int_equal(query_next(query, &row, &err), 1);
	assert_int_equal(sqlite3_open(fixture_db, &db), SQLITE_OK);
	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_exec(db, "PRAGMA wal_checkpoint(TRUNCATE)", NULL, NULL, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_wal_checkpoint_v2(db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL), SQLITE_OK);
	sqlite3_close(db);
	query_close(query);
	store_close(store);
}

/* How often the writer's connection found a lock taken; and who has it, to give it back then. */
static struct {
	sqlite3 *db, *holder;
	int waits;
} writer;

static int
writer_wait(void *context, int count)
{
	(void)context;
	writer.waits++;
	sqlite3_exec(writer.holder, "ROLLBACK", NULL, NULL, NULL);
	usleep(1000);
	return count < 10000;
}

static int
writer_take(sqlite3 *db, char **ret_error, const struct sqlite3_api_routines *api)
{
	(void)ret_error;
	(void)api;
	/* Not the one in memory that the schema is compared with. */
	if (strcmp(sqlite3_db_filename(db, "main"), fixture_db) == 0)
		writer.db = db;
	return SQLITE_OK;
}

/* Asks everything, over and over; never returns. */
static void
read_for_ever(_Atomic int *rounds)
{
	const struct query_term terms[] = {range(QUERY_FIELD_DENIED, 1, INT64_MAX), ip("140.82.0.0/16"),
	    {.field = QUERY_FIELD_HOST, .name = host("com"), .below = true}};
	const struct query_row *row;
	struct error err;

	for (;;) {
		struct query *query = query_open(fixture_db, &err);

		if (query == NULL)
			_exit(1);
		for (size_t i = 0; i < 4; i++) {
			struct query_filter filter = {.terms = &terms[i % 3], .term_count = i < 3 ? 1 : 0};

			if (query_start(query, &filter, &err) < 0)
				_exit(2);
			while (query_next(query, &row, &err) == 1)
				;
		}
		query_close(query);
		++*rounds;
	}
}

/* No commit fails, and none finds a lock taken: readers cost the writer nothing but processor and disk. */
static void
test_readers_never_stand_in_the_writers_way(void **state)
{
	enum { ROUNDS = 30, COMMITS = 300, COMMITS_MAX = 30000 };
	_Atomic int *rounds = mmap(NULL, sizeof(*rounds), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct store *store = fixture_open(NULL);
	struct store_opening opening;
	uint64_t counter = 0;
	struct record one;
	struct error err;
	int commits, status;
	pid_t reader;

	(void)state;
	assert_ptr_not_equal(rounds, MAP_FAILED);
	store_close(store);
	reader = fork();
	if (reader == 0)
		read_for_ever(rounds);
	writer.waits = 0;
	assert_int_equal(sqlite3_auto_extension((void (*)(void))writer_take), SQLITE_OK);
	store = store_open(fixture_db, &opening, &err);
	sqlite3_reset_auto_extension();
	assert_non_null(store);
	assert_int_equal(sqlite3_open(fixture_db, &writer.holder), SQLITE_OK);
	assert_int_equal(store_start_checkpoints(store, &err), 0);
	for (commits = 0; (commits < COMMITS || *rounds < ROUNDS) && commits < COMMITS_MAX; commits++) {
		/* Cutting the log sets another one. */
		assert_int_equal(sqlite3_busy_handler(writer.db, writer_wait, NULL), SQLITE_OK);
		for (int i = 0; i < 10; i++) {
			counter++;
			one = i % 3 == 0 ? fixture_denied(counter, "evil.example", 12)
			    : i % 3 == 1 ? fixture_dns(counter, "api.github.com", 14)
					 : fixture_flow(counter, "github.com");
			fixture_add(store, &one);
		}
		fixture_commit(store);
	}
	assert_int_equal(waitpid(reader, &status, WNOHANG), 0);
	kill(reader, SIGKILL);
	assert_int_equal(waitpid(reader, &status, 0), reader);
	assert_true(*rounds >= ROUNDS);
	assert_int_equal(writer.waits, 0);
	/* It would have been seen. */
	assert_int_equal(sqlite3_busy_handler(writer.db, writer_wait, NULL), SQLITE_OK);
	sqlite3_exec(writer.holder, "BEGIN IMMEDIATE", NULL, NULL, NULL);
	one = fixture_flow(counter + 1, "github.com");
	fixture_add(store, &one);
	fixture_commit(store);
	assert_int_equal(writer.waits, 1);
	sqlite3_close(writer.holder);
	store_close(store);
	munmap(rounds, sizeof(*rounds));
}

#define QUERY_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    QUERY_TEST(test_filters),
	    QUERY_TEST(test_a_name_that_two_sandboxes_had_finds_both),
	    QUERY_TEST(test_rows_carry_what_was_stored),
	    QUERY_TEST(test_pages_join_without_gap_or_repeat),
	    QUERY_TEST(test_following_sees_late_commits_and_closes),
	    QUERY_TEST(test_following_filters),
	    QUERY_TEST(test_changes_while_starting_come_once),
	    QUERY_TEST(test_following_while_a_writer_writes),
	    QUERY_TEST(test_copies_are_read_without_their_log),
	    QUERY_TEST(test_a_replaced_file_is_stale),
	    QUERY_TEST(test_what_is_no_audit_log_is_refused),
	    QUERY_TEST(test_each_field_and_its_negation),
	    QUERY_TEST(test_repeats_are_or_and_fields_are_and),
	    QUERY_TEST(test_plans),
	    QUERY_TEST(test_denials_of_a_name_meet_no_other_row),
	    QUERY_TEST(test_plans_of_views),
	    QUERY_TEST(test_more_keys_than_a_statement_takes),
	    QUERY_TEST(test_a_row_comes_once),
	    QUERY_TEST(test_addresses_among_answers),
	    QUERY_TEST(test_a_cursor_goes_on_without_loss_or_repeats),
	    QUERY_TEST(test_a_cursor_in_the_middle_of_a_page),
	    QUERY_TEST(test_cursors_know_their_log),
	    QUERY_TEST(test_summary),
	    QUERY_TEST(test_readers_never_stand_in_the_writers_way),
	    QUERY_TEST(case_F_23_a_reader_that_pauses_holds_no_transaction),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
