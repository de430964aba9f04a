/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern policy check, show and apply: whole policies, in files and in force. */
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/policy/policy_compile.h"
#include "cli/policy/policy_effective.h"
#include "cli/policy/policy_text.h"
#include "cli/policy/rules.h"
#include "policy/compiled/snapshot.h"
#include "policy/names/shared.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* On stderr, so that an editor can jump to the place. Errors have the command's name in front, as all errors have. */
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

/* One file's result as JSON; err is NULL when the policy is good. */
static json_t *
policy_check_json(
    const char *file, const struct snapshot *snapshot, const struct policy_notes *notes, const struct error *err)
{
	json_t *errors = notes->broken ? policy_notes_json(notes) : json_array();
	char date[SHARED_DATE_MAX];

	/* Errors without a place in this text: a missing file or preset. */
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
	notes_free(&notes);
	snapshot_free(snapshot);
	return status;
}

static int
policy_run_check(const struct command *command, struct error *err)
{
	json_t *list = command->json ? json_array() : NULL;
	int worst = 0;

	(void)err;
	for (size_t i = 0; i < command->operands.count; i++) {
		int status = policy_check_file(command->operands.items[i], list);

		if (status != 0)
			worst = status;
	}
	if (list != NULL)
		command_print_json(list);
	json_decref(list);
	return worst;
}

const struct command_row policy_check = {
    .name = "policy check",
    .operands = "FILE...",
    .summary = "Check policy files: errors and notes with line and column.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = policy_run_check,
};

static bool policy_effective;
static const struct args_option policy_show_options[] = {
    {0, "effective", NULL, "every rule in force, with the text and line it comes from", .flag = &policy_effective},
    {0},
};

static int
policy_run_show(const struct command *command, struct error *err)
{
	json_t *answer;

	if (client_sandbox("GET", command->operands.items[0], "", NULL, &answer, err) < 0)
		return -1;
	if (command->json)
		command_print_json(json_object_get(answer, policy_effective ? "rules" : "policy"));
	else if (policy_effective)
		policy_effective_print(stdout, answer);
	else
		printf("%s", command_text(answer, "policy"));
	json_decref(answer);
	return 0;
}

const struct command_row policy_show = {
    .name = "policy show",
    .operands = "SANDBOX",
    .summary = "Show the policy of a sandbox as it was given, or what is in force.",
    .syntax = {.groups = {policy_show_options, command_output, command_daemon}},
    .run = policy_run_show,
};

static int64_t policy_if_generation = -1;
static bool policy_dry_run;
static const struct args_option policy_apply_options[] = {
    {0, "dry-run", NULL, "only show what would change and which connections would be cut", .flag = &policy_dry_run},
    COMMAND_IF_GENERATION(&policy_if_generation),
    {0},
};

static int
policy_run_apply(const struct command *command, struct error *err)
{
	json_t *request = json_object();

	if (policy_text_read(command->operands.items[1], request, err) < 0) {
		json_decref(request);
		return -1;
	}
	if (policy_dry_run)
		json_object_set_new(request, "preview", json_true());
	return rules_request(command, "PUT", "/policy", request, policy_if_generation, err);
}

const struct command_row policy_apply = {
    .name = "policy apply",
    .operands = "SANDBOX FILE",
    .summary = "Put a policy file in force.",
    .syntax = {.groups = {policy_apply_options, command_output, command_daemon}},
    .run = policy_run_apply,
};
