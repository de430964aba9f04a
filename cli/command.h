/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What every command of postern shares: the form of its row in the table (cli/commands.h), the options that several
 * take, and how it speaks.
 *
 * Data goes to stdout, messages to stderr. Bytes that came from elsewhere are escaped before a terminal sees them. */
#ifndef POSTERN_CLI_COMMAND_H
#define POSTERN_CLI_COMMAND_H

#include "base/error.h"
#include "cli/args.h"

#include <jansson.h>
#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct command_row;

/* A command line after parsing. */
struct command {
	const struct command_row *row;
	bool json; /* -o json */
	struct args_list operands;
	char **rest; /* with syntax.stops: the operands as argv, ended by NULL */
};

struct command_row {
	const char *name;     /* "attach", "policy check" */
	const char *operands; /* as args_check_operands takes them */
	const char *summary;  /* one line */
	const char *notes;    /* below the options in the help text; may be NULL */
	const char *page;     /* the manual page that has its options; NULL: postern(1) */
	struct args_syntax syntax;
	/* Returns the exit status, or -1 with *err. */
	int (*run)(const struct command *command, struct error *err);
};

/* Lists of options that commands share: -o text|json, and -R for those that talk to the daemon. */
extern const struct args_option command_output[], command_daemon[];

/* Options that commands share, each with a place of its own for the value. */
#define COMMAND_TIME(option, words, time_us)                                                                           \
	{                                                                                                              \
		.name = option, .value = "TIME", .help = words, .parse = command_parse_time, .target = time_us         \
	}
#define COMMAND_DB(path)                                                                                               \
	{                                                                                                              \
		.name = "db", .value = "FILE", .help = "read this database", .text = path                              \
	}
#define COMMAND_POLICY(path)                                                                                           \
	{                                                                                                              \
		'f', "policy", "FILE", "a policy file in YAML; - is standard input", .text = path                      \
	}
#define COMMAND_ALLOW(rules)                                                                                           \
	{                                                                                                              \
		'a', "allow", "RULE", "a rule to begin with, as in postern-policy(5); may be repeated", .list = rules  \
	}
#define COMMAND_DENY(rules)                                                                                            \
	{                                                                                                              \
		'd', "deny", "RULE", "likewise; deny beats allow", .list = rules                                       \
	}
#define COMMAND_LABEL(labels)                                                                                          \
	{                                                                                                              \
		'l', "label", "KEY=VALUE", "a label for lists and the log; may be repeated", .list = labels            \
	}
#define COMMAND_IF_GENERATION(generation)                                                                              \
	{                                                                                                              \
		.name = "if-generation", .value = "N", .help = "fail unless this generation is in force",              \
		.parse = command_parse_number, .target = generation, .max = UINT32_MAX                                 \
	}

/* A number from option->min to option->max, in digits, into the int64_t that is the option's target. */
int command_parse_number(const struct args_option *option, const char *value, struct error *err);

/* The number of a word among those that option->words has from option->min up to, not including, option->max, into the
 * unsigned int that is the option's target. */
int command_parse_word(const struct args_option *option, const char *value, struct error *err);

/* A point in time (cli/when.h) into the int64_t that is the option's target, in microseconds since the epoch. */
int command_parse_time(const struct args_option *option, const char *value, struct error *err);

/* The row that messages name; NULL: none yet. */
void command_set_row(const struct command_row *row);

/* What the shared options said: 0, or -1 with ERROR_USAGE. -R becomes $POSTERN_RUNTIME_DIR, made absolute, for this
 * process and those it starts. */
int command_finish_options(struct command *command, struct error *err);

/* Make a path absolute. -1 when it is empty or too long. */
int command_absolute(const char *path, char ret_path[PATH_MAX]);

/* "postern COMMAND: text" on stderr, every line of it; returns the documented exit status. */
int command_fail(const struct error *err);
void command_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));

/* Fill *err with ERROR_USAGE, the text and how to get help. Returns -1. */
int command_usage(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* JSON on stdout. */
void command_print_json(const json_t *json);
/* An answer as JSON, or by print (NULL: not at all), as -o says. Takes the answer. Returns 0. */
int command_print(const struct command *command, json_t *answer_own, void (*print)(const json_t *answer));

/* A member's text, or "" when it has none; a member's number, or 0. */
const char *command_text(const json_t *object, const char *member);
long long command_number(const json_t *object, const char *member);

/* The audit database: given (--db), or the daemon's when that is NULL. Static storage. */
const char *command_db(const char *given);

/* 0, or -1 when standard output could not be written. */
int command_flush(struct error *err);

#endif
