/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/policy/replay.h"

#include "audit/record.h"
#include "audit/show/render.h"
#include "base/clock.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/policy/policy_compile.h"
#include "cli/table.h"
#include "policy/verdict.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How far back to read without --since. */
#define REPLAY_SINCE_S (7 * 86400)

/* All attempts at one target with a new outcome. */
struct replay_group {
	enum replay_outcome outcome;
	char target[HISTORY_TARGET_TEXT_MAX];
	struct judgement judgement; /* the newest */
	int64_t count, first_us, last_us;
};

struct replay_tally {
	struct snapshot *policy; /* owned */
	int64_t now_us;
	void *groups; /* tsearch(3), of struct replay_group; owned */
	size_t group_count;
	int64_t untold; /* attempts beyond HISTORY_TARGETS_MAX */
	int64_t judged, changed;
	int64_t left_out[REASON_MAX];
	int64_t placeless; /* connections to which a rule by country or network cannot be applied */
	int64_t nameless;  /* about nothing that a rule could name */
	bool no_memory;
};

/* The connection as a live one of the same record (policy/verdict.c). What an address rule let through has no proven
 * name. A name that was only claimed counts as proven: under the new policy the guest can resolve it. A place that is
 * not on record, where no database was loaded then, is no ground to refuse, unless it was one. */
static struct judgement
replay_connection(
    const struct snapshot *policy, const struct history_target *target, const struct query_row *row, int64_t now_us)
{
	bool named = target->named && target->name.len > 0;
	struct verdict_case what = {.policy = policy,
	    .now_us = now_us,
	    .proto = target->proto,
	    .port = target->port,
	    .addr = target->addr.family != 0 ? &target->addr : NULL,
	    .place = &target->place,
	    .place_pardoned = row->reason != REASON_PLACE_UNKNOWN,
	    .naming = named && row->name_source != NAME_SOURCE_CIDR ? VERDICT_PROVEN : VERDICT_UNPROVEN,
	    .name = &target->name,
	    .source = target->port == 80 ? NAME_SOURCE_HOST : NAME_SOURCE_SNI};

	return verdict_judge(&what, NULL);
}

enum replay_outcome
replay_row(const struct snapshot *policy, const struct query_row *row, int64_t now_us,
    struct history_target *ret_target, struct judgement *ret_judgement)
{
	enum history_past past = history_past_of(row);
	struct history_target target;
	struct judgement judgement;

	/* Questions below in-addr.arpa and the like are answered under every policy, not by one. */
	if (past == HISTORY_OTHER || !history_target_of(row, &target) ||
	    (target.named && name_never(&target.name) != NULL))
		return REPLAY_LEFT_OUT;
	judgement = target.dns ? verdict_question(policy, &target.name, now_us)
			       : replay_connection(policy, &target, row, now_us);
	*ret_target = target;
	*ret_judgement = judgement;
	if ((judgement.verdict == VERDICT_ALLOWED) == (past == HISTORY_ALLOWED))
		return REPLAY_SAME;
	return past == HISTORY_ALLOWED ? REPLAY_BREAKS : REPLAY_OPENS;
}

static int
replay_compare(const void *a, const void *b)
{
	const struct replay_group *left = a, *right = b;

	if (left->outcome != right->outcome)
		return left->outcome < right->outcome ? -1 : 1;
	return strcmp(left->target, right->target);
}

/* The group for this outcome and target; NULL when there is no room for it. */
static struct replay_group *
replay_group_of(struct replay_tally *replay, enum replay_outcome outcome, const struct history_target *target)
{
	struct replay_group key = {.outcome = outcome, .first_us = INT64_MAX}, *group, **found;

	history_target_text(target, key.target);
	found = tfind(&key, &replay->groups, replay_compare);
	if (found != NULL)
		return *found;
	if (replay->group_count == HISTORY_TARGETS_MAX)
		return NULL;
	group = malloc(sizeof(*group));
	if (group != NULL)
		*group = key;
	if (group == NULL || tsearch(group, &replay->groups, replay_compare) == NULL) {
		free(group);
		replay->no_memory = true;
		return NULL;
	}
	replay->group_count++;
	return group;
}

static bool
replay_lacks_place(const struct snapshot *policy, const struct history_target *target)
{
	return target->addr.family != 0 &&
	    ((target->place.country[0] == '\0' && snapshot_country_rule(policy) != SNAPSHOT_NO_RULE) ||
		(target->place.asn == 0 && snapshot_asn_rule(policy) != SNAPSHOT_NO_RULE));
}

static void
replay_handle_row(const struct query_row *row, void *context)
{
	struct replay_tally *replay = context;
	struct history_target target;
	struct judgement judgement;
	struct replay_group *group;
	enum replay_outcome outcome = replay_row(replay->policy, row, replay->now_us, &target, &judgement);
	int64_t last_us = row->last_us.set ? row->last_us.value : row->ts_us;

	if (outcome == REPLAY_LEFT_OUT) {
		if (history_past_of(row) == HISTORY_OTHER && row->reason > REASON_ALLOWED && row->reason < REASON_MAX)
			replay->left_out[row->reason]++;
		else
			replay->nameless++;
		return;
	}
	replay->judged++;
	replay->placeless += replay_lacks_place(replay->policy, &target);
	if (outcome == REPLAY_SAME)
		return;
	replay->changed++;
	group = replay_group_of(replay, outcome, &target);
	if (group == NULL) {
		replay->untold++;
		return;
	}
	group->judgement = judgement;
	history_count(&group->count, row->count);
	if (row->ts_us < group->first_us)
		group->first_us = row->ts_us;
	if (last_us > group->last_us)
		group->last_us = last_us;
}

/* "allow x (task.yaml:3)", or why without a rule. A name that a rule allows and nothing proves has none. */
static void
replay_rule_text(const struct snapshot *policy, const struct judgement *judgement, char *ret_text, size_t size)
{
	if (judgement->learned)
		snprintf(ret_text, size, "mode: learn");
	else if (judgement->rule == SNAPSHOT_NO_RULE || judgement->reason == REASON_SNI_MISMATCH ||
	    judgement->reason == REASON_HOST_MISMATCH)
		snprintf(ret_text, size, "%s", reason_sentence(judgement->reason));
	else
		snprintf(ret_text, size, "%s%s (%s)", judgement->reason == REASON_EXPIRED ? "past its end: " : "",
		    snapshot_rule_text(policy, judgement->rule), snapshot_rule_origin(policy, judgement->rule));
}

/* Where the printed groups go: rows of a table, or members of two JSON arrays. */
struct replay_report {
	const struct replay_tally *replay;
	struct table *table;
	json_t *breaks, *opens;
};

static void
replay_report_group(const void *node, VISIT visit, void *context)
{
	const struct replay_group *group = *(const struct replay_group *const *)node;
	struct replay_report *report = context;
	bool breaks = group->outcome == REPLAY_BREAKS;
	char rule[RULE_TEXT_MAX + RULE_ORIGIN_MAX + 32], first[40], last[40];

	if (visit != postorder && visit != leaf)
		return;
	replay_rule_text(report->replay->policy, &group->judgement, rule, sizeof(rule));
	render_time_utc(group->first_us, first);
	render_time_utc(group->last_us, last);
	if (report->table != NULL) {
		table_add_row(report->table, breaks ? "breaks" : "opens", group->target);
		table_add_number(report->table, group->count);
		table_add_row(report->table, first, last, rule);
		return;
	}
	json_array_append_new(breaks ? report->breaks : report->opens,
	    json_pack("{s:s, s:I, s:s, s:s, s:s, s:s}", "target", group->target, "count", (json_int_t)group->count,
		"first", first, "last", last, "reason", reason_text(group->judgement.reason), "rule", rule));
}

static void
replay_print_json(const struct replay_tally *replay)
{
	struct replay_report report = {.replay = replay, .breaks = json_array(), .opens = json_array()};
	json_t *left_out = json_object(), *all;

	twalk_r(replay->groups, replay_report_group, &report);
	for (unsigned int reason = 0; reason < REASON_MAX; reason++)
		if (replay->left_out[reason] > 0)
			json_object_set_new(left_out, reason_text(reason), json_integer(replay->left_out[reason]));
	if (replay->nameless > 0)
		json_object_set_new(left_out, "nameless", json_integer(replay->nameless));
	all = json_pack("{s:I, s:o, s:o, s:o, s:I}", "judged", (json_int_t)replay->judged, "left_out", left_out,
	    "breaks", report.breaks, "opens", report.opens, "untold", (json_int_t)replay->untold);
	command_print_json(all);
	json_decref(all);
}

static void
replay_print_text(const struct replay_tally *replay)
{
	static const char *const headings[] = {"CHANGE", "TARGET", "COUNT", "FIRST", "LAST", "RULE"};
	const char *lead = "; left out, as no rule changes them: ";
	struct table table;
	struct replay_report report = {.replay = replay, .table = &table};

	table_init(&table, sizeof(headings) / sizeof(headings[0]), replay->changed == 0 ? NULL : headings);
	if (replay->changed == 0)
		printf("nothing would change\n");
	twalk_r(replay->groups, replay_report_group, &report);
	table_print(&table, stdout, "");
	if (replay->untold > 0)
		printf("and %" PRId64 " more, at other targets\n", replay->untold);
	printf("%" PRId64 " records judged", replay->judged);
	for (unsigned int reason = 0; reason < REASON_MAX; reason++) {
		if (replay->left_out[reason] == 0)
			continue;
		printf("%s%s %" PRId64, lead, reason_text(reason), replay->left_out[reason]);
		lead = ", ";
	}
	if (replay->nameless > 0)
		printf("%snot nameable %" PRId64, lead, replay->nameless);
	printf("\n");
}

/* -- the layers below and above the file -------------------------------------------------------------------------- */

static struct {
	const char *db, *organisation;
	struct history_source source;
} replay = {.source.since_us = HISTORY_SINCE_NONE};

static const struct args_option replay_options[] = {
    {0, "sandbox", "NAME", "whose record; needed", .text = &replay.source.sandbox},
    COMMAND_TIME("since", "from then on (7d)", &replay.source.since_us),
    COMMAND_DB(&replay.db),
    {0, "organisation", "FILE", "the organisation's policy below it (default: posternd's default)",
	.text = &replay.organisation},
    {0},
};

struct replay_layers {
	struct policy organisation, edits;
	bool has_organisation, has_edits;
};

/* The organisation's policy: --organisation; else posternd's default when that exists. */
static int
replay_read_organisation(struct replay_layers *layers, struct error *err)
{
	const char *path = replay.organisation == NULL ? POLICY_ORGANISATION_DEFAULT : replay.organisation;

	if (replay.organisation == NULL && access(path, F_OK) < 0)
		return 0;
	if (policy_file_read(path, &layers->organisation, err) < 0)
		return error_prefix(err, "the organisation's policy");
	layers->has_organisation = true;
	return 0;
}

/* Live edits, which stay when the file is applied: posternd has them. A sandbox that is gone has none. */
static int
replay_read_edits(struct replay_layers *layers, struct error *err)
{
	const char *edits;
	json_t *answer;
	int rc = 0;

	if (client_sandbox("GET", replay.source.sandbox, "", NULL, &answer, err) < 0) {
		if (err->code == ERROR_USAGE)
			return -1;
		if (err->code != ERROR_NOT_FOUND)
			command_warn("live edits are not taken into account: %s", err->text);
		return 0;
	}
	edits = json_string_value(json_object_get(answer, "edits"));
	if (edits != NULL)
		rc = policy_parse(edits, strlen(edits), "live edits", &layers->edits, err);
	layers->has_edits = edits != NULL && rc == 0;
	json_decref(answer);
	return rc;
}

static int
replay_judge(const struct command *command, const struct replay_layers *layers, struct error *err)
{
	struct replay_tally tally = {.policy = policy_compile_between(command->operands.items[0],
					 layers->has_organisation ? &layers->organisation : NULL,
					 layers->has_edits ? &layers->edits : NULL, NULL, err),
	    .now_us = clock_real_us()};
	int rc = tally.policy == NULL ? -1 : history_read(&replay.source, replay_handle_row, &tally, err);

	if (rc == 0 && tally.no_memory)
		rc = error_set(err, ERROR_SYSTEM, "out of memory");
	if (rc == 0 && tally.placeless > 0)
		command_warn("country and asn rules are not taken into account for %" PRId64
			     " attempts whose place is not on record",
		    tally.placeless);
	if (rc == 0 && command->json)
		replay_print_json(&tally);
	else if (rc == 0)
		replay_print_text(&tally);
	tdestroy(tally.groups, free);
	snapshot_free(tally.policy);
	return rc < 0 ? -1 : tally.changed > 0;
}

static int
replay_run(const struct command *command, struct error *err)
{
	struct replay_layers layers = {.has_edits = false};
	int rc;

	if (replay.source.sandbox == NULL)
		return command_usage(err, "missing option: --sandbox NAME");
	history_source_finish(&replay.source, replay.db, REPLAY_SINCE_S);
	/* A database from elsewhere (--db) is not about this host's daemon and organisation. */
	rc = replay.organisation != NULL || replay.db == NULL ? replay_read_organisation(&layers, err) : 0;
	if (rc == 0 && replay.db == NULL)
		rc = replay_read_edits(&layers, err);
	if (rc == 0)
		rc = replay_judge(command, &layers, err);
	policy_free(&layers.organisation);
	policy_free(&layers.edits);
	return rc;
}

const struct command_row replay_command = {
    .name = "policy replay",
    .operands = "FILE",
    .summary = "Judge a sandbox's record by a policy file. Exit 1: something would change.",
    .syntax = {.groups = {replay_options, command_output, command_daemon}},
    .run = replay_run,
};
