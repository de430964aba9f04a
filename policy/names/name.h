/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host names: (pointer, length) from the wire is made canonical once, here, and compared only in that form.
 *
 * Canonical: ASCII lower case, labels of [a-z0-9_-] of 1..63 bytes, at most 253 bytes, no trailing dot, not an address
 * in any spelling (CASES A-16: a last label that is all digits or 0x... is refused). No locale is asked. */
#ifndef POSTERN_POLICY_NAME_H
#define POSTERN_POLICY_NAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* RFC 1035: 255 bytes on the wire are 253 as text. */
#define NAME_TEXT_MAX 253

struct name {
	uint8_t len;                  /* 1..253 */
	char text[NAME_TEXT_MAX + 1]; /* canonical, NUL-terminated, bytes after len zero */
};

enum name_error {
	NAME_OK = 0,
	NAME_EMPTY,       /* "" or "." */
	NAME_TOO_LONG,    /* a label over 63 or a name over 253 bytes */
	NAME_EMPTY_LABEL, /* "a..b", ".a", "a.." */
	NAME_BAD_BYTE,    /* anything outside [A-Za-z0-9_-.], NUL included */
	NAME_NUMERIC,     /* looks like an IPv4 address in some spelling */
	NAME_ERROR_MAX
};

/* Text as in SNI, Host (port removed), policy and DNS presentation form; one trailing dot is stripped. */
enum name_error name_canonical(const void *bytes, size_t len, struct name *ret_name);

/* Uncompressed wire labels ("\3www\7example\3com\0"), all of len used. */
enum name_error name_from_wire(const uint8_t *bytes, size_t len, struct name *ret_name);

/* A person's sentence for an error. */
const char *name_error_text(enum name_error error);

bool name_equal(const struct name *a, const struct name *b);

/* Is name one or more labels below parent ("a.b.x" below "x", not "x" itself, not "notx")? */
bool name_below(const struct name *name, const struct name *parent);

/* UTF-8 or ASCII as a person typed it in a policy -> A-labels (UTS 46 by libidn2), then name_canonical. */
enum name_error name_from_user(const char *text, size_t len, struct name *ret_name);

/* Rows of policy/names/names.csv, compiled at build time. */
enum never_name_match { NEVER_NAME_EXACT, NEVER_NAME_SUFFIX, NEVER_NAME_LABEL };
struct never_name {
	const char *name;
	enum never_name_match match; /* suffix: itself and all below; label: any label equals it */
	const char *why;
};

/* Is the name refused whatever a policy says? NULL: no. Static storage. Single-label names are always refused
 * (CASES A-23, C-29: metadata, special-use, discovery names). */
const struct never_name *name_never(const struct name *name);

const struct never_name *name_never_list(size_t *ret_count);

#endif
