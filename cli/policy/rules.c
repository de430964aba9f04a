/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern allow, postern deny, postern revoke: live edits. */
#include "cli/policy/rules.h"

#include "cli/client.h"
#include "cli/commands.h"
#include "cli/policy/policy_text.h"
#include "policy/text/quantity.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
	uint32_t for_s;        /* 0: no end */
	int64_t uses;          /* 0: any number */
	int64_t if_generation; /* -1: any */
	bool allow, deny;      /* revoke: only such rules */
} rules = {.if_generation = -1};

static int
rules_parse_for(const struct args_option *option, const char *value, struct error *err)
{
	(void)option;
	if (!quantity_parse_duration(value, strlen(value), RULE_EXPIRES_AFTER_MAX_S, &rules.for_s))
		return error_set(err, ERROR_USAGE, "not a duration; write 30s, 10m, 2h or 7d");
	return 0;
}

static const struct args_option rules_options[] = {
    {0, "for", "DURATION", "only for so long: 30s, 10m, 2h, 7d; then connections that need it are cut",
	.parse = rules_parse_for},
    COMMAND_IF_GENERATION(&rules.if_generation),
    {0},
};
static const struct args_option rules_allow_options[] = {
    {0, "uses", "N", "only for so many connections", .parse = command_parse_number, .target = &rules.uses, .min = 1,
	.max = RULE_USES_MAX},
    {0},
};
static const struct args_option rules_revoke_options[] = {
    {0, "allow", NULL, "only allow rules", .flag = &rules.allow},
    {0, "deny", NULL, "only deny rules", .flag = &rules.deny},
    COMMAND_IF_GENERATION(&rules.if_generation),
    {0},
};

static void
rules_print(const json_t *answer)
{
	bool preview = json_is_true(json_object_get(answer, "preview"));
	long long cut = command_number(answer, "cut_count");
	const json_t *item;
	size_t i;

	json_array_foreach(json_object_get(answer, "change"), i, item) printf("%s\n", json_string_value(item));
	json_array_foreach(json_object_get(answer, "cut"), i, item) printf("%s %s%s%s:%lld\n",
	    preview ? "would cut" : "cut", command_text(item, "name"), command_text(item, "name")[0] == '\0' ? "" : " ",
	    command_text(item, "address"), command_number(item, "port"));
	if (command_number(answer, "changed") == 0)
		command_warn("nothing to change");
	printf("%s: generation %lld, %lld connection%s %s\n", command_text(answer, "name"),
	    command_number(answer, "generation"), cut, cut == 1 ? "" : "s",
	    preview ? "would be cut; nothing was changed" : "cut");
}

int
rules_request(const struct command *command, const char *method, const char *suffix, json_t *request_own,
    int64_t if_generation, struct error *err)
{
	json_t *answer, *warning, *warnings;
	size_t i;

	if (if_generation >= 0)
		json_object_set_new(request_own, "if_generation", json_integer(if_generation));
	if (client_sandbox(method, command->operands.items[0], suffix, request_own, &answer, err) < 0)
		return -1;
	warnings = json_incref(json_object_get(answer, "warnings"));
	command_print(command, answer, rules_print);
	json_array_foreach(warnings, i, warning) command_warn("%s", json_string_value(warning));
	json_decref(warnings);
	return 0;
}

/* Sends the operands as rules; action NULL: allow and deny rules. */
static int
rules_send(
    const struct command *command, const char *method, enum rule_action form, const char *action, struct error *err)
{
	json_t *request = json_pack("{s:s*}", "action", action);

	if (rules.for_s != 0)
		json_object_set_new(request, "for", json_integer(rules.for_s));
	if (rules.uses != 0)
		json_object_set_new(request, "uses", json_integer(rules.uses));
	if (policy_text_rules(request, "rules", form, command->operands.items + 1, command->operands.count - 1, err) <
	    0) {
		json_decref(request);
		return -1;
	}
	return rules_request(command, method, "/rules", request, rules.if_generation, err);
}

static int
rules_run_allow(const struct command *command, struct error *err)
{
	return rules_send(command, "POST", RULE_ALLOW, "allow", err);
}

static int
rules_run_deny(const struct command *command, struct error *err)
{
	return rules_send(command, "POST", RULE_DENY, "deny", err);
}

/* Every allow rule is valid as a deny rule too, so words are checked as deny rules. */
static int
rules_run_revoke(const struct command *command, struct error *err)
{
	if (rules.allow && rules.deny)
		return command_usage(err, "--allow and --deny exclude each other");
	return rules_send(command, "DELETE", RULE_DENY, rules.allow ? "allow" : rules.deny ? "deny" : NULL, err);
}

const struct command_row rules_allow = {
    .name = "allow",
    .operands = "SANDBOX RULE...",
    .summary = "Let a sandbox reach more, at once: HOST, *.HOST:22,443, CIDR:PORT, X:P/udp.",
    .syntax = {.groups = {rules_options, rules_allow_options, command_output, command_daemon}},
    .run = rules_run_allow,
};
const struct command_row rules_deny = {
    .name = "deny",
    .operands = "SANDBOX RULE...",
    .summary = "Refuse what a rule names; deny beats allow. Cuts the connections that it names.",
    .syntax = {.groups = {rules_options, command_output, command_daemon}},
    .run = rules_run_deny,
};
const struct command_row rules_revoke = {
    .name = "revoke",
    .operands = "SANDBOX RULE...",
    .summary = "Withdraw rules made with allow or deny.",
    .syntax = {.groups = {rules_revoke_options, command_output, command_daemon}},
    .run = rules_run_revoke,
};
