/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_text.h"

#include <search.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shared_text {
	size_t holders, len;
	const char *text; /* copy, or while it is looked for the caller's */
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
control_text_share(const char *text)
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
control_text_release(const char *text)
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
