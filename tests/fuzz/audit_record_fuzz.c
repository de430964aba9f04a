/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Records from a hostile sender: what record_valid lets pass is stored without fail, the second time without effect, as
 * rows whose texts are printable, whose JSON is JSON, and whose links are about them as they are.
 *
 * The input is a list of records: the kind, how its length differs from the right one, and patches to an honest record:
 * where, how many bytes, the bytes. */
#include "audit/store/insert.h"
#include "audit/columns.h"
#include "audit/store/schema.h"
#include "base/reader.h"
#include "tests/fuzz/audit_fuzz.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len);

#define EPOCH 1700000000ull
#define SANDBOX 1700000000000001
#define TS 1700000000123456
#define RECORDS_MAX 8

static sqlite3 *db;
static struct insert insert;
/* All rows of a table, and the link with a number that is about a row; nothing that is no JSON. */
static sqlite3_stmt *all_rows[COLUMNS_TABLE_MAX], *link_about, *no_json;

static sqlite3_stmt *
prepare(const char *sql)
{
	sqlite3_stmt *stmt;

	must(sqlite3_prepare_v2(db, sql, -1, &stmt, NULL) == SQLITE_OK);
	return stmt;
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
	static const struct insert_state nothing = {.seq = 0};
	char list[COLUMNS_TEXT_MAX], sql[2048];
	struct error err;

	(void)argc, (void)argv;
	must(sqlite3_open(":memory:", &db) == SQLITE_OK && schema_create(db, &err) == 0 &&
	    schema_fill_words(db, &err) == 0 && insert_prepare(&insert, db, &nothing) == SQLITE_OK);
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++) {
		snprintf(
		    sql, sizeof(sql), "SELECT %s FROM %s", columns_chained(table, list), columns_table_name(table));
		all_rows[table] = prepare(sql);
	}
	link_about = prepare("SELECT digest FROM chain WHERE seq = ?1 AND tbl = ?2 AND id = ?3");
	no_json = prepare("SELECT json FROM (SELECT answers AS json FROM dns UNION ALL SELECT detail FROM events UNION "
			  "ALL SELECT detail FROM sandboxes) WHERE json IS NOT NULL AND NOT json_valid(json)");
	return 0;
}

static void
make_flow(struct record_flow *flow)
{
	static const uint8_t guest[4] = {172, 16, 0, 2}, origin[4] = {140, 82, 121, 4};

	*flow = (struct record_flow){.id = RECORD_ID(EPOCH, 1),
	    .sandbox = SANDBOX,
	    .ts_us = TS,
	    .count = 1,
	    .src = addr_from_ipv4(guest),
	    .dst = addr_from_ipv4(origin),
	    .sport = 40000,
	    .dport = 443,
	    .proto = 6,
	    .name_source = NAME_SOURCE_SNI,
	    .name_len = 9,
	    .name = "a.example",
	    .rule = "allow a.example (a.yaml:3)",
	    .generation = 1};
}

/* As an honest sender would make it. */
static void
make_record(uint32_t kind, struct record *ret_record)
{
	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = kind;
	ret_record->seq = 1;
	switch ((enum record_kind)kind) {
	case RECORD_FLOW_OPEN:
		make_flow(&ret_record->flow);
		break;
	case RECORD_REFUSED:
		make_flow(&ret_record->flow);
		ret_record->flow.verdict = VERDICT_DENIED;
		ret_record->flow.reason = REASON_NO_RULE;
		ret_record->flow.end = END_REFUSED;
		ret_record->flow.last_us = TS;
		break;
	case RECORD_FLOW_CLOSE:
	case RECORD_PROGRESS:
		ret_record->close = (struct record_close){.id = RECORD_ID(EPOCH, 1),
		    .ts_us = TS + 1,
		    .bytes_out = 5,
		    .duration_us = 1,
		    .end = kind == RECORD_PROGRESS ? END_OPEN : END_FIN};
		break;
	case RECORD_DNS:
		ret_record->dns = (struct record_dns){.id = RECORD_ID(EPOCH, 2),
		    .sandbox = SANDBOX,
		    .ts_us = TS,
		    .count = 1,
		    .qtype = 1,
		    .transport = 17,
		    .qname_len = 9,
		    .qname = "a.example",
		    .answers = "[\"A 140.82.121.4\"]"};
		break;
	case RECORD_EVENT:
		ret_record->event = (struct record_event){.id = RECORD_ID(EPOCH, 3),
		    .sandbox = SANDBOX,
		    .ts_us = TS,
		    .kind = EVENT_MARK,
		    .detail = "{\"text\":\"x\"}"};
		break;
	case RECORD_SANDBOX:
	case RECORD_SANDBOX_END:
		ret_record->sandbox = (struct record_sandbox){.id = SANDBOX,
		    .ts_us = SANDBOX,
		    .name = "task1",
		    .kind = "tap",
		    .detail = "{\"labels\":{\"a\":\"b\"}}"};
		break;
	case RECORD_GAP:
		ret_record->gap = (struct record_gap){.sender_epoch = EPOCH, .ts_us = TS, .end = END_GATEWAY_CRASH};
		break;
	case RECORD_ACCOUNT:
		ret_record->account =
		    (struct record_account){.id = RECORD_ID(EPOCH, 4), .sandbox = SANDBOX, .ts_us = TS};
		break;
	case RECORD_KIND_MAX:
		break;
	}
}

static void
patch_record(struct record *record, struct reader *r)
{
	uint32_t kind = record->kind;

	for (unsigned int patches = reader_u8(r) % 8; patches > 0; patches--) {
		size_t at = reader_u16(r) % sizeof(*record), size = reader_u8(r);
		const uint8_t *bytes = reader_bytes(r, size);

		if (bytes != NULL)
			memcpy((char *)record + at, bytes, size < sizeof(*record) - at ? size : sizeof(*record) - at);
	}
	/* The length is another kind's otherwise, and the record refused. */
	record->kind = kind;
}

static void
store_one(const struct record *record)
{
	int64_t seq;

	must(insert_record(&insert, record) == SQLITE_OK);
	seq = insert.now.seq;
	must(insert_record(&insert, record) == SQLITE_OK);
	must(insert.now.seq == seq);
}

/* Of its exact length, so that a sanitizer sees one byte too far. */
static void
take_record(struct reader *r)
{
	uint32_t kind = reader_u8(r) % (RECORD_KIND_MAX + 1u), size = record_size(kind);
	int8_t longer = (int8_t)reader_u8(r);
	struct record record;
	void *exact;

	make_record(kind, &record);
	patch_record(&record, r);
	if ((longer > 0 && size + (uint32_t)longer <= sizeof(record)) || (longer < 0 && size >= (uint32_t)-longer))
		size += (uint32_t)longer;
	exact = malloc(size == 0 ? 1 : size);
	must(exact != NULL);
	memcpy(exact, &record, size);
	if (size >= offsetof(struct record, flow) && record_valid(exact, size)) {
		must(size == record_size(kind));
		store_one(exact);
	}
	free(exact);
}

static void
expect_text(sqlite3_stmt *row, int column)
{
	const unsigned char *text = sqlite3_column_text(row, column);

	for (int i = 0; i < sqlite3_column_bytes(row, column); i++)
		must(text[i] >= 0x20 && text[i] <= 0x7e);
}

/* Every row of the table: its texts, and that the link with its number is about it. */
static void
expect_rows(unsigned int table)
{
	sqlite3_stmt *row = all_rows[table];
	uint8_t digest[CHAIN_DIGEST];

	while (sqlite3_step(row) == SQLITE_ROW) {
		for (int i = 0; i < sqlite3_column_count(row); i++)
			if (sqlite3_column_type(row, i) == SQLITE_TEXT)
				expect_text(row, i);
		sqlite3_bind_int64(link_about, 1, sqlite3_column_int64(row, 1));
		sqlite3_bind_int64(link_about, 2, table);
		sqlite3_bind_int64(link_about, 3, sqlite3_column_int64(row, 0));
		must(sqlite3_step(link_about) == SQLITE_ROW &&
		    chain_digest(insert.chain, &(struct rows){.stmt = row}, digest) == SQLITE_OK &&
		    memcmp(digest, sqlite3_column_blob(link_about, 0), CHAIN_DIGEST) == 0);
		sqlite3_reset(link_about);
	}
	must(sqlite3_reset(row) == SQLITE_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
	struct reader r = reader_make(bytes, len);

	must(sqlite3_exec(db, "BEGIN", NULL, NULL, NULL) == SQLITE_OK);
	for (int i = 0; i < RECORDS_MAX && reader_left(&r) > 0; i++)
		take_record(&r);
	for (unsigned int table = 1; table < COLUMNS_TABLE_MAX; table++)
		expect_rows(table);
	must(sqlite3_step(no_json) == SQLITE_DONE && sqlite3_reset(no_json) == SQLITE_OK);
	must(sqlite3_exec(db, "ROLLBACK", NULL, NULL, NULL) == SQLITE_OK);
	insert_rolled_back(&insert);
	return 0;
}
