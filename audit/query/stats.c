/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Totals and the series come from one pass over the rows, added up here: SQLite would sort them to
 * group them. The pass gives minutes; a series of more steps than STATS_STEPS_MAX is folded into hours, then days.
 * Distinct names and domains are SQLite's business. Sums of untrusted numbers saturate. */
#include "audit/query/stats.h"

#include "audit/query/query_row.h"
#include "audit/query/query_scope.h"
#include "audit/query/saturate.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STATS_MINUTE_US 60000000ll
#define STATS_HOUR_US (60 * STATS_MINUTE_US)
#define STATS_DAY_US (24 * STATS_HOUR_US)
/* Up to so long a time, a step of a minute suits; then an hour. */
#define STATS_MINUTES_US (3 * STATS_HOUR_US)
#define STATS_HOURS_US (7 * STATS_DAY_US)

static void
stats_add(int64_t *sum, int64_t value)
{
	*sum = saturate_add(*sum, value);
}

static int
stats_prepare_rows(struct query *query, sqlite3_stmt **ret_stmt, struct error *err)
{
	static const char *const columns[QUERY_KINDS] = {
	    "1, t.ts, t.verdict, t.reason, t.count, coalesce(t.bytes_out, 0), coalesce(t.bytes_in, 0)",
	    "2, t.ts, t.verdict, t.reason, t.count, 0, 0", "4, t.ts, 0, 0, 1, 0, 0"};

	return query_scope_prepare(query, "SELECT * FROM", columns, "", ret_stmt, err);
}

/* First and last time, to know the steps before the pass. */
static int
stats_read_times(struct query *query, struct stats *stats, struct error *err)
{
	static const char *const columns[QUERY_KINDS] = {"t.ts AS ts", "t.ts AS ts", "t.ts AS ts"};
	sqlite3_stmt *stmt;
	int rc;

	if (query_scope_prepare(query, "SELECT min(ts), max(ts) FROM", columns, "", &stmt, err) < 0)
		return -1;
	if (stmt == NULL)
		return 0;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		stats->first_us = sqlite3_column_int64(stmt, 0);
		stats->last_us = sqlite3_column_int64(stmt, 1);
	} else {
		query_scope_error(query, err);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

static int
stats_make_steps(struct stats *stats, int64_t step_us)
{
	int64_t span_us = saturate_sub(stats->last_us, stats->first_us);

	if (step_us == 0)
		step_us = span_us <= STATS_MINUTES_US ? STATS_MINUTE_US
		    : span_us <= STATS_HOURS_US       ? STATS_HOUR_US
						      : STATS_DAY_US;
	while (span_us / step_us + 2 > STATS_STEPS_MAX)
		step_us *= step_us == STATS_MINUTE_US ? 60 : step_us == STATS_HOUR_US ? 24 : 2;
	stats->step_us = step_us;
	if (stats->last_us == 0)
		return 0;
	stats->step_count = (size_t)(stats->last_us / step_us - stats->first_us / step_us + 1);
	stats->steps = calloc(stats->step_count, sizeof(*stats->steps));
	if (stats->steps == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < stats->step_count; i++)
		stats->steps[i].ts_us = (stats->first_us / step_us + (int64_t)i) * step_us;
	return 0;
}

/* NULL: a row that came in between. */
static struct stats_step *
stats_step(struct stats *stats, int64_t ts_us)
{
	int64_t at = ts_us / stats->step_us - stats->first_us / stats->step_us;

	return at >= 0 && (uint64_t)at < stats->step_count ? &stats->steps[at] : NULL;
}

static void
stats_take_attempt(struct stats *stats, sqlite3_stmt *stmt, bool connection)
{
	int64_t verdict = sqlite3_column_int64(stmt, 2), reason = sqlite3_column_int64(stmt, 3);
	int64_t count = sqlite3_column_int64(stmt, 4), out = sqlite3_column_int64(stmt, 5),
		in = sqlite3_column_int64(stmt, 6);
	struct stats_step *step = stats_step(stats, sqlite3_column_int64(stmt, 1));

	if (verdict >= 0 && verdict < VERDICT_MAX)
		stats_add(connection ? &stats->connections[verdict] : &stats->queries[verdict], count);
	if (reason >= 0 && reason < REASON_MAX)
		stats_add(connection ? &stats->connection_reasons[reason] : &stats->query_reasons[reason], count);
	stats_add(&stats->bytes_out, out);
	stats_add(&stats->bytes_in, in);
	if (step == NULL)
		return;
	stats_add(connection ? &step->connections : &step->queries, count);
	if (verdict != VERDICT_ALLOWED)
		stats_add(&step->denied, count);
	stats_add(&step->bytes_out, out);
	stats_add(&step->bytes_in, in);
}

static int
stats_read_rows(struct query *query, struct stats *stats, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc;

	if (stats_prepare_rows(query, &stmt, err) < 0)
		return -1;
	while ((rc = stmt == NULL ? SQLITE_DONE : sqlite3_step(stmt)) == SQLITE_ROW) {
		if (sqlite3_column_int64(stmt, 0) == QUERY_EVENT)
			stats->events++;
		else
			stats_take_attempt(stats, stmt, sqlite3_column_int64(stmt, 0) == QUERY_CONNECTION);
	}
	if (rc != SQLITE_DONE)
		query_scope_error(query, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : -1;
}

/* The one or two numbers that before and after make of the distinct names; NULL: one. */
static int
stats_count_names(struct query *query, const char *before, const char *after, int64_t *ret_count, int64_t *ret_second,
    struct error *err)
{
	static const char *const columns[QUERY_KINDS] = {"t.name AS name", "t.qname AS name", NULL};
	sqlite3_stmt *stmt;
	int rc;

	*ret_count = 0;
	if (query_scope_prepare(query, before, columns, after, &stmt, err) < 0)
		return -1;
	if (stmt == NULL)
		return 0;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		*ret_count = sqlite3_column_int64(stmt, 0);
		if (ret_second != NULL)
			*ret_second = sqlite3_column_int64(stmt, 1);
	} else {
		query_scope_error(query, err);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : -1;
}

/* Has no earlier row the name? A look into an index for each name and verdict; of one sandbox, its own earlier names.
 */
#define STATS_NOT_SEEN                                                                                                 \
	"NOT EXISTS (SELECT 1 FROM connections c WHERE c.name = n.name AND c.verdict IN (0, 1, 2, 3) AND "             \
	"c.ts < :since) AND NOT EXISTS (SELECT 1 FROM dns d WHERE d.qname = n.name AND d.verdict IN (0, 1, 2, 3) AND " \
	"d.ts < :since)"
_Static_assert(VERDICT_MAX == 4, "the numbers in the SQL");
#define STATS_SEEN_BY_ONE                                                                                              \
	"EXCEPT SELECT name FROM connections INDEXED BY connections_sandbox WHERE sandbox_id = :sandbox_id "           \
	"AND ts < :since EXCEPT SELECT qname FROM dns INDEXED BY dns_sandbox WHERE sandbox_id = :sandbox_id "          \
	"AND ts < :since)"

static int
stats_read_names(struct query *query, struct stats *stats, struct error *err)
{
	const struct query_filter *filter = query_scope_filter(query);

	/* One pass over the rows for both. */
	if (filter->since_us != 0 && filter->sandbox_id == 0)
		return stats_count_names(query,
		    "SELECT count(n.name), coalesce(sum(n.name IS NOT NULL AND " STATS_NOT_SEEN
		    "), 0) FROM (SELECT DISTINCT name FROM",
		    ") n", &stats->names, &stats->first_seen, err);
	if (stats_count_names(query, "SELECT count(DISTINCT name) FROM", "", &stats->names, NULL, err) < 0)
		return -1;
	stats->first_seen = stats->names;
	if (filter->since_us == 0)
		return 0;
	return stats_count_names(
	    query, "SELECT count(name) FROM (SELECT name FROM", STATS_SEEN_BY_ONE, &stats->first_seen, NULL, err);
}

static int
stats_read_domains(struct query *query, struct stats *stats, struct error *err)
{
	static const char *const columns[QUERY_KINDS] = {
	    NULL, "t.domain, t.qname, t.count AS q, (t.verdict <> 0) * t.count AS d, t.entropy AS e", NULL};
	sqlite3_stmt *stmt;
	int rc;

	if (query_scope_prepare(query,
		"SELECT domain, sum_capped(q), count(DISTINCT qname) AS names, sum_capped(d), max(length(qname)), "
		"avg(e) FROM",
		columns,
		"WHERE domain IS NOT NULL GROUP BY domain ORDER BY names DESC, sum_capped(q) DESC, domain LIMIT 10",
		&stmt, err) < 0)
		return -1;
	while ((rc = stmt == NULL ? SQLITE_DONE : sqlite3_step(stmt)) == SQLITE_ROW &&
	    stats->domain_count < STATS_DOMAINS_MAX) {
		struct stats_domain *domain = &stats->domains[stats->domain_count++];
		struct query_text text = query_row_text(stmt, 0);

		snprintf(domain->domain, sizeof(domain->domain), "%.*s", (int)text.len,
		    text.bytes == NULL ? "" : text.bytes);
		domain->queries = sqlite3_column_int64(stmt, 1);
		domain->names = sqlite3_column_int64(stmt, 2);
		domain->denied = sqlite3_column_int64(stmt, 3);
		domain->longest = sqlite3_column_int64(stmt, 4);
		domain->entropy = sqlite3_column_double(stmt, 5) / 100;
	}
	if (rc != SQLITE_DONE && rc != SQLITE_ROW)
		query_scope_error(query, err);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE || rc == SQLITE_ROW ? 0 : -1;
}
_Static_assert(STATS_DOMAINS_MAX == 10, "the number in the statement");

int
stats_read(struct query *query, int64_t step_us, struct stats *ret_stats, struct error *err)
{
	memset(ret_stats, 0, sizeof(*ret_stats));
	if (stats_read_times(query, ret_stats, err) < 0)
		return -1;
	if (stats_make_steps(ret_stats, step_us) < 0)
		return error_sys(err, ENOMEM, "statistics");
	if (stats_read_rows(query, ret_stats, err) == 0 && stats_read_names(query, ret_stats, err) == 0 &&
	    stats_read_domains(query, ret_stats, err) == 0)
		return 0;
	stats_free(ret_stats);
	return -1;
}

void
stats_free(struct stats *stats)
{
	free(stats->steps);
	stats->steps = NULL;
	stats->step_count = 0;
}
