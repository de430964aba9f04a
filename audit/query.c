/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. The three tables are read as one: a UNION ALL of three SELECTs with the same columns, ordered by
 * (ts, id, kind), of which SQLite merges the three indexes without sorting. A page ends at a row whose (ts, id, kind)
 * is the next page's beginning. "The last N" is the same stream from the N-th newest row on.
 *
 * Following is another stream over the same columns, ordered by seq, which the writer gives to each change under its
 * write lock: what was committed later has the larger seq, whatever its ts.
 *
 * SQL is put together from the constant pieces in this file alone; every value is bound. */
#include "audit/query.h"

#include "audit/open.h"
#include "audit/query_row.h"
#include "audit/schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Room for three arms with all their conditions. */
#define QUERY_SQL_MAX 16384

struct query {
	struct open_file file;
	struct query_filter filter;
	sqlite3_stmt *page, *follow;               /* NULL until used */
	int64_t cursor_ts, cursor_id, cursor_kind; /* rows up to here are done */
	int64_t cursor_seq;                        /* following: newest change shown, or the newest at query_start */
	struct query_row rows[QUERY_PAGE];
	void *texts[QUERY_PAGE]; /* owned: the bytes of rows[i] */
	size_t row_count, row_at;
	bool page_was_last;
};

struct query_sql {
	char text[QUERY_SQL_MAX];
	size_t len;
};

struct query_arm {
	unsigned int kind;
	const char *columns, *table, *seq_index;
	const char *host_column; /* NULL: rows of this kind are not about hosts and have no verdict */
};

static const struct query_arm query_arms[] = {
    {QUERY_CONNECTION, QUERY_ROW_CONNECTION, "connections", "connections_seq", "name"},
    {QUERY_DNS, QUERY_ROW_DNS, "dns", "dns_seq", "qname"},
    {QUERY_EVENT, QUERY_ROW_EVENT, "events", "events_seq", NULL},
};
#define QUERY_ARMS (sizeof(query_arms) / sizeof(query_arms[0]))

static void sql_add(struct query_sql *sql, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Too long for the buffer: the statement then fails to prepare, which a test would see. */
static void
sql_add(struct query_sql *sql, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(sql->text + sql->len, sizeof(sql->text) - sql->len, fmt, ap);
	va_end(ap);
	if (n > 0)
		sql->len = sql->len + (size_t)n < sizeof(sql->text) ? sql->len + (size_t)n : sizeof(sql->text) - 1;
}

/* SQL function: is the argument a name below the filter's host? */
static void
query_host_below(sqlite3_context *context, int argc, sqlite3_value **argv)
{
	const struct query *query = sqlite3_user_data(context);
	const void *bytes = sqlite3_value_text(argv[0]);
	int len = sqlite3_value_bytes(argv[0]);
	struct name name;

	(void)argc;
	sqlite3_result_int(context,
	    bytes != NULL && len > 0 && name_canonical(bytes, (size_t)len, &name) == NAME_OK &&
		name_below(&name, &query->filter.host));
}

static void
query_close_db(struct query *query)
{
	sqlite3_finalize(query->page);
	sqlite3_finalize(query->follow);
	query->page = query->follow = NULL;
	open_close(&query->file);
}

struct query *
query_open(const char *path, struct error *err)
{
	struct query *query = calloc(1, sizeof(*query));

	if (query == NULL) {
		error_sys(err, ENOMEM, "%s", path);
		return NULL;
	}
	if (open_read_only(&query->file, path, err) == 0) {
		if (sqlite3_create_function(query->file.db, "host_below", 1, SQLITE_UTF8 | SQLITE_DETERMINISTIC, query,
			query_host_below, NULL, NULL) == SQLITE_OK)
			return query;
		schema_error(err, query->file.db, path);
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

/* Does the filter leave rows of this arm at all? */
static bool
query_arm_wanted(const struct query_filter *filter, const struct query_arm *arm)
{
	if (filter->kinds != 0 && (filter->kinds & arm->kind) == 0)
		return false;
	return arm->host_column != NULL || (!filter->denied && !filter->has_host);
}

static void
sql_add_conditions(struct query_sql *sql, const struct query_filter *filter, const struct query_arm *arm)
{
	if (filter->sandbox_id != 0)
		sql_add(sql, " AND t.sandbox_id = :sandbox_id");
	if (filter->sandbox != NULL)
		sql_add(sql, " AND t.sandbox_id IN (SELECT id FROM sandboxes WHERE name = :sandbox)");
	if (filter->denied)
		sql_add(sql, " AND t.verdict <> 0");
	if (filter->has_host && filter->host_wildcard)
		sql_add(sql, " AND host_below(t.%s)", arm->host_column);
	else if (filter->has_host)
		sql_add(sql, " AND t.%s = :host", arm->host_column);
	if (filter->until_us != 0)
		sql_add(sql, " AND t.ts < :until");
}

enum query_shape { QUERY_SHAPE_PAGE, QUERY_SHAPE_NTH, QUERY_SHAPE_FOLLOW };

static void
sql_add_arm(
    struct query_sql *sql, const struct query_filter *filter, const struct query_arm *arm, enum query_shape shape)
{
	switch (shape) {
	case QUERY_SHAPE_PAGE:
		sql_add(sql, "SELECT %s FROM %s t WHERE (t.ts, t.id, %u) > (:ts, :id, :kind)", arm->columns, arm->table,
		    arm->kind);
		break;
	case QUERY_SHAPE_NTH:
		sql_add(sql, "SELECT %u AS kind, t.id AS id, t.ts AS ts FROM %s t WHERE 1", arm->kind, arm->table);
		break;
	case QUERY_SHAPE_FOLLOW:
		sql_add(sql, "SELECT %s FROM %s t INDEXED BY %s WHERE t.seq > :seq", arm->columns, arm->table,
		    arm->seq_index);
		break;
	}
	if (shape != QUERY_SHAPE_FOLLOW && filter->will_follow)
		sql_add(sql, " AND t.seq <= :seq");
	/* A page begins at the cursor, which is never before since: two lower bounds would leave the planner a choice. */
	if (shape != QUERY_SHAPE_PAGE && filter->since_us != 0)
		sql_add(sql, " AND t.ts >= :since");
	sql_add_conditions(sql, filter, arm);
}

static void
query_bind_integer(sqlite3_stmt *stmt, const char *name, int64_t value)
{
	int at = sqlite3_bind_parameter_index(stmt, name);

	if (at > 0)
		sqlite3_bind_int64(stmt, at, value);
}

static void
query_bind_text(sqlite3_stmt *stmt, const char *name, const char *text)
{
	int at = sqlite3_bind_parameter_index(stmt, name);

	if (at > 0)
		sqlite3_bind_text(stmt, at, text, -1, SQLITE_STATIC);
}

/* *ret_stmt stays NULL when the filter leaves no kind of rows. */
static int
query_prepare(struct query *query, enum query_shape shape, sqlite3_stmt **ret_stmt, struct error *err)
{
	const struct query_filter *filter = &query->filter;
	struct query_sql sql = {.len = 0};

	for (size_t i = 0; i < QUERY_ARMS; i++) {
		if (!query_arm_wanted(filter, &query_arms[i]))
			continue;
		if (sql.len > 0)
			sql_add(&sql, " UNION ALL ");
		sql_add_arm(&sql, filter, &query_arms[i], shape);
	}
	if (sql.len == 0)
		return 0;
	if (shape == QUERY_SHAPE_FOLLOW)
		sql_add(&sql, " ORDER BY seq LIMIT :page");
	else if (shape == QUERY_SHAPE_PAGE)
		sql_add(&sql, " ORDER BY ts, id, kind LIMIT :page");
	else
		sql_add(&sql, " ORDER BY ts DESC, id DESC, kind DESC LIMIT 1 OFFSET :last - 1");
	if (sqlite3_prepare_v2(query->file.db, sql.text, -1, ret_stmt, NULL) != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	query_bind_integer(*ret_stmt, ":sandbox_id", filter->sandbox_id);
	query_bind_text(*ret_stmt, ":sandbox", filter->sandbox);
	query_bind_text(*ret_stmt, ":host", filter->host.text);
	query_bind_integer(*ret_stmt, ":since", filter->since_us);
	query_bind_integer(*ret_stmt, ":until", filter->until_us);
	query_bind_integer(*ret_stmt, ":page", QUERY_PAGE);
	query_bind_integer(*ret_stmt, ":last", filter->last > INT64_MAX ? INT64_MAX : (int64_t)filter->last);
	query_bind_integer(*ret_stmt, ":seq", query->cursor_seq);
	return 0;
}

/* A name that exactly one sandbox had becomes its id: then the index gives the order. Not for followers, who may see
 * another sandbox of that name come. */
static int
query_resolve_sandbox(struct query *query, struct error *err)
{
	static const char sql[] = "SELECT id FROM sandboxes WHERE name = ?1 LIMIT 2";
	sqlite3_stmt *stmt;
	int64_t id = 0;
	int rows = 0, rc;

	if (query->filter.sandbox == NULL || query->filter.will_follow)
		return 0;
	if (sqlite3_prepare_v2(query->file.db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	sqlite3_bind_text(stmt, 1, query->filter.sandbox, -1, SQLITE_STATIC);
	while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
		id = sqlite3_column_int64(stmt, 0);
		rows++;
	}
	sqlite3_finalize(stmt);
	if (rc != SQLITE_DONE)
		return schema_error(err, query->file.db, query->file.path);
	if (rows == 0)
		return error_set(err, ERROR_NOT_FOUND, "no sandbox %.100s in this log", query->filter.sandbox);
	if (rows == 1 && (query->filter.sandbox_id == 0 || query->filter.sandbox_id == id)) {
		query->filter.sandbox_id = id;
		query->filter.sandbox = NULL;
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
	static const char sql[] =
	    "SELECT max(coalesce((SELECT max(seq) FROM connections), 0), coalesce((SELECT max(seq) FROM dns), 0), "
	    "coalesce((SELECT max(seq) FROM events), 0))";
	sqlite3_stmt *stmt;
	int rc;

	if (sqlite3_prepare_v2(query->file.db, sql, -1, &stmt, NULL) != SQLITE_OK)
		return schema_error(err, query->file.db, query->file.path);
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		query->cursor_seq = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW ? 0 : schema_error(err, query->file.db, query->file.path);
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
	if (query_resolve_sandbox(query, err) < 0 || query_newest_seq(query, err) < 0 || query_find_nth(query, err) < 0)
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

		*texts = query_row_take(stmt, &query->rows[query->row_count]);
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
		query_bind_integer(query->page, ":ts", query->cursor_ts);
		query_bind_integer(query->page, ":id", query->cursor_id);
		query_bind_integer(query->page, ":kind", query->cursor_kind);
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

int
query_follow(struct query *query, const struct query_row **ret_row, struct error *err)
{
	if (query->row_at == query->row_count) {
		if (query->follow == NULL && query_prepare(query, QUERY_SHAPE_FOLLOW, &query->follow, err) < 0)
			return -1;
		if (query->follow == NULL)
			return 0;
		query_bind_integer(query->follow, ":seq", query->cursor_seq);
		if (query_fill(query, query->follow, err) < 0)
			return -1;
		if (query->row_count == 0)
			return 0;
		query->cursor_seq = query->rows[query->row_count - 1].seq;
	}
	*ret_row = &query->rows[query->row_at++];
	return 1;
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
	query_bind_integer(stmt, ":sandbox", sandbox_id);
	query_bind_integer(stmt, ":since", (int64_t)since_id);
	query_bind_integer(stmt, ":max", max > INT_MAX ? INT_MAX : (int64_t)max);
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
