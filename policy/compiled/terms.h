/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a policy says besides targets, in words: the terms of a rule, and the settings of the sandbox as a whole.
 * Whoever shows or compares policies says it in these words, so that nothing of a policy is left out of a comparison.
 */
#ifndef POSTERN_POLICY_TERMS_H
#define POSTERN_POLICY_TERMS_H

#include "policy/compiled/snapshot.h"

/* "until " and an instant, uses, and each kind of limit with its two amounts. */
#define TERMS_TEXT_MAX 640
#define TERMS_LINE_MAX (RULE_TEXT_MAX + TERMS_TEXT_MAX)

struct terms {
	int64_t expires_us; /* microseconds since the epoch; 0: never */
	uint32_t uses;      /* 0: any number */
	struct limits limits;
};

void terms_of_rule(const struct snapshot *snapshot, uint32_t rule, struct terms *ret_terms);

/* "until 2026-12-01T10:00:00Z, 3 uses, upload 100KiB (soft 50KiB)"; "" when there are none. The soft limit only where
 * it is not the one that follows from the hard one. */
const char *terms_format(const struct terms *terms, char ret_text[TERMS_TEXT_MAX]);

/* A rule with its terms: "allow example.com until 2026-12-01T10:00:00Z". */
const char *terms_format_rule(const char *rule, const struct terms *terms, char ret_text[TERMS_LINE_MAX]);

/* "mode: learn", "ech: deny", "limits: upload 3MiB"; "" for what is the default. */
const char *terms_format_setting(
    const struct snapshot *snapshot, enum policy_setting setting, char ret_text[TERMS_TEXT_MAX]);

/* "mode", "ech", "connections": the setting's own word. */
const char *terms_setting_text(enum policy_setting setting);

#endif
