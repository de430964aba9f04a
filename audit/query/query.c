/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The three tables are read as one: a UNION ALL of SELECTs with the same columns ("arms",
 * audit/query/query_sql.h), ordered by (ts, id, kind), of which SQLite merges the indexes without sorting. A page ends
 * at a row whose (ts, id, kind) is the next page's beginning. "The last N" is the same stream from the N-th newest row
 * on.
 *
 * Following is another stream over the same columns, ordered by seq, which the writer gives to each change under its
 * write lock: what was committed later has the larger seq, whatever its ts. So one number says how far a follower came,
 * and with the log's own id it is a cursor from which another process goes on, without loss or repeats.
 *
 * SQL is put together from constant pieces, here and in audit/query/query_sql.c; every value is bound. */
#include "audit/query/query.h"

#include "audit/query/open.h"
#include "audit/query/query_lead.h"
#include "audit/query/query_row.h"
#include "audit/query/query_scope.h"
#include "audit/query/query_sql.h"
#include "audit/store/schema.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct query {
	struct open_file file;
	char log_id[QUERY_LOG_ID_MAX];
	struct query_filter filter;
	struct query_row_plan plan;
	struct query_lead lead;                    /* to the rows of page */
	sqlite3_stmt *page, *follow;               /* NULL until used */
	int64_t cursor_ts, cursor_id, cursor_kind; /* rows up to here are done */
	int64_t cursor_seq;                        /* following: newest change shown, or the newest at query_start */
	int64_t newest_seq;                        /* at query_start */
	struct query_row rows[QUERY_PAGE];
	void *texts[QUERY_PAGE]; /* owned: the bytes of rows[i] */
	size_t row_count, row_at;
	bool page_was_last;
};

static void
query_close_db(struct query *query)
{
	sqlite3_finalize(query->page);
	sqlite3_finalize(query->follow);
	query->page = query->follow = NULL;
	open_close(&query->file);
}

/* First column of the first row as a number; 0 when there is none. */
static int
query_integer(struct query *query, const char *sql, int64_t *ret_value, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc;

	if (sqlite3_prepare_v2(query->file.db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	rc = sqlite3_step(stmt);
	*ret_value = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : schema_error(err, query->file.db, query->file.path);
}

static int
query_read_log_id(struct query *query, struct error *err)
{
	sqlite3_stmt *stmt;
	struct query_text id;
	int rc;

	if (sqlite3_prepare_v2(query->file.db, "SELECT value FROM meta WHERE key = 'log_id'", -1, &stmt, NULL) !=
	    SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		id = query_row_text(stmt, 0);
		snprintf(query->log_id, sizeof(query->log_id), "%.*s", (int)id.len, id.bytes == NULL ? "" : id.bytes);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : schema_error(err, query->file.db, query->file.path);
}

struct query *
query_open(const char *path, struct error *err)
{
	struct query *query = calloc(1, sizeof(*query));

	if (query == NULL) {
		error_sys(err, ENOMEM, "%s", path);
		return NULL;
	}
	query_row_plan(&query->plan);
	if (open_read_only(&query->file, path, err) == 0) {
		if (query_sql_functions(query->file.db) != SQLITE_OK)
			schema_error(err, query->file.db, path);
		else if (query_read_log_id(query, err) == 0)
			return query;
	}
	query_close(query);
	return NULL;
}

static void
query_drop_rows(struct query *query)
{
	for (size_t i = 0; i < query->row_count; i++)
		free(query->texts[i]);
	query->row_count = query->row_at = 0;
}

void
query_close(struct query *query)
{
	if (query == NULL)
		return;
	query_drop_rows(query);
	query_close_db(query);
	free(query);
}

bool
query_is_stale(const struct query *query)
{
	return open_is_stale(&query->file);
}

enum query_shape { QUERY_SHAPE_PAGE, QUERY_SHAPE_NTH, QUERY_SHAPE_FOLLOW };

/* at: which arm of the lead; following has none. */
static void
query_add_arm(
    sqlite3_str *sql, const struct query *query, const struct query_arm *arm, enum query_shape shape, size_t at)
{
	const struct query_filter *filter = &query->filter;

	switch (shape) {
	case QUERY_SHAPE_PAGE:
		sqlite3_str_appendall(sql, "SELECT ");
		query_row_select(sql, &query->plan, arm->columns, arm->kind);
		query_lead_from(sql, &query->lead, arm, at);
		sqlite3_str_appendf(sql, " AND (t.ts, t.id, %u) > (:ts, :id, :kind)", arm->kind);
		break;
	case QUERY_SHAPE_NTH:
		sqlite3_str_appendf(sql, "SELECT %u AS kind, t.id AS id, t.ts AS ts", arm->kind);
		query_lead_from(sql, &query->lead, arm, at);
		break;
	case QUERY_SHAPE_FOLLOW:
		sqlite3_str_appendall(sql, "SELECT ");
		query_row_select(sql, &query->plan, arm->columns, arm->kind);
		sqlite3_str_appendf(sql, " FROM %s t INDEXED BY %s_seq WHERE t.seq > :seq", arm->table, arm->table);
		break;
	}
	if (shape != QUERY_SHAPE_FOLLOW && filter->will_follow)
		sqlite3_str_appendall(sql, " AND t.seq <= :seq");
	/* A page begins at the cursor, which is never before since: two lower bounds would leave the planner a choice.
	 */
	if (shape != QUERY_SHAPE_PAGE && filter->since_us != 0)
		sqlite3_str_appendall(sql, " AND t.ts >= :since");
	query_sql_conditions(sql, filter, arm);
}

static void
query_add_order(sqlite3_str *sql, enum query_shape shape)
{
	switch (shape) {
	case QUERY_SHAPE_PAGE:
		sqlite3_str_appendall(sql, " ORDER BY ts, id, kind LIMIT :page");
		return;
	case QUERY_SHAPE_NTH:
		sqlite3_str_appendall(sql, " ORDER BY ts DESC, id DESC, kind DESC LIMIT 1 OFFSET :last - 1");
		return;
	case QUERY_SHAPE_FOLLOW:
		sqlite3_str_appendall(sql, " ORDER BY seq LIMIT :page");
		return;
	}
}

/* *ret_stmt stays NULL when the filter leaves no kind of rows. */
static int
query_prepare(struct query *query, enum query_shape shape, sqlite3_stmt **ret_stmt, struct error *err)
{
	const struct query_filter *filter = &query->filter;
	sqlite3_str *sql = sqlite3_str_new(query->file.db);
	char *text;
	int rc = SQLITE_OK;

	for (size_t i = 0; i < QUERY_KINDS; i++) {
		size_t arms = shape == QUERY_SHAPE_FOLLOW ? 1 : query_lead_arms(&query->lead, &query_sql_arms[i]);

		for (size_t at = 0; at < arms && query_sql_wanted(filter, &query_sql_arms[i]); at++) {
			if (sqlite3_str_length(sql) > 0)
				sqlite3_str_appendall(sql, " UNION ALL ");
			query_add_arm(sql, query, &query_sql_arms[i], shape, at);
		}
	}
	if (sqlite3_str_length(sql) > 0)
		query_add_order(sql, shape);
	rc = sqlite3_str_errcode(sql);
	text = sqlite3_str_finish(sql);
	if (rc == SQLITE_OK && text == NULL)
		return 0;
	if (rc == SQLITE_OK)
		rc = sqlite3_prepare_v2(query->file.db, text, -1, ret_stmt, NULL);
	sqlite3_free(text);
	if (rc != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	query_sql_bind(*ret_stmt, filter);
	query_lead_bind(*ret_stmt, &query->lead);
	query_sql_bind_integer(*ret_stmt, ":page", QUERY_PAGE);
	query_sql_bind_integer(*ret_stmt, ":last", filter->last > INT64_MAX ? INT64_MAX : (int64_t)filter->last);
	query_sql_bind_integer(*ret_stmt, ":seq", query->cursor_seq);
	return 0;
}

/* How many sandboxes had this name (2: two or more), and the id of one. */
static int
query_find_sandbox(struct query *query, const char *name, int64_t *ret_id, struct error *err)
{
	sqlite3_stmt *stmt;
	int rows = 0, rc;

	if (sqlite3_prepare_v2(query->file.db, "SELECT id FROM sandboxes WHERE name = ?1 LIMIT 2", -1, &stmt, NULL) !=
	    SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	sqlite3_bind_text(stmt, 1, name, -1, SQLITE_STATIC);
	for (; (rc = sqlite3_step(stmt)) == SQLITE_ROW; rows++)
		*ret_id = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	if (rc != SQLITE_DONE)
		return schema_error(err, query->file.db, query->file.path);
	if (rows == 0)
		return error_set(err, ERROR_NOT_FOUND, "no sandbox %.100s in this log", name);
	return rows;
}

/* A name that exactly one sandbox had becomes its id: then the index gives the order. Not for followers, who may see
 * another sandbox of that name come. */
static int
query_resolve_sandboxes(struct query *query, struct error *err)
{
	struct query_filter *filter = &query->filter;
	int64_t id = 0;
	int rows;

	if (filter->will_follow)
		return 0;
	for (size_t i = 0; i < filter->term_count; i++)
		if (filter->terms[i].field == QUERY_FIELD_SANDBOX && !filter->terms[i].negated &&
		    query_find_sandbox(query, filter->terms[i].text, &id, err) < 0)
			return -1;
	if (filter->sandbox == NULL)
		return 0;
	rows = query_find_sandbox(query, filter->sandbox, &id, err);
	if (rows < 0)
		return -1;
	if (rows == 1 && (filter->sandbox_id == 0 || filter->sandbox_id == id)) {
		filter->sandbox_id = id;
		filter->sandbox = NULL;
	}
	return 0;
}

/* Set the cursor just before the N-th newest row. */
static int
query_find_nth(struct query *query, struct error *err)
{
	sqlite3_stmt *stmt = NULL;
	int rc;

	if (query->filter.last == 0)
		return 0;
	if (query_prepare(query, QUERY_SHAPE_NTH, &stmt, err) < 0)
		return -1;
	if (stmt == NULL)
		return 0;
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW) {
		query->cursor_kind = sqlite3_column_int64(stmt, 0) - 1;
		query->cursor_id = sqlite3_column_int64(stmt, 1);
		query->cursor_ts = sqlite3_column_int64(stmt, 2);
	}
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : schema_error(err, query->file.db, query->file.path);
}

static int
query_newest_seq(struct query *query, struct error *err)
{
	return query_integer(query,
	    "SELECT max(coalesce((SELECT max(seq) FROM connections), 0), coalesce((SELECT max(seq) FROM dns), 0), "
	    "coalesce((SELECT max(seq) FROM events), 0))",
	    &query->newest_seq, err);
}

int
query_start(struct query *query, const struct query_filter *filter, struct error *err)
{
	query_drop_rows(query);
	sqlite3_finalize(query->page);
	sqlite3_finalize(query->follow);
	query->page = query->follow = NULL;
	query->filter = *filter;
	query->page_was_last = false;
	query->cursor_ts = filter->since_us > 0 ? filter->since_us - 1 : INT64_MIN;
	query->cursor_id = query->cursor_kind = INT64_MAX;
	if (query_resolve_sandboxes(query, err) < 0 || query_newest_seq(query, err) < 0)
		return -1;
	query->cursor_seq = query->newest_seq;
	if (query_lead_choose(query->file.db, &query->filter, &query->lead, err) < 0 || query_find_nth(query, err) < 0)
		return -1;
	return query_prepare(query, QUERY_SHAPE_PAGE, &query->page, err);
}

/* Run stmt into the page and end its read transaction. */
static int
query_fill(struct query *query, sqlite3_stmt *stmt, struct error *err)
{
	int rc;

	query_drop_rows(query);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW && query->row_count < QUERY_PAGE) {
		void **texts = &query->texts[query->row_count];

		*texts = query_row_take(stmt, &query->plan, &query->rows[query->row_count]);
		if (*texts == NULL) {
			sqlite3_reset(stmt);
			return error_sys(err, ENOMEM, "%s", query->file.path);
		}
		query->row_count++;
	}
	if (rc != SQLITE_DONE && rc != SQLITE_ROW) {
		schema_error(err, query->file.db, query->file.path);
		sqlite3_reset(stmt);
		return -1;
	}
	sqlite3_reset(stmt);
	return 0;
}

int
query_next(struct query *query, const struct query_row **ret_row, struct error *err)
{
	if (query->row_at == query->row_count) {
		if (query->page_was_last || query->page == NULL)
			return 0;
		query_sql_bind_integer(query->page, ":ts", query->cursor_ts);
		query_sql_bind_integer(query->page, ":id", query->cursor_id);
		query_sql_bind_integer(query->page, ":kind", query->cursor_kind);
		if (query_fill(query, query->page, err) < 0)
			return -1;
		query->page_was_last = query->row_count < QUERY_PAGE;
		if (query->row_count == 0)
			return 0;
		query->cursor_ts = query->rows[query->row_count - 1].ts_us;
		query->cursor_id = (int64_t)query->rows[query->row_count - 1].id;
		query->cursor_kind = query->rows[query->row_count - 1].kind;
	}
	*ret_row = &query->rows[query->row_at++];
	return 1;
}

/* "LOG:SEQ": whose change was shown last. */
static void
query_format_cursor(const struct query *query, int64_t seq, char ret_cursor[QUERY_CURSOR_MAX])
{
	snprintf(ret_cursor, QUERY_CURSOR_MAX, "%s:%" PRId64, query->log_id, seq);
}

int
query_follow(struct query *query, const struct query_row **ret_row, struct error *err)
{
	if (query->row_at == query->row_count) {
		if (query->follow == NULL && query_prepare(query, QUERY_SHAPE_FOLLOW, &query->follow, err) < 0)
			return -1;
		if (query->follow == NULL)
			return 0;
		query_sql_bind_integer(query->follow, ":seq", query->cursor_seq);
		if (query_fill(query, query->follow, err) < 0)
			return -1;
		if (query->row_count == 0) {
			/* What the filter left out up to there need not be looked at again. */
			if (query->cursor_seq < query->newest_seq)
				query->cursor_seq = query->newest_seq;
			return 0;
		}
		query->cursor_seq = query->rows[query->row_count - 1].seq;
	}
	query_format_cursor(query, query->rows[query->row_at].seq, query->rows[query->row_at].cursor);
	*ret_row = &query->rows[query->row_at++];
	return 1;
}

void
query_cursor(const struct query *query, char ret_cursor[QUERY_CURSOR_MAX])
{
	int64_t seq = query->cursor_seq;

	/* Rows of the page that nobody has asked for yet are still to come. */
	if (query->row_at > 0 && query->row_at < query->row_count && query->rows[query->row_at].cursor[0] == '\0' &&
	    query->rows[query->row_at - 1].cursor[0] != '\0')
		seq = query->rows[query->row_at - 1].seq;
	query_format_cursor(query, seq, ret_cursor);
}

int
query_seek(struct query *query, const char *cursor, enum query_seek_result *ret_result, struct error *err)
{
	size_t id_len = strcspn(cursor, ":");
	int64_t pruned = 0;
	long long seq = 0;
	char *end = NULL;

	*ret_result = QUERY_SEEK_SAME;
	if (strcmp(cursor, QUERY_CURSOR_BEGIN) != 0) {
		if (cursor[id_len] == ':' && cursor[id_len + 1] >= '0' && cursor[id_len + 1] <= '9')
			seq = strtoll(cursor + id_len + 1, &end, 10);
		if (id_len == 0 || end == NULL || *end != '\0')
			return error_set(err, ERROR_USAGE, "%.100s: not a cursor; begin with \"begin\"", cursor);
		if (id_len != strlen(query->log_id) || memcmp(cursor, query->log_id, id_len) != 0) {
			*ret_result = QUERY_SEEK_OTHER_LOG;
			seq = 0;
		}
		if (query_integer(query, "SELECT value FROM meta WHERE key = 'pruned_through'", &pruned, err) < 0)
			return -1;
		if (*ret_result == QUERY_SEEK_SAME && seq < pruned)
			*ret_result = QUERY_SEEK_PRUNED;
	}
	query_drop_rows(query);
	query->page_was_last = true;
	query->cursor_seq = seq;
	return 0;
}

int
query_scope_error(struct query *query, struct error *err)
{
	return schema_error(err, query->file.db, query->file.path);
}

const struct query_filter *
query_scope_filter(const struct query *query)
{
	return &query->filter;
}

int
query_scope_prepare(struct query *query, const char *before, const char *const columns[QUERY_KINDS], const char *after,
    sqlite3_stmt **ret_stmt, struct error *err)
{
	const struct query_filter *filter = &query->filter;
	sqlite3_str *sql = sqlite3_str_new(query->file.db);
	const char *join = " (";
	char *text;
	int rc;

	*ret_stmt = NULL;
	sqlite3_str_appendall(sql, before);
	for (size_t i = 0; i < QUERY_KINDS; i++) {
		if (columns[i] == NULL || !query_sql_wanted(filter, &query_sql_arms[i]))
			continue;
		for (size_t at = 0; at < query_lead_arms(&query->lead, &query_sql_arms[i]); at++) {
			sqlite3_str_appendf(sql, "%sSELECT %s", join, columns[i]);
			query_lead_from(sql, &query->lead, &query_sql_arms[i], at);
			if (filter->since_us != 0)
				sqlite3_str_appendall(sql, " AND t.ts >= :since");
			query_sql_conditions(sql, filter, &query_sql_arms[i]);
			join = " UNION ALL ";
		}
	}
	sqlite3_str_appendf(sql, ") %s", after);
	text = sqlite3_str_finish(sql);
	if (text == NULL)
		return error_sys(err, ENOMEM, "%s", query->file.path);
	/* Without an arm there is nothing in the parentheses. */
	rc = join[1] == '(' ? SQLITE_OK : sqlite3_prepare_v2(query->file.db, text, -1, ret_stmt, NULL);
	sqlite3_free(text);
	if (rc != SQLITE_OK)
		return query_scope_error(query, err);
	query_sql_bind(*ret_stmt, filter);
	query_lead_bind(*ret_stmt, &query->lead);
	return 0;
}

/* Largest first; a name that is not there is shown as the address that was dialled. */
#define SUMMARY_SQL                                                                                                    \
	"SELECT kind, what, proto, dport, verdict, reason, CAST(total(count) AS INTEGER) AS n, "                       \
	"CAST(total(bytes_out) AS INTEGER), CAST(total(bytes_in) AS INTEGER) FROM ("                                   \
	"SELECT 1 AS kind, coalesce(name, name_raw, dst, '-') AS what, proto, dport, verdict, reason, count, "         \
	"bytes_out, "                                                                                                  \
	"bytes_in FROM connections WHERE sandbox_id = :sandbox AND id > :since "                                       \
	"UNION ALL SELECT 2, coalesce(qname, qname_raw, '.'), 0, 0, verdict, reason, count, 0, 0 FROM dns "            \
	"WHERE sandbox_id = :sandbox AND id > :since AND verdict <> 0) "                                               \
	"GROUP BY kind, what, proto, dport, verdict, reason ORDER BY n DESC, kind, what, dport LIMIT :max"

int
query_summary(struct query *query, int64_t sandbox_id, uint64_t since_id, size_t max,
    void (*handler)(const struct query_group *group, void *context), void *context, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc;

	if (sqlite3_prepare_v2(query->file.db, SUMMARY_SQL, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	query_sql_bind_integer(stmt, ":sandbox", sandbox_id);
	query_sql_bind_integer(stmt, ":since", (int64_t)since_id);
	query_sql_bind_integer(stmt, ":max", max > INT_MAX ? INT_MAX : (int64_t)max);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		struct query_group group = {
		    .kind = (unsigned int)sqlite3_column_int(stmt, 0),
		    .name = query_row_text(stmt, 1),
		    .proto = sqlite3_column_int64(stmt, 2),
		    .dport = sqlite3_column_int64(stmt, 3),
		    .verdict = sqlite3_column_int64(stmt, 4),
		    .reason = sqlite3_column_int64(stmt, 5),
		    .count = sqlite3_column_int64(stmt, 6),
		    .bytes_out = sqlite3_column_int64(stmt, 7),
		    .bytes_in = sqlite3_column_int64(stmt, 8),
		};

		handler(&group, context);
	}
	if (rc != SQLITE_DONE)
		schema_error(err, query->file.db, query->file.path);
	sqlite3_finalize(stmt);
	return rc == SQLITE_DONE ? 0 : -1;
}
