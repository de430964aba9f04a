/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A sender sends a record again when the auditor was restarted or could not write, so every
 * statement has no effect the second time: inserts by primary key do nothing on conflict, a close only touches a row
 * that is open, a count only grows. Every statement that does change a row gives it the next seq, which is how a reader
 * that follows the log finds changes without looking at times.
 *
 * What came from a guest is bound (insert_bind.c), never spliced into SQL. */
#include "audit/store/insert.h"

#include "audit/store/community_id.h"
#include "audit/store/insert_bind.h"
#include "audit/store/name_measure.h"
#include "audit/store/schema.h"

#include <stdio.h>
#include <string.h>

#define CONNECTION_SQL                                                                                                 \
	"INSERT INTO connections (id, seq, sandbox_id, ts, last_ts, count, proto, src, sport, dst, dport, name, "      \
	"name_raw, name_source, verdict, reason, rule, detail, generation, alpn, flags, end, tls_version, ja4, "       \
	"http_method, country, asn, as_org, dns_us, hello_us, community_id, domain) VALUES "                           \
	"(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) "            \
	"ON CONFLICT (id) "
#define CLOSE_SQL                                                                                                      \
	"UPDATE connections SET seq = ?2, closed_ts = CASE WHEN ?13 = 0 THEN NULL ELSE ?3 END, bytes_out = ?4, "       \
	"bytes_in = ?5, packets_out = ?6, packets_in = ?7, duration_us = ?8, connect_us = ?9, first_byte_us = ?10, "   \
	"up_src = ?11, up_sport = ?12, end = ?13, reason = ?14, up_community_id = ?15"
#define ACCOUNT_COUNTS                                                                                                 \
	"connections, connections_allowed, connections_denied, connections_limited, connections_failed, queries, "     \
	"queries_allowed, queries_denied, queries_limited, queries_failed, packets, packets_allowed, packets_denied, " \
	"packets_limited, packets_failed"
#define ACCOUNT_COUNTS_EXCLUDED                                                                                        \
	"excluded.connections, excluded.connections_allowed, excluded.connections_denied, "                            \
	"excluded.connections_limited, excluded.connections_failed, excluded.queries, excluded.queries_allowed, "      \
	"excluded.queries_denied, excluded.queries_limited, excluded.queries_failed, excluded.packets, "               \
	"excluded.packets_allowed, excluded.packets_denied, excluded.packets_limited, excluded.packets_failed"

/* None has a RETURNING clause, though the changed row is what its link is made of: with it SQLite takes a statement for
 * one that may stop halfway, and keeps a copy of every page that it is about to change, 4 KiB for each index of the
 * table. */
static const char *const insert_sql[] = {
    [INSERT_CONNECTION] = CONNECTION_SQL "DO NOTHING",
    [INSERT_REFUSED] =
	CONNECTION_SQL "DO UPDATE SET seq = excluded.seq, count = excluded.count, last_ts = excluded.last_ts "
		       "WHERE excluded.count > count",
    /* A crash is inferred from a process's end; the sender's own word about the connection wins. What is open was
     * allowed (record_valid), and only what ends otherwise has its verdict set: a column that is set, if to what it
     * was, has its entry in each of its indexes written anew. */
    [INSERT_CLOSE] = CLOSE_SQL " WHERE id = ?1 AND end IN (0, 11, 12)",
    [INSERT_CLOSE_REFUSED] = CLOSE_SQL ", verdict = ?16 WHERE id = ?1 AND end IN (0, 11, 12)",
    /* What was sent again must not take a count back. */
    [INSERT_PROGRESS] = CLOSE_SQL " WHERE id = ?1 AND end = 0 AND coalesce(duration_us, -1) < ?8",
    [INSERT_DNS] = "INSERT INTO dns (id, seq, sandbox_id, ts, count, transport, src, sport, server, qname, qname_raw, "
		   "qtype, verdict, reason, rule, detail, generation, rcode, ede, answers, ttl, upstream_us, leases, "
		   "domain, entropy) VALUES "
		   "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) "
		   "DO UPDATE SET seq = excluded.seq, count = excluded.count WHERE excluded.count > count",
    /* What was pruned is told by one event, which grows with each segment (kind 16; only the auditor says it). */
    [INSERT_EVENT] = "INSERT INTO events (id, seq, sandbox_id, ts, kind, uid, detail) VALUES (?, ?, ?, ?, ?, ?, ?) "
		     "ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, ts = excluded.ts, detail = excluded.detail "
		     "WHERE kind = 16 AND excluded.kind = 16 AND detail IS NOT excluded.detail",
    [INSERT_SANDBOX] =
	"INSERT INTO sandboxes (id, seq, name, kind, attached_ts, uid, detail) VALUES (?, ?, ?, ?, ?, ?, ?) "
	"ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, name = excluded.name, kind = excluded.kind, "
	"uid = excluded.uid, attached_ts = coalesce(attached_ts, excluded.attached_ts), detail = excluded.detail "
	"WHERE attached_ts IS NULL OR name <> excluded.name OR kind <> excluded.kind OR uid IS NOT excluded.uid OR "
	"detail IS NOT excluded.detail",
    [INSERT_SANDBOX_END] =
	"INSERT INTO sandboxes (id, seq, name, kind, detached_ts, uid, detail) VALUES (?, ?, ?, ?, ?, ?, ?) "
	"ON CONFLICT (id) DO UPDATE SET seq = excluded.seq, detached_ts = excluded.detached_ts "
	"WHERE detached_ts IS NOT excluded.detached_ts",
    [INSERT_NEXT_OPEN] = "SELECT id FROM connections INDEXED BY connections_open WHERE end = 0 AND id > ?1 "
			 "ORDER BY id LIMIT 1",
    [INSERT_CRASHED] = "UPDATE connections SET seq = ?2, closed_ts = max(ts, ?3), duration_us = max(ts, ?3) - ts, "
		       "end = ?4 WHERE id = ?1",
    [INSERT_ACCOUNT] = "INSERT INTO accounts (id, seq, sandbox_id, ts, final, " ACCOUNT_COUNTS ") VALUES "
		       "(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) DO UPDATE SET "
		       "seq = excluded.seq, ts = excluded.ts, final = excluded.final, (" ACCOUNT_COUNTS ") = "
		       "(" ACCOUNT_COUNTS_EXCLUDED ") WHERE excluded.ts > ts AND final = 0",
    [INSERT_TARGET] = "SELECT dst, dport, proto FROM connections WHERE id = ?1",
    [INSERT_LINK] = "INSERT INTO chain (seq, tbl, id, digest) VALUES (?1, ?2, ?3, ?4)",
};
_Static_assert(sizeof(insert_sql) / sizeof(insert_sql[0]) == INSERT_STATEMENT_MAX, "SQL for each statement");
_Static_assert(EVENT_PRUNED == 16, "the number in INSERT_EVENT");
_Static_assert(END_GATEWAY_CRASH == 11 && END_DAEMON_CRASH == 12 && END_OPEN == 0, "the numbers in the statements");

/* One for each table that has links: a row as it is. */
static int
insert_prepare_rows(struct insert *insert)
{
	char sql[1536];
	int rc = SQLITE_OK;

	for (unsigned int table = 0; table < CHAIN_TABLE_MAX && rc == SQLITE_OK; table++) {
		if (chain_table_name(table) == NULL)
			continue;
		snprintf(sql, sizeof(sql), "SELECT %s FROM %s WHERE id = ?1", chain_table_columns(table),
		    chain_table_name(table));
		rc = sqlite3_prepare_v3(insert->db, sql, -1, SQLITE_PREPARE_PERSISTENT, &insert->rows[table], NULL);
	}
	return rc;
}

int
insert_prepare(struct insert *insert, sqlite3 *db, const struct insert_state *state)
{
	int rc;

	memset(insert, 0, sizeof(*insert));
	insert->db = db;
	insert->now = insert->durable = *state;
	insert->chain = chain_new();
	rc = insert->chain == NULL ? SQLITE_NOMEM : insert_prepare_rows(insert);
	for (size_t i = 0; i < INSERT_STATEMENT_MAX && rc == SQLITE_OK; i++)
		rc = sqlite3_prepare_v3(db, insert_sql[i], -1, SQLITE_PREPARE_PERSISTENT, &insert->statements[i], NULL);
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
	for (size_t i = 0; i < CHAIN_TABLE_MAX; i++) {
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
insert_link(struct insert *insert, enum chain_table table, int64_t id)
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

static struct binder
binder_start(struct insert *insert, enum insert_statement which)
{
	return (struct binder){.stmt = insert->statements[which]};
}

/* Write the row with this id, and its link if that changed anything. */
static int
binder_run(struct insert *insert, struct binder *binder, enum chain_table table, int64_t id)
{
	bool changed =
	    binder->rc == SQLITE_OK && sqlite3_step(binder->stmt) == SQLITE_DONE && sqlite3_changes(insert->db) > 0;

	binder_note(binder, sqlite3_reset(binder->stmt));
	sqlite3_clear_bindings(binder->stmt);
	return changed ? insert_link(insert, table, id) : binder->rc;
}

static void
bind_community_id(struct binder *binder, const struct addr *src, uint16_t sport, const struct addr *dst, uint16_t dport,
    uint8_t proto)
{
	char text[COMMUNITY_ID_MAX];

	if (community_id(src, sport, dst, dport, proto, text))
		binder_note(binder, sqlite3_bind_text(binder->stmt, ++binder->at, text, -1, SQLITE_TRANSIENT));
	else
		bind_null(binder);
}

/* Figures of what the guest said, if that makes a name, which *ret_name then is; without a domain otherwise. */
static void
insert_measure(const uint8_t *bytes, size_t len, struct name *ret_name, struct name_measure *ret_measure)
{
	*ret_measure = (struct name_measure){.domain = NULL};
	if (insert_name_is_plain(bytes, len) && name_canonical(bytes, len, ret_name) == NAME_OK)
		name_measure(ret_name, ret_measure);
}

/* The registered part of a name. */
static void
bind_domain(struct binder *binder, const struct name_measure *measure)
{
	if (measure->domain == NULL)
		bind_null(binder);
	else
		binder_note(
		    binder, sqlite3_bind_text(binder->stmt, ++binder->at, measure->domain, -1, SQLITE_TRANSIENT));
}

static int
insert_flow(struct insert *insert, enum insert_statement which, const struct record_flow *flow)
{
	struct binder b = binder_start(insert, which);
	struct name_measure measure;
	struct name name;

	bind_id(&b, flow->id);
	bind_integer(&b, insert->now.seq + 1);
	bind_integer(&b, flow->sandbox);
	bind_integer(&b, flow->ts_us);
	bind_optional(&b, flow->last_us, flow->last_us != 0);
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
	bind_optional(&b, flow->tls_version, flow->tls_version != 0);
	bind_text(&b, flow->ja4);
	bind_text(&b, flow->http_method);
	bind_text(&b, flow->country);
	bind_optional(&b, flow->asn, flow->asn != 0);
	bind_text(&b, flow->as_org);
	bind_optional(&b, flow->dns_us, flow->dns_us != 0);
	bind_optional(&b, flow->hello_us, flow->hello_us != 0);
	bind_community_id(&b, &flow->src, flow->sport, &flow->dst, flow->dport, flow->proto);
	insert_measure(flow->name, flow->name_len, &name, &measure);
	bind_domain(&b, &measure);
	return binder_run(insert, &b, CHAIN_CONNECTIONS, (int64_t)flow->id);
}

/* Where the connection with this id goes: for the Community ID of its other half. False: not known (or unreadable). */
static bool
insert_find_target(struct insert *insert, uint64_t id, struct addr *ret_dst, uint16_t *ret_dport, uint8_t *ret_proto)
{
	sqlite3_stmt *stmt = insert->statements[INSERT_TARGET];
	const char *text;
	bool found = false;

	sqlite3_bind_int64(stmt, 1, (int64_t)id);
	if (sqlite3_step(stmt) == SQLITE_ROW) {
		text = (const char *)sqlite3_column_text(stmt, 0);
		*ret_dport = (uint16_t)sqlite3_column_int(stmt, 1);
		*ret_proto = (uint8_t)sqlite3_column_int(stmt, 2);
		found = text != NULL && addr_parse(text, strlen(text), ret_dst);
	}
	sqlite3_reset(stmt);
	return found;
}

static void
bind_up_community_id(struct insert *insert, struct binder *binder, const struct record_close *closed)
{
	struct addr dst;
	uint16_t dport;
	uint8_t proto;

	if (closed->up_src.family != 0 && insert_find_target(insert, closed->id, &dst, &dport, &proto))
		bind_community_id(binder, &closed->up_src, closed->up_sport, &dst, dport, proto);
	else
		bind_null(binder);
}

static int
insert_close(struct insert *insert, enum insert_statement which, const struct record_close *closed)
{
	struct binder b = binder_start(insert, which);

	bind_id(&b, closed->id);
	bind_integer(&b, insert->now.seq + 1);
	bind_integer(&b, closed->ts_us);
	bind_count(&b, closed->bytes_out);
	bind_count(&b, closed->bytes_in);
	bind_count(&b, closed->packets_out);
	bind_count(&b, closed->packets_in);
	bind_integer(&b, closed->duration_us);
	bind_optional(&b, closed->connect_us, closed->connect_us != 0);
	bind_optional(&b, closed->first_byte_us, closed->first_byte_us != 0);
	bind_addr(&b, &closed->up_src);
	bind_optional(&b, closed->up_sport, closed->up_src.family != 0);
	bind_integer(&b, closed->end);
	bind_integer(&b, closed->reason);
	bind_up_community_id(insert, &b, closed);
	if (which == INSERT_CLOSE_REFUSED)
		bind_integer(&b, closed->verdict);
	return binder_run(insert, &b, CHAIN_CONNECTIONS, (int64_t)closed->id);
}

static int
insert_dns(struct insert *insert, const struct record_dns *dns)
{
	struct binder b = binder_start(insert, INSERT_DNS);
	struct name_measure measure;
	struct name name;

	bind_id(&b, dns->id);
	bind_integer(&b, insert->now.seq + 1);
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
	bind_optional(&b, dns->ede, dns->ede != UINT16_MAX);
	bind_json(&b, dns->answers);
	bind_integer(&b, dns->ttl_s);
	bind_integer(&b, dns->upstream_us);
	bind_integer(&b, dns->leases);
	insert_measure(dns->qname, dns->qname_len, &name, &measure);
	bind_domain(&b, &measure);
	bind_optional(&b, measure.entropy, measure.domain != NULL);
	return binder_run(insert, &b, CHAIN_DNS, (int64_t)dns->id);
}

static int
insert_event(struct insert *insert, const struct record_event *event)
{
	struct binder b = binder_start(insert, INSERT_EVENT);

	bind_id(&b, event->id);
	bind_integer(&b, insert->now.seq + 1);
	bind_integer(&b, event->sandbox);
	bind_integer(&b, event->ts_us);
	bind_integer(&b, event->kind);
	bind_optional(&b, event->uid, event->uid != UINT32_MAX);
	bind_json(&b, event->detail);
	return binder_run(insert, &b, CHAIN_EVENTS, (int64_t)event->id);
}

static int
insert_sandbox(struct insert *insert, enum insert_statement which, const struct record_sandbox *sandbox)
{
	struct binder b = binder_start(insert, which);

	bind_integer(&b, sandbox->id);
	bind_integer(&b, insert->now.seq + 1);
	bind_text(&b, sandbox->name);
	if (sandbox->kind[0] != '\0')
		bind_text(&b, sandbox->kind);
	else
		binder_note(&b, sqlite3_bind_text(b.stmt, ++b.at, "", 0, SQLITE_STATIC));
	bind_integer(&b, sandbox->ts_us);
	bind_optional(&b, sandbox->uid, sandbox->uid != UINT32_MAX);
	bind_json(&b, sandbox->detail);
	return binder_run(insert, &b, CHAIN_SANDBOXES, sandbox->id);
}

static int
insert_account(struct insert *insert, const struct record_account *account)
{
	struct binder b = binder_start(insert, INSERT_ACCOUNT);

	bind_id(&b, account->id);
	bind_integer(&b, insert->now.seq + 1);
	bind_integer(&b, account->sandbox);
	bind_integer(&b, account->ts_us);
	bind_integer(&b, account->final);
	for (size_t attempt = 0; attempt < RECORD_ATTEMPT_MAX; attempt++) {
		bind_count(&b, account->attempts[attempt]);
		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			bind_count(&b, account->recorded[attempt][verdict]);
	}
	return binder_run(insert, &b, CHAIN_ACCOUNTS, (int64_t)account->id);
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
		bind_integer(&b, insert->now.seq + 1);
		bind_integer(&b, ts_us);
		bind_integer(&b, end);
		rc = binder_run(insert, &b, CHAIN_CONNECTIONS, id);
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
		return insert_close(insert,
		    record->close.verdict == VERDICT_ALLOWED ? INSERT_CLOSE : INSERT_CLOSE_REFUSED, &record->close);
	case RECORD_PROGRESS:
		return insert_close(insert, INSERT_PROGRESS, &record->close);
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
	case RECORD_ACCOUNT:
		return insert_account(insert, &record->account);
	case RECORD_KIND_MAX:
		break;
	}
	return SQLITE_MISUSE;
}
