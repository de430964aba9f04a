/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policy texts that sandboxes share. */
#include "gateway/control/control_sandbox.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

static void
equal_texts_are_one(void **state)
{
	char text[] = "version: 1\n";
	const char *one = control_sandbox_share_text(text), *two, *other = control_sandbox_share_text("version: 2\n");

	(void)state;
	assert_ptr_not_equal(one, text);
	text[0] = 'V'; /* it is a copy */
	two = control_sandbox_share_text("version: 1\n");
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	control_sandbox_release_text(one);
	assert_string_equal(two, "version: 1\n");
	control_sandbox_release_text(two);
	control_sandbox_release_text(other);
	control_sandbox_release_text(NULL);
	assert_null(control_sandbox_share_text(NULL));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(equal_texts_are_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
