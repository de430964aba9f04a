/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One sandbox's log as one HTML page that needs nothing else: no script, no network, one style sheet whose digest is in
 * the page's content security policy. Its size is bounded however long the log is: charts have so many columns, tables
 * so many rows, and each says what it leaves out. */
#ifndef POSTERN_AUDIT_REPORT_H
#define POSTERN_AUDIT_REPORT_H

#include "base/error.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sqlite3;

struct report_options {
	const char *sandbox;        /* name; or NULL and sandbox_id */
	int64_t sandbox_id;         /* 0: the one of that name that was attached last */
	int64_t since_us, until_us; /* rows with ts in [since, until); 0: no bound */
	int64_t now_us;             /* printed as the time of the report */
	const char *policy;         /* effective policy, as text; NULL: not known */
	int64_t policy_id;          /* of the sandbox that it is in force for; of another one it is not printed */
	const char *policy_why;     /* then: why not, a sentence */
	const char *verdict;        /* what verifying the log came to, a sentence; NULL: it was not verified */
	bool verified;              /* it is a good one */
};

/* The sandbox that sandbox and sandbox_id mean: its id, and when it was attached (microseconds; not after any row of
 * it). 0, or -1 as report_write. */
int report_find(struct sqlite3 *db, const struct report_options *options, int64_t *ret_id, int64_t *ret_attached_us,
    struct error *err);

/* Write the page. 0; -1 with ERROR_NOT_FOUND (no such sandbox in the log) or ERROR_SYSTEM. What out says about writing
 * is the caller's to check. */
int report_write(FILE *out, struct sqlite3 *db, const struct report_options *options, struct error *err);

#endif
