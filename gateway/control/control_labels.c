/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_labels.h"

#include "gateway/control/control_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int
labels_check_key(const char *key, struct error *err)
{
	size_t len = strlen(key);

	if (len == 0 || len > CONTROL_LABEL_KEY_MAX || strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789._/-") != len)
		return error_set(err, ERROR_USAGE,
		    "label '%.100s': a key is 1 to %d of a to z, digits, '.', '_', '/' and '-'", key,
		    CONTROL_LABEL_KEY_MAX);
	return 0;
}

/* Printable ASCII: labels are compared and joined by programs, and two that look alike should be alike. */
static int
labels_check_value(const char *key, const json_t *value, struct error *err)
{
	const char *text = json_string_value(value);
	size_t len = json_string_length(value);

	if (text == NULL)
		return error_set(err, ERROR_USAGE, "label '%s': its value must be a string", key);
	if (len > CONTROL_LABEL_VALUE_MAX)
		return error_set(
		    err, ERROR_USAGE, "label '%s': its value is longer than %d bytes", key, CONTROL_LABEL_VALUE_MAX);
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] > 0x7e)
			return error_set(err, ERROR_USAGE, "label '%s': its value is not printable ASCII", key);
	return 0;
}

int
control_labels_parse(const json_t *labels, json_t **ret_labels, struct error *err)
{
	const char *key;
	json_t *value, *copy;
	char *text;
	size_t len;

	if (json_object_size(labels) == 0)
		return 0;
	if (json_object_size(labels) > CONTROL_LABELS_MAX)
		return error_set(err, ERROR_USAGE, "more than %d labels", CONTROL_LABELS_MAX);
	copy = json_deep_copy(labels);
	json_object_foreach(copy, key, value)
	{
		if (labels_check_key(key, err) < 0 || labels_check_value(key, value, err) < 0) {
			json_decref(copy);
			return -1;
		}
	}
	text = json_dumps(copy, JSON_COMPACT);
	len = text == NULL ? 0 : strlen(text);
	free(text);
	if (len == 0 || len > CONTROL_LABELS_TEXT_MAX) {
		json_decref(copy);
		if (len == 0)
			return error_set(err, ERROR_SYSTEM, "out of memory");
		return error_set(
		    err, ERROR_USAGE, "the labels are longer than %d bytes together", CONTROL_LABELS_TEXT_MAX);
	}
	*ret_labels = copy;
	return 0;
}

int
control_parent_find(struct control *control, const json_t *value, struct control_sandbox *sandbox, struct error *err)
{
	char name[TAP_NAME_MAX] = "";
	const struct control_sandbox *parent;

	if (value == NULL)
		return 0;
	if (control_json_text(value, "parent", name, sizeof(name), err) < 0)
		return -1;
	parent = control_sandbox_find(control, name);
	if (parent == NULL || parent->id == 0)
		return error_set(err, ERROR_NOT_FOUND,
		    "parent %s: no sandbox of this name is attached; attach clones while their parent is", name);
	memcpy(sandbox->parent, parent->name, sizeof(sandbox->parent));
	sandbox->parent_id = parent->id;
	return 0;
}

int
control_parent_parse(json_t *object, struct control_sandbox *sandbox, struct error *err)
{
	json_t *name, *id;
	const struct control_field fields[] = {
	    {"name", JSON_STRING, true, &name},
	    {"id", JSON_INTEGER, true, &id},
	};

	if (object == NULL)
		return 0;
	if (control_json_fields(object, fields, sizeof(fields) / sizeof(fields[0]), err) < 0 ||
	    control_json_text(name, "parent", sandbox->parent, sizeof(sandbox->parent), err) < 0)
		return -1;
	if (!tap_config_name_valid(sandbox->parent, sizeof(sandbox->parent)))
		return error_set(err, ERROR_USAGE, "\"parent\" holds no sandbox's name");
	return control_json_integer(id, "parent's id", 1, INT64_MAX, &sandbox->parent_id, err);
}

void
control_labels_format(json_t *object, const struct control_sandbox *sandbox)
{
	if (sandbox->labels != NULL)
		json_object_set(object, "labels", sandbox->labels);
	if (sandbox->parent[0] != '\0')
		json_object_set_new(object, "parent",
		    json_pack("{s:s, s:I}", "name", sandbox->parent, "id", (json_int_t)sandbox->parent_id));
}
