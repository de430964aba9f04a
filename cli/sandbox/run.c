/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation: a daemon (started if none answers) -> the child with its namespaces -> attach by its pid ->
 * go -> wait -> detach -> a summary from the log. The command does not run after any failure before "go". */
#include "audit/query/query.h"
#include "base/escape.h"
#include "base/paths.h"
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/sandbox/label.h"
#include "cli/policy/policy_text.h"
#include "cli/sandbox/run_child.h"
#include "cli/sandbox/run_daemon.h"
#include "policy/reason.h"
#include "policy/text/rule.h"

#include <jansson.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Lines of the summary; the rest is in the log. */
#define RUN_SUMMARY_MAX 40
/* The last records of a sandbox are committed within this time of its detach. */
#define RUN_SETTLE_MS 2000
#define RUN_SETTLE_STEP_MS 20
/* Packets that the kernel refused last still pass its log buffer and a commit. */
#define RUN_SETTLE_MS_MIN 100

#define RUN_FAILED 125

static struct {
	const char *policy, *name;
	struct args_list allow, deny, labels;
	bool quiet;
	char own_name[64];
	json_int_t id;
	bool rootless;
} run;

static const struct args_option run_options[] = {
    COMMAND_ALLOW(&run.allow),
    COMMAND_DENY(&run.deny),
    COMMAND_POLICY(&run.policy),
    {'n', "name", "NAME", "the sandbox's name in the log (default: run-PID)", .text = &run.name},
    COMMAND_LABEL(&run.labels),
    {'q', "quiet", NULL, "no summary at the end", .flag = &run.quiet},
    {0},
};

/* The status of the daemon, which is started when none answers. */
static int
run_status_of_daemon(json_t **ret_status, struct error *err)
{
	char log_path[PATH_MAX];

	if (client_request("GET", "/v1/status", NULL, ret_status, err) == 0)
		return 0;
	if (err->code != ERROR_UNREACHABLE)
		return -1;
	snprintf(log_path, sizeof(log_path), "%s/posternd.log", paths_own_state_dir());
	if (run_daemon_start(log_path, err) < 0)
		return -1;
	return client_request("GET", "/v1/status", NULL, ret_status, err);
}

static int
run_start_child(char **argv, const json_t *status, struct run_child *ret_child, struct error *err)
{
	struct run_child_config config = {.argv = argv,
	    .dns4 = "172.16.0.1",
	    .dns6 = "fd70:6f73:7465:726e::1",
	    .hide = {paths_runtime_dir(), paths_state_dir(), paths_own_runtime_dir(), paths_own_state_dir(),
		PATHS_SYSTEM_RUNTIME, PATHS_SYSTEM_STATE}};

	run.rootless = json_is_true(json_object_get(status, "rootless"));
	config.userns = run.rootless ? RUN_USERNS_KEEPER : geteuid() == 0 ? RUN_USERNS_NONE : RUN_USERNS_OWN;
	/* The keeper is the first of the roles, in every answer. */
	config.keeper_pid = (pid_t)command_number(json_array_get(json_object_get(status, "roles"), 0), "pid");
	if (run_child_start(&config, ret_child, err) < 0)
		return -1;
	if (run_child_ready(ret_child, err) < 0) {
		run_child_cancel(ret_child);
		return -1;
	}
	return 0;
}

struct run_summary {
	bool denied; /* this pass prints what was refused */
	int lines;
};

static void
run_summary_line(const struct query_group *group, void *context)
{
	struct run_summary *summary = context;
	bool denied = group->verdict != VERDICT_ALLOWED;
	char name[1100];

	/* Allowed queries show as the connections they led to. */
	if (denied != summary->denied || (!denied && group->kind == QUERY_DNS))
		return;
	if (summary->lines++ == 0)
		fprintf(stderr, "postern: %s\n", denied ? "refused" : "reached");
	escape_terminal(group->name.bytes, group->name.len, name, sizeof(name));
	fprintf(stderr, "  %5lld × %s", (long long)group->count, name);
	if (group->kind == QUERY_DNS)
		fprintf(stderr, " (name)");
	else if (group->dport != 0)
		fprintf(stderr, ":%lld", (long long)group->dport);
	if (denied)
		fprintf(stderr, "  %s\n", reason_text((unsigned int)group->reason));
	else
		fprintf(stderr, "  %lld bytes out, %lld in\n", (long long)group->bytes_out, (long long)group->bytes_in);
}

/* Are all connections of the sandbox closed in the log? */
static bool
run_settled(struct query *query, json_int_t id)
{
	struct query_filter filter = {.kinds = QUERY_CONNECTION, .sandbox_id = id};
	const struct query_row *row;
	struct error err;

	if (query_start(query, &filter, &err) < 0)
		return true;
	while (query_next(query, &row, &err) == 1)
		if (row->verdict == VERDICT_ALLOWED && !row->closed_us.set)
			return false;
	return true;
}

static void
run_summary(void)
{
	struct error err;
	struct query *query = query_open(command_db(NULL), &err);

	if (query == NULL) {
		command_warn("no summary: %s", err.text);
		return;
	}
	for (int ms = 0; ms < RUN_SETTLE_MS && (ms < RUN_SETTLE_MS_MIN || !run_settled(query, run.id));
	     ms += RUN_SETTLE_STEP_MS)
		usleep(RUN_SETTLE_STEP_MS * 1000);
	for (int denied = 0; denied < 2; denied++) {
		struct run_summary summary = {.denied = denied};

		query_summary(query, run.id, 0, RUN_SUMMARY_MAX, run_summary_line, &summary, &err);
		if (summary.lines == 0 && !denied)
			fprintf(stderr, "postern: reached nothing\n");
	}
	query_close(query);
	if (run.rootless)
		fprintf(stderr,
		    "postern: rootless: without the host-side second layer and separate users; see postern status\n");
	fprintf(stderr, "postern: all of it: postern log %s\n", run.name);
}

/* Makes the sandbox and lets the command run in it: the command's status, or -1 when it did not run. Takes the
 * request. */
static int
run_in_sandbox(json_t *request_own, char **argv, struct error *err)
{
	struct run_child child;
	json_t *status = NULL, *answer;
	int rc = run_status_of_daemon(&status, err);

	if (rc == 0)
		rc = run_start_child(argv, status, &child, err);
	json_decref(status);
	if (rc < 0) {
		json_decref(request_own);
		return -1;
	}
	snprintf(run.own_name, sizeof(run.own_name), "run-%d", child.pid);
	if (run.name == NULL)
		run.name = run.own_name;
	json_object_set_new(request_own, "name", json_string(run.name));
	json_object_set_new(request_own, "kind", json_string("netns"));
	json_object_set_new(request_own, "pid", json_integer(child.pid));
	if (client_request("POST", "/v1/sandboxes", request_own, &answer, err) < 0) {
		run_child_cancel(&child);
		return -1;
	}
	run.id = command_number(answer, "id");
	json_decref(answer);
	run_child_go(&child);
	rc = run_child_wait(&child);
	if (client_sandbox("DELETE", run.name, "", NULL, &answer, err) < 0)
		command_warn("detach: %s", err->text);
	else
		json_decref(answer);
	return rc;
}

static int
run_run(const struct command *command, struct error *err)
{
	json_t *request = json_object();
	int rc;

	if (policy_text_add(request, run.policy, &run.allow, &run.deny, err) < 0 ||
	    label_add_all(request, &run.labels, err) < 0) {
		json_decref(request);
		rc = -1;
	} else {
		rc = run_in_sandbox(request, command->rest, err);
	}
	if (rc < 0) {
		rc = command_fail(err);
		return err->code == ERROR_USAGE || err->code == ERROR_POLICY ? rc : RUN_FAILED;
	}
	if (!run.quiet)
		run_summary();
	return rc;
}

const struct command_row run_command = {
    .name = "run",
    .operands = "COMMAND [ARG]...",
    .summary = "Run a command in a sandbox of its own; it reaches what the rules allow and nothing else.",
    .notes =
	"The exit status is the command's; 125 when the sandbox could not be made. When no daemon answers, one is\n"
	"started for the purpose, which works as an ordinary user too.",
    .syntax = {.groups = {run_options, command_daemon}, .abbreviates = true, .stops = true},
    .run = run_run,
};
