/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every option that is wrong says which it is, what was given and what to give instead; those of a role take what the
 * keeper of a large fleet hands over. */
#include "gateway/shared/options.h"

#include <getopt.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORDS_MAX 12

/* posternd WORD... with a resolver and users that are always there. */
static int
read_words(struct options *ret_options, const char *const *words, struct error *err)
{
	static char arguments[WORDS_MAX][128];
	char *argv[WORDS_MAX + 10] = {(char *)"posternd", (char *)"--resolver", (char *)"127.0.0.1",
	    (char *)"--gateway-user", (char *)"64201", (char *)"--audit-user", (char *)"64202",
	    (char *)"--control-user", (char *)"64203"};
	int argc = 9;

	argv[argc++] = (char *)"--group=0";
	for (size_t i = 0; i < WORDS_MAX && words[i] != NULL; i++) {
		snprintf(arguments[i], sizeof(arguments[i]), "%s", words[i]);
		argv[argc++] = arguments[i];
	}
	optind = 0;
	return options_read(ret_options, argc, argv, err);
}

static void
case_role_options_of_a_large_fleet(void **state)
{
	static const char *const words[] = {"--role", "gateway", "--role-fd", "5000", "--epoch", "1700000000",
	    "--country-fd", "65000", "--asn-fd", "1048575", NULL};
	struct options options;
	struct error err = {0};

	(void)state;
	if (read_words(&options, words, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(options.role, "gateway");
	assert_int_equal(options.role_fd, 5000);
	assert_int_equal(options.geo_fds[GEO_COUNTRY], 65000);
	assert_int_equal(options.geo_fds[GEO_ASN], 1048575);
}

static void
case_a_wrong_option_says_what_to_give(void **state)
{
	static const struct {
		const char *option, *value, *remedy;
	} cases[] = {
	    {"--resolver", "example.com", "give ADDRESS"},
	    {"--resolver", "1.2.3.4:0", "give ADDRESS"},
	    {"--resolver", "[2600::1", "give ADDRESS"},
	    {"--gateways", "0", "from 1 to 16"},
	    {"--gateways", "17", "from 1 to 16"},
	    {"--gateways", "two", "from 1 to 16"},
	    {"--deny-env", "aws", "known platforms are"},
	    {"--exit-idle", "0", "from 1 to 86400"},
	    {"--exit-idle", "-1", "from 1 to 86400"},
	    {"--retain-for", "90", "such as 90d"},
	    {"--retain-for", "0d", "such as 90d"},
	    {"--retain-size", "1KiB", "at least 1MiB"},
	    {"--wal-limit", "1MiB", "at least 4MiB"},
	    {"--organisation", "policy.yaml", "absolute path"},
	    {"--preset-dir", "presets", "absolute path"},
	    {"--country-db", "x.mmdb", "absolute path"},
	    {"--asn-db", "x.mmdb", "absolute path"},
	    {"--runtime-dir", "run", "absolute path"},
	    {"--state-dir", "", "absolute path"},
	    {"--netns-dir", "netns", "absolute path"},
	    {"--gateway-user", "no-such-user", "systemd-sysusers"},
	    {"--audit-user", "0", "must not run as root"},
	    {"--control-user", "64201", "three different users"},
	    {"--group", "no-such-group", "systemd-sysusers"},
	    {"--role-fd", "-1", "open descriptor"},
	    {"--epoch", "x", "number"},
	    {"--progress-ms", "0", "milliseconds"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const char *const words[] = {cases[i].option, cases[i].value, NULL};
		struct options options;
		struct error err = {0};

		if (read_words(&options, words, &err) == 0)
			fail_msg("taken: %s %s", cases[i].option, cases[i].value);
		if (strstr(err.text, cases[i].option) == NULL || strstr(err.text, cases[i].remedy) == NULL)
			fail_msg("%s %s: %s", cases[i].option, cases[i].value, err.text);
		if (strcmp(cases[i].remedy, "three different users") != 0 && strstr(err.text, cases[i].value) == NULL)
			fail_msg("%s %s: %s", cases[i].option, cases[i].value, err.text);
	}
}

static void
case_words_that_are_no_options(void **state)
{
	static const char *const none[] = {"--no-such-option", NULL}, *const short_one[] = {"-x", NULL};
	static const char *const bare[] = {"start", NULL}, *const open[] = {"--gateways", NULL};
	const char *const *const cases[] = {none, short_one, bare, open};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct options options;
		struct error err = {0};

		assert_int_equal(read_words(&options, cases[i], &err), -1);
		if (strstr(err.text, cases[i][0]) == NULL || strstr(err.text, "--help") == NULL)
			fail_msg("%s: %s", cases[i][0], err.text);
	}
}

int
main(void)
{
	static const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_role_options_of_a_large_fleet),
	    cmocka_unit_test(case_a_wrong_option_says_what_to_give),
	    cmocka_unit_test(case_words_that_are_no_options),
	};

	if (geteuid() != 0) {
		puts("skipped: users are looked up for root only");
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
