/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/target.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

static void
urls_become_targets(void **state)
{
	static const struct {
		const char *given, *target; /* NULL: refused */
	} rows[] = {
	    {"example.com", "example.com"},
	    {"example.com:22", "example.com:22"},
	    {"45.45.45.1:80", "45.45.45.1:80"},
	    {"[2600::1]:443", "[2600::1]:443"},
	    {"https://example.com", "example.com:443"},
	    {"HTTPS://example.com/a:b@c?d", "example.com:443"},
	    {"http://example.com", "example.com:80"},
	    {"http://example.com:8080/x", "example.com:8080"},
	    {"https://user:pass@example.com/", "example.com:443"},
	    {"https://good.com@evil.com/", "evil.com:443"},
	    {"https://evil.com\\@good.com/", NULL},
	    {"https://good.com\\.evil.com/", NULL},
	    {"https://good.com/a\\@evil.com/", "good.com:443"},
	    {"https://evil.com#@good.com/", "evil.com:443"},
	    {"https://[2600::1]/", "[2600::1]:443"},
	    {"https://[2600::1]:8443/", "[2600::1]:8443"},
	    {"ssh://git@github.com/x.git", "github.com:22"},
	    {"gopher://example.com", NULL},
	    {"http://", NULL},
	    {"https:///path", NULL},
	    {"https://user@/", NULL},
	    {"https://:443/", NULL},
	    {"://example.com", NULL},
	};
	char target[TARGET_TEXT_MAX];
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		int rc = target_from_user(rows[i].given, target, &err);

		assert_int_equal(rc, rows[i].target == NULL ? -1 : 0);
		if (rc == 0)
			assert_string_equal(target, rows[i].target);
		else
			assert_int_equal(err.code, ERROR_USAGE);
	}
}

static void
an_overlong_target_is_refused(void **state)
{
	char given[TARGET_TEXT_MAX + 16], target[TARGET_TEXT_MAX];
	struct error err;

	(void)state;
	memset(given, 'a', sizeof(given) - 1);
	given[sizeof(given) - 1] = '\0';
	assert_int_equal(target_from_user(given, target, &err), -1);
	memcpy(given, "http://", strlen("http://"));
	assert_int_equal(target_from_user(given, target, &err), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(urls_become_targets),
	    cmocka_unit_test(an_overlong_target_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
