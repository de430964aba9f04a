/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The audit database as its readers see it: read-only, with the daemon running or not, on this machine or on a copy.
 *
 * A query never holds a read transaction while its caller works: rows are fetched in pages, so that a reader that is
 * slow, or stopped in a pager, does not keep the writer's log from being checkpointed (CASES F-23). Nothing in the file
 * is believed: texts have lengths and may hold any bytes, numbers may be outside their enums. */
#ifndef POSTERN_AUDIT_QUERY_H
#define POSTERN_AUDIT_QUERY_H

#include "audit/query/query_filter.h"
#include "audit/row.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows fetched in one read transaction. */
#define QUERY_PAGE 512

/* The cursor before the first row of whichever log. */
#define QUERY_CURSOR_BEGIN "begin"

struct query;

/* Open the file read-only. NULL with ERROR_NOT_FOUND, ERROR_PERMISSION, ERROR_USAGE (made by a newer postern),
 * ERROR_CORRUPT (not an audit database) or ERROR_SYSTEM. */
struct query *query_open(const char *path, struct error *err);
void query_close(struct query *query); /* accepts NULL */

/* Begin a stream of the rows that pass the filter, oldest first. Texts that filter points to must stay. Ends the stream
 * before it. 0 or -1; ERROR_NOT_FOUND: no sandbox ever had filter->sandbox as its name (a follower waits for one). */
int query_start(struct query *query, const struct query_filter *filter, struct error *err);

/* The next row: 1, and *ret_row is valid until the next call with this query; 0 at the end; -1 on error. */
int query_next(struct query *query, const struct query_row **ret_row, struct error *err);

/* After query_next has returned 0 (filter->will_follow was set): go on with rows that were inserted or changed since
 * query_start (an open connection comes again when it is closed), in order of their change; `last` is not asked any
 * more. Returns as query_next; 0 when there is nothing new now. No change is left out, however late it was committed.
 */
int query_follow(struct query *query, const struct query_row **ret_row, struct error *err);

/* Where a follower is: a cursor behind every row that query_follow has returned; right after query_start, behind all
 * that query_next returns. */
void query_cursor(const struct query *query, char ret_cursor[QUERY_CURSOR_MAX]);

enum query_seek_result {
	QUERY_SEEK_SAME,      /* going on where the cursor was */
	QUERY_SEEK_PRUNED,    /* likewise, but rows behind it may have been dropped for their age */
	QUERY_SEEK_OTHER_LOG, /* the cursor is one of another file; going on from the beginning of this one */
};

/* After query_start with will_follow: query_follow goes on behind this cursor, whoever got it, query_next returns
 * nothing more. Rows come in the order of their change. 0, or -1 with ERROR_USAGE (not a cursor) or as query_start. */
int query_seek(struct query *query, const char *cursor, enum query_seek_result *ret_result, struct error *err);

/* Is the file under the query's path another one now, or was it opened as an unchanging copy? Then a follower opens it
 * anew. */
bool query_is_stale(const struct query *query);

/* Counts of one sandbox: connections (and refused questions, as QUERY_DNS) by name, port, verdict and reason. */
struct query_group {
	unsigned int kind;
	struct query_text name; /* as it should be shown before escaping: name, raw name, or address */
	int64_t proto, dport;   /* dns: 0 */
	int64_t verdict, reason;
	int64_t count, bytes_out, bytes_in;
};

/* Call handler for each group, largest count first, at most max groups, of rows with an id above since_id (0: all).
 * Returns 0 or -1. */
int query_summary(struct query *query, int64_t sandbox_id, uint64_t since_id, size_t max,
    void (*handler)(const struct query_group *group, void *context), void *context, struct error *err);

#endif
