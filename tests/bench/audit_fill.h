/* SPDX-License-Identifier: GPL-3.0-or-later */
/* An audit database as a month of a busy host leaves it, made up in a minute: for benchmarks of reading. */
#ifndef POSTERN_TESTS_AUDIT_FILL_H
#define POSTERN_TESTS_AUDIT_FILL_H

#include "audit/record.h"
#include "audit/store/schema.h"
#include "policy/names/shared.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILL_SANDBOXES 1000
#define FILL_DAYS 30
#define FILL_DAY_US 86400000000
#define FILL_START_US 1790000000000000
#define FILL_END_US (FILL_START_US + FILL_DAYS * FILL_DAY_US)
/* Names and where they are registered; a few get most of the traffic. */
#define FILL_NAMES 20000
#define FILL_DOMAINS 4000

struct fill {
	sqlite3 *db;
	sqlite3_stmt *connection, *dns, *event;
	uint64_t random;
	int64_t seq;
};

/* xorshift64*: the same file each time. */
static inline uint64_t
fill_random(struct fill *fill, uint64_t below)
{
	fill->random ^= fill->random >> 12;
	fill->random ^= fill->random << 25;
	fill->random ^= fill->random >> 27;
	return (fill->random * 2685821657736338717u >> 16) % below;
}

/* Small numbers far more often than large ones. */
static inline uint64_t
fill_skewed(struct fill *fill, uint64_t below)
{
	uint64_t limit = 1 + fill_random(fill, below);

	limit = 1 + fill_random(fill, limit);
	return fill_random(fill, limit);
}

static inline void
fill_fail(sqlite3 *db)
{
	fprintf(stderr, "fill: %s\n", sqlite3_errmsg(db));
	exit(2);
}

static inline void
fill_exec(sqlite3 *db, const char *sql)
{
	if (sqlite3_exec(db, sql, NULL, NULL, NULL) != SQLITE_OK)
		fill_fail(db);
}

static inline void
fill_step(sqlite3_stmt *stmt)
{
	if (sqlite3_step(stmt) != SQLITE_DONE)
		fill_fail(sqlite3_db_handle(stmt));
	sqlite3_reset(stmt);
}

static inline void
fill_text(sqlite3_stmt *stmt, int at, const char *text)
{
	sqlite3_bind_text(stmt, at, text, -1, SQLITE_TRANSIENT);
}

struct fill_target {
	char name[96], domain[64], address[48];
	uint64_t n; /* name number; those at the end are never allowed */
	bool denied;
};

static inline void
fill_pick(struct fill *fill, struct fill_target *target)
{
	uint64_t n = fill_skewed(fill, FILL_NAMES), host = fill_random(fill, 4);

	target->n = n;
	target->denied = n % 10 == 9 || fill_random(fill, 50) == 0;
	snprintf(target->domain, sizeof(target->domain), "site%" PRIu64 ".example", n % FILL_DOMAINS);
	snprintf(target->name, sizeof(target->name), "host%" PRIu64 ".%s", n / FILL_DOMAINS, target->domain);
	if (n % 4 == 3)
		snprintf(target->address, sizeof(target->address), "2606:4700:%" PRIx64 "::%" PRIx64, 1 + n % 8000,
		    1 + host);
	else
		snprintf(target->address, sizeof(target->address), "%" PRIu64 ".%" PRIu64 ".%" PRIu64 ".%" PRIu64,
		    93 + n % 7, n / 7 % 256, n / 1792 % 256, 10 + host);
}

static inline int64_t
fill_sandbox_id(uint64_t n)
{
	return FILL_START_US - (int64_t)(FILL_SANDBOXES - n) * 1000003;
}

/* Every sandbox lives through the month; at each moment some are busier than the others. */
static inline int64_t
fill_sandbox(struct fill *fill, int64_t ts_us)
{
	uint64_t hour = (uint64_t)(ts_us / 3600000000);

	return fill_sandbox_id((hour * 37 + fill_skewed(fill, FILL_SANDBOXES)) % FILL_SANDBOXES);
}

static inline void
fill_connection(struct fill *fill, int64_t id, int64_t ts_us, const struct fill_target *target)
{
	sqlite3_stmt *s = fill->connection;
	int64_t out = (int64_t)fill_skewed(fill, 100000), in = (int64_t)fill_skewed(fill, 3000000);
	char rule[128];

	snprintf(rule, sizeof(rule), "allow *.%s (task.yaml:%d)", target->domain, (int)(target->n % 40));
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, ++fill->seq);
	sqlite3_bind_int64(s, 3, fill_sandbox(fill, ts_us));
	sqlite3_bind_int64(s, 4, ts_us);
	sqlite3_bind_int64(s, 5, 20000 + (int64_t)fill_random(fill, 40000));
	fill_text(s, 6, target->address);
	sqlite3_bind_int64(s, 7, target->n % 9 == 0 ? 80 : 443);
	fill_text(s, 8, target->name);
	sqlite3_bind_int64(s, 9, target->denied ? VERDICT_DENIED : VERDICT_ALLOWED);
	sqlite3_bind_int64(s, 10, target->denied ? (target->n % 3 == 0 ? REASON_SNI_MISMATCH : REASON_NOT_LEASED) : 0);
	if (target->denied)
		sqlite3_bind_null(s, 11);
	else
		fill_text(s, 11, rule);
	sqlite3_bind_int64(s, 12, target->denied ? 0 : out);
	sqlite3_bind_int64(s, 13, target->denied ? 0 : in);
	sqlite3_bind_int64(s, 14, ts_us + 1000000);
	sqlite3_bind_int64(s, 15, target->denied ? END_REFUSED : END_FIN);
	fill_text(s, 16, target->n % 2 == 0 ? "US" : "DE");
	sqlite3_bind_int64(s, 17, 64496 + (int64_t)(target->n % 500));
	fill_text(s, 18, target->domain);
	fill_step(s);
}

static inline void
fill_dns(struct fill *fill, int64_t id, int64_t ts_us, const struct fill_target *target)
{
	sqlite3_stmt *s = fill->dns;
	char answers[96];

	snprintf(answers, sizeof(answers), "[\"%s %s\",\"A 93.184.216.35\"]",
	    strchr(target->address, ':') != NULL ? "AAAA" : "A", target->address);
	sqlite3_bind_int64(s, 1, id);
	sqlite3_bind_int64(s, 2, ++fill->seq);
	sqlite3_bind_int64(s, 3, fill_sandbox(fill, ts_us));
	sqlite3_bind_int64(s, 4, ts_us);
	sqlite3_bind_int64(s, 5, 20000 + (int64_t)fill_random(fill, 40000));
	fill_text(s, 6, target->name);
	sqlite3_bind_int64(s, 7, fill_random(fill, 2) == 0 ? 1 : 28);
	sqlite3_bind_int64(s, 8, target->denied ? VERDICT_DENIED : VERDICT_ALLOWED);
	sqlite3_bind_int64(s, 9, target->denied ? REASON_NO_RULE : 0);
	sqlite3_bind_int64(s, 10, target->denied ? 3 : 0);
	fill_text(s, 11, target->denied ? "[]" : answers);
	fill_text(s, 12, target->domain);
	fill_step(s);
}

static inline void
fill_event(struct fill *fill, int64_t id, int64_t ts_us)
{
	sqlite3_bind_int64(fill->event, 1, id);
	sqlite3_bind_int64(fill->event, 2, ++fill->seq);
	sqlite3_bind_int64(fill->event, 3, fill_sandbox(fill, ts_us));
	sqlite3_bind_int64(fill->event, 4, ts_us);
	sqlite3_bind_int64(fill->event, 5, EVENT_MARK);
	fill_step(fill->event);
}

static inline void
fill_prepare(struct fill *fill)
{
	static const char *const sql[] = {
	    "INSERT INTO connections (id, seq, sandbox_id, ts, count, proto, src, sport, dst, dport, name, "
	    "name_source, "
	    "verdict, reason, rule, generation, alpn, tls_version, ja4, flags, bytes_out, bytes_in, duration_us, "
	    "closed_ts, end, country, asn, as_org, dns_us, hello_us, connect_us, first_byte_us, packets_out, "
	    "packets_in, "
	    "community_id, up_src, up_sport, up_community_id, domain) VALUES (?1, ?2, ?3, ?4, 1, 6, '172.16.0.2', ?5, "
	    "?6, ?7, ?8, 2, ?9, ?10, ?11, 3, 'h2,http/1.1', 772, 't13d1516h2_8daaf6152771_02713d6af862', 0, ?12, ?13, "
	    "1000000, ?14, ?15, ?16, ?17, 'Example Networks', 12000, 900, 20000, 45000, 12, 40, "
	    "'1:LQU9qZlK+B5F3KDmev6m5PMibrg=', '203.0.113.9', 45000, '1:HhA1B+6CoLbiKPEs5nhNYN4XWfk=', ?18)",
	    "INSERT INTO dns (id, seq, sandbox_id, ts, count, transport, src, sport, server, qname, qtype, verdict, "
	    "reason, rule, generation, rcode, answers, ttl, upstream_us, leases, domain, entropy) VALUES (?1, ?2, ?3, "
	    "?4, 1, 17, '172.16.0.2', ?5, '172.16.0.1', ?6, ?7, ?8, ?9, 'allow *.example (task.yaml:7)', 3, ?10, ?11, "
	    "60, 9000, 2, ?12, 232)",
	    "INSERT INTO events (id, seq, sandbox_id, ts, kind, uid, detail) VALUES (?1, ?2, ?3, ?4, ?5, 1000, "
	    "'{\"text\":\"a step\"}')"};
	sqlite3_stmt **const stmts[] = {&fill->connection, &fill->dns, &fill->event};

	for (size_t i = 0; i < 3; i++)
		if (sqlite3_prepare_v2(fill->db, sql[i], -1, stmts[i], NULL) != SQLITE_OK)
			fill_fail(fill->db);
}

static inline void
fill_sandboxes(struct fill *fill)
{
	char sql[256];

	for (uint64_t i = 0; i < FILL_SANDBOXES; i++) {
		snprintf(sql, sizeof(sql),
		    "INSERT INTO sandboxes (id, seq, name, kind, attached_ts, uid, detail) VALUES (%" PRId64
		    ", %" PRId64 ", 'task%" PRIu64 "', 'tap', %" PRId64 ", 1000, '{\"labels\":{\"team\":\"t%" PRIu64
		    "\"}}')",
		    fill_sandbox_id(i), ++fill->seq, i, fill_sandbox_id(i), i % 50);
		fill_exec(fill->db, sql);
	}
}

/* Take the indexes of the rows away and return the statements that make them again: sorted at the end, they take a
 * tenth of the time. The caller frees. */
static inline char *
fill_drop_indexes(struct fill *fill)
{
	static const char list[] =
	    "SELECT name, sql FROM sqlite_schema WHERE type = 'index' AND sql IS NOT NULL AND tbl_name "
	    "IN ('connections', 'dns', 'events')";
	sqlite3_str *make = sqlite3_str_new(fill->db), *drop = sqlite3_str_new(fill->db);
	sqlite3_stmt *stmt;
	char *sql;

	if (sqlite3_prepare_v2(fill->db, list, -1, &stmt, NULL) != SQLITE_OK)
		fill_fail(fill->db);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		sqlite3_str_appendf(drop, "DROP INDEX %s;", sqlite3_column_text(stmt, 0));
		sqlite3_str_appendf(make, "%s;", sqlite3_column_text(stmt, 1));
	}
	sqlite3_finalize(stmt);
	sql = sqlite3_str_finish(drop);
	fill_exec(fill->db, sql);
	sqlite3_free(sql);
	return sqlite3_str_finish(make);
}

/* rows: of all three tables together. The file must not be there. */
static inline void
fill_make(const char *path, uint64_t rows)
{
	struct fill fill = {.random = 88172645463325252u};
	struct error err;
	char *indexes;

	if (sqlite3_open(path, &fill.db) != SQLITE_OK)
		fill_fail(fill.db);
	fill_exec(fill.db,
	    "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF; PRAGMA cache_size = -500000; PRAGMA temp_store = "
	    "MEMORY");
	if (schema_create(fill.db, &err) < 0 || schema_fill_words(fill.db, &err) < 0) {
		fprintf(stderr, "fill: %s\n", err.text);
		exit(2);
	}
	indexes = fill_drop_indexes(&fill);
	fill_prepare(&fill);
	fill_exec(fill.db, "BEGIN");
	fill_sandboxes(&fill);
	for (uint64_t i = 0; i < rows; i++) {
		int64_t ts_us =
		    FILL_START_US + (int64_t)((double)i / (double)rows * (double)FILL_DAYS * (double)FILL_DAY_US);
		int64_t id = (int64_t)RECORD_ID(1790000000u, i);
		uint64_t kind = fill_random(&fill, 100);
		struct fill_target target;

		fill_pick(&fill, &target);
		if (kind < 60)
			fill_connection(&fill, id, ts_us, &target);
		else if (kind < 99)
			fill_dns(&fill, id, ts_us, &target);
		else
			fill_event(&fill, id, ts_us);
	}
	fill_exec(fill.db, "COMMIT");
	sqlite3_finalize(fill.connection);
	sqlite3_finalize(fill.dns);
	sqlite3_finalize(fill.event);
	fill_exec(fill.db, indexes);
	sqlite3_free(indexes);
	fill_exec(fill.db, "PRAGMA journal_mode = WAL");
	sqlite3_close(fill.db);
}

#endif
