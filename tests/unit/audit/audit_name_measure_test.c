/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures of asked names: which part is registered, and how random the rest is. */
#include "audit/store/name_measure.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static void
test_names(void **state)
{
	static const struct {
		const char *name, *domain;
		uint32_t bytes, entropy;
	} cases[] = {
	    {"example.com", "example.com", 0, 0},
	    {"www.example.com", "example.com", 3, 0},
	    {"ab.example.com", "example.com", 2, 100},
	    {"a.b.example.co.uk", "example.co.uk", 2, 100},
	    {"aabb.ccdd.example.com", "example.com", 8, 200},
	    /* 16 different characters, each twice. */
	    {"0123456789abcdef0123456789abcdef.example.org", "example.org", 32, 400},
	    {"abc.example.com", "example.com", 3, 158},
	    {"com", "com", 0, 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct name_measure measure;
		struct name name;

		assert_int_equal(name_canonical(cases[i].name, strlen(cases[i].name), &name), NAME_OK);
		name_measure(&name, &measure);
		assert_string_equal(measure.domain, cases[i].domain);
		assert_int_equal(measure.label_bytes, cases[i].bytes);
		assert_int_equal(measure.entropy, cases[i].entropy);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_names),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
