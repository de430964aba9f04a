/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern mark: a step of the agent, among its connections in the log. */
#include "cli/client.h"
#include "cli/command.h"

#include <stdio.h>
#include <string.h>

/* Longer lines are not read: the daemon takes less by far, and says so of what it gets. */
#define MARK_LINE_MAX 4096

/* It is on record when this returns. */
static int
mark_send(const struct command *command, const char *path, const char *text, struct error *err)
{
	json_t *value = json_string(text), *request, *answer;
	int rc;

	if (value == NULL)
		return error_set(err, ERROR_USAGE, "the text is not UTF-8");
	request = json_pack("{s:o}", "text", value);
	rc = client_request("POST", path, request, &answer, err);
	json_decref(request);
	if (rc < 0)
		return -1;
	if (command->json)
		command_print_json(answer);
	json_decref(answer);
	return 0;
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

/* Each line is a mark, as it comes; empty ones are none. The first that is refused is the end. */
static int
mark_send_lines(const struct command *command, const char *path, struct error *err)
{
	char line[MARK_LINE_MAX];
	size_t number = 1;
	int rc;

	for (; (rc = mark_read_line(line, err)) > 0; number++) {
		if (line[0] != '\0' && mark_send(command, path, line, err) < 0) {
			rc = -1;
			break;
		}
		fflush(stdout);
	}
	return rc == 0 ? 0 : error_prefix(err, "line %zu", number);
}

int
cli_mark(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 2, 2, &command);
	char path[CLIENT_PATH_MAX];
	struct error err;
	int rc;

	if (status >= 0)
		return status;
	rc = client_sandbox_path(command.words.items[0], "/marks", path, &err);
	if (rc == 0 && strcmp(command.words.items[1], "-") == 0)
		rc = mark_send_lines(&command, path, &err);
	else if (rc == 0)
		rc = mark_send(&command, path, command.words.items[1], &err);
	return rc < 0 ? command_fail(&err) : 0;
}
