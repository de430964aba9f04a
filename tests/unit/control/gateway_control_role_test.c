/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role as a whole: what people ask of it over HTTP, what the keeper is told, what stays on disk. */
#include "tests/unit/control/gateway_control_far.h"

static void
an_attach_reaches_the_keeper_and_the_disk(void **state)
{
	struct far *far = *state;
	json_t *answer = far_http(far, "POST", "/v1/sandboxes", FAR_ATTACH, 201);

	assert_string_equal(json_string_value(json_object_get(answer, "netns")), "/run/netns/postern-vm1");
	assert_string_equal(json_string_value(json_object_get(answer, "mac")), "06:00:ac:10:00:02");
	assert_string_equal(json_string_value(json_object_get(answer, "device")), "tap0");
	assert_string_equal(json_string_value(json_object_get(answer, "guest_ip")), "172.16.0.2/30");
	assert_string_equal(json_string_value(json_object_get(answer, "dns")), "172.16.0.1");
	assert_int_equal(json_array_size(json_object_get(answer, "rules")), 1);
	assert_int_equal(far->attach.adopt, 0);
	assert_int_equal(far->attach.id, json_integer_value(json_object_get(answer, "id")));
	assert_int_equal(far->attach.generation, 1);
	assert_int_equal(far->rules, 1);
	json_decref(answer);
	assert_string_equal(far_file(far, "vm1/policy.yaml"), "version: 1\nallow:\n  - host: example.com\n");
	assert_non_null(strstr(far_file(far, "vm1/attachment.json"), "\"06:00:ac:10:00:02\""));
	far_wait_event(far, EVENT_ATTACH);
	assert_int_equal(far_event(far, EVENT_ATTACH)->uid, geteuid());
	assert_int_equal(far->records[0].kind, RECORD_SANDBOX); /* its row comes before all else */
	far_expect(far, "POST", "/v1/sandboxes", FAR_ATTACH, 409, "error", "exists");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "policy", "example.com");
	far_expect(far, "GET", "/v1/sandboxes/vm2", NULL, 404, "error", "not_found");
}

static void
an_attach_the_keeper_refuses_leaves_nothing(void **state)
{
	struct far *far = *state;

	far->attach_code = ERROR_EXISTS;
	far_expect(far, "POST", "/v1/sandboxes", FAR_ATTACH, 409, "message", "the keeper says no");
	assert_string_equal(far_file(far, "vm1/attachment.json"), "");
	far->attach_code = ERROR_NONE;
	far_attach(far, FAR_ATTACH);
}

static void
a_sandbox_without_policy_reaches_nothing(void **state)
{
	struct far *far = *state;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	assert_int_equal(far->rules, 0);
	far_expect(far, "POST", "/v1/sandboxes/vm1/test", "{\"target\":\"example.com\"}", 200, "reason", "no_rule");
}

struct bad {
	const char *method, *path, *body;
	int status;
	const char *message;
};

static void
mistakes_are_named(void **state)
{
	static const struct bad bads[] = {
	    {"POST", "/v1/sandboxes", "", 400, "not JSON"},
	    {"POST", "/v1/sandboxes", "[]", 400, "object"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"name\":\"b\",\"kind\":\"tap\"}", 400, "duplicate"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"color\":1}", 400, "unknown member \"color\""},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":7}", 400, "\"kind\" must be a string"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\"}", 400, "\"kind\" is missing"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"../x\",\"kind\":\"tap\"}", 400, "name"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"A\",\"kind\":\"tap\"}", 400, "name"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"netns\"}", 400, "pid"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"guest_ip\":\"10.0.0.1\"}", 400,
		"prefix length"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"mac\":\"zz\"}", 400, "mac"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"owner\":\"me\"}", 400, "UID:GID"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"allow\":[\"10.0.0.1:22\",\"*.com\"]}", 422,
		"*.com"},
	    {"POST", "/v1/sandboxes", "{\"name\":\"a\",\"kind\":\"tap\",\"policy\":\"version: 1\\nalow: []\\n\"}", 422,
		":2:"},
	    {"PATCH", "/v1/sandboxes", "{}", 405, "GET, POST"},
	    {"GET", "/v1/status", "{}", 413, "no body"},
	    {"GET", "/v2", NULL, 404, "no such path"},
	    {"DELETE", "/v1/sandboxes/nobody", NULL, 404, "no sandbox"},
	    {"POST", "/v1/sandboxes/nobody/rules", "{\"action\":\"allow\",\"rules\":[\"x.example.com\"]}", 404,
		"no sandbox"},
	    {"POST", "/v1/sandboxes/nobody/rules", "{\"action\":\"allow\",\"rules\":", 400, "not JSON"},
	};
	struct far *far = *state;

	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		far_expect(far, bads[i].method, bads[i].path, bads[i].body, bads[i].status, "message", bads[i].message);
	assert_int_equal(far->attaches, 0);
	far_expect(far, "GET", "/v1/status", NULL, 200, "version", POSTERN_VERSION);
}

static void
a_giant_body_is_refused_before_it_is_read(void **state)
{
	struct far *far = *state;
	size_t len = (1u << 20) + 1;
	char *body = malloc(len + 1);

	memset(body, 'x', len);
	body[len] = '\0';
	far_expect(far, "POST", "/v1/sandboxes/vm1/rules", body, 413, "error", "limit");
	free(body);
}

static void
edits_add_up_and_are_withdrawn(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	answer = far_http(far, "POST", "/v1/sandboxes/vm1/rules",
	    "{\"action\":\"allow\",\"rules\":[\"*.github.com:22,443\",\"example.org\"]}", 200);
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 2);
	assert_int_equal(json_integer_value(json_object_get(answer, "changed")), 2);
	assert_int_equal(json_integer_value(json_object_get(answer, "cut_count")), 1);
	assert_int_equal(json_array_size(json_object_get(answer, "cut")), 1);
	json_decref(answer);
	assert_int_equal(far->rules, 3);
	assert_int_equal(far->policy.generation, 2);
	assert_non_null(strstr(far_file(far, "vm1/edits.yaml"), "edit by uid"));
	far_wait_event(far, EVENT_POLICY);
	assert_non_null(strstr(far_event(far, EVENT_POLICY)->detail, "\"to\":2"));
	assert_non_null(strstr(far_event(far, EVENT_POLICY)->detail, "+allow *.github.com:22,443"));

	/* The same again changes nothing and asks nobody. */
	answer =
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"example.org\"]}", 200);
	assert_int_equal(json_integer_value(json_object_get(answer, "changed")), 0);
	json_decref(answer);
	assert_int_equal(far->policies, 1);

	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm1/rules", "{\"rules\":[\"example.org\"]}", 200));
	assert_int_equal(far->rules, 2);
	far_expect(
	    far, "DELETE", "/v1/sandboxes/vm1/rules", "{\"rules\":[\"example.org\"]}", 404, "error", "not_found");
	far_expect(
	    far, "DELETE", "/v1/sandboxes/vm1/rules", "{\"rules\":[\"example.com\"]}", 409, "message", "p.yaml:3");
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm1/rules", "{\"rules\":[\"*.github.com:22,443\"]}", 200));
	assert_string_equal(far_file(far, "vm1/edits.yaml"), "");
}

static void
an_allow_that_a_deny_beats_is_pointed_out(void **state)
{
	struct far *far = *state;
	json_t *answer, *warnings;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\",\"deny\":[\"gist.github.com\"]}");
	answer = far_http(
	    far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"gist.github.com\"]}", 200);
	warnings = json_object_get(answer, "warnings");
	assert_int_equal(json_array_size(warnings), 1);
	assert_non_null(strstr(json_string_value(json_array_get(warnings, 0)), "stays denied"));
	json_decref(answer);
}

static void
case_F_34_a_bad_or_refused_policy_leaves_the_old_one(void **state)
{
	struct far *far = *state;
	char hash[65];

	far_attach(far, FAR_ATTACH);
	memcpy(hash, far->hash, sizeof(hash));
	far_expect(far, "PUT", "/v1/sandboxes/vm1/policy",
	    "{\"policy\":\"version: 1\\nallow:\\n  - hst: a.com\\n  - host: 10.0.0.1\\n\",\"policy_file\":\"q.yaml\"}",
	    422, "message", "q.yaml:3:");
	assert_int_equal(far->policies, 0);
	far->policy_code = ERROR_SYSTEM;
	far_expect(far, "PUT", "/v1/sandboxes/vm1/policy", "{\"policy\":\"version: 1\\nallow: []\\n\"}", 500, "message",
	    "the keeper says no");
	assert_int_equal(far->policies, 1);
	assert_string_equal(far_file(far, "vm1/policy.yaml"), "version: 1\nallow:\n  - host: example.com\n");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "policy_hash", hash);
	/* A generation that was tried is not used again. */
	far->policy_code = ERROR_NONE;
	json_decref(
	    far_http(far, "PUT", "/v1/sandboxes/vm1/policy", "{\"policy\":\"version: 1\\nallow: []\\n\"}", 200));
	assert_int_equal(far->policy.generation, 3);
	assert_int_equal(far->rules, 0);
	assert_string_equal(far_file(far, "vm1/policy.yaml"), "version: 1\nallow: []\n");
}

static void
edits_of_one_sandbox_wait_for_each_other(void **state)
{
	struct far *far = *state;
	int first, second, status;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	far_attach(far, "{\"name\":\"vm2\",\"kind\":\"tap\"}");
	far->hold_policy = true;
	first =
	    far_send(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.example.org\"]}");
	far_wait(far, far_holds_policy);
	second =
	    far_send(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"b.example.org\"]}");
	/* Reading goes on meanwhile, and so do other sandboxes. */
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	far->hold_policy = false;
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm2/rules", "{\"action\":\"deny\",\"rules\":[\"x.org\"]}", 200));
	assert_int_equal(far->policies, 2);
	far_answer_policy(far, far->held_tag);
	answer = far_receive(far, first, &status);
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 2);
	json_decref(answer);
	answer = far_receive(far, second, &status);
	assert_int_equal(json_integer_value(json_object_get(answer, "generation")), 3);
	json_decref(answer);
	assert_int_equal(far->rules, 3);
}

static void
a_detach_is_disk_and_kernel(void **state)
{
	struct far *far = *state;

	far_attach(far, FAR_ATTACH);
	far->detach_code = ERROR_SYSTEM;
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm1", NULL, 500));
	assert_string_not_equal(far_file(far, "vm1/attachment.json"), "");
	far->detach_code = ERROR_NONE;
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm1", NULL, 200));
	assert_string_equal(far_file(far, "vm1/attachment.json"), "");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 404, "error", "not_found");
	far_wait_event(far, EVENT_DETACH);
	assert_int_equal(far->detaches, 2);
}

static void
case_F_05_a_restart_attaches_what_was_stored(void **state)
{
	struct far *far = *state;
	struct msg_attach before;
	char hash[65];

	far_attach(far,
	    "{\"name\":\"vm1\",\"kind\":\"tap\",\"guest_ip\":\"172.20.0.2/"
	    "24\",\"guest_ip6\":\"none\",\"owner\":\"1000:1000\",\"allow\":[\"a.org\"],"
	    "\"deny\":[\"b.a.org\"],\"policy\":\"version: 1\\nallow:\\n  - host: example.com\\n\"}");
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"c.org\"]}", 200));
	before = far->attach;
	memcpy(hash, far->hash, sizeof(hash));
	far_stop(far);
	far->record_count = far->attaches = 0;
	far_start(far);
	far_wait_event(far, EVENT_RESTORED);
	assert_int_equal(far->attaches, 1);
	assert_int_equal(far->attach.adopt, 1);
	assert_int_equal(far->attach.id, before.id);
	assert_int_equal(far->attach.generation, 2);
	assert_string_equal(far->hash, hash); /* origins included */
	assert_int_equal(far->attach.owner_uid, 1000);
	assert_true(addr_equal(&far->attach.router4, &before.router4));
	assert_int_equal(far->attach.bits4, 24);
	assert_int_equal(far->attach.guest6.family, 0); /* IPv6 stays off, too */
	assert_int_equal(far->attach.router6.family, 0);
	assert_int_equal(far->rules, 4);
}

static void
the_end_of_a_rule_is_recorded_once_be_it_while_nobody_ran(void **state)
{
	struct far *far = *state;
	const struct record_event *event;

	far_attach(far, FAR_ATTACH);
	/* What is over before it begins has no end. */
	json_decref(far_http(far, "PUT", "/v1/sandboxes/vm1/policy",
	    "{\"policy\":\"version: 1\\nallow:\\n  - host: old.org\\n    expires: 2020-01-01T00:00:00Z\\n\"}", 200));
	json_decref(far_http(
	    far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.org\"],\"for\":1}", 200));
	far_wait_event(far, EVENT_GRANT_EXPIRED);
	event = far_event(far, EVENT_GRANT_EXPIRED);
	assert_non_null(strstr(event->detail, "\"rule\":\"allow a.org\""));
	assert_non_null(strstr(event->detail, "\"ended\":\"20"));
	assert_null(strstr(event->detail, "noticed"));
	json_decref(far_http(
	    far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"deny\",\"rules\":[\"b.org\"],\"for\":1}", 200));
	far_stop(far);
	assert_int_equal(far_events(far, EVENT_GRANT_EXPIRED), 1);
	usleep(1100000);
	for (int start = 0; start < 2; start++) {
		far->record_count = 0;
		far_start(far);
		far_wait_event(far, EVENT_RESTORED);
		if (start == 0)
			far_wait_event(far, EVENT_GRANT_EXPIRED);
		far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
		assert_int_equal(far_events(far, EVENT_GRANT_EXPIRED), start == 0 ? 1 : 0);
		if (start == 0)
			assert_non_null(strstr(far_event(far, EVENT_GRANT_EXPIRED)->detail, "\"rule\":\"deny b.org\""));
		if (start == 0)
			assert_non_null(strstr(far_event(far, EVENT_GRANT_EXPIRED)->detail, "\"noticed\":\"start\""));
		far_stop(far);
	}
	far->record_count = 0;
	far_start(far);
	/* It must not be told to end while the attach that it asks for is answered. */
	far_wait_event(far, EVENT_RESTORED);
}

static void
broken_state_is_shown_and_reaches_nothing(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	far_attach(far, "{\"name\":\"vm2\",\"kind\":\"tap\"}");
	far_stop(far);
	far_write_file(far, "vm1/policy.yaml", "version: 1\nallow:\n  - host: [\n");
	far_write_file(far, "vm2/attachment.json", "{");
	far->record_count = far->attaches = 0;
	far_start(far);
	far_wait_event(far, EVENT_RESTORED);
	assert_int_equal(far->attaches, 1); /* vm1, with nothing allowed */
	assert_string_equal(far->attach.name, "vm1");
	assert_int_equal(far->rules, 0);
	assert_int_equal(far->forgets, 1); /* whoever still serves vm2 stops, but removes nothing */
	assert_string_equal(far->forget.name, "vm2");
	assert_int_equal(far->forget.keep, 1);
	answer = far_http(far, "GET", "/v1/status", NULL, 200);
	assert_int_equal(json_array_size(json_object_get(answer, "broken")), 2);
	json_decref(answer);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "error", "p.yaml:3");
	far_expect(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 422, "error",
	    "policy_invalid");
	/* A good policy mends it; what is beyond mending can be removed. */
	json_decref(
	    far_http(far, "PUT", "/v1/sandboxes/vm1/policy", "{\"policy\":\"version: 1\\nallow: []\\n\"}", 200));
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm2", NULL, 200));
	assert_int_equal(far->detaches, 0);
	assert_int_equal(far->forgets, 2);
	assert_int_equal(far->forget.keep, 0);
}

static void
a_container_that_is_gone_is_dropped(void **state)
{
	struct far *far = *state;

	far_attach(far, "{\"name\":\"box1\",\"kind\":\"netns\",\"netns\":\"/run/netns/box1\"}");
	far_stop(far);
	far->record_count = 0;
	far->attach_code = ERROR_NOT_FOUND;
	far_start(far);
	far_wait_event(far, EVENT_DETACH);
	assert_int_equal(far->attach.netns_ino, 4711);
	assert_string_equal(far_file(far, "box1/attachment.json"), "");
	far_expect(far, "GET", "/v1/sandboxes/box1", NULL, 404, "error", "not_found");
}

static void
case_F_32_state_of_others_is_not_used(void **state)
{
	struct far *far = *state;
	char path[256];

	far_attach(far, FAR_ATTACH);
	far_stop(far);
	far_write_file(far, "elsewhere", far_file(far, "vm1/attachment.json"));
	snprintf(path, sizeof(path), "%s/sandboxes/vm1/attachment.json", far->dir);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("../elsewhere", path), 0);
	far->attaches = 0;
	far_start(far);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "broken");
	assert_int_equal(far->attaches, 0);
}

static void
case_B_27_test_decides_with_the_snapshot_in_force(void **state)
{
	static const struct {
		const char *target, *verdict, *reason;
	} rows[] = {
	    {"example.com", "allowed", "allowed"},
	    {"EXAMPLE.com.", "allowed", "allowed"},
	    {"example.com:80", "allowed", "allowed"},
	    {"example.com:22", "denied", "no_rule"},
	    {"www.example.com", "denied", "no_rule"},
	    {"localhost", "denied", "never_name"},
	    {"bad..name", "denied", "dns_denied"},
	    {"169.254.169.254", "denied", "never_address"},
	    {"[::1]:443", "denied", "never_address"},
	    {"45.45.45.9", "denied", "not_leased"},
	    {"45.45.45.1:443", "allowed", "allowed"},
	    {"45.45.45.1:22", "denied", "not_leased"},
	};
	struct far *far = *state;
	char body[128];

	far_attach(far, FAR_ATTACH);
	far->leases.count = 1;
	far->leases.rows[0].left_s = 50;
	assert_true(addr_parse("45.45.45.1", strlen("45.45.45.1"), &far->leases.rows[0].addr));
	assert_int_equal(name_canonical("example.com", strlen("example.com"), &far->leases.rows[0].name), NAME_OK);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(body, sizeof(body), "{\"target\":\"%s\"}", rows[i].target);
		far_expect(far, "POST", "/v1/sandboxes/vm1/test", body, 200, "verdict", rows[i].verdict);
		far_expect(far, "POST", "/v1/sandboxes/vm1/test", body, 200, "reason", rows[i].reason);
	}
	far_expect(far, "POST", "/v1/sandboxes/vm1/test", "{\"target\":\"example.com\"}", 200, "origin", "p.yaml:3");
	far_expect(far, "POST", "/v1/sandboxes/vm1/test", "{\"target\":\"example.com:0\"}", 400, "message", "port");
}

/* What is in the way of a name need not be in the way of the address that it was resolved to. */
static void
case_B_27_test_knows_what_else_lets_an_address_pass(void **state)
{
	static const struct {
		const char *target, *verdict, *reason, *rule;
	} rows[] = {
	    {"example.com:22", "allowed", "allowed", "allow other.example.com:22"},
	    {"example.com:9000", "allowed", "allowed", "allow 45.45.45.1:7,80,9000"},
	    {"example.com:80", "allowed", "allowed", "allow 45.45.45.1:7,80,9000"},
	    {"example.com:7", "denied", "rule_deny", "deny example.com:7"},
	    {"example.com:8", "denied", "no_rule", ""},
	    {"45.45.45.1:22", "allowed", "allowed", "allow other.example.com:22"},
	    {"45.45.45.1:7", "denied", "rule_deny", "deny example.com:7"},
	    {"45.45.45.1:9000", "allowed", "allowed", "allow 45.45.45.1:7,80,9000"},
	    {"45.45.45.1:443", "allowed", "allowed", "allow example.com:443"},
	    {"45.45.45.1:8", "denied", "not_leased", ""},
	};
	struct far *far = *state;
	char body[128];

	far_attach(far,
	    "{\"name\":\"vm1\",\"kind\":\"tap\",\"allow\":[\"example.com:443\",\"other.example.com:22\","
	    "\"45.45.45.1/32:7,80,9000\"],\"deny\":[\"example.com:7\"]}");
	far_add_lease(far, "other.example.com", "45.45.45.1");
	far_add_lease(far, "example.com", "45.45.45.1");
	far_add_lease(far, "other.example.com", "45.45.45.2");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		snprintf(body, sizeof(body), "{\"target\":\"%s\"}", rows[i].target);
		far_expect(far, "POST", "/v1/sandboxes/vm1/test", body, 200, "verdict", rows[i].verdict);
		far_expect(far, "POST", "/v1/sandboxes/vm1/test", body, 200, "reason", rows[i].reason);
		far_expect(far, "POST", "/v1/sandboxes/vm1/test", body, 200, "rule", rows[i].rule);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAR_TEST(an_attach_reaches_the_keeper_and_the_disk),
	    FAR_TEST(an_attach_the_keeper_refuses_leaves_nothing),
	    FAR_TEST(a_sandbox_without_policy_reaches_nothing),
	    FAR_TEST(mistakes_are_named),
	    FAR_TEST(a_giant_body_is_refused_before_it_is_read),
	    FAR_TEST(edits_add_up_and_are_withdrawn),
	    FAR_TEST(an_allow_that_a_deny_beats_is_pointed_out),
	    FAR_TEST(case_F_34_a_bad_or_refused_policy_leaves_the_old_one),
	    FAR_TEST(edits_of_one_sandbox_wait_for_each_other),
	    FAR_TEST(a_detach_is_disk_and_kernel),
	    FAR_TEST(case_F_05_a_restart_attaches_what_was_stored),
	    FAR_TEST(the_end_of_a_rule_is_recorded_once_be_it_while_nobody_ran),
	    FAR_TEST(broken_state_is_shown_and_reaches_nothing),
	    FAR_TEST(a_container_that_is_gone_is_dropped),
	    FAR_TEST(case_F_32_state_of_others_is_not_used),
	    FAR_TEST(case_B_27_test_decides_with_the_snapshot_in_force),
	    FAR_TEST(case_B_27_test_knows_what_else_lets_an_address_pass),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
