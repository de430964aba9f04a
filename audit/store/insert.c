/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A sender sends a record again when the auditor was restarted or could not write, so every
 * statement has no effect the second time: inserts by primary key do nothing on conflict, a close only touches a row
 * that is open, a count only grows. Every statement that does change a row gives it the next seq, which is how a reader
 * that follows the log finds changes without looking at times.
 *
 * The statements are made of audit/columns.c, and a record's members are bound by walking it: parameter N + 1 is the
 * value of a table's entry N. What came from a guest is bound, never spliced into SQL. Text columns hold printable
 * ASCII only: names that are not plain go to a BLOB column as they came, other texts (built by us; a surprise there
 * means a damaged sender) are escaped, and JSON columns are checked to be JSON.
 *
 * Limits: none of its own; record_valid has bounded every text. A failed bind or step fails the record, and the caller
 * rolls the batch back. */
#include "audit/store/insert.h"

#include "audit/store/community_id.h"
#include "audit/store/name_measure.h"
#include "base/escape.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Four bytes for each byte of the longest text, and the NUL. */
#define INSERT_ESCAPED_MAX (4 * RECORD_DETAIL_MAX + 1)

enum insert_how {
	INSERT_VERBATIM = 0, /* sql is all of it */
	INSERT_FIRST,        /* INSERT of the columns that a row's first record fills; sql says what a conflict does */
	INSERT_SECOND,       /* the same for the record that completes a row */
	INSERT_UPDATE,       /* UPDATE by the record that completes a row; sql says which row */
};

/* None has a RETURNING clause, though the changed row is what its link is made of: with it SQLite takes a statement for
 * one that may stop halfway, and keeps a copy of every page that it is about to change, 4 KiB for each index of the
 * table. */
static const struct {
	enum insert_how how;
	enum columns_table table;
	const char *sql;
	const char *operand; /* column whose new value ends the statement; NULL: sql does */
	const char *where;   /* also set every count to its new value, where this holds; NULL: none */
} insert_sql[] = {
    [INSERT_CONNECTION] = {INSERT_FIRST, COLUMNS_CONNECTIONS, "DO NOTHING", NULL, NULL},
    [INSERT_REFUSED] = {INSERT_FIRST, COLUMNS_CONNECTIONS,
	"DO UPDATE SET seq = excluded.seq, count = excluded.count, last_ts = excluded.last_ts "
	"WHERE excluded.count > count",
	NULL, NULL},
    /* A crash is inferred from a process's end; the sender's own word about the connection wins. What is open was
     * allowed (record_valid), and only what ends otherwise has its verdict set: a column that is set, if to what it
     * was, has its entry in each of its indexes written anew. */
    [INSERT_CLOSE] = {INSERT_UPDATE, COLUMNS_CONNECTIONS, "WHERE id = ?1 AND end IN (0, 11, 12)", NULL, NULL},
    [INSERT_CLOSE_REFUSED] = {INSERT_UPDATE, COLUMNS_CONNECTIONS, "WHERE id = ?1 AND end IN (0, 11, 12)", NULL, NULL},
    /* What was sent again must not take a count back. */
    [INSERT_PROGRESS] = {INSERT_UPDATE, COLUMNS_CONNECTIONS,
	"WHERE id = ?1 AND end = 0 AND coalesce(duration_us, -1) < ", "duration_us", NULL},
    [INSERT_DNS] = {INSERT_FIRST, COLUMNS_DNS,
	"DO UPDATE SET seq = excluded.seq, count = excluded.count WHERE excluded.count > count", NULL, NULL},
    /* What was pruned is told by one event, which grows with each segment (kind 16; only the auditor says it). */
    [INSERT_EVENT] = {INSERT_FIRST, COLUMNS_EVENTS,
	"DO UPDATE SET seq = excluded.seq, ts = excluded.ts, detail = excluded.detail "
	"WHERE kind = 16 AND excluded.kind = 16 AND detail IS NOT excluded.detail",
	NULL, NULL},
    [INSERT_SANDBOX] = {INSERT_FIRST, COLUMNS_SANDBOXES,
	"DO UPDATE SET seq = excluded.seq, name = excluded.name, kind = excluded.kind, "
	"uid = excluded.uid, attached_ts = coalesce(attached_ts, excluded.attached_ts), detail = excluded.detail "
	"WHERE attached_ts IS NULL OR name <> excluded.name OR kind <> excluded.kind OR uid IS NOT excluded.uid OR "
	"detail IS NOT excluded.detail",
	NULL, NULL},
    [INSERT_SANDBOX_END] = {INSERT_SECOND, COLUMNS_SANDBOXES,
	"DO UPDATE SET seq = excluded.seq, detached_ts = excluded.detached_ts "
	"WHERE detached_ts IS NOT excluded.detached_ts",
	NULL, NULL},
    [INSERT_NEXT_OPEN] = {.sql = "SELECT id FROM connections INDEXED BY connections_open WHERE end = 0 AND id > ?1 "
				 "ORDER BY id LIMIT 1"},
    [INSERT_CRASHED] = {.table = COLUMNS_CONNECTIONS,
	.sql = "UPDATE connections SET seq = ?2, closed_ts = max(ts, ?3), duration_us = max(ts, ?3) - ts, end = ?4 "
	       "WHERE id = ?1"},
    [INSERT_ACCOUNT] = {INSERT_FIRST, COLUMNS_ACCOUNTS,
	"DO UPDATE SET seq = excluded.seq, ts = excluded.ts, final = excluded.final", NULL,
	" WHERE excluded.ts > ts AND final = 0"},
    [INSERT_TARGET] = {.sql = "SELECT dst, dport, proto FROM connections WHERE id = ?1"},
    [INSERT_LINK] = {.sql = "INSERT INTO chain (seq, tbl, id, digest) VALUES (?1, ?2, ?3, ?4)"},
};
_Static_assert(sizeof(insert_sql) / sizeof(insert_sql[0]) == INSERT_STATEMENT_MAX, "SQL for each statement");
_Static_assert(EVENT_PRUNED == 16, "the number in INSERT_EVENT");
_Static_assert(END_GATEWAY_CRASH == 11 && END_DAEMON_CRASH == 12 && END_OPEN == 0, "the numbers in the statements");

/* The member that a statement's record has for a column; its bind is COLUMN_BIND_NONE if it has none. */
static const struct column_source *
insert_source(enum insert_statement which, const struct column *column)
{
	return insert_sql[which].how == INSERT_FIRST ? &column->first : &column->second;
}

/* One statement's SQL. */
static void
insert_append_sql(sqlite3_str *sql, enum insert_statement which)
{
	const struct columns *table = columns_of(insert_sql[which].table);
	bool update = insert_sql[which].how == INSERT_UPDATE;
	sqlite3_str *values = sqlite3_str_new(NULL);
	const char *join = "";

	if (insert_sql[which].how != INSERT_VERBATIM)
		sqlite3_str_appendf(sql, update ? "UPDATE %s SET " : "INSERT INTO %s (", table->name);
	for (size_t i = 0; insert_sql[which].how != INSERT_VERBATIM && i < table->count; i++) {
		uint8_t bind = insert_source(which, &table->columns[i])->bind;

		if (bind == COLUMN_BIND_NONE || (update && i == 0) ||
		    (bind == COLUMN_BIND_REFUSAL && which != INSERT_CLOSE_REFUSED))
			continue;
		sqlite3_str_appendf(sql, update ? "%s%s = ?%d" : "%s%s", join, table->columns[i].name, (int)i + 1);
		sqlite3_str_appendf(values, "%s?%d", join, (int)i + 1);
		join = ", ";
	}
	if (insert_sql[which].how != INSERT_VERBATIM && !update)
		sqlite3_str_appendf(sql, ") VALUES (%s) ON CONFLICT (id)", sqlite3_str_value(values));
	sqlite3_free(sqlite3_str_finish(values));
	sqlite3_str_appendf(sql, " %s", insert_sql[which].sql);
	if (insert_sql[which].operand != NULL)
		sqlite3_str_appendf(
		    sql, "?%d", (int)columns_index(insert_sql[which].table, insert_sql[which].operand) + 1);
	for (size_t i = 0; insert_sql[which].where != NULL && i < table->count; i++)
		if (table->columns[i].first.bind == COLUMN_BIND_COUNT)
			sqlite3_str_appendf(sql, ", %s = excluded.%s", table->columns[i].name, table->columns[i].name);
	if (insert_sql[which].where != NULL)
		sqlite3_str_appendall(sql, insert_sql[which].where);
}

/* Prepares the statement in sql, which it frees. */
static int
insert_prepare_own(struct insert *insert, sqlite3_str *sql, sqlite3_stmt **ret_stmt)
{
	char *text = sqlite3_str_finish(sql);
	int rc = text == NULL ? SQLITE_NOMEM
			      : sqlite3_prepare_v3(insert->db, text, -1, SQLITE_PREPARE_PERSISTENT, ret_stmt, NULL);

	sqlite3_free(text);
	return rc;
}

int
insert_prepare(struct insert *insert, sqlite3 *db, const struct insert_state *state)
{
	char list[COLUMNS_TEXT_MAX];
	int rc;

	memset(insert, 0, sizeof(*insert));
	insert->db = db;
	insert->now = insert->durable = *state;
	insert->chain = chain_new();
	rc = insert->chain == NULL ? SQLITE_NOMEM : SQLITE_OK;
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX && rc == SQLITE_OK; table++) {
		sqlite3_str *sql = sqlite3_str_new(db);

		sqlite3_str_appendf(
		    sql, "SELECT %s FROM %s WHERE id = ?1", columns_chained(table, list), columns_table_name(table));
		rc = insert_prepare_own(insert, sql, &insert->rows[table]);
	}
	for (enum insert_statement which = 0; which < INSERT_STATEMENT_MAX && rc == SQLITE_OK; which++) {
		sqlite3_str *sql = sqlite3_str_new(db);

		insert_append_sql(sql, which);
		rc = insert_prepare_own(insert, sql, &insert->statements[which]);
	}
	if (rc != SQLITE_OK)
		insert_finalize(insert);
	return rc;
}

void
insert_finalize(struct insert *insert)
{
	for (size_t i = 0; i < INSERT_STATEMENT_MAX; i++) {
		sqlite3_finalize(insert->statements[i]);
		insert->statements[i] = NULL;
	}
	for (size_t i = 0; i < COLUMNS_TABLE_MAX; i++) {
		sqlite3_finalize(insert->rows[i]);
		insert->rows[i] = NULL;
	}
	chain_free(insert->chain);
	insert->chain = NULL;
}

void
insert_committed(struct insert *insert)
{
	insert->durable = insert->now;
}

void
insert_rolled_back(struct insert *insert)
{
	insert->now = insert->durable;
}

/* What the row with the link's id is now: its seq, and the digest of all of it. */
static int
insert_read(struct insert *insert, struct chain_link *link)
{
	sqlite3_stmt *row = insert->rows[link->table];
	int rc = SQLITE_OK;

	sqlite3_bind_int64(row, 1, link->id);
	if (sqlite3_step(row) == SQLITE_ROW) {
		link->seq = sqlite3_column_int64(row, 1);
		rc = chain_digest(insert->chain, &(struct rows){.stmt = row}, link->digest);
		sqlite3_reset(row);
		return rc;
	}
	rc = sqlite3_reset(row);
	return rc == SQLITE_OK ? SQLITE_CORRUPT : rc; /* it was written a moment ago */
}

int
insert_link(struct insert *insert, enum columns_table table, int64_t id)
{
	sqlite3_stmt *add = insert->statements[INSERT_LINK];
	struct chain_link link = {.table = table, .id = id};
	int rc = insert_read(insert, &link);

	if (rc != SQLITE_OK)
		return rc;
	sqlite3_bind_int64(add, 1, link.seq);
	sqlite3_bind_int64(add, 2, link.table);
	sqlite3_bind_int64(add, 3, link.id);
	sqlite3_bind_blob(add, 4, link.digest, sizeof(link.digest), SQLITE_TRANSIENT);
	sqlite3_step(add);
	rc = sqlite3_reset(add);
	if (rc == SQLITE_OK) {
		chain_advance(insert->chain, insert->now.head, &link);
		insert->now.seq = link.seq;
	}
	/* A link where none should be: somebody else wrote. A row without its link must not be kept either. */
	return (rc & 0xff) == SQLITE_CONSTRAINT ? SQLITE_CORRUPT : rc;
}

/* A record on its way into a statement's parameters. The first failure sticks. Texts and blobs are copied only where
 * that is said: what they point to outlives the step. */
struct insert_binder {
	struct insert *insert;
	sqlite3_stmt *stmt;
	const struct record *record;
	int at; /* parameter */
	int rc; /* SQLite result code */
	bool is_measured;
	struct name name;            /* what measure points into */
	struct name_measure measure; /* of the record's name, once it is measured; domain NULL: it is no name */
};

/* Writes the row with this id, and its link if that changed anything. rc: of the binding. */
static int
insert_write(struct insert *insert, sqlite3_stmt *stmt, int rc, enum columns_table table, int64_t id)
{
	bool changed = rc == SQLITE_OK && sqlite3_step(stmt) == SQLITE_DONE && sqlite3_changes(insert->db) > 0;
	int reset = sqlite3_reset(stmt);

	sqlite3_clear_bindings(stmt);
	if (changed)
		return insert_link(insert, table, id);
	return rc == SQLITE_OK ? reset : rc;
}

/* The integer at a member of so many bytes; signed if it has 64 bits. */
static int64_t
insert_integer(const void *member, size_t size)
{
	uint16_t u16;
	uint32_t u32;
	int64_t i64;

	switch (size) {
	case sizeof(uint8_t):
		return *(const uint8_t *)member;
	case sizeof(u16):
		memcpy(&u16, member, sizeof(u16));
		return u16;
	case sizeof(u32):
		memcpy(&u32, member, sizeof(u32));
		return u32;
	default:
		memcpy(&i64, member, sizeof(i64));
		return i64;
	}
}

/* May these bytes stand in a text column of names? [a-z0-9._-], at least one. */
static bool
insert_name_is_plain(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = bytes[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
			return false;
	}
	return len > 0;
}

/* Is the text printable ASCII only? */
static bool
insert_text_is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

/* A text, escaped and then copied if a character is not printable. */
static int
insert_bind_text(const struct insert_binder *b, const char *text)
{
	char escaped[INSERT_ESCAPED_MAX];

	if (insert_text_is_printable(text))
		return sqlite3_bind_text(b->stmt, b->at, text, -1, SQLITE_STATIC);
	escape_terminal(text, strlen(text), escaped, sizeof(escaped));
	return sqlite3_bind_text(b->stmt, b->at, escaped, -1, SQLITE_TRANSIENT);
}

/* JSON. What is not JSON is kept as one escaped string: readers may rely on the column's form. */
static int
insert_bind_json(const struct insert_binder *b, const char *text)
{
	json_t *value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	char escaped[INSERT_ESCAPED_MAX], *ascii;

	if (value != NULL && insert_text_is_printable(text)) {
		json_decref(value);
		return sqlite3_bind_text(b->stmt, b->at, text, -1, SQLITE_STATIC);
	}
	if (value == NULL) {
		escape_terminal(text, strlen(text), escaped, sizeof(escaped));
		value = json_string(escaped);
	}
	ascii = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(value);
	return ascii == NULL ? SQLITE_NOMEM : sqlite3_bind_text(b->stmt, b->at, ascii, -1, free);
}

/* The figures of the record's name: without a domain if it is none. */
static const struct name_measure *
insert_measure(struct insert_binder *b, const uint8_t *bytes, size_t len)
{
	if (!b->is_measured) {
		b->is_measured = true;
		b->measure.domain = NULL;
		if (insert_name_is_plain(bytes, len) && name_canonical(bytes, len, &b->name) == NAME_OK)
			name_measure(&b->name, &b->measure);
	}
	return &b->measure;
}

/* What is made of a name: length and bytes at member. */
static int
insert_bind_name(struct insert_binder *b, enum column_bind bind, const uint8_t *member)
{
	size_t len = (size_t)insert_integer(member, sizeof(uint16_t));
	const uint8_t *bytes = member + sizeof(uint16_t);
	const char *domain;

	if (bind == COLUMN_BIND_NAME && insert_name_is_plain(bytes, len))
		return sqlite3_bind_text(b->stmt, b->at, (const char *)bytes, (int)len, SQLITE_STATIC);
	if (bind == COLUMN_BIND_NAME_RAW && len > 0 && !insert_name_is_plain(bytes, len))
		return sqlite3_bind_blob(b->stmt, b->at, bytes, (int)len, SQLITE_STATIC);
	if (bind == COLUMN_BIND_NAME || bind == COLUMN_BIND_NAME_RAW)
		return SQLITE_OK;
	domain = insert_measure(b, bytes, len)->domain;
	if (domain == NULL)
		return SQLITE_OK;
	if (bind == COLUMN_BIND_ENTROPY)
		return sqlite3_bind_int64(b->stmt, b->at, b->measure.entropy);
	return sqlite3_bind_text(b->stmt, b->at, domain, -1, SQLITE_TRANSIENT);
}

/* The Community ID of a connection, or of our own half of it, whose other end is in the row that is about to change. */
static int
insert_bind_community_id(struct insert_binder *b, bool up)
{
	const struct record_flow *flow = &b->record->flow;
	const struct record_close *closed = &b->record->close;
	char text[COMMUNITY_ID_MAX] = "";

	if (!up) {
		community_id(&flow->src, flow->sport, &flow->dst, flow->dport, flow->proto, text);
	} else if (closed->up_src.family != 0) {
		sqlite3_stmt *target = b->insert->statements[INSERT_TARGET];
		struct addr dst;

		sqlite3_bind_int64(target, 1, (int64_t)closed->id);
		if (sqlite3_step(target) == SQLITE_ROW) {
			const char *dst_text = (const char *)sqlite3_column_text(target, 0);

			if (dst_text != NULL && addr_parse(dst_text, strlen(dst_text), &dst))
				community_id(&closed->up_src, closed->up_sport, &dst,
				    (uint16_t)sqlite3_column_int(target, 1), (uint8_t)sqlite3_column_int(target, 2),
				    text);
		}
		sqlite3_reset(target);
	}
	return text[0] == '\0' ? SQLITE_OK : sqlite3_bind_text(b->stmt, b->at, text, -1, SQLITE_TRANSIENT);
}

/* One column's value into parameter at; a parameter that is not bound is NULL. */
static int
insert_bind(struct insert_binder *b, const struct column_source *source)
{
	const void *member = (const uint8_t *)b->record + source->offset;
	enum column_bind bind = source->bind;
	char text[ADDR_TEXT_MAX];
	int64_t value;

	switch (bind) {
	case COLUMN_BIND_INTEGER:
	case COLUMN_BIND_REFUSAL:
		return sqlite3_bind_int64(b->stmt, b->at, insert_integer(member, source->size));
	case COLUMN_BIND_COUNT:
		value = insert_integer(member, source->size);
		return sqlite3_bind_int64(b->stmt, b->at, value < 0 ? INT64_MAX : value);
	case COLUMN_BIND_NONZERO:
		value = insert_integer(member, source->size);
		return value == 0 ? SQLITE_OK : sqlite3_bind_int64(b->stmt, b->at, value);
	case COLUMN_BIND_UNLESS_MAX:
		value = insert_integer(member, source->size);
		return value + 1 == INT64_C(1) << 8 * source->size ? SQLITE_OK
								   : sqlite3_bind_int64(b->stmt, b->at, value);
	case COLUMN_BIND_ADDR:
		if (((const struct addr *)member)->family == 0)
			return SQLITE_OK;
		return sqlite3_bind_text(b->stmt, b->at, addr_format(member, text), -1, SQLITE_TRANSIENT);
	case COLUMN_BIND_TEXT:
		return *(const char *)member == '\0' ? SQLITE_OK : insert_bind_text(b, member);
	case COLUMN_BIND_TEXT_ALWAYS:
		return insert_bind_text(b, member);
	case COLUMN_BIND_JSON:
		return *(const char *)member == '\0' ? SQLITE_OK : insert_bind_json(b, member);
	case COLUMN_BIND_NAME:
	case COLUMN_BIND_NAME_RAW:
	case COLUMN_BIND_DOMAIN:
	case COLUMN_BIND_ENTROPY:
		return insert_bind_name(b, bind, member);
	case COLUMN_BIND_SEQ:
		return sqlite3_bind_int64(b->stmt, b->at, b->insert->now.seq + 1);
	case COLUMN_BIND_CLOSED:
		if (b->record->close.end == END_OPEN)
			return SQLITE_OK;
		return sqlite3_bind_int64(b->stmt, b->at, b->record->close.ts_us);
	case COLUMN_BIND_UP_PORT:
		if (b->record->close.up_src.family == 0)
			return SQLITE_OK;
		return sqlite3_bind_int64(b->stmt, b->at, b->record->close.up_sport);
	case COLUMN_BIND_COMMUNITY_ID:
	case COLUMN_BIND_UP_COMMUNITY_ID:
		return insert_bind_community_id(b, bind == COLUMN_BIND_UP_COMMUNITY_ID);
	case COLUMN_BIND_NONE:
		break;
	}
	return SQLITE_OK;
}

/* A record's row by this statement, and its link. */
static int
insert_row(struct insert *insert, enum insert_statement which, const struct record *record)
{
	const struct columns *table = columns_of(insert_sql[which].table);
	const struct column_source *id = insert_source(which, &table->columns[0]);
	struct insert_binder b;

	b.insert = insert;
	b.stmt = insert->statements[which];
	b.record = record;
	b.rc = SQLITE_OK;
	b.is_measured = false;
	for (size_t i = 0; i < table->count && b.rc == SQLITE_OK; i++) {
		b.at = (int)i + 1;
		b.rc = insert_bind(&b, insert_source(which, &table->columns[i]));
	}
	return insert_write(insert, b.stmt, b.rc, insert_sql[which].table,
	    insert_integer((const uint8_t *)record + id->offset, id->size));
}

int
insert_close_crashed(struct insert *insert, bool (*wanted)(uint64_t id, void *context), void *context, int64_t ts_us,
    enum end_reason end)
{
	sqlite3_stmt *next = insert->statements[INSERT_NEXT_OPEN], *update = insert->statements[INSERT_CRASHED];
	int64_t id = INT64_MIN;
	int rc;

	for (;;) {
		sqlite3_bind_int64(next, 1, id);
		id = sqlite3_step(next) == SQLITE_ROW ? sqlite3_column_int64(next, 0) : 0;
		rc = sqlite3_reset(next);
		if (rc != SQLITE_OK || id == 0)
			return rc;
		if (!wanted((uint64_t)id, context))
			continue;
		sqlite3_bind_int64(update, 1, id);
		sqlite3_bind_int64(update, 2, insert->now.seq + 1);
		sqlite3_bind_int64(update, 3, ts_us);
		rc = sqlite3_bind_int64(update, 4, end);
		rc = insert_write(insert, update, rc, COLUMNS_CONNECTIONS, id);
		if (rc != SQLITE_OK)
			return rc;
	}
}

/* Was the id given out in the epoch that context points to? */
static bool
insert_id_is_of(uint64_t id, void *context)
{
	return record_id_is_of(id, *(const uint64_t *)context);
}

int
insert_record(struct insert *insert, const struct record *record)
{
	uint64_t epoch;

	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
		return insert_row(insert, INSERT_CONNECTION, record);
	case RECORD_REFUSED:
		return insert_row(insert, INSERT_REFUSED, record);
	case RECORD_FLOW_CLOSE:
		return insert_row(
		    insert, record->close.verdict == VERDICT_ALLOWED ? INSERT_CLOSE : INSERT_CLOSE_REFUSED, record);
	case RECORD_PROGRESS:
		return insert_row(insert, INSERT_PROGRESS, record);
	case RECORD_DNS:
		return insert_row(insert, INSERT_DNS, record);
	case RECORD_EVENT:
		return insert_row(insert, INSERT_EVENT, record);
	case RECORD_SANDBOX:
		return insert_row(insert, INSERT_SANDBOX, record);
	case RECORD_SANDBOX_END:
		return insert_row(insert, INSERT_SANDBOX_END, record);
	case RECORD_GAP:
		epoch = record->gap.sender_epoch;
		return insert_close_crashed(
		    insert, insert_id_is_of, &epoch, record->gap.ts_us, (enum end_reason)record->gap.end);
	case RECORD_ACCOUNT:
		return insert_row(insert, INSERT_ACCOUNT, record);
	case RECORD_KIND_MAX:
		break;
	}
	return SQLITE_MISUSE;
}
