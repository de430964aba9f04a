/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's own timeline, and what is said of a sandbox for the log alone: marks, labels, parent. */
#include "gateway/control/control_mark.h"
#include "tests/unit/control/gateway_control_far.h"

static bool
has_recorded_mark(struct far *far)
{
	return far_event(far, EVENT_MARK) != NULL;
}

/* Mark with a text, and expect a status; a part of the message when it is an error. */
static void
mark(struct far *far, const char *name, const char *text, size_t len, int status, const char *part)
{
	json_t *body = json_pack("{s:s%}", "text", text, len), *answer;
	char path[128], *dump = json_dumps(body, 0);

	snprintf(path, sizeof(path), "/v1/sandboxes/%s/marks", name);
	answer = far_http(far, "POST", path, dump, status);
	if (part != NULL)
		assert_non_null(strstr(json_string_value(json_object_get(answer, "message")), part));
	json_decref(answer);
	json_decref(body);
	free(dump);
}

static void
a_mark_is_an_event_and_answered_when_it_is_durable(void **state)
{
	struct far *far = *state;
	int fd, status;
	char byte, id[24];
	json_t *answer;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	far->hold_durable = true;
	fd = far_send(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"step 37: click \\\"Export\\\"\"}");
	far_wait(far, has_recorded_mark);
	for (int i = 0; i < 10; i++)
		loop_round(far->loop, 5);
	assert_int_equal(recv(fd, &byte, 1, MSG_DONTWAIT | MSG_PEEK), -1);
	far_release_durable(far);
	answer = far_receive(far, fd, &status);
	assert_int_equal(status, 201);
	assert_string_equal(json_string_value(json_object_get(answer, "sandbox")), "vm1");
	snprintf(id, sizeof(id), "%016llx", (unsigned long long)far_event(far, EVENT_MARK)->id);
	assert_string_equal(json_string_value(json_object_get(answer, "id")), id);
	assert_int_equal(
	    strlen(json_string_value(json_object_get(answer, "ts"))), strlen("2026-11-29T20:31:00.123456Z"));
	json_decref(answer);
	assert_string_equal(far_event(far, EVENT_MARK)->detail, "{\"text\":\"step 37: click \\\"Export\\\"\"}");
	assert_int_equal(far_event(far, EVENT_MARK)->uid, geteuid());
	assert_int_equal(far_event(far, EVENT_MARK)->sandbox, far->attach.id);
}

static void
case_F_28_a_mark_is_one_line_of_plain_text(void **state)
{
	static const struct {
		const char *text;
		size_t len;
	} bads[] = {{"\x1b]0;owned\x07", 10}, {"a\r\nfaked", 8}, {"a\tb", 3}, {"\x7f", 1},
	    {"\xc2\x9b"
	     "31m",
		5},
	    {"end\xc2\x80", 5}};
	struct far *far = *state;
	char text[CONTROL_MARK_MAX + 1];

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++)
		mark(far, "vm1", bads[i].text, bads[i].len, 400, "control character");
	far_expect(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"a\\u0000b\"}", 400, "error", "usage");
	far_expect(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"\xff\xfe\"}", 400, "error", "usage");
	far_expect(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":7}", 400, "message", "must be a string");
	far_expect(far, "POST", "/v1/sandboxes/vm1/marks", "{}", 400, "message", "is missing");
	far_expect(
	    far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"a\",\"ts\":1}", 400, "message", "unknown member");
	memset(text, '"', sizeof(text));
	mark(far, "vm1", text, 0, 400, "1 to 512 bytes");
	mark(far, "vm1", text, CONTROL_MARK_MAX + 1, 400, "1 to 512 bytes");
	assert_null(far_event(far, EVENT_MARK));
	/* All of the longest is kept, each of its bytes escaped. */
	mark(far, "vm1", text, CONTROL_MARK_MAX, 201, NULL);
	assert_int_equal(strlen(far_event(far, EVENT_MARK)->detail), strlen("{\"text\":\"\"}") + 2 * CONTROL_MARK_MAX);
	/* Direction marks and others are escaped by whoever shows them. */
	mark(far, "vm1", "caf\xc3\xa9 \xe2\x80\xae", 9, 201, NULL);
	assert_string_equal(far_event(far, EVENT_MARK)->detail, "{\"text\":\"caf\xc3\xa9 \xe2\x80\xae\"}");
	far_expect(far, "POST", "/v1/sandboxes/vm2/marks", "{\"text\":\"a\"}", 404, "message", "no sandbox vm2");
	far_expect(far, "GET", "/v1/sandboxes/vm1/marks", NULL, 405, "message", "POST");
}

static void
a_runaway_marker_is_held_back_alone(void **state)
{
	struct far *far = *state;
	int taken = 0, refused = 0, status;
	json_t *answer;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	far_attach(far, "{\"name\":\"vm2\",\"kind\":\"tap\"}");
	/* On a slow machine some of them come in another second. */
	for (int i = 0; i < 2 * CONTROL_MARKS_PER_S && refused == 0; i++) {
		answer =
		    far_receive(far, far_send(far, "POST", "/v1/sandboxes/vm1/marks", "{\"text\":\"again\"}"), &status);
		taken += status == 201;
		if (status == 429) {
			refused++;
			assert_string_equal(json_string_value(json_object_get(answer, "error")), "limit");
			assert_true(taken >= CONTROL_MARKS_PER_S);
			mark(far, "vm2", "mine", 4, 201, NULL);
		}
		json_decref(answer);
	}
	if (refused == 0)
		skip(); /* too slow to be too fast */
	usleep(1000 * 1000);
	mark(far, "vm1", "later", 5, 201, NULL);
}

static bool
holds_policy(struct far *far)
{
	return far->held_tag != 0;
}

static void
a_mark_waits_for_no_change_of_the_policy(void **state)
{
	struct far *far = *state;
	int fd, status;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	far->hold_policy = true;
	fd = far_send(far, "POST", "/v1/sandboxes/vm1/rules", "{\"action\":\"allow\",\"rules\":[\"a.example.org\"]}");
	far_wait(far, holds_policy);
	mark(far, "vm1", "meanwhile", 9, 201, NULL);
	far_answer_policy(far, far->held_tag);
	json_decref(far_receive(far, fd, &status));
	assert_int_equal(status, 200);
}

static bool
all_marks_came(struct far *far)
{
	size_t marks = 0;

	for (size_t i = 0; i < far->record_count; i++)
		marks += far->records[i].kind == RECORD_EVENT && far->records[i].event.kind == EVENT_MARK;
	return marks == CONTROL_MARKS_WAITING_MAX;
}

static void
a_stalled_log_leaves_connections_for_others(void **state)
{
	struct far *far = *state;
	int fds[CONTROL_MARKS_WAITING_MAX], status;
	char path[64];

	far_attach(far, "{\"name\":\"vm0\",\"kind\":\"tap\"}");
	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	far->hold_durable = true;
	for (int i = 0; i < CONTROL_MARKS_WAITING_MAX; i++) {
		/* Taken in turns, as one alone may not have as many in a second. */
		snprintf(path, sizeof(path), "/v1/sandboxes/vm%d/marks", i % 2);
		fds[i] = far_send(far, "POST", path, "{\"text\":\"stalled\"}");
		loop_round(far->loop, 0);
	}
	far_wait(far, all_marks_came);
	mark(far, "vm1", "one too many", 12, 429, "wait for the disk");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	far_release_durable(far);
	for (int i = 0; i < CONTROL_MARKS_WAITING_MAX; i++) {
		json_decref(far_receive(far, fds[i], &status));
		assert_int_equal(status, 201);
	}
	mark(far, "vm1", "again", 5, 201, NULL);
}

static void
a_mark_that_cannot_be_written_is_refused(void **state)
{
	struct far *far = *state;
	size_t before;

	far_attach(far, "{\"name\":\"vm1\",\"kind\":\"tap\"}");
	far->unwritable = true;
	mark(far, "vm1", "the last that was written", 25, 201, NULL);
	before = far->record_count;
	mark(far, "vm1", "not any more", 12, 500, "the log cannot be written");
	assert_int_equal(far->record_count, before);
}

/* The detail of the sandbox's last row. */
static json_t *
sandbox_detail(const struct far *far, const char *name)
{
	for (size_t i = far->record_count; i-- > 0;)
		if (far->records[i].kind == RECORD_SANDBOX && strcmp(far->records[i].sandbox.name, name) == 0)
			return json_loads(far->records[i].sandbox.detail, 0, NULL);
	return NULL;
}

static void
expect_lineage(struct far *far, json_t *of, int64_t parent_id)
{
	const json_t *labels = json_object_get(of, "labels"), *parent = json_object_get(of, "parent");

	assert_int_equal(json_object_size(labels), 2);
	assert_string_equal(json_string_value(json_object_get(labels, "task")), "4711");
	assert_string_equal(json_string_value(json_object_get(labels, "org/team.x-1")), "a \"b\" = c");
	assert_string_equal(json_string_value(json_object_get(parent, "name")), "base");
	assert_int_equal(json_integer_value(json_object_get(parent, "id")), parent_id);
	json_decref(of);
	(void)far;
}

static bool
has_all_attached(struct far *far)
{
	return far->attaches == 2;
}

static void
labels_and_parent_are_recorded_shown_and_kept(void **state)
{
	struct far *far = *state;
	int64_t parent_id;
	json_t *answer;

	far_attach(far, "{\"name\":\"base\",\"kind\":\"tap\"}");
	parent_id = far->attach.id;
	far_attach(far,
	    "{\"name\":\"clone\",\"kind\":\"tap\",\"parent\":\"base\",\"labels\":{\"task\":\"4711\",\"org/"
	    "team.x-1\":\"a \\\"b\\\" = "
	    "c\"}}");
	for (int round = 0; round < 2; round++) {
		expect_lineage(far, far_http(far, "GET", "/v1/sandboxes/clone", NULL, 200), parent_id);
		answer = far_http(far, "GET", "/v1/sandboxes", NULL, 200);
		assert_null(json_object_get(json_array_get(json_object_get(answer, "sandboxes"), 0), "labels"));
		expect_lineage(far, json_incref(json_array_get(json_object_get(answer, "sandboxes"), 1)), parent_id);
		json_decref(answer);
		expect_lineage(far, sandbox_detail(far, "clone"), parent_id);
		if (round > 0)
			break;
		/* The parent goes, what was said of it stays; and all of it survives a restart. */
		far_stop(far);
		far->record_count = far->attaches = 0;
		far_start(far);
		far_wait(far, has_all_attached);
	}
	json_decref(far_http(far, "DELETE", "/v1/sandboxes/base", NULL, 200));
	expect_lineage(far, far_http(far, "GET", "/v1/sandboxes/clone", NULL, 200), parent_id);
	far_expect(far, "POST", "/v1/sandboxes", "{\"name\":\"c2\",\"kind\":\"tap\",\"parent\":\"base\"}", 404,
	    "message", "parent base");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, far_setup, far_teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(a_mark_is_an_event_and_answered_when_it_is_durable),
	    TEST(case_F_28_a_mark_is_one_line_of_plain_text),
	    TEST(a_runaway_marker_is_held_back_alone),
	    TEST(a_mark_waits_for_no_change_of_the_policy),
	    TEST(a_stalled_log_leaves_connections_for_others),
	    TEST(a_mark_that_cannot_be_written_is_refused),
	    TEST(labels_and_parent_are_recorded_shown_and_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
