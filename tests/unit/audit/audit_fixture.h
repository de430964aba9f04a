/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the audit tests share: a directory of their own, records to store, and questions to a database. */
#ifndef POSTERN_TESTS_AUDIT_FIXTURE_H
#define POSTERN_TESTS_AUDIT_FIXTURE_H

#include "audit/query/query.h"
#include "audit/store/store.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <sqlite3.h>

#define FIXTURE_EPOCH 1700000000ull
#define FIXTURE_SANDBOX 1700000000000001
#define FIXTURE_TS 1700000000123456

static char fixture_dir[64];
static char fixture_db[96];

/* Run a shell command in which $DIR and $DB are the test's directory and database. */
static inline void
fixture_shell(const char *command)
{
	setenv("DIR", fixture_dir, 1);
	setenv("DB", fixture_db, 1);
	if (system(command) != 0)
		fail_msg("failed: %s", command);
}

static inline int
fixture_setup(void **state)
{
	(void)state;
	snprintf(fixture_dir, sizeof(fixture_dir), "/tmp/postern-audit-test-XXXXXX");
	if (mkdtemp(fixture_dir) == NULL)
		return -1;
	snprintf(fixture_db, sizeof(fixture_db), "%s/audit.db", fixture_dir);
	return 0;
}

static inline int
fixture_teardown(void **state)
{
	(void)state;
	fixture_shell("rm -rf \"$DIR\"");
	return 0;
}

static inline struct store *
fixture_open(struct store_opening *ret_opening)
{
	struct store_opening opening;
	struct error err;
	struct store *store = store_open(fixture_db, ret_opening != NULL ? ret_opening : &opening, &err);

	if (store == NULL)
		fail_msg("store_open: %s", err.text);
	return store;
}

static inline void
fixture_add(struct store *store, const struct record *record)
{
	struct error err;

	assert_true(record_valid(record, record_size(record->kind)));
	if (store_add(store, record, &err) < 0)
		fail_msg("store_add: %s", err.text);
}

static inline void
fixture_commit(struct store *store)
{
	struct error err;

	if (store_commit(store, &err) < 0)
		fail_msg("store_commit: %s", err.text);
}

static inline struct addr
fixture_addr(uint8_t a, uint8_t b, uint8_t c, uint8_t d)
{
	uint8_t bytes[4] = {a, b, c, d};

	return addr_from_ipv4(bytes);
}

/* An allowed connection to name:443, open. */
static inline struct record
fixture_flow(uint64_t counter, const char *name)
{
	struct record record = {.kind = RECORD_FLOW_OPEN, .seq = counter};

	record.flow.id = RECORD_ID(FIXTURE_EPOCH, counter);
	record.flow.sandbox = FIXTURE_SANDBOX;
	record.flow.ts_us = FIXTURE_TS + (int64_t)counter * 1000;
	record.flow.count = 1;
	record.flow.src = fixture_addr(172, 16, 0, 2);
	record.flow.sport = 40000;
	record.flow.dst = fixture_addr(140, 82, 121, 4);
	record.flow.dport = 443;
	record.flow.proto = 6;
	record.flow.verdict = VERDICT_ALLOWED;
	record.flow.reason = REASON_ALLOWED;
	record.flow.name_source = NAME_SOURCE_SNI;
	record.flow.end = END_OPEN;
	record.flow.generation = 3;
	record.flow.name_len = (uint16_t)strlen(name);
	memcpy(record.flow.name, name, strlen(name));
	snprintf(record.flow.rule, sizeof(record.flow.rule), "allow %s (test.yaml:7)", "*.github.com");
	return record;
}

static inline struct record
fixture_denied(uint64_t counter, const void *name, size_t name_len)
{
	struct record record = fixture_flow(counter, "");

	record.flow.verdict = VERDICT_DENIED;
	record.flow.reason = REASON_SNI_MISMATCH;
	record.flow.end = END_REFUSED;
	record.flow.name_source = NAME_SOURCE_CLAIM;
	record.flow.rule[0] = '\0';
	record.flow.name_len = (uint16_t)name_len;
	memcpy(record.flow.name, name, name_len);
	return record;
}

static inline struct record
fixture_close(uint64_t counter)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE, .seq = counter};

	record.close.id = RECORD_ID(FIXTURE_EPOCH, counter);
	record.close.ts_us = FIXTURE_TS + 5000000;
	record.close.bytes_out = 1234;
	record.close.bytes_in = 5678901;
	record.close.duration_us = 1203000;
	record.close.end = END_FIN;
	record.close.reason = REASON_ALLOWED;
	record.close.verdict = VERDICT_ALLOWED;
	return record;
}

static inline struct record
fixture_dns(uint64_t counter, const void *name, size_t name_len)
{
	struct record record = {.kind = RECORD_DNS, .seq = counter};

	record.dns.id = RECORD_ID(FIXTURE_EPOCH, counter);
	record.dns.sandbox = FIXTURE_SANDBOX;
	record.dns.ts_us = FIXTURE_TS + (int64_t)counter * 1000;
	record.dns.count = 1;
	record.dns.src = fixture_addr(172, 16, 0, 2);
	record.dns.server = fixture_addr(8, 8, 8, 8);
	record.dns.sport = 5353;
	record.dns.qtype = 1;
	record.dns.transport = 17;
	record.dns.ede = UINT16_MAX;
	record.dns.qname_len = (uint16_t)name_len;
	memcpy(record.dns.qname, name, name_len);
	record.dns.ttl_s = 60;
	record.dns.upstream_us = 12500;
	snprintf(record.dns.answers, sizeof(record.dns.answers), "[\"CNAME x.example\",\"A 140.82.121.4\"]");
	return record;
}

static inline struct record
fixture_event(uint64_t counter, enum event_kind kind, const char *detail)
{
	struct record record = {.kind = RECORD_EVENT, .seq = counter};

	record.event.id = RECORD_ID(FIXTURE_EPOCH, counter);
	record.event.ts_us = FIXTURE_TS + (int64_t)counter * 1000;
	record.event.kind = (uint8_t)kind;
	record.event.uid = 1000;
	snprintf(record.event.detail, sizeof(record.event.detail), "%s", detail);
	return record;
}

static inline struct record
fixture_sandbox(int64_t id, const char *name)
{
	struct record record = {.kind = RECORD_SANDBOX, .seq = 1};

	record.sandbox.id = id;
	record.sandbox.ts_us = id;
	record.sandbox.uid = 1000;
	snprintf(record.sandbox.name, sizeof(record.sandbox.name), "%s", name);
	snprintf(record.sandbox.kind, sizeof(record.sandbox.kind), "tap");
	snprintf(record.sandbox.detail, sizeof(record.sandbox.detail), "{\"guest\":\"172.16.0.2\"}");
	return record;
}

/* First column of the first row, through a connection of its own. */
static inline int64_t
fixture_integer(const char *sql)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	int64_t value;

	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	sqlite3_busy_timeout(db, 2000);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_int64(stmt, 0);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return value;
}

/* Likewise, as text; "" for NULL. */
static inline const char *
fixture_text(const char *sql)
{
	static char text[4096];
	sqlite3 *db;
	sqlite3_stmt *stmt;
	const unsigned char *value;

	assert_int_equal(sqlite3_open_v2(fixture_db, &db, SQLITE_OPEN_READONLY, NULL), SQLITE_OK);
	if (sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(db));
	assert_int_equal(sqlite3_step(stmt), SQLITE_ROW);
	value = sqlite3_column_text(stmt, 0);
	snprintf(text, sizeof(text), "%s", value == NULL ? "" : (const char *)value);
	sqlite3_finalize(stmt);
	sqlite3_close(db);
	return text;
}

#endif
