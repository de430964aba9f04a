/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one parser of command lines: a table with one row per option says where each value goes; the words that remain
 * are operands, in their order.
 *
 * "-x", "-xVALUE", "-x VALUE", "--name", "--name=VALUE", "--name VALUE"; options may follow operands; "--" ends the
 * options; -h and --help ask for help and are in no table. */
#ifndef POSTERN_CLI_ARGS_H
#define POSTERN_CLI_ARGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Operands, and values of one option that may be repeated. */
#define ARGS_LIST_MAX 1024
#define ARGS_GROUPS_MAX 4

struct args_list {
	const char *items[ARGS_LIST_MAX]; /* point into argv */
	size_t count;
};

/* A list of options ends with a row of zeros. A row with nothing but help is a heading in the help text. */
struct args_option {
	char letter;       /* 0: none */
	const char *name;  /* long form without dashes */
	const char *value; /* its value in the help text ("FILE"); NULL: it takes none; "[X]": it may be left out */
	const char *help;
	/* Where it goes: any of these. */
	bool *flag;             /* becomes true */
	const char **text;      /* the last value */
	struct args_list *list; /* all values */
	/* Called for each value in the order of the command line, with NULL for an option without one. 0, or -1 with
	 * ERROR_USAGE, in front of which the parser puts the option and its value. */
	int (*parse)(const struct args_option *option, const char *value, struct error *err);
	/* For parse: where the result goes, numbers that are allowed, words by their number, a field. */
	void *target;
	int64_t min, max;
	const char *(*words)(unsigned int number);
	int field;
};

struct args_syntax {
	const struct args_option *groups[ARGS_GROUPS_MAX]; /* lists of options; the first row with a name counts */
	/* Called for each option before its value is stored; may be NULL. 0, or -1 with ERROR_USAGE. */
	int (*before)(const struct args_option *option, struct error *err);
	bool abbreviates; /* "--den" is --denied when no other begins so */
	bool stops;       /* the first operand and all words after it are *ret_rest */
};

/* Parse argv[1..]. A value that may be left out is taken from the next word only after an operand ("attach vm1 --tap
 * tap1", but "attach --tap vm1" names the sandbox). *ret_rest (NULL unless the syntax stops): argv from the first
 * operand on. Returns 0; 1 when -h or --help came; -1 with ERROR_USAGE. */
int args_parse(int argc, char **argv, const struct args_syntax *syntax, struct args_list *ret_operands,
    char ***ret_rest, struct error *err);

/* Are these the operands that a command takes: "SANDBOX RULE..." (one or more rules), "[SANDBOX]" (at most one), ""? 0,
 * or -1 with ERROR_USAGE. */
int args_check_operands(const char *wanted, const struct args_list *operands, struct error *err);

/* The options as help text, one line each. */
void args_print_help(FILE *out, const struct args_syntax *syntax);

#endif
