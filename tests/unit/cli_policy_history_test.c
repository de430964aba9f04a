/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Recorded history against a policy: postern policy replay, row by row. */
#include "audit/record.h"
#include "base/clock.h"
#include "cli/policy_history.h"
#include "cli/policy_replay.h"
#include "policy/policy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
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
	    {connection("news.example.com", GOOD, 443, ALLOWED, NAME_SOURCE_CIDR), REPLAY_BREAKS, ""},
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
		struct decision decision;
		enum replay_outcome outcome = replay_row(policy, &cases[i].row, clock_real_us(), &target, &decision);

		if (outcome != cases[i].outcome)
			fail_msg("case %zu: outcome %d, wanted %d", i, outcome, cases[i].outcome);
		assert_string_equal(snapshot_rule_text(policy, decision.rule), cases[i].rule);
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
	struct decision decision;

	(void)state;
	for (size_t i = 0; i < COUNT(rows); i++)
		if (replay_row(policy, &rows[i], clock_real_us(), &target, &decision) != REPLAY_LEFT_OUT)
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

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(replay_says_what_changes),
	    cmocka_unit_test(replay_leaves_out_what_no_policy_changes),
	    cmocka_unit_test(targets_are_said_in_one_way),
	    cmocka_unit_test(counts_do_not_wrap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
