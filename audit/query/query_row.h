/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From three tables' columns to one struct query_row; between audit/query/query.c and SQLite. */
#ifndef POSTERN_AUDIT_QUERY_ROW_H
#define POSTERN_AUDIT_QUERY_ROW_H

#include "audit/query/query.h"

#include <sqlite3.h>

#define QUERY_ROW_SANDBOX "(SELECT s.name FROM sandboxes s WHERE s.id = t.sandbox_id)"
#define QUERY_ROW_LABELS                                                                                               \
	"(SELECT CASE WHEN json_valid(s.detail) THEN s.detail -> '$.labels' END FROM sandboxes s "                     \
	"WHERE s.id = t.sandbox_id)"

/* What to select from a table t, in the order of enum query_row_column (query_row.c); kind, id, seq and ts by name. */
#define QUERY_ROW_CONNECTION                                                                                           \
	"1 AS kind, t.id AS id, t.seq AS seq, t.ts AS ts, " QUERY_ROW_SANDBOX ", t.sandbox_id, t.count, t.last_ts, "   \
	"t.proto, t.src, t.dst, t.sport, t.dport, t.name, t.name_raw, t.name_source, t.verdict, t.reason, t.rule, "    \
	"t.detail, t.generation, t.alpn, t.flags, t.bytes_out, t.bytes_in, t.duration_us, t.closed_ts, t.end, "        \
	"NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "                                                             \
	"t.tls_version, t.ja4, t.http_method, t.country, t.as_org, t.asn, t.dns_us, t.hello_us, t.connect_us, "        \
	"t.first_byte_us, t.packets_out, t.packets_in, t.community_id, t.up_src, t.up_community_id, t.up_sport, "      \
	"NULL, NULL, NULL, " QUERY_ROW_LABELS
#define QUERY_ROW_NOT_CONNECTION                                                                                       \
	"NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "
#define QUERY_ROW_DNS                                                                                                  \
	"2 AS kind, t.id AS id, t.seq AS seq, t.ts AS ts, " QUERY_ROW_SANDBOX ", t.sandbox_id, t.count, NULL, "        \
	"t.transport, t.src, t.server, t.sport, 53, t.qname, t.qname_raw, NULL, t.verdict, t.reason, t.rule, "         \
	"t.detail, t.generation, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "                                           \
	"t.qtype, t.rcode, t.ttl, t.upstream_us, t.ede, t.answers, NULL, NULL, " QUERY_ROW_NOT_CONNECTION              \
	"t.leases, t.entropy, t.domain, " QUERY_ROW_LABELS
#define QUERY_ROW_EVENT                                                                                                \
	"4 AS kind, t.id AS id, t.seq AS seq, t.ts AS ts, " QUERY_ROW_SANDBOX ", t.sandbox_id, 1, NULL, "              \
	"NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, t.detail, "                                 \
	"NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL, "                                                             \
	"NULL, NULL, NULL, NULL, NULL, NULL, t.kind, t.uid, " QUERY_ROW_NOT_CONNECTION                                 \
	"NULL, NULL, NULL, " QUERY_ROW_LABELS

/* The current row of stmt. Returns the memory that holds its texts (the caller frees), or NULL without memory. */
void *query_row_take(sqlite3_stmt *stmt, struct query_row *ret_row);

/* A text or blob column in place, valid until the statement moves; empty for anything else. */
struct query_text query_row_text(sqlite3_stmt *stmt, int column);

#endif
