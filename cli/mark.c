/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern mark: a step of the agent, among its connections in the log. */
#include "cli/client.h"
#include "cli/command.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

/* Each line is a mark, as it comes; empty ones are none. The first that is refused is the end. */
static int
mark_send_lines(const struct command *command, const char *path, struct error *err)
{
	char *line = NULL;
	size_t size = 0, number = 0;
	ssize_t len;
	int rc = 0;

	while (rc == 0 && (len = getline(&line, &size, stdin)) >= 0) {
		number++;
		if (len > 0 && line[len - 1] == '\n')
			line[--len] = '\0';
		if (strlen(line) != (size_t)len)
			rc = error_set(err, ERROR_USAGE, "the text holds a NUL byte");
		else if (len > 0)
			rc = mark_send(command, path, line, err);
		fflush(stdout);
	}
	free(line);
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
