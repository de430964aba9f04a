/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/schema.h"

#include "audit/columns.h"
#include "audit/record.h"
#include "policy/verdict.h"

#include <errno.h>
#include <stdio.h>

/* Comments inside the CREATE statements stay in the file: `sqlite3 audit.db .schema` explains itself. */
static const char schema_other_tables[] =
    "CREATE TABLE meta (\n"
    "	key TEXT PRIMARY KEY,   -- 'created_us', 'version' (of the postern that made the file), 'log_id' (of this\n"
    "	                        -- file, in its seals), 'pruned_through' (seq: rows up to it were dropped), 'probe'\n"
    "	value ANY\n"
    ") STRICT, WITHOUT ROWID;\n"

    "CREATE TABLE verdicts (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE reasons (id INTEGER PRIMARY KEY, word TEXT NOT NULL, sentence TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE ends (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE name_sources (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;\n"
    "CREATE TABLE event_kinds (id INTEGER PRIMARY KEY, word TEXT NOT NULL) STRICT;\n"

    "CREATE TABLE chain (         -- one link for each insert and change of a row, see postern-audit(5)\n"
    "	seq INTEGER PRIMARY KEY, -- the seq that the row got by it\n"
    "	tbl INTEGER NOT NULL,   -- 1 connections, 2 dns, 3 events, 4 sandboxes, 5 accounts\n"
    "	id INTEGER NOT NULL,    -- of the row\n"
    "	digest BLOB NOT NULL    -- SHA-256 of the row as it then was\n"
    ") STRICT;\n"

    "CREATE TABLE seals (         -- signed heads of the chain\n"
    "	n INTEGER PRIMARY KEY,  -- from 1, without holes\n"
    "	first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, -- the links since the seal before it\n"
    "	ts INTEGER NOT NULL,\n"
    "	head BLOB NOT NULL,     -- of the chain after last_seq\n"
    "	key_id INTEGER NOT NULL,\n"
    "	signature BLOB NOT NULL -- Ed25519 over the seal's text\n"
    ") STRICT;\n"

    "CREATE TABLE seal_keys (     -- public halves; trust the copy you took away, not this one\n"
    "	id INTEGER PRIMARY KEY,\n"
    "	public BLOB NOT NULL,   -- 32 bytes\n"
    "	ts INTEGER NOT NULL     -- first used\n"
    ") STRICT;\n";

/* Each is the way to some question's rows in the order of time, see audit/query/query_lead.c. Those by name have a
 * row's verdict before its time: what was refused of a name stands together, however often it was allowed. A row that
 * was allowed is in none of those by reason. */
static const char schema_indexes[] =
    "CREATE INDEX sandboxes_name ON sandboxes (name);\n"
    "CREATE INDEX sandboxes_seq ON sandboxes (seq);\n"
    "CREATE INDEX accounts_sandbox ON accounts (sandbox_id);\n"
    "CREATE INDEX accounts_seq ON accounts (seq);\n"
    "CREATE INDEX connections_sandbox ON connections (sandbox_id, ts);\n"
    "CREATE INDEX connections_ts ON connections (ts);\n"
    "CREATE INDEX connections_seq ON connections (seq);\n"
    "CREATE INDEX connections_open ON connections (id) WHERE end = 0;\n"
    "CREATE INDEX dns_sandbox ON dns (sandbox_id, ts);\n"
    "CREATE INDEX dns_ts ON dns (ts);\n"
    "CREATE INDEX dns_seq ON dns (seq);\n"
    "CREATE INDEX events_sandbox ON events (sandbox_id, ts);\n"
    "CREATE INDEX events_ts ON events (ts);\n"
    "CREATE INDEX events_seq ON events (seq);\n"
    "CREATE INDEX connections_name ON connections (name, verdict, ts) WHERE name IS NOT NULL;\n"
    "CREATE INDEX connections_domain ON connections (domain, ts) WHERE domain IS NOT NULL;\n"
    "CREATE INDEX connections_dst ON connections (dst, ts);\n"
    "CREATE INDEX connections_reason ON connections (reason, ts) WHERE reason <> 0;\n"
    "CREATE INDEX dns_name ON dns (qname, verdict, ts) WHERE qname IS NOT NULL;\n"
    "CREATE INDEX dns_domain ON dns (domain, ts) WHERE domain IS NOT NULL;\n"
    "CREATE INDEX dns_reason ON dns (reason, ts) WHERE reason <> 0;\n";

/* Microseconds -> RFC 3339, UTC. */
#define TIME_TEXT(column)                                                                                              \
	"CASE WHEN " column " IS NOT NULL THEN strftime('%Y-%m-%dT%H:%M:%S', " column " / 1000000, 'unixepoch') "      \
	"|| printf('.%06dZ', " column " % 1000000) END"
#define PROTO_TEXT(column)                                                                                             \
	"CASE " column " WHEN 6 THEN 'tcp' WHEN 17 THEN 'udp' WHEN 1 THEN 'icmp' WHEN 58 THEN 'icmp6' ELSE "           \
	"CAST(" column " AS TEXT) END"
#define ID_TEXT "printf('%016x', t.id)"

/* Views in pieces; behind a piece come the columns of a table that its view has under their own names. */
/* clang-format off */
static const struct {
	const char *sql;
	unsigned int columns; /* enum columns_table; 0: none */
} schema_views[] = {
    {"CREATE VIEW v_connections AS SELECT " ID_TEXT " AS id, " TIME_TEXT("t.ts") " AS time, s.name AS sandbox,\n"
    "	v.word AS verdict, r.word AS reason, " PROTO_TEXT("t.proto") " AS proto, t.src, t.sport, t.dst, t.dport,\n"
    "	coalesce(t.name, CASE WHEN t.name_raw IS NOT NULL THEN 'hex:' || hex(t.name_raw) END) AS name,\n"
    "	n.word AS name_source, t.rule, t.detail, t.generation, t.alpn,\n"
    "	CASE t.tls_version WHEN 768 THEN 'SSLv3' WHEN 769 THEN 'TLSv1' WHEN 770 THEN 'TLSv1.1'\n"
    "	WHEN 771 THEN 'TLSv1.2' WHEN 772 THEN 'TLSv1.3'\n"
    "	ELSE nullif(printf('0x%04x', t.tls_version), '0x0000') END AS tls_version,\n"
    "	t.ja4, t.http_method, t.flags & 1 AS ech, (t.flags >> 1) & 1 AS tunnel, (t.flags >> 2) & 1 AS learn,\n"
    "	t.country, t.asn, t.as_org, t.count, " TIME_TEXT("t.last_ts") " AS last_time, t.bytes_out, t.bytes_in,\n"
    "	t.packets_out, t.packets_in, t.dns_us, t.hello_us, t.connect_us, t.first_byte_us, t.duration_us,\n"
    "	" TIME_TEXT("t.closed_ts") " AS closed_time, e.word AS end", COLUMNS_CONNECTIONS},
    {",\n	t.ts\n"
    "	FROM connections t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN verdicts v ON v.id = t.verdict\n"
    "	LEFT JOIN reasons r ON r.id = t.reason LEFT JOIN name_sources n ON n.id = t.name_source\n"
    "	LEFT JOIN ends e ON e.id = t.end;\n"

    "CREATE VIEW v_dns AS SELECT " ID_TEXT " AS id, " TIME_TEXT("t.ts") " AS time, s.name AS sandbox,\n"
    "	v.word AS verdict, r.word AS reason,\n"
    "	coalesce(t.qname, CASE WHEN t.qname_raw IS NOT NULL THEN 'hex:' || hex(t.qname_raw) END) AS qname,\n"
    "	CASE t.qtype WHEN 1 THEN 'A' WHEN 28 THEN 'AAAA' WHEN 5 THEN 'CNAME' WHEN 65 THEN 'HTTPS'\n"
    "	WHEN 64 THEN 'SVCB' WHEN 16 THEN 'TXT' WHEN 15 THEN 'MX' WHEN 33 THEN 'SRV' WHEN 12 THEN 'PTR'\n"
    "	WHEN 2 THEN 'NS' WHEN 6 THEN 'SOA' ELSE 'TYPE' || t.qtype END AS qtype,\n"
    "	CASE t.rcode WHEN 0 THEN 'NOERROR' WHEN 1 THEN 'FORMERR' WHEN 2 THEN 'SERVFAIL' WHEN 3 THEN 'NXDOMAIN'\n"
    "	WHEN 4 THEN 'NOTIMP' WHEN 5 THEN 'REFUSED' ELSE 'RCODE' || t.rcode END AS rcode,\n"
    "	t.ede, t.answers, t.ttl, t.upstream_us, t.leases, t.domain, "
    "t.entropy / 100.0 AS entropy, t.rule, t.detail, t.generation, t.count,\n"
    "	" PROTO_TEXT("t.transport") " AS transport, t.src, t.sport, t.server", COLUMNS_DNS},
    {", t.ts\n"
    "	FROM dns t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN verdicts v ON v.id = t.verdict\n"
    "	LEFT JOIN reasons r ON r.id = t.reason;\n"

    "CREATE VIEW v_events AS SELECT " ID_TEXT " AS id, " TIME_TEXT("t.ts") " AS time, s.name AS sandbox,\n"
    "	k.word AS event, t.uid, t.detail", COLUMNS_EVENTS},
    {", t.ts\n"
    "	FROM events t LEFT JOIN sandboxes s ON s.id = t.sandbox_id LEFT JOIN event_kinds k ON k.id = t.kind;\n"

    "CREATE VIEW v_sandboxes AS SELECT t.id, t.name, t.kind, " TIME_TEXT("t.attached_ts") " AS attached_time,\n"
    "	" TIME_TEXT("t.detached_ts") " AS detached_time, t.uid, t.detail ->> '$.labels' AS labels,\n"
    "	t.detail ->> '$.parent.name' AS parent, t.detail ->> '$.parent.id' AS parent_id, t.detail\n"
    "	FROM sandboxes t;\n"

    "CREATE VIEW v_dns_domains AS SELECT s.name AS sandbox, t.domain, sum(t.count) AS queries,\n"
    "	count(DISTINCT t.qname) AS names, sum(t.verdict <> 0) AS refused, max(length(t.qname)) AS longest_name,\n"
    "	round(avg(t.entropy) / 100.0, 2) AS entropy, " TIME_TEXT("min(t.ts)") " AS first_time,\n"
    "	" TIME_TEXT("max(t.ts)") " AS last_time\n"
    "	FROM dns t LEFT JOIN sandboxes s ON s.id = t.sandbox_id WHERE t.domain IS NOT NULL\n"
    "	GROUP BY t.sandbox_id, t.domain;\n"

    "CREATE VIEW v_accounts AS SELECT " ID_TEXT " AS id, " TIME_TEXT("t.ts") " AS time, s.name AS sandbox, t.final,\n"
    "	t.connections, t.connections_allowed, t.connections_denied, t.connections_limited, t.connections_failed,\n"
    "	t.queries, t.queries_allowed, t.queries_denied, t.queries_limited, t.queries_failed,\n"
    "	t.packets, t.packets_denied, t.packets_limited, t.packets_failed, t.ts\n"
    "	FROM accounts t LEFT JOIN sandboxes s ON s.id = t.sandbox_id;\n"

    "CREATE VIEW v_seals AS SELECT t.n, " TIME_TEXT("t.ts") " AS time, t.first_seq, t.last_seq,\n"
    "	lower(hex(t.head)) AS head, printf('%08x', t.key_id) AS key_id FROM seals t;\n"

    /* Only where a column has the same affinity in all three does SQLite take the order from their indexes. */
    "CREATE VIEW v_log AS\n"
    "	SELECT time, sandbox, 'connection' AS kind, verdict, reason,\n"
    "	coalesce(name, dst, '-') || ':' || dport AS what, rule, detail, id, ts FROM v_connections\n"
    "	UNION ALL SELECT time, sandbox, 'dns', verdict, reason, qtype || ' ' || coalesce(qname, '.'), "
    "rule, answers, id, ts\n"
    "	FROM v_dns\n"
    "	UNION ALL SELECT time, sandbox, 'event', CAST(NULL AS TEXT), CAST(NULL AS TEXT), event || '',\n"
    "	CAST(NULL AS TEXT), detail, id, ts FROM v_events;\n", 0},
};
/* clang-format on */

int
schema_error(struct error *err, sqlite3 *db, const char *what)
{
	int code = db == NULL ? SQLITE_NOMEM : sqlite3_errcode(db);
	int sys_errno = db == NULL ? ENOMEM : sqlite3_system_errno(db);
	const char *text = db == NULL ? "out of memory" : sqlite3_errmsg(db);
	enum error_code kind = ERROR_SYSTEM;

	if (code == SQLITE_CORRUPT || code == SQLITE_NOTADB)
		kind = ERROR_CORRUPT;
	else if (code == SQLITE_PERM || code == SQLITE_AUTH ||
	    (code == SQLITE_CANTOPEN && (sys_errno == EACCES || sys_errno == EPERM)))
		kind = ERROR_PERMISSION;
	error_set(err, kind, "%s: %s", what, text);
	if (err != NULL)
		err->sys_errno = sys_errno;
	return -1;
}

int
schema_integer(sqlite3 *db, const char *sql, int64_t *ret_value, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, sql, -1, &stmt, NULL);

	if (rc != SQLITE_OK)
		return schema_error(err, db, "cannot read the audit database");
	rc = sqlite3_step(stmt);
	if (rc == SQLITE_ROW)
		*ret_value = sqlite3_column_int64(stmt, 0);
	else if (rc == SQLITE_DONE)
		*ret_value = 0;
	else
		schema_error(err, db, "cannot read the audit database");
	sqlite3_finalize(stmt);
	return rc == SQLITE_ROW || rc == SQLITE_DONE ? 0 : -1;
}

int
schema_inspect(sqlite3 *db, enum schema_state *ret_state, struct error *err)
{
	int64_t application, version, objects;

	if (schema_integer(db, "PRAGMA application_id", &application, err) < 0 ||
	    schema_integer(db, "PRAGMA user_version", &version, err) < 0 ||
	    schema_integer(db, "SELECT count(*) FROM sqlite_schema", &objects, err) < 0)
		return -1;
	if (application == SCHEMA_APPLICATION_ID && version > SCHEMA_VERSION)
		*ret_state = SCHEMA_NEWER;
	else if (application == SCHEMA_APPLICATION_ID && version == SCHEMA_VERSION)
		*ret_state = SCHEMA_OURS;
	else if (application == 0 && version == 0 && objects == 0)
		*ret_state = SCHEMA_EMPTY;
	else
		*ret_state = SCHEMA_FOREIGN;
	return 0;
}

int
schema_exec(sqlite3 *db, const char *sql, const char *what, struct error *err)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK)
		return 0;
	return schema_error(err, db, what);
}

/* CREATE TABLE for one of the tables that audit/columns.c has. */
static void
schema_append_table(sqlite3_str *sql, const struct columns *table)
{
	const struct column *last = NULL;

	sqlite3_str_appendf(sql, "CREATE TABLE %s (", table->name);
	for (size_t i = 0; i < table->count; i++) {
		const struct column *column = &table->columns[i];
		const char *note = last == NULL ? table->note : last->note;

		if (column->type == NULL)
			continue;
		sqlite3_str_appendf(sql, "%s%s%s\n\t%s %s", last == NULL ? "" : ",", note == NULL ? "" : " -- ",
		    note == NULL ? "" : note, column->name, column->type);
		last = column;
	}
	sqlite3_str_appendf(
	    sql, "%s%s\n) STRICT;\n", last->note == NULL ? "" : " -- ", last->note == NULL ? "" : last->note);
}

/* All statements that make the schema. The caller frees it with sqlite3_free; NULL: no memory. */
static char *
schema_sql(sqlite3 *db)
{
	sqlite3_str *sql = sqlite3_str_new(db);

	sqlite3_str_appendall(sql, schema_other_tables);
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++)
		schema_append_table(sql, columns_of(table));
	sqlite3_str_appendall(sql, schema_indexes);
	for (size_t i = 0; i < sizeof(schema_views) / sizeof(schema_views[0]); i++) {
		const struct columns *more = columns_of(schema_views[i].columns);

		sqlite3_str_appendall(sql, schema_views[i].sql);
		for (size_t n = 0; more != NULL && n < more->count; n++)
			if (more->columns[n].in_view)
				sqlite3_str_appendf(sql, ", t.%s", more->columns[n].name);
	}
	return sqlite3_str_finish(sql);
}

int
schema_create(sqlite3 *db, struct error *err)
{
	static const char what[] = "cannot make the audit database's tables";
	char pragmas[128], *sql = schema_sql(db);
	int rc;

	if (sql == NULL)
		return schema_error(err, NULL, what);
	/* The version is set in the transaction that makes the tables: a file is ours entirely or empty. */
	snprintf(pragmas, sizeof(pragmas), "PRAGMA application_id = %d; PRAGMA user_version = %d;",
	    SCHEMA_APPLICATION_ID, SCHEMA_VERSION);
	rc = schema_exec(db, "BEGIN IMMEDIATE", what, err);
	if (rc == 0)
		rc = schema_exec(db, sql, what, err);
	sqlite3_free(sql);
	if (rc < 0 || schema_exec(db, pragmas, what, err) < 0 ||
	    schema_exec(db,
		"INSERT INTO meta VALUES ('created_us', CAST(unixepoch() AS INTEGER) * 1000000),"
		"('version', '" POSTERN_VERSION "'), ('log_id', lower(hex(randomblob(16)))), ('pruned_through', 0), "
		"('probe', NULL)",
		what, err) < 0)
		return -1;
	return schema_exec(db, "COMMIT", what, err);
}

/* One lookup table: values from first up to, not including, max. */
struct schema_words {
	const char *sql;
	unsigned int first, max;
	const char *(*word)(unsigned int value);
	const char *(*sentence)(unsigned int value); /* NULL: the table has none */
};

/* The WHERE keeps a start that changes nothing from writing anything. */
#define WORDS_SQL(table)                                                                                               \
	"INSERT INTO " table " (id, word) VALUES (?1, ?2) ON CONFLICT (id) DO UPDATE SET word = ?2 WHERE word <> ?2"

static const struct schema_words schema_words[] = {
    {WORDS_SQL("verdicts"), 0, VERDICT_MAX, verdict_text, NULL},
    {"INSERT INTO reasons (id, word, sentence) VALUES (?1, ?2, ?3) ON CONFLICT (id) DO UPDATE SET word = ?2, sentence "
     "= ?3 "
     "WHERE word <> ?2 OR sentence <> ?3",
	0, REASON_MAX, reason_text, reason_sentence},
    {WORDS_SQL("ends"), 0, END_MAX, record_end_text, NULL},
    {WORDS_SQL("name_sources"), 0, NAME_SOURCE_MAX, record_name_source_text, NULL},
    {WORDS_SQL("event_kinds"), 1, EVENT_KIND_MAX, record_event_text, NULL},
};

/* Fills an enum's table of words, for the views. */
static int
schema_fill_table(sqlite3 *db, const struct schema_words *words, struct error *err)
{
	sqlite3_stmt *stmt;
	int rc = sqlite3_prepare_v2(db, words->sql, -1, &stmt, NULL);

	for (unsigned int i = words->first; rc == SQLITE_OK && i < words->max; i++) {
		sqlite3_bind_int64(stmt, 1, i);
		sqlite3_bind_text(stmt, 2, words->word(i), -1, SQLITE_STATIC);
		if (words->sentence != NULL)
			sqlite3_bind_text(stmt, 3, words->sentence(i), -1, SQLITE_STATIC);
		sqlite3_step(stmt);
		rc = sqlite3_reset(stmt);
	}
	if (rc != SQLITE_OK)
		schema_error(err, db, "cannot fill the audit database's words");
	sqlite3_finalize(stmt);
	return rc == SQLITE_OK ? 0 : -1;
}

int
schema_fill_words(sqlite3 *db, struct error *err)
{
	static const char what[] = "cannot fill the audit database's words";

	if (schema_exec(db, "BEGIN IMMEDIATE", what, err) < 0)
		return -1;
	for (size_t i = 0; i < sizeof(schema_words) / sizeof(schema_words[0]); i++) {
		if (schema_fill_table(db, &schema_words[i], err) < 0)
			return -1;
	}
	return schema_exec(db, "COMMIT", what, err);
}
