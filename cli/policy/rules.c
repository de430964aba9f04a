/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern allow, postern deny, postern revoke: live edits. */
#include "cli/client.h"
#include "cli/command.h"
#include "cli/policy/policy_text.h"
#include "policy/text/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a rule is asked for with. */
struct rules_grant {
	uint32_t for_s;            /* 0: for good */
	int64_t uses;              /* 0: any number */
	const char *if_generation; /* as typed; NULL: whatever it is */
};

void
rules_print(const json_t *answer)
{
	bool preview = json_is_true(json_object_get(answer, "preview"));
	long long cut = (long long)json_integer_value(json_object_get(answer, "cut_count"));
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(answer, "change"), i, item) printf("%s\n", json_string_value(item));
	json_array_foreach(json_object_get(answer, "cut"), i, item) printf("%s %s%s%s:%lld\n",
	    preview ? "would cut" : "cut", command_text(item, "name"), command_text(item, "name")[0] == '\0' ? "" : " ",
	    command_text(item, "address"), (long long)json_integer_value(json_object_get(item, "port")));
	if (json_integer_value(json_object_get(answer, "changed")) == 0)
		command_warn("nothing to change: it was so already");
	printf("%s: generation %lld, %lld connection%s %s\n", command_text(answer, "name"),
	    (long long)json_integer_value(json_object_get(answer, "generation")), cut, cut == 1 ? "" : "s",
	    preview ? "would be cut; nothing was changed" : "cut");
}

int
rules_if_generation(const char *text, json_t *request, struct error *err)
{
	char *end;
	long long generation;

	if (text == NULL)
		return 0;
	generation = strtoll(text, &end, 10);
	if (text[0] < '0' || text[0] > '9' || *end != '\0' || generation > UINT32_MAX)
		return error_set(
		    err, ERROR_USAGE, "--if-generation %s: give the number that postern show prints", text);
	json_object_set_new(request, "if_generation", json_integer(generation));
	return 0;
}

/* Send the words (parsed already) and show what came of it. */
static int
rules_send(const char *method, const struct command *command, const char *action, const struct rules_grant *grant,
    json_t *rules)
{
	json_t *request = json_pack("{s:o, s:s*}", "rules", rules, "action", action), *answer, *warning;
	char path[CLIENT_PATH_MAX];
	struct error err;
	size_t i;
	int rc = client_sandbox_path(command->words.items[0], "/rules", path, &err);

	if (grant->for_s != 0)
		json_object_set_new(request, "for", json_integer(grant->for_s));
	if (grant->uses != 0)
		json_object_set_new(request, "uses", json_integer(grant->uses));
	if (rc == 0)
		rc = rules_if_generation(grant->if_generation, request, &err);
	if (rc == 0)
		rc = client_request(method, path, request, &answer, &err);
	json_decref(request);
	if (rc < 0)
		return command_fail(&err);
	if (command->json)
		command_print_json(answer);
	else
		rules_print(answer);
	json_array_foreach(json_object_get(answer, "warnings"), i, warning)
	    command_warn("%s", json_string_value(warning));
	json_decref(answer);
	return 0;
}

/* 0: not a number of uses. */
static int64_t
rules_count(const char *text)
{
	char *end;
	long long count = strtoll(text, &end, 10);

	return *text >= '0' && *text <= '9' && *end == '\0' && count <= RULE_USES_MAX ? count : 0;
}

static int
rules_add(int argc, char **argv, enum rule_action action)
{
	const char *duration = NULL, *count = NULL;
	struct rules_grant grant = {0};
	const struct args_option options[] = {
	    {0, "if-generation", "N", RULES_IF_GENERATION_HELP, NULL, &grant.if_generation, NULL},
	    {0, "for", "DURATION", "only for so long: 30s, 10m, 2h, 7d; then connections that need it are cut", NULL,
		&duration, NULL},
	    {0, "uses", "N", "only for so many connections", NULL, &count, NULL},
	};
	size_t options_count = action == RULE_ALLOW ? 3 : 2;
	static struct command command;
	int status = command_parse(argc, argv, options, options_count, 2, ARGS_LIST_MAX, &command);
	struct error err;
	json_t *rules;

	if (status >= 0)
		return status;
	if (duration != NULL &&
	    !quantity_parse_duration(duration, strlen(duration), RULE_EXPIRES_AFTER_MAX_S, &grant.for_s)) {
		error_set(&err, ERROR_USAGE, "--for %s: give a duration as 30s, 10m, 2h or 7d", duration);
		return command_fail(&err);
	}
	if (count != NULL && (grant.uses = rules_count(count)) == 0) {
		error_set(&err, ERROR_USAGE, "--uses %s: give a number from 1 to %d", count, RULE_USES_MAX);
		return command_fail(&err);
	}
	rules = policy_text_rules(action, command.words.items + 1, command.words.count - 1, &err);
	if (rules == NULL)
		return command_fail(&err);
	return rules_send("POST", &command, action == RULE_ALLOW ? "allow" : "deny", &grant, rules);
}

int
cli_allow(int argc, char **argv)
{
	return rules_add(argc, argv, RULE_ALLOW);
}

int
cli_deny(int argc, char **argv)
{
	return rules_add(argc, argv, RULE_DENY);
}

int
cli_revoke(int argc, char **argv)
{
	bool allow = false, deny = false;
	struct rules_grant grant = {0};
	const struct args_option options[] = {
	    {0, "if-generation", "N", RULES_IF_GENERATION_HELP, NULL, &grant.if_generation, NULL},
	    {0, "allow", NULL, "only allow rules", &allow, NULL, NULL},
	    {0, "deny", NULL, "only deny rules", &deny, NULL, NULL},
	};
	static struct command command;
	int status = command_parse(argc, argv, options, 3, 2, ARGS_LIST_MAX, &command);
	struct error err;
	json_t *rules;

	if (status >= 0)
		return status;
	if (allow && deny) {
		error_set(&err, ERROR_USAGE, "--allow and --deny exclude each other");
		return command_fail(&err);
	}
	/* Whatever was an allow rule is good as a deny rule too; so that form tells whether it is a rule at all. */
	rules = policy_text_rules(RULE_DENY, command.words.items + 1, command.words.count - 1, &err);
	if (rules == NULL)
		return command_fail(&err);
	return rules_send("DELETE", &command, allow ? "allow" : deny ? "deny" : NULL, &grant, rules);
}
