/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of commands is whole; the manual pages have its options and no others; usage errors say how to get help. */
#include "cli/commands.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

static const char *const pages[] = {"postern(1)", "postern-log(1)", "postern-report(1)", "postern-verify(1)"};
#define PAGES (sizeof(pages) / sizeof(pages[0]))
/* Of postern itself, in front of a command. */
static const char *const global[] = {"runtime-dir", "version", "help"};

/* Calls visit for each option of a command. */
static void
each_option(
    const struct command_row *row, void (*visit)(const struct args_option *option, void *context), void *context)
{
	for (size_t group = 0; group < ARGS_GROUPS_MAX && row->syntax.groups[group] != NULL; group++)
		for (const struct args_option *o = row->syntax.groups[group]; o->name != NULL || o->help != NULL; o++)
			if (o->name != NULL)
				visit(o, context);
}

struct seen {
	const struct command_row *row;
	const struct args_option *options[64];
	size_t count;
};

static void
see_option(const struct args_option *option, void *context)
{
	struct seen *seen = context;

	if (option->help == NULL || option->help[0] == '\0')
		fail_msg("%s --%s has no help", seen->row->name, option->name);
	if (option->flag == NULL && option->text == NULL && option->list == NULL && option->parse == NULL)
		fail_msg("%s --%s goes nowhere", seen->row->name, option->name);
	if ((option->text != NULL || option->list != NULL) && option->value == NULL)
		fail_msg("%s --%s has no word for its value", seen->row->name, option->name);
	for (size_t i = 0; i < seen->count; i++)
		if (strcmp(seen->options[i]->name, option->name) == 0 ||
		    (option->letter != 0 && seen->options[i]->letter == option->letter))
			fail_msg("%s has --%s twice, or its letter", seen->row->name, option->name);
	seen->options[seen->count++] = option;
}

static void
each_row_is_whole(void **state)
{
	size_t count = 0;

	(void)state;
	for (const struct command_row *const *row = commands_table; *row != NULL; row++, count++) {
		struct seen seen = {.row = *row};

		assert_true((*row)->name != NULL && (*row)->operands != NULL && (*row)->run != NULL);
		assert_true((*row)->summary[0] >= 'A' && (*row)->summary[0] <= 'Z');
		for (const struct command_row *const *other = commands_table; other < row; other++)
			assert_string_not_equal((*row)->name, (*other)->name);
		each_option(*row, see_option, &seen);
	}
	assert_true(count > 25);
}

/* -- the manual -- */

struct page {
	const char *name;
	char text[100000]; /* without backslashes and stars */
	char defined[128][32];
	bool used[128];
	size_t count;
};

static void
read_page(struct page *page, const char *name)
{
	char path[128], line[4096];
	FILE *file;
	size_t len = 0;

	memset(page, 0, sizeof(*page));
	page->name = name;
	snprintf(path, sizeof(path), "man/%.*s.1.scd", (int)strcspn(name, "("), name);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL) {
		bool defines = line[0] == '*' && line[1] == '-';
		char *at = line, *to = page->text + len;

		defines = defines || (line[0] == '_' && strstr(line, "_, *--") != NULL);
		for (; *at != '\0' && len < sizeof(page->text) - 1; at++)
			if (*at != '\\' && *at != '*')
				page->text[len++] = *at;
		page->text[len] = '\0';
		while (defines && (to = strstr(to, "--")) != NULL) {
			size_t word = strspn(to + 2, "abcdefghijklmnopqrstuvwxyz0123456789-");

			snprintf(page->defined[page->count++], sizeof(page->defined[0]), "%.*s", (int)word, to + 2);
			to += 2 + word;
		}
	}
	fclose(file);
}

static bool
page_defines(struct page *page, const char *name)
{
	bool found = false;

	for (size_t i = 0; i < page->count; i++) {
		if (strcmp(page->defined[i], name) != 0)
			continue;
		page->used[i] = true;
		found = true;
	}
	return found;
}

static void
find_in_page(const struct args_option *option, void *context)
{
	struct page *page = context;
	char spelling[64];

	if (!page_defines(page, option->name))
		fail_msg("--%s is missing in %s", option->name, page->name);
	snprintf(spelling, sizeof(spelling), "-%c, --%s", option->letter, option->name);
	if (option->letter != 0 && strstr(page->text, spelling) == NULL)
		fail_msg("%s is missing in %s", spelling, page->name);
}

static void
the_manual_has_these_options_and_no_others(void **state)
{
	static struct page page;

	(void)state;
	for (size_t i = 0; i < PAGES; i++) {
		read_page(&page, pages[i]);
		for (const struct command_row *const *row = commands_table; *row != NULL; row++)
			if (strcmp((*row)->page == NULL ? pages[0] : (*row)->page, pages[i]) == 0)
				each_option(*row, find_in_page, &page);
		page_defines(&page, "help");
		for (size_t j = 0; i == 0 && j < sizeof(global) / sizeof(global[0]); j++)
			assert_true(page_defines(&page, global[j]));
		assert_true(page.count > 3);
		for (size_t j = 0; j < page.count; j++)
			if (!page.used[j])
				fail_msg("no command has --%s of %s", page.defined[j], page.name);
	}
}

static void
each_command_is_in_the_synopsis(void **state)
{
	static struct page page;
	char usage[64];

	(void)state;
	read_page(&page, pages[0]);
	for (const struct command_row *const *row = commands_table; *row != NULL; row++) {
		snprintf(usage, sizeof(usage), "postern %s", (*row)->name);
		if (strstr(page.text, usage) == NULL)
			fail_msg("%s is not in %s", usage, pages[0]);
	}
}

/* -- messages -- */

/* Runs the words in a child; returns its exit status with its output on both streams. */
static int
run(const char *const *words, char *ret_output, size_t size, char *ret_errors)
{
	FILE *output = tmpfile(), *errors = tmpfile();
	int status;
	pid_t pid = fork();

	if (pid == 0) {
		char *argv[16] = {strdup("postern")};
		int argc = 1;

		for (; words[argc - 1] != NULL; argc++)
			argv[argc] = strdup(words[argc - 1]);
		dup2(fileno(output), STDOUT_FILENO);
		dup2(fileno(errors), STDERR_FILENO);
		status = commands_main(argc, argv);
		fflush(stdout);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	rewind(output);
	rewind(errors);
	ret_output[fread(ret_output, 1, size - 1, output)] = '\0';
	ret_errors[fread(ret_errors, 1, size - 1, errors)] = '\0';
	fclose(output);
	fclose(errors);
	return WEXITSTATUS(status);
}

static void
usage_errors_name_the_command_and_the_way_to_help(void **state)
{
	static const struct {
		const char *words[8], *says;
	} cases[] = {
	    {{"attach"}, "postern attach: missing operand: SANDBOX\npostern attach: try 'postern attach --help'\n"},
	    {{"list", "x"}, "postern list: extra operand 'x'\npostern list: try 'postern list --help'\n"},
	    {{"show", "a", "--frob"},
		"postern show: unknown option '--frob'\npostern show: try 'postern show --help'\n"},
	    {{"stats", "--frob"},
		"postern stats: unknown option '--frob'\npostern stats: try 'postern stats --help'\n"},
	    {{"run", "-x", "ls"}, "postern run: unknown option '-x'\npostern run: try 'postern run --help'\n"},
	    {{"run", "--allow"},
		"postern run: option '--allow' needs a value: RULE\npostern run: try 'postern run --help'\n"},
	    {{"run", "-q"}, "postern run: missing operand: COMMAND\npostern run: try 'postern run --help'\n"},
	    {{"allow", "a", "x", "--for", "soon"},
		"postern allow: --for soon: not a duration; write 30s, 10m, 2h or 7d\n"},
	    {{"top", "--by", "x"}, "postern top: --by x: not one of bytes, connections, denied, queries\n"},
	    {{"policy", "chek"},
		"postern policy: unknown command 'policy chek'\npostern policy: try 'postern policy --help'\n"},
	    {{"policy", "-o", "json", "check"}, "postern policy: options must follow 'policy check'\n"},
	    {{"policy", "replay", "x"}, "postern policy replay: missing option: --sandbox NAME\n"},
	    {{"status", "-o", "xml"}, "postern status: -o xml: not one of text, json\n"},
	    {{"seal", "lock"}, "postern seal: lock: not one of export, key\n"},
	    {{"policy check", "x"}, "postern: unknown command 'policy check'\n"},
	    {{"-Z"}, "postern: unknown option '-Z'\npostern: try 'postern --help'\n"},
	    {{"attahc"}, "postern: unknown command 'attahc'\npostern: did you mean attach?\n"},
	    {{"help", "attahc"}, "postern help: unknown command 'attahc'\n"},
	};
	char output[4096], errors[4096];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		int status = run(cases[i].words, output, sizeof(output), errors);

		if (status != 2 || output[0] != '\0' || strncmp(errors, cases[i].says, strlen(cases[i].says)) != 0 ||
		    strstr(errors, "--help'\n") == NULL)
			fail_msg("case %zu: %d: %s%s", i, status, output, errors);
	}
}

static void
help_is_the_same_both_ways(void **state)
{
	static char output[16384], other[16384], errors[4096];

	(void)state;
	for (const struct command_row *const *row = commands_table; *row != NULL; row++) {
		char *name = strdup((*row)->name), *second = strchr(name, ' ');
		const char *words[] = {name, NULL, NULL, NULL}, *help[] = {"help", name, NULL, NULL};

		if (second != NULL) {
			*second++ = '\0';
			words[1] = help[2] = second;
		}
		words[second == NULL ? 1 : 2] = "--help";
		assert_int_equal(run(words, output, sizeof(output), errors), 0);
		assert_string_equal(errors, "");
		assert_memory_equal(output, "usage: postern ", 15);
		assert_memory_equal(output + 15, (*row)->name, strlen((*row)->name));
		assert_int_equal(run(help, other, sizeof(other), errors), 0);
		assert_string_equal(output, other);
		free(name);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(each_row_is_whole),
	    cmocka_unit_test(the_manual_has_these_options_and_no_others),
	    cmocka_unit_test(each_command_is_in_the_synopsis),
	    cmocka_unit_test(usage_errors_name_the_command_and_the_way_to_help),
	    cmocka_unit_test(help_is_the_same_both_ways),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
