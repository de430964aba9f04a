/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/args.h"

#include <string.h>

struct args_parser {
	int argc, at;
	char **argv;
	const struct args_syntax *syntax;
	struct args_list *operands;
	struct error *err;
};

/* The row behind this one (NULL: the first), over all groups; NULL at the end. *group is where it stands. */
static const struct args_option *
args_next(const struct args_syntax *syntax, size_t *group, const struct args_option *option)
{
	option = option == NULL ? syntax->groups[*group] : option + 1;
	while (option == NULL || (option->name == NULL && option->help == NULL)) {
		if (++*group >= ARGS_GROUPS_MAX || syntax->groups[*group] == NULL)
			return NULL;
		option = syntax->groups[*group];
	}
	return option;
}

static int
args_append(struct args_parser *p, struct args_list *list, const char *item)
{
	if (list->count == ARGS_LIST_MAX)
		return error_set(p->err, ERROR_USAGE, "more than %d operands or values of one option", ARGS_LIST_MAX);
	list->items[list->count++] = item;
	return 0;
}

/* Stores a value; NULL: none was attached to the word. */
static int
args_set(struct args_parser *p, const struct args_option *option, const char *value)
{
	bool next = p->at + 1 < p->argc;

	if (option->value == NULL && value != NULL)
		return error_set(p->err, ERROR_USAGE, "option '--%s' takes no value", option->name);
	if (option->value != NULL && value == NULL) {
		bool optional = option->value[0] == '[';

		if (!optional && !next)
			return error_set(
			    p->err, ERROR_USAGE, "option '--%s' needs a value: %s", option->name, option->value);
		if (!optional || (next && p->operands->count > 0 && p->argv[p->at + 1][0] != '-'))
			value = p->argv[++p->at];
	}
	if (p->syntax->before != NULL && p->syntax->before(option, p->err) < 0)
		return -1;
	if (option->flag != NULL)
		*option->flag = true;
	if (option->text != NULL && value != NULL)
		*option->text = value;
	if (option->list != NULL && value != NULL && args_append(p, option->list, value) < 0)
		return -1;
	if (option->parse != NULL && option->parse(option, value, p->err) < 0)
		return error_prefix(
		    p->err, "--%s%s%.60s", option->name, value == NULL ? "" : " ", value == NULL ? "" : value);
	return 0;
}

/* The row that a long name means: itself, or the only one that begins so. NULL with *err. */
static const struct args_option *
args_find(struct args_parser *p, const char *name, size_t len)
{
	const struct args_option *found = NULL;
	size_t group = 0;

	for (const struct args_option *o = NULL; (o = args_next(p->syntax, &group, o)) != NULL;) {
		if (o->name == NULL || strncmp(o->name, name, len) != 0)
			continue;
		if (o->name[len] == '\0')
			return o;
		if (!p->syntax->abbreviates)
			continue;
		if (found != NULL) {
			error_set(p->err, ERROR_USAGE, "option '--%.*s' is ambiguous: --%s, --%s", (int)len, name,
			    found->name, o->name);
			/* One with exactly this name may follow. */
			for (; o != NULL; o = args_next(p->syntax, &group, o))
				if (o->name != NULL && strlen(o->name) == len && memcmp(o->name, name, len) == 0)
					return o;
			return NULL;
		}
		found = o;
	}
	if (found == NULL)
		error_set(p->err, ERROR_USAGE, "unknown option '--%.*s'", (int)len, name);
	return found;
}

/* "name" or "name=VALUE": 0, 1 for help, or -1. */
static int
args_long(struct args_parser *p, const char *word)
{
	size_t len = strcspn(word, "=");
	const struct args_option *option;

	if (strcmp(word, "help") == 0)
		return 1;
	option = args_find(p, word, len);
	return option == NULL ? -1 : args_set(p, option, word[len] == '=' ? word + len + 1 : NULL);
}

/* "abcVALUE": flags until one that takes a value takes the rest. 0, 1 for help, or -1. */
static int
args_short(struct args_parser *p, const char *word)
{
	for (; *word != '\0'; word++) {
		const struct args_option *option = NULL;
		size_t group = 0;

		while ((option = args_next(p->syntax, &group, option)) != NULL && option->letter != *word)
			;
		if (option == NULL && *word == 'h')
			return 1;
		if (option == NULL)
			return error_set(p->err, ERROR_USAGE, "unknown option '-%c'", *word);
		if (option->value != NULL)
			return args_set(p, option, word[1] == '\0' ? NULL : word + 1);
		if (args_set(p, option, NULL) < 0)
			return -1;
	}
	return 0;
}

int
args_parse(int argc, char **argv, const struct args_syntax *syntax, struct args_list *ret_operands, char ***ret_rest,
    struct error *err)
{
	struct args_parser p = {.argc = argc, .argv = argv, .syntax = syntax, .operands = ret_operands, .err = err};
	bool only_operands = false;
	int rc = 0;

	ret_operands->count = 0;
	*ret_rest = NULL;
	for (p.at = 1; rc == 0 && p.at < argc; p.at++) {
		const char *word = argv[p.at];

		if (only_operands || word[0] != '-' || word[1] == '\0') {
			rc = args_append(&p, ret_operands, word);
			if (syntax->stops) {
				*ret_rest = argv + p.at;
				break;
			}
		} else if (strcmp(word, "--") == 0) {
			only_operands = true;
		} else {
			rc = word[1] == '-' ? args_long(&p, word + 2) : args_short(&p, word + 1);
		}
	}
	return rc;
}

int
args_check_operands(const char *wanted, const struct args_list *operands, struct error *err)
{
	size_t count = 0;

	while (*wanted != '\0') {
		size_t len = strcspn(wanted, " "), name_len = strcspn(wanted, ". ");

		if (count == operands->count)
			return wanted[0] == '['
			    ? 0
			    : error_set(err, ERROR_USAGE, "missing operand: %.*s", (int)name_len, wanted);
		if (name_len < len)
			return 0;
		count++;
		wanted += len + (wanted[len] == ' ');
	}
	if (operands->count > count)
		return error_set(err, ERROR_USAGE, "extra operand '%.200s'", operands->items[count]);
	return 0;
}

static void
args_print_option(FILE *out, const struct args_option *option)
{
	char left[64], letter[] = {'-', option->letter, ',', '\0'};
	const char *value = option->value == NULL ? "" : option->value;

	snprintf(left, sizeof(left), "%-3s --%s%s%s", option->letter == 0 ? "" : letter, option->name,
	    option->value == NULL ? ""
		: value[0] == '[' ? "="
				  : " ",
	    value);
	fprintf(out, "  %-28s %s\n", left, option->help);
}

void
args_print_help(FILE *out, const struct args_syntax *syntax)
{
	static const struct args_option help = {'h', "help", .help = "show this text"};
	bool helped = false;
	size_t group = 0;

	for (const struct args_option *o = NULL; (o = args_next(syntax, &group, o)) != NULL;) {
		if (o->name != NULL) {
			args_print_option(out, o);
			continue;
		}
		if (!helped)
			args_print_option(out, &help);
		helped = true;
		fprintf(out, "\n%s\n", o->help);
	}
	if (!helped)
		args_print_option(out, &help);
}
