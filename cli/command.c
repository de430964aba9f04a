/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/command.h"

#include "base/escape.h"

#include <limits.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command_row *command_row;

void
command_set_row(const struct command_row *row)
{
	command_row = row;
}

int
command_set_runtime_dir(const char *dir, struct error *err)
{
	char path[PATH_MAX], cwd[PATH_MAX / 2];
	int len;

	if (dir[0] == '/')
		len = snprintf(path, sizeof(path), "%s", dir);
	else if (dir[0] != '\0' && getcwd(cwd, sizeof(cwd)) != NULL)
		len = snprintf(path, sizeof(path), "%s/%s", cwd, dir);
	else
		return error_set(err, ERROR_USAGE, "--runtime-dir: not a folder");
	if (len < 0 || (size_t)len >= sizeof(path))
		return error_set(err, ERROR_USAGE, "--runtime-dir: path too long");
	setenv("POSTERN_RUNTIME_DIR", path, 1);
	return 0;
}

static void
command_print_line(const char *line, size_t len)
{
	char safe[ERROR_TEXT_MAX * 4];

	escape_terminal(line, len, safe, sizeof(safe));
	fprintf(stderr, "postern: %s\n", safe);
}

static void
command_print_lines(const char *text)
{
	for (;;) {
		size_t len = strcspn(text, "\n");

		if (len > 0)
			command_print_line(text, len);
		if (text[len] == '\0')
			return;
		text += len + 1;
	}
}

int
command_fail(const struct error *err)
{
	command_print_lines(err->text);
	return error_exit_status(err->code);
}

void
command_warn(const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	command_print_lines(text);
}

void
command_print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	putchar('\n');
}

const char *
command_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text == NULL ? "" : text;
}

static int
command_usage(const struct error *err)
{
	command_print_lines(err->text);
	if (command_row != NULL)
		fprintf(stderr, "usage: postern %s\n", command_row->usage);
	return error_exit_status(ERROR_USAGE);
}

static int
command_help(const struct args_option *options, size_t count)
{
	if (command_row != NULL)
		printf("usage: postern %s\n\n%s\n\n", command_row->usage, command_row->help);
	args_print_help(stdout, options, count);
	return 0;
}

static bool
command_has_option(const struct args_option *options, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(options[i].name, name) == 0)
			return true;
	return false;
}

int
command_parse(int argc, char **argv, const struct args_option *own, size_t own_count, size_t words_min,
    size_t words_max, struct command *ret_command)
{
	const char *output = "text", *runtime_dir = NULL;
	const struct args_option common[] = {
	    {'o', "output", "FORMAT", "text (default) or json", NULL, &output, NULL},
	    {'R', "runtime-dir", "DIR", "the daemon's runtime folder ($POSTERN_RUNTIME_DIR)", NULL, &runtime_dir, NULL},
	    {'h', "help", NULL, "this text", NULL, NULL, NULL},
	};
	size_t count = own_count;
	struct args_option options[COMMAND_OPTIONS_MAX];
	struct error err;
	int rc;

	if (own_count > 0)
		memcpy(options, own, own_count * sizeof(*own));
	for (size_t i = 0; i < sizeof(common) / sizeof(common[0]); i++)
		if (!command_has_option(own, own_count, common[i].name))
			options[count++] = common[i];
	/* The last row, help, is for the help text only: the parser knows -h and --help itself. */
	rc = args_parse(argc, argv, options, count - 1, &ret_command->words, &err);
	if (rc > 0)
		return command_help(options, count);
	if (rc == 0 && strcmp(output, "text") != 0 && strcmp(output, "json") != 0)
		rc = error_set(&err, ERROR_USAGE, "-o must be text or json");
	if (rc == 0 && ret_command->words.count < words_min)
		rc = error_set(&err, ERROR_USAGE, "something is missing");
	if (rc == 0 && ret_command->words.count > words_max)
		rc = error_set(&err, ERROR_USAGE, "'%s' is one word too many", ret_command->words.items[words_max]);
	if (rc == 0 && runtime_dir != NULL)
		rc = command_set_runtime_dir(runtime_dir, &err);
	if (rc < 0)
		return command_usage(&err);
	ret_command->json = strcmp(output, "json") == 0;
	return -1;
}
