/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The policies that are shipped as examples say what they mean; runs in the source tree's root, as tests/run does. */
#include "policy/text/policy.h"

#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
test_each_parses_and_prints_back(void **state)
{
	glob_t files;

	(void)state;
	assert_int_equal(glob("configs/policies/*.yaml", 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 3);
	for (size_t i = 0; i < files.gl_pathc; i++) {
		const char *stem = strrchr(files.gl_pathv[i], '/') + 1;
		struct policy policy, again;
		struct error err;
		char *text;

		if (policy_file_read(files.gl_pathv[i], &policy, &err) < 0)
			fail_msg("%s", err.text);
		assert_true(policy.rule_count > 0);
		/* the name is the file's, so that a list of sandboxes tells where the rules came from */
		assert_int_equal(strncmp(stem, policy.name, strlen(policy.name)), 0);
		assert_string_equal(stem + strlen(policy.name), ".yaml");
		text = policy_format(&policy);
		assert_non_null(text);
		assert_int_equal(policy_parse(text, strlen(text), "printed", &again, &err), 0);
		assert_int_equal(again.rule_count, policy.rule_count);
		free(text);
		policy_free(&again);
		policy_free(&policy);
	}
	globfree(&files);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_each_parses_and_prints_back),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
