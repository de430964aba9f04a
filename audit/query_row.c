/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query_row.h"

#include <stdlib.h>
#include <string.h>

enum query_row_column {
	COLUMN_KIND,
	COLUMN_ID,
	COLUMN_SEQ,
	COLUMN_TS,
	COLUMN_SANDBOX,
	COLUMN_SANDBOX_ID,
	COLUMN_COUNT,
	COLUMN_LAST_TS,
	COLUMN_PROTO,
	COLUMN_SRC,
	COLUMN_DST,
	COLUMN_SPORT,
	COLUMN_DPORT,
	COLUMN_NAME,
	COLUMN_NAME_RAW,
	COLUMN_NAME_SOURCE,
	COLUMN_VERDICT,
	COLUMN_REASON,
	COLUMN_RULE,
	COLUMN_DETAIL,
	COLUMN_GENERATION,
	COLUMN_ALPN,
	COLUMN_FLAGS,
	COLUMN_BYTES_OUT,
	COLUMN_BYTES_IN,
	COLUMN_DURATION,
	COLUMN_CLOSED_TS,
	COLUMN_END,
	COLUMN_QTYPE,
	COLUMN_RCODE,
	COLUMN_TTL,
	COLUMN_UPSTREAM,
	COLUMN_EDE,
	COLUMN_ANSWERS,
	COLUMN_EVENT,
	COLUMN_UID
};

struct query_text
query_row_text(sqlite3_stmt *stmt, int column)
{
	struct query_text text = {.bytes = NULL};
	int type = sqlite3_column_type(stmt, column);

	/* Asked before the length: a foreign file may hold UTF-16, which is converted here. */
	if (type == SQLITE_TEXT)
		text.bytes = (const char *)sqlite3_column_text(stmt, column);
	else if (type == SQLITE_BLOB)
		text.bytes = sqlite3_column_blob(stmt, column);
	if (text.bytes != NULL)
		text.len = (size_t)sqlite3_column_bytes(stmt, column);
	return text;
}

/* Move a column's bytes behind *at. */
static struct query_text
query_row_keep(sqlite3_stmt *stmt, enum query_row_column column, char **at)
{
	struct query_text text = query_row_text(stmt, (int)column);

	if (text.bytes == NULL)
		return text;
	memcpy(*at, text.bytes, text.len);
	text.bytes = *at;
	*at += text.len;
	return text;
}

static struct query_number
query_row_number(sqlite3_stmt *stmt, enum query_row_column column)
{
	return (struct query_number){.set = sqlite3_column_type(stmt, (int)column) == SQLITE_INTEGER,
	    .value = sqlite3_column_int64(stmt, (int)column)};
}

static void
query_row_numbers(sqlite3_stmt *stmt, struct query_row *row)
{
	row->kind = (unsigned int)sqlite3_column_int(stmt, COLUMN_KIND);
	row->id = (uint64_t)sqlite3_column_int64(stmt, COLUMN_ID);
	row->seq = sqlite3_column_int64(stmt, COLUMN_SEQ);
	row->ts_us = sqlite3_column_int64(stmt, COLUMN_TS);
	row->sandbox_id = sqlite3_column_int64(stmt, COLUMN_SANDBOX_ID);
	row->count = sqlite3_column_int64(stmt, COLUMN_COUNT);
	row->last_us = query_row_number(stmt, COLUMN_LAST_TS);
	row->proto = sqlite3_column_int64(stmt, COLUMN_PROTO);
	row->sport = sqlite3_column_int64(stmt, COLUMN_SPORT);
	row->dport = sqlite3_column_int64(stmt, COLUMN_DPORT);
	row->name_source = sqlite3_column_int64(stmt, COLUMN_NAME_SOURCE);
	row->verdict = sqlite3_column_int64(stmt, COLUMN_VERDICT);
	row->reason = sqlite3_column_int64(stmt, COLUMN_REASON);
	row->generation = sqlite3_column_int64(stmt, COLUMN_GENERATION);
	row->flags = sqlite3_column_int64(stmt, COLUMN_FLAGS);
	row->bytes_out = query_row_number(stmt, COLUMN_BYTES_OUT);
	row->bytes_in = query_row_number(stmt, COLUMN_BYTES_IN);
	row->duration_us = query_row_number(stmt, COLUMN_DURATION);
	row->closed_us = query_row_number(stmt, COLUMN_CLOSED_TS);
	row->end = sqlite3_column_int64(stmt, COLUMN_END);
	row->qtype = sqlite3_column_int64(stmt, COLUMN_QTYPE);
	row->rcode = sqlite3_column_int64(stmt, COLUMN_RCODE);
	row->ttl_s = sqlite3_column_int64(stmt, COLUMN_TTL);
	row->upstream_us = sqlite3_column_int64(stmt, COLUMN_UPSTREAM);
	row->ede = query_row_number(stmt, COLUMN_EDE);
	row->event = sqlite3_column_int64(stmt, COLUMN_EVENT);
	row->uid = query_row_number(stmt, COLUMN_UID);
}

void *
query_row_take(sqlite3_stmt *stmt, struct query_row *ret_row)
{
	static const enum query_row_column texts[] = {COLUMN_SANDBOX, COLUMN_SRC, COLUMN_DST, COLUMN_NAME,
	    COLUMN_NAME_RAW, COLUMN_RULE, COLUMN_DETAIL, COLUMN_ALPN, COLUMN_ANSWERS};
	size_t bytes = 1; /* never a malloc of nothing */
	char *memory, *at;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		bytes += query_row_text(stmt, (int)texts[i]).len;
	memory = at = malloc(bytes);
	if (memory == NULL)
		return NULL;
	query_row_numbers(stmt, ret_row);
	ret_row->sandbox = query_row_keep(stmt, COLUMN_SANDBOX, &at);
	ret_row->src = query_row_keep(stmt, COLUMN_SRC, &at);
	ret_row->dst = query_row_keep(stmt, COLUMN_DST, &at);
	ret_row->name = query_row_keep(stmt, COLUMN_NAME, &at);
	ret_row->name_raw = query_row_keep(stmt, COLUMN_NAME_RAW, &at);
	ret_row->rule = query_row_keep(stmt, COLUMN_RULE, &at);
	ret_row->detail = query_row_keep(stmt, COLUMN_DETAIL, &at);
	ret_row->alpn = query_row_keep(stmt, COLUMN_ALPN, &at);
	ret_row->answers = query_row_keep(stmt, COLUMN_ANSWERS, &at);
	return memory;
}
