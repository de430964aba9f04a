/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sealed log that another program changed: verify finds it whole only if its rows are what they were, and whatever
 * they are now, every reader of it comes to an end with a page or a list that is well formed, and the auditor gets a
 * record in.
 *
 * The log is made once. An input is a list of changes, each four bytes and what they ask for: what to do, the table,
 * the row and the column; a value's type, its length and its bytes. Values are of any type, whatever the column's: a
 * file can be written without SQLite. */
#include "audit/seal/chain.h"
#include "audit/columns.h"
#include "audit/query/open.h"
#include "audit/show/render.h"
#include "audit/show/report.h"
#include "audit/store/schema.h"
#include "audit/query/stats.h"
#include "audit/store/store.h"
#include "audit/seal/verify.h"
#include "base/reader.h"
#include "tests/fuzz/audit_fuzz.h"

#include <dirent.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define EPOCH 1700000000ull
#define SANDBOX 1700000000000001
#define OTHER_SANDBOX 1700000000000002
#define TS 1700000000123456
#define CHANGES_MAX 8
/* Openings until a record is in the log. */
#define WRITER_TRIES_MAX 3
/* Of the file, with what changes add. */
#define LOG_SIZE_MAX (256 * 1024)
#define TAGS_MAX 64
#define TAG_MAX 16

static struct {
	char dir[64], path[96];
	unsigned char *bytes; /* of the file as it was; tables take values of any type */
	sqlite3_int64 len;
	uint64_t print; /* of its rows */
	struct seal_signer signer;
	struct verify_note note; /* its newest seal */
	char columns[COLUMNS_TABLE_MAX + 4][64][32];
	size_t column_count[COLUMNS_TABLE_MAX + 4];
} log_file;

/* All that verify reads; the first ones are enum columns_table. */
static const char *const tables[] = {
    NULL, "connections", "dns", "events", "sandboxes", "accounts", "chain", "seals", "seal_keys", "meta"};
#define TABLES (sizeof(tables) / sizeof(tables[0]))

static void
run_sql(sqlite3 *db, const char *sql)
{
	must(sqlite3_exec(db, sql, NULL, NULL, NULL) == SQLITE_OK);
}

/* Making the log. */

static void
add(struct store *store, const struct record *record)
{
	struct error err;

	must(record_valid(record, record_size(record->kind)) && store_add(store, record, &err) == 0);
}

static void
add_flow(struct store *store, uint64_t counter, const char *name, bool closed)
{
	static const uint8_t guest[4] = {172, 16, 0, 2}, origin[4] = {140, 82, 121, 4};
	struct record record = {.kind = RECORD_FLOW_OPEN,
	    .seq = counter,
	    .flow = {.id = RECORD_ID(EPOCH, counter),
		.sandbox = SANDBOX,
		.ts_us = TS + (int64_t)counter * 1000,
		.count = 1,
		.src = addr_from_ipv4(guest),
		.dst = addr_from_ipv4(origin),
		.sport = 40000,
		.dport = 443,
		.proto = 6,
		.name_source = NAME_SOURCE_SNI,
		.name_len = (uint16_t)strlen(name),
		.rule = "allow *.example (a.yaml:3)",
		.generation = 1}};
	struct record end = {.kind = RECORD_FLOW_CLOSE,
	    .seq = counter,
	    .close = {.id = record.flow.id,
		.ts_us = TS + 5000000,
		.bytes_out = 1234,
		.bytes_in = 5678901,
		.duration_us = 1203000,
		.end = END_FIN}};

	memcpy(record.flow.name, name, strlen(name));
	add(store, &record);
	if (closed)
		add(store, &end);
}

static void
add_denied(struct store *store, uint64_t counter)
{
	static const uint8_t guest[4] = {172, 16, 0, 2}, origin[4] = {10, 0, 0, 1};
	struct record record = {.kind = RECORD_REFUSED,
	    .seq = counter,
	    .flow = {.id = RECORD_ID(EPOCH, counter),
		.sandbox = SANDBOX,
		.ts_us = TS + (int64_t)counter * 1000,
		.last_us = TS + (int64_t)counter * 2000,
		.count = 3,
		.src = addr_from_ipv4(guest),
		.dst = addr_from_ipv4(origin),
		.dport = 53,
		.proto = 17,
		.verdict = VERDICT_DENIED,
		.reason = REASON_NEVER_ADDRESS,
		.end = END_REFUSED,
		.name_source = NAME_SOURCE_CLAIM,
		.name_len = 4,
		.name = {'<', 0xff, '\n', '&'}}};

	add(store, &record);
}

static void
add_dns(struct store *store, uint64_t counter, const char *name)
{
	static const uint8_t guest[4] = {172, 16, 0, 2};
	struct record record = {.kind = RECORD_DNS,
	    .seq = counter,
	    .dns = {.id = RECORD_ID(EPOCH, counter),
		.sandbox = SANDBOX,
		.ts_us = TS + (int64_t)counter * 1000,
		.count = 1,
		.src = addr_from_ipv4(guest),
		.server = addr_from_ipv4(guest),
		.sport = 5353,
		.qtype = 1,
		.transport = 17,
		.ede = UINT16_MAX,
		.qname_len = (uint16_t)strlen(name),
		.ttl_s = 60,
		.answers = "[\"A 140.82.121.4\"]"}};

	memcpy(record.dns.qname, name, strlen(name));
	add(store, &record);
}

static void
add_event(struct store *store, uint64_t counter, enum event_kind kind, int64_t sandbox, const char *detail)
{
	struct record record = {.kind = RECORD_EVENT,
	    .seq = counter,
	    .event = {.id = RECORD_ID(EPOCH, counter),
		.sandbox = sandbox,
		.ts_us = TS + (int64_t)counter * 1000,
		.kind = (uint8_t)kind,
		.uid = 1000}};

	memcpy(record.event.detail, detail, strlen(detail));
	add(store, &record);
}

static void
add_sandbox(struct store *store, int64_t id, const char *name)
{
	struct record record = {
	    .kind = RECORD_SANDBOX, .seq = 1, .sandbox = {.id = id, .ts_us = id, .kind = "tap", .uid = 1000}};

	snprintf(record.sandbox.name, sizeof(record.sandbox.name), "%s", name);
	snprintf(record.sandbox.detail, sizeof(record.sandbox.detail), "{\"labels\":{\"team\":\"red\"}}");
	add(store, &record);
}

static void
add_account(struct store *store)
{
	struct record record = {.kind = RECORD_ACCOUNT,
	    .seq = 90,
	    .account = {.id = RECORD_ID(EPOCH, 90),
		.sandbox = SANDBOX,
		.ts_us = TS,
		.attempts = {[RECORD_ATTEMPT_CONNECTION] = 3, [RECORD_ATTEMPT_DNS] = 2, [RECORD_ATTEMPT_REFUSED] = 3},
		.recorded = {[RECORD_ATTEMPT_CONNECTION] = {[VERDICT_ALLOWED] = 3},
		    [RECORD_ATTEMPT_DNS] = {[VERDICT_ALLOWED] = 2},
		    [RECORD_ATTEMPT_REFUSED] = {[VERDICT_DENIED] = 3}},
		.final = 1}};

	add(store, &record);
}

static void
seal_now(struct store *store)
{
	struct error err;

	must(store_seal(store, true, &err) == 0 && store_commit(store, &err) == 0);
}

static void
make_log(struct store *store)
{
	add_sandbox(store, SANDBOX, "task1");
	add_sandbox(store, OTHER_SANDBOX, "task2");
	add_event(store, 1, EVENT_DAEMON_START, 0, "{\"version\":\"0.1.0\"}");
	add_event(store, 2, EVENT_MARK, SANDBOX, "{\"text\":\"step one\"}");
	add_dns(store, 3, "www.a.example");
	add_flow(store, 4, "www.a.example", true);
	add_denied(store, 5);
	seal_now(store);
	add_dns(store, 6, "b.example");
	add_flow(store, 7, "b.example", true);
	add_flow(store, 8, "c.example", false);
	add_event(store, 9, EVENT_POLICY, SANDBOX, "{\"from\":1,\"to\":2}");
	add_account(store);
	seal_now(store);
}

/* A key that is the same in each process. */
static void
make_signer(void)
{
	static const uint8_t seed[32] = {1, 2, 3};
	size_t len = SEAL_PUBLIC;

	log_file.signer.pkey = EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, NULL, seed, sizeof(seed));
	must(log_file.signer.pkey != NULL &&
	    EVP_PKEY_get_raw_public_key(log_file.signer.pkey, log_file.signer.key.public, &len) == 1);
	seal_key_identify(&log_file.signer.key);
}

/* Type and bytes of every value, in an order that does not depend on how the table is stored. */
static uint64_t
print_rows(sqlite3 *db)
{
	uint64_t print = 14695981039346656037u;
	char list[COLUMNS_TEXT_MAX], sql[2048];

	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		sqlite3_stmt *stmt;
		int rc;

		snprintf(sql, sizeof(sql), "SELECT %s FROM %s NOT INDEXED ORDER BY id", columns_chained(table, list),
		    columns_table_name(table));
		must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
		while ((rc = sqlite3_step(stmt)) == SQLITE_ROW) {
			for (int i = 0; i < sqlite3_column_count(stmt); i++) {
				int type = sqlite3_column_type(stmt, i);
				const uint8_t *value =
				    type == SQLITE_BLOB ? sqlite3_column_blob(stmt, i) : sqlite3_column_text(stmt, i);

				print = (print ^ (uint64_t)type) * 1099511628211u;
				for (int at = 0; at < sqlite3_column_bytes(stmt, i); at++)
					print = (print ^ value[at]) * 1099511628211u;
			}
		}
		must(rc == SQLITE_DONE);
		sqlite3_finalize(stmt);
		print = (print ^ table) * 1099511628211u;
	}
	return print;
}

static void
read_columns(sqlite3 *db)
{
	for (size_t table = 1; table < TABLES; table++) {
		char sql[64];
		sqlite3_stmt *stmt;

		snprintf(sql, sizeof(sql), "SELECT * FROM %s", tables[table]);
		must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
		log_file.column_count[table] = (size_t)sqlite3_column_count(stmt);
		for (int i = 0; i < sqlite3_column_count(stmt); i++)
			snprintf(log_file.columns[table][i], sizeof(log_file.columns[0][0]), "%s",
			    sqlite3_column_name(stmt, i));
		sqlite3_finalize(stmt);
	}
}

/* One file without a -wal, the page cache of which no STRICT guards while it is changed. */
static void
keep_log(void)
{
	sqlite3 *db;
	sqlite3_stmt *stmt;
	struct seal *seal = &log_file.note.seal;

	must(sqlite3_open_v2(log_file.path, &db, SQLITE_OPEN_READWRITE, NULL) == SQLITE_OK);
	run_sql(db, "PRAGMA journal_mode = DELETE");
	log_file.print = print_rows(db);
	read_columns(db);
	must(sqlite3_prepare_v2(db,
		 "SELECT n, first_seq, last_seq, ts, head, key_id, signature, (SELECT value FROM meta WHERE key = "
		 "'log_id') FROM seals ORDER BY n DESC LIMIT 1",
		 -1, &stmt, NULL) == SQLITE_OK &&
	    sqlite3_step(stmt) == SQLITE_ROW);
	*seal = (struct seal){.n = sqlite3_column_int64(stmt, 0),
	    .first_seq = sqlite3_column_int64(stmt, 1),
	    .last_seq = sqlite3_column_int64(stmt, 2),
	    .ts_us = sqlite3_column_int64(stmt, 3),
	    .key_id = (uint32_t)sqlite3_column_int64(stmt, 5)};
	memcpy(seal->head, sqlite3_column_blob(stmt, 4), sizeof(seal->head));
	memcpy(seal->signature, sqlite3_column_blob(stmt, 6), sizeof(seal->signature));
	snprintf(log_file.note.log_id, sizeof(log_file.note.log_id), "%s", sqlite3_column_text(stmt, 7));
	sqlite3_finalize(stmt);
	run_sql(db,
	    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, ') STRICT', '/*STRICT*/)') "
	    "WHERE "
	    "type = 'table' AND sql NOT LIKE '%WITHOUT ROWID%'; PRAGMA writable_schema = RESET; PRAGMA page_size = "
	    "1024; VACUUM");
	log_file.bytes = sqlite3_serialize(db, "main", &log_file.len, 0);
	must(log_file.bytes != NULL && log_file.len < LOG_SIZE_MAX / 2);
	sqlite3_close(db);
}

/* Also what a writer set aside. */
static void
empty_dir(void)
{
	DIR *dir = opendir(log_file.dir);
	struct dirent *entry;

	must(dir != NULL);
	while ((entry = readdir(dir)) != NULL)
		unlinkat(dirfd(dir), entry->d_name, 0);
	closedir(dir);
}

static void
remove_dir(void)
{
	empty_dir();
	rmdir(log_file.dir);
}

/* Changing it. */

static void
bind_value(sqlite3_stmt *stmt, int at, struct reader *r)
{
	uint8_t type = reader_u8(r), size = reader_u8(r);
	const uint8_t *bytes = reader_bytes(r, size);
	double number = 0;

	switch (type % 5) {
	case 0:
		sqlite3_bind_null(stmt, at);
		break;
	case 1:
		sqlite3_bind_int64(stmt, at, read_number(bytes, bytes == NULL ? 0 : size));
		break;
	case 2:
		sqlite3_bind_text(
		    stmt, at, bytes == NULL ? "" : (const char *)bytes, bytes == NULL ? 0 : size, SQLITE_STATIC);
		break;
	case 3:
		sqlite3_bind_blob(
		    stmt, at, bytes == NULL ? (const void *)"" : bytes, bytes == NULL ? 0 : size, SQLITE_STATIC);
		break;
	default:
		if (bytes != NULL)
			memcpy(&number, bytes, size < sizeof(number) ? size : sizeof(number));
		sqlite3_bind_double(stmt, at, number);
		break;
	}
}

/* Run the statement with ?1, a row's place, and ?2, a value. What SQLite refuses is no change. */
static void
change(sqlite3 *db, const char *sql, unsigned int row, struct reader *r)
{
	sqlite3_stmt *stmt;

	must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
	if (sqlite3_bind_parameter_count(stmt) > 0)
		sqlite3_bind_int(stmt, 1, (int)row);
	if (sqlite3_bind_parameter_count(stmt) > 1)
		bind_value(stmt, 2, r);
	sqlite3_step(stmt);
	sqlite3_finalize(stmt);
}

static void
change_one(sqlite3 *db, struct reader *r)
{
	unsigned int what = reader_u8(r), table = 1 + reader_u8(r) % (TABLES - 1), row = reader_u8(r);
	size_t column = reader_u8(r) % log_file.column_count[table];
	const char *name = tables[table], *key = strcmp(name, "meta") == 0 ? "key" : "rowid";
	char sql[1024], nth[192];

	snprintf(nth, sizeof(nth),
	    "%s = (SELECT %s FROM %s ORDER BY 1 LIMIT 1 OFFSET ?1 %% max(1, (SELECT count(*) FROM %s)))", key, key,
	    name, name);
	switch (what % 5) {
	case 0:
		snprintf(sql, sizeof(sql), "DELETE FROM %s WHERE %s", name, nth);
		break;
	case 1: /* a copy of the row, under the column's new value */
		snprintf(sql, sizeof(sql), "CREATE TEMP TABLE copy AS SELECT * FROM %s WHERE %s;", name, nth);
		change(db, sql, row, r);
		snprintf(
		    sql, sizeof(sql), "UPDATE copy SET %s = ?2 WHERE ?1 IS NOT NULL", log_file.columns[table][column]);
		change(db, sql, row, r);
		snprintf(sql, sizeof(sql), "INSERT INTO %s SELECT * FROM copy", name);
		change(db, sql, row, r);
		snprintf(sql, sizeof(sql), "DROP TABLE copy");
		break;
	case 2: /* the column's value of the row before */
		snprintf(sql, sizeof(sql),
		    "UPDATE %s AS t SET %s = coalesce((SELECT p.%s FROM %s p WHERE p.%s < t.%s ORDER BY p.%s DESC "
		    "LIMIT 1), "
		    "t.%s) WHERE t.%s",
		    name, log_file.columns[table][column], log_file.columns[table][column], name, key, key, key,
		    log_file.columns[table][column], nth);
		break;
	default:
		snprintf(
		    sql, sizeof(sql), "UPDATE %s SET %s = ?2 WHERE %s", name, log_file.columns[table][column], nth);
		break;
	}
	change(db, sql, row, r);
}

/* In place: making a file anew costs more than all else. */
static void
write_file(const unsigned char *bytes, size_t len)
{
	int fd = open(log_file.path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

	must(fd >= 0 && pwrite(fd, bytes, len, 0) == (ssize_t)len && ftruncate(fd, (off_t)len) == 0);
	close(fd);
}

/* The log with the changes, under its path. Returns a print of its rows. */
static uint64_t
write_changed(const uint8_t *bytes, size_t len)
{
	struct reader r = reader_make(bytes, len);
	static unsigned char copy[LOG_SIZE_MAX];
	unsigned char *changed;
	sqlite3_int64 changed_len;
	uint64_t print;
	sqlite3 *db;

	memcpy(copy, log_file.bytes, (size_t)log_file.len);
	must(sqlite3_open(":memory:", &db) == SQLITE_OK &&
	    sqlite3_deserialize(db, "main", copy, log_file.len, sizeof(copy), 0) == SQLITE_OK);
	run_sql(db, "PRAGMA journal_mode = OFF; PRAGMA temp_store = MEMORY");
	for (int i = 0; i < CHANGES_MAX && reader_left(&r) >= 4; i++)
		change_one(db, &r);
	print = print_rows(db);
	run_sql(db,
	    "PRAGMA writable_schema = ON; UPDATE sqlite_schema SET sql = replace(sql, '/*STRICT*/)', ') STRICT') "
	    "WHERE "
	    "type = 'table'");
	changed = sqlite3_serialize(db, "main", &changed_len, SQLITE_SERIALIZE_NOCOPY);
	must(changed != NULL);
	write_file(changed, (size_t)changed_len);
	sqlite3_close(db);
	return print;
}

/* What its readers make of it. */

static void
expect_printable(const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		must(text[i] >= 0x20 && text[i] <= 0x7e);
}

static void
finding_handler(const struct verify_finding *finding, void *context)
{
	(void)context;
	expect_printable(finding->text, strlen(finding->text));
}

/* What verify finds; -1: it cannot read the file. */
static int64_t
count_faults(void)
{
	const struct verify_options options = {.keys = &log_file.signer.key,
	    .key_count = 1,
	    .notes = &log_file.note,
	    .note_count = 1,
	    .finding_handler = finding_handler};
	struct verify_result result;
	struct error err;

	if (verify_run(log_file.path, &options, &result, &err) == 0)
		return (int64_t)result.fault_count;
	must(err.code == ERROR_CORRUPT);
	return -1;
}

static void
stats_handler(const struct stats_row *row, void *context)
{
	must(row->key.bytes != NULL || row->key.len == 0);
	++*(size_t *)context;
}

static void
try_query(void)
{
	const struct query_filter filter = {.sandbox_id = 0};
	struct query *query;
	const struct query_row *row;
	struct stats stats;
	struct error err;
	size_t count = 0;
	int rc;

	query = query_open(log_file.path, &err);
	must(query != NULL && query_start(query, &filter, &err) == 0);
	while ((rc = query_next(query, &row, &err)) > 0) {
		char *text;
		size_t len;
		FILE *out = open_memstream(&text, &len);

		must(out != NULL && render_json(out, row) == 0 && fclose(out) == 0 && len > 0 && text[len - 1] == '\n');
		expect_printable(text, len - 1);
		free(text);
	}
	must(rc == 0);
	must(query_start(query, &filter, &err) == 0 && stats_read(query, 0, &stats, &err) == 0);
	stats_free(&stats);
	for (enum stats_group group = 0; group < STATS_GROUP_MAX; group++)
		must(query_start(query, &filter, &err) == 0 &&
		    stats_top(query, group, STATS_BY_BYTES, 5, stats_handler, &count, &err) == 0 &&
		    count <= 5 * STATS_GROUP_MAX);
	query_close(query);
}

/* A tag at its '<': its end, and what it does to the list of open ones. */
static const char *
html_tag(const char *at, char open[TAGS_MAX][TAG_MAX], size_t *depth)
{
	static const char letters[] = "abcdefghijklmnopqrstuvwxyz-", digits[] = "0123456789";
	bool closes = at[1] == '/', alone;
	const char *name = at + 1 + closes, *end = name + strspn(name, letters);
	size_t len;

	end += strspn(end, digits);
	len = (size_t)(end - name);
	must(len > 0 && len < TAG_MAX);
	while (!closes && *end == ' ') {
		size_t attribute = strspn(++end, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ-0123456789");

		must(attribute > 0);
		end += attribute;
		if (*end == '=') {
			must(*++end == '"');
			end += 1 + strcspn(end + 1, "\"<>");
			must(*end++ == '"');
		}
	}
	alone = *end == '/' || (len == 4 && memcmp(name, "meta", 4) == 0) || (len == 2 && memcmp(name, "br", 2) == 0);
	end += *end == '/';
	must(*end == '>');
	if (closes)
		must(*depth > 0 && strlen(open[--*depth]) == len && memcmp(open[*depth], name, len) == 0);
	if (closes || alone)
		return end + 1;
	must(*depth < TAGS_MAX);
	memcpy(open[*depth], name, len);
	open[(*depth)++][len] = '\0';
	return end + 1;
}

static const char *
html_entity(const char *at)
{
	static const char *const entities[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&#39;"};

	for (size_t i = 0; i < sizeof(entities) / sizeof(entities[0]); i++)
		if (strncmp(at, entities[i], strlen(entities[i])) == 0)
			return at + strlen(entities[i]);
	abort();
}

/* Every tag closed, nothing of the log's among them. */
static void
expect_html(const char *text, size_t len)
{
	static const char start[] = "<!DOCTYPE html>\n";
	char open[TAGS_MAX][TAG_MAX];
	size_t depth = 0;
	const char *at = text + strlen(start);

	must(strlen(text) == len && strncmp(text, start, strlen(start)) == 0);
	while (*at != '\0') {
		must((unsigned char)*at >= 0x20 || *at == '\n');
		must(*at != 0x7f && *at != '>');
		if (*at == '<' && strncmp(at, "<style>", 7) == 0) {
			at = strstr(at, "</style>");
			must(at != NULL);
			at += 8;
		} else if (*at == '<') {
			at = html_tag(at, open, &depth);
		} else if (*at == '&') {
			at = html_entity(at);
		} else {
			at++;
		}
	}
	must(depth == 0);
	/* Characters that turn a line round or are not seen. */
	must(strstr(text, "\xe2\x80\xae") == NULL && strstr(text, "\xe2\x80\xa8") == NULL &&
	    strstr(text, "\xe2\x81\xa6") == NULL && strstr(text, "\xef\xbb\xbf") == NULL);
}

static void
try_report(void)
{
	struct report_options options = {.sandbox = "task1", .now_us = TS, .policy_why = "none"};
	struct open_file file;
	struct error err;
	char *text;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	int rc;

	must(out != NULL && open_read_only(&file, log_file.path, &err) == 0);
	rc = report_write(out, file.db, &options, &err);
	must(fclose(out) == 0 && (rc == 0 || err.code == ERROR_NOT_FOUND));
	if (rc == 0)
		expect_html(text, len);
	free(text);
	open_close(&file);
}

/* The auditor does not go without a log: what it cannot go on with it sets aside, and a failure in the midst of writing
 * has it open the file anew. */
static void
try_writer(void)
{
	bool written = false;

	for (int i = 0; i < WRITER_TRIES_MAX && !written; i++) {
		const struct record record = {.kind = RECORD_EVENT,
		    .seq = 1,
		    .event = {
			.id = RECORD_ID(EPOCH + 1, 1), .ts_us = TS, .kind = EVENT_DAEMON_START, .uid = UINT32_MAX}};
		struct store_opening opening;
		struct store_state state;
		struct error err;
		struct store *store = store_open(log_file.path, &opening, &err);

		must(store != NULL);
		expect_printable(opening.changed, strlen(opening.changed));
		store_set_signer(store, &log_file.signer);
		written = store_close_earlier(store, EPOCH + 1, &err) == 0 && store_add(store, &record, &err) == 0 &&
		    store_seal(store, true, &err) == 0 && store_commit(store, &err) == 0;
		must(written || store_must_reopen(store));
		store_state(store, &state);
		must(!written || (state.seq > 0 && state.unsealed == 0));
		store_close(store);
	}
	must(written);
	empty_dir();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	struct store_opening opening;
	struct error err;
	struct store *store;

	(void)argc, (void)argv;
	/* The log's own id is the same in each process. */
	sqlite3_initialize();
	sqlite3_test_control(SQLITE_TESTCTRL_PRNG_SEED, 1, NULL);
	/* Where a sync costs nothing, if there is such a place. */
	snprintf(log_file.dir, sizeof(log_file.dir), "/dev/shm/postern-fuzz-XXXXXX");
	if (mkdtemp(log_file.dir) == NULL) {
		snprintf(log_file.dir, sizeof(log_file.dir), "/tmp/postern-fuzz-XXXXXX");
		must(mkdtemp(log_file.dir) != NULL);
	}
	atexit(remove_dir);
	snprintf(log_file.path, sizeof(log_file.path), "%s/audit.db", log_file.dir);
	make_signer();
	store = store_open(log_file.path, &opening, &err);
	must(store != NULL);
	store_set_signer(store, &log_file.signer);
	make_log(store);
	store_close(store);
	keep_log();
	/* The ways of this program change nothing by themselves. */
	must(write_changed(NULL, 0) == log_file.print && count_faults() == 0);
	return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	uint64_t print;

	if (len == 0)
		return 0;
	print = write_changed(bytes + 1, len - 1);
	switch (bytes[0] % 4) {
	case 0:
		must(count_faults() != 0 || print == log_file.print);
		break;
	case 1:
		try_query();
		break;
	case 2:
		try_report();
		break;
	default:
		try_writer();
		break;
	}
	return 0;
}
