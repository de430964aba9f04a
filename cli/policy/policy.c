/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy and postern preset: whole policies, in files and in force. */
#include "cli/client.h"
#include "cli/command.h"
#include "cli/policy/policy.h"
#include "cli/policy/policy_diff.h"
#include "cli/policy/policy_effective.h"
#include "cli/policy/policy_replay.h"
#include "cli/policy/policy_suggest.h"
#include "cli/policy/policy_text.h"

#include "policy/text/preset.h"
#include "policy/names/shared.h"
#include "policy/compiled/snapshot.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On stderr: an editor jumps there. What is wrong has the program's name in front, as all errors have. */
static void
policy_print_notes(const char *file, const struct policy_notes *notes)
{
	for (size_t i = 0; i < notes->count; i++) {
		const struct policy_note *note = &notes->notes[i];

		if (notes->broken)
			command_warn("%s:%u:%u: %s", file, note->line, note->column, note->text);
		else
			fprintf(stderr, "%s:%u:%u: note: %s\n", file, note->line, note->column, note->text);
	}
	if (notes->unshown > 0 && notes->broken)
		command_warn("%s: %zu more errors", file, notes->unshown);
	else if (notes->unshown > 0)
		fprintf(stderr, "%s: %zu more notes\n", file, notes->unshown);
}

static json_t *
policy_notes_json(const struct policy_notes *notes)
{
	json_t *list = json_array();

	for (size_t i = 0; i < notes->count; i++)
		json_array_append_new(list,
		    json_pack("{s:I, s:I, s:s}", "line", (json_int_t)notes->notes[i].line, "column",
			(json_int_t)notes->notes[i].column, "text", notes->notes[i].text));
	return list;
}

/* A file's part of what check prints as JSON; err is NULL when the policy is good. */
static json_t *
policy_check_json(
    const char *file, const struct snapshot *snapshot, const struct policy_notes *notes, const struct error *err)
{
	json_t *errors = notes->broken ? policy_notes_json(notes) : json_array();
	char date[SHARED_DATE_MAX];

	/* What has no place in this text: no such file, a preset that is not there. */
	if (err != NULL && !notes->broken)
		json_array_append_new(errors, json_pack("{s:s}", "text", err->text));
	return json_pack("{s:s, s:b, s:I, s:s, s:o, s:o, s:I}", "file", file, "good", err == NULL, "rules",
	    (json_int_t)(snapshot == NULL ? 0 : snapshot_rule_count(snapshot)), "suffixes", shared_list_date(date),
	    "errors", errors, "notes", notes->broken ? json_array() : policy_notes_json(notes), "unshown",
	    (json_int_t)notes->unshown);
}

/* One file; appended to list when that is not NULL, else printed. The exit status. */
static int
policy_check_file(const char *path, json_t *list)
{
	const char *file = strcmp(path, "-") == 0 ? "stdin" : path;
	struct policy_notes notes = {.notes = NULL};
	struct error err;
	struct snapshot *snapshot = policy_compile_between(path, NULL, NULL, &notes, &err);
	int status = snapshot == NULL ? error_exit_status(err.code) : 0;
	char date[SHARED_DATE_MAX];

	if (list != NULL) {
		json_array_append_new(list, policy_check_json(file, snapshot, &notes, snapshot == NULL ? &err : NULL));
	} else {
		policy_print_notes(file, &notes);
		if (snapshot == NULL && !notes.broken)
			command_fail(&err);
		if (snapshot != NULL)
			printf("%s: good, %zu rule%s (public suffixes as of %s)\n", path, snapshot_rule_count(snapshot),
			    snapshot_rule_count(snapshot) == 1 ? "" : "s", shared_list_date(date));
	}
	policy_notes_free(&notes);
	snapshot_free(snapshot);
	return status;
}

static int
policy_check(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 1, ARGS_LIST_MAX, &command), worst = 0;
	json_t *list;

	if (status >= 0)
		return status;
	list = command.json ? json_array() : NULL;
	for (size_t i = 0; i < command.words.count; i++) {
		status = policy_check_file(command.words.items[i], list);
		if (status != 0)
			worst = status;
	}
	if (list != NULL)
		command_print_json(list);
	json_decref(list);
	return worst;
}

static int
policy_show(int argc, char **argv)
{
	bool effective = false;
	const struct args_option options[] = {
	    {0, "effective", NULL, "every rule in force, with the text and line it comes from", &effective, NULL, NULL},
	};
	static struct command command;
	int status = command_parse(argc, argv, options, 1, 1, 1, &command);
	struct error err;
	json_t *answer;

	if (status >= 0)
		return status;
	if (client_sandbox_get(command.words.items[0], &answer, &err) < 0)
		return command_fail(&err);
	if (command.json) {
		command_print_json(json_object_get(answer, effective ? "rules" : "policy"));
	} else if (!effective) {
		printf("%s", command_text(answer, "policy"));
	} else {
		policy_effective_print(stdout, answer);
	}
	json_decref(answer);
	return 0;
}

static int
policy_apply(int argc, char **argv)
{
	const char *if_generation = NULL;
	bool dry_run = false;
	const struct args_option options[] = {
	    {0, "dry-run", NULL, "only say what would change and which connections would be cut", &dry_run, NULL, NULL},
	    {0, "if-generation", "N", RULES_IF_GENERATION_HELP, NULL, &if_generation, NULL},
	};
	static struct command command;
	int status = command_parse(argc, argv, options, 2, 2, 2, &command);
	char path[CLIENT_PATH_MAX];
	json_t *request, *answer = NULL, *warning;
	struct error err;
	size_t i;
	int rc;

	if (status >= 0)
		return status;
	request = json_object();
	rc = policy_text_read(command.words.items[1], request, &err);
	if (rc == 0)
		rc = client_sandbox_path(command.words.items[0], "/policy", path, &err);
	if (rc == 0 && dry_run)
		json_object_set_new(request, "preview", json_true());
	if (rc == 0)
		rc = rules_if_generation(if_generation, request, &err);
	if (rc == 0)
		rc = client_request("PUT", path, request, &answer, &err);
	json_decref(request);
	if (rc < 0)
		return command_fail(&err);
	if (command.json)
		command_print_json(answer);
	else
		rules_print(answer);
	json_array_foreach(json_object_get(answer, "warnings"), i, warning)
	    command_warn("%s", json_string_value(warning));
	json_decref(answer);
	return 0;
}

static int
preset_list_all(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 0, 0, &command);
	char(*names)[POLICY_INCLUDE_NAME_MAX] = NULL;
	struct preset_dirs dirs = {0};
	struct error err;
	size_t count = 0;
	json_t *list;
	int rc;

	if (status >= 0)
		return status;
	rc = policy_presets(&dirs, &err);
	if (rc == 0)
		rc = preset_list(&dirs, &names, &count, &err);
	preset_dirs_close(&dirs);
	if (rc < 0)
		return command_fail(&err);
	list = json_array();
	for (size_t i = 0; i < count; i++) {
		json_array_append_new(list, json_string(names[i]));
		if (!command.json)
			printf("%s\n", names[i]);
	}
	if (command.json)
		command_print_json(list);
	json_decref(list);
	free(names);
	return 0;
}

static int
preset_show(int argc, char **argv)
{
	static struct command command;
	int status = command_parse(argc, argv, NULL, 0, 1, 1, &command);
	struct preset_dirs dirs = {0};
	struct error err;
	char *text = NULL;
	size_t len;
	int rc;

	if (status >= 0)
		return status;
	rc = policy_presets(&dirs, &err);
	if (rc == 0)
		rc = preset_text(&dirs, command.words.items[0], &text, &len, &err);
	preset_dirs_close(&dirs);
	if (rc < 0)
		return command_fail(&err);
	if (command.json) {
		json_t *preset = json_pack("{s:s, s:s%}", "name", command.words.items[0], "text", text, len);

		command_print_json(preset);
		json_decref(preset);
	} else {
		fwrite(text, 1, len, stdout);
	}
	free(text);
	return 0;
}

struct policy_command {
	const char *name;
	int (*run)(int argc, char **argv);
};

/* argv[1] names the sub-command, which sees itself as argv[0]. Options in front of it are for help only. */
static int
policy_dispatch(const struct policy_command *commands, size_t count, int argc, char **argv)
{
	static struct command command;
	int status = -1;
	struct error err;

	for (size_t i = 0; argc > 1 && i < count; i++)
		if (strcmp(commands[i].name, argv[1]) == 0)
			return commands[i].run(argc - 1, argv + 1);
	if (argc > 1 && argv[1][0] == '-')
		status = command_parse(argc, argv, NULL, 0, 0, 1, &command);
	if (status == 0)
		printf("\npostern %s %s --help, and so on: what one of them takes.\n", argv[0], commands[0].name);
	if (status >= 0)
		return status;
	error_set(&err, ERROR_USAGE, "%s: say which: %s, ...; postern help %s tells more", argv[0], commands[0].name,
	    argv[0]);
	return command_fail(&err);
}

int
cli_policy(int argc, char **argv)
{
	static const struct policy_command commands[] = {{"check", policy_check}, {"show", policy_show},
	    {"apply", policy_apply}, {"diff", policy_diff}, {"replay", policy_replay}, {"suggest", policy_suggest}};

	return policy_dispatch(commands, sizeof(commands) / sizeof(commands[0]), argc, argv);
}

int
cli_preset(int argc, char **argv)
{
	static const struct policy_command commands[] = {{"list", preset_list_all}, {"show", preset_show}};

	return policy_dispatch(commands, sizeof(commands) / sizeof(commands[0]), argc, argv);
}
