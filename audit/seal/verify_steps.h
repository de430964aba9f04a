/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of verify share: the run, and its steps in their order. Each step returns 0, or -1 when the file
 * cannot be read; what is wrong with what was read goes to verify_find. */
#ifndef POSTERN_AUDIT_VERIFY_STEPS_H
#define POSTERN_AUDIT_VERIFY_STEPS_H

#include "audit/query/open.h"
#include "audit/seal/chain.h"
#include "audit/seal/verify.h"

/* Links, or rows, that are read in one transaction. */
#define VERIFY_PAGE 512

struct verify_accounts;

struct verify {
	struct open_file file;
	const struct verify_options *options;
	struct verify_result *result;
	struct error *err;
	struct chain *chain;
	struct sqlite3 *reference;   /* what postern makes: schema and words */
	bool schema_ours;            /* the file has the same: its indexes can be asked */
	const struct seal_key *keys; /* that count */
	size_t key_count;
	struct seal_key own_keys[VERIFY_KEYS_MAX]; /* of the file */
	int64_t last_n, last_seq;                  /* newest seal and link when it began: later ones are left alone */
	struct seal from;                          /* the seal to begin after; n 0: the beginning */
	int64_t pruned_told; /* dropped up to here, as of the last look whether retention says so; -1: none yet */
	int64_t first_end;   /* the first finding is about links up to this together; 0: about one record */
	struct verify_accounts *accounts;
	uint64_t done, total; /* progress */
};

/* Something is wrong. segment_end: the finding is about links seq to segment_end together (0: about one record); it is
 * then not the first if one of them was named already. */
void verify_find(struct verify *v, enum verify_fault fault, unsigned int table, int64_t id, int64_t seq,
    int64_t segment_end, const char *fmt, ...) __attribute__((format(printf, 7, 8)));
/* Reading failed: fills *v->err from the database. Returns -1. */
int verify_fail(struct verify *v);
/* Memory is exhausted. Returns -1. */
int verify_fail_memory(struct verify *v);
/* Prepares a statement on the file; its first error goes to *v->err. */
void verify_prepare(struct verify *v, struct rows *ret_rows, const char *sql);
/* The first column of the first row, 0 for NULL or none; ?1 and ?2 are a and b. */
int verify_integer(struct verify *v, const char *sql, int64_t a, int64_t b, int64_t *ret_value);
/* A short read transaction around a page. */
int verify_begin(struct verify *v);
int verify_end(struct verify *v);
void verify_progress(struct verify *v, uint64_t done);
/* How far rows are dropped now, and does retention's event say so? If not, a finding, once. */
int verify_pruning(struct verify *v);

/* Is it signed by a key that counts? */
bool verify_seal_counts(const struct verify *v, const struct seal *seal);
/* Likewise; if not, a finding. */
bool verify_seal_signed(struct verify *v, const struct seal *seal);
/* The seals that were taken elsewhere, against those in the file. */
int verify_seal_notes(struct verify *v);

/* Seals, links, and the row behind each link. */
int verify_walk(struct verify *v);

/* Rows against links: is there one behind each row? Adds up the accounts' rows and finds gaps on the way. */
int verify_rows(struct verify *v);

/* Read what the gateways counted, before the rows are; NULL on failure. */
struct verify_accounts *verify_accounts_load(struct verify *v);
void verify_accounts_free(struct verify_accounts *accounts);
/* A row of an attempt. */
void verify_accounts_add(struct verify_accounts *accounts, enum record_attempt attempt, int64_t sandbox, int64_t id,
    int64_t seq, unsigned int verdict, int64_t count);
/* After all rows: does it add up? */
int verify_accounts_check(struct verify *v);

#endif
