/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern report: one sandbox's log as one page. */
#include "audit/query/open.h"
#include "audit/seal/verify.h"
#include "audit/show/render.h"
#include "audit/show/report.h"
#include "base/clock.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/policy/policy_effective.h"
#include "cli/progress.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct {
	const char *output, *db;
	bool unverified;
	struct report_options options;
} report;

/* The result of verifying, a sentence. */
#define REPORT_VERDICT_MAX 512

static const struct args_option report_command_options[] = {
    {'o', "output", "FILE", "write the page to this file (default: standard output)", .text = &report.output},
    COMMAND_TIME("since", "only from then on: 2h, 7d ago, or 2026-11-29T20:31:00Z", &report.options.since_us),
    COMMAND_TIME("until", "only before then", &report.options.until_us),
    {0, "id", "ID", "the sandbox with this id, of several that had the name", .parse = command_parse_number,
	.target = &report.options.sandbox_id, .min = 1, .max = INT64_MAX},
    COMMAND_DB(&report.db),
    {0, "no-verify", NULL, "do not verify the log first, which takes long for a long one", .flag = &report.unverified},
    {0},
};

/* The policy in force that the daemon reports: text that the caller frees, or NULL and why. Only for the log of this
 * daemon. */
static char *
report_policy_text(struct report_options *options)
{
	char *text = NULL;
	struct error err;
	json_t *answer;
	size_t size;
	FILE *memory;

	options->policy_why = "The sandbox is not attached now. The events tell which policy was in force when.";
	if (options->sandbox == NULL)
		return NULL;
	if (client_sandbox("GET", options->sandbox, "", NULL, &answer, &err) < 0) {
		if (err.code != ERROR_NOT_FOUND && err.code != ERROR_USAGE)
			options->policy_why =
			    "posternd did not answer. The events tell which policy was in force when.";
		return NULL;
	}
	options->policy_id = command_number(answer, "id");
	memory = open_memstream(&text, &size);
	if (memory != NULL) {
		policy_effective_print(memory, answer);
		fclose(memory);
	}
	json_decref(answer);
	return text;
}

/* Verifies the whole log (not one sandbox's part) from the newest seal before since_us on; writes the result as a
 * sentence. Returns whether no fault was found. */
static bool
report_verify(const char *path, int64_t since_us, char ret_text[REPORT_VERDICT_MAX])
{
	static struct verify_result result;
	struct progress progress;
	const struct verify_options options = {
	    .since_us = since_us, .progress_handler = progress_show, .context = &progress};
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

/* Writes the page and checks that all of it was written. */
static int
report_write_page(FILE *out, const char *path, const struct open_file *file, struct error *err)
{
	if (report_write(out, file->db, &report.options, err) < 0)
		return -1;
	if (fflush(out) != 0 || ferror(out))
		return error_sys(err, errno, "%s cannot be written", path);
	return 0;
}

/* With the mode of any new file: the page is no secret of its maker. */
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

/* A file is complete or not there: it is written beside and renamed. A device or a pipe is written to. */
static int
report_write_file(const char *path, const struct open_file *file, struct error *err)
{
	char draft[PATH_MAX];
	struct stat st;
	bool special = stat(path, &st) == 0 && !S_ISREG(st.st_mode);
	FILE *out;
	int rc;

	if (snprintf(draft, sizeof(draft), "%s.XXXXXX", path) >= (int)sizeof(draft))
		return error_sys(err, ENAMETOOLONG, "%s", path);
	out = special ? fopen(path, "we") : report_open_draft(draft);
	if (out == NULL)
		return error_sys(err, errno, "%s cannot be %s", path, special ? "opened" : "created");
	rc = report_write_page(out, path, file, err);
	fclose(out);
	if (rc == 0 && !special && rename(draft, path) < 0)
		rc = error_sys(err, errno, "%s cannot be written", path);
	if (rc < 0 && !special)
		unlink(draft);
	return rc;
}

static int
report_make(struct error *err)
{
	struct report_options *options = &report.options;
	const char *path = command_db(report.db);
	char verdict[REPORT_VERDICT_MAX];
	struct open_file file = {.db = NULL};
	int64_t attached_us;
	int rc;

	if (open_read_only(&file, path, err) < 0)
		return -1;
	/* A missing sandbox is reported before the whole log is verified. */
	rc = report_find(file.db, options, &options->sandbox_id, &attached_us, err);
	if (rc == 0 && !report.unverified) {
		options->verified =
		    report_verify(path, options->since_us > attached_us ? options->since_us : attached_us, verdict);
		options->verdict = verdict;
	}
	if (rc == 0 && (report.output == NULL || strcmp(report.output, "-") == 0))
		rc = report_write_page(stdout, "standard output", &file, err);
	else if (rc == 0)
		rc = report_write_file(report.output, &file, err);
	open_close(&file);
	return rc;
}

static int
report_run(const struct command *command, struct error *err)
{
	struct report_options *options = &report.options;
	char *policy = NULL;
	int rc;

	options->now_us = clock_real_us();
	if (command->operands.count > 0)
		options->sandbox = command->operands.items[0];
	if (options->sandbox == NULL && options->sandbox_id == 0)
		return command_usage(err, "missing operand: SANDBOX, or --id");
	if (report.db != NULL)
		options->policy_why =
		    "This log was read from a file; the policy is known where the sandbox is attached.";
	else
		policy = report_policy_text(options);
	options->policy = policy;
	rc = report_make(err);
	free(policy);
	return rc;
}

const struct command_row report_command = {
    .name = "report",
    .operands = "[SANDBOX]",
    .summary = "Make one HTML page of a sandbox's log, to look at or to hand on.",
    .page = "postern-report(1)",
    .syntax = {.groups = {report_command_options, command_daemon}},
    .run = report_run,
};
