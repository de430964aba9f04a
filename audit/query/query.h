/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The audit database as its readers see it: read-only, with the daemon running or not, on this machine or on a copy.
 *
 * A query never holds a read transaction while its caller works: rows are fetched in pages, so that a reader that is
 * slow, or stopped in a pager, does not keep the writer's log from being checkpointed (CASES F-23). Nothing in the file
 * is believed: texts have lengths and may hold any bytes, numbers may be outside their enums. */
#ifndef POSTERN_AUDIT_QUERY_H
#define POSTERN_AUDIT_QUERY_H

#include "audit/query/query_filter.h"
#include "base/error.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Rows fetched in one read transaction. */
#define QUERY_PAGE 512

/* A log's own id, and a cursor in it ("LOG:SEQ"). */
#define QUERY_LOG_ID_MAX 40
#define QUERY_CURSOR_MAX (QUERY_LOG_ID_MAX + 24)
/* The cursor before the first row of whichever log. */
#define QUERY_CURSOR_BEGIN "begin"

/* Bytes of a text or blob column; bytes is NULL when the column is. */
struct query_text {
	const char *bytes;
	size_t len;
};

/* A number that may be NULL. */
struct query_number {
	bool set;
	int64_t value;
};

/* One row. Members that its kind does not have are empty. */
struct query_row {
	unsigned int kind; /* QUERY_CONNECTION, QUERY_DNS or QUERY_EVENT */
	uint64_t id;
	int64_t seq;                   /* of its newest change */
	char cursor[QUERY_CURSOR_MAX]; /* from query_follow: where to go on behind this row; else "" */
	int64_t ts_us;
	struct query_text sandbox; /* name; empty for the daemon's own events */
	int64_t sandbox_id;
	struct query_text labels; /* of the sandbox: JSON object */
	int64_t count;
	struct query_number last_us;
	int64_t proto;              /* connection; dns: transport */
	struct query_text src, dst; /* dns: dst is the server asked */
	int64_t sport, dport;
	struct query_text name;     /* connection: name, dns: qname; canonical */
	struct query_text name_raw; /* instead of name: anything */
	int64_t name_source;
	int64_t verdict, reason;
	struct query_text rule, detail; /* event: detail is JSON */
	int64_t generation;
	struct query_text alpn;
	int64_t flags; /* RECORD_FLAG_* */
	struct query_number bytes_out, bytes_in, duration_us, closed_us;
	int64_t end;
	int64_t qtype, rcode, ttl_s, upstream_us;
	struct query_number ede;
	struct query_text answers; /* JSON array */
	int64_t event;             /* enum event_kind */
	struct query_number uid;
	/* connection: what its hello and request said, */
	struct query_number tls_version;
	struct query_text ja4, http_method;
	/* where dst is, by the configured databases, */
	struct query_text country, as_org;
	struct query_number asn;
	/* how long each step took, */
	struct query_number dns_us, hello_us, connect_us, first_byte_us;
	struct query_number packets_out, packets_in;
	/* and what other tools call it: our side of it, and that of the origin */
	struct query_text community_id, up_src, up_community_id;
	struct query_number up_sport;
	/* dns */
	struct query_number leases, entropy; /* hundredths of a bit a character */
	struct query_text domain;
};

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
