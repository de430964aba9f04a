/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which index leads to the rows of a filter: the choice of audit/query/query.c and audit/query/stats.c, see
 * query_lead.c. */
#ifndef POSTERN_AUDIT_QUERY_LEAD_H
#define POSTERN_AUDIT_QUERY_LEAD_H

#include "audit/query/query_sql.h"
#include "base/error.h"
#include "policy/reason.h"

/* Keys of one lead: each is an arm of the statement for each of three tables, or for each verdict in two of them, and
 * SQLite takes 500 arms at most. There must be room for every reason. */
#define QUERY_KEYS_MAX 48

enum query_lead_kind {
	QUERY_LEAD_TIME, /* nothing better: all rows of the time */
	QUERY_LEAD_ID,
	QUERY_LEAD_SANDBOX,
	QUERY_LEAD_NAME,
	QUERY_LEAD_DOMAIN,
	QUERY_LEAD_ADDRESS, /* of connections; to queries as QUERY_LEAD_TIME */
	QUERY_LEAD_REASON,
	QUERY_LEAD_MAX
};

struct query_key {
	bool is_text;
	int64_t number;
	char text[NAME_TEXT_MAX + 1];
};

struct query_lead {
	enum query_lead_kind kind;
	size_t count; /* of keys; 0 and a kind that has keys: no row can pass the filter */
	struct query_key keys[QUERY_KEYS_MAX];
	size_t verdict_count; /* QUERY_LEAD_NAME: verdicts that the filter lets pass */
	unsigned int verdicts[VERDICT_MAX];
};

/* Choose. Reads some thousand index entries at most for each thing the filter asks for. 0 or -1. */
int query_lead_choose(sqlite3 *db, const struct query_filter *filter, struct query_lead *ret_lead, struct error *err);

/* How many arms this table has; 0: there is nothing to find in it. */
size_t query_lead_arms(const struct query_lead *lead, const struct query_arm *arm);

/* " FROM table t INDEXED BY ... WHERE condition": no row comes by two arms. */
void query_lead_from(sqlite3_str *sql, const struct query_lead *lead, const struct query_arm *arm, size_t at);

void query_lead_bind(sqlite3_stmt *stmt, const struct query_lead *lead);

#endif
