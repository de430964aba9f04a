/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Internationalised names that are made to be taken for others. */
#ifndef POSTERN_POLICY_LOOKALIKE_H
#define POSTERN_POLICY_LOOKALIKE_H

#include "policy/names/name.h"

enum lookalike {
	LOOKALIKE_NONE = 0,
	LOOKALIKE_LATIN_CYRILLIC, /* one label mixes the two */
	LOOKALIKE_LATIN_GREEK,
	LOOKALIKE_CYRILLIC_GREEK,
	LOOKALIKE_WHOLE, /* a label of Cyrillic letters that all look Latin, under a Latin top-level domain */
	LOOKALIKE_MAX
};

/* name in its canonical form, with A-labels. What is no Punycode counts as LOOKALIKE_NONE. */
enum lookalike lookalike_of(const struct name *name);

/* "mixes Latin and Cyrillic letters" */
const char *lookalike_text(enum lookalike lookalike);

#endif
