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
	struct args_list rules, operands;
	char **rest;
	int parsed;
	struct error err;
};

static int
count(const struct args_option *option, const char *value, struct error *err)
{
	++*(int *)option->target;
	return value[0] == 'x' ? error_set(err, ERROR_USAGE, "not a number") : 0;
}

static int
parse_as(struct given *given, const char *const *words, bool abbreviates, bool stops)
{
	const struct args_option options[] = {
	    {'v', "verbose", NULL, "be loud", .flag = &given->flag},
	    {'f', "file", "FILE", "read it", .text = &given->file},
	    {'t', "tap", "[IFNAME]", "a TAP", .flag = &given->tap, .text = &given->tap_name},
	    {0},
	};
	const struct args_option others[] = {
	    {.help = "Others:"},
	    {'a', "allow", "RULE", "a rule", .list = &given->rules},
	    {0, "file-count", "N", "so many", .parse = count, .target = &given->parsed},
	    {'f', "other-file", "FILE", "not this one", .text = NULL},
	    {0},
	};
	const struct args_syntax syntax = {.groups = {options, others}, .abbreviates = abbreviates, .stops = stops};
	union {
		const char *const *from;
		char **to;
	} argv = {.from = words};
	int argc = 0;

	while (words[argc] != NULL)
		argc++;
	memset(given, 0, sizeof(*given));
	return args_parse(argc, argv.to, &syntax, &given->operands, &given->rest, &given->err);
}

static int
parse(struct given *given, const char *const *words)
{
	return parse_as(given, words, false, false);
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
		assert_int_equal(given.operands.count, 1);
		assert_string_equal(given.operands.items[0], "name");
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
	assert_string_equal(given.operands.items[0], "vm1");
	assert_int_equal(parse(&given, after), 0);
	assert_string_equal(given.tap_name, "tap7");
	assert_int_equal(given.operands.count, 1);
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
	assert_int_equal(given.operands.count, 3);
}

static void
mistakes_are_usage_errors(void **state)
{
	static const struct {
		const char *words[4], *says;
	} bad[] = {
	    {{"x", "--fil", NULL}, "unknown option '--fil'"},
	    {{"x", "--fil=a", NULL}, "unknown option '--fil'"},
	    {{"x", "--files", NULL}, "unknown option '--files'"},
	    {{"x", "--file", NULL}, "option '--file' needs a value: FILE"},
	    {{"x", "--verbose=1", NULL}, "option '--verbose' takes no value"},
	    {{"x", "-z", NULL}, "unknown option '-z'"},
	    {{"x", "-vz", NULL}, "unknown option '-z'"},
	    {{"x", "-f", NULL}, "option '--file' needs a value: FILE"},
	    {{"x", "--file-count=x1", NULL}, "--file-count x1: not a number"},
	    {{"x", "--Others:", NULL}, "unknown option '--Others:'"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(parse(&given, bad[i].words), -1);
		assert_int_equal(given.err.code, ERROR_USAGE);
		assert_string_equal(given.err.text, bad[i].says);
	}
}

static void
abbreviations_where_a_command_has_them(void **state)
{
	static const char *const unique[] = {"x", "--verb", "--al=one", "--ta", NULL};
	static const char *const exact[] = {"x", "--file", "a", "--file-c", "7", NULL};
	static const char *const ambiguous[] = {"x", "--fil", "a", NULL};

	(void)state;
	assert_int_equal(parse(&given, unique), -1);
	assert_int_equal(parse_as(&given, unique, true, false), 0);
	assert_true(given.flag && given.tap && given.rules.count == 1);
	assert_int_equal(parse_as(&given, exact, true, false), 0);
	assert_string_equal(given.file, "a");
	assert_int_equal(given.parsed, 1);
	assert_int_equal(parse_as(&given, ambiguous, true, false), -1);
	assert_string_equal(given.err.text, "option '--fil' is ambiguous: --file, --file-count");
}

static void
a_command_that_runs_another_stops_at_its_name(void **state)
{
	static const char *const plain[] = {"x", "-v", "ls", "-z", "--file", NULL};
	static const char *const dashes[] = {"x", "--", "-v", "-z", NULL};
	static const char *const none[] = {"x", "-v", "--", NULL};

	(void)state;
	assert_int_equal(parse_as(&given, plain, true, true), 0);
	assert_true(given.flag && given.file == NULL && given.operands.count == 1);
	assert_string_equal(given.rest[0], "ls");
	assert_string_equal(given.rest[2], "--file");
	assert_null(given.rest[3]);
	assert_int_equal(parse_as(&given, dashes, true, true), 0);
	assert_string_equal(given.rest[0], "-v");
	assert_int_equal(parse_as(&given, none, true, true), 0);
	assert_true(given.operands.count == 0 && given.rest == NULL);
}

static void
operands_are_counted(void **state)
{
	static const struct {
		const char *wanted;
		size_t count;
		const char *says; /* NULL: as wanted */
	} cases[] = {
	    {"", 0, NULL},
	    {"", 1, "extra operand 'o0'"},
	    {"SANDBOX", 0, "missing operand: SANDBOX"},
	    {"SANDBOX", 1, NULL},
	    {"SANDBOX", 2, "extra operand 'o1'"},
	    {"SANDBOX RULE...", 0, "missing operand: SANDBOX"},
	    {"SANDBOX RULE...", 1, "missing operand: RULE"},
	    {"SANDBOX RULE...", 2, NULL},
	    {"SANDBOX RULE...", 4, NULL},
	    {"[SANDBOX]", 0, NULL},
	    {"[SANDBOX]", 1, NULL},
	    {"[SANDBOX]", 2, "extra operand 'o1'"},
	    {"[SANDBOX]...", 0, NULL},
	    {"[SANDBOX]...", 4, NULL},
	    {"COMMAND [ARG]...", 0, "missing operand: COMMAND"},
	    {"COMMAND [ARG]...", 1, NULL},
	    {"COMMAND [ARG]...", 4, NULL},
	};
	struct args_list operands = {.items = {"o0", "o1", "o2", "o3"}};
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int rc;

		operands.count = cases[i].count;
		rc = args_check_operands(cases[i].wanted, &operands, &err);
		assert_int_equal(rc, cases[i].says == NULL ? 0 : -1);
		if (rc < 0)
			assert_string_equal(err.text, cases[i].says);
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
	    cmocka_unit_test(abbreviations_where_a_command_has_them),
	    cmocka_unit_test(a_command_that_runs_another_stops_at_its_name),
	    cmocka_unit_test(operands_are_counted),
	    cmocka_unit_test(help_is_asked_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
