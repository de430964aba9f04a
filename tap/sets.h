/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sets of destinations in a sandbox's table: keys, listing, and changes in one transaction. */
#ifndef POSTERN_TAP_SETS_H
#define POSTERN_TAP_SETS_H

#include "tap/nft.h"
#include "tap/ruleset.h"
#include "tap/tap_internal.h"

/* Tries of a listing that another transaction interrupts. */
#define SETS_DUMP_TRIES 8

/* Bytes of a key of the family (4, 6): address, protocol and port in registers of four bytes. */
static inline size_t
sets_key_len(int family)
{
	return family == 4 ? RULESET_KEY4_LEN : RULESET_KEY6_LEN;
}

/* Write a key; the bytes between its fields stay as they are: zero. */
void sets_key(uint8_t *key, const struct addr *addr, uint8_t proto, uint16_t port);
/* For qsort of struct nft_elem, by key and end of range. */
int sets_compare(const void *a, const void *b);

/* Count (elems NULL) or fetch the elements of a set that are not expired; at most max are stored, *ret_count counts
 * all. 0 or -errno. */
int sets_fetch(struct tap *tap, const char *set, struct nft_elem *elems, size_t max, size_t *ret_count);

/* Start a batch of changes to the sets. */
void sets_start(struct nft_batch *batch);
/* Commit and free it. idle: the kernel may find nothing to change. 0; -1 with ERROR_LIMIT: the set is full;
 * ERROR_SYSTEM. */
int sets_commit(struct tap *tap, struct nft_batch *batch, bool idle, struct error *err);

#endif
