/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a record says into a statement's parameters. Text columns hold printable ASCII only: names that are not plain go
 * to a BLOB column as they came, other texts (built by us; a surprise there means a damaged sender) are escaped, and
 * JSON columns are checked to be JSON. */
#ifndef POSTERN_AUDIT_INSERT_BIND_H
#define POSTERN_AUDIT_INSERT_BIND_H

#include "policy/names/addr.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Parameters in order of their columns; the first failure sticks. Texts and blobs are copied only where that is said:
 * what they point to outlives the step. */
struct binder {
	sqlite3_stmt *stmt;
	int at; /* parameters bound so far */
	int rc; /* SQLite result code */
};

/* Keep rc if it is the first that is not SQLITE_OK. */
void binder_note(struct binder *binder, int rc);

void bind_null(struct binder *binder);
void bind_integer(struct binder *binder, int64_t value);
/* NULL unless it is set. */
void bind_optional(struct binder *binder, int64_t value, bool is_set);
/* Counts beyond what the column holds become its maximum: no count wraps into a small or negative one. */
void bind_count(struct binder *binder, uint64_t value);
/* Ids keep their 64 bits; the epoch leaves the sign bit unused in this century. */
void bind_id(struct binder *binder, uint64_t id);
/* As text, copied; NULL for an address of family 0. */
void bind_addr(struct binder *binder, const struct addr *addr);
/* Two columns: the plain name, or the bytes; both NULL if len is 0. */
void bind_name(struct binder *binder, const uint8_t *bytes, size_t len);
/* Escaped, and then copied, if a character is not printable; NULL if empty. */
void bind_text(struct binder *binder, const char *text);
/* JSON; NULL if empty. What is not JSON is kept as one escaped string: readers may rely on the column's form. */
void bind_json(struct binder *binder, const char *text);

/* May these bytes stand in a text column of names? [a-z0-9._-], at least one. */
bool insert_name_is_plain(const uint8_t *bytes, size_t len);

#endif
