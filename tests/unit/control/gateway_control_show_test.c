/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the API shows: the daemon's status and what it lacks, the list of sandboxes, one sandbox with its leases. */
#include "tests/unit/control/gateway_control_far.h"

static void
the_list_is_in_order_of_names(void **state)
{
	static const char *const names[] = {"a", "b2", "c"};
	struct far *far = *state;
	json_t *answer = far_http(far, "GET", "/v1/sandboxes", NULL, 200), *list;

	assert_int_equal(json_array_size(json_object_get(answer, "sandboxes")), 0);
	json_decref(answer);
	far_attach(far, "{\"name\":\"c\",\"kind\":\"tap\"}");
	far_attach(far, "{\"name\":\"a\",\"kind\":\"tap\",\"allow\":[\"a.org\",\"b.org\"]}");
	far_attach(far, "{\"name\":\"b2\",\"kind\":\"netns\",\"pid\":7}");
	answer = far_http(far, "GET", "/v1/sandboxes", NULL, 200);
	list = json_object_get(answer, "sandboxes");
	assert_int_equal(json_array_size(list), 3);
	for (size_t i = 0; i < 3; i++) {
		const json_t *sandbox = json_array_get(list, i);

		assert_string_equal(json_string_value(json_object_get(sandbox, "name")), names[i]);
		assert_string_equal(json_string_value(json_object_get(sandbox, "state")), "attached");
		assert_string_equal(json_string_value(json_object_get(sandbox, "kind")), i == 1 ? "netns" : "tap");
		assert_int_equal(json_integer_value(json_object_get(sandbox, "rules")), i == 0 ? 2 : 0);
	}
	json_decref(answer);
}

static void
a_sandbox_shows_its_rules_and_leases(void **state)
{
	struct far *far = *state;
	json_t *answer, *rule, *lease;

	far_attach(far,
	    "{\"name\":\"vm1\",\"kind\":\"tap\",\"policy_file\":\"p.yaml\",\"policy\":\"version: 1\\nallow:\\n"
	    "  - {host: a.org, expires: 2h, uses: 3}\\n\"}");
	far_add_lease(far, "a.org", "45.45.45.1");
	far->leases.flows = 4;
	answer = far_http(far, "GET", "/v1/sandboxes/vm1", NULL, 200);
	rule = json_array_get(json_object_get(answer, "rules"), 0);
	assert_string_equal(json_string_value(json_object_get(rule, "rule")), "allow a.org");
	assert_string_equal(json_string_value(json_object_get(rule, "origin")), "p.yaml:3");
	assert_int_equal(
	    strlen(json_string_value(json_object_get(rule, "expires"))), strlen("2026-12-01T10:00:00.000000Z"));
	assert_int_equal(json_integer_value(json_object_get(rule, "uses")), 3);
	assert_int_equal(json_integer_value(json_object_get(rule, "used")), 0);
	assert_int_equal(json_integer_value(json_object_get(answer, "flows")), 4);
	lease = json_array_get(json_object_get(answer, "leases"), 0);
	assert_string_equal(json_string_value(json_object_get(lease, "name")), "a.org");
	assert_string_equal(json_string_value(json_object_get(lease, "address")), "45.45.45.1");
	assert_int_equal(json_integer_value(json_object_get(lease, "left_s")), 50);
	assert_string_equal(json_string_value(json_object_get(answer, "dns")), "172.16.0.1");
	json_decref(answer);
	/* Without the gateway's answer, all but leases and flows. */
	far->leases.result.code = ERROR_UNREACHABLE;
	answer = far_http(far, "GET", "/v1/sandboxes/vm1", NULL, 200);
	assert_null(json_object_get(answer, "leases"));
	assert_null(json_object_get(answer, "flows"));
	assert_int_equal(json_array_size(json_object_get(answer, "rules")), 1);
	json_decref(answer);
}

static void
the_status_says_what_is_missing(void **state)
{
	struct far *far = *state;
	json_t *answer = far_http(far, "GET", "/v1/status", NULL, 200);

	assert_int_equal(json_array_size(json_object_get(answer, "missing")), 0);
	assert_int_equal(json_integer_value(json_object_get(answer, "sandboxes")), 0);
	json_decref(answer);
	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\",\"policy\":\"version: 1\\nmode: learn\\n\"}");
	far->status.host_chain = far->status.confined = far->status.gateway_count = 0;
	far->status.rootless = 1;
	far->status.auditor = (struct msg_role_status){.pid = 77, .restarts = 5};
	answer = far_http(far, "GET", "/v1/status", NULL, 200);
	assert_true(far_lists(answer, "missing", "host chain: "));
	assert_true(far_lists(answer, "missing", "seccomp: "));
	assert_true(far_lists(answer, "missing", "gateway: none is running"));
	assert_true(far_lists(answer, "missing", "separate users: rootless"));
	assert_true(far_lists(answer, "missing", "learning: vm1: "));
	assert_false(far_lists(answer, "missing", "audit: "));
	assert_int_equal(json_integer_value(json_object_get(answer, "sandboxes")), 1);
	assert_int_equal(
	    json_integer_value(json_object_get(json_array_get(json_object_get(answer, "roles"), 1), "restarts")), 5);
	json_decref(answer);
	far->status.result.code = ERROR_SYSTEM;
	snprintf(far->status.result.text, sizeof(far->status.result.text), "no status");
	far_expect(far, "GET", "/v1/status", NULL, 500, "message", "no status");
}

static bool
is_not_writable(struct far *far)
{
	json_t *answer = far_http(far, "GET", "/v1/status", NULL, 200);
	bool writable = json_is_true(json_object_get(answer, "audit_ok"));

	assert_int_equal(far_lists(answer, "missing", "audit: the log cannot be written"), !writable);
	json_decref(answer);
	return !writable;
}

static bool
is_writable(struct far *far)
{
	return !is_not_writable(far);
}

/* The log counts as unwritable when the auditor says so, or is not there; edits go on, and wait to be recorded. */
static void
a_log_that_cannot_be_written_is_missing(void **state)
{
	struct far *far = *state;

	far_attach(far, FAR_ATTACH);
	far_wait(far, is_writable);
	far->unwritable = true;
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 200));
	far_wait(far, is_not_writable);
	far_expect(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"a step\"}", 500, "message",
	    "the log cannot be written");
	far->unwritable = false;
	far_release_durable(far);
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"b.org\"]}", 200));
	far_wait(far, is_writable);
	ipc_close(&far->auditor);
	far_wait(far, is_not_writable);
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"c.org\"]}", 200));
	assert_int_equal(far_events(far, EVENT_POLICY), 2);
	far_open_auditor(far);
	far_wait(far, is_writable);
	assert_int_equal(far_events(far, EVENT_POLICY), 3);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAR_TEST(the_list_is_in_order_of_names),
	    FAR_TEST(a_sandbox_shows_its_rules_and_leases),
	    FAR_TEST(the_status_says_what_is_missing),
	    FAR_TEST(a_log_that_cannot_be_written_is_missing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
