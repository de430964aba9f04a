/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The chain: one link (chain entry) for each insert and each change of a row, in the order of seq, with the digest of
 * the row at that time. A head is a SHA-256 over the head before it and a link, so that one signed head
 * (audit/seal/seal.h) covers everything before it. Writer and verifier compute both here. */
#ifndef POSTERN_AUDIT_CHAIN_H
#define POSTERN_AUDIT_CHAIN_H

#include "audit/store/rows.h"

#include <stddef.h>
#include <stdint.h>

#define CHAIN_DIGEST 32 /* bytes of SHA-256 */

struct chain_link {
	int64_t seq;
	unsigned int table; /* enum columns_table */
	int64_t id;
	uint8_t digest[CHAIN_DIGEST];
};

/* State of hashing, allocated once. */
struct chain;
struct chain *chain_new(void);        /* NULL: no memory */
void chain_free(struct chain *chain); /* accepts NULL */

/* The first head of a database's chain: a digest of its log_id. */
void chain_begin(struct chain *chain, const char *log_id, uint8_t ret_head[CHAIN_DIGEST]);

/* Digest of the current row, whose columns are columns_chained. Each column counts with its type and length, so no
 * two different rows have the same bytes. Returns row->code: 0, or SQLITE_NOMEM. */
int chain_digest(struct chain *chain, struct rows *row, uint8_t ret_digest[CHAIN_DIGEST]);

/* Turns the head before a link into the head after it. */
void chain_advance(struct chain *chain, uint8_t head[CHAIN_DIGEST], const struct chain_link *link);

#endif
