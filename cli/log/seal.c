/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern seal: print the signed heads of the log, and the keys that verify them. */
#include "audit/query/seals.h"
#include "audit/seal/verify.h"
#include "audit/show/render.h"
#include "cli/commands.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

/* Between readings with --follow; there is at most one seal each few seconds. */
#define SEAL_FOLLOW_MS 500

static struct {
	const char *db;
	bool follow;
	int64_t since; /* the number of a seal; 0: all */
	bool json, printed;
} given;

static void
seal_print_json(const struct seal *seal, const char *log_id, const char *note)
{
	char when[40], key[16];
	json_t *json;

	snprintf(key, sizeof(key), "%08x", seal->key_id);
	json = json_pack("{s:I, s:s, s:I, s:I, s:s, s:s, s:s}", "n", (json_int_t)seal->n, "log_id", log_id, "first_seq",
	    (json_int_t)seal->first_seq, "last_seq", (json_int_t)seal->last_seq, "time",
	    render_time_utc(seal->ts_us, when), "key", key, "note", note);
	json_dumpf(json, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(json);
}

static void
seal_print(const struct seal *seal, const char *log_id, void *context)
{
	char note[SEAL_NOTE_MAX];

	(void)context;
	seal_note(seal, log_id, note);
	if (given.json)
		seal_print_json(seal, log_id, note);
	else
		printf("%s%s", given.printed ? "\n" : "", note);
	given.printed = true;
}

static const struct args_option seal_options[] = {
    {0, "since", "N", "export: seals from number N on", .parse = command_parse_number, .target = &given.since, .min = 1,
	.max = INT64_MAX},
    {'f', "follow", NULL, "export: wait for more", .flag = &given.follow},
    COMMAND_DB(&given.db),
    {0},
};

static int
seal_export(struct seals *seals, struct error *err)
{
	const struct timespec pause = {.tv_nsec = SEAL_FOLLOW_MS * 1000000L};

	for (;;) {
		if (seals_read(seals, seal_print, NULL, err) < 0 || command_flush(err) < 0)
			return -1;
		if (!given.follow)
			return 0;
		nanosleep(&pause, NULL);
	}
}

static int
seal_print_keys(const struct command *command, struct seals *seals, struct error *err)
{
	struct seal_key keys[VERIFY_KEYS_MAX];
	char text[SEAL_KEY_TEXT_MAX];
	json_t *json;
	size_t count;

	if (seals_keys(seals, keys, VERIFY_KEYS_MAX, &count, err) < 0)
		return -1;
	json = json_array();
	for (size_t i = 0; i < count; i++) {
		seal_key_text(&keys[i], text);
		json_array_append_new(json, json_string(text));
		if (!command->json)
			printf("%s\n", text);
	}
	return command_print(command, json, NULL);
}

static int
seal_run(const struct command *command, struct error *err)
{
	bool key = strcmp(command->operands.items[0], "key") == 0;
	struct seals *seals;
	int rc;

	given.json = command->json;
	if (!key && strcmp(command->operands.items[0], "export") != 0)
		return command_usage(err, "%.40s: not one of export, key", command->operands.items[0]);
	if (key && (given.follow || given.since != 0))
		return command_usage(err, "--since and --follow are for seal export");
	seals = seals_open(command_db(given.db), given.since == 0 ? 0 : given.since - 1, err);
	if (seals == NULL)
		return -1;
	rc = key ? seal_print_keys(command, seals, err) : seal_export(seals, err);
	seals_close(seals);
	return rc;
}

const struct command_row seal_command = {
    .name = "seal",
    .operands = "export|key",
    .summary = "Print the log's signed seals, or the key that verifies them, to be kept elsewhere.",
    .page = "postern-verify(1)",
    .syntax = {.groups = {seal_options, command_output, command_daemon}},
    .run = seal_run,
};
