/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

struct given {
	bool flag, tap;
	const char *file, *tap_name;
	struct args_list rules, words;
	struct error err;
};

static int
parse(struct given *given, const char *const *words)
{
	const struct args_option options[] = {
	    {'v', "verbose", NULL, "", &given->flag, NULL, NULL},
	    {'f', "file", "FILE", "", NULL, &given->file, NULL},
	    {'t', "tap", "[IFNAME]", "", &given->tap, &given->tap_name, NULL},
	    {'a', "allow", "RULE", "", NULL, NULL, &given->rules},
	};
	union {
		const char *const *from;
		char **to;
	} argv = {.from = words};
	int argc = 0;

	while (words[argc] != NULL)
		argc++;
	memset(given, 0, sizeof(*given));
	return args_parse(argc, argv.to, options, sizeof(options) / sizeof(options[0]), &given->words, &given->err);
}

static struct given given;

static void
every_spelling_of_an_option(void **state)
{
	static const char *const spellings[][6] = {
	    {"x", "--file", "a", "name", NULL},
	    {"x", "--file=a", "name", NULL},
	    {"x", "-f", "a", "name", NULL},
	    {"x", "-fa", "name", NULL},
	    {"x", "name", "-vfa", NULL},
	    {"x", "-f", "b", "-fa", "name", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++) {
		assert_int_equal(parse(&given, spellings[i]), 0);
		assert_string_equal(given.file, "a");
		assert_int_equal(given.words.count, 1);
		assert_string_equal(given.words.items[0], "name");
	}
}

static void
repeats_are_kept_in_order(void **state)
{
	static const char *const words[] = {"x", "-a", "one", "n", "--allow=two", "--allow", "three", NULL};

	(void)state;
	assert_int_equal(parse(&given, words), 0);
	assert_int_equal(given.rules.count, 3);
	assert_string_equal(given.rules.items[0], "one");
	assert_string_equal(given.rules.items[2], "three");
}

static void
a_value_that_may_be_left_out(void **state)
{
	static const char *const before[] = {"x", "--tap", "vm1", NULL};
	static const char *const after[] = {"x", "vm1", "--tap", "tap7", NULL};
	static const char *const joined[] = {"x", "--tap=tap7", "vm1", NULL};
	static const char *const option[] = {"x", "vm1", "--tap", "-v", NULL};

	(void)state;
	assert_int_equal(parse(&given, before), 0);
	assert_true(given.tap && given.tap_name == NULL);
	assert_string_equal(given.words.items[0], "vm1");
	assert_int_equal(parse(&given, after), 0);
	assert_string_equal(given.tap_name, "tap7");
	assert_int_equal(given.words.count, 1);
	assert_int_equal(parse(&given, joined), 0);
	assert_string_equal(given.tap_name, "tap7");
	assert_int_equal(parse(&given, option), 0);
	assert_true(given.tap && given.flag && given.tap_name == NULL);
}

static void
two_dashes_end_options(void **state)
{
	static const char *const words[] = {"x", "--", "-v", "--file", "-", NULL};

	(void)state;
	assert_int_equal(parse(&given, words), 0);
	assert_false(given.flag);
	assert_int_equal(given.words.count, 3);
}

static void
mistakes_are_usage_errors(void **state)
{
	static const char *const bad[][4] = {
	    {"x", "--fil", NULL},
	    {"x", "--file", NULL},
	    {"x", "--verbose=1", NULL},
	    {"x", "-z", NULL},
	    {"x", "-f", NULL},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(&given, bad[i]), -1);
		assert_int_equal(given.err.code, ERROR_USAGE);
	}
}

static void
help_is_asked_for(void **state)
{
	static const char *const long_form[] = {"x", "--nonsense-comes-later", "--help", NULL};
	static const char *const short_form[] = {"x", "name", "-h", "--nonsense", NULL};

	(void)state;
	assert_int_equal(parse(&given, long_form), -1);
	assert_int_equal(parse(&given, short_form), 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(every_spelling_of_an_option),
	    cmocka_unit_test(repeats_are_kept_in_order),
	    cmocka_unit_test(a_value_that_may_be_left_out),
	    cmocka_unit_test(two_dashes_end_options),
	    cmocka_unit_test(mistakes_are_usage_errors),
	    cmocka_unit_test(help_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
