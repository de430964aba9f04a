/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation: a daemon (ours if none answers) -> the child with its namespaces -> attach by its pid -> go ->
 * wait -> detach -> what the log says of this sandbox. Every failure before "go" ends in no command at all. */
#include "cli/sandbox/run.h"

#include "audit/query/query.h"
#include "base/escape.h"
#include "base/paths.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/sandbox/label.h"
#include "cli/policy/policy_text.h"
#include "cli/sandbox/run_child.h"
#include "cli/sandbox/run_daemon.h"
#include "policy/reason.h"
#include "policy/text/rule.h"

#include <getopt.h>
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
/* Packets that the kernel refused last come through its log buffer and a commit. */
#define RUN_SETTLE_MS_MIN 100

const char cli_run_usage[] =
    "usage: postern run [--allow RULE]... [--deny RULE]... [--policy FILE] [--name NAME] [--label KEY=VALUE]... "
    "[--quiet] -- COMMAND [ARG]...\n"
    "Run one command in a sandbox of its own; it reaches what the rules allow and nothing else.\n"
    "\n"
    "  -a, --allow RULE    host, *.host, cidr; with :PORTS and /udp as in postern-policy(5); may be repeated\n"
    "  -d, --deny RULE     likewise; deny beats allow\n"
    "  -f, --policy FILE   a policy file\n"
    "  -n, --name NAME     the sandbox's name in the log (default: run-PID)\n"
    "  -l, --label KEY=VALUE  what to find it by in the log; may be repeated\n"
    "  -R, --runtime-dir DIR  where the daemon's socket is\n"
    "  -q, --quiet         no summary at the end\n"
    "\n"
    "The exit status is the command's; 125 when the sandbox could not be made.\n"
    "Without a daemon one is started for the purpose, which works as an ordinary user too.\n";

#define RUN_FAILED 125

struct run {
	json_t *attach; /* body of the request */
	const char *name;
	bool quiet;
	char **argv;
	char own_name[64];
	json_int_t id;
	bool rootless;
};

static int
run_usage_error(const char *what)
{
	fprintf(stderr, "postern run: %s; see postern run --help\n", what);
	return 2;
}

static int
run_error(const struct error *err)
{
	fprintf(stderr, "postern run: %s\n", err->text);
	return err->code == ERROR_USAGE || err->code == ERROR_POLICY ? error_exit_status(err->code) : RUN_FAILED;
}

static int
run_add_rule(struct run *run, enum rule_action action, const char *word, struct error *err)
{
	const char *key = action == RULE_ALLOW ? "allow" : "deny";
	json_t *list = json_object_get(run->attach, key);
	struct rule rule;

	if (rule_parse(action, word, &rule, err) < 0)
		return -1;
	if (list == NULL) {
		list = json_array();
		json_object_set_new(run->attach, key, list);
	}
	json_array_append_new(list, json_string(word));
	return 0;
}

/* Returns -1 to go on, or an exit status. */
static int
run_options(struct run *run, int argc, char **argv)
{
	static const struct option longs[] = {{"allow", required_argument, NULL, 'a'},
	    {"deny", required_argument, NULL, 'd'}, {"policy", required_argument, NULL, 'f'},
	    {"name", required_argument, NULL, 'n'}, {"label", required_argument, NULL, 'l'},
	    {"runtime-dir", required_argument, NULL, 'R'}, {"quiet", no_argument, NULL, 'q'},
	    {"help", no_argument, NULL, 'h'}, {NULL, 0, NULL, 0}};
	struct error err = {.code = ERROR_NONE};
	int c;

	optind = 0; /* glibc: start anew, postern has parsed its own words */
	opterr = 0;
	while ((c = getopt_long(argc, argv, "+a:d:f:n:l:R:qh", longs, NULL)) != -1) {
		switch (c) {
		case 'a':
			run_add_rule(run, RULE_ALLOW, optarg, &err);
			break;
		case 'd':
			run_add_rule(run, RULE_DENY, optarg, &err);
			break;
		case 'f':
			policy_text_read(optarg, run->attach, &err);
			break;
		case 'n':
			run->name = optarg;
			break;
		case 'l':
			label_add(run->attach, optarg, &err);
			break;
		case 'R':
			command_set_runtime_dir(optarg, &err);
			break;
		case 'q':
			run->quiet = true;
			break;
		case 'h':
			fputs(cli_run_usage, stdout);
			return 0;
		default:
			return run_usage_error("unknown option, or an option without its argument");
		}
		if (err.code != ERROR_NONE)
			return run_error(&err);
	}
	if (optind >= argc)
		return run_usage_error("no command given");
	run->argv = argv + optind;
	return -1;
}

/* A daemon's status, starting the daemon when none answers. */
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
run_start_child(struct run *run, const json_t *status, struct run_child *ret_child, struct error *err)
{
	struct run_child_config config = {.argv = run->argv,
	    .dns4 = "172.16.0.1",
	    .dns6 = "fd70:6f73:7465:726e::1",
	    .hide = {paths_runtime_dir(), paths_state_dir(), paths_own_runtime_dir(), paths_own_state_dir(),
		PATHS_SYSTEM_RUNTIME, PATHS_SYSTEM_STATE}};

	run->rootless = json_is_true(json_object_get(status, "rootless"));
	config.userns = run->rootless ? RUN_USERNS_KEEPER : geteuid() == 0 ? RUN_USERNS_NONE : RUN_USERNS_OWN;
	/* The keeper is the first of the roles, in every answer. */
	config.keeper_pid =
	    (pid_t)json_integer_value(json_object_get(json_array_get(json_object_get(status, "roles"), 0), "pid"));
	if (run_child_start(&config, ret_child, err) < 0)
		return -1;
	if (run_child_ready(ret_child, err) < 0) {
		run_child_cancel(ret_child);
		return -1;
	}
	return 0;
}

static int
run_attach(struct run *run, const struct run_child *child, struct error *err)
{
	json_t *answer = NULL;

	snprintf(run->own_name, sizeof(run->own_name), "run-%d", child->pid);
	if (run->name == NULL)
		run->name = run->own_name;
	json_object_set_new(run->attach, "name", json_string(run->name));
	json_object_set_new(run->attach, "kind", json_string("netns"));
	json_object_set_new(run->attach, "pid", json_integer(child->pid));
	if (client_request("POST", "/v1/sandboxes", run->attach, &answer, err) < 0)
		return -1;
	run->id = json_integer_value(json_object_get(answer, "id"));
	json_decref(answer);
	return 0;
}

static void
run_detach(const struct run *run)
{
	char path[256];
	struct error err;
	json_t *answer = NULL;

	snprintf(path, sizeof(path), "/v1/sandboxes/%s", run->name);
	if (client_request("DELETE", path, NULL, &answer, &err) < 0)
		fprintf(stderr, "postern run: detach: %s\n", err.text);
	json_decref(answer);
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

	/* Allowed questions are seen by the connections they led to. */
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
run_summary(const struct run *run)
{
	char path[PATH_MAX];
	struct error err;
	struct query *query;

	snprintf(path, sizeof(path), "%s/audit/audit.db", paths_state_dir());
	query = query_open(path, &err);
	if (query == NULL) {
		fprintf(stderr, "postern run: no summary: %s\n", err.text);
		return;
	}
	for (int ms = 0; ms < RUN_SETTLE_MS && (ms < RUN_SETTLE_MS_MIN || !run_settled(query, run->id));
	     ms += RUN_SETTLE_STEP_MS)
		usleep(RUN_SETTLE_STEP_MS * 1000);
	for (int denied = 0; denied < 2; denied++) {
		struct run_summary summary = {.denied = denied};

		query_summary(query, run->id, 0, RUN_SUMMARY_MAX, run_summary_line, &summary, &err);
		if (summary.lines == 0 && !denied)
			fprintf(stderr, "postern: reached nothing\n");
	}
	query_close(query);
	if (run->rootless)
		fprintf(stderr,
		    "postern: rootless: without the host-side second layer and separate users; see postern status\n");
	fprintf(stderr, "postern: all of it: postern log %s\n", run->name);
}

int
cli_run(int argc, char **argv)
{
	struct run run = {.attach = json_object()};
	struct run_child child;
	struct error err;
	json_t *status = NULL;
	int rc = run_options(&run, argc, argv);

	if (rc >= 0)
		goto out;
	rc = RUN_FAILED;
	if (run_status_of_daemon(&status, &err) < 0 || run_start_child(&run, status, &child, &err) < 0) {
		rc = run_error(&err);
		goto out;
	}
	if (run_attach(&run, &child, &err) < 0) {
		run_child_cancel(&child);
		rc = run_error(&err);
		goto out;
	}
	run_child_go(&child);
	rc = run_child_wait(&child);
	run_detach(&run);
	if (!run.quiet)
		run_summary(&run);
out:
	json_decref(status);
	json_decref(run.attach);
	return rc;
}
