/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work that waits for the keeper: whose turn it is, which answers count, and what a shutdown does with it. */
#include "tests/unit/control/gateway_control_far.h"

#define RULES "/v1/sandboxes/vm1/rules"

/* An edit that the keeper has, and does not answer yet. */
static int
send_edit(struct far *far)
{
	int fd;

	far_attach(far, FAR_ATTACH);
	far->hold_policy = true;
	fd = far_send(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"a.org\"]}");
	far_wait(far, far_holds_policy);
	return fd;
}

static void
a_refusal_lets_the_next_change_begin(void **state)
{
	struct far *far = *state;
	int first, second, status;
	uint64_t tag;
	json_t *answer;

	first = send_edit(far);
	second = far_send(far, "DELETE", "/v1/sandboxes/vm1", NULL);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	assert_int_equal(far->detaches, 0);
	tag = far->held_tag;
	far->policy_code = ERROR_POLICY;
	far_answer_policy(far, tag);
	answer = far_receive(far, first, &status);
	assert_int_equal(status, 422);
	assert_string_equal(json_string_value(json_object_get(answer, "message")), "the keeper says no");
	json_decref(answer);
	answer = far_receive(far, second, &status);
	assert_int_equal(status, 200);
	assert_true(json_is_true(json_object_get(answer, "detached")));
	json_decref(answer);
	assert_int_equal(far->detaches, 1);
}

/* An answer that no job awaits, as of a role before a restart, is ignored; the awaited one counts. */
static void
an_answer_to_nothing_is_ignored(void **state)
{
	struct far *far = *state;
	int fd, status;

	fd = send_edit(far);
	far_answer_policy(far, far->held_tag + 1000);
	far_answer_result(far, 0, ERROR_SYSTEM);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached");
	far_answer_policy(far, far->held_tag);
	json_decref(far_receive(far, fd, &status));
	assert_int_equal(status, 200);
	/* Twice the same answer: the second one is to nothing. */
	far_answer_policy(far, far->held_tag);
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "edits", "a.org");
}

static bool
has_ended(struct far *far)
{
	return far->broken;
}

/* An answer of another type than the request's: the keeper is not to be trusted, the role ends. */
static void
an_answer_of_another_type_ends_the_role(void **state)
{
	struct far *far = *state;
	int fd, status;

	fd = send_edit(far);
	far_answer_result(far, far->held_tag, ERROR_NONE);
	far_wait(far, has_ended);
	close(fd);
	assert_int_equal(waitpid(far->pid, &status, 0), far->pid);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) != 0);
	ipc_close(&far->keeper);
	ipc_close(&far->auditor);
	loop_free(far->loop);
	/* The next one finds the change that was never answered, and puts it in force. */
	far->hold_policy = false;
	far_start(far);
	far_wait_event(far, EVENT_RESTORED);
	assert_int_equal(far->attach.generation, 2);
	assert_int_equal(far->rules, 2);
}

static void
a_shutdown_answers_what_waits(void **state)
{
	struct far *far = *state;
	int first, second, status;
	json_t *answer;

	first = send_edit(far);
	second = far_send(far, "POST", RULES, "{\"action\":\"allow\",\"rules\":[\"b.org\"]}");
	far_expect(far, "GET", "/v1/sandboxes/vm1", NULL, 200, "state", "attached"); /* both have come */
	far_stop(far);
	far->loop = loop_new();
	for (int i = 0; i < 2; i++) {
		answer = far_receive(far, i == 0 ? first : second, &status);
		assert_int_equal(status, 503);
		assert_string_equal(json_string_value(json_object_get(answer, "message")), "posternd is shutting down");
		json_decref(answer);
	}
	loop_free(far->loop);
	far->hold_policy = false;
	far_start(far);
	far_wait_event(far, EVENT_RESTORED); /* or the shutdown would come before the answer to the attach */
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    FAR_TEST(a_refusal_lets_the_next_change_begin),
	    FAR_TEST(an_answer_to_nothing_is_ignored),
	    FAR_TEST(an_answer_of_another_type_ends_the_role),
	    FAR_TEST(a_shutdown_answers_what_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
