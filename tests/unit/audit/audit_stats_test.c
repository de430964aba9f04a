/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows added up: groups, orders, totals, series, first-seen names, domains. */
#include "audit_fixture.h"

#include "audit/query/stats.h"

#define OTHER_SANDBOX (FIXTURE_SANDBOX + 100)
#define MINUTE_US 60000000

/* 1, 2 flows to github.com with bytes, 3 refused packets (40) to an address, 4 flow of another sandbox to
 * a.b.github.com, 5 query for github.com, 6-8 refused queries for names below evil.example, 9 event; 10 a raw name, two
 * minutes later. */
static struct store *
make_rows(void)
{
	struct store *store = fixture_open(NULL);
	struct record record;
	static const char *const names[] = {"a1b2c3.t.evil.example", "z9.t.evil.example", "z9.t.evil.example"};

	record = fixture_sandbox(FIXTURE_SANDBOX, "task1");
	fixture_add(store, &record);
	record = fixture_sandbox(OTHER_SANDBOX, "task2");
	fixture_add(store, &record);
	for (uint64_t i = 1; i <= 2; i++) {
		record = fixture_flow(i, "github.com");
		memcpy(record.flow.country, "US", 3);
		record.flow.asn = 36459;
		snprintf(record.flow.as_org, sizeof(record.flow.as_org), "GitHub");
		fixture_add(store, &record);
		record = fixture_close(i);
		fixture_add(store, &record);
	}
	record = fixture_denied(3, "", 0);
	record.kind = RECORD_REFUSED;
	record.flow.count = 40;
	record.flow.reason = REASON_NEVER_ADDRESS;
	record.flow.dst = fixture_addr(10, 0, 0, 1);
	fixture_add(store, &record);
	record = fixture_flow(4, "a.b.github.com");
	record.flow.sandbox = OTHER_SANDBOX;
	fixture_add(store, &record);
	record = fixture_dns(5, "github.com", 10);
	fixture_add(store, &record);
	for (uint64_t i = 0; i < 3; i++) {
		record = fixture_dns(6 + i, names[i], strlen(names[i]));
		record.dns.verdict = VERDICT_DENIED;
		record.dns.reason = REASON_NO_RULE;
		fixture_add(store, &record);
	}
	record = fixture_event(9, EVENT_MARK, "{\"text\":\"x\"}");
	fixture_add(store, &record);
	record = fixture_denied(10, "\x1b[2J\0x", 6);
	record.flow.ts_us += 2 * MINUTE_US;
	fixture_add(store, &record);
	fixture_commit(store);
	return store;
}

static struct query *
start(const struct query_filter *filter)
{
	struct error err;
	struct query *query = query_open(fixture_db, &err);

	if (query == NULL || query_start(query, filter, &err) < 0)
		fail_msg("%s", err.text);
	return query;
}

static void
take(const struct stats_row *row, void *context)
{
	char *text = context;
	size_t len = strlen(text);

	snprintf(text + len, 2000 - len, "%zu:%.*s%s%.*s c%d q%d d%d %d/%d\n", row->key.len, (int)row->key.len,
	    row->key.len == 0 ? "" : row->key.bytes, row->label.len > 0 ? " " : "", (int)row->label.len,
	    row->label.len == 0 ? "" : row->label.bytes, (int)row->connections, (int)row->queries, (int)row->denied,
	    (int)row->bytes_out, (int)row->bytes_in);
}

static void
test_groups_and_orders(void **state)
{
	static const struct {
		enum stats_group group;
		enum stats_by by;
		size_t max;
		const char *want;
	} cases[] = {
	    {STATS_GROUP_NAME, STATS_BY_BYTES, 1, "10:github.com c2 q1 d0 2468/11357802\n"},
	    {STATS_GROUP_NAME, STATS_BY_DENIED, 2, "8:10.0.0.1 c40 q0 d40 0/0\n17:z9.t.evil.example c0 q2 d2 0/0\n"},
	    {STATS_GROUP_DOMAIN, STATS_BY_QUERIES, 2,
		"12:evil.example c0 q3 d3 0/0\n10:github.com c3 q1 d0 2468/11357802\n"},
	    {STATS_GROUP_IP, STATS_BY_CONNECTIONS, 2,
		"8:10.0.0.1 c40 q0 d40 0/0\n12:140.82.121.4 c4 q0 d1 2468/11357802\n"},
	    {STATS_GROUP_PORT, STATS_BY_QUERIES, 1, "2:53 c0 q4 d3 0/0\n"},
	    {STATS_GROUP_SANDBOX, STATS_BY_CONNECTIONS, 9, "5:task1 c43 q4 d44 2468/11357802\n5:task2 c1 q0 d0 0/0\n"},
	    {STATS_GROUP_SANDBOX, STATS_BY_DENIED, 9, "5:task1 c43 q4 d44 2468/11357802\n"},
	    {STATS_GROUP_REASON, STATS_BY_DENIED, 2, "13:never_address c40 q0 d40 0/0\n7:no_rule c0 q3 d3 0/0\n"},
	    {STATS_GROUP_COUNTRY, STATS_BY_BYTES, 1, "2:US c2 q0 d0 2468/11357802\n"},
	    {STATS_GROUP_ASN, STATS_BY_BYTES, 1, "5:36459 GitHub c2 q0 d0 2468/11357802\n"},
	    {STATS_GROUP_RULE, STATS_BY_BYTES, 1, "32:allow *.github.com (test.yaml:7) c3 q0 d0 2468/11357802\n"},
	};
	const struct query_filter filter = {.kinds = 0};
	struct store *store = make_rows();
	struct query *query = start(&filter);
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[2000] = "";

		if (stats_top(query, cases[i].group, cases[i].by, cases[i].max, take, text, &err) < 0)
			fail_msg("case %zu: %s", i, err.text);
		if (strcmp(text, cases[i].want) != 0)
			fail_msg("case %zu: wanted\n%sgot\n%s", i, cases[i].want, text);
	}
	query_close(query);
	store_close(store);
}

static void
test_totals(void **state)
{
	const struct query_filter filter = {.kinds = 0};
	struct store *store = make_rows();
	struct query *query = start(&filter);
	struct stats stats;
	struct error err;

	(void)state;
	if (stats_read(query, 0, &stats, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(stats.connections[VERDICT_ALLOWED], 3);
	assert_int_equal(stats.connections[VERDICT_DENIED], 41);
	assert_int_equal(stats.queries[VERDICT_ALLOWED], 1);
	assert_int_equal(stats.queries[VERDICT_DENIED], 3);
	assert_int_equal(stats.connection_reasons[REASON_NEVER_ADDRESS], 40);
	assert_int_equal(stats.query_reasons[REASON_NO_RULE], 3);
	assert_int_equal(stats.bytes_out, 2468);
	assert_int_equal(stats.bytes_in, 11357802);
	assert_int_equal(stats.names, 4);
	assert_int_equal(stats.first_seen, 4);
	assert_int_equal(stats.events, 1);
	assert_int_equal(stats.domain_count, 2);
	assert_string_equal(stats.domains[0].domain, "evil.example");
	assert_int_equal(stats.domains[0].queries, 3);
	assert_int_equal(stats.domains[0].names, 2);
	assert_int_equal(stats.domains[0].denied, 3);
	assert_int_equal(stats.domains[0].longest, 21);
	assert_true(stats.domains[0].entropy > 1.5 && stats.domains[0].entropy < 3);
	assert_int_equal(stats.step_us, MINUTE_US);
	assert_int_equal(stats.step_count, 3);
	assert_int_equal(stats.steps[0].connections, 43);
	assert_int_equal(stats.steps[0].queries, 4);
	assert_int_equal(stats.steps[0].bytes_out, 2468);
	assert_int_equal(stats.steps[1].connections, 0);
	assert_int_equal(stats.steps[2].denied, 1);
	stats_free(&stats);
	query_close(query);
	store_close(store);
}

static void
test_names_seen_before(void **state)
{
	const struct query_filter any = {.since_us = FIXTURE_TS + 4000};
	const struct query_filter one = {.since_us = FIXTURE_TS + 4000, .sandbox = "task2"};
	struct store *store = make_rows();
	struct query *query = start(&any);
	struct stats stats;
	struct error err;

	(void)state;
	/* github.com was there before, a.b.github.com and the two below evil.example were not. */
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_int_equal(stats.names, 4);
	assert_int_equal(stats.first_seen, 3);
	stats_free(&stats);
	query_close(query);
	query = start(&one);
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_int_equal(stats.names, 1);
	assert_int_equal(stats.first_seen, 1);
	stats_free(&stats);
	query_close(query);
	store_close(store);
}

static void
test_filters_and_nothing(void **state)
{
	const struct query_term denied = {.field = QUERY_FIELD_DENIED, .low = 1, .high = INT64_MAX};
	const struct query_filter filter = {.terms = &denied, .term_count = 1};
	const struct query_filter nothing = {.since_us = FIXTURE_TS + 3600000000};
	struct store *store = make_rows();
	struct query *query = start(&filter);
	struct stats stats;
	struct error err;
	char text[2000] = "";

	(void)state;
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_int_equal(stats.connections[VERDICT_ALLOWED], 0);
	assert_int_equal(stats.connections[VERDICT_DENIED], 41);
	assert_int_equal(stats.events, 0);
	stats_free(&stats);
	query_close(query);
	query = start(&nothing);
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_int_equal(stats.step_count, 0);
	assert_int_equal(stats.names, 0);
	stats_free(&stats);
	assert_int_equal(stats_top(query, STATS_GROUP_NAME, STATS_BY_BYTES, 10, take, text, &err), 0);
	assert_string_equal(text, "");
	query_close(query);
	store_close(store);
}

/* However long the time, a series has a bounded number of steps. */
static void
test_steps_are_folded(void **state)
{
	const struct query_filter filter = {.kinds = 0};
	struct store *store = make_rows();
	struct record record = fixture_flow(20, "github.com");
	struct query *query;
	struct stats stats;
	struct error err;

	(void)state;
	record.flow.ts_us += 40 * 86400 * (int64_t)1000000;
	fixture_add(store, &record);
	fixture_commit(store);
	query = start(&filter);
	assert_int_equal(stats_read(query, MINUTE_US, &stats, &err), 0);
	assert_int_equal(stats.step_us, 60ll * MINUTE_US);
	assert_true(stats.step_count <= STATS_STEPS_MAX);
	assert_int_equal(stats.steps[stats.step_count - 1].connections, 1);
	stats_free(&stats);
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_int_equal(stats.step_count, 41);
	stats_free(&stats);
	query_close(query);
	store_close(store);
}

static void
take_sent(const struct stats_row *row, void *context)
{
	*(int64_t *)context = row->bytes_out;
}

/* A gateway that somebody took over says what it likes; two such rows must not hide all others. */
static void
test_sums_stop_at_the_largest_number(void **state)
{
	const struct query_filter filter = {.kinds = 0};
	struct store *store = fixture_open(NULL);
	struct record record;
	struct query *query;
	struct stats stats;
	struct error err;
	int64_t sent = 0;

	(void)state;
	for (uint64_t i = 1; i <= 2; i++) {
		record = fixture_flow(i, "github.com");
		record.flow.ts_us = i == 1 ? 1 : INT64_MAX;
		fixture_add(store, &record);
		record = fixture_close(i);
		record.close.bytes_out = UINT64_MAX;
		fixture_add(store, &record);
	}
	fixture_commit(store);
	query = start(&filter);
	assert_int_equal(stats_top(query, STATS_GROUP_NAME, STATS_BY_BYTES, 1, take_sent, &sent, &err), 0);
	assert_true(sent == INT64_MAX);
	assert_int_equal(stats_read(query, 0, &stats, &err), 0);
	assert_true(stats.bytes_out == INT64_MAX);
	stats_free(&stats);
	query_close(query);
	store_close(store);
}

#define STATS_TEST(function) cmocka_unit_test_setup_teardown(function, fixture_setup, fixture_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    STATS_TEST(test_groups_and_orders),
	    STATS_TEST(test_totals),
	    STATS_TEST(test_names_seen_before),
	    STATS_TEST(test_filters_and_nothing),
	    STATS_TEST(test_steps_are_folded),
	    STATS_TEST(test_sums_stop_at_the_largest_number),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
