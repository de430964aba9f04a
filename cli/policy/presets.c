/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern preset: the policies that others include by name. */
#include "cli/commands.h"
#include "cli/policy/policy_compile.h"
#include "policy/text/preset.h"

#include <stdlib.h>

static int
presets_run_list(const struct command *command, struct error *err)
{
	char(*names)[POLICY_INCLUDE_NAME_MAX] = NULL;
	struct preset_dirs dirs = {0};
	size_t count = 0;
	json_t *list;
	int rc = policy_compile_presets(&dirs, err);

	if (rc == 0)
		rc = preset_list(&dirs, &names, &count, err);
	preset_dirs_close(&dirs);
	if (rc < 0)
		return -1;
	list = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(list, json_string(names[i]));
		if (!command->json)
			printf("%s\n", names[i]);
	}
	free(names);
	return command_print(command, list, NULL);
}

static int
presets_run_show(const struct command *command, struct error *err)
{
	struct preset_dirs dirs = {0};
	char *text = NULL;
	size_t len;
	int rc = policy_compile_presets(&dirs, err);

	if (rc == 0)
		rc = preset_text(&dirs, command->operands.items[0], &text, &len, err);
	preset_dirs_close(&dirs);
	if (rc < 0)
		return -1;
	if (!command->json)
		fwrite(text, 1, len, stdout);
	command_print(command, json_pack("{s:s, s:s%}", "name", command->operands.items[0], "text", text, len), NULL);
	free(text);
	return 0;
}

const struct command_row presets_list = {
    .name = "preset list",
    .operands = "",
    .summary = "List the presets.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = presets_run_list,
};
const struct command_row presets_show = {
    .name = "preset show",
    .operands = "PRESET",
    .summary = "Show a preset's text.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = presets_run_show,
};
