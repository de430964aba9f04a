/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/args.h"

#include <string.h>

struct args_parser {
	int argc, at;
	char **argv;
	const struct args_option *options;
	size_t count;
	struct args_list *words;
	bool help;
	struct error *err;
};

static const struct args_option *
args_find(const struct args_parser *p, const char *name, size_t len)
{
	for (size_t i = 0; i < p->count; i++)
		if (strlen(p->options[i].name) == len && memcmp(p->options[i].name, name, len) == 0)
			return &p->options[i];
	return NULL;
}

static const struct args_option *
args_find_letter(const struct args_parser *p, char letter)
{
	for (size_t i = 0; i < p->count; i++)
		if (p->options[i].letter == letter)
			return &p->options[i];
	return NULL;
}

static int
args_append(struct args_parser *p, struct args_list *list, const char *item)
{
	if (list->count == ARGS_LIST_MAX)
		return error_set(p->err, ERROR_USAGE, "more than %d words or repeats of an option", ARGS_LIST_MAX);
	list->items[list->count++] = item;
	return 0;
}

static bool
args_value_optional(const struct args_option *option)
{
	return option->value != NULL && option->value[0] == '[';
}

/* Set an option's targets; value NULL: none was attached to the word. */
static int
args_set(struct args_parser *p, const struct args_option *option, const char *value)
{
	bool next = p->at + 1 < p->argc;

	if (option->value == NULL && value != NULL)
		return error_set(p->err, ERROR_USAGE, "option --%s takes no value", option->name);
	if (option->value != NULL && value == NULL) {
		if (!args_value_optional(option)) {
			if (!next)
				return error_set(
				    p->err, ERROR_USAGE, "option --%s needs a value: %s", option->name, option->value);
			value = p->argv[++p->at];
		} else if (next && p->words->count > 0 && p->argv[p->at + 1][0] != '-') {
			value = p->argv[++p->at];
		}
	}
	if (option->flag != NULL)
		*option->flag = true;
	if (option->text != NULL && value != NULL)
		*option->text = value;
	if (option->list != NULL && value != NULL)
		return args_append(p, option->list, value);
	return 0;
}

static int
args_long(struct args_parser *p, const char *word)
{
	size_t len = strcspn(word, "=");
	const struct args_option *option = args_find(p, word, len);

	if (option == NULL && strcmp(word, "help") == 0) {
		p->help = true;
		return 0;
	}
	if (option == NULL)
		return error_set(p->err, ERROR_USAGE, "unknown option --%.*s", (int)len, word);
	return args_set(p, option, word[len] == '=' ? word + len + 1 : NULL);
}

/* "-abcVALUE": flags until one that takes a value takes the rest. */
static int
args_short(struct args_parser *p, const char *word)
{
	for (; *word != '\0'; word++) {
		const struct args_option *option = args_find_letter(p, *word);

		if (option == NULL && *word == 'h') {
			p->help = true;
			continue;
		}
		if (option == NULL)
			return error_set(p->err, ERROR_USAGE, "unknown option -%c", *word);
		if (option->value != NULL)
			return args_set(p, option, word[1] == '\0' ? NULL : word + 1);
		if (args_set(p, option, NULL) < 0)
			return -1;
	}
	return 0;
}

static int
args_word(struct args_parser *p, bool *only_words)
{
	const char *word = p->argv[p->at];

	if (*only_words || word[0] != '-' || word[1] == '\0')
		return args_append(p, p->words, word);
	if (strcmp(word, "--") == 0) {
		*only_words = true;
		return 0;
	}
	return word[1] == '-' ? args_long(p, word + 2) : args_short(p, word + 1);
}

int
args_parse(int argc, char **argv, const struct args_option *options, size_t count, struct args_list *ret_words,
    struct error *err)
{
	struct args_parser p = {
	    .argc = argc, .argv = argv, .options = options, .count = count, .words = ret_words, .err = err};
	bool only_words = false;

	ret_words->count = 0;
	for (p.at = 1; p.at < argc; p.at++) {
		if (args_word(&p, &only_words) < 0)
			return -1;
		if (p.help)
			return 1;
	}
	return 0;
}

void
args_print_help(FILE *out, const struct args_option *options, size_t count)
{
	char left[64];

	for (size_t i = 0; i < count; i++) {
		const struct args_option *option = &options[i];
		const char *value = option->value == NULL ? "" : option->value;
		const char *join = option->value == NULL ? "" : args_value_optional(option) ? "=" : " ";

		if (option->letter != 0)
			snprintf(left, sizeof(left), "-%c, --%s%s%s", option->letter, option->name, join, value);
		else
			snprintf(left, sizeof(left), "    --%s%s%s", option->name, join, value);
		fprintf(out, "  %-28s %s\n", left, option->help);
	}
}
