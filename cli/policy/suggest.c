/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy suggest: a minimal policy from what a sandbox tried, to be read by a person and then applied. */
#include "cli/commands.h"
#include "cli/policy/suggest_text.h"

#include <stdlib.h>

/* How far back to read without --since. */
#define SUGGEST_SINCE_S 86400

static struct {
	const char *db;
	struct history_source source;
} suggest = {.source.since_us = HISTORY_SINCE_NONE};

static const struct args_option suggest_options[] = {
    COMMAND_TIME("since", "from then on (24h)", &suggest.source.since_us),
    COMMAND_DB(&suggest.db),
    {0},
};

static int
suggest_run(const struct command *command, struct error *err)
{
	struct suggest *targets;
	char *text = NULL;

	if (command->json)
		return command_usage(err, "-o json: not for suggest, a policy is YAML");
	suggest.source.sandbox = command->operands.items[0];
	history_source_finish(&suggest.source, suggest.db, SUGGEST_SINCE_S);
	targets = suggest_targets_new();
	if (targets == NULL)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	if (history_read(&suggest.source, suggest_targets_row, targets, err) == 0)
		text = suggest_text_format(targets, suggest.source.sandbox, suggest.source.since_us, err);
	suggest_targets_free(targets);
	if (text == NULL)
		return -1;
	fputs(text, stdout);
	free(text);
	return 0;
}

const struct command_row suggest_command = {
    .name = "policy suggest",
    .operands = "SANDBOX",
    .summary = "Print a policy made of what a sandbox tried.",
    .syntax = {.groups = {suggest_options, command_output, command_daemon}},
    .run = suggest_run,
};
