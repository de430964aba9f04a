/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/insert_bind.h"

#include "audit/record.h"
#include "base/escape.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Four bytes for each byte of the longest text, and the NUL. */
#define BIND_ESCAPED_MAX (4 * RECORD_DETAIL_MAX + 1)

void
binder_note(struct binder *binder, int rc)
{
	if (binder->rc == SQLITE_OK)
		binder->rc = rc;
}

void
bind_null(struct binder *binder)
{
	binder_note(binder, sqlite3_bind_null(binder->stmt, ++binder->at));
}

void
bind_integer(struct binder *binder, int64_t value)
{
	binder_note(binder, sqlite3_bind_int64(binder->stmt, ++binder->at, value));
}

void
bind_count(struct binder *binder, uint64_t value)
{
	bind_integer(binder, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

void
bind_id(struct binder *binder, uint64_t id)
{
	bind_integer(binder, (int64_t)id);
}

void
bind_addr(struct binder *binder, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	if (addr->family == 0) {
		bind_null(binder);
		return;
	}
	addr_format(addr, text);
	binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_TRANSIENT));
}

bool
insert_name_is_plain(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = bytes[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
			return false;
	}
	return len > 0;
}

void
bind_name(struct binder *binder, const uint8_t *bytes, size_t len)
{
	if (len == 0) {
		bind_null(binder);
		bind_null(binder);
	} else if (insert_name_is_plain(bytes, len)) {
		binder_note(binder,
		    sqlite3_bind_text(binder->stmt, ++binder->at, (const char *)bytes, (int)len, SQLITE_STATIC));
		bind_null(binder);
	} else {
		bind_null(binder);
		binder_note(binder, sqlite3_bind_blob(binder->stmt, ++binder->at, bytes, (int)len, SQLITE_STATIC));
	}
}

static bool
text_is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

void
bind_text(struct binder *binder, const char *text)
{
	char escaped[BIND_ESCAPED_MAX];

	if (*text == '\0') {
		bind_null(binder);
	} else if (text_is_printable(text)) {
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_STATIC));
	} else {
		escape_terminal(text, strlen(text), escaped, sizeof(escaped));
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, escaped, -1, SQLITE_TRANSIENT));
	}
}

void
bind_json(struct binder *binder, const char *text)
{
	char escaped[BIND_ESCAPED_MAX];
	json_t *value;
	char *ascii;

	if (*text == '\0') {
		bind_null(binder);
		return;
	}
	value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (value != NULL && text_is_printable(text)) {
		json_decref(value);
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_STATIC));
		return;
	}
	if (value == NULL) {
		escape_terminal(text, strlen(text), escaped, sizeof(escaped));
		value = json_string(escaped);
	}
	ascii = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(value);
	if (ascii == NULL)
		binder_note(binder, SQLITE_NOMEM);
	else
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, ascii, -1, free));
}

void
bind_optional(struct binder *binder, int64_t value, bool is_set)
{
	if (is_set)
		bind_integer(binder, value);
	else
		bind_null(binder);
}
