/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern test: the daemon decides by the policy in force; its steps are shown here. */
#include "cli/target.h"

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool
test_is_allowed(const json_t *answer)
{
	return strcmp(command_text(answer, "verdict"), "allowed") == 0;
}

static void
test_print(const json_t *answer)
{
	bool allowed = test_is_allowed(answer);
	const char *rule = command_text(answer, "rule"), *origin = command_text(answer, "origin");
	struct table table;
	const json_t *step;
	size_t i;

	table_init(&table, 3, NULL);
	json_array_foreach(json_object_get(answer, "steps"), i, step)
	{
		table_add_row(
		    &table, command_text(step, "step"), command_text(step, "result"), command_text(step, "text"));
	}
	table_print(&table, stdout, "");
	table_init(&table, 1, NULL);
	if (allowed && rule[0] == '\0')
		table_add(&table, "allowed: by no rule, but mode: learn lets it through");
	else if (allowed)
		table_addf(&table, "allowed by: %s (%s)", rule, origin);
	else if (rule[0] != '\0')
		table_addf(&table, "denied (%s) by: %s (%s)", command_text(answer, "reason"), rule, origin);
	else
		table_addf(&table, "denied (%s): %s", command_text(answer, "reason"), command_text(answer, "sentence"));
	table_print(&table, stdout, "");
}

static int
test_run(const struct command *command, struct error *err)
{
	char target[TARGET_TEXT_MAX];
	json_t *answer;
	bool allowed;

	if (client_check_name(command->operands.items[0], err) < 0 ||
	    target_from_user(command->operands.items[1], target, err) < 0 ||
	    client_sandbox(
		"POST", command->operands.items[0], "/test", json_pack("{s:s}", "target", target), &answer, err) < 0)
		return -1;
	allowed = test_is_allowed(answer);
	command_print(command, answer, test_print);
	return allowed ? 0 : 1;
}

const struct command_row test_command = {
    .name = "test",
    .operands = "SANDBOX TARGET",
    .summary = "Would a sandbox reach HOST[:PORT], ADDRESS[:PORT] or a URL? Exit 1: no.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = test_run,
};
