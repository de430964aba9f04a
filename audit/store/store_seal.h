/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Where a store's chain stands, and the seals written into it. Between audit/store/store.c and the tables chain and
 * seals. */
#ifndef POSTERN_AUDIT_STORE_SEAL_H
#define POSTERN_AUDIT_STORE_SEAL_H

#include "audit/store/insert.h"
#include "audit/seal/seal.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

struct store_seal {
	sqlite3 *db; /* not owned */
	sqlite3_stmt *add, *add_key;
	const struct seal_signer *signer; /* NULL: no seals are written */
	char log_id[SEAL_LOG_ID_MAX];
	struct seal last, durable; /* the newest, with the open batch and as committed; n 0: none yet */
	bool closing;              /* the newest committed one closed the log: nothing follows it without a seal */
	bool noted_met;            /* what was noted of the end is in the file as it was */
};

/* Read log_id and the newest seal, and compute from it and the links after it where the chain stands, and whether it
 * was where noted says (seq 0: nothing is known). An SQLite result code; SQLITE_CORRUPT when the tables cannot be
 * right. */
int store_seal_open(
    struct store_seal *seal, sqlite3 *db, const struct insert_state *noted, struct insert_state *ret_state);

/* What the end of the log shows of another program's hand, when store_seal_open has read it; "": nothing. */
void store_seal_suspect(const struct store_seal *seal, const struct insert_state *noted,
    const struct insert_state *state, char *ret_what, size_t size);
void store_seal_close(struct store_seal *seal);

/* Links that no seal vouches for yet. */
int64_t store_seal_links(const struct store_seal *seal, const struct insert_state *state);

/* Add a seal over all links so far to the open transaction. An SQLite result code; SQLITE_MISUSE: it could not be
 * signed. */
int store_seal_write(struct store_seal *seal, const struct insert_state *state, int64_t ts_us);
void store_seal_committed(struct store_seal *seal);
void store_seal_rolled_back(struct store_seal *seal);

#endif
