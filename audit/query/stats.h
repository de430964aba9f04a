/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of the audit log added up: who talked most, and totals over time. Each function is about the rows of a query
 * that was started (query_start; its `last` is not asked). Texts are as they stand in the file: anything. */
#ifndef POSTERN_AUDIT_STATS_H
#define POSTERN_AUDIT_STATS_H

#include "audit/query/query.h"
#include "policy/reason.h"

/* What rows are put together by. Countries, networks and addresses are those of connections' destinations. */
enum stats_group {
	STATS_GROUP_NAME,
	STATS_GROUP_DOMAIN,
	STATS_GROUP_IP,
	STATS_GROUP_PORT,
	STATS_GROUP_SANDBOX,
	STATS_GROUP_RULE,
	STATS_GROUP_REASON,
	STATS_GROUP_COUNTRY,
	STATS_GROUP_ASN,
	STATS_GROUP_MAX
};

/* What groups are ordered by, the largest first. */
enum stats_by { STATS_BY_BYTES, STATS_BY_CONNECTIONS, STATS_BY_DENIED, STATS_BY_QUERIES, STATS_BY_MAX };

/* "name", ...; "bytes", ...; "?" outside the enums. */
const char *stats_top_group_text(unsigned int group);
const char *stats_top_by_text(unsigned int by);

struct stats_row {
	struct query_text key;   /* empty: rows that have no such thing */
	struct query_number id;  /* of a sandbox */
	struct query_text label; /* of an autonomous system: its holder */
	int64_t connections;     /* attempts, allowed or not */
	int64_t queries;         /* likewise */
	int64_t denied;          /* of both */
	int64_t bytes_out, bytes_in;
	int64_t first_us, last_us;
};

/* Call handler for the max largest groups. The row is valid within the call. 0 or -1. */
int stats_top(struct query *query, enum stats_group group, enum stats_by by, size_t max,
    void (*handler)(const struct stats_row *row, void *context), void *context, struct error *err);

/* Steps of a time series: beyond it they are made longer. */
#define STATS_STEPS_MAX 1500
/* Domains listed. */
#define STATS_DOMAINS_MAX 10

struct stats_step {
	int64_t ts_us; /* its beginning */
	int64_t connections, queries, denied, bytes_out, bytes_in;
};

/* Questions below one registered domain: many names of great entropy are how data leaves through questions. */
struct stats_domain {
	char domain[NAME_TEXT_MAX + 1];
	int64_t queries, names, denied;
	int64_t longest; /* characters of the longest name */
	double entropy;  /* mean, bits a character before the domain */
};

struct stats {
	int64_t connections[VERDICT_MAX], queries[VERDICT_MAX]; /* attempts by verdict */
	int64_t connection_reasons[REASON_MAX], query_reasons[REASON_MAX];
	int64_t bytes_out, bytes_in;
	int64_t names;      /* distinct ones that were asked for or connected to */
	int64_t first_seen; /* of these, such that no earlier row of the sandboxes asked for (or of any) has */
	int64_t events;
	int64_t first_us, last_us;                      /* 0: no rows */
	struct stats_domain domains[STATS_DOMAINS_MAX]; /* most names first */
	size_t domain_count;
	int64_t step_us;
	struct stats_step *steps; /* owned; without holes between the first and the last */
	size_t step_count;
};

/* Fill *ret_stats. step_us: 60, 3600 or 86400 seconds, 0: what suits the time from the first to the last row. 0 or -1.
 */
int stats_read(struct query *query, int64_t step_us, struct stats *ret_stats, struct error *err);
void stats_free(struct stats *stats);

#endif
