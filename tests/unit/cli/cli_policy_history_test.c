/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded history: against a policy, row by row (replay), and as one (suggest). */
#include "audit/record.h"
#include "base/clock.h"
#include "cli/policy/history.h"
#include "cli/policy/replay.h"
#include "cli/policy/suggest_site.h"
#include "cli/policy/suggest_text.h"
#include "policy/text/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static struct query_text
text_of(const char *text)
{
	return (struct query_text){.bytes = text, .len = text == NULL ? 0 : strlen(text)};
}

static struct query_row
connection(const char *name, const char *dst, int64_t dport, int64_t verdict, int64_t reason, int64_t source)
{
	return (struct query_row){.kind = QUERY_CONNECTION,
	    .count = 1,
	    .ts_us = 1700000000000000,
	    .proto = IPPROTO_TCP,
	    .dport = dport,
	    .name = text_of(name),
	    .dst = text_of(dst),
	    .verdict = verdict,
	    .reason = reason,
	    .name_source = source};
}

static struct query_row
question(const char *name, int64_t verdict, int64_t reason)
{
	return (struct query_row){.kind = QUERY_DNS,
	    .count = 1,
	    .ts_us = 1700000000000000,
	    .proto = IPPROTO_UDP,
	    .dport = 53,
	    .name = text_of(name),
	    .verdict = verdict,
	    .reason = reason};
}

static struct snapshot *
compile(const char *text)
{
	struct policy policy;
	struct snapshot *snapshot;
	struct error err;
	int fd;

	if (policy_parse(text, strlen(text), "test.yaml", &policy, &err) < 0)
		fail_msg("%s", err.text);
	fd = snapshot_compile(&policy, &err);
	policy_free(&policy);
	snapshot = fd < 0 ? NULL : snapshot_open(fd, &err);
	if (snapshot == NULL)
		fail_msg("%s", err.text);
	close(fd);
	return snapshot;
}

static const char policy_text[] = "version: 1\n"
				  "allow:\n"
				  "  - host: news.example.com\n"
				  "  - host: echo.example.com\n    ports: [7]\n"
				  "  - cidr: 140.82.112.0/20\n    ports: [22]\n"
				  "deny:\n"
				  "  - host: bad.example.com\n"
				  "  - cidr: 45.45.45.0/24\n";

#define GOOD "93.184.216.34"
#define ALLOWED VERDICT_ALLOWED, REASON_ALLOWED
#define NO_RULE VERDICT_DENIED, REASON_NO_RULE

static void
replay_says_what_changes(void **state)
{
	const struct {
		struct query_row row;
		enum replay_outcome outcome;
		const char *rule;
	} cases[] = {
	    {connection("news.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), REPLAY_SAME,
		"allow news.example.com"},
	    {connection("news.example.com", GOOD, 22, ALLOWED, NAME_SOURCE_LEASE), REPLAY_BREAKS, ""},
	    {connection("gone.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), REPLAY_BREAKS, ""},
	    {connection("bad.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), REPLAY_BREAKS, "deny bad.example.com"},
	    /* A deny by address beats a name's allow. */
	    {connection("news.example.com", "45.45.45.9", 443, ALLOWED, NAME_SOURCE_SNI), REPLAY_BREAKS,
		"deny 45.45.45.0/24"},
	    {connection("news.example.com", GOOD, 443, NO_RULE, NAME_SOURCE_CLAIM), REPLAY_OPENS,
		"allow news.example.com"},
	    {connection("echo.example.com", GOOD, 7, VERDICT_DENIED, REASON_RULE_DENY, NAME_SOURCE_LEASE), REPLAY_OPENS,
		"allow echo.example.com:7"},
	    {connection("other.example.com", GOOD, 443, NO_RULE, NAME_SOURCE_CLAIM), REPLAY_SAME, ""},
	    /* By address: without a name, or with one that is only claimed. */
	    {connection(NULL, "140.82.112.3", 22, VERDICT_DENIED, REASON_NOT_LEASED, 0), REPLAY_OPENS,
		"allow 140.82.112.0/20:22"},
	    {connection(NULL, "140.82.112.3", 23, VERDICT_DENIED, REASON_NOT_LEASED, 0), REPLAY_SAME, ""},
	    {connection("git.example.com", "140.82.112.3", 22, ALLOWED, NAME_SOURCE_CIDR), REPLAY_SAME,
		"allow 140.82.112.0/20:22"},
	    /* The rule by name is there, and the proof is not: sni_mismatch. */
	    {connection("news.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_CIDR), REPLAY_BREAKS,
		"allow news.example.com"},
	    {connection("bad.example.com", "140.82.112.3", 22, ALLOWED, NAME_SOURCE_CIDR), REPLAY_BREAKS,
		"deny bad.example.com"},
	    {question("news.example.com", ALLOWED), REPLAY_SAME, "allow news.example.com"},
	    {question("gone.example.com", ALLOWED), REPLAY_BREAKS, ""},
	    {question("echo.example.com", NO_RULE), REPLAY_OPENS, "allow echo.example.com:7"},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct history_target target;
		struct judgement judgement;
		enum replay_outcome outcome = replay_row(policy, &cases[i].row, clock_real_us(), &target, &judgement);

		if (outcome != cases[i].outcome)
			fail_msg("case %zu: outcome %d, wanted %d", i, outcome, cases[i].outcome);
		assert_string_equal(snapshot_rule_text(policy, judgement.rule), cases[i].rule);
	}
	snapshot_free(policy);
}

static struct query_row
placed(struct query_row row, const char *country, int64_t asn)
{
	row.country = text_of(country);
	row.asn = (struct query_number){.set = asn != 0, .value = asn};
	return row;
}

static struct query_row
ruled(struct query_row row, const char *rule)
{
	row.rule = text_of(rule);
	return row;
}

#define UNKNOWN VERDICT_DENIED, REASON_PLACE_UNKNOWN
#define DENIED VERDICT_DENIED, REASON_RULE_DENY

/* By the place that is on record; one that is not refuses only what it refused then. */
static void
replay_knows_places(void **state)
{
	const struct {
		struct query_row row;
		enum replay_outcome outcome;
	} cases[] = {
	    {placed(connection("a.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), "KP", 1), REPLAY_BREAKS},
	    {placed(connection("a.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), "DE", 64500), REPLAY_BREAKS},
	    {placed(connection("a.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), "DE", 1), REPLAY_SAME},
	    {placed(connection("a.example.com", GOOD, 443, DENIED, NAME_SOURCE_SNI), "KP", 1), REPLAY_SAME},
	    {placed(connection("a.example.com", GOOD, 443, DENIED, NAME_SOURCE_SNI), "DE", 1), REPLAY_OPENS},
	    {connection("a.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), REPLAY_SAME},
	    {placed(connection("a.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), "\x1b[", -1), REPLAY_SAME},
	    {connection("a.example.com", GOOD, 443, UNKNOWN, NAME_SOURCE_SNI), REPLAY_SAME},
	    {placed(connection("a.example.com", GOOD, 443, UNKNOWN, NAME_SOURCE_SNI), "DE", 1), REPLAY_OPENS},
	    /* What its answer held is not on record. */
	    {ruled(question("a.example.com", DENIED), "deny country:KP (p.yaml:3)"), REPLAY_LEFT_OUT},
	    {ruled(question("a.example.com", DENIED), "deny 1.2.3.0/24 (p.yaml:3)"), REPLAY_LEFT_OUT},
	    {question("a.example.com", UNKNOWN), REPLAY_LEFT_OUT},
	    {ruled(question("a.example.com", DENIED), "deny a.example.com (p.yaml:3)"), REPLAY_OPENS},
	    {ruled(question("a.example.com", DENIED), "deny"), REPLAY_OPENS},
	};
	struct snapshot *policy = compile("version: 1\nallow:\n  - host: a.example.com\n"
					  "deny:\n  - country: KP\n  - asn: 64500\n");

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct history_target target;
		struct judgement judgement;
		enum replay_outcome outcome = replay_row(policy, &cases[i].row, clock_real_us(), &target, &judgement);

		if (outcome != cases[i].outcome)
			fail_msg("case %zu: outcome %d, wanted %d", i, outcome, cases[i].outcome);
	}
	snapshot_free(policy);
}

/* Learning lets through names over TCP: UDP needs an entry, an address without a name too. */
static void
replay_learns_as_the_data_path_does(void **state)
{
	struct {
		struct query_row row;
		enum replay_outcome outcome;
		enum reason reason;
	} cases[] = {
	    {connection("a.example.com", GOOD, 443, NO_RULE, NAME_SOURCE_CLAIM), REPLAY_OPENS, REASON_ALLOWED},
	    {connection("a.example.com", GOOD, 5000, NO_RULE, NAME_SOURCE_LEASE), REPLAY_SAME, REASON_NO_RULE},
	    {connection(NULL, GOOD, 22, VERDICT_DENIED, REASON_NOT_LEASED, 0), REPLAY_SAME, REASON_NOT_LEASED},
	    {question("a.example.com", NO_RULE), REPLAY_OPENS, REASON_ALLOWED},
	    {connection("gone.example.com", GOOD, 5000, NO_RULE, NAME_SOURCE_LEASE), REPLAY_SAME, REASON_EXPIRED},
	};
	struct snapshot *policy =
	    compile("version: 1\nmode: learn\nallow:\n  - host: gone.example.com\n    ports: [5000]\n"
		    "    udp: true\n    expires: 2000-01-01T00:00:00Z\n");

	(void)state;
	cases[1].row.proto = cases[4].row.proto = IPPROTO_UDP;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct history_target target;
		struct judgement judgement;
		enum replay_outcome outcome = replay_row(policy, &cases[i].row, clock_real_us(), &target, &judgement);

		if (outcome != cases[i].outcome || judgement.reason != cases[i].reason)
			fail_msg("case %zu: outcome %d, %s", i, outcome, reason_text(judgement.reason));
	}
	snapshot_free(policy);
}

static void
replay_leaves_out_what_no_policy_changes(void **state)
{
	struct query_row rows[] = {
	    connection("news.example.com", "10.0.0.1", 443, VERDICT_DENIED, REASON_NEVER_ADDRESS, NAME_SOURCE_SNI),
	    connection("news.example.com", GOOD, 443, VERDICT_DENIED, REASON_TLS_MALFORMED, 0),
	    connection("news.example.com", GOOD, 443, VERDICT_DENIED, REASON_SNI_MISMATCH, NAME_SOURCE_CLAIM),
	    connection("news.example.com", GOOD, 443, VERDICT_LIMITED, REASON_LIMIT_RATE, NAME_SOURCE_SNI),
	    connection("news.example.com", GOOD, 443, VERDICT_FAILED, REASON_UPSTREAM_ERROR, NAME_SOURCE_SNI),
	    connection("news.example.com", GOOD, 443, 99, REASON_ALLOWED, NAME_SOURCE_SNI),
	    connection(NULL, NULL, 443, NO_RULE, 0),
	    connection(NULL, "1.2.3", 443, NO_RULE, 0),
	    connection(NULL, GOOD, 0, NO_RULE, 0),
	    connection(NULL, GOOD, 65536, NO_RULE, 0),
	    connection("NEWS.example.com", GOOD, 443, NO_RULE, NAME_SOURCE_CLAIM),
	    connection("a\": x\n\x1b[2J", GOOD, 443, NO_RULE, NAME_SOURCE_CLAIM),
	    question("", NO_RULE),
	    question("2.0.16.172.in-addr.arpa", ALLOWED),
	    question("metadata.google.internal", VERDICT_DENIED, REASON_NEVER_NAME),
	};
	struct snapshot *policy = compile(policy_text);
	struct history_target target;
	struct judgement judgement;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (replay_row(policy, &rows[i], clock_real_us(), &target, &judgement) != REPLAY_LEFT_OUT)
			fail_msg("row %zu was judged", i);
	snapshot_free(policy);
}

static void
targets_are_said_in_one_way(void **state)
{
	struct query_row rows[] = {connection("a.example.com", GOOD, 443, NO_RULE, 0),
	    connection(NULL, GOOD, 22, NO_RULE, 0), connection(NULL, "2600::1", 22, NO_RULE, 0),
	    question("a.example.com", NO_RULE)};
	const char *texts[] = {"a.example.com:443/tcp", GOOD ":22/tcp", "[2600::1]:22/udp", "a.example.com dns"};

	(void)state;
	rows[2].proto = IPPROTO_UDP;
	for (size_t i = 0; i < COUNT(rows); i++) {
		char text[HISTORY_TARGET_TEXT_MAX];
		struct history_target target;

		assert_true(history_target_of(&rows[i], &target));
		assert_string_equal(history_target_text(&target, text), texts[i]);
	}
}

static void
counts_do_not_wrap(void **state)
{
	int64_t count = INT64_MAX - 1;

	(void)state;
	history_count(&count, 5);
	assert_int_equal(count, INT64_MAX);
	history_count(&count, INT64_MIN);
	assert_int_equal(count, INT64_MAX);
}

/* What is suggested for these rows; the caller frees it. */
static char *
suggestion(const struct query_row *rows, size_t count)
{
	struct suggest *suggest = suggest_targets_new();
	struct error err;
	char *text;

	assert_non_null(suggest);
	for (size_t i = 0; i < count; i++)
		suggest_targets_row(&rows[i], suggest);
	text = suggest_text_format(suggest, "task", 1700000000000000, &err);
	if (text == NULL)
		fail_msg("%s", err.text);
	suggest_targets_free(suggest);
	return text;
}

static void
suggest_is_minimal(void **state)
{
	struct query_row rows[] = {
	    question("news.example.com", ALLOWED),
	    connection("news.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_SNI),
	    connection("echo.example.com", GOOD, 9002, ALLOWED, NAME_SOURCE_LEASE),
	    connection("echo.example.com", GOOD, 7, NO_RULE, NAME_SOURCE_LEASE),
	    connection("echo.example.com", GOOD, 5000, ALLOWED, NAME_SOURCE_LEASE),
	    connection("echo.example.com", GOOD, 443, VERDICT_DENIED, REASON_RULE_DENY, NAME_SOURCE_CLAIM),
	    question("wanted.example.net", NO_RULE),
	    connection("said.example.org", "140.82.112.3", 22, ALLOWED, NAME_SOURCE_CIDR),
	    connection(NULL, "140.82.112.4", 22, VERDICT_DENIED, REASON_NOT_LEASED, 0),
	    question("2.0.16.172.in-addr.arpa", ALLOWED),
	    question("metadata.google.internal", VERDICT_DENIED, REASON_NEVER_NAME),
	};
	char *text;

	(void)state;
	rows[4].proto = IPPROTO_UDP;
	rows[6].count = 3;
	/* Too late to belong to what was before. */
	rows[6].ts_us += 6000000;
	text = suggestion(rows, COUNT(rows));
	assert_string_equal(text,
	    "# What task tried since 2023-11-14T22:13:20Z, denied attempts included.\n"
	    "# Read every line before you apply it: a guest can try anything.\n"
	    "version: 1\n"
	    "allow:\n"
	    "  - host: \"news.example.com\"  # allowed 2 so far; 2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z\n"
	    "  - host: \"echo.example.com\"  # allowed 2, denied 1 so far; 2023-11-14T22:13:20Z to "
	    "2023-11-14T22:13:20Z\n"
	    "    ports: [7, 9002]\n"
	    "  - host: \"echo.example.com\"  # allowed 2, denied 1 so far; 2023-11-14T22:13:20Z to "
	    "2023-11-14T22:13:20Z\n"
	    "    ports: [5000]\n"
	    "    udp: true\n"
	    "  - host: \"wanted.example.net\"  # denied 3 so far; 2023-11-14T22:13:26Z to 2023-11-14T22:13:26Z\n"
	    "  - cidr: \"140.82.112.3/32\"  # allowed 1 so far; 2023-11-14T22:13:20Z to 2023-11-14T22:13:20Z\n"
	    "    ports: [22]\n"
	    "# left out: metadata.google.internal: host name 'metadata.google.internal' can never be allowed: GCP "
	    "metadata "
	    "(metadata.google.internal)\n"
	    "# left out: 1 record to addresses that it had not resolved\n"
	    "# left out: 1 record refused by a deny rule or by a rule's end\n");
	free(text);
}

static void
suggest_groups_siblings_of_one_party_with_the_same_ports(void **state)
{
	const struct {
		const char *names[4];
		const char *wanted, *unwanted;
	} cases[] = {
	    {{"a.example.com", "b.example.com", "c.d.example.com", "example.com"},
		"  - host: \"*.example.com\"  # allowed 3", "host: \"a.example.com\""},
	    /* Too few; the domain itself is none of them. */
	    {{"a.example.com", "b.example.com", "example.com", NULL}, "host: \"a.example.com\"", "*."},
	    /* Names of strangers: a public suffix, a host of many parties' pages, an object store. */
	    {{"a.co.uk", "b.co.uk", "c.co.uk", "d.co.uk"}, "host: \"c.co.uk\"", "*."},
	    {{"a.github.io", "b.github.io", "c.github.io", "d.github.io"}, "host: \"c.github.io\"", "*."},
	    {{"a.s3.amazonaws.com", "b.s3.amazonaws.com", "c.s3.amazonaws.com", NULL}, "host: \"c.s3.amazonaws.com\"",
		"*."},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct query_row rows[4];
		size_t count = 0;
		char *text;

		for (; count < 4 && cases[i].names[count] != NULL; count++)
			rows[count] = connection(cases[i].names[count], GOOD, 443, ALLOWED, NAME_SOURCE_SNI);
		text = suggestion(rows, count);
		if (strstr(text, cases[i].wanted) == NULL || strstr(text, cases[i].unwanted) != NULL)
			fail_msg("case %zu: %s", i, text);
		/* Other ports: not the same rule. */
		rows[0].dport = 22;
		free(text);
		text = suggestion(rows, count < 4 ? count : 3);
		assert_null(strstr(text, "*."));
		free(text);
	}
}

static void
suggest_keeps_together_what_one_page_brought_in(void **state)
{
	struct query_row rows[] = {
	    question("www.shop.example", ALLOWED),
	    connection("www.shop.example", GOOD, 443, ALLOWED, NAME_SOURCE_SNI),
	    question("pictures.cdn-lab.net", NO_RULE), /* 1 s later */
	    question("alone.example.org", ALLOWED),    /* 8 s later */
	    connection("alone.example.org", GOOD, 443, ALLOWED, NAME_SOURCE_SNI),
	    question("late.example.net", ALLOWED),  /* 14 s later */
	    question("alias.example.edu", ALLOWED), /* 30 s later, but the same in truth as pictures.cdn-lab.net */
	    connection("alone.example.org", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), /* 40 s later */
	    question("api.shop.example", ALLOWED), /* 1 s later, but of a domain known before */
	    connection("pictures.cdn-lab.net", GOOD, 443, ALLOWED, NAME_SOURCE_SNI), /* 50 s later: no site */
	    question("far.example.gov", ALLOWED),
	};
	static const int64_t after_s[COUNT(rows)] = {0, 0, 1, 8, 8, 14, 30, 40, 41, 50, 51};
	char *text, *at;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		rows[i].ts_us += after_s[i] * 1000000;
	rows[2].answers = text_of("[\"CNAME edge.cdn-lab.net\",\"A 140.82.112.3\"]");
	rows[6].answers = text_of("[\"CNAME a\\\"\\n- x\",\"CNAME edge.cdn-lab.net\",7,\"A 140.82.112.3\"]");
	text = suggestion(rows, COUNT(rows));
	static const char *const order[] = {"far.example.gov\"", "late.example.net\"",
	    "alone.example.org\"  # allowed 3", "  # -- shop.example, and what was first resolved within 5 s after",
	    "host: \"api.shop.example\"", "host: \"www.shop.example\"",
	    "host: \"pictures.cdn-lab.net\"  # allowed 1, denied 1", "; an alias of edge.cdn-lab.net\n",
	    "host: \"alias.example.edu\"", "; an alias of edge.cdn-lab.net\n"};
	at = text;
	for (size_t i = 0; i < COUNT(order); i++) {
		char *found = strstr(at, order[i]);

		if (found == NULL)
			fail_msg("%s: not at its place in: %s", order[i], text);
		at = found + strlen(order[i]);
	}
	free(text);
}

static void
suggest_lets_no_bytes_of_the_guest_through(void **state)
{
	struct query_row rows[] = {
	    question("a\"\n  - host: \"evil.example.com", NO_RULE),
	    question("\x1b[2Jx.example.com", NO_RULE),
	    question("UPPER.example.com", NO_RULE),
	    question("*.example.com", NO_RULE),
	    question("single", NO_RULE),
	    question("xn--a.example.com", NO_RULE),
	    question("-.example.com", NO_RULE),
	    question("1.e5", NO_RULE),
	    question("", NO_RULE),
	    connection("x.example.org", GOOD, 53, NO_RULE, NAME_SOURCE_CLAIM),
	    connection("x.example.org", GOOD, 443, ALLOWED, NAME_SOURCE_SNI),
	};
	char *text;

	(void)state;
	rows[0].name_raw = rows[0].name;
	rows[0].reason = REASON_DNS_DENIED;
	rows[1].name_raw = rows[1].name;
	rows[9].count = INT64_MAX;
	rows[10].ts_us = INT64_MIN;
	text = suggestion(rows, COUNT(rows));
	for (const char *c = text; *c != '\0'; c++)
		assert_true(*c == '\n' || (*c >= 0x20 && *c <= 0x7e));
	assert_null(strstr(text, "evil"));
	assert_non_null(strstr(text, "# left out: 5 records about names and addresses that no rule can name\n"));
	assert_non_null(strstr(text, "  - host: \"x.example.org\"  # allowed 1, denied 9223372036854775807 so far"));
	assert_non_null(strstr(text, "# left out: single: "));
	free(text);
	text = suggestion(rows, 0);
	assert_non_null(strstr(text, "allow:\n  []\n"));
	free(text);
}

static void
suggest_does_not_repeat_a_port_scan(void **state)
{
	static struct query_row rows[1000];
	char *text;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		rows[i] = connection("x.example.com", GOOD, 1000 + (int64_t)i, NO_RULE, NAME_SOURCE_LEASE);
	text = suggestion(rows, COUNT(rows));
	assert_non_null(strstr(text, "; 984 more at ports left out\n    ports: [1000, 1001, "));
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replay_says_what_changes),
	    cmocka_unit_test(replay_knows_places),
	    cmocka_unit_test(replay_learns_as_the_data_path_does),
	    cmocka_unit_test(replay_leaves_out_what_no_policy_changes),
	    cmocka_unit_test(targets_are_said_in_one_way),
	    cmocka_unit_test(counts_do_not_wrap),
	    cmocka_unit_test(suggest_is_minimal),
	    cmocka_unit_test(suggest_groups_siblings_of_one_party_with_the_same_ports),
	    cmocka_unit_test(suggest_keeps_together_what_one_page_brought_in),
	    cmocka_unit_test(suggest_lets_no_bytes_of_the_guest_through),
	    cmocka_unit_test(suggest_does_not_repeat_a_port_scan),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
