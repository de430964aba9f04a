/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Command-line words by table: one row an option, targets filled in, everything else collected in order.
 *
 * "-x", "-xVALUE", "-x VALUE", "--name", "--name=VALUE", "--name VALUE"; "--" ends options. */
#ifndef POSTERN_CLI_ARGS_H
#define POSTERN_CLI_ARGS_H

#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* Repeats of one option, and words that are no options. */
#define ARGS_LIST_MAX 1024

struct args_list {
	const char *items[ARGS_LIST_MAX]; /* point into argv */
	size_t count;
};

struct args_option {
	char letter;       /* 0: none */
	const char *name;  /* long form without dashes */
	const char *value; /* what it takes, for help ("FILE"); NULL: nothing; "[X]": may be left out */
	const char *help;
	bool *flag;             /* set when the option is there; may be NULL */
	const char **text;      /* its last value; may be NULL */
	struct args_list *list; /* all its values; may be NULL */
};

/* Parse argv[1..]. A value that may be left out is taken from the next word only when other words came before it
 * ("attach vm1 --tap tap1", but "attach --tap vm1" names the sandbox). Returns 0; 1 when -h or --help was asked for;
 * -1 with ERROR_USAGE. */
int args_parse(int argc, char **argv, const struct args_option *options, size_t count, struct args_list *ret_words,
    struct error *err);

/* The options as help text, a line each. */
void args_print_help(FILE *out, const struct args_option *options, size_t count);

#endif
