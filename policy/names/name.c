/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Host names: one fold, one form, one comparison.
 *
 * Every byte goes through one table; no function of <ctype.h> and no locale is asked, since under tr_TR "I" does not
 * fold to "i". A name is refused before it is copied when it is too long, and nothing after a NUL is ever dropped: a
 * NUL is a byte outside the set like any other. */
#include "policy/names/name.h"

#include "base/reader.h"

#include <assert.h>
#include <idn2.h>
#include <string.h>

#define NEVER_LIST_NAMES
#include "never_list.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* RFC 1035 section 2.3.4. */
#define LABEL_MAX 63
/* A name of a person's typing, in UTF-8, before it becomes A-labels: four bytes a character. */
#define NAME_USER_MAX (4 * (NAME_TEXT_MAX + 1))

static_assert(COUNT(never_names) == COUNT(never_name_lens), "one length per name");

static const struct never_name never_single = {
    .name = "single-label names", .match = NEVER_NAME_EXACT, .why = "a name without a dot is local to a search list"};

/* The canonical byte, or 0 for a byte no name holds. The dot is not in the set: callers look for it first. */
static char
fold(uint8_t byte)
{
	if (byte >= 'A' && byte <= 'Z')
		return (char)(byte + ('a' - 'A'));
	if ((byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '-' || byte == '_')
		return (char)byte;
	return 0;
}

/* Does the name's last label make a reader such as inet_aton take it for IPv4? All digits, or 0x and hex digits. */
static bool
last_label_is_numeric(const struct name *name)
{
	const char *end = name->text + name->len, *label = end;
	bool digits = true, hex = true;

	while (label > name->text && label[-1] != '.')
		label--;
	hex = end - label >= 2 && label[0] == '0' && label[1] == 'x';
	for (const char *p = label; p < end; p++) {
		bool digit = *p >= '0' && *p <= '9';

		digits = digits && digit;
		if (p - label >= 2)
			hex = hex && (digit || (*p >= 'a' && *p <= 'f'));
	}
	return digits || hex;
}

enum name_error
name_canonical(const void *bytes, size_t len, struct name *ret_name)
{
	const uint8_t *in = bytes;
	struct name name = {.len = 0};
	size_t label = 0;

	if (len > 0 && in[len - 1] == '.')
		len--;
	if (len == 0)
		return NAME_EMPTY;
	if (len > NAME_TEXT_MAX)
		return NAME_TOO_LONG;
	for (size_t i = 0; i < len; i++) {
		if (in[i] == '.') {
			if (label == 0)
				return NAME_EMPTY_LABEL;
			label = 0;
			name.text[i] = '.';
			continue;
		}
		name.text[i] = fold(in[i]);
		if (name.text[i] == 0)
			return NAME_BAD_BYTE;
		if (++label > LABEL_MAX)
			return NAME_TOO_LONG;
	}
	if (label == 0)
		return NAME_EMPTY_LABEL;
	name.len = (uint8_t)len;
	if (last_label_is_numeric(&name))
		return NAME_NUMERIC;
	*ret_name = name;
	return NAME_OK;
}

enum name_error
name_from_wire(const uint8_t *bytes, size_t len, struct name *ret_name)
{
	struct reader wire = reader_make(bytes, len);
	char text[NAME_TEXT_MAX];
	size_t text_len = 0;

	for (;;) {
		uint8_t label_len = reader_u8(&wire);
		const uint8_t *label = reader_bytes(&wire, label_len);

		if (!reader_ok(&wire))
			return NAME_BAD_BYTE;
		if (label_len == 0)
			break;
		if (label_len > LABEL_MAX || text_len + (text_len > 0) + label_len > sizeof(text))
			return NAME_TOO_LONG;
		/* A dot inside a label would read as two labels. */
		if (memchr(label, '.', label_len) != NULL)
			return NAME_BAD_BYTE;
		if (text_len > 0)
			text[text_len++] = '.';
		memcpy(text + text_len, label, label_len);
		text_len += label_len;
	}
	if (!reader_done(&wire))
		return NAME_BAD_BYTE;
	return name_canonical(text, text_len, ret_name);
}

const char *
name_error_text(enum name_error error)
{
	static const char *const texts[] = {
	    [NAME_OK] = "is a host name",
	    [NAME_EMPTY] = "is empty",
	    [NAME_TOO_LONG] = "is too long (63 bytes a label, 253 in all)",
	    [NAME_EMPTY_LABEL] = "has an empty label (two dots in a row, or a dot in front)",
	    [NAME_BAD_BYTE] = "holds a character that no host name has (letters, digits, '-', '_' and '.')",
	    [NAME_NUMERIC] = "is a number that some programs read as an IPv4 address",
	};
	static_assert(COUNT(texts) == NAME_ERROR_MAX, "one text per error");

	return (unsigned int)error < NAME_ERROR_MAX ? texts[error] : "?";
}

bool
name_equal(const struct name *a, const struct name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Is text at or below suffix, counted in whole labels? */
static bool
suffix_matches(const struct name *name, const char *suffix, size_t len)
{
	if (name->len < len || memcmp(name->text + name->len - len, suffix, len) != 0)
		return false;
	return name->len == len || name->text[name->len - len - 1] == '.';
}

bool
name_below(const struct name *name, const struct name *parent)
{
	return name->len > parent->len && suffix_matches(name, parent->text, parent->len);
}

enum name_error
name_from_user(const char *text, size_t len, struct name *ret_name)
{
	char copy[NAME_USER_MAX + 1];
	uint8_t *ascii = NULL;
	enum name_error error;
	bool plain = true;
	int result;

	for (size_t i = 0; i < len; i++)
		plain = plain && text[i] > 0;
	if (plain)
		return name_canonical(text, len, ret_name);
	if (len > NAME_USER_MAX)
		return NAME_TOO_LONG;
	if (memchr(text, '\0', len) != NULL)
		return NAME_BAD_BYTE;
	memcpy(copy, text, len);
	copy[len] = '\0';
	result = idn2_lookup_u8((const uint8_t *)copy, &ascii, IDN2_NFC_INPUT | IDN2_NONTRANSITIONAL);
	if (result == IDN2_TOO_BIG_DOMAIN || result == IDN2_TOO_BIG_LABEL)
		return NAME_TOO_LONG;
	if (result != IDN2_OK)
		return NAME_BAD_BYTE;
	error = name_canonical(ascii, strlen((const char *)ascii), ret_name);
	idn2_free(ascii);
	return error;
}

/* Is one of the name's labels exactly this one? */
static bool
has_label(const struct name *name, const char *label, size_t len)
{
	size_t start = 0;

	for (size_t i = 0; i <= name->len; i++) {
		if (i < name->len && name->text[i] != '.')
			continue;
		if (i - start == len && memcmp(name->text + start, label, len) == 0)
			return true;
		start = i + 1;
	}
	return false;
}

/* Does a row of the never list cover the name? len is the length of the row's name. */
static bool
row_matches(const struct name *name, const struct never_name *row, size_t len)
{
	switch (row->match) {
	case NEVER_NAME_EXACT:
		return name->len == len && memcmp(name->text, row->name, len) == 0;
	case NEVER_NAME_SUFFIX:
		return suffix_matches(name, row->name, len);
	case NEVER_NAME_LABEL:
		return has_label(name, row->name, len);
	}
	return true;
}

const struct never_name *
name_never(const struct name *name)
{
	for (size_t i = 0; i < COUNT(never_names); i++)
		if (row_matches(name, &never_names[i], never_name_lens[i]))
			return &never_names[i];
	return memchr(name->text, '.', name->len) == NULL ? &never_single : NULL;
}

const struct never_name *
name_never_list(size_t *ret_count)
{
	*ret_count = COUNT(never_names);
	return never_names;
}
