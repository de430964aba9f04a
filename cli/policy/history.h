/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sandbox's recorded history, read from the audit database itself, with the daemon running or not: for postern policy
 * replay and suggest.
 *
 * Nothing in the database is trusted: rows without a canonical name, strict address, TCP or UDP port are left out. */
#ifndef POSTERN_CLI_HISTORY_H
#define POSTERN_CLI_HISTORY_H

#include "audit/query/query.h"
#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "policy/compiled/snapshot.h"

#include <stdbool.h>

/* Most targets kept apart, since a guest can make up any number; further ones are only counted. */
#define HISTORY_TARGETS_MAX 20000
/* "name:65535/tcp" */
#define HISTORY_TARGET_TEXT_MAX (NAME_TEXT_MAX + 16)

/* The target of a row. */
struct history_target {
	bool dns; /* a question, no connection: only name counts */
	bool named;
	struct name name;
	struct addr addr;        /* family 0: none */
	uint8_t proto;           /* IPPROTO_TCP or IPPROTO_UDP */
	uint16_t port;           /* 1..65535 */
	struct addr_place place; /* where addr was, as recorded */
};

/* False when a policy could not name the target. */
bool history_target_of(const struct query_row *row, struct history_target *ret_target);

/* "name:443/tcp", "[2600::1]:443/tcp", "name dns". */
const char *history_target_text(const struct history_target *target, char ret_text[HISTORY_TARGET_TEXT_MAX]);

/* The outcome of a row, as far as the policy decides. */
enum history_past {
	HISTORY_ALLOWED,
	HISTORY_DENIED, /* by the policy: no rule, a deny rule, a rule that had ended */
	HISTORY_OTHER,  /* never list, malformed, limits, failures: with any policy the same; questions refused for the
	                 * addresses of their answers, which are not on record */
};
enum history_past history_past_of(const struct query_row *row);

/* Add without wrapping: counts in a database may be anything. */
void history_count(int64_t *count, int64_t more);

/* No --since was given. */
#define HISTORY_SINCE_NONE INT64_MIN

/* Where to read, and what. */
struct history_source {
	const char *db, *sandbox;
	int64_t since_us; /* microseconds since the epoch */
};

/* Fill in what the options left open: db NULL is the daemon's database; without a time the last back_s seconds. */
void history_source_finish(struct history_source *source, const char *db, int64_t back_s);

/* Call handler for each connection and question, oldest first. 0; -1, also with ERROR_NOT_FOUND when there is none: a
 * wrong name or time must not look like a good answer. */
int history_read(const struct history_source *source, void (*handler)(const struct query_row *row, void *context),
    void *context, struct error *err);

#endif
