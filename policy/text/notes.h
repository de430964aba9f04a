/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What is to be said about a policy's text, with its place: what is wrong, or what is right and still deserves a second
 * look. */
#ifndef POSTERN_POLICY_NOTES_H
#define POSTERN_POLICY_NOTES_H

#include <stdbool.h>
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
	bool broken; /* they say why the text is no policy */
};

/* Where a rule's target stands. */
struct policy_place {
	uint32_t line, column;
};

/* Add one. Without memory, and beyond POLICY_NOTES_MAX, it is counted only. */
void notes_add(struct policy_notes *notes, uint32_t line, uint32_t column, const char *text);
/* In the order of the text. */
void notes_sort(struct policy_notes *notes);

/* Look at the allow rules of a policy; places (by rule) may be NULL. Adds to *notes, which begins zeroed. Without
 * memory notes are counted only: they are no reason to refuse a policy. */
void notes_collect(struct policy_notes *notes, const struct policy *policy, const struct policy_place *places);
void notes_free(struct policy_notes *notes); /* accepts a zeroed one */

#endif
