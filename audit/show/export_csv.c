/* SPDX-License-Identifier: GPL-3.0-or-later */
/* CSV (RFC 4180): one table for all kinds of rows, with a header line. Every cell is quoted, and one that a spreadsheet
 * would take for a formula gets an apostrophe in front, as OWASP's "CSV injection" advises (CASES F-29). */
#include "audit/show/export_formats.h"
#include "audit/show/export_row.h"
#include "audit/record.h"
#include "audit/show/render.h"

#include <inttypes.h>
#include <stddef.h>

enum csv_type {
	CSV_TEXT,   /* struct query_text */
	CSV_COUNT,  /* int64_t */
	CSV_NUMBER, /* struct query_number */
	CSV_TIME,   /* int64_t, microseconds */
	CSV_CLOCK,  /* struct query_number, microseconds since the epoch */
	CSV_WORD,   /* by csv_word */
};

struct csv_column {
	const char *name;
	unsigned int kinds; /* rows that have it; others leave the cell empty */
	enum csv_type type;
	size_t member;
	const char *(*word)(const struct query_row *row, char ret_text[40]);
};

static const char *
csv_kind(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	if (row->kind == QUERY_DNS)
		return "dns";
	return row->kind == QUERY_EVENT ? "event" : "connection";
}

static const char *
csv_id(const struct query_row *row, char ret_text[40])
{
	return export_row_id(row, ret_text);
}

static const char *
csv_verdict(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return render_verdict(row);
}

static const char *
csv_reason(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return render_reason(row);
}

static const char *
csv_proto(const struct query_row *row, char ret_text[40])
{
	return render_proto(row->proto, ret_text);
}

static const char *
csv_name_source(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return name_source_text(render_index(row->name_source));
}

static const char *
csv_end(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return end_reason_text(render_index(row->end));
}

static const char *
csv_tls_version(const struct query_row *row, char ret_text[40])
{
	return row->tls_version.set ? render_tls_version(row->tls_version.value, ret_text) : "";
}

static const char *
csv_ech(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return (row->flags & RECORD_FLAG_ECH) != 0 ? "1" : "0";
}

static const char *
csv_tunnel(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return (row->flags & RECORD_FLAG_TUNNEL) != 0 ? "1" : "0";
}

static const char *
csv_learned(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return export_row_learned(row) ? "1" : "0";
}

static const char *
csv_qtype(const struct query_row *row, char ret_text[40])
{
	return render_qtype(row->qtype, ret_text);
}

static const char *
csv_rcode(const struct query_row *row, char ret_text[40])
{
	return render_rcode(row->rcode, ret_text);
}

static const char *
csv_event(const struct query_row *row, char ret_text[40])
{
	(void)ret_text;
	return event_kind_text(render_index(row->event));
}

#define CSV_TRIED (QUERY_CONNECTION | QUERY_DNS)
#define CSV_AT(member) offsetof(struct query_row, member)

/* Columns are added at the end only: readers may count them. */
static const struct csv_column csv_columns[] = {
    {"kind", QUERY_ALL, CSV_WORD, 0, csv_kind},
    {"time", QUERY_ALL, CSV_TIME, CSV_AT(ts_us), NULL},
    {"id", QUERY_ALL, CSV_WORD, 0, csv_id},
    {"seq", QUERY_ALL, CSV_COUNT, CSV_AT(seq), NULL},
    {"sandbox", QUERY_ALL, CSV_TEXT, CSV_AT(sandbox), NULL},
    {"sandbox_id", QUERY_ALL, CSV_COUNT, CSV_AT(sandbox_id), NULL},
    {"verdict", CSV_TRIED, CSV_WORD, 0, csv_verdict},
    {"reason", CSV_TRIED, CSV_WORD, 0, csv_reason},
    {"rule", CSV_TRIED, CSV_TEXT, CSV_AT(rule), NULL},
    {"detail", QUERY_ALL, CSV_TEXT, CSV_AT(detail), NULL},
    {"generation", CSV_TRIED, CSV_COUNT, CSV_AT(generation), NULL},
    {"learned", CSV_TRIED, CSV_WORD, 0, csv_learned},
    {"count", CSV_TRIED, CSV_COUNT, CSV_AT(count), NULL},
    {"proto", CSV_TRIED, CSV_WORD, 0, csv_proto},
    {"src", CSV_TRIED, CSV_TEXT, CSV_AT(src), NULL},
    {"sport", CSV_TRIED, CSV_COUNT, CSV_AT(sport), NULL},
    {"dst", CSV_TRIED, CSV_TEXT, CSV_AT(dst), NULL},
    {"dport", CSV_TRIED, CSV_COUNT, CSV_AT(dport), NULL},
    {"name", CSV_TRIED, CSV_WORD, 0, NULL},
    {"name_source", QUERY_CONNECTION, CSV_WORD, 0, csv_name_source},
    {"country", QUERY_CONNECTION, CSV_TEXT, CSV_AT(country), NULL},
    {"asn", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(asn), NULL},
    {"as_org", QUERY_CONNECTION, CSV_TEXT, CSV_AT(as_org), NULL},
    {"alpn", QUERY_CONNECTION, CSV_TEXT, CSV_AT(alpn), NULL},
    {"tls_version", QUERY_CONNECTION, CSV_WORD, 0, csv_tls_version},
    {"ja4", QUERY_CONNECTION, CSV_TEXT, CSV_AT(ja4), NULL},
    {"ech", QUERY_CONNECTION, CSV_WORD, 0, csv_ech},
    {"http_method", QUERY_CONNECTION, CSV_TEXT, CSV_AT(http_method), NULL},
    {"tunnel", QUERY_CONNECTION, CSV_WORD, 0, csv_tunnel},
    {"bytes_out", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(bytes_out), NULL},
    {"bytes_in", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(bytes_in), NULL},
    {"packets_out", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(packets_out), NULL},
    {"packets_in", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(packets_in), NULL},
    {"duration_us", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(duration_us), NULL},
    {"dns_us", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(dns_us), NULL},
    {"hello_us", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(hello_us), NULL},
    {"connect_us", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(connect_us), NULL},
    {"first_byte_us", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(first_byte_us), NULL},
    {"closed_time", QUERY_CONNECTION, CSV_CLOCK, CSV_AT(closed_us), NULL},
    {"last_time", QUERY_CONNECTION, CSV_CLOCK, CSV_AT(last_us), NULL},
    {"end", QUERY_CONNECTION, CSV_WORD, 0, csv_end},
    {"community_id", QUERY_CONNECTION, CSV_TEXT, CSV_AT(community_id), NULL},
    {"up_src", QUERY_CONNECTION, CSV_TEXT, CSV_AT(up_src), NULL},
    {"up_sport", QUERY_CONNECTION, CSV_NUMBER, CSV_AT(up_sport), NULL},
    {"up_community_id", QUERY_CONNECTION, CSV_TEXT, CSV_AT(up_community_id), NULL},
    {"qtype", QUERY_DNS, CSV_WORD, 0, csv_qtype},
    {"rcode", QUERY_DNS, CSV_WORD, 0, csv_rcode},
    {"ede", QUERY_DNS, CSV_NUMBER, CSV_AT(ede), NULL},
    {"answers", QUERY_DNS, CSV_TEXT, CSV_AT(answers), NULL},
    {"ttl", QUERY_DNS, CSV_COUNT, CSV_AT(ttl_s), NULL},
    {"upstream_us", QUERY_DNS, CSV_COUNT, CSV_AT(upstream_us), NULL},
    {"leases", QUERY_DNS, CSV_NUMBER, CSV_AT(leases), NULL},
    {"domain", QUERY_DNS, CSV_TEXT, CSV_AT(domain), NULL},
    {"entropy", QUERY_DNS, CSV_NUMBER, CSV_AT(entropy), NULL},
    {"event", QUERY_EVENT, CSV_WORD, 0, csv_event},
    {"uid", QUERY_EVENT, CSV_NUMBER, CSV_AT(uid), NULL},
    {"labels", QUERY_ALL, CSV_TEXT, CSV_AT(labels), NULL},
};
#define CSV_COLUMNS (sizeof(csv_columns) / sizeof(csv_columns[0]))

/* A cell of printable ASCII. */
static void
csv_put(FILE *out, const char *text)
{
	fputc('"', out);
	/* A spreadsheet reads "=1+1", "+1", "-1" and "@SUM()" as formulas. A cell cannot begin with TAB, CR or LF: they
	 * are escaped. */
	if (text[0] == '=' || text[0] == '+' || text[0] == '-' || text[0] == '@')
		fputc('\'', out);
	for (; *text != '\0'; text++) {
		if (*text == '"')
			fputc('"', out);
		fputc(*text, out);
	}
	fputc('"', out);
}

static const char *
csv_number(int64_t value, char ret_text[40])
{
	snprintf(ret_text, 40, "%" PRId64, value);
	return ret_text;
}

static const char *
csv_cell(const struct csv_column *column, const struct query_row *row, char *ret_text, char ret_word[40])
{
	const char *at = (const char *)row + column->member;
	const struct query_number *number = (const void *)at;
	const int64_t *value = (const void *)at;

	switch (column->type) {
	case CSV_TEXT:
		return render_escape(*(const struct query_text *)(const void *)at, ret_text, JSON_LINE_TEXT_MAX);
	case CSV_COUNT:
		return csv_number(*value, ret_word);
	case CSV_NUMBER:
		return number->set ? csv_number(number->value, ret_word) : "";
	case CSV_TIME:
		return render_time_utc(*value, ret_word);
	case CSV_CLOCK:
		return number->set ? render_time_utc(number->value, ret_word) : "";
	case CSV_WORD:
		break;
	}
	return column->word == NULL ? render_name(row, ret_text, JSON_LINE_TEXT_MAX) : column->word(row, ret_word);
}

void
export_csv_begin(FILE *out)
{
	for (size_t i = 0; i < CSV_COLUMNS; i++) {
		fputs(i == 0 ? "" : ",", out);
		csv_put(out, csv_columns[i].name);
	}
	fputs("\r\n", out);
}

int
export_csv_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	char text[JSON_LINE_TEXT_MAX], word[40];

	(void)options;
	for (size_t i = 0; i < CSV_COLUMNS; i++) {
		fputs(i == 0 ? "" : ",", out);
		csv_put(out, (csv_columns[i].kinds & row->kind) == 0 ? "" : csv_cell(&csv_columns[i], row, text, word));
	}
	fputs("\r\n", out);
	return 0;
}
