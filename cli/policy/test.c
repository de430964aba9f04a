/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern test NAME TARGET: the daemon decides with what is in force; here its steps are shown. */
#include "cli/target.h"

#include "cli/client.h"
#include "cli/command.h"
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void
test_print(const json_t *answer, bool allowed)
{
	const char *rule = command_text(answer, "rule"), *origin = command_text(answer, "origin");
	struct table table;
	const json_t *step;
	size_t i;

	table_init(&table, 3, NULL);
	json_array_foreach(json_object_get(answer, "steps"), i, step)
	{
		table_add(&table, command_text(step, "step"));
		table_add(&table, command_text(step, "result"));
		table_add(&table, command_text(step, "text"));
	}
	table_print(&table, stdout, "");
	table_init(&table, 1, NULL);
	if (allowed && rule[0] == '\0')
		table_add(&table, "allowed: no rule does, but mode: learn lets it through");
	else if (allowed)
		table_addf(&table, "allowed by: %s (%s)", rule, origin);
	else if (rule[0] != '\0')
		table_addf(&table, "denied (%s) by: %s (%s)", command_text(answer, "reason"), rule, origin);
	else
		table_addf(&table, "denied (%s): %s", command_text(answer, "reason"), command_text(answer, "sentence"));
	table_print(&table, stdout, "");
}

int
cli_test(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 2, 2, &command), rc;
	char path[CLIENT_PATH_MAX], target[TARGET_TEXT_MAX];
	json_t *request, *answer;
	struct error err;
	bool allowed;

	if (status >= 0)
		return status;
	if (client_sandbox_path(command.words.items[0], "/test", path, &err) < 0 ||
	    target_from_user(command.words.items[1], target, &err) < 0)
		return command_fail(&err);
	request = json_pack("{s:s}", "target", target);
	rc = client_request("POST", path, request, &answer, &err);
	json_decref(request);
	if (rc < 0)
		return command_fail(&err);
	allowed = strcmp(command_text(answer, "verdict"), "allowed") == 0;
	if (command.json)
		command_print_json(answer);
	else
		test_print(answer, allowed);
	json_decref(answer);
	return allowed ? 0 : 1;
}
