/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern list, postern show, and what attach prints. */
#include "cli/sandbox/sandbox.h"

#include "base/escape.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/sandbox/label.h"
#include "cli/policy/policy_effective.h"
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Longer than all labels of one sandbox can be. */
#define SANDBOX_LABELS_MAX 4096

/* A line of two members joined by a comma; none when both are empty. */
static void
sandbox_pair(struct table *table, const char *key, const char *first, const char *second)
{
	if (first[0] == '\0' && second[0] == '\0')
		return;
	table_add(table, key);
	table_addf(table, "%s%s%s", first, first[0] != '\0' && second[0] != '\0' ? ", " : "", second);
}

void
sandbox_print(const json_t *sandbox)
{
	static const char *const members[][2] = {{"error", "error"}, {"namespace", "netns"},
	    {"container", "container_netns"}, {"device", "device"}, {"owner", "owner"}, {"mac", "mac"}};
	const char *state = command_text(sandbox, "state"), *file = command_text(sandbox, "policy_file");
	size_t rules = json_array_size(json_object_get(sandbox, "rules"));
	char labels[SANDBOX_LABELS_MAX];
	struct table table;

	table_init(&table, 2, NULL);
	sandbox_pair(&table, "sandbox", command_text(sandbox, "name"), "");
	sandbox_pair(&table, "state", strcmp(state, "attached") == 0 ? "" : state, "");
	for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++)
		sandbox_pair(&table, members[i][0], command_text(sandbox, members[i][1]), "");
	sandbox_pair(&table, "guest", command_text(sandbox, "guest_ip"),
	    json_object_get(sandbox, "gateway_ip6") == NULL ? "" : command_text(sandbox, "guest_ip6"));
	sandbox_pair(&table, "gateway", command_text(sandbox, "gateway_ip"), command_text(sandbox, "gateway_ip6"));
	sandbox_pair(&table, "dns", command_text(sandbox, "dns"), command_text(sandbox, "dns6"));
	if (file[0] == '\0')
		file = json_is_string(json_object_get(sandbox, "policy")) ? "given" : "no file";
	if (json_object_get(sandbox, "generation") != NULL) {
		table_add(&table, "policy");
		table_addf(&table, "%s, %zu rule%s, generation %lld", file, rules, rules == 1 ? "" : "s",
		    command_number(sandbox, "generation"));
	}
	if (strcmp(command_text(sandbox, "mode"), "learn") == 0)
		table_add_row(&table, "mode", "learn: what no rule allows is let through and marked");
	label_format(sandbox, labels, sizeof(labels));
	sandbox_pair(&table, "labels", labels, "");
	sandbox_pair(&table, "parent", command_text(json_object_get(sandbox, "parent"), "name"), "");
	table_print(&table, stdout, "");
}

/* -- list ---------------------------------------------------------------------------------------------------------- */

static void
list_print(const json_t *sandboxes, bool wide)
{
	static const char *const headings[] = {
	    "NAME", "STATE", "KIND", "GUEST", "DEVICE", "RULES", "GEN", "ATTACHED", "NAMESPACE", "PARENT", "LABELS"};
	const size_t columns = sizeof(headings) / sizeof(headings[0]);
	char labels[SANDBOX_LABELS_MAX];
	struct table table;
	const json_t *sandbox;
	size_t i;

	table_init(&table, wide ? columns : columns - 2, headings);
	json_array_foreach(sandboxes, i, sandbox)
	{
		table_add_row(&table, command_text(sandbox, "name"), command_text(sandbox, "state"),
		    command_text(sandbox, "kind"), command_text(sandbox, "guest_ip"), command_text(sandbox, "device"));
		table_add_number(&table, command_number(sandbox, "rules"));
		table_add_number(&table, command_number(sandbox, "generation"));
		table_addf(&table, "%.19s", command_text(sandbox, "attached"));
		table_add(&table, command_text(sandbox, "netns"));
		if (!wide)
			continue;
		label_format(sandbox, labels, sizeof(labels));
		table_add_row(&table, command_text(json_object_get(sandbox, "parent"), "name"), labels);
	}
	table_print(&table, stdout, "");
}

static struct {
	struct args_list labels;
	const char *output;
} list = {.output = "text"};

static const struct args_option list_options[] = {
    {'l', "label", "KEY[=VALUE]", "only those with this label; repeated: with all of them", .list = &list.labels},
    {'o', "output", "FORMAT", "text (default), wide (with parents and labels) or json", .text = &list.output},
    {0},
};

static int
list_run(const struct command *command, struct error *err)
{
	bool wide = strcmp(list.output, "wide") == 0, json = strcmp(list.output, "json") == 0;
	json_t *answer, *sandboxes;

	(void)command;
	if (!wide && !json && strcmp(list.output, "text") != 0)
		return command_usage(err, "-o %.60s: not one of text, wide, json", list.output);
	if (client_request("GET", "/v1/sandboxes", NULL, &answer, err) < 0)
		return -1;
	sandboxes = json_object_get(answer, "sandboxes");
	for (size_t i = json_array_size(sandboxes); i-- > 0;) {
		size_t label = 0;

		while (
		    label < list.labels.count && label_matches(json_array_get(sandboxes, i), list.labels.items[label]))
			label++;
		if (label < list.labels.count)
			json_array_remove(sandboxes, i);
	}
	if (json)
		command_print_json(answer);
	else if (json_array_size(sandboxes) > 0)
		list_print(sandboxes, wide);
	else if (list.labels.count > 0)
		command_warn("no sandbox has these labels");
	else
		command_warn("no sandboxes; postern attach makes one");
	json_decref(answer);
	return 0;
}

const struct command_row sandbox_list = {
    .name = "list",
    .operands = "",
    .summary = "List the sandboxes.",
    .syntax = {.groups = {list_options, command_daemon}},
    .run = list_run,
};

/* -- show ---------------------------------------------------------------------------------------------------------- */

static void
show_settings(const json_t *sandbox)
{
	const json_t *origins = json_object_get(sandbox, "origins");
	char text[TERMS_TEXT_MAX];
	struct table table;

	table_init(&table, 2, NULL);
	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++) {
		if (policy_effective_setting(sandbox, (enum policy_setting)i, text)[0] == '\0')
			continue;
		table_add_row(&table, text, command_text(origins, terms_setting_text((enum policy_setting)i)));
	}
	if (table.count > 0)
		printf("\nsettings\n");
	table_print(&table, stdout, "  ");
}

static void
show_rules(const json_t *rules, bool learns)
{
	struct table table;
	const json_t *rule;
	size_t i;

	table_init(&table, 3, NULL);
	json_array_foreach(rules, i, rule)
	{
		char line[TERMS_LINE_MAX], words[TERMS_TEXT_MAX];

		table_add_row(&table, policy_effective_rule(rule, line), command_text(rule, "origin"),
		    policy_effective_words(rule, words));
	}
	printf("\nrules%s\n",
	    json_array_size(rules) > 0 ? ""
		: learns               ? ": none, what is reached is learned"
				       : ": none, nothing can be reached");
	table_print(&table, stdout, "  ");
}

static void
show_leases(const json_t *sandbox)
{
	const json_t *leases = json_object_get(sandbox, "leases"), *lease;
	struct table table;
	size_t i;

	if (leases == NULL)
		return;
	table_init(&table, 3, NULL);
	json_array_foreach(leases, i, lease)
	{
		table_add_row(&table, command_text(lease, "name"), command_text(lease, "address"));
		table_addf(&table, "for another %lld s", command_number(lease, "left_s"));
	}
	printf("\nleases%s\n", json_array_size(leases) == 0 ? ": none" : "");
	table_print(&table, stdout, "  ");
	printf("\nlive connections: %lld\n", command_number(sandbox, "flows"));
}

static void
show_text(const char *heading, const char *text)
{
	char safe[4096];

	if (text[0] == '\0')
		return;
	printf("\n%s\n", heading);
	while (*text != '\0') {
		size_t len = strcspn(text, "\n");

		escape_terminal(text, len, safe, sizeof(safe));
		printf("  %s\n", safe);
		text += len + (text[len] == '\n');
	}
}

static void
show_print(const json_t *sandbox)
{
	sandbox_print(sandbox);
	show_settings(sandbox);
	show_rules(json_object_get(sandbox, "rules"), strcmp(command_text(sandbox, "mode"), "learn") == 0);
	show_leases(sandbox);
	show_text("policy as given", command_text(sandbox, "policy"));
	show_text("live edits", command_text(sandbox, "edits"));
}

static int
show_run(const struct command *command, struct error *err)
{
	json_t *answer;

	if (client_sandbox("GET", command->operands.items[0], "", NULL, &answer, err) < 0)
		return -1;
	return command_print(command, answer, show_print);
}

const struct command_row sandbox_show = {
    .name = "show",
    .operands = "SANDBOX",
    .summary = "Show all about a sandbox: addresses, policy, rules, leases.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = show_run,
};
