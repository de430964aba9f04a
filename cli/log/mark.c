/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern mark: put a step of the agent among its connections in the log. */
#include "cli/client.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>

/* Longer lines are an error here; the limit of the daemon is much lower, and its answer says so. */
#define MARK_LINE_MAX 4096

/* The mark is on record when this returns. */
static int
mark_send(const struct command *command, const char *text, struct error *err)
{
	json_t *value = json_string(text), *answer;

	if (value == NULL)
		return error_set(err, ERROR_USAGE, "the text is not UTF-8");
	if (client_sandbox(
		"POST", command->operands.items[0], "/marks", json_pack("{s:o}", "text", value), &answer, err) < 0)
		return -1;
	return command_print(command, answer, NULL);
}

/* The next line of standard input, without its end: 1, 0 when there is none, or -1. */
static int
mark_read_line(char line[MARK_LINE_MAX], struct error *err)
{
	size_t len = 0;
	int c;

	while ((c = getchar()) != EOF && c != '\n') {
		if (c == '\0')
			return error_set(err, ERROR_USAGE, "the text holds a NUL byte");
		if (len + 1 == MARK_LINE_MAX)
			return error_set(err, ERROR_USAGE, "longer than %d bytes", MARK_LINE_MAX - 1);
		line[len++] = (char)c;
	}
	line[len] = '\0';
	if (ferror(stdin))
		return error_set(err, ERROR_SYSTEM, "standard input cannot be read");
	return c != EOF || len > 0;
}

static int
mark_run(const struct command *command, struct error *err)
{
	char line[MARK_LINE_MAX];
	size_t number = 1;
	int rc;

	if (client_check_name(command->operands.items[0], err) < 0)
		return -1;
	if (strcmp(command->operands.items[1], "-") != 0)
		return mark_send(command, command->operands.items[1], err);
	/* Each line is a mark, sent as it comes; empty lines are skipped. Stops at the first that is refused. */
	for (; (rc = mark_read_line(line, err)) > 0; number++) {
		if (line[0] != '\0' && mark_send(command, line, err) < 0)
			return error_prefix(err, "line %zu", number);
		fflush(stdout);
	}
	return rc == 0 ? 0 : error_prefix(err, "line %zu", number);
}

const struct command_row mark_command = {
    .name = "mark",
    .operands = "SANDBOX TEXT|-",
    .summary = "Put a step of the agent into the log; -: each line of standard input.",
    .page = "postern-report(1)",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = mark_run,
};
