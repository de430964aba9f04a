/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One row of the log as its readers see it, of whichever table. audit/columns.c says which column fills which member.
 * Nothing in it is believed: texts have lengths and may hold any bytes, numbers may be outside their enums. */
#ifndef POSTERN_AUDIT_ROW_H
#define POSTERN_AUDIT_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A log's own id, and a cursor in it ("LOG:SEQ"). */
#define QUERY_LOG_ID_MAX 40
#define QUERY_CURSOR_MAX (QUERY_LOG_ID_MAX + 24)

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

#endif
