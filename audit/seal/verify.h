/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Is an audit log what its writer wrote? Chain, seals and rows are compared with each other, with keys and seals that
 * were taken elsewhere, and with what the gateways themselves counted. postern-audit(5) describes the checks exactly
 * enough to do them with another program. */
#ifndef POSTERN_AUDIT_VERIFY_H
#define POSTERN_AUDIT_VERIFY_H

#include "audit/columns.h"
#include "audit/record.h"
#include "audit/seal/seal.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Keys in use at the same time: one more with each rotation. */
#define VERIFY_KEYS_MAX 64
/* Accounts that are added up, a few hundred bytes each; of more, the oldest are left out, and the result says so. */
#define VERIFY_ACCOUNTS_MAX 262144
#define VERIFY_TEXT_MAX 256

enum verify_fault {
	VERIFY_CHANGED = 0, /* a row is not as it was written */
	VERIFY_REMOVED,     /* a row, or a link, is missing */
	VERIFY_INSERTED,    /* a row without a link */
	VERIFY_REORDERED,   /* a row has the number of another one */
	VERIFY_ROLLED_BACK, /* a row was put back to what it had been */
	VERIFY_REWRITTEN,   /* links do not lead to the head that was signed */
	VERIFY_TRUNCATED,   /* the newest part is missing */
	VERIFY_BAD_SEAL,    /* a seal is missing, damaged, or not signed by a key that counts */
	VERIFY_ACCOUNT,     /* rows do not add up to what the gateway counted */
	VERIFY_FAULT_MAX
};

/* Something wrong. */
struct verify_finding {
	enum verify_fault fault;
	unsigned int table; /* enum columns_table; 0: not about one row */
	int64_t id, seq;    /* of the row; seq also of a segment's first link */
	char text[VERIFY_TEXT_MAX];
};

/* A time for which the log itself says that records may be missing. */
struct verify_gap {
	int64_t ts_us;
	unsigned int kind;  /* enum event_kind */
	const char *detail; /* JSON, or ""; as the row has it: anything */
};

/* A seal that was taken elsewhere. */
struct verify_note {
	struct seal seal;
	char log_id[SEAL_LOG_ID_MAX];
};

struct verify_options {
	int64_t since_us, since_seq; /* begin with the newest seal before; 0: with the beginning */
	const struct seal_key *keys; /* the keys that count */
	size_t key_count;            /* 0: those in the file do */
	const struct verify_note *notes;
	size_t note_count;
	const char *sandbox; /* check the accounts of this one only; NULL: of all */
	/* From time to time: links and rows done, of about so many. May be NULL. */
	void (*progress_handler)(uint64_t done, uint64_t total, void *context);
	void (*gap_handler)(const struct verify_gap *gap, void *context); /* may be NULL */
	void (*finding_handler)(
	    const struct verify_finding *finding, void *context); /* each as it is found; may be NULL */
	void *context;
};

struct verify_result {
	char log_id[SEAL_LOG_ID_MAX];
	bool pinned;            /* keys were given */
	int64_t pruned_through; /* rows up to this seq were dropped; 0: none */
	int64_t from_seq;       /* links after this were checked */
	int64_t from_us;        /* of the seal before them that the run began with; 0: with the beginning */
	uint64_t seals;         /* checked */
	struct seal newest;     /* of them; n 0: none */
	uint64_t links;         /* checked */
	uint64_t unsealed;      /* of these, after the newest seal */
	uint64_t rows[COLUMNS_TABLE_MAX];
	uint64_t notes_matched, notes_of_others; /* seals taken elsewhere: the same here; of another log */
	uint64_t accounts, accounts_pruned;      /* that add up; not checked because rows of the sandbox were dropped */
	uint64_t accounts_left_out;              /* beyond VERIFY_ACCOUNTS_MAX */
	uint64_t gaps;
	uint64_t faults[VERIFY_FAULT_MAX];
	uint64_t fault_count;        /* 0: the log is whole */
	struct verify_finding first; /* with the smallest seq */
};

/* Verify the database at path. No read transaction is longer than some milliseconds. 0: *ret_result is complete, and
 * its fault_count says what came of it; -1: the file cannot be read (codes as open_read_only, ERROR_CORRUPT for a
 * damaged one), or there is no such sandbox (ERROR_NOT_FOUND). */
int verify_run(
    const char *path, const struct verify_options *options, struct verify_result *ret_result, struct error *err);

/* "changed", "removed", ... */
const char *verify_fault_text(enum verify_fault fault);

#endif
