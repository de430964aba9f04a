/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The seals and keys of an audit database, read as the log itself is. Nothing here is verified: audit/seal/verify.h
 * does that. */
#ifndef POSTERN_AUDIT_SEALS_H
#define POSTERN_AUDIT_SEALS_H

#include "audit/seal/seal.h"
#include "base/error.h"

#include <stddef.h>
#include <stdint.h>

struct seals;

/* Open the database to read seals with a number above after. NULL with *err as of open_read_only. The caller closes. */
struct seals *seals_open(const char *path, int64_t after, struct error *err);
void seals_close(struct seals *seals); /* accepts NULL */

/* Call handler for each seal that was not read yet, by number; damaged ones are skipped. A database that was replaced
 * is opened again and read from its first seal on; while there is none in its place, there are no new seals. 0, or -1.
 */
int seals_read(struct seals *seals, void (*handler)(const struct seal *seal, const char *log_id, void *context),
    void *context, struct error *err);

/* The verifier keys, oldest first, at most max. 0, or -1 with ERROR_NOT_FOUND when there are none yet. */
int seals_keys(struct seals *seals, struct seal_key *ret_keys, size_t max, size_t *ret_count, struct error *err);

#endif
