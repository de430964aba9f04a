/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern: the command line. Each command is a client of posternd's control API, but for log, top, stats, verify and
 * seal, which read the audit database themselves, and doctor, which looks at this machine. */
#include "cli/command.h"
#include "cli/log/log.h"
#include "cli/sandbox/run.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A word that needs more changes than this is not taken for a slip. */
#define POSTERN_NEAR_MAX 2

static int cli_help(int argc, char **argv);

static const struct command_row commands[] = {
    {"run", cli_run, "run [option...] [--] COMMAND [ARG...]", "Run a command in a sandbox of its own."},
    {"attach", cli_attach, "attach NAME [--tap[=IFNAME] | --netns PATH | --pid PID] [option...]",
	"Make a sandbox for a microVM (a TAP) or around a container's network namespace."},
    {"detach", cli_detach, "detach NAME...", "Remove sandboxes; their connections end."},
    {"list", cli_list, "list [--label KEY[=VALUE]]... [-o wide]", "List the sandboxes."},
    {"show", cli_show, "show NAME", "Show all about a sandbox: addresses, policy, rules, leases."},
    {"allow", cli_allow, "allow NAME RULE... [--for DURATION] [--uses N]",
	"Let a sandbox reach more, at once: HOST, *.HOST:22,443, CIDR:PORT, X:P/udp."},
    {"deny", cli_deny, "deny NAME RULE... [--for DURATION]",
	"Refuse what a rule says; deny beats allow. Cuts connections that it is about."},
    {"revoke", cli_revoke, "revoke NAME RULE... [--allow | --deny]", "Withdraw rules made with allow or deny."},
    {"policy", cli_policy,
	"policy check FILE... | show NAME | apply NAME FILE [--dry-run] | diff A B | replay FILE --sandbox NAME | "
	"suggest NAME",
	"Check a policy file, show one, put one in force, compare two, try one on the record, make one from it."},
    {"preset", cli_preset, "preset list | show NAME", "The shipped policies that others include."},
    {"test", cli_test, "test NAME TARGET", "Would a sandbox reach HOST[:PORT], ADDRESS[:PORT] or a URL? Exit 1: no."},
    {"log", cli_log, "log [NAME] [option...]", "Read the record of every attempt, allowed and denied."},
    {"report", cli_report, "report NAME -o FILE.html", "Make one page of a sandbox's log, to look at or to hand on."},
    {"top", cli_top, "top [NAME] [option...]",
	"Who is talked to most, or refused most: by name, address, sandbox, rule, ..."},
    {"stats", cli_stats, "stats [NAME] [option...]", "Totals of attempts, bytes and names, and over time."},
    {"mark", cli_mark, "mark NAME TEXT | mark NAME -", "Put a step of the agent among its connections in the log."},
    {"verify", cli_verify, "verify [--since TIME|SEQ] [--key FILE|LINE]... [--seals FILE] [--sandbox NAME] [--db FILE]",
	"Was anything in the log changed, removed, inserted or cut off? Exit 1: yes, and what first."},
    {"seal", cli_seal, "seal export [--since N] [-f] | seal key",
	"Take the log's signed seals, or the key that verifies them, elsewhere."},
    {"status", cli_status, "status", "Show the daemon's state and what is missing."},
    {"doctor", cli_doctor, "doctor", "Check this machine: kernel, users, other firewalls, resolvers."},
    {"help", cli_help, "help [COMMAND]", "Explain a command."},
};
#define COMMANDS (sizeof(commands) / sizeof(commands[0]))

static const struct command_row *
postern_find(const char *name)
{
	for (size_t i = 0; i < COMMANDS; i++)
		if (strcmp(commands[i].name, name) == 0)
			return &commands[i];
	return NULL;
}

static void
postern_usage(FILE *out)
{
	fprintf(out, "usage: postern [-R DIR] COMMAND [word...]\n       postern --version | --help\n\n");
	for (size_t i = 0; i < COMMANDS; i++)
		fprintf(out, "  %-8s %s\n", commands[i].name, commands[i].help);
	fprintf(out,
	    "\npostern help COMMAND tells more; man postern, postern-log, postern-report and postern-verify tell "
	    "all.\n");
}

/* How many letters must change to make one word of the other? Words here are short. */
static size_t
postern_distance(const char *a, const char *b)
{
	size_t row[64], len = strlen(b);

	if (len >= sizeof(row) / sizeof(row[0]))
		return len;
	for (size_t j = 0; j <= len; j++)
		row[j] = j;
	for (size_t i = 1; *a != '\0'; a++, i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= len; j++) {
			size_t above = row[j], best = diagonal + (*a != b[j - 1]);

			if (above + 1 < best)
				best = above + 1;
			if (row[j - 1] + 1 < best)
				best = row[j - 1] + 1;
			diagonal = above;
			row[j] = best;
		}
	}
	return row[len];
}

static int
postern_unknown(const char *word)
{
	size_t nearest = POSTERN_NEAR_MAX;

	for (size_t i = 0; i < COMMANDS; i++)
		if (postern_distance(word, commands[i].name) < nearest)
			nearest = postern_distance(word, commands[i].name);
	command_warn("unknown command '%.100s'", word);
	for (size_t i = 0; i < COMMANDS; i++)
		if ((nearest < strlen(word) && postern_distance(word, commands[i].name) == nearest) ||
		    strncmp(word, commands[i].name, strlen(word)) == 0)
			command_warn("did you mean %s?", commands[i].name);
	command_warn("postern --help lists the commands");
	return error_exit_status(ERROR_USAGE);
}

static int
postern_run_row(const struct command_row *row, int argc, char **argv)
{
	command_set_row(row);
	return row->run(argc, argv);
}

static int
cli_help(int argc, char **argv)
{
	const struct command_row *row;
	char option[] = "--help", *words[] = {NULL, option, NULL};

	if (argc < 2 || argv[1][0] == '-') {
		postern_usage(stdout);
		return 0;
	}
	row = postern_find(argv[1]);
	if (row == NULL)
		return postern_unknown(argv[1]);
	if (row->run == cli_help) {
		printf("usage: postern %s\n\n%s\n", row->usage, row->help);
		return 0;
	}
	words[0] = argv[1];
	return postern_run_row(row, 2, words);
}

/* Options in front of the command; what follows it is the command's. Returns the command's place, or -1 with *ret. */
static int
postern_global(int argc, char **argv, int *ret)
{
	const char *dir;
	struct error err;
	int at = 1;

	*ret = 0;
	for (; at < argc && argv[at][0] == '-'; at++) {
		if (strcmp(argv[at], "--version") == 0) {
			printf("postern " POSTERN_VERSION "\n");
			return -1;
		}
		if (strcmp(argv[at], "-h") == 0 || strcmp(argv[at], "--help") == 0) {
			postern_usage(stdout);
			return -1;
		}
		error_set(
		    &err, ERROR_USAGE, "option %.100s is unknown in front of a command, or lacks its value", argv[at]);
		dir = NULL;
		if (strncmp(argv[at], "--runtime-dir=", 14) == 0)
			dir = argv[at] + 14;
		else if ((strcmp(argv[at], "-R") == 0 || strcmp(argv[at], "--runtime-dir") == 0) && at + 1 < argc)
			dir = argv[++at];
		if (dir == NULL || command_set_runtime_dir(dir, &err) < 0) {
			*ret = command_fail(&err);
			return -1;
		}
	}
	return at;
}

int
main(int argc, char **argv)
{
	const struct command_row *row;
	int status, at = postern_global(argc, argv, &status);

	if (at < 0)
		return status;
	if (at == argc) {
		postern_usage(stderr);
		return error_exit_status(ERROR_USAGE);
	}
	row = postern_find(argv[at]);
	if (row == NULL)
		return postern_unknown(argv[at]);
	status = postern_run_row(row, argc - at, argv + at);
	if (fflush(stdout) != 0 || ferror(stdout))
		return status == 0 ? 1 : status;
	return status;
}
