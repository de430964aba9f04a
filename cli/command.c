/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/command.h"

#include "base/clock.h"
#include "base/escape.h"
#include "base/paths.h"
#include "cli/when.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct command_row *command_row;
static const char *command_format = "text", *command_runtime_dir;

const struct args_option command_output[] = {
    {'o', "output", "FORMAT", "text (default) or json", .text = &command_format},
    {0},
};
const struct args_option command_daemon[] = {
    {'R', "runtime-dir", "DIR", "the daemon's runtime directory ($POSTERN_RUNTIME_DIR)", .text = &command_runtime_dir},
    {0},
};

int
command_parse_time(const struct args_option *option, const char *value, struct error *err)
{
	return when_parse(value, clock_real_us(), option->target, err);
}

int
command_parse_number(const struct args_option *option, const char *value, struct error *err)
{
	char *end;
	long long number;

	errno = 0;
	number = strtoll(value, &end, 10);
	if (value[0] < '0' || value[0] > '9' || *end != '\0' || errno != 0 || number < option->min ||
	    number > option->max)
		return option->max == INT64_MAX ? error_set(err, ERROR_USAGE, "not a number")
						: error_set(err, ERROR_USAGE, "not a number from %lld to %lld",
						      (long long)option->min, (long long)option->max);
	*(int64_t *)option->target = number;
	return 0;
}

int
command_parse_word(const struct args_option *option, const char *value, struct error *err)
{
	char words[ERROR_TEXT_MAX / 2] = "";
	size_t len = 0;

	for (unsigned int i = (unsigned int)option->min; i < option->max; i++) {
		if (strcmp(value, option->words(i)) == 0) {
			*(unsigned int *)option->target = i;
			return 0;
		}
		len +=
		    (size_t)snprintf(words + len, sizeof(words) - len, "%s%s", len == 0 ? "" : ", ", option->words(i));
		if (len >= sizeof(words))
			len = sizeof(words) - 1;
	}
	return error_set(err, ERROR_USAGE, "not one of %s", words);
}

void
command_set_row(const struct command_row *row)
{
	command_row = row;
}

int
command_absolute(const char *path, char ret_path[PATH_MAX])
{
	char cwd[PATH_MAX] = "";
	int len;

	if (path[0] == '\0' || (path[0] != '/' && getcwd(cwd, sizeof(cwd)) == NULL))
		return -1;
	len = snprintf(ret_path, PATH_MAX, "%s%s%s", cwd, cwd[0] == '\0' ? "" : "/", path);
	return len < PATH_MAX ? 0 : -1;
}

int
command_finish_options(struct command *command, struct error *err)
{
	char path[PATH_MAX];

	command->json = strcmp(command_format, "json") == 0;
	if (!command->json && strcmp(command_format, "text") != 0)
		return error_set(err, ERROR_USAGE, "-o %.60s: not one of text, json", command_format);
	if (command_runtime_dir == NULL)
		return 0;
	if (command_absolute(command_runtime_dir, path) < 0)
		return error_set(err, ERROR_USAGE, "--runtime-dir %.60s: empty, or too long", command_runtime_dir);
	setenv("POSTERN_RUNTIME_DIR", path, 1);
	return 0;
}

static void
command_print_lines(const char *text)
{
	const char *name = command_row == NULL ? "" : command_row->name;
	char safe[ERROR_TEXT_MAX * 4];

	for (size_t len; *text != '\0'; text += len + (text[len] == '\n')) {
		len = strcspn(text, "\n");
		escape_terminal(text, len, safe, sizeof(safe));
		if (len > 0)
			fprintf(stderr, "postern%s%s: %s\n", name[0] == '\0' ? "" : " ", name, safe);
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

int
command_usage(struct error *err, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX - 64];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(err, ERROR_USAGE, "%s\ntry 'postern%s%s --help'", text, command_row == NULL ? "" : " ",
	    command_row == NULL ? "" : command_row->name);
}

void
command_print_json(const json_t *json)
{
	json_dumpf(json, stdout, JSON_INDENT(2) | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	putchar('\n');
}

int
command_print(const struct command *command, json_t *answer_own, void (*print)(const json_t *answer))
{
	if (command->json)
		command_print_json(answer_own);
	else if (print != NULL)
		print(answer_own);
	json_decref(answer_own);
	return 0;
}

const char *
command_text(const json_t *object, const char *member)
{
	const char *text = json_string_value(json_object_get(object, member));

	return text == NULL ? "" : text;
}

long long
command_number(const json_t *object, const char *member)
{
	return (long long)json_integer_value(json_object_get(object, member));
}

const char *
command_db(const char *given)
{
	static char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/audit/audit.db", paths_state_dir());
	return given != NULL ? given : path;
}

int
command_flush(struct error *err)
{
	return fflush(stdout) == 0 && !ferror(stdout) ? 0 : error_set(err, ERROR_SYSTEM, "cannot write the output");
}
