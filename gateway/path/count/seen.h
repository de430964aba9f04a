/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which names were asked for within the last minute, in a fixed memory. A name whose slot was taken by another one is
 * forgotten early. */
#ifndef POSTERN_GATEWAY_SEEN_H
#define POSTERN_GATEWAY_SEEN_H

#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SEEN_MS 60000
/* Slots for each name that is wanted, within these bounds. */
#define SEEN_SLOTS_PER_NAME 8
#define SEEN_SLOTS_MIN 256
#define SEEN_SLOTS_MAX 65536

struct seen_slot {
	uint64_t hash; /* 0: none */
	int64_t ms;
};

struct seen {
	struct seen_slot *slots; /* owned; NULL: nothing is remembered */
	size_t count;            /* a power of two */
};

/* As many slots as so many names a minute ask for; none for none. What was seen is forgotten when that changes. */
void seen_fit(struct seen *seen, uint64_t names);
void seen_free(struct seen *seen);
/* Only while there are slots. */
bool seen_lately(const struct seen *seen, const struct name *name, int64_t now_ms);
void seen_enter(struct seen *seen, const struct name *name, int64_t now_ms);

#endif
