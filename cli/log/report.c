/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern report: one sandbox's log as one page to look at. */
#include "audit/query/open.h"
#include "audit/show/render.h"
#include "audit/show/report.h"
#include "audit/seal/verify.h"
#include "base/clock.h"
#include "base/paths.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/policy/policy_effective.h"
#include "cli/progress.h"
#include "cli/when.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct report_words {
	const char *output, *since, *until, *db, *id;
	bool unverified;
};

/* Room for what verifying came to. */
#define REPORT_VERDICT_MAX 512

static int
report_read_words(
    const struct report_words *words, const struct command *command, struct report_options *options, struct error *err)
{
	char *end;

	options->now_us = clock_real_us();
	if (words->since != NULL && when_parse(words->since, options->now_us, &options->since_us, err) < 0)
		return error_prefix(err, "--since");
	if (words->until != NULL && when_parse(words->until, options->now_us, &options->until_us, err) < 0)
		return error_prefix(err, "--until");
	if (words->id != NULL) {
		options->sandbox_id = strtoll(words->id, &end, 10);
		if (*end != '\0' || options->sandbox_id <= 0)
			return error_set(
			    err, ERROR_USAGE, "--id %s: give the number that postern log -o json shows", words->id);
	}
	if (command->words.count > 0)
		options->sandbox = command->words.items[0];
	if (options->sandbox == NULL && options->sandbox_id == 0)
		return error_set(err, ERROR_USAGE, "say which sandbox: NAME, or --id");
	return 0;
}

/* What the daemon says is in force: text that the caller frees, or NULL and why. Only of the log that is the daemon's
 * own. */
static char *
report_policy_text(const struct report_options *options, int64_t *ret_id, const char **ret_why)
{
	char path[CLIENT_PATH_MAX], *text = NULL;
	struct error err;
	json_t *answer;
	size_t size;
	FILE *memory;

	*ret_why = "The sandbox is not attached now. The events tell which policy was in force when.";
	if (options->sandbox == NULL || client_sandbox_path(options->sandbox, "", path, &err) < 0)
		return NULL;
	if (client_request("GET", path, NULL, &answer, &err) < 0) {
		if (err.code != ERROR_NOT_FOUND)
			*ret_why = "posternd could not be asked. The events tell which policy was in force when.";
		return NULL;
	}
	*ret_id = json_integer_value(json_object_get(answer, "id"));
	memory = open_memstream(&text, &size);
	if (memory != NULL) {
		policy_effective_print(memory, answer);
		fclose(memory);
	}
	json_decref(answer);
	return text;
}

static void
report_show_progress(uint64_t done, uint64_t total, void *context)
{
	progress_show(context, done, total);
}

/* The sentence about the log's state from the newest seal before since_us on: of all of it, not of one sandbox's part.
 * Returns whether it is a good one. */
static bool
report_verify(const char *path, int64_t since_us, char ret_text[REPORT_VERDICT_MAX])
{
	static struct verify_result result;
	struct progress progress;
	const struct verify_options options = {
	    .since_us = since_us, .progress_handler = report_show_progress, .context = &progress};
	char from[40], since[96] = "";
	struct error err;
	int rc;

	progress_start(&progress);
	rc = verify_run(path, &options, &result, &err);
	progress_end(&progress);
	if (rc < 0) {
		snprintf(ret_text, REPORT_VERDICT_MAX, "%.500s", err.text);
		return false;
	}
	if (result.fault_count > 0) {
		snprintf(ret_text, REPORT_VERDICT_MAX, "%llu faults in the log; the first: %s: %.200s",
		    (unsigned long long)result.fault_count, verify_fault_text(result.first.fault), result.first.text);
		return false;
	}
	if (result.from_us != 0)
		snprintf(since, sizeof(since), " since %s, the newest seal before what is on this page",
		    render_time_utc(result.from_us, from));
	snprintf(ret_text, REPORT_VERDICT_MAX,
	    "%llu changes of the log and %llu seals fit each other%s, with the keys in the log; %llu of the changes "
	    "are "
	    "too new to be sealed. %llu accounts of gateways add up. Marked gaps: %llu.",
	    (unsigned long long)result.links, (unsigned long long)result.seals, since,
	    (unsigned long long)result.unsealed, (unsigned long long)result.accounts, (unsigned long long)result.gaps);
	return true;
}

static int
report_write_whole(FILE *out, const char *path, sqlite3 *db, const struct report_options *options, struct error *err)
{
	if (report_write(out, db, options, err) < 0)
		return -1;
	if (fflush(out) != 0 || ferror(out))
		return error_sys(err, errno, "%s cannot be written", path);
	return 0;
}

/* A device or a pipe is written to: it must not be put aside for a file. */
static int
report_write_special(const char *path, sqlite3 *db, const struct report_options *options, struct error *err)
{
	FILE *out = fopen(path, "we");
	int rc;

	if (out == NULL)
		return error_sys(err, errno, "%s cannot be opened", path);
	rc = report_write_whole(out, path, db, options, err);
	fclose(out);
	return rc;
}

/* With the mode that any new file gets: it is no secret of who makes it. */
static FILE *
report_open_draft(char draft[PATH_MAX])
{
	int fd = mkostemp(draft, O_CLOEXEC);
	mode_t mask = umask(0);
	FILE *out;

	umask(mask);
	if (fd < 0)
		return NULL;
	out = fchmod(fd, 0666 & ~mask) < 0 ? NULL : fdopen(fd, "w");
	if (out == NULL) {
		close(fd);
		unlink(draft);
	}
	return out;
}

/* A file is complete or not there: it is written beside and renamed. */
static int
report_write_file(const char *path, sqlite3 *db, const struct report_options *options, struct error *err)
{
	char draft[PATH_MAX];
	struct stat st;
	FILE *out;
	int rc;

	if (stat(path, &st) == 0 && !S_ISREG(st.st_mode))
		return report_write_special(path, db, options, err);
	if (snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= (int)sizeof(draft))
		return error_sys(err, ENAMETOOLONG, "%s", path);
	out = report_open_draft(draft);
	if (out == NULL)
		return error_sys(err, errno, "%s cannot be made", path);
	rc = report_write_whole(out, path, db, options, err);
	fclose(out);
	if (rc == 0 && rename(draft, path) < 0)
		rc = error_sys(err, errno, "%s cannot be written", path);
	if (rc < 0)
		unlink(draft);
	return rc;
}

static int
report_run(const struct report_words *words, struct report_options *options, struct error *err)
{
	char own[PATH_MAX], verdict[REPORT_VERDICT_MAX];
	const char *path = words->db != NULL ? words->db : own;
	struct open_file file = {.db = NULL};
	int64_t attached_us;
	int rc;

	snprintf(own, sizeof(own), "%s/audit/audit.db", paths_state_dir());
	if (open_read_only(&file, path, err) < 0)
		return -1;
	/* Who is not there is said to be before the log is gone through. */
	rc = report_find(file.db, options, &options->sandbox_id, &attached_us, err);
	if (rc == 0 && !words->unverified) {
		options->verified =
		    report_verify(path, options->since_us > attached_us ? options->since_us : attached_us, verdict);
		options->verdict = verdict;
	}
	if (rc == 0 && (words->output == NULL || strcmp(words->output, "-") == 0))
		rc = report_write_whole(stdout, "standard output", file.db, options, err);
	else if (rc == 0)
		rc = report_write_file(words->output, file.db, options, err);
	open_close(&file);
	return rc;
}

int
cli_report(int argc, char **argv)
{
	struct report_words words = {.output = NULL};
	const struct args_option own[] = {
	    {'o', "output", "FILE", "write the page to this file (default: standard output)", NULL, &words.output,
		NULL},
	    {0, "since", "TIME", "only from then on: 2h, 7d ago, or 2026-11-29T20:31:00Z", NULL, &words.since, NULL},
	    {0, "until", "TIME", "only before then", NULL, &words.until, NULL},
	    {0, "id", "ID", "the sandbox with this id, of several that had the name", NULL, &words.id, NULL},
	    {0, "db", "FILE", "read this database", NULL, &words.db, NULL},
	    {0, "no-verify", NULL, "do not verify the log first, which takes its time for a long one",
		&words.unverified, NULL, NULL},
	};
	static struct command command;
	struct report_options options = {.now_us = 0};
	int status = command_parse(argc, argv, own, sizeof(own) / sizeof(own[0]), 0, 1, &command);
	char *policy = NULL;
	struct error err;
	int rc;

	if (status >= 0)
		return status;
	if (report_read_words(&words, &command, &options, &err) < 0)
		return command_fail(&err);
	options.policy_why = "This log was read from a file; the policy is known where the sandbox is attached.";
	if (words.db == NULL)
		policy = report_policy_text(&options, &options.policy_id, &options.policy_why);
	options.policy = policy;
	rc = report_run(&words, &options, &err);
	free(policy);
	return rc == 0 ? 0 : command_fail(&err);
}
