/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Retention: the oldest sealed segment of the log is dropped as a whole, its seal stays. What is left still verifies:
 * the seal's head is where the rest of the chain begins. Between audit/store/store.c and its tables. */
#ifndef POSTERN_AUDIT_PRUNE_H
#define POSTERN_AUDIT_PRUNE_H

#include "audit/store/insert.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stdint.h>

/* What may be kept. */
struct prune_limits {
	int64_t before_us;  /* segments sealed before this are dropped; 0: however old */
	int64_t now_us;     /* one that was sealed after this was so by a wrong clock */
	uint64_t bytes_max; /* and the oldest while more of the file than this is in use; 0: however large */
};

/* What was dropped: one sealed segment, or several small ones. */
struct prune_segment {
	int64_t through;   /* newest seq in it */
	int64_t sealed_us; /* when it was sealed */
	uint64_t rows;     /* that are gone */
	bool for_size;     /* it was young enough, but the file was too large */
	int64_t untold;    /* what was gone before goes up to this seq, and no event says so; 0: all is well */
};

/* Up to which seq are rows gone (0: none are), and does an event of retention say the same, which a seal is about?
 * pruned_through is in no chain and under no seal: who drops rows by hand and sets the number is found by this. Read in
 * one statement: both change together. An SQLite result code. */
int prune_told(sqlite3 *db, int64_t *ret_through, bool *ret_told);

/* Is the oldest segment due? SQLITE_OK, and *ret_due and, if so, through, sealed_us and for_size of *ret_segment; or an
 * SQLite result code. The newest seal's segment is never due, nor for its size anything of the newest SEAL_LINKS links.
 */
int prune_find(sqlite3 *db, const struct prune_limits *limits, struct prune_segment *ret_segment, bool *ret_due);

/* Drop it, in the open transaction. Rows of it that still matter (open connections, sandboxes that are attached or of
 * which other rows speak, their accounts) are linked anew at the end of the chain first. Sets rows and untold. The
 * event, whose detail has through, and a seal over it are the caller's to add, in the same transaction. */
int prune_drop(struct insert *insert, struct prune_segment *segment);

#endif
