/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows as JSON: one object a line, printable ASCII, members only where there is something to say. */
#ifndef POSTERN_AUDIT_JSON_LINE_H
#define POSTERN_AUDIT_JSON_LINE_H

#include "audit/query/query.h"

#include <jansson.h>
#include <stdio.h>

/* Longer texts are cut. Detail and answers of the longest record fit. */
#define JSON_LINE_TEXT_MAX 8192

/* Set a member; an empty text, a text column or number that is NULL, or a value without members sets none. */
void json_line_put_text(json_t *object, const char *key, const char *text);
void json_line_put_bytes(json_t *object, const char *key, struct query_text text);
void json_line_put_integer(json_t *object, const char *key, int64_t value);
void json_line_put_number(json_t *object, const char *key, struct query_number number);
void json_line_put_decimal(json_t *object, const char *key, int64_t value); /* as a text */
void json_line_put_own(json_t *object, const char *key, json_t *value_own);

/* Set a member to a text that is a member of another object, or to the texts of an array there, joined by ", ". Their
 * Unicode is kept. */
void json_line_put_member(json_t *object, const char *key, const json_t *from, const char *member);

/* A JSON column, an object or an array: the value when that is what it holds, else NULL. The caller frees it. */
json_t *json_line_load_object(struct query_text text);
json_t *json_line_load_array(struct query_text text);

/* Write the object and a newline. 0 or -ENOMEM. */
int json_line_print_own(FILE *out, json_t *object_own);

#endif
