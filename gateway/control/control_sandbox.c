/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_sandbox.h"

#include <errno.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* -- policy texts -------------------------------------------------------------------------------------------------- */

/* One text, however many sandboxes have it. */
struct shared_text {
	size_t holders, len;
	const char *text; /* copy; in a key to look for, the caller's */
	char copy[];
};

static void *texts; /* tsearch(3), of struct shared_text */

static int
text_compare(const void *left, const void *right)
{
	const struct shared_text *a = left, *b = right;

	if (a->len != b->len)
		return a->len < b->len ? -1 : 1;
	return memcmp(a->text, b->text, a->len);
}

const char *
control_sandbox_share_text(const char *text)
{
	struct shared_text key = {.text = text}, *shared, **found;

	if (text == NULL)
		return NULL;
	key.len = strlen(text);
	found = tfind(&key, &texts, text_compare);
	if (found != NULL) {
		(*found)->holders++;
		return (*found)->copy;
	}
	shared = malloc(sizeof(*shared) + key.len + 1);
	if (shared == NULL)
		return NULL;
	*shared = (struct shared_text){.holders = 1, .len = key.len, .text = shared->copy};
	memcpy(shared->copy, text, key.len + 1);
	if (tsearch(shared, &texts, text_compare) == NULL) {
		free(shared);
		return NULL;
	}
	return shared->copy;
}

void
control_sandbox_release_text(const char *text)
{
	struct shared_text *shared;

	if (text == NULL)
		return;
	shared = (struct shared_text *)((uintptr_t)text - offsetof(struct shared_text, copy));
	if (--shared->holders > 0)
		return;
	tdelete(shared, &texts, text_compare);
	free(shared);
}

/* -- the table ----------------------------------------------------------------------------------------------------- */

static int
sandbox_compare(const void *a, const void *b)
{
	const struct control_sandbox *left = a, *right = b;

	return strcmp(left->name, right->name);
}

struct control_sandbox *
control_sandbox_find(struct control *control, const char *name)
{
	struct control_sandbox key;
	void *node;

	snprintf(key.name, sizeof(key.name), "%s", name);
	node = tfind(&key, &control->sandboxes, sandbox_compare);
	return node == NULL ? NULL : *(struct control_sandbox **)node;
}

struct control_sandbox *
control_sandbox_need(struct control *control, const char *name, struct error *err)
{
	struct control_sandbox *sandbox = control_sandbox_find(control, name);

	if (sandbox == NULL)
		error_set(err, ERROR_NOT_FOUND, "no sandbox %s", name);
	return sandbox;
}

struct control_sandbox *
control_sandbox_settled(struct control *control, const char *name, struct error *err)
{
	struct control_sandbox *sandbox = control_sandbox_need(control, name, err);

	if (sandbox == NULL || !sandbox->restoring)
		return sandbox;
	error_set(err, ERROR_EXISTS, "sandbox %s is being re-attached after a start; try again", name);
	return NULL;
}

struct control_sandbox *
control_sandbox_new(const char *name)
{
	struct control_sandbox *sandbox = calloc(1, sizeof(*sandbox));

	if (sandbox == NULL)
		return NULL;
	tap_config_init(&sandbox->config);
	policy_init(&sandbox->edits);
	snprintf(sandbox->name, sizeof(sandbox->name), "%s", name);
	snprintf(sandbox->config.name, sizeof(sandbox->config.name), "%s", name);
	return sandbox;
}

int
control_sandbox_insert(struct control *control, struct control_sandbox *sandbox)
{
	if (tsearch(sandbox, &control->sandboxes, sandbox_compare) == NULL)
		return -ENOMEM;
	control->sandbox_count++;
	return 0;
}

void
control_sandbox_remove(struct control *control, struct control_sandbox *sandbox)
{
	tdelete(sandbox, &control->sandboxes, sandbox_compare);
	control->sandbox_count--;
	control_sandbox_free(sandbox);
}

void
control_sandbox_free(struct control_sandbox *sandbox)
{
	if (sandbox == NULL)
		return;
	control_sandbox_release_text(sandbox->policy_text);
	policy_free(&sandbox->edits);
	snapshot_free(sandbox->snapshot);
	usage_table_free(&sandbox->usage);
	json_decref(sandbox->labels);
	free(sandbox);
}

struct sandbox_walk {
	void (*handler)(struct control_sandbox *sandbox, void *context);
	void *context;
};

static void
sandbox_visit(const void *node, VISIT which, void *context)
{
	const struct sandbox_walk *walk = context;

	if (which == postorder || which == leaf)
		walk->handler(*(struct control_sandbox *const *)node, walk->context);
}

void
control_sandbox_each(
    struct control *control, void (*handler)(struct control_sandbox *sandbox, void *context), void *context)
{
	struct sandbox_walk walk = {.handler = handler, .context = context};

	twalk_r(control->sandboxes, sandbox_visit, &walk);
}

const char *
control_sandbox_state(const struct control_sandbox *sandbox)
{
	if (sandbox->restoring)
		return "restoring";
	return sandbox->error[0] != '\0' || !sandbox->attached ? "broken" : "attached";
}

uint64_t
control_sandbox_uses(const struct control_sandbox *sandbox, uint32_t rule)
{
	const struct msg_usage_row *row = usage_table_find(&sandbox->usage, snapshot_rule_id(sandbox->snapshot, rule));

	return row == NULL ? 0 : row->uses;
}
