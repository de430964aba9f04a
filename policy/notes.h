/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is right in a policy and still deserves a second look: warnings with their place in the text. */
#ifndef POSTERN_POLICY_NOTES_H
#define POSTERN_POLICY_NOTES_H

#include <stddef.h>
#include <stdint.h>

/* Notes that one text can get; the rest is counted. */
#define POLICY_NOTES_MAX 256
#define POLICY_NOTE_TEXT_MAX 512

struct policy;

struct policy_note {
	uint32_t line, column; /* from 1; 0 when the rule has no text (a live edit) */
	char text[POLICY_NOTE_TEXT_MAX];
};

struct policy_notes {
	struct policy_note *notes; /* owned */
	size_t count, size;
	size_t unshown;
};

/* Where a rule's target stands. */
struct policy_place {
	uint32_t line, column;
};

/* Look at the allow rules of a policy; places (by rule) may be NULL. Adds to *notes, which begins zeroed. Without memory
 * notes are counted only: they are no reason to refuse a policy. */
void policy_notes_collect(struct policy_notes *notes, const struct policy *policy, const struct policy_place *places);
void policy_notes_free(struct policy_notes *notes); /* accepts a zeroed one */

#endif
