/* SPDX-License-Identifier: GPL-3.0-or-later */
/* JSON of the exports: one object a line, printable ASCII, members only where there is something to say. */
#ifndef POSTERN_AUDIT_EXPORT_JSON_H
#define POSTERN_AUDIT_EXPORT_JSON_H

#include "audit/query.h"

#include <jansson.h>
#include <stdio.h>

/* Set a member; an empty text, a text column or number that is NULL, or a value without members sets none. */
void export_put_text(json_t *object, const char *key, const char *text);
void export_put_bytes(json_t *object, const char *key, struct query_text text);
void export_put_integer(json_t *object, const char *key, int64_t value);
void export_put_number(json_t *object, const char *key, struct query_number number);
void export_put_own(json_t *object, const char *key, json_t *value_own);

/* Set a member to a text that is a member of another object, or to the texts of an array there, joined by ", ". Their
 * Unicode is kept. */
void export_put_member(json_t *object, const char *key, const json_t *from, const char *member);

/* A JSON column, an object or an array: the value when that is what it holds, else NULL. The caller frees it. */
json_t *export_load_object(struct query_text text);
json_t *export_load_array(struct query_text text);

/* Write the object and a newline. 0 or -ENOMEM. */
int export_print_own(FILE *out, json_t *object_own);

#endif
