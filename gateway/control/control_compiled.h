/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies that were compiled lately: who brings the same text gets the same block, without compiling it again; and who
 * comes to the same block by another way, as over presets, gets the one that is there. */
#ifndef POSTERN_GATEWAY_CONTROL_COMPILED_H
#define POSTERN_GATEWAY_CONTROL_COMPILED_H

#include "policy/text/policy.h"
#include "policy/compiled/snapshot.h"

#include <stdbool.h>
#include <stdint.h>

/* Compiled policies that are kept for the next one: a descriptor each, and memory as long as they are kept, whether a
 * sandbox goes by them or not. Enough for a host with hundreds of kinds of tasks, or a few whose policies are large. */
#define CONTROL_COMPILED_MAX 256
#define CONTROL_COMPILED_BYTES_MAX (128u << 20)
#define CONTROL_COMPILED_KEY 32

struct control_compiled_row {
	uint8_t key[CONTROL_COMPILED_KEY];
	int fd;      /* sealed, owned */
	size_t size; /* of the block */
};

/* The one used last comes first. */
struct control_compiled {
	struct control_compiled_row rows[CONTROL_COMPILED_MAX];
	size_t count, bytes;
};

/* What everything else about a compiled policy follows from, while the organisation's stays the same: the text (may be
 * NULL) and its file's name, and the live edits. False when that cannot be said (without memory). */
bool control_compiled_key(
    const char *text, const char *file, const struct policy *edits, uint8_t ret_key[CONTROL_COMPILED_KEY]);

/* The key of a block itself. */
void control_compiled_block_key(const struct snapshot *snapshot, uint8_t ret_key[CONTROL_COMPILED_KEY]);

/* A descriptor of its own for the caller; -1: not there. */
int control_compiled_find(struct control_compiled *compiled, const uint8_t key[CONTROL_COMPILED_KEY]);

/* Keep it; fd stays the caller's. What has not been asked for for the longest time goes. */
void control_compiled_keep(struct control_compiled *compiled, const uint8_t key[CONTROL_COMPILED_KEY], int fd);

#endif
