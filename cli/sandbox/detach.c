/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern detach. */
#include "cli/client.h"
#include "cli/commands.h"

static int
detach_run(const struct command *command, struct error *err)
{
	json_t *detached = json_array(), *answer;
	int status = 0;

	for (size_t i = 0; i < command->operands.count; i++) {
		const char *name = command->operands.items[i];

		if (client_sandbox("DELETE", name, "", NULL, &answer, err) < 0) {
			status = command_fail(err);
			continue;
		}
		json_decref(answer);
		json_array_append_new(detached, json_string(name));
		if (!command->json)
			printf("%s detached\n", name);
	}
	command_print(command, json_pack("{s:o}", "detached", detached), NULL);
	return status;
}

const struct command_row detach_command = {
    .name = "detach",
    .operands = "SANDBOX...",
    .summary = "Remove sandboxes; their connections end.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = detach_run,
};
