/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern seal: take the signed heads of the log, and the key that they are signed with, elsewhere. */
#include "audit/query/open.h"
#include "audit/show/render.h"
#include "audit/store/schema.h"
#include "audit/seal/seal_table.h"
#include "audit/seal/verify.h"
#include "cli/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Between looks for new seals; there is at most one each few seconds. */
#define SEAL_FOLLOW_MS 500

static struct {
	const char *db;
	bool follow, since;
	int64_t after; /* seals up to this number were printed, or are not asked for */
	bool json, printed;
} s;

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
seal_print(const struct seal *seal, const char *log_id)
{
	char note[SEAL_NOTE_MAX];

	seal_note(seal, log_id, note);
	if (s.json)
		seal_print_json(seal, log_id, note);
	else
		printf("%s%s", s.printed ? "\n" : "", note);
	s.printed = true;
}

/* All that are new. A damaged one is passed over: verify tells. */
static int
seal_export_new(const struct open_file *file, struct error *err)
{
	char log_id[SEAL_LOG_ID_MAX];
	sqlite3_stmt *next;
	struct seal seal;
	bool whole;
	int rc = seal_table_log_id(file->db, log_id);

	if (rc == SQLITE_OK)
		rc = seal_table_prepare(file->db, &next);
	if (rc == SQLITE_CORRUPT)
		return error_set(err, ERROR_CORRUPT, "%s has lost its log_id", file->path);
	if (rc != SQLITE_OK)
		return schema_error(err, file->db, file->path);
	while ((rc = seal_table_next(next, s.after, &seal, &whole)) == SQLITE_ROW) {
		s.after = seal.n;
		if (whole)
			seal_print(&seal, log_id);
	}
	sqlite3_finalize(next);
	if (rc != SQLITE_DONE)
		return schema_error(err, file->db, file->path);
	if (fflush(stdout) != 0 || ferror(stdout))
		return error_set(err, ERROR_SYSTEM, "cannot write the output");
	return 0;
}

/* Another file took the place of this one, or it is one that has to be opened anew to see what is new. */
static int
seal_reopen(struct open_file *file, struct error *err)
{
	struct open_file fresh;

	if (open_read_only(&fresh, s.db, err) < 0)
		return err->code == ERROR_NOT_FOUND || err->code == ERROR_CORRUPT ? 0 : -1;
	if (fresh.file.st_ino != file->file.st_ino || fresh.file.st_dev != file->file.st_dev)
		s.after = 0;
	open_close(file);
	*file = fresh;
	return 0;
}

static int
seal_follow(struct open_file *file, struct error *err)
{
	const struct timespec pause = {.tv_nsec = SEAL_FOLLOW_MS * 1000000L};

	for (;;) {
		nanosleep(&pause, NULL);
		if (open_is_stale(file) && seal_reopen(file, err) < 0)
			return -1;
		if (seal_export_new(file, err) < 0)
			return -1;
	}
}

static int
seal_parse_since(const struct args_option *option, const char *text, struct error *err)
{
	char *end;
	long long n = strtoll(text, &end, 10);

	(void)option;
	if (*text == '\0' || *end != '\0' || n < 1)
		return error_set(err, ERROR_USAGE, "not the number of a seal");
	s.after = n - 1;
	s.since = true;
	return 0;
}

static const struct args_option seal_options[] = {
    {0, "since", "N", "export: seals from number N on", .parse = seal_parse_since},
    {'f', "follow", NULL, "export: wait for more", .flag = &s.follow},
    COMMAND_DB(&s.db),
    {0},
};

static int
seal_export(struct error *err)
{
	struct open_file file;
	int rc;

	if (open_read_only(&file, s.db, err) < 0)
		return -1;
	rc = seal_export_new(&file, err);
	if (rc == 0 && s.follow)
		rc = seal_follow(&file, err);
	open_close(&file);
	return rc;
}

static void
seal_print_keys(const struct seal_key *keys, size_t count)
{
	json_t *json = json_array();
	char text[SEAL_KEY_TEXT_MAX];

	for (size_t i = 0; i < count; i++) {
		seal_key_text(&keys[i], text);
		if (s.json)
			json_array_append_new(json, json_string(text));
		else
			printf("%s\n", text);
	}
	if (s.json)
		command_print_json(json);
	json_decref(json);
}

static int
seal_show_keys(struct error *err)
{
	struct seal_key keys[VERIFY_KEYS_MAX];
	struct open_file file;
	size_t count;
	int rc;

	if (s.follow || s.since)
		return command_usage(err, "--since and --follow are for seal export");
	if (open_read_only(&file, s.db, err) < 0)
		return -1;
	rc = seal_table_keys(file.db, keys, VERIFY_KEYS_MAX, &count);
	if (rc != SQLITE_OK)
		rc = schema_error(err, file.db, s.db);
	else if (count == 0)
		rc = error_set(err, ERROR_NOT_FOUND, "%s has no seals yet", s.db);
	open_close(&file);
	if (rc == 0)
		seal_print_keys(keys, count);
	return rc;
}

static int
seal_run(const struct command *command, struct error *err)
{
	const char *what = command->operands.items[0];

	s.db = command_db(s.db);
	s.json = command->json;
	if (strcmp(what, "export") == 0)
		return seal_export(err);
	if (strcmp(what, "key") == 0)
		return seal_show_keys(err);
	return command_usage(err, "%.40s: not one of export, key", what);
}

const struct command_row seal_command = {
    .name = "seal",
    .operands = "export|key",
    .summary = "Print the log's signed seals, or the key that verifies them, to be kept elsewhere.",
    .page = "postern-verify(1)",
    .syntax = {.groups = {seal_options, command_output, command_daemon}},
    .run = seal_run,
};
