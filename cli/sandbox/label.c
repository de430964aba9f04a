/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/label.h"

#include <stdio.h>
#include <string.h>

static int
label_add(json_t *labels, const char *word, struct error *err)
{
	json_t *value;
	size_t key_len = strcspn(word, "=");
	char key[128];

	if (word[key_len] != '=' || key_len == 0 || key_len >= sizeof(key))
		return error_set(err, ERROR_USAGE, "--label %.100s: write KEY=VALUE", word);
	memcpy(key, word, key_len);
	key[key_len] = '\0';
	if (json_object_get(labels, key) != NULL)
		return error_set(err, ERROR_USAGE, "--label %s: given twice", key);
	value = json_string(word + key_len + 1);
	if (value == NULL || json_object_set_new(labels, key, value) < 0)
		return error_set(err, ERROR_USAGE, "--label %.100s: not printable ASCII", key);
	return 0;
}

int
label_add_all(json_t *request, const struct args_list *words, struct error *err)
{
	json_t *labels;

	if (words->count == 0)
		return 0;
	labels = json_object();
	json_object_set_new(request, "labels", labels);
	for (size_t i = 0; i < words->count; i++)
		if (label_add(labels, words->items[i], err) < 0)
			return -1;
	return 0;
}

bool
label_matches(const json_t *sandbox, const char *filter)
{
	size_t key_len = strcspn(filter, "=");
	const char *key;
	json_t *value;

	json_object_foreach(json_object_get(sandbox, "labels"), key, value)
	{
		if (strlen(key) == key_len && memcmp(key, filter, key_len) == 0)
			return filter[key_len] == '\0' || strcmp(filter + key_len + 1, json_string_value(value)) == 0;
	}
	return false;
}

void
label_format(const json_t *sandbox, char *ret_text, size_t size)
{
	const char *key;
	json_t *value;
	size_t len = 0;

	ret_text[0] = '\0';
	json_object_foreach(json_object_get(sandbox, "labels"), key, value)
	{
		int n = snprintf(
		    ret_text + len, size - len, "%s%s=%s", len == 0 ? "" : ", ", key, json_string_value(value));

		if (n < 0 || (size_t)n >= size - len)
			return;
		len += (size_t)n;
	}
}
