/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/stats.h"

#include "audit/query/query_row.h"
#include "audit/query/query_scope.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

/* What a group is by, for connections and queries; NULL: such rows are not in it. */
static const struct {
	const char *word, *connection, *dns;
} stats_groups[] = {
    [STATS_GROUP_NAME] = {"name", "coalesce(t.name, t.name_raw, t.dst)", "coalesce(t.qname, t.qname_raw, '.')"},
    [STATS_GROUP_DOMAIN] = {"domain", "coalesce(t.domain, t.dst)", "coalesce(t.domain, '.')"},
    [STATS_GROUP_IP] = {"ip", "t.dst", NULL},
    [STATS_GROUP_PORT] = {"port", "t.dport", "53"},
    [STATS_GROUP_SANDBOX] = {"sandbox", "t.sandbox_id", "t.sandbox_id"},
    [STATS_GROUP_RULE] = {"rule", "t.rule", "t.rule"},
    [STATS_GROUP_REASON] = {"reason", "t.reason", "t.reason"},
    [STATS_GROUP_COUNTRY] = {"country", "t.country", NULL},
    [STATS_GROUP_ASN] = {"asn", "t.asn", NULL},
};
_Static_assert(sizeof(stats_groups) / sizeof(stats_groups[0]) == STATS_GROUP_MAX, "SQL for each group");

/* What is not of the kind at all is in no list of the most of it; but where bytes are asked for, what moved none shows
 * what else there was. */
static const struct {
	const char *word, *having, *order;
} stats_bys[] = {
    [STATS_BY_BYTES] = {"bytes", "1", "sum_capped(o) + sum_capped(i) DESC, sum_capped(c) DESC"},
    [STATS_BY_CONNECTIONS] = {"connections", "max(c) > 0", "sum_capped(c) DESC"},
    [STATS_BY_DENIED] = {"denied", "max(d) > 0", "sum_capped(d) DESC, sum_capped(c) DESC"},
    [STATS_BY_QUERIES] = {"queries", "max(q) > 0", "sum_capped(q) DESC"},
};
_Static_assert(sizeof(stats_bys) / sizeof(stats_bys[0]) == STATS_BY_MAX, "SQL for each order");

const char *
stats_top_group_text(unsigned int group)
{
	return group < STATS_GROUP_MAX ? stats_groups[group].word : "?";
}

const char *
stats_top_by_text(unsigned int by)
{
	return by < STATS_BY_MAX ? stats_bys[by].word : "?";
}

static void
stats_take_top(sqlite3_stmt *stmt, enum stats_group group, void (*handler)(const struct stats_row *row, void *context),
    void *context)
{
	struct stats_row row = {
	    .connections = sqlite3_column_int64(stmt, 1),
	    .queries = sqlite3_column_int64(stmt, 2),
	    .denied = sqlite3_column_int64(stmt, 3),
	    .bytes_out = sqlite3_column_int64(stmt, 4),
	    .bytes_in = sqlite3_column_int64(stmt, 5),
	    .first_us = sqlite3_column_int64(stmt, 6),
	    .last_us = sqlite3_column_int64(stmt, 7),
	    .label = query_row_text(stmt, 8),
	};
	char number[32];
	int64_t key = sqlite3_column_int64(stmt, 0);

	row.key = query_row_text(stmt, 0);
	if (sqlite3_column_type(stmt, 0) == SQLITE_INTEGER) {
		row.key = (struct query_text){.bytes = number};
		if (group == STATS_GROUP_REASON)
			row.key.bytes = reason_text(key < 0 || key > INT_MAX ? REASON_MAX : (unsigned int)key);
		else
			snprintf(number, sizeof(number), "%lld", (long long)key);
		row.key.len = strlen(row.key.bytes);
	}
	if (group == STATS_GROUP_SANDBOX) {
		row.id = (struct query_number){.set = true, .value = key};
		row.key = row.label;
		row.label = (struct query_text){.bytes = NULL};
	}
	handler(&row, context);
}

int
stats_top(struct query *query, enum stats_group group, enum stats_by by, size_t max,
    void (*handler)(const struct stats_row *row, void *context), void *context, struct error *err)
{
	/* k: key, c: connections, q: queries, d: denied, o: bytes out, i: bytes in, l: label. */
	char connection[256], dns[256], after[128];
	const char *const columns[QUERY_KINDS] = {connection, stats_groups[group].dns == NULL ? NULL : dns, NULL};
	const char *label = group == STATS_GROUP_SANDBOX ? "(SELECT s.name FROM sandboxes s WHERE s.id = k)" : "max(l)";
	char before[384];
	sqlite3_stmt *stmt;
	int rc;

	snprintf(before, sizeof(before),
	    "SELECT k, sum_capped(c), sum_capped(q), sum_capped(d), sum_capped(o), sum_capped(i), min(ts), max(ts), %s "
	    "FROM",
	    label);
	snprintf(connection, sizeof(connection),
	    "%s AS k, t.count AS c, 0 AS q, (t.verdict <> 0) * t.count AS d, coalesce(t.bytes_out, 0) AS o, "
	    "coalesce(t.bytes_in, 0) AS i, t.ts AS ts, %s AS l",
	    stats_groups[group].connection, group == STATS_GROUP_ASN ? "t.as_org" : "NULL");
	snprintf(dns, sizeof(dns),
	    "%s AS k, 0 AS c, t.count AS q, (t.verdict <> 0) * t.count AS d, 0 AS o, 0 AS i, t.ts AS ts, NULL AS l",
	    stats_groups[group].dns == NULL ? "NULL" : stats_groups[group].dns);
	snprintf(after, sizeof(after), "GROUP BY k HAVING %s ORDER BY %s, k LIMIT %d", stats_bys[by].having,
	    stats_bys[by].order, max > INT_MAX ? INT_MAX : (int)max);
	if (query_scope_prepare(query, before, columns, after, &stmt, err) < 0)
		return -1;
	while ((rc = stmt == NULL ? SQLITE_DONE : sqlite3_step(stmt)) == SQLITE_ROW)
		stats_take_top(stmt, group, handler, context);
	if (rc != SQLITE_DONE)
		query_scope_error(query, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : -1;
}
