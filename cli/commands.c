/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/commands.h"

#include <string.h>

/* A word that needs more changes than this is no misspelling of a command. */
#define COMMANDS_NEAR_MAX 2

static int commands_help(const struct command *command, struct error *err);
static int commands_group(const struct command *command, struct error *err);

static const struct command_row commands_policy = {
    .name = "policy",
    .operands = "COMMAND",
    .summary = "Check, show, apply and compare policies, try one on the record, make one from it.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = commands_group,
};
static const struct command_row commands_preset = {
    .name = "preset",
    .operands = "COMMAND",
    .summary = "List and show the shipped policies that others include.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = commands_group,
};
static const struct command_row commands_help_row = {
    .name = "help",
    .operands = "[COMMAND...]",
    .summary = "Explain a command.",
    .run = commands_help,
};

const struct command_row *const commands_table[] = {&run_command, &attach_command, &detach_command, &sandbox_list,
    &sandbox_show, &rules_allow, &rules_deny, &rules_revoke, &commands_policy, &policy_check, &policy_show,
    &policy_apply, &policy_diff_command, &replay_command, &suggest_command, &commands_preset, &presets_list,
    &presets_show, &test_command, &log_command, &report_command, &top_command, &stats_command, &mark_command,
    &verify_command, &seal_command, &status_command, &doctor_command, &commands_help_row, NULL};

static bool commands_version;
static const struct args_option commands_options[] = {
    {.name = "version", .help = "print the version", .flag = &commands_version},
    {0},
};
static const struct args_syntax commands_syntax = {.groups = {command_daemon, commands_options}, .stops = true};

/* The row of a command's name, of two words where it has two. */
static const struct command_row *
commands_find(const char *word, const char *second)
{
	const struct command_row *found = NULL;
	size_t len = strlen(word);

	for (const struct command_row *const *row = commands_table; *row != NULL; row++) {
		const char *name = (*row)->name;

		if (strcmp(name, word) == 0 && strchr(name, ' ') == NULL)
			found = *row;
		else if (second != NULL && strncmp(name, word, len) == 0 && name[len] == ' ' &&
		    strcmp(name + len + 1, second) == 0)
			return *row;
	}
	return found;
}

/* The commands of a group ("policy"), or (NULL) all but those in groups. */
static void
commands_print_list(FILE *out, const char *group)
{
	size_t len = group == NULL ? 0 : strlen(group);

	for (const struct command_row *const *row = commands_table; *row != NULL; row++) {
		const char *name = (*row)->name;

		if (group == NULL ? strchr(name, ' ') == NULL : strncmp(name, group, len) == 0 && name[len] == ' ')
			fprintf(out, "  %-*s %s\n", group == NULL ? 8 : 15, name, (*row)->summary);
	}
}

static void
commands_print_usage(FILE *out)
{
	fprintf(out, "usage: postern [OPTION]... COMMAND [WORD]...\n\n");
	commands_print_list(out, NULL);
	fprintf(out, "\nOptions in front of the command:\n");
	args_print_help(out, &commands_syntax);
	fprintf(out,
	    "\nSee 'postern help COMMAND', and the manual: postern(1), postern-log(1), postern-report(1), "
	    "postern-verify(1).\n");
}

static void
commands_print_help(const struct command_row *row)
{
	printf("usage: postern %s%s%s%s\n\n%s\n", row->name, row->syntax.groups[0] == NULL ? "" : " [OPTION]...",
	    row->operands[0] == '\0' ? "" : " ", row->operands, row->summary);
	if (row->run == commands_group) {
		printf("\n");
		commands_print_list(stdout, row->name);
	}
	printf("\n");
	args_print_help(stdout, &row->syntax);
	if (row->notes != NULL)
		printf("\n%s\n", row->notes);
	printf("\nSee %s.\n", row->page == NULL ? "postern(1)" : row->page);
}

/* How many letters must change to make one word of the other? Words here are short. */
static size_t
commands_distance(const char *a, const char *b)
{
	size_t row[64], len = strlen(b);

	if (len >= sizeof(row) / sizeof(row[0]))
		return len;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; *a != '\0'; a++, i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t above = row[j], best = diagonal + (*a != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[len];
}

/* A word that is no command, with those that it may have been meant for. */
static int
commands_unknown(const char *word)
{
	const struct command_row *const *row;
	size_t nearest = COMMANDS_NEAR_MAX;

	for (row = commands_table; *row != NULL; row++)
		if (commands_distance(word, (*row)->name) < nearest)
			nearest = commands_distance(word, (*row)->name);
	command_warn("unknown command '%.100s'", word);
	for (row = commands_table; *row != NULL; row++)
		if (strchr((*row)->name, ' ') == NULL &&
		    ((nearest < strlen(word) && commands_distance(word, (*row)->name) == nearest) ||
			strncmp(word, (*row)->name, strlen(word)) == 0))
			command_warn("did you mean %s?", (*row)->name);
	command_warn("try 'postern --help'");
	return error_exit_status(ERROR_USAGE);
}

/* "policy" without one of its commands, or with options in front of it. */
static int
commands_group(const struct command *command, struct error *err)
{
	const char *group = command->row->name, *word = command->operands.items[0];

	if (commands_find(group, word) != command->row)
		return command_usage(err, "options must follow '%s %s'", group, word);
	return command_usage(err, "unknown command '%s %.100s'", group, word);
}

static int
commands_help(const struct command *command, struct error *err)
{
	const struct args_list *words = &command->operands;
	const struct command_row *row;

	(void)err;
	if (words->count == 0) {
		commands_print_usage(stdout);
		return 0;
	}
	row = commands_find(words->items[0], words->count > 1 ? words->items[1] : NULL);
	if (row == NULL)
		return commands_unknown(words->items[0]);
	commands_print_help(row);
	return 0;
}

static int
commands_run(const struct command_row *row, int argc, char **argv)
{
	static struct command command; /* large */
	struct error err;
	int rc;

	command.row = row;
	command_set_row(row);
	rc = args_parse(argc, argv, &row->syntax, &command.operands, &command.rest, &err);
	if (rc > 0) {
		commands_print_help(row);
		return 0;
	}
	if (rc < 0 || command_finish_options(&command, &err) < 0 ||
	    args_check_operands(row->operands, &command.operands, &err) < 0) {
		command_usage(&err, "%s", err.text);
		return command_fail(&err);
	}
	rc = row->run(&command, &err);
	return rc < 0 ? command_fail(&err) : rc;
}

int
commands_main(int argc, char **argv)
{
	static struct args_list operands; /* large */
	const struct command_row *row;
	struct error err;
	char **words;
	int rc = args_parse(argc, argv, &commands_syntax, &operands, &words, &err);

	if (rc < 0) {
		command_usage(&err, "%s", err.text);
		return command_fail(&err);
	}
	if (rc > 0) {
		commands_print_usage(stdout);
		return 0;
	}
	if (commands_version) {
		printf("postern " POSTERN_VERSION "\n");
		return 0;
	}
	if (words == NULL) {
		commands_print_usage(stderr);
		return error_exit_status(ERROR_USAGE);
	}
	row = commands_find(words[0], words[1]);
	if (row == NULL)
		return commands_unknown(words[0]);
	if (strchr(row->name, ' ') != NULL)
		words++;
	rc = commands_run(row, argc - (int)(words - argv), words);
	if (command_flush(&err) < 0 && rc == 0)
		return 1;
	return rc;
}
