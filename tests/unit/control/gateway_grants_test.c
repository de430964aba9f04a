/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules that end, by their deadline or by use, and limits. */
#include "gateway/path/expiry.h"
#include "gateway/path/count/quota.h"
#include "gateway/path/repolicy.h"
#include "tests/unit/gateway/gateway_proxy_lab.h"
#include "policy/verdict.h"

/* One rule and its terms. */
struct term {
	const char *word;   /* NULL ends a table */
	int64_t expires_ms; /* from now; 0: never */
	uint32_t uses;
	struct limits limits;
};

#define HARD(kind, soft, hard)                                                                                         \
	{                                                                                                              \
		.of = { [kind] = {soft, hard} }                                                                        \
	}
static const struct limits unlimited;

static struct snapshot *
grants_policy(const struct term *terms, const struct limits *limits)
{
	struct policy policy;
	struct error err;

	policy_init(&policy);
	policy.limits = *limits;
	for (; terms->word != NULL; terms++) {
		struct rule rule;

		if (rule_parse(RULE_ALLOW, terms->word, &rule, &err) < 0)
			fail_msg("%s", err.text);
		snprintf(rule.origin, sizeof(rule.origin), "grants.yaml");
		rule.expires_us = terms->expires_ms == 0 ? 0 : clock_real_us() + terms->expires_ms * 1000;
		rule.uses = terms->uses;
		rule.limits = terms->limits;
		assert_int_equal(policy_add(&policy, &rule, &err), 0);
	}
	return snapshot_of_own(&policy);
}

static void
grants_open_limited(struct lab *lab, uint16_t port, const struct term *terms, const struct limits *limits,
    const struct usage_table *used)
{
	static const char *const nothing[] = {NULL};

	lab_open(lab, port, nothing);
	snapshot_free(lab->sandbox.policy);
	lab->sandbox.policy = grants_policy(terms, limits);
	assert_int_equal(quota_attach(&lab->sandbox, used), 0);
	expiry_start(&lab->sandbox);
}

static void
grants_open(struct lab *lab, uint16_t port, const struct term *terms)
{
	grants_open_limited(lab, port, terms, &unlimited, NULL);
}

static void
grants_close(struct lab *lab)
{
	expiry_stop(&lab->sandbox);
	proxy_detach(&lab->sandbox, END_DETACHED);
	quota_detach(&lab->sandbox);
	lab_close(lab);
}

static void
grants_edit(struct lab *lab, const struct term *terms)
{
	static struct msg_policy_done done;

	memset(&done, 0, sizeof(done));
	repolicy(&lab->sandbox, grants_policy(terms, &unlimited), lab->sandbox.generation + 1, &done);
	expiry_start(&lab->sandbox);
	assert_int_equal(done.cut_count, 0);
}

/* The last connection's record says that it was refused, and why. */
static const struct record_flow *
grants_expect_refused(struct lab *lab, size_t records, enum verdict verdict, enum reason reason)
{
	const struct record *last = NULL;

	lab_settle(lab);
	assert_int_equal(far_end_count(lab->far, RECORD_FLOW_OPEN, &last), records);
	assert_string_equal(verdict_text(last->flow.verdict), verdict_text(verdict));
	assert_string_equal(reason_text(last->flow.reason), reason_text(reason));
	assert_int_equal(last->flow.end, END_REFUSED);
	return &last->flow;
}

static void
grants_dial_refused(struct lab *lab, const char *to)
{
	int guest = lab_dial(lab, to);

	assert_int_equal(lab_recv(lab, guest), -ECONNRESET);
	assert_int_equal(lab_accept(lab), -1);
	close(guest);
}

/* A connection that carries bytes both ways; *ret_origin is its far end. */
static int
grants_connect(struct lab *lab, const char *to, int *ret_origin)
{
	int guest = lab_dial(lab, to);

	*ret_origin = lab_accept(lab);
	assert_true(*ret_origin >= 0);
	lab_send(lab, guest, "hello", 5);
	lab_expect(lab, *ret_origin, "hello", 5);
	return guest;
}

static void
a_deadline_cuts_what_only_that_rule_allowed(void **state)
{
	static const struct term terms[] = {{.word = "good.example.com:22", .expires_ms = 5000},
	    {.word = "5.6.7.9/32:22", .expires_ms = 9000}, {.word = "5.6.7.9/32:20-30"}, {.word = NULL}};
	struct lab lab;
	int cut, cut_origin, kept, kept_origin;

	(void)state;
	grants_open(&lab, 22, terms);
	cut = grants_connect(&lab, ORIGIN4, &cut_origin);
	kept = grants_connect(&lab, SHARED4, &kept_origin);
	far_end_pass(lab.far, 4500);
	assert_int_equal(lab_recv(&lab, cut), -EAGAIN);
	assert_int_equal(lab.sandbox.leases.count, 2);

	far_end_pass(lab.far, 600);
	assert_int_equal(lab_recv(&lab, cut), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, cut_origin), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->reason, REASON_EXPIRED);
	assert_int_equal(lab.sandbox.leases.count, 0);
	assert_true(lab.far->leases_deleted > 0);

	/* The second one's end changes nothing for what another rule allows. */
	far_end_pass(lab.far, 4000);
	lab_send(&lab, kept_origin, "still", 5);
	lab_expect(&lab, kept, "still", 5);
	assert_false(loop_timer_armed(&lab.sandbox.expiry));
	close(cut);
	close(cut_origin);
	close(kept);
	close(kept_origin);
	grants_close(&lab);
}

static void
after_the_deadline_the_refusal_says_so(void **state)
{
	static const struct term cidr[] = {{.word = "5.6.7.0/24:22", .expires_ms = 1000}, {.word = NULL}};
	static const struct term host[] = {{.word = "good.example.com:443", .expires_ms = 1000}, {.word = NULL}};
	const struct record_flow *flow;
	struct lab lab;
	uint8_t hello[512];
	int guest;

	(void)state;
	grants_open(&lab, 22, cidr);
	far_end_pass(lab.far, 1100);
	guest = lab_dial(&lab, SHARED4);
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	flow = lab_expect_refused(&lab, VERDICT_DENIED, REASON_EXPIRED);
	assert_string_equal(flow->rule, "allow 5.6.7.0/24:22 (grants.yaml)");
	assert_string_equal(flow->detail, "");
	close(guest);
	grants_close(&lab);

	grants_open(&lab, 443, host);
	far_end_pass(lab.far, 1100);
	guest = lab_dial(&lab, ORIGIN4);
	lab_send(&lab, guest, hello, lab_hello(hello, "good.example.com", false));
	assert_int_equal(lab_recv(&lab, guest), -ECONNRESET);
	flow = lab_expect_refused(&lab, VERDICT_DENIED, REASON_EXPIRED);
	assert_string_equal(flow->rule, "allow good.example.com:443 (grants.yaml)");
	close(guest);
	grants_close(&lab);
}

/* Somebody sets the clock forward: the deadline is noticed at the next look. */
static void
a_deadline_far_away_is_looked_at_now_and_then(void **state)
{
	static const struct term terms[] = {{.word = "good.example.com:22", .expires_ms = 3600000}, {.word = NULL}};
	struct lab lab;

	(void)state;
	grants_open(&lab, 22, terms);
	assert_true(loop_timer_armed(&lab.sandbox.expiry));
	assert_in_range(lab.sandbox.expiry.due_ms - clock_mono_ms(), EXPIRY_LOOK_MS - 1000, EXPIRY_LOOK_MS);
	far_end_pass(lab.far, EXPIRY_LOOK_MS + 1000);
	assert_true(loop_timer_armed(&lab.sandbox.expiry));
	grants_close(&lab);
}

/* Uses that the keeper knows of. */
static uint64_t
grants_uses(const struct lab *lab)
{
	uint64_t uses = 0;

	for (size_t i = 0; i < lab->far->usage.count; i++)
		uses += lab->far->usage.rows[i].uses;
	return uses;
}

static void
the_last_use_ends_a_rule_but_not_what_lives_under_it(void **state)
{
	static const struct term terms[] = {{.word = "5.6.7.9/32:22", .uses = 2}, {.word = NULL}};
	static const struct term more[] = {
	    {.word = "good.example.com:22", .expires_ms = 3000}, {.word = "5.6.7.9/32:22", .uses = 2}, {.word = NULL}};
	static const struct term without[] = {{.word = "5.6.7.0/24:22"}, {.word = NULL}};
	const struct record_event *event = NULL;
	const struct record_flow *flow;
	struct lab lab;
	int guests[2], origins[2];

	(void)state;
	grants_open(&lab, 22, terms);
	guests[0] = grants_connect(&lab, SHARED4, &origins[0]);
	assert_int_equal(grants_uses(&lab), 1);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, NULL), 0);
	guests[1] = grants_connect(&lab, SHARED4, &origins[1]);
	assert_int_equal(grants_uses(&lab), 2);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, &event), 1);
	assert_string_equal(event->detail, "{\"rule\":\"allow 5.6.7.9:22\",\"origin\":\"grants.yaml\"}");
	grants_dial_refused(&lab, SHARED4);
	flow = grants_expect_refused(&lab, 3, VERDICT_DENIED, REASON_EXPIRED);
	assert_string_equal(flow->detail, "used up");
	assert_string_equal(flow->rule, "allow 5.6.7.9:22 (grants.yaml)");

	/* An edit that keeps the rule keeps the count; neither it nor another rule's end cuts what lives. */
	grants_edit(&lab, more);
	grants_dial_refused(&lab, SHARED4);
	grants_expect_refused(&lab, 4, VERDICT_DENIED, REASON_EXPIRED);
	far_end_pass(lab.far, 3100);
	grants_dial_refused(&lab, SHARED4);
	for (int i = 0; i < 2; i++) {
		lab_send(&lab, origins[i], "still", 5);
		lab_expect(&lab, guests[i], "still", 5);
	}
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, NULL), 1);

	/* Taken out and put back: a new grant. */
	grants_edit(&lab, without);
	grants_edit(&lab, terms);
	for (int i = 0; i < 2; i++) {
		close(guests[i]);
		close(origins[i]);
		guests[i] = grants_connect(&lab, SHARED4, &origins[i]);
	}
	grants_dial_refused(&lab, SHARED4);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, NULL), 2);
	for (int i = 0; i < 2; i++) {
		close(guests[i]);
		close(origins[i]);
	}
	grants_close(&lab);
}

static void
uses_are_counted_on_by_the_next_process(void **state)
{
	static const struct term terms[] = {{.word = "5.6.7.9/32:22", .uses = 2}, {.word = NULL}};
	struct usage_table used = {0};
	struct lab lab;
	int guest, origin;

	(void)state;
	grants_open(&lab, 22, terms);
	guest = grants_connect(&lab, SHARED4, &origin);
	used = lab.far->usage;
	lab.far->usage = (struct usage_table){0};
	close(guest);
	close(origin);
	grants_close(&lab);

	grants_open_limited(&lab, 22, terms, &unlimited, &used);
	guest = grants_connect(&lab, SHARED4, &origin);
	grants_dial_refused(&lab, SHARED4);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, NULL), 1);
	usage_table_free(&used);
	used = lab.far->usage;
	lab.far->usage = (struct usage_table){0};
	close(guest);
	close(origin);
	grants_close(&lab);

	/* Used up before: not told of again. */
	grants_open_limited(&lab, 22, terms, &unlimited, &used);
	grants_dial_refused(&lab, SHARED4);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_USED_UP, NULL), 0);
	usage_table_free(&used);
	grants_close(&lab);
}

/* Bytes one way until nothing comes any more; how many came, and whether it ended in a reset. */
static size_t
grants_pour(struct lab *lab, int from, int to, size_t len, bool *ret_reset)
{
	static uint8_t bytes[4096];
	size_t came = 0;

	*ret_reset = false;
	for (int quiet = 0; quiet < 4;) {
		ssize_t n = len == 0 ? 0 : send(from, bytes, len < sizeof(bytes) ? len : sizeof(bytes), MSG_NOSIGNAL);

		len -= n > 0 ? (size_t)n : 0;
		n = lab_recv(lab, to);
		came += n > 0 ? (size_t)n : 0;
		*ret_reset = *ret_reset || n == -ECONNRESET;
		quiet = n > 0 ? 0 : quiet + 1;
	}
	return came;
}

static void
bytes_are_cut_at_the_first_one_beyond(void **state)
{
	static const struct {
		struct limits sandbox, rule;
		bool up;
		enum reason reason;
	} rows[] = {
	    {HARD(LIMIT_UPLOAD, 40000, 50000), {.of = {{0, 0}}}, true, REASON_LIMIT_UPLOAD},
	    {HARD(LIMIT_DOWNLOAD, 40000, 50000), {.of = {{0, 0}}}, false, REASON_LIMIT_DOWNLOAD},
	    {{.of = {{0, 0}}}, HARD(LIMIT_UPLOAD, 40000, 50000), true, REASON_LIMIT_UPLOAD},
	    {{.of = {{0, 0}}}, HARD(LIMIT_DOWNLOAD, 40000, 50000), false, REASON_LIMIT_DOWNLOAD},
	};
	const struct record_event *event = NULL;
	struct lab lab;
	bool reset;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		const struct term terms[] = {{.word = "5.6.7.9/32:22", .limits = rows[i].rule}, {.word = NULL}};
		int guest, origin, from, to;

		grants_open_limited(&lab, 22, terms, &rows[i].sandbox, NULL);
		guest = lab_dial(&lab, SHARED4);
		origin = lab_accept(&lab);
		from = rows[i].up ? guest : origin;
		to = rows[i].up ? origin : guest;
		/* All that is allowed passes and is no reason to cut. */
		assert_int_equal(grants_pour(&lab, from, to, 39999, &reset), 39999);
		assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), 0);
		assert_int_equal(grants_pour(&lab, from, to, 10001, &reset), 10001);
		assert_false(reset);
		assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, &event), 1);
		assert_non_null(strstr(event->detail, rows[i].up ? "\"limit\":\"upload\"" : "\"limit\":\"download\""));
		assert_int_equal(strstr(event->detail, "allow 5.6.7.9:22") != NULL, limits_any(&rows[i].rule));
		/* Nothing new begins. */
		grants_dial_refused(&lab, SHARED4);
		grants_expect_refused(&lab, 2, VERDICT_LIMITED, rows[i].reason);
		/* The first byte beyond. */
		assert_in_range(grants_pour(&lab, from, to, 5000, &reset), 0, 1);
		assert_true(reset);
		assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->reason, rows[i].reason);
		far_end_pass(lab.far, QUOTA_REPORT_MS + 100);
		assert_int_equal(rows[i].up ? lab.far->usage.rows[0].upload : lab.far->usage.rows[0].download, 50001);
		close(guest);
		close(origin);
		grants_close(&lab);
	}
}

static void
connections_at_a_time(void **state)
{
	static const struct limits sandbox = HARD(LIMIT_CONNECTIONS, 2, 3);
	static const struct term terms[] = {{.word = "5.6.7.9/32:22", .limits = HARD(LIMIT_CONNECTIONS, 1, 1)},
	    {.word = "good.example.com:22"}, {.word = NULL}};
	struct lab lab;
	int guests[3], origins[3];

	(void)state;
	grants_open_limited(&lab, 22, terms, &sandbox, NULL);
	guests[0] = grants_connect(&lab, SHARED4, &origins[0]);
	assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), 1); /* the rule's */
	grants_dial_refused(&lab, SHARED4);
	assert_string_equal(
	    grants_expect_refused(&lab, 2, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS)->detail, "the rule's own limit");
	guests[1] = grants_connect(&lab, ORIGIN4, &origins[1]);
	guests[2] = grants_connect(&lab, ORIGIN4, &origins[2]);
	assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), 2);
	grants_dial_refused(&lab, ORIGIN4);
	assert_string_equal(grants_expect_refused(&lab, 5, VERDICT_LIMITED, REASON_LIMIT_CONNECTIONS)->detail,
	    "the sandbox's connections");
	/* What has ended makes room. */
	close(guests[0]);
	close(origins[0]);
	lab_settle(&lab);
	guests[0] = grants_connect(&lab, SHARED4, &origins[0]);
	for (int i = 0; i < 3; i++) {
		close(guests[i]);
		close(origins[i]);
	}
	grants_close(&lab);
}

static void
connections_within_a_minute(void **state)
{
	static const struct limits sandbox = HARD(LIMIT_NEW_CONNECTIONS_PER_MINUTE, 3, 4);
	static const struct term terms[] = {{.word = "5.6.7.9/32:22"}, {.word = NULL}};
	struct lab lab;

	(void)state;
	grants_open_limited(&lab, 22, terms, &sandbox, NULL);
	for (size_t round = 1; round <= 2; round++) {
		for (int i = 0; i < 4; i++) {
			int origin, guest = grants_connect(&lab, SHARED4, &origin);

			close(guest);
			close(origin);
		}
		grants_dial_refused(&lab, SHARED4);
		grants_expect_refused(&lab, round * 5, VERDICT_LIMITED, REASON_LIMIT_RATE);
		assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), round);
		far_end_pass(lab.far, 62000);
	}
	grants_close(&lab);
}

static void
questions_and_names(void **state)
{
	static const struct limits sandbox = {
	    .of = {[LIMIT_DNS_QUERIES_PER_SECOND] = {4, 5}, [LIMIT_UNIQUE_NAMES_PER_MINUTE] = {2, 3}}};
	static const struct term terms[] = {{.word = NULL}};
	struct name name[4];
	struct lab lab;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		char text[] = "a.example.com";

		text[0] = (char)('a' + i);
		assert_int_equal(name_canonical(text, strlen(text), &name[i]), NAME_OK);
	}
	grants_open_limited(&lab, 22, terms, &sandbox, NULL);
	for (size_t round = 0; round < 2; round++) {
		for (int i = 0; i < 5; i++)
			assert_true(quota_query(&lab.sandbox));
		assert_false(quota_query(&lab.sandbox));
		far_end_pass(lab.far, 1100);
	}
	assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), 1); /* at most once a minute */
	for (size_t round = 0; round < 2; round++) {
		for (size_t i = 0; i < 6; i++)
			assert_true(quota_name(&lab.sandbox, &name[i % 3]));
		assert_false(quota_name(&lab.sandbox, &name[3]));
		assert_true(quota_name(&lab.sandbox, &name[0]));
		far_end_pass(lab.far, 62000);
	}
	lab_settle(&lab);
	assert_int_equal(far_end_events(lab.far, EVENT_LIMIT_SOFT, NULL), 3);
	grants_close(&lab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_deadline_cuts_what_only_that_rule_allowed),
	    cmocka_unit_test(after_the_deadline_the_refusal_says_so),
	    cmocka_unit_test(a_deadline_far_away_is_looked_at_now_and_then),
	    cmocka_unit_test(the_last_use_ends_a_rule_but_not_what_lives_under_it),
	    cmocka_unit_test(uses_are_counted_on_by_the_next_process),
	    cmocka_unit_test(bytes_are_cut_at_the_first_one_beyond),
	    cmocka_unit_test(connections_at_a_time),
	    cmocka_unit_test(connections_within_a_minute),
	    cmocka_unit_test(questions_and_names),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
