/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every command of postern shares: its row in the table, the common options, and how it speaks.
 *
 * Data goes to stdout, messages to stderr. Whatever came from elsewhere is escaped before a terminal sees it. */
#ifndef POSTERN_CLI_COMMAND_H
#define POSTERN_CLI_COMMAND_H

#include "base/error.h"
#include "cli/args.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

/* Options of one command, the common ones included. */
#define COMMAND_OPTIONS_MAX 32

struct command_row {
	const char *name;
	int (*run)(int argc, char **argv); /* argv[0] is the command's name; returns the exit status */
	const char *usage;                 /* behind "postern" */
	const char *help;                  /* one line */
};

/* What a command line came to. */
struct command {
	bool json; /* -o json */
	struct args_list words;
};

/* The row that is being run, for its --help. Set by main. */
void command_set_row(const struct command_row *row);

/* Parse with the command's own options and the common ones (-R, -o, --help), and check how many words there are. An own
 * option takes the place of a common one of its name.
 * Returns -1 to go on; otherwise the exit status, all said. */
int command_parse(int argc, char **argv, const struct args_option *own, size_t own_count, size_t words_min,
    size_t words_max, struct command *ret_command);

/* -R: for this process and those it starts, as $POSTERN_RUNTIME_DIR. Made absolute. */
int command_set_runtime_dir(const char *dir, struct error *err);

/* "postern: text" on stderr, every line of it; returns the documented exit status. */
int command_fail(const struct error *err);
void command_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* JSON on stdout. */
void command_print_json(const json_t *json);

/* A member's text, or "" when it is none. */
const char *command_text(const json_t *object, const char *member);

int cli_attach(int argc, char **argv);
int cli_detach(int argc, char **argv);
int cli_list(int argc, char **argv);
int cli_show(int argc, char **argv);
int cli_allow(int argc, char **argv);
int cli_deny(int argc, char **argv);
int cli_revoke(int argc, char **argv);
int cli_test(int argc, char **argv);
int cli_policy(int argc, char **argv);
int cli_preset(int argc, char **argv);
int cli_mark(int argc, char **argv);
int cli_status(int argc, char **argv);

int cli_report(int argc, char **argv);

/* What came of a change of a policy (rules.c): an answer of the rules and policy endpoints. */
void rules_print(const json_t *answer);
/* --if-generation, for every command that changes a policy: text (may be NULL) into the request. 0 or -1. */
#define RULES_IF_GENERATION_HELP "only if this generation is in force: nobody changed it meanwhile"
int rules_if_generation(const char *text, json_t *request, struct error *err);
int cli_doctor(int argc, char **argv);
int cli_verify(int argc, char **argv);
int cli_seal(int argc, char **argv);

#endif
