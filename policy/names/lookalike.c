/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A label is turned back from Punycode into code points, and for each the script is looked up in
 * the blocks of the three scripts whose letters are mistaken for each other (UTS 39 section 5.1 asks for one script per
 * label; other scripts do not look alike and are let be). Digits and the hyphen belong to none. */
#include "policy/names/lookalike.h"

#include <assert.h>
#include <idn2.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define A_LABEL "xn--"
#define LABEL_MAX 63

enum { SCRIPT_LATIN = 1, SCRIPT_CYRILLIC = 2, SCRIPT_GREEK = 4 };

struct block {
	uint32_t first, last;
	unsigned int script;
};

static const struct block blocks[] = {
    {'a', 'z', SCRIPT_LATIN},
    {0x00df, 0x00f6, SCRIPT_LATIN},
    {0x00f8, 0x02af, SCRIPT_LATIN},
    {0x1e00, 0x1eff, SCRIPT_LATIN},
    {0x2c60, 0x2c7f, SCRIPT_LATIN},
    {0xa720, 0xa7ff, SCRIPT_LATIN},
    {0x0370, 0x03ff, SCRIPT_GREEK},
    {0x1f00, 0x1fff, SCRIPT_GREEK},
    {0x0400, 0x052f, SCRIPT_CYRILLIC},
    {0x1c80, 0x1c8f, SCRIPT_CYRILLIC},
    {0x2de0, 0x2dff, SCRIPT_CYRILLIC},
    {0xa640, 0xa69f, SCRIPT_CYRILLIC},
};

/* Cyrillic small letters that look like Latin ones: a e o p c y x s i j h v(izhitsa) d q w l. */
static const uint32_t latin_looking[] = {0x0430, 0x0435, 0x043e, 0x0440, 0x0441, 0x0443, 0x0445, 0x0455, 0x0456, 0x0458,
    0x04bb, 0x0475, 0x0501, 0x051b, 0x051d, 0x04cf, 0x04af, 0x0433, 0x044c};

/* The script of a code point, of those that are mistaken for each other; 0 for all others. */
static unsigned int
script_of(uint32_t code)
{
	for (size_t i = 0; i < COUNT(blocks); i++)
		if (blocks[i].first <= code && code <= blocks[i].last)
			return blocks[i].script;
	return 0;
}

/* Does the code point look like a Latin letter, a digit or ASCII punctuation? */
static bool
looks_latin(uint32_t code)
{
	for (size_t i = 0; i < COUNT(latin_looking); i++)
		if (latin_looking[i] == code)
			return true;
	return script_of(code) == 0 && code < 0x80;
}

/* Judges one label by the scripts of its code points; latin_below: the label below it is Latin. */
static enum lookalike
codes_judge(const uint32_t *codes, size_t count, bool latin_below)
{
	unsigned int scripts = 0;
	bool whole = latin_below;

	for (size_t i = 0; i < count; i++) {
		scripts |= script_of(codes[i]);
		whole = whole && looks_latin(codes[i]);
	}
	if ((scripts & SCRIPT_LATIN) != 0 && (scripts & SCRIPT_CYRILLIC) != 0)
		return LOOKALIKE_LATIN_CYRILLIC;
	if ((scripts & SCRIPT_LATIN) != 0 && (scripts & SCRIPT_GREEK) != 0)
		return LOOKALIKE_LATIN_GREEK;
	if ((scripts & SCRIPT_CYRILLIC) != 0 && (scripts & SCRIPT_GREEK) != 0)
		return LOOKALIKE_CYRILLIC_GREEK;
	return whole && (scripts & SCRIPT_CYRILLIC) != 0 ? LOOKALIKE_WHOLE : LOOKALIKE_NONE;
}

/* Decodes an A-label and judges it; a label that cannot be decoded is no look-alike. */
static enum lookalike
label_judge(const char *label, size_t len, bool latin_below)
{
	uint32_t codes[LABEL_MAX + 1], *unicode = NULL;
	char copy[LABEL_MAX + 1];
	size_t count = 0;

	memcpy(copy, label, len);
	copy[len] = '\0';
	if (idn2_to_unicode_8z4z(copy, &unicode, 0) != IDN2_OK)
		return LOOKALIKE_NONE;
	for (; count < LABEL_MAX && unicode[count] != 0; count++)
		codes[count] = unicode[count];
	idn2_free(unicode);
	return codes_judge(codes, count, latin_below);
}

enum lookalike
lookalike_of(const struct name *name)
{
	size_t mark = strlen(A_LABEL), start = 0;
	const char *last = strrchr(name->text, '.');
	bool latin = last == NULL || strncmp(last + 1, A_LABEL, mark) != 0;

	for (size_t i = 0; i <= name->len; i++) {
		enum lookalike verdict = LOOKALIKE_NONE;
		size_t len = i - start;

		if (i < name->len && name->text[i] != '.')
			continue;
		if (len > mark && len <= LABEL_MAX && memcmp(name->text + start, A_LABEL, mark) == 0)
			verdict = label_judge(name->text + start, len, latin);
		if (verdict != LOOKALIKE_NONE)
			return verdict;
		start = i + 1;
	}
	return LOOKALIKE_NONE;
}

const char *
lookalike_text(enum lookalike lookalike)
{
	static const char *const texts[] = {
	    [LOOKALIKE_NONE] = "looks like no other",
	    [LOOKALIKE_LATIN_CYRILLIC] = "mixes Latin and Cyrillic letters in one label",
	    [LOOKALIKE_LATIN_GREEK] = "mixes Latin and Greek letters in one label",
	    [LOOKALIKE_CYRILLIC_GREEK] = "mixes Cyrillic and Greek letters in one label",
	    [LOOKALIKE_WHOLE] = "has a label of Cyrillic letters that all look Latin",
	};
	static_assert(COUNT(texts) == LOOKALIKE_MAX, "one text per kind");

	return texts[lookalike];
}
