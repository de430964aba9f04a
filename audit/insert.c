/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A sender sends a record again when the auditor was restarted or could not write, so every
 * statement has no effect the second time: inserts by primary key do nothing on conflict, a close only touches a row that
 * is open, a count only grows. Every statement that does change a row gives it the next seq, which is how a reader
 * that follows the log finds changes without looking at times.
 *
 * What came from a guest is bound, never spliced into SQL. Text columns hold printable ASCII only: names that are not
 * plain go to a BLOB column as they came, other texts (built by us; a surprise there means a damaged sender) are
 * escaped, and JSON columns are checked to be JSON. */
#include "audit/insert.h"

#include "base/escape.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Four bytes for each byte of the longest text, and the NUL. */
#define INSERT_ESCAPED_MAX (4 * RECORD_DETAIL_MAX + 1)

#define CONNECTION_COLUMNS                                                                                             \
	"INSERT INTO connections (id, seq, sandbox_id, ts, last_ts, count, proto, src, sport, dst, dport, name, "      \
	"name_raw, name_source, verdict, reason, rule, detail, generation, alpn, flags, end) "                         \
	"VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) "

static const char *const insert_sql[] = {
    [INSERT_CONNECTION] = CONNECTION_COLUMNS "DO NOTHING",
    [INSERT_REFUSED] =
	CONNECTION_COLUMNS "DO UPDATE SET seq = excluded.seq, count = excluded.count, last_ts = excluded.last_ts "
			   "WHERE excluded.count > count",
    /* A crash is inferred from a process's end; the sender's own word about the connection wins. */
    [INSERT_CLOSE] =
	"UPDATE connections SET seq = ?2, closed_ts = ?3, bytes_out = ?4, bytes_in = ?5, duration_us = ?6, "
	"end = ?7, reason = ?8, verdict = ?9 WHERE id = ?1 AND end IN (0, 11, 12)",
    [INSERT_DNS] = "INSERT INTO dns (id, seq, sandbox_id, ts, count, transport, src, sport, server, qname, qname_raw, "
		   "qtype, verdict, reason, rule, detail, generation, rcode, ede, answers, ttl, upstream_us) "
		   "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) "
		   "DO UPDATE SET seq = excluded.seq, count = excluded.count WHERE excluded.count > count",
    [INSERT_EVENT] = "INSERT INTO events (id, seq, sandbox_id, ts, kind, uid, detail) VALUES (?, ?, ?, ?, ?, ?, ?) "
		     "ON CONFLICT (id) DO NOTHING",
    [INSERT_SANDBOX] = "INSERT INTO sandboxes (id, name, kind, attached_ts, uid, detail) VALUES (?, ?, ?, ?, ?, ?) "
		       "ON CONFLICT (id) DO UPDATE SET name = excluded.name, kind = excluded.kind, uid = excluded.uid, "
		       "attached_ts = coalesce(attached_ts, excluded.attached_ts), detail = excluded.detail",
    [INSERT_SANDBOX_END] = "INSERT INTO sandboxes (id, name, kind, detached_ts, uid, detail) VALUES (?, ?, ?, ?, ?, ?) "
			   "ON CONFLICT (id) DO UPDATE SET detached_ts = excluded.detached_ts",
    [INSERT_NEXT_OPEN] = "SELECT id FROM connections INDEXED BY connections_open WHERE end = 0 AND id > ?1 "
			 "ORDER BY id LIMIT 1",
    [INSERT_CRASHED] = "UPDATE connections SET seq = ?2, closed_ts = max(ts, ?3), duration_us = max(ts, ?3) - ts, "
		       "end = ?4 WHERE id = ?1",
};
_Static_assert(sizeof(insert_sql) / sizeof(insert_sql[0]) == INSERT_STATEMENT_MAX, "SQL for each statement");
_Static_assert(END_GATEWAY_CRASH == 11 && END_DAEMON_CRASH == 12, "the numbers in INSERT_CLOSE");

int
insert_prepare(struct insert *insert, sqlite3 *db, int64_t seq)
{
	memset(insert, 0, sizeof(*insert));
	insert->db = db;
	insert->seq = seq;
	for (size_t i = 0; i < INSERT_STATEMENT_MAX; i++) {
		int rc =
		    sqlite3_prepare_v3(db, insert_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &insert->statements[i], NULL);

		if (rc != SQLITE_OK) {
			insert_finalize(insert);
			return rc;
		}
	}
	return SQLITE_OK;
}

void
insert_finalize(struct insert *insert)
{
	for (size_t i = 0; i < INSERT_STATEMENT_MAX; i++) {
		sqlite3_finalize(insert->statements[i]);
		insert->statements[i] = NULL;
	}
}

/* Parameters in order of their columns; the first failure sticks. */
struct binder {
	sqlite3_stmt *stmt;
	int at; /* parameters bound so far */
	int rc;
};

static struct binder
binder_start(struct insert *insert, enum insert_statement which)
{
	return (struct binder){.stmt = insert->statements[which]};
}

static void
binder_note(struct binder *binder, int rc)
{
	if (binder->rc == SQLITE_OK)
		binder->rc = rc;
}

static void
bind_null(struct binder *binder)
{
	binder_note(binder, sqlite3_bind_null(binder->stmt, ++binder->at));
}

static void
bind_integer(struct binder *binder, int64_t value)
{
	binder_note(binder, sqlite3_bind_int64(binder->stmt, ++binder->at, value));
}

/* Counts beyond what the column holds become its maximum: no count wraps into a small or negative one. */
static void
bind_count(struct binder *binder, uint64_t value)
{
	bind_integer(binder, value > INT64_MAX ? INT64_MAX : (int64_t)value);
}

/* Ids keep their 64 bits; the epoch leaves the sign bit unused in this century. */
static void
bind_id(struct binder *binder, uint64_t id)
{
	bind_integer(binder, (int64_t)id);
}

static void
bind_addr(struct binder *binder, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];

	if (addr->family == 0) {
		bind_null(binder);
		return;
	}
	addr_format(addr, text);
	binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_TRANSIENT));
}

bool
insert_name_is_plain(const uint8_t *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++) {
		uint8_t c = bytes[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= '0' && c <= '9') && c != '.' && c != '_' && c != '-')
			return false;
	}
	return len > 0;
}

/* Two columns: the plain name, or the bytes. The record outlives the step, so nothing is copied. */
static void
bind_name(struct binder *binder, const uint8_t *bytes, size_t len)
{
	if (len == 0) {
		bind_null(binder);
		bind_null(binder);
	} else if (insert_name_is_plain(bytes, len)) {
		binder_note(binder,
		    sqlite3_bind_text(binder->stmt, ++binder->at, (const char *)bytes, (int)len, SQLITE_STATIC));
		bind_null(binder);
	} else {
		bind_null(binder);
		binder_note(binder, sqlite3_bind_blob(binder->stmt, ++binder->at, bytes, (int)len, SQLITE_STATIC));
	}
}

static bool
text_is_printable(const char *text)
{
	for (; *text != '\0'; text++)
		if (*text < 0x20 || *text > 0x7e)
			return false;
	return true;
}

static void
bind_text(struct binder *binder, const char *text)
{
	char escaped[INSERT_ESCAPED_MAX];

	if (*text == '\0') {
		bind_null(binder);
	} else if (text_is_printable(text)) {
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_STATIC));
	} else {
		escape_terminal(text, strlen(text), escaped, sizeof(escaped));
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, escaped, -1, SQLITE_TRANSIENT));
	}
}

/* A JSON column. What is not JSON is kept as one escaped string: readers may rely on the column's form. */
static void
bind_json(struct binder *binder, const char *text)
{
	char escaped[INSERT_ESCAPED_MAX];
	json_t *value;
	char *ascii;

	if (*text == '\0') {
		bind_null(binder);
		return;
	}
	value = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	if (value != NULL && text_is_printable(text)) {
		json_decref(value);
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_STATIC));
		return;
	}
	if (value == NULL) {
		escape_terminal(text, strlen(text), escaped, sizeof(escaped));
		value = json_string(escaped);
	}
	ascii = value == NULL ? NULL : json_dumps(value, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_ENCODE_ANY);
	json_decref(value);
	if (ascii == NULL)
		binder_note(binder, SQLITE_NOMEM);
	else
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, ascii, -1, free));
}

static int
binder_run(struct binder *binder)
{
	if (binder->rc == SQLITE_OK)
		sqlite3_step(binder->stmt);
	binder_note(binder, sqlite3_reset(binder->stmt));
	sqlite3_clear_bindings(binder->stmt);
	return binder->rc;
}

static int
insert_flow(struct insert *insert, enum insert_statement which, const struct record_flow *flow)
{
	struct binder b = binder_start(insert, which);

	bind_id(&b, flow->id);
	bind_integer(&b, ++insert->seq);
	bind_integer(&b, flow->sandbox);
	bind_integer(&b, flow->ts_us);
	if (flow->last_us != 0)
		bind_integer(&b, flow->last_us);
	else
		bind_null(&b);
	bind_count(&b, flow->count);
	bind_integer(&b, flow->proto);
	bind_addr(&b, &flow->src);
	bind_integer(&b, flow->sport);
	bind_addr(&b, &flow->dst);
	bind_integer(&b, flow->dport);
	bind_name(&b, flow->name, flow->name_len);
	bind_integer(&b, flow->name_source);
	bind_integer(&b, flow->verdict);
	bind_integer(&b, flow->reason);
	bind_text(&b, flow->rule);
	bind_text(&b, flow->detail);
	bind_integer(&b, flow->generation);
	bind_text(&b, flow->alpn);
	bind_integer(&b, flow->flags);
	bind_integer(&b, flow->end);
	return binder_run(&b);
}

static int
insert_close(struct insert *insert, const struct record_close *closed)
{
	struct binder b = binder_start(insert, INSERT_CLOSE);

	bind_id(&b, closed->id);
	bind_integer(&b, ++insert->seq);
	bind_integer(&b, closed->ts_us);
	bind_count(&b, closed->bytes_out);
	bind_count(&b, closed->bytes_in);
	bind_integer(&b, closed->duration_us);
	bind_integer(&b, closed->end);
	bind_integer(&b, closed->reason);
	bind_integer(&b, closed->verdict);
	return binder_run(&b);
}

static int
insert_dns(struct insert *insert, const struct record_dns *dns)
{
	struct binder b = binder_start(insert, INSERT_DNS);

	bind_id(&b, dns->id);
	bind_integer(&b, ++insert->seq);
	bind_integer(&b, dns->sandbox);
	bind_integer(&b, dns->ts_us);
	bind_count(&b, dns->count);
	bind_integer(&b, dns->transport);
	bind_addr(&b, &dns->src);
	bind_integer(&b, dns->sport);
	bind_addr(&b, &dns->server);
	bind_name(&b, dns->qname, dns->qname_len);
	bind_integer(&b, dns->qtype);
	bind_integer(&b, dns->verdict);
	bind_integer(&b, dns->reason);
	bind_text(&b, dns->rule);
	bind_text(&b, dns->detail);
	bind_integer(&b, dns->generation);
	bind_integer(&b, dns->rcode);
	if (dns->ede != UINT16_MAX)
		bind_integer(&b, dns->ede);
	else
		bind_null(&b);
	bind_json(&b, dns->answers);
	bind_integer(&b, dns->ttl_s);
	bind_integer(&b, dns->upstream_us);
	return binder_run(&b);
}

static int
insert_event(struct insert *insert, const struct record_event *event)
{
	struct binder b = binder_start(insert, INSERT_EVENT);

	bind_id(&b, event->id);
	bind_integer(&b, ++insert->seq);
	bind_integer(&b, event->sandbox);
	bind_integer(&b, event->ts_us);
	bind_integer(&b, event->kind);
	if (event->uid != UINT32_MAX)
		bind_integer(&b, event->uid);
	else
		bind_null(&b);
	bind_json(&b, event->detail);
	return binder_run(&b);
}

static int
insert_sandbox(struct insert *insert, enum insert_statement which, const struct record_sandbox *sandbox)
{
	struct binder b = binder_start(insert, which);

	bind_integer(&b, sandbox->id);
	bind_text(&b, sandbox->name);
	if (sandbox->kind[0] != '\0')
		bind_text(&b, sandbox->kind);
	else
		binder_note(&b, sqlite3_bind_text(b.stmt, ++b.at, "", 0, SQLITE_STATIC));
	bind_integer(&b, sandbox->ts_us);
	if (sandbox->uid != UINT32_MAX)
		bind_integer(&b, sandbox->uid);
	else
		bind_null(&b);
	bind_json(&b, sandbox->detail);
	return binder_run(&b);
}

/* The next open connection after id, 0 when there is none. */
static int
insert_next_open(struct insert *insert, int64_t after, int64_t *ret_id)
{
	sqlite3_stmt *stmt = insert->statements[INSERT_NEXT_OPEN];
	int rc;

	sqlite3_bind_int64(stmt, 1, after);
	rc = sqlite3_step(stmt);
	*ret_id = rc == SQLITE_ROW ? sqlite3_column_int64(stmt, 0) : 0;
	rc = sqlite3_reset(stmt);
	return rc;
}

int
insert_close_crashed(struct insert *insert, bool (*wanted)(uint64_t id, void *context), void *context, int64_t ts_us,
    enum end_reason end)
{
	int64_t id = INT64_MIN;

	for (;;) {
		struct binder b = binder_start(insert, INSERT_CRASHED);
		int rc = insert_next_open(insert, id, &id);

		if (rc != SQLITE_OK || id == 0)
			return rc;
		if (!wanted((uint64_t)id, context))
			continue;
		bind_integer(&b, id);
		bind_integer(&b, ++insert->seq);
		bind_integer(&b, ts_us);
		bind_integer(&b, end);
		rc = binder_run(&b);
		if (rc != SQLITE_OK)
			return rc;
	}
}

static bool
insert_id_is_of(uint64_t id, void *context)
{
	return record_id_is_of(id, *(const uint64_t *)context);
}

static int
insert_gap(struct insert *insert, const struct record_gap *gap)
{
	uint64_t epoch = gap->sender_epoch;

	return insert_close_crashed(insert, insert_id_is_of, &epoch, gap->ts_us, (enum end_reason)gap->end);
}

int
insert_record(struct insert *insert, const struct record *record)
{
	switch ((enum record_kind)record->kind) {
	case RECORD_FLOW_OPEN:
		return insert_flow(insert, INSERT_CONNECTION, &record->flow);
	case RECORD_REFUSED:
		return insert_flow(insert, INSERT_REFUSED, &record->flow);
	case RECORD_FLOW_CLOSE:
		return insert_close(insert, &record->close);
	case RECORD_DNS:
		return insert_dns(insert, &record->dns);
	case RECORD_EVENT:
		return insert_event(insert, &record->event);
	case RECORD_SANDBOX:
		return insert_sandbox(insert, INSERT_SANDBOX, &record->sandbox);
	case RECORD_SANDBOX_END:
		return insert_sandbox(insert, INSERT_SANDBOX_END, &record->sandbox);
	case RECORD_GAP:
		return insert_gap(insert, &record->gap);
	case RECORD_KIND_MAX:
		break;
	}
	return SQLITE_MISUSE;
}
