/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/query/query_row.h"

#include <stddef.h>
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
	COLUMN_UID,
	COLUMN_TLS_VERSION,
	COLUMN_JA4,
	COLUMN_HTTP_METHOD,
	COLUMN_COUNTRY,
	COLUMN_AS_ORG,
	COLUMN_ASN,
	COLUMN_DNS_US,
	COLUMN_HELLO_US,
	COLUMN_CONNECT_US,
	COLUMN_FIRST_BYTE_US,
	COLUMN_PACKETS_OUT,
	COLUMN_PACKETS_IN,
	COLUMN_COMMUNITY_ID,
	COLUMN_UP_SRC,
	COLUMN_UP_COMMUNITY_ID,
	COLUMN_UP_SPORT,
	COLUMN_LEASES,
	COLUMN_ENTROPY,
	COLUMN_DOMAIN,
	COLUMN_LABELS
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
	row->tls_version = query_row_number(stmt, COLUMN_TLS_VERSION);
	row->asn = query_row_number(stmt, COLUMN_ASN);
	row->dns_us = query_row_number(stmt, COLUMN_DNS_US);
	row->hello_us = query_row_number(stmt, COLUMN_HELLO_US);
	row->connect_us = query_row_number(stmt, COLUMN_CONNECT_US);
	row->first_byte_us = query_row_number(stmt, COLUMN_FIRST_BYTE_US);
	row->packets_out = query_row_number(stmt, COLUMN_PACKETS_OUT);
	row->packets_in = query_row_number(stmt, COLUMN_PACKETS_IN);
	row->up_sport = query_row_number(stmt, COLUMN_UP_SPORT);
	row->leases = query_row_number(stmt, COLUMN_LEASES);
	row->entropy = query_row_number(stmt, COLUMN_ENTROPY);
}

/* Texts, and the members they go to. */
static const struct {
	enum query_row_column column;
	size_t member;
} query_row_texts[] = {
    {COLUMN_SANDBOX, offsetof(struct query_row, sandbox)},
    {COLUMN_SRC, offsetof(struct query_row, src)},
    {COLUMN_DST, offsetof(struct query_row, dst)},
    {COLUMN_NAME, offsetof(struct query_row, name)},
    {COLUMN_NAME_RAW, offsetof(struct query_row, name_raw)},
    {COLUMN_RULE, offsetof(struct query_row, rule)},
    {COLUMN_DETAIL, offsetof(struct query_row, detail)},
    {COLUMN_ALPN, offsetof(struct query_row, alpn)},
    {COLUMN_ANSWERS, offsetof(struct query_row, answers)},
    {COLUMN_JA4, offsetof(struct query_row, ja4)},
    {COLUMN_HTTP_METHOD, offsetof(struct query_row, http_method)},
    {COLUMN_COUNTRY, offsetof(struct query_row, country)},
    {COLUMN_AS_ORG, offsetof(struct query_row, as_org)},
    {COLUMN_COMMUNITY_ID, offsetof(struct query_row, community_id)},
    {COLUMN_UP_SRC, offsetof(struct query_row, up_src)},
    {COLUMN_UP_COMMUNITY_ID, offsetof(struct query_row, up_community_id)},
    {COLUMN_DOMAIN, offsetof(struct query_row, domain)},
    {COLUMN_LABELS, offsetof(struct query_row, labels)},
};
#define QUERY_ROW_TEXTS (sizeof(query_row_texts) / sizeof(query_row_texts[0]))

void *
query_row_take(sqlite3_stmt *stmt, struct query_row *ret_row)
{
	size_t bytes = 1; /* never a malloc of nothing */
	char *memory, *at;

	for (size_t i = 0; i < QUERY_ROW_TEXTS; i++)
		bytes += query_row_text(stmt, (int)query_row_texts[i].column).len;
	memory = at = malloc(bytes);
	if (memory == NULL)
		return NULL;
	query_row_numbers(stmt, ret_row);
	for (size_t i = 0; i < QUERY_ROW_TEXTS; i++) {
		struct query_text text = query_row_keep(stmt, query_row_texts[i].column, &at);

		memcpy((char *)ret_row + query_row_texts[i].member, &text, sizeof(text));
	}
	return memory;
}
