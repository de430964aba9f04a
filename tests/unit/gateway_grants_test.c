/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rules that end: by their deadline. */
#include "gateway/expiry.h"
#include "tests/unit/gateway_proxy_lab.h"

/* One rule and its terms. */
struct term {
	const char *word;   /* NULL ends a table */
	int64_t expires_ms; /* from now; 0: never */
};

static struct snapshot *
grants_policy(const struct term *terms)
{
	struct policy policy;
	struct snapshot *snapshot;
	struct error err;
	int fd;

	policy_init(&policy);
	for (; terms->word != NULL; terms++) {
		struct rule rule;

		if (rule_parse(RULE_ALLOW, terms->word, &rule, &err) < 0)
			fail_msg("%s", err.text);
		snprintf(rule.origin, sizeof(rule.origin), "grants.yaml");
		rule.expires_us = terms->expires_ms == 0 ? 0 : clock_real_us() + terms->expires_ms * 1000;
		assert_int_equal(policy_add(&policy, &rule, &err), 0);
	}
	fd = snapshot_compile(&policy, &err);
	assert_true(fd >= 0);
	snapshot = snapshot_open(fd, &err);
	assert_non_null(snapshot);
	close(fd);
	policy_free(&policy);
	return snapshot;
}

static void
grants_open(struct lab *lab, uint16_t port, const struct term *terms)
{
	static const char *const nothing[] = {NULL};

	lab_open(lab, port, nothing);
	snapshot_free(lab->sandbox.policy);
	lab->sandbox.policy = grants_policy(terms);
	expiry_start(&lab->sandbox);
}

static void
grants_close(struct lab *lab)
{
	expiry_stop(&lab->sandbox);
	lab_close(lab);
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
	static const struct term terms[] = {
	    {"good.example.com:22", 5000}, {"5.6.7.9/32:22", 9000}, {"5.6.7.9/32:20-30", 0}, {NULL, 0}};
	const struct record_event *event = NULL;
	struct lab lab;
	int cut, cut_origin, kept, kept_origin;

	(void)state;
	grants_open(&lab, 22, terms);
	cut = grants_connect(&lab, ORIGIN4, &cut_origin);
	kept = grants_connect(&lab, SHARED4, &kept_origin);
	far_end_pass(lab.far, 4500);
	assert_int_equal(lab_recv(&lab, cut), -EAGAIN);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_EXPIRED, NULL), 0);
	assert_int_equal(lab.sandbox.leases.count, 2);

	far_end_pass(lab.far, 600);
	assert_int_equal(lab_recv(&lab, cut), -ECONNRESET);
	assert_int_equal(lab_recv(&lab, cut_origin), -ECONNRESET);
	assert_int_equal(lab_expect_closed(&lab, 1, END_POLICY)->reason, REASON_EXPIRED);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_EXPIRED, &event), 1);
	assert_string_equal(event->detail, "{\"rule\":\"allow good.example.com:22\",\"origin\":\"grants.yaml\"}");
	assert_int_equal(event->sandbox, 7);
	assert_int_equal(lab.sandbox.leases.count, 0);
	assert_true(lab.far->leases_deleted > 0);

	/* The second one's end changes nothing for what another rule allows. */
	far_end_pass(lab.far, 4000);
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_EXPIRED, NULL), 2);
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
	static const struct term cidr[] = {{"5.6.7.0/24:22", 1000}, {NULL, 0}};
	static const struct term host[] = {{"good.example.com:443", 1000}, {NULL, 0}};
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
	static const struct term terms[] = {{"good.example.com:22", 3600000}, {NULL, 0}};
	struct lab lab;

	(void)state;
	grants_open(&lab, 22, terms);
	assert_true(loop_timer_armed(&lab.sandbox.expiry));
	assert_in_range(lab.sandbox.expiry.due_ms - clock_mono_ms(), EXPIRY_LOOK_MS - 1000, EXPIRY_LOOK_MS);
	far_end_pass(lab.far, EXPIRY_LOOK_MS + 1000);
	assert_true(loop_timer_armed(&lab.sandbox.expiry));
	assert_int_equal(far_end_events(lab.far, EVENT_GRANT_EXPIRED, NULL), 0);
	grants_close(&lab);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_deadline_cuts_what_only_that_rule_allowed),
	    cmocka_unit_test(after_the_deadline_the_refusal_says_so),
	    cmocka_unit_test(a_deadline_far_away_is_looked_at_now_and_then),
	};

	return cmocka_run_group_tests(tests, lab_setup, NULL);
}
