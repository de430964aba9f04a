/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern test: targets that are none, hints at rules that nearly fit, and what is said when facts are missing. */
#include "tests/unit/control/gateway_control_far.h"

#include "gateway/control/control_explain.h"

#include <netinet/in.h>

#define TEST_PATH "/v1/sandboxes/vm1/test"

/* Is there a step of this kind with part in its text? */
static bool
has_step(const json_t *answer, const char *step, const char *result, const char *part)
{
	const json_t *steps = json_object_get(answer, "steps");

	for (size_t i = 0; i < json_array_size(steps); i++) {
		const json_t *one = json_array_get(steps, i);

		if (strcmp(json_string_value(json_object_get(one, "step")), step) == 0 &&
		    strcmp(json_string_value(json_object_get(one, "result")), result) == 0 &&
		    strstr(json_string_value(json_object_get(one, "text")), part) != NULL)
			return true;
	}
	return false;
}

static json_t *
explain(struct far *far, const char *target)
{
	char body[128];

	snprintf(body, sizeof(body), "{\"target\":\"%s\"}", target);
	return far_http(far, "POST", TEST_PATH, body, 200);
}

static void
what_is_no_target_is_refused(void **state)
{
	static const struct {
		const char *body, *message;
	} rows[] = {
	    {"{}", "\"target\" is missing"},
	    {"{\"target\":7}", "\"target\" must be a string"},
	    {"{\"target\":\"\"}", "the target is empty"},
	    {"{\"target\":\"a.org:0\"}", "the port must be a number from 1 to 65535"},
	    {"{\"target\":\"a.org:65536\"}", "the port must be a number from 1 to 65535"},
	    {"{\"target\":\"[::1\"}", "the target must look like [2600::1]:443"},
	    {"{\"target\":\"[::1]443\"}", "the target must look like [2600::1]:443"},
	    {"{\"target\":\"a\\nb\"}", "\"target\" contains a control character"},
	};
	struct far *far = *state;
	char body[1024];

	far_expect(far, "POST", TEST_PATH, "{\"target\":\"a.org\"}", 404, "message", "no sandbox vm1");
	far_attach(far, FAR_ATTACH);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		far_expect(far, "POST", TEST_PATH, rows[i].body, 400, "message", rows[i].message);
	snprintf(body, sizeof(body), "{\"target\":\"%0*d\"}", 600, 0);
	far_expect(far, "POST", TEST_PATH, body, 400, "message", "\"target\" is longer than 511 bytes");
}

static void
a_target_has_port_and_protocol(void **state)
{
	static const struct {
		const char *target;
		int port;
		const char *protocol;
	} rows[] = {
	    {"example.com", 443, "tcp"},
	    {"example.com/udp", 443, "udp"},
	    {"example.com:53/udp", 53, "udp"},
	    {"example.com:80/tcp", 80, "tcp"},
	    {"45.45.45.1", 443, "tcp"},
	    {"45.45.45.1:22", 22, "tcp"},
	    {"[2600::1]:8443/udp", 8443, "udp"},
	    {"2600::1", 443, "tcp"},
	};
	struct far *far = *state;

	far_attach(far, FAR_ATTACH);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		json_t *answer = explain(far, rows[i].target);

		assert_int_equal(json_integer_value(json_object_get(answer, "port")), rows[i].port);
		assert_string_equal(json_string_value(json_object_get(answer, "protocol")), rows[i].protocol);
		assert_string_equal(json_string_value(json_object_get(answer, "target")), rows[i].target);
		json_decref(answer);
	}
}

static void
a_refusal_hints_at_what_nearly_fits(void **state)
{
	static const struct {
		const char *target, *hint;
	} rows[] = {
	    {"one.org:22", "of one.org these ports are allowed: 443, 8443"},
	    {"below.org", "allow *.below.org (edit by uid "},
	    {"below.org", "is about names below below.org, not about itself"},
	    {"www.one.org", "is about one.org alone, not about names below it"},
	};
	struct far *far = *state;
	json_t *answer;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\",\"allow\":[\"one.org:443,8443\",\"*.below.org\"]}");
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		answer = explain(far, rows[i].target);
		assert_string_equal(json_string_value(json_object_get(answer, "reason")), "no_rule");
		if (!has_step(answer, "hint", "info", rows[i].hint))
			print_message("%s: no hint '%s'\n", rows[i].target, rows[i].hint);
		assert_true(has_step(answer, "hint", "info", rows[i].hint));
		json_decref(answer);
	}
	answer = explain(far, "far.away.example");
	assert_false(has_step(answer, "hint", "info", ""));
	json_decref(answer);
	answer = explain(far, "one.org");
	assert_false(has_step(answer, "hint", "info", ""));
	json_decref(answer);
}

static void
leases_that_are_not_known_are_said_to_be(void **state)
{
	struct far *far = *state;
	json_t *answer;

	far_attach(far, FAR_ATTACH);
	answer = explain(far, "example.com");
	assert_true(has_step(answer, "lease", "info", "none now"));
	assert_true(has_step(answer, "proof", "info", "on port 443 the TLS server name must be example.com"));
	json_decref(answer);
	far_add_lease(far, "example.com", "45.45.45.1");
	answer = explain(far, "example.com");
	assert_true(has_step(answer, "lease", "ok", "45.45.45.1"));
	assert_int_equal(json_array_size(json_object_get(answer, "leases")), 1);
	json_decref(answer);
	far->leases.result.code = ERROR_UNREACHABLE;
	answer = explain(far, "example.com");
	assert_string_equal(json_string_value(json_object_get(answer, "verdict")), "allowed");
	assert_true(has_step(answer, "lease", "info", "the gateway did not answer"));
	assert_int_equal(json_array_size(json_object_get(answer, "leases")), 0);
	json_decref(answer);
}

/* Without a database, a rule by country is not put in force, and nothing of it is left. */
static void
a_rule_by_place_needs_its_database(void **state)
{
	static const char policy[] =
	    "{\"policy\":\"version: 1\\ndeny:\\n  - country: de\\n\",\"policy_file\":\"q.yaml\"}";
	struct far *far = *state;

	far_expect(far, "POST", "/v1/sandboxes",
	    "{\"name\":\"vm1\",\"kind\":\"tap\",\"policy\":\"version: 1\\ndeny:\\n  - asn: 64500\\n\"}", 422, "message",
	    "policy.yaml:3: deny asn:64500: no database of networks");
	assert_int_equal(far->attaches, 0);
	far_attach(far, FAR_ATTACH);
	far_expect(far, "PUT", "/v1/sandboxes/vm1/policy", policy, 422, "message",
	    "q.yaml:3: deny country:DE: no database of countries");
	far_expect(far, "PUT", "/v1/sandboxes/vm1/policy", policy, 422, "error", "policy_invalid");
	assert_int_equal(far->policies, 0);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "policy_file", "p.yaml");
}

static void
targets_are_read(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool is_addr;
		uint8_t proto;
		uint16_t port;
		enum name_error name_error;
	} rows[] = {
	    {"example.com", 0, false, IPPROTO_TCP, 443, NAME_OK},
	    {"example.com:22", 0, false, IPPROTO_TCP, 22, NAME_OK},
	    {"example.com:5000/udp", 0, false, IPPROTO_UDP, 5000, NAME_OK},
	    {"45.45.45.1", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"45.45.45.1:22/tcp", 0, true, IPPROTO_TCP, 22, NAME_OK},
	    {"2600::1", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"[2600::1]:8443", 0, true, IPPROTO_TCP, 8443, NAME_OK},
	    {"[2600::1]", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"a..b", 0, false, IPPROTO_TCP, 443, NAME_EMPTY_LABEL},
	    {"0x7f.1", 0, false, IPPROTO_TCP, 443, NAME_NUMERIC},
	    {"", -1, false, 0, 0, NAME_OK},
	    {"example.com:", -1, false, 0, 0, NAME_OK},
	    {"example.com:0", -1, false, 0, 0, NAME_OK},
	    {"example.com:65536", -1, false, 0, 0, NAME_OK},
	    {"example.com:-1", -1, false, 0, 0, NAME_OK},
	    {"[2600::1", -1, false, 0, 0, NAME_OK},
	    {"[2600::1]x", -1, false, 0, 0, NAME_OK},
	    {"[", -1, false, 0, 0, NAME_OK},
	    {"[]", -1, false, 0, 0, NAME_OK},
	};
	struct control_target target;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(control_explain_parse_target(rows[i].text, &target, &err), rows[i].rc);
		if (rows[i].rc < 0)
			continue;
		assert_int_equal(target.is_addr, rows[i].is_addr);
		assert_int_equal(target.proto, rows[i].proto);
		assert_int_equal(target.port, rows[i].port);
		assert_int_equal(target.name_error, rows[i].name_error);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(targets_are_read),
	    FAR_TEST(what_is_no_target_is_refused),
	    FAR_TEST(a_target_has_port_and_protocol),
	    FAR_TEST(a_refusal_hints_at_what_nearly_fits),
	    FAR_TEST(leases_that_are_not_known_are_said_to_be),
	    FAR_TEST(a_rule_by_place_needs_its_database),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
