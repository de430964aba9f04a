/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_json.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

static const char *const json_types[] = {
    [JSON_OBJECT] = "an object",
    [JSON_ARRAY] = "an array",
    [JSON_STRING] = "a string",
    [JSON_INTEGER] = "an integer",
    [JSON_REAL] = "a number",
    [JSON_TRUE] = "true or false",
    [JSON_FALSE] = "true or false",
    [JSON_NULL] = "null",
};

json_t *
control_json_parse(const char *text, size_t len, struct error *err)
{
	json_error_t where;
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, &where);

	if (object == NULL) {
		error_set(
		    err, ERROR_USAGE, "body is not JSON: line %d, column %d: %s", where.line, where.column, where.text);
		return NULL;
	}
	if (!json_is_object(object)) {
		json_decref(object);
		error_set(err, ERROR_USAGE, "body must be a JSON object");
		return NULL;
	}
	return object;
}

/* Names the members that are known. Returns -1. */
static int
json_unknown(const char *name, const struct control_field *fields, size_t count, struct error *err)
{
	char known[512] = "";
	size_t len = 0;

	for (size_t i = 0; i < count && len < sizeof(known); i++)
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", i == 0 ? "" : ", ", fields[i].name);
	if (count == 0)
		return error_set(err, ERROR_USAGE, "unknown member \"%.100s\"; none is expected", name);
	return error_set(err, ERROR_USAGE, "unknown member \"%.100s\"; known are: %s", name, known);
}

int
control_json_fields(json_t *object, const struct control_field *fields, size_t count, struct error *err)
{
	const char *name;
	json_t *value;

	for (size_t i = 0; i < count; i++)
		*fields[i].ret = NULL;
	json_object_foreach(object, name, value)
	{
		const struct control_field *field = fields;

		while (field < fields + count && strcmp(field->name, name) != 0)
			field++;
		if (field == fields + count)
			return json_unknown(name, fields, count, err);
		if (field->type == JSON_TRUE ? !json_is_boolean(value) : json_typeof(value) != field->type)
			return error_set(err, ERROR_USAGE, "\"%s\" must be %s, not %s", name, json_types[field->type],
			    json_types[json_typeof(value)]);
		*field->ret = value;
	}
	for (size_t i = 0; i < count; i++)
		if (fields[i].required && *fields[i].ret == NULL)
			return error_set(err, ERROR_USAGE, "\"%s\" is missing", fields[i].name);
	return 0;
}

int
control_json_text(const json_t *value, const char *what, char *ret_text, size_t size, struct error *err)
{
	const char *text;
	size_t len;

	if (value == NULL)
		return 0;
	text = json_string_value(value);
	len = json_string_length(value);
	if (len >= size)
		return error_set(err, ERROR_USAGE, "\"%s\" is longer than %zu bytes", what, size - 1);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return error_set(err, ERROR_USAGE, "\"%s\" contains a control character", what);
	memcpy(ret_text, text, len);
	ret_text[len] = '\0';
	return 0;
}

int
control_json_file_name(const json_t *value, const char *what, char *ret_text, size_t size, struct error *err)
{
	const char *text = json_string_value(value);
	size_t len = value == NULL ? 0 : json_string_length(value);
	json_t *end;
	int rc;

	if (len < size)
		return control_json_text(value, what, ret_text, size, err);
	text += len - (size - 1);
	while (((unsigned char)*text & 0xc0) == 0x80) /* not in the middle of a character */
		text++;
	end = json_string(text);
	rc = end == NULL ? error_set(err, ERROR_SYSTEM, "out of memory")
			 : control_json_text(end, what, ret_text, size, err);
	json_decref(end);
	return rc;
}

int
control_json_integer(const json_t *value, const char *what, int64_t min, int64_t max, int64_t *ret, struct error *err)
{
	json_int_t number;

	if (value == NULL)
		return 0;
	number = json_integer_value(value);
	if (number < min || number > max)
		return error_set(
		    err, ERROR_USAGE, "\"%s\" must be between %lld and %lld", what, (long long)min, (long long)max);
	*ret = number;
	return 0;
}

void
control_json_set_text(json_t *object, const char *key, const char *text)
{
	if (text[0] != '\0')
		json_object_set_new(object, key, json_string(text));
}

void
control_json_set_addr(json_t *object, const char *key, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	if (addr->family != 0)
		json_object_set_new(object, key, json_string(addr_format(addr, text)));
}

void
control_json_set_time(json_t *object, const char *key, int64_t us)
{
	time_t seconds = (time_t)(us / 1000000);
	char text[40];
	struct tm tm;

	if (us == 0 || gmtime_r(&seconds, &tm) == NULL)
		return;
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	json_object_set_new(object, key, json_sprintf("%s.%06lldZ", text, (long long)(us % 1000000)));
}

void
control_json_set_mac(json_t *object, const char *key, const uint8_t mac[6])
{
	if (memcmp(mac, (const uint8_t[6]){0}, 6) != 0)
		json_object_set_new(object, key,
		    json_sprintf("%02x:%02x:%02x:%02x:%02x:%02x", mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]));
}
