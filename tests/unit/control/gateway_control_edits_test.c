/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live edits come back from their file with who made them. */
#include "gateway/control/control_edits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
edits_keep_who_made_them(void **state)
{
	static const char *const allow[] = {"example.com", "*.x.org:22,443", "[2600::1]:443", "t.org:5000/udp"};
	static const char *const deny[] = {"example.com"};
	struct policy made = {0}, read = {0};
	struct error err;
	size_t changed = 0;
	char *text;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		json_t *words = json_pack("[s]", allow[i]);

		assert_int_equal(
		    control_edits_add(&made, RULE_ALLOW, words, NULL, (uint32_t)(1000 + i), &changed, NULL, &err), 0);
		json_decref(words);
	}
	{
		json_t *words = json_pack("[s]", deny[0]);

		assert_int_equal(control_edits_add(&made, RULE_DENY, words, NULL, 0, &changed, NULL, &err), 0);
		json_decref(words);
	}
	assert_int_equal(changed, 5);
	text = control_edits_format(&made);
	assert_int_equal(control_edits_parse(text, strlen(text), &read, &err), 0);
	assert_int_equal(read.rule_count, 5);
	for (size_t i = 0; i < read.rule_count; i++) {
		assert_true(rule_equal(&read.rules[i], &made.rules[i]));
		assert_string_equal(read.rules[i].origin, made.rules[i].origin);
	}
	assert_string_equal(read.rules[4].origin, "edit by uid 0");
	free(text);
	policy_free(&made);
	policy_free(&read);
}

static void
edits_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = "version: 1\nallow: []\n\0deny: []\n";
	struct policy read = {0};
	struct error err;

	(void)state;
	assert_int_equal(control_edits_parse(nul, sizeof(nul) - 1, &read, &err), -1);
	assert_int_equal(control_edits_parse("allow: [", 8, &read, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(edits_keep_who_made_them),
	    cmocka_unit_test(edits_that_are_no_text_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
