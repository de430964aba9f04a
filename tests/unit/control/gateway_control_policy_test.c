/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes of a policy: live edits, their revocation, a new policy file; what is refused, and what a refusal leaves. */
#include "tests/unit/control/gateway_control_far.h"

#define RULES "/v1/sandboxes/vm1/rules"
#define POLICY "/v1/sandboxes/vm1/policy"

static void
a_change_on_another_generation_conflicts(void **state)
{
	struct far *far = *state;

	far_attach(far, FAR_ATTACH);
	json_decref(
	    far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"],\"if_generation\":1}", 200));
	far_expect(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"b.org\"],\"if_generation\":1}", 409,
	    "message", "the policy of vm1 is at generation 2, not 1");
	far_expect(far, "DELETE", RULES, "{\"rules\":[\"a.org\"],\"if_generation\":1}", 409, "error", "exists");
	far_expect(far, "PUT", POLICY, "{\"policy\":\"version: 1\\n\",\"if_generation\":3}", 409, "error", "exists");
	far_expect(far, "DELETE", RULES, "{\"rules\":[\"a.org\"],\"if_generation\":\"2\"}", 400, "message",
	    "\"if_generation\" must be an integer");
	far_expect(far, "DELETE", RULES, "{\"rules\":[\"a.org\"],\"if_generation\":-1}", 400, "message",
	    "\"if_generation\" must be between");
	assert_int_equal(far->policies, 1);
	json_decref(far_http(far, "DELETE", RULES, "{\"rules\":[\"a.org\"],\"if_generation\":2}", 200));
	assert_int_equal(far->policy.generation, 3);
}

static void
bad_edits_are_named_and_change_nothing(void **state)
{
	static const struct {
		const char *method, *body;
		int status;
		const char *message;
	} rows[] = {
	    {"POST", "{\"rules\":[\"a.org\"]}", 400, "\"action\" is missing"},
	    {"POST", "{\"action\":\"permit\",\"rules\":[\"a.org\"]}", 400, "\"action\" must be \"allow\" or \"deny\""},
	    {"POST", "{\"action\":\"allow\"}", 400, "\"rules\" is missing"},
	    {"POST", "{\"action\":\"allow\",\"rules\":[]}", 400, "\"rules\" is empty"},
	    {"POST", "{\"action\":\"allow\",\"rules\":\"a.org\"}", 400, "\"rules\" must be an array"},
	    {"POST", "{\"action\":\"allow\",\"rules\":[7]}", 400, "rules must be an array of strings"},
	    {"POST", "{\"action\":\"allow\",\"rules\":[\"a.org\"],\"for\":0}", 400, "\"for\" must be between"},
	    {"POST", "{\"action\":\"allow\",\"rules\":[\"a.org\"],\"uses\":0}", 400, "\"uses\" must be between"},
	    {"POST", "{\"action\":\"deny\",\"rules\":[\"a.org\"],\"uses\":1}", 400, "\"uses\" is for \"allow\" only"},
	    {"DELETE", "{\"rules\":[]}", 400, "\"rules\" is empty"},
	    {"DELETE", "{\"rules\":[7]}", 400, "rules must be an array of strings"},
	    {"DELETE", "{\"rules\":[\"a.org\"],\"for\":1}", 400, "unknown member \"for\""},
	    {"DELETE", "{\"rules\":[\"b.org\"]}", 404, "vm1 has no live edit 'b.org'"},
	    {"DELETE", "{\"rules\":[\"example.com\"]}", 409, "comes from the policy file (p.yaml:3)"},
	    {"DELETE", "{\"rules\":[\"..\"]}", 422, ".."},
	};
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		far_expect(far, rows[i].method, RULES, rows[i].body, rows[i].status, "message", rows[i].message);
	/* All bad words at once, a line each. */
	answer = far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"*.com\",\"a.org\",\"b..org\"]}", 422);
	assert_non_null(strstr(json_string_value(json_object_get(answer, "message")), "*.com"));
	assert_non_null(strstr(json_string_value(json_object_get(answer, "message")), "\n"));
	assert_non_null(strstr(json_string_value(json_object_get(answer, "message")), "b..org"));
	json_decref(answer);
	assert_int_equal(far->policies, 0);
	assert_string_equal(far_file(far, "vm1/edits.yaml"), "");
}

static void
an_edit_can_end_and_be_renewed(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	answer =
	    far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"],\"for\":3600,\"uses\":2}", 200);
	assert_true(far_lists(answer, "change", "+allow a.org until 20"));
	assert_true(far_lists(answer, "change", ", 2 uses"));
	json_decref(answer);
	assert_int_equal(far->rules, 2);
	/* The same rule without an end replaces it. */
	answer = far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 200);
	assert_int_equal(json_integer_value(json_object_get(answer, "changed")), 1);
	assert_false(far_lists(answer, "change", "until"));
	json_decref(answer);
	assert_int_equal(far->rules, 2);
	assert_null(strstr(far_file(far, "vm1/edits.yaml"), "expires"));
}

/* Without an action, a word is withdrawn as allow and as deny. */
static void
a_revocation_takes_one_action_or_both(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(
	    far, "{\"name\":\"vm1\",\"kind\":\"tap\",\"allow\":[\"a.org\",\"b.org\"],\"deny\":[\"a.org\",\"*.com\"]}");
	assert_int_equal(far->rules, 4);
	json_decref(far_http(far, "DELETE", RULES, "{\"action\":\"deny\",\"rules\":[\"a.org\"]}", 200));
	assert_int_equal(far->rules, 3);
	far_expect(far, "DELETE", RULES, "{\"action\":\"deny\",\"rules\":[\"b.org\"]}", 404, "error", "not_found");
	answer = far_http(far, "DELETE", RULES, "{\"rules\":[\"a.org\",\"b.org\",\"*.com\"]}", 200);
	assert_true(far_lists(answer, "change", "-allow a.org"));
	assert_true(far_lists(answer, "change", "-deny *.com")); /* as an allow rule the word would be an error */
	json_decref(answer);
	assert_int_equal(far->rules, 0);
}

static void
a_preview_changes_nothing(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	answer = far_http(far, "PUT", POLICY,
	    "{\"policy\":\"version: 1\\nmode: learn\\nallow:\\n  - host: b.org\\n\",\"policy_file\":\"q.yaml\","
	    "\"preview\":true}",
	    200);
	assert_true(json_is_true(json_object_get(answer, "preview")));
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 1);
	assert_int_equal(json_integer_value(json_object_get(answer, "cut_count")), 1);
	assert_true(far_lists(answer, "change", "policy q.yaml"));
	assert_true(far_lists(answer, "change", "-allow example.com (p.yaml:3)"));
	assert_true(far_lists(answer, "change", "+allow b.org (q.yaml:4)"));
	assert_true(far_lists(answer, "change", "+mode: learn (q.yaml:2)"));
	assert_true(far_lists(answer, "warnings", "vm1 would learn"));
	json_decref(answer);
	assert_int_equal(far->previews, 1);
	assert_int_equal(far->policies, 0);
	assert_non_null(strstr(far_file(far, "vm1/policy.yaml"), "example.com"));
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "policy_file", "p.yaml");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "mode", "enforce");
	far->policy_code = ERROR_UNREACHABLE;
	far_expect(far, "PUT", POLICY, "{\"policy\":\"version: 1\\n\",\"preview\":true}", 503, "message", "says no");
	/* Without preview it is in force. */
	far->policy_code = ERROR_NONE;
	answer = far_http(far, "PUT", POLICY, "{\"policy\":\"version: 1\\nmode: learn\\n\",\"preview\":false}", 200);
	assert_true(far_lists(answer, "warnings", "vm1 learns from now on"));
	json_decref(answer);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "mode", "learn");
}

static void
a_refused_edit_leaves_disk_and_memory(void **state)
{
	struct far *far = *state;
	char *edits;

	far_attach(far, FAR_ATTACH);
	json_decref(far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 200));
	edits = strdup(far_file(far, "vm1/edits.yaml"));
	far_wait_event(far, EVENT_POLICY);
	far->policy_code = ERROR_LIMIT;
	far_expect(
	    far, "POST", RULES, "{\"action\":\"deny\",\"rules\":[\"b.org\"]}", 429, "message", "the keeper says no");
	far_expect(far, "DELETE", RULES, "{\"rules\":[\"a.org\"]}", 429, "message", "the keeper says no");
	assert_int_equal(far->policies, 3);
	assert_string_equal(far_file(far, "vm1/edits.yaml"), edits);
	free(edits);
	assert_non_null(strstr(far_file(far, "vm1/attachment.json"), "\"generation\": 2"));
	assert_int_equal(far_events(far, EVENT_POLICY), 1);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "edits", "a.org");
}

/* A disk that takes no file refuses the change before the keeper is asked. */
static void
a_disk_that_does_not_write_refuses_a_change(void **state)
{
	struct far *far = *state;
	char path[256];

	far_attach(far, FAR_ATTACH);
	snprintf(path, sizeof(path), "%s/sandboxes/vm1/edits.yaml.tmp", far->dir);
	assert_int_equal(mkdir(path, 0700), 0); /* where the new file would be made */
	far_expect(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 500, "message", "edits.yaml");
	assert_int_equal(far->policies, 0);
	assert_int_equal(rmdir(path), 0);
	json_decref(far_http(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 200));
	assert_int_equal(far->rules, 2);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAR_TEST(a_change_on_another_generation_conflicts),
	    FAR_TEST(bad_edits_are_named_and_change_nothing),
	    FAR_TEST(an_edit_can_end_and_be_renewed),
	    FAR_TEST(a_revocation_takes_one_action_or_both),
	    FAR_TEST(a_preview_changes_nothing),
	    FAR_TEST(a_refused_edit_leaves_disk_and_memory),
	    FAR_TEST(a_disk_that_does_not_write_refuses_a_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
