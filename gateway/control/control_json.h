/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Checked reading of JSON objects: every member is known, of the right type, and within its length; else an error that
 * names it. And the members that several answers write. */
#ifndef POSTERN_GATEWAY_CONTROL_JSON_H
#define POSTERN_GATEWAY_CONTROL_JSON_H

#include "base/error.h"
#include "policy/names/addr.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct control_field {
	const char *name;
	json_type type;
	bool required;
	json_t **ret; /* borrowed from the object; NULL when absent */
};

/* Parse text that must be one JSON object without duplicate keys. New reference, or NULL and err (ERROR_USAGE). */
json_t *control_json_parse(const char *text, size_t len, struct error *err);

/* Take the members apart. Unknown members, wrong types, missing required ones: -1 with ERROR_USAGE. */
int control_json_fields(json_t *object, const struct control_field *fields, size_t count, struct error *err);

/* Copy a string member's value; too long or with control characters: -1. Absent (NULL) leaves ret_text alone. */
int control_json_text(const json_t *value, const char *what, char *ret_text, size_t size, struct error *err);

/* A file's name, for messages: of a longer one the end is kept. */
int control_json_file_name(const json_t *value, const char *what, char *ret_text, size_t size, struct error *err);

/* An integer member within [min, max]. Absent leaves *ret alone. */
int control_json_integer(
    const json_t *value, const char *what, int64_t min, int64_t max, int64_t *ret, struct error *err);

/* Add a member: a text unless it is "", an address unless its family is 0, a time in µs since the epoch unless it is 0
 * (with all six digits, which sort as text). */
void control_json_set_text(json_t *object, const char *key, const char *text);
void control_json_set_addr(json_t *object, const char *key, const struct addr *addr);
void control_json_set_time(json_t *object, const char *key, int64_t us);
void control_json_set_mac(json_t *object, const char *key, const uint8_t mac[6]); /* unless all bytes are 0 */

#endif
