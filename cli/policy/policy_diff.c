/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Both sides become lines: each setting that is not the default, each rule with its terms. A
 * file's come from the text; "expires: 2h" counts for both files from the same moment, so that equal texts are equal. A
 * sandbox's rules are those in force, live edits among them, but without the organisation's, which no file can say and
 * which are under every policy here. Its settings are read from its text for the same reason: in force is the smallest
 * limit of all layers. */
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/policy/policy_compile.h"
#include "cli/policy/policy_effective.h"

#include "base/clock.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void
diff_add(json_t *lines, const char *text, const char *origin)
{
	if (text[0] != '\0')
		json_object_set_new(lines, text, json_string(origin));
}

static void
diff_add_settings(json_t *lines, const struct snapshot *snapshot)
{
	char text[TERMS_TEXT_MAX];

	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++) {
		enum policy_setting setting = (enum policy_setting)i;

		diff_add(
		    lines, terms_format_setting(snapshot, setting, text), snapshot_setting_origin(snapshot, setting));
	}
}

/* What the sandbox's own text says, or in force when it cannot be read here (its presets are elsewhere). */
static void
diff_add_sandbox_settings(json_t *lines, const json_t *sandbox)
{
	const char *text = json_string_value(json_object_get(sandbox, "policy")),
		   *file = command_text(sandbox, "policy_file");
	struct snapshot *snapshot = NULL;
	char words[TERMS_TEXT_MAX];

	if (text != NULL)
		snapshot = policy_compile_text(text, file[0] == '\0' ? "policy.yaml" : file, clock_real_us(), NULL);
	if (snapshot != NULL)
		diff_add_settings(lines, snapshot);
	for (unsigned int i = 0; text != NULL && snapshot == NULL && i < POLICY_SETTING_MAX; i++) {
		enum policy_setting setting = (enum policy_setting)i;

		diff_add(lines, policy_effective_setting(sandbox, setting, words),
		    command_text(json_object_get(sandbox, "origins"), terms_setting_text(setting)));
	}
	snapshot_free(snapshot);
}

static json_t *
diff_sandbox(const char *name, struct error *err)
{
	json_t *answer, *lines = json_object();
	char text[TERMS_LINE_MAX];
	const json_t *rule;
	struct terms terms;
	size_t i;

	if (client_sandbox("GET", name, "", NULL, &answer, err) < 0) {
		error_prefix(err, "%s: no such file; as a sandbox", name);
		json_decref(lines);
		return NULL;
	}
	diff_add_sandbox_settings(lines, answer);
	json_array_foreach(json_object_get(answer, "rules"), i, rule)
	{
		if (json_is_true(json_object_get(rule, "organisation")))
			continue;
		policy_effective_terms(rule, &terms);
		diff_add(
		    lines, terms_format_rule(command_text(rule, "rule"), &terms, text), command_text(rule, "origin"));
	}
	json_decref(answer);
	return lines;
}

/* A side as an object: what it says, and where. NULL on failure. */
static json_t *
diff_side(const char *what, int64_t applied_us, struct error *err)
{
	struct snapshot *snapshot;
	char text[TERMS_LINE_MAX];
	struct terms terms;
	json_t *lines;

	if (strcmp(what, "-") != 0 && access(what, F_OK) < 0 && strchr(what, '/') == NULL)
		return diff_sandbox(what, err);
	snapshot = policy_compile_at(what, applied_us, err);
	if (snapshot == NULL)
		return NULL;
	lines = json_object();
	diff_add_settings(lines, snapshot);
	for (uint32_t i = 0; i < snapshot_rule_count(snapshot); i++) {
		terms_of_rule(snapshot, i, &terms);
		diff_add(lines, terms_format_rule(snapshot_rule_text(snapshot, i), &terms, text),
		    snapshot_rule_origin(snapshot, i));
	}
	snapshot_free(snapshot);
	return lines;
}

static void
diff_missing(char sign, json_t *of, const json_t *from, json_t *lines)
{
	const char *text;
	json_t *origin;

	json_object_foreach(of, text, origin) if (json_object_get(from, text) == NULL)
	    json_array_append_new(lines, json_sprintf("%c%s (%s)", sign, text, json_string_value(origin)));
}

static int
diff_run(const struct command *command, struct error *err)
{
	json_t *sides[2] = {NULL, NULL}, *lines, *line;
	int64_t now_us = clock_real_us();
	size_t i;
	int status;

	for (int side = 0; side < 2; side++) {
		sides[side] = diff_side(command->operands.items[side], now_us, err);
		if (sides[side] == NULL) {
			json_decref(sides[0]);
			return -1;
		}
	}
	lines = json_array();
	diff_missing('-', sides[0], sides[1], lines);
	diff_missing('+', sides[1], sides[0], lines);
	json_decref(sides[0]);
	json_decref(sides[1]);
	status = json_array_size(lines) == 0 ? 0 : 1;
	if (!command->json)
		json_array_foreach(lines, i, line) printf("%s\n", json_string_value(line));
	command_print(command, lines, NULL);
	return status;
}

const struct command_row policy_diff_command = {
    .name = "policy diff",
    .operands = "A B",
    .summary = "Compare two policies, each a file or a sandbox. Exit 1: they differ.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = diff_run,
};
