/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/json_line.h"
#include "audit/show/render.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

void
json_line_put_text(json_t *object, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		json_object_set_new(object, key, json_string(text));
}

void
json_line_put_bytes(json_t *object, const char *key, struct query_text text)
{
	char escaped[JSON_LINE_TEXT_MAX];

	json_line_put_text(object, key, render_escape(text, escaped, sizeof(escaped)));
}

void
json_line_put_integer(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

void
json_line_put_number(json_t *object, const char *key, struct query_number number)
{
	if (number.set)
		json_line_put_integer(object, key, number.value);
}

void
json_line_put_decimal(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, json_sprintf("%" PRId64, value));
}

void
json_line_put_own(json_t *object, const char *key, json_t *value_own)
{
	if (json_object_size(value_own) > 0 || json_array_size(value_own) > 0)
		json_object_set(object, key, value_own);
	json_decref(value_own);
}

static json_t *
json_join(const json_t *array)
{
	char text[JSON_LINE_TEXT_MAX] = "";
	size_t at = 0, i;
	json_t *item;

	json_array_foreach(array, i, item)
	{
		size_t len = json_string_length(item);

		/* Whole items only: a cut could be in the middle of a character. */
		if (len == 0 || at + len + 3 > sizeof(text))
			continue;
		at += (size_t)snprintf(
		    text + at, sizeof(text) - at, "%s%s", at == 0 ? "" : ", ", json_string_value(item));
	}
	return json_string(text);
}

void
json_line_put_member(json_t *object, const char *key, const json_t *from, const char *member)
{
	json_t *value = json_object_get(from, member);

	if (json_is_array(value))
		value = json_join(value);
	else
		json_incref(value);
	if (json_string_length(value) > 0)
		json_object_set(object, key, value);
	json_decref(value);
}

static json_t *
json_load_column(struct query_text text, int type)
{
	json_t *value = text.len == 0 ? NULL : json_loadb(text.bytes, text.len, JSON_REJECT_DUPLICATES, NULL);

	if (value != NULL && (int)json_typeof(value) == type)
		return value;
	json_decref(value);
	return NULL;
}

json_t *
json_line_load_object(struct query_text text)
{
	return json_load_column(text, JSON_OBJECT);
}

json_t *
json_line_load_array(struct query_text text)
{
	return json_load_column(text, JSON_ARRAY);
}

int
json_line_print_own(FILE *out, json_t *object_own)
{
	char *text = json_dumps(object_own, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));

	json_decref(object_own);
	if (text == NULL)
		return -ENOMEM;
	/* DEL is the one byte outside 0x20-0x7e that jansson leaves. */
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == 0x7f)
			fputs("\\u007f", out);
		else
			fputc(*at, out);
	}
	fputc('\n', out);
	free(text);
	return 0;
}
