/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Limits of a sandbox and of a rule: what they count, and how two of them become one. Counting is the gateway's. */
#ifndef POSTERN_POLICY_LIMITS_H
#define POSTERN_POLICY_LIMITS_H

#include "policy/text/quantity.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Largest value that a limit may state: counts of connections and the like, and bytes (1 PiB). */
#define LIMIT_COUNT_MAX 1000000000u
#define LIMIT_BYTES_MAX (UINT64_C(1) << 50)

enum limit_kind {
	LIMIT_CONNECTIONS = 0,            /* TCP connections and UDP flows at the same time */
	LIMIT_NEW_CONNECTIONS_PER_MINUTE, /* opened within a minute */
	LIMIT_DNS_QUERIES_PER_SECOND,
	LIMIT_UNIQUE_NAMES_PER_MINUTE, /* different names asked for within a minute */
	LIMIT_UPLOAD,                  /* bytes from the sandbox, over the sandbox's or the rule's life */
	LIMIT_DOWNLOAD,                /* bytes to the sandbox, likewise */
	LIMIT_KIND_MAX
};

/* hard: as many are let through, the next is refused or cut; 0: no limit. soft (1..hard): reaching it is an event,
 * once. A text that gives only the hard one means soft = limits_soft_of(hard). */
struct limit {
	uint64_t soft, hard;
};

struct limits {
	struct limit of[LIMIT_KIND_MAX];
};

/* The word in policies and events ("new_connections_per_minute"); "?" outside the enum. */
const char *limits_kind_text(unsigned int kind);

/* Is it in bytes (so that KiB, MiB, GiB may be written)? */
bool limits_kind_is_bytes(enum limit_kind kind);

/* An amount of its kind as people write it: "256", "50MiB". */
const char *limits_format_amount(enum limit_kind kind, uint64_t amount, char ret_text[QUANTITY_TEXT_MAX]);

/* May a rule state it? Only connections, upload and download are counted per rule. */
bool limits_kind_is_of_rules(enum limit_kind kind);

/* Four fifths of hard, rounded up: the soft limit where none is stated. */
uint64_t limits_soft_of(uint64_t hard);

/* Is it one that a text could have stated (or none at all)? */
bool limits_is_sound(enum limit_kind kind, struct limit limit);

bool limits_any(const struct limits *limits);
bool limits_equal(const struct limits *a, const struct limits *b);

/* Lay other over *limits: for each kind the smaller hard limit counts, and the smaller soft limit with it. */
void limits_tighten(struct limits *limits, const struct limits *other);

#endif
