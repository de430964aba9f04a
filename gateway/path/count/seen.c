/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/count/seen.h"

#include "base/log.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Per process, so that a guest cannot choose names that count as one. */
static uint64_t seen_key;

/* syscalls: getrandom */
void
seen_fit(struct seen *seen, uint64_t names)
{
	size_t wanted = names == 0 ? 0 : SEEN_SLOTS_MIN;

	while (wanted > 0 && wanted < SEEN_SLOTS_MAX && wanted < names * SEEN_SLOTS_PER_NAME)
		wanted *= 2;
	if (wanted == seen->count)
		return;
	if (seen_key == 0 && getrandom(&seen_key, sizeof(seen_key), 0) != (ssize_t)sizeof(seen_key))
		log_fatalx("no random numbers: %s", strerror(errno));
	free(seen->slots);
	seen->slots = wanted == 0 ? NULL : calloc(wanted, sizeof(*seen->slots));
	if (wanted != 0 && seen->slots == NULL)
		log_fatalx("no memory to count names");
	seen->count = wanted;
}

void
seen_free(struct seen *seen)
{
	free(seen->slots);
	*seen = (struct seen){0};
}

/* A keyed hash of the name, never 0. */
static uint64_t
seen_hash(const struct name *name)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325) ^ seen_key;

	for (size_t i = 0; i < name->len; i++)
		h = (h ^ (uint8_t)name->text[i]) * UINT64_C(0x100000001b3);
	h = (h ^ h >> 31 ^ seen_key) * UINT64_C(0x9e3779b97f4a7c15);
	h ^= h >> 29;
	return h == 0 ? 1 : h;
}

bool
seen_lately(const struct seen *seen, const struct name *name, int64_t now_ms)
{
	uint64_t hash = seen_hash(name);
	const struct seen_slot *slot = &seen->slots[hash & (seen->count - 1)];

	return slot->hash == hash && now_ms - slot->ms < SEEN_MS;
}

void
seen_enter(struct seen *seen, const struct name *name, int64_t now_ms)
{
	uint64_t hash = seen_hash(name);

	seen->slots[hash & (seen->count - 1)] = (struct seen_slot){.hash = hash, .ms = now_ms};
}
