/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attach and detach: names, ids and addresses; what a failure of the disk or the keeper leaves. */
#include "tests/unit/control/gateway_control_far.h"

static void
a_name_is_asked_for_and_taken_once(void **state)
{
	static const char *const names[] = {"", "\"name\":\"\",", "\"name\":7,",
	    "\"name\":\"a-name-of-more-than-sixty-three-bytes-is-longer-than-any-sandbox-may-have\","};
	struct far *far = *state;
	char body[256];

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		snprintf(body, sizeof(body), "{%s\"kind\":\"tap\"}", names[i]);
		far_expect(far, "POST", "/v1/sandboxes", body, 400, "message", "\"name\" must be a string of 1 to ");
	}
	far_attach(far, FAR_ATTACH);
	far_expect(far, "POST", "/v1/sandboxes", FAR_ATTACH, 409, "message", "sandbox vm1 is attached already");
	assert_int_equal(far->attaches, 1);
	assert_string_not_equal(far_file(far, "vm1/attachment.json"), "");
}

static void
addresses_are_checked_and_completed(void **state)
{
	static const struct {
		const char *members, *gateway, *gateway6;
	} goods[] = {
	    {"\"guest_ip\":\"10.1.0.9/24\"", "10.1.0.1", NULL},
	    {"\"guest_ip\":\"10.1.0.1/24\"", "10.1.0.2", NULL},
	    {"\"guest_ip\":\"10.1.0.9/24\",\"gateway_ip\":\"10.1.0.77\"", "10.1.0.77", NULL},
	    {"\"guest_ip6\":\"fd00:1::9/64\"", NULL, "fd00:1::1"},
	};
	static const struct {
		const char *members, *message;
	} bads[] = {
	    {"\"guest_ip\":\"10.1.0.9/33\"", "\"guest_ip\" must be an IPv4 address with its prefix length"},
	    {"\"guest_ip\":\"10.1.0.4/31\"", "IPv4 prefix length 31 is not within 8..30"},
	    {"\"guest_ip\":\"fd00::9/64\"", "\"guest_ip\" must be an IPv4 address"},
	    {"\"guest_ip6\":\"10.1.0.9/24\"", "\"guest_ip6\" must be an IPv6 address"},
	    {"\"gateway_ip\":\"fd00::1\"", "\"gateway_ip\" must be an IPv4 address"},
	    {"\"mac\":\"06:00:ac:10:00\"", "\"mac\" must look like"},
	    {"\"owner\":\"root:0\"", "\"owner\" must be UID:GID"},
	    {"\"pid\":7", "are for kind \"netns\" only"},
	    {"\"parent\":\"vm0\"", "no sandbox of this name is attached"},
	    {"\"policy_file\":\"a\\nb\"", "\"policy_file\" contains a control character"},
	};
	struct far *far = *state;
	char body[256];

	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		int status = strstr(bads[i].members, "parent") != NULL ? 404 : 400;

		snprintf(body, sizeof(body), "{\"name\":\"vm1\",\"kind\":\"tap\",%s}", bads[i].members);
		far_expect(far, "POST", "/v1/sandboxes", body, status, "message", bads[i].message);
	}
	assert_int_equal(far->attaches, 0);
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++) {
		json_t *answer;

		snprintf(body, sizeof(body), "{\"name\":\"vm%zu\",\"kind\":\"tap\",%s}", i, goods[i].members);
		answer = far_http(far, "POST", "/v1/sandboxes", body, 201);
		if (goods[i].gateway != NULL)
			assert_string_equal(json_string_value(json_object_get(answer, "gateway_ip")), goods[i].gateway);
		if (goods[i].gateway6 != NULL)
			assert_string_equal(
			    json_string_value(json_object_get(answer, "gateway_ip6")), goods[i].gateway6);
		json_decref(answer);
	}
}

/* An id is the time of the attach, and never given out twice, even if the clock went back. */
static void
ids_only_grow(void **state)
{
	struct far *far = *state;
	int64_t first;

	far_attach(far, FAR_ATTACH);
	first = far->attach.id;
	assert_true(first > 0 && first <= clock_real_us());
	far_stop(far);
	far_write_file(far, ".last-id", "9000000000000000\n");
	far_start(far);
	far_attach(far, "{\"name\":\"vm2\",\"kind\":\"tap\"}");
	assert_int_equal(far->attach.id, INT64_C(9000000000000001));
	assert_string_equal(far_file(far, ".last-id"), "9000000000000001\n");
}

static void
an_attach_that_cannot_be_stored_does_not_reach_the_keeper(void **state)
{
	struct far *far = *state;
	char path[256];

	far_write_file(far, ".new-vm1", "in the way of the new folder");
	far_expect(far, "POST", "/v1/sandboxes", FAR_ATTACH, 500, "message", ".new-vm1");
	assert_int_equal(far->attaches, 0);
	assert_int_equal(far->record_count, 0);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 404, "error", "not_found");
	snprintf(path, sizeof(path), "%s/sandboxes/.new-vm1", far->dir);
	assert_int_equal(unlink(path), 0);
	far_attach(far, FAR_ATTACH);
}

static bool
has_recorded_sandbox_end(struct far *far)
{
	return far->record_count > 0 && far->records[far->record_count - 1].kind == RECORD_SANDBOX_END;
}

/* The log knew the sandbox from before the keeper was asked; it learns that it ended, and there is no event. */
static void
a_refused_attach_ends_its_record(void **state)
{
	struct far *far = *state;

	far->attach_code = ERROR_UNREACHABLE;
	far_expect(far, "POST", "/v1/sandboxes", FAR_ATTACH, 503, "message", "the keeper says no");
	far_wait(far, has_recorded_sandbox_end);
	assert_int_equal(far->records[0].kind, RECORD_SANDBOX);
	assert_null(far_event(far, EVENT_ATTACH));
	assert_int_equal(far->detaches, 0); /* the keeper has nothing of it */
	assert_string_equal(far_file(far, "vm1/policy.yaml"), "");
	assert_string_equal(far_file(far, ".old-vm1/policy.yaml"), "");
}

static void
a_refused_detach_leaves_the_sandbox(void **state)
{
	struct far *far = *state;

	far_expect(far, "DELETE", "/v1/sandboxes/vm1", NULL, 404, "message", "no sandbox vm1");
	far_attach(far, FAR_ATTACH);
	far->detach_code = ERROR_UNREACHABLE;
	far_expect(far, "DELETE", "/v1/sandboxes/vm1", NULL, 503, "error", "unreachable");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	assert_string_not_equal(far_file(far, "vm1/policy.yaml"), "");
	assert_null(far_event(far, EVENT_DETACH));
	json_decref(
	    far_http(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.org\"]}", 200));
	/* What the keeper does not know any more is gone. */
	far->detach_code = ERROR_NOT_FOUND;
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/vm1", NULL, 200));
	assert_non_null(far_wait_event(far, EVENT_DETACH));
	assert_string_equal(far_file(far, "vm1/policy.yaml"), "");
	far_attach(far, FAR_ATTACH);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAR_TEST(a_name_is_asked_for_and_taken_once),
	    FAR_TEST(addresses_are_checked_and_completed),
	    FAR_TEST(ids_only_grow),
	    FAR_TEST(an_attach_that_cannot_be_stored_does_not_reach_the_keeper),
	    FAR_TEST(a_refused_attach_ends_its_record),
	    FAR_TEST(a_refused_detach_leaves_the_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
