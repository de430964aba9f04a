/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Each allow rule for a host is held against the lists of names that deserve a word (shared.h),
 * and against the policy's other allow rules: who lists only one of "x" and "*.x" has often forgotten the other. For
 * the latter the hosts are sorted by name first, so that a policy of 100,000 rules is looked at in a moment. */
#include "policy/text/notes.h"

#include "policy/text/policy.h"
#include "policy/names/shared.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A host of an allow rule, for finding it. */
struct known {
	const struct name *name;
	bool below, itself; /* which of the two the rule covers */
};

struct lint {
	const struct policy *policy;
	const struct policy_place *places;
	struct policy_notes *notes;
	struct known *known; /* sorted by name */
	size_t known_count;
	const char **parents; /* of the known names, sorted; into their texts */
	size_t parent_count;
};

void
notes_add(struct policy_notes *notes, uint32_t line, uint32_t column, const char *text)
{
	struct policy_note *grown, *at;

	if (notes->count == notes->size && notes->size < POLICY_NOTES_MAX) {
		size_t size = notes->size == 0 ? 16 : 2 * notes->size;

		grown = reallocarray(notes->notes, size, sizeof(*grown));
		if (grown != NULL) {
			notes->notes = grown;
			notes->size = size;
		}
	}
	if (notes->count == notes->size) {
		notes->unshown++;
		return;
	}
	at = &notes->notes[notes->count++];
	*at = (struct policy_note){.line = line, .column = column};
	snprintf(at->text, sizeof(at->text), "%s", text);
}

static int
note_compare(const void *a, const void *b)
{
	const struct policy_note *left = a, *right = b;

	if (left->line != right->line)
		return left->line < right->line ? -1 : 1;
	return left->column < right->column ? -1 : left->column > right->column;
}

void
notes_sort(struct policy_notes *notes)
{
	if (notes->count > 0)
		qsort(notes->notes, notes->count, sizeof(*notes->notes), note_compare);
}

static void note(struct lint *lint, size_t rule, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

static void
note(struct lint *lint, size_t rule, const char *fmt, ...)
{
	char text[POLICY_NOTE_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	notes_add(lint->notes, lint->places == NULL ? 0 : lint->places[rule].line,
	    lint->places == NULL ? 0 : lint->places[rule].column, text);
}

static bool
is_allow_of_host(const struct rule *rule)
{
	return rule->action == RULE_ALLOW && rule->kind == RULE_HOST && !rule->bound;
}

static int
known_compare(const void *a, const void *b)
{
	const struct known *x = a, *y = b;

	return strcmp(x->name->text, y->name->text);
}

static int
text_compare(const void *a, const void *b)
{
	const char *const *x = a, *const *y = b;

	return strcmp(*x, *y);
}

static size_t
dots_in(const struct name *name)
{
	size_t dots = 0;

	for (size_t i = 0; i < name->len; i++)
		dots += name->text[i] == '.';
	return dots;
}

static void
parents_collect(struct lint *lint)
{
	size_t count = 0;

	for (size_t i = 0; i < lint->known_count; i++)
		count += dots_in(lint->known[i].name);
	lint->parents = calloc(count + 1, sizeof(*lint->parents));
	for (size_t i = 0; lint->parents != NULL && i < lint->known_count; i++)
		for (const char *dot = strchr(lint->known[i].name->text, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
			lint->parents[lint->parent_count++] = dot + 1;
	if (lint->parent_count > 0)
		qsort(lint->parents, lint->parent_count, sizeof(lint->parents[0]), text_compare);
}

static void
known_collect(struct lint *lint)
{
	lint->known = calloc(lint->policy->rule_count + 1, sizeof(*lint->known));
	for (size_t i = 0; lint->known != NULL && i < lint->policy->rule_count; i++) {
		const struct rule *rule = &lint->policy->rules[i];

		if (is_allow_of_host(rule))
			lint->known[lint->known_count++] = (struct known){.name = &rule->name,
			    .below = rule->wildcard || rule->subdomains,
			    .itself = !rule->wildcard};
	}
	if (lint->known_count > 0)
		qsort(lint->known, lint->known_count, sizeof(lint->known[0]), known_compare);
	parents_collect(lint);
}

/* Does some rule name a host below this one? Then its author knows that those are others. */
static bool
has_below(const struct lint *lint, const char *name)
{
	return lint->parent_count > 0 &&
	    bsearch(&name, lint->parents, lint->parent_count, sizeof(lint->parents[0]), text_compare) != NULL;
}

/* Does some rule for just this name cover what is below it, or the name itself? */
static bool
known_has(const struct lint *lint, const char *name, bool below)
{
	size_t low = 0, high = lint->known_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (strcmp(lint->known[middle].name->text, name) < 0)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < lint->known_count && strcmp(lint->known[low].name->text, name) == 0; low++)
		if (below ? lint->known[low].below : lint->known[low].itself)
			return true;
	return false;
}

/* Is everything below the name, or the name itself, covered by whatever rule? */
static bool
is_covered(const struct lint *lint, const struct name *name, bool below)
{
	if (known_has(lint, name->text, below))
		return true;
	for (const char *dot = strchr(name->text, '.'); dot != NULL; dot = strchr(dot + 1, '.'))
		if (known_has(lint, dot + 1, true))
			return true;
	return false;
}

/* CASES B-06. A host that is not what one registers is rarely meant with what lies below it, and a provider's suffix is
 * rarely a host. */
static void
note_half(struct lint *lint, size_t index, const struct rule *rule)
{
	if (rule->wildcard && !rule->shared && !is_covered(lint, &rule->name, false))
		note(lint, index,
		    "'*.%s' does not cover %s itself; if that is meant too, say 'host: %s' with 'subdomains: true'",
		    rule->name.text, rule->name.text, rule->name.text);
	else if (!rule->wildcard && !rule->subdomains && shared_is_apex(&rule->name) &&
	    !is_covered(lint, &rule->name, true) && !has_below(lint, rule->name.text))
		note(lint, index,
		    "'%s' covers no name below it, not even www.%s; if those are meant too, say 'subdomains: true'",
		    rule->name.text, rule->name.text);
}

/* Does the rule cover the name by what it says of names below its own? */
static bool
covers_below(const struct rule *rule, const char *name)
{
	size_t len = strlen(name);

	return (rule->wildcard || rule->subdomains) && len > rule->name.len && name[len - rule->name.len - 1] == '.' &&
	    memcmp(name + len - rule->name.len, rule->name.text, rule->name.len) == 0;
}

/* CASES B-26: an allowed name is a way out to whoever has a place there. */
static void
note_shared(struct lint *lint, size_t index, const struct rule *rule)
{
	size_t count;
	const struct shared_host *rows = shared_host_list(&count), *row = NULL;

	if (rule->shared || rule->limits.of[LIMIT_UPLOAD].hard != 0)
		return;
	if (!rule->wildcard)
		row = shared_host_find(&rule->name);
	for (size_t i = 0; i < count && row == NULL; i++)
		if (rows[i].kind == SHARED_HOST && covers_below(rule, rows[i].name))
			row = &rows[i];
	if (row != NULL)
		note(lint, index,
		    "%s holds %s: what may be fetched there may be sent there; 'limits: {upload: ...}' bounds it, "
		    "'shared: true' says that it is meant",
		    row->name, row->what);
}

static void
note_names(struct lint *lint, size_t index, const struct rule *rule)
{
	size_t count;
	const struct noted_name *rows = shared_noted_list(&count), *row = shared_noted_find(&rule->name);

	for (size_t i = 0; i < count && row == NULL; i++)
		if (covers_below(rule, rows[i].name))
			row = &rows[i];
	if (row == NULL)
		return;
	switch (row->kind) {
	case NOTED_DOH:
		note(lint, index, "%s answers DNS over HTTPS (%s): names that are asked there are not in the log",
		    row->name, row->what);
		break;
	case NOTED_EMBEDS: /* CASES B-28: the address verdict stands all the same */
		note(lint, index, "%s gives out %s: whoever asks chooses where it leads", row->name, row->what);
		break;
	case NOTED_ECH:
		note(
		    lint, index, "%s is %s: who allows it allows hellos that hide where they go", row->name, row->what);
		break;
	}
}

void
notes_collect(struct policy_notes *notes, const struct policy *policy, const struct policy_place *places)
{
	struct lint lint = {.policy = policy, .places = places, .notes = notes};

	known_collect(&lint);
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];

		if (!is_allow_of_host(rule))
			continue;
		if (lint.known != NULL)
			note_half(&lint, i, rule);
		note_shared(&lint, i, rule);
		note_names(&lint, i, rule);
	}
	free(lint.known);
	free(lint.parents);
}

void
notes_free(struct policy_notes *notes)
{
	free(notes->notes);
	*notes = (struct policy_notes){.notes = NULL};
}
