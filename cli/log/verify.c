/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern verify: is the log what was written? */
#include "audit/show/render.h"
#include "audit/seal/verify.h"
#include "base/clock.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/log/verify_input.h"
#include "cli/progress.h"
#include "cli/when.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gaps listed one by one. */
#define VERIFY_GAPS_MAX 20

static struct {
	const char *db, *seals;
	struct args_list keys;
	struct seal_key parsed_keys[VERIFY_KEYS_MAX];
	struct verify_note *notes;
	struct verify_options options;
	json_t *gaps; /* the first VERIFY_GAPS_MAX */
} given;

static void
verify_note_gap(const struct verify_gap *gap, void *context)
{
	char when[40], safe[RECORD_DETAIL_MAX * 4];

	(void)context;
	if (json_array_size(given.gaps) == VERIFY_GAPS_MAX)
		return;
	escape_terminal(gap->detail, strlen(gap->detail), safe, sizeof(safe));
	json_array_append_new(given.gaps,
	    json_pack("{s:s, s:s, s:s}", "time", render_time_utc(gap->ts_us, when), "event",
		record_event_text(gap->kind), "detail", safe));
}

/* A number alone is a seq. */
static int
verify_parse_since(const struct args_option *option, const char *text, struct error *err)
{
	char *end;

	(void)option;
	if (*text == '\0' || strspn(text, "0123456789") != strlen(text))
		return when_parse(text, clock_real_us(), &given.options.since_us, err);
	given.options.since_seq = strtoll(text, &end, 10);
	return given.options.since_seq > 0 ? 0 : error_set(err, ERROR_USAGE, "numbers begin with 1");
}

static const struct args_option verify_command_options[] = {
    {0, "since", "TIME|SEQ", "begin with the newest seal before: 2h, 2026-11-29T20:31:00Z, or a number",
	.parse = verify_parse_since},
    {0, "key", "FILE|LINE", "a trusted verifier key, or a file of them; may be repeated (default: the keys in the log)",
	.list = &given.keys},
    {0, "seals", "FILE", "seals exported earlier, which must be in the log unchanged (-: standard input)",
	.text = &given.seals},
    {0, "sandbox", "NAME", "add up the accounts of this sandbox only", .text = &given.options.sandbox},
    COMMAND_DB(&given.db),
    {0},
};

static int
verify_set(struct error *err)
{
	for (size_t i = 0; i < given.keys.count; i++)
		if (verify_input_key(given.keys.items[i], given.parsed_keys, &given.options.key_count, err) < 0)
			return error_prefix(err, "--key");
	if (given.seals != NULL && verify_input_notes(given.seals, &given.notes, &given.options.note_count, err) < 0)
		return error_prefix(err, "--seals");
	given.db = command_db(given.db);
	given.options.keys = given.parsed_keys;
	given.options.notes = given.notes;
	given.options.progress_handler = progress_show;
	given.options.gap_handler = verify_note_gap;
	given.gaps = json_array();
	return given.gaps != NULL ? 0 : error_set(err, ERROR_SYSTEM, "out of memory");
}

static json_t *
verify_json(const struct verify_result *result)
{
	const struct verify_finding *first = &result->first;
	const struct seal *newest = &result->newest;
	json_t *rows = json_object(), *faults = json_object(), *seal = json_null(), *json;
	char when[40], text[24];

	for (unsigned int i = 1; i < COLUMNS_TABLE_MAX; i++)
		json_object_set_new(rows, columns_table_name(i), json_integer((json_int_t)result->rows[i]));
	for (unsigned int i = 0; i < VERIFY_FAULT_MAX; i++)
		if (result->faults[i] > 0)
			json_object_set_new(faults, verify_fault_text((enum verify_fault)i),
			    json_integer((json_int_t)result->faults[i]));
	snprintf(text, sizeof(text), "%08x", newest->key_id);
	if (newest->n != 0)
		seal = json_pack("{s:I, s:I, s:s, s:s}", "n", (json_int_t)newest->n, "last_seq",
		    (json_int_t)newest->last_seq, "time", render_time_utc(newest->ts_us, when), "key", text);
	json =
	    json_pack("{s:b, s:s, s:b, s:I, s:I, s:I, s:o, s:I, s:I, s:o, s:{s:I, s:I}, s:{s:I, s:I, s:I}, s:I, s:O, "
		      "s:I, s:o}",
		"ok", result->fault_count == 0, "log_id", result->log_id, "key_pinned", result->pinned, "from_seq",
		(json_int_t)result->from_seq, "pruned_through", (json_int_t)result->pruned_through, "seals",
		(json_int_t)result->seals, "newest_seal", seal, "links", (json_int_t)result->links, "links_unsealed",
		(json_int_t)result->unsealed, "rows", rows, "seals_elsewhere", "matched",
		(json_int_t)result->notes_matched, "of_other_logs", (json_int_t)result->notes_of_others, "accounts",
		"add_up", (json_int_t)result->accounts, "of_dropped_records", (json_int_t)result->accounts_pruned,
		"left_out", (json_int_t)result->accounts_left_out, "gap_count", (json_int_t)result->gaps, "gaps",
		given.gaps, "fault_count", (json_int_t)result->fault_count, "faults", faults);
	if (result->fault_count == 0)
		return json;
	json_object_set_new(json, "first",
	    json_pack("{s:s, s:I, s:s}", "fault", verify_fault_text(first->fault), "seq", (json_int_t)first->seq,
		"text", first->text));
	snprintf(text, sizeof(text), "%016" PRIx64, (uint64_t)first->id);
	if (first->table != 0)
		json_object_update_new(json_object_get(json, "first"),
		    json_pack("{s:s, s:s}", "table", columns_table_name(first->table), "id", text));
	return json;
}

static void
verify_print_seals(const struct verify_result *result)
{
	double age_s = (double)(clock_real_us() - result->newest.ts_us) / 1e6;
	char when[40];

	printf("seals      %" PRIu64, result->seals);
	if (result->newest.n > 0)
		printf(", the newest is %lld of %s, key %08x", (long long)result->newest.n,
		    render_time_utc(result->newest.ts_us, when), result->newest.key_id);
	printf("\nlinks      %" PRIu64, result->links);
	if (result->unsealed > 0 && result->newest.n > 0)
		printf(", %" PRIu64 " of them not sealed yet (the newest seal is %.0f s old)", result->unsealed, age_s);
	else if (result->unsealed > 0)
		printf(", none of them sealed yet");
	if (result->from_seq > 0)
		printf(", from number %lld on", (long long)result->from_seq + 1);
	printf("\n");
}

static void
verify_print_faults(const struct verify_result *result)
{
	const struct verify_finding *first = &result->first;
	const char *separator = "";

	printf("FIRST BAD RECORD: ");
	if (first->table != 0)
		printf("%s %016" PRIx64 ", number %lld, ", columns_table_name(first->table), (uint64_t)first->id,
		    (long long)first->seq);
	printf("%s (%s)\n", first->text, verify_fault_text(first->fault));
	printf("BROKEN: %" PRIu64 " fault%s: ", result->fault_count, result->fault_count == 1 ? "" : "s");
	for (unsigned int i = 0; i < VERIFY_FAULT_MAX; i++) {
		if (result->faults[i] == 0)
			continue;
		printf("%s%" PRIu64 " %s", separator, result->faults[i], verify_fault_text((enum verify_fault)i));
		separator = ", ";
	}
	printf("\n");
}

static void
verify_print_text(const struct verify_result *result)
{
	uint64_t gaps = json_array_size(given.gaps);
	json_t *gap;
	size_t at;

	printf("log        %s, %s\n", result->log_id, given.db);
	verify_print_seals(result);
	printf("rows       ");
	for (unsigned int i = 1; i < COLUMNS_TABLE_MAX; i++)
		printf("%s%" PRIu64 " in %s", i == 1 ? "" : ", ", result->rows[i], columns_table_name(i));
	printf("\n");
	if (result->pruned_through > 0)
		printf("dropped    up to number %lld\n", (long long)result->pruned_through);
	if (result->accounts + result->accounts_pruned + result->accounts_left_out > 0) {
		printf("accounts   %" PRIu64 " add up", result->accounts);
		if (result->accounts_pruned > 0)
			printf("; %" PRIu64 " not checked: records of their sandboxes were dropped",
			    result->accounts_pruned);
		if (result->accounts_left_out > 0)
			printf("; %" PRIu64 " not checked: too many", result->accounts_left_out);
		printf("\n");
	}
	if (given.options.note_count > 0)
		printf("elsewhere  %" PRIu64 " seals taken elsewhere are here as they were; %" PRIu64
		       " are of other logs\n",
		    result->notes_matched, result->notes_of_others);
	json_array_foreach(given.gaps, at, gap) printf("gap        %s %s %s\n", command_text(gap, "time"),
	    command_text(gap, "event"), command_text(gap, "detail"));
	if (result->gaps > gaps)
		printf("gap        and %" PRIu64 " more\n", result->gaps - gaps);
	if (!result->pinned)
		printf(
		    "key        not pinned: trusting the key in the file; take it elsewhere and name it with --key\n");
	if (result->fault_count > 0)
		verify_print_faults(result);
	else
		printf("OK: nothing was changed, removed, inserted, reordered or cut off\n");
}

static int
verify_run_command(const struct command *command, struct error *err)
{
	static struct verify_result result; /* large */
	struct progress progress;
	int rc = verify_set(err);

	given.options.context = &progress;
	progress_start(&progress);
	if (rc == 0)
		rc = verify_run(given.db, &given.options, &result, err);
	progress_end(&progress);
	if (rc == 0 && command->json)
		command_print(command, verify_json(&result), NULL);
	else if (rc == 0)
		verify_print_text(&result);
	free(given.notes);
	json_decref(given.gaps);
	return rc < 0 ? -1 : result.fault_count > 0;
}

const struct command_row verify_command = {
    .name = "verify",
    .operands = "",
    .summary = "Was anything in the log changed, removed, inserted or cut off? Exit 1: yes, and what first.",
    .page = "postern-verify(1)",
    .syntax = {.groups = {verify_command_options, command_output, command_daemon}},
    .run = verify_run_command,
};
