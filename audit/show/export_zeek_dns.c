/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Zeek's dns.log. */
#include "audit/show/export_formats.h"
#include "audit/show/export_zeek.h"
#include "audit/show/render.h"
#include "policy/reason.h"

#include <inttypes.h>

static const char *
zeek_rtt(const struct query_row *row, char *ret_text)
{
	return row->upstream_us != 0 ? zeek_seconds(row->upstream_us, ret_text) : NULL;
}

static const char *
zeek_query(const struct query_row *row, char *ret_text)
{
	return render_name(row, ret_text, JSON_LINE_TEXT_MAX)[0] == '\0' ? "." : ret_text;
}

static const char *
zeek_qclass(const struct query_row *row, char *ret_text)
{
	(void)row, (void)ret_text;
	return "1";
}

static const char *
zeek_qclass_name(const struct query_row *row, char *ret_text)
{
	(void)row, (void)ret_text;
	return "C_INTERNET";
}

static const char *
zeek_qtype(const struct query_row *row, char *ret_text)
{
	return zeek_count(row->qtype, ret_text);
}

static const char *
zeek_qtype_name(const struct query_row *row, char *ret_text)
{
	return render_qtype(row->qtype, ret_text);
}

static const char *
zeek_rcode(const struct query_row *row, char *ret_text)
{
	return zeek_count(row->rcode, ret_text);
}

static const char *
zeek_rcode_name(const struct query_row *row, char *ret_text)
{
	return render_rcode(row->rcode, ret_text);
}

/* One item of a vector, the set separator escaped. Returns where the next one goes. */
static size_t
zeek_put_answer(const char *data, char *ret_text, size_t at)
{
	if (data[0] == '\0')
		data = ZEEK_EMPTY;
	if (at > 0 && at + 1 < JSON_LINE_TEXT_MAX)
		ret_text[at++] = ',';
	for (; *data != '\0' && at + sizeof("\\x2c") < JSON_LINE_TEXT_MAX; data++) {
		if (*data == ',')
			at += (size_t)snprintf(ret_text + at, JSON_LINE_TEXT_MAX - at, "\\x2c");
		else
			ret_text[at++] = *data;
	}
	ret_text[at] = '\0';
	return at;
}

/* Without the types that postern writes before them. */
static const char *
zeek_answers(const struct query_row *row, char *ret_text)
{
	json_t *answers = export_row_answers(row, "data"), *answer;
	size_t i, at = 0;

	json_array_foreach(answers, i, answer) at =
	    zeek_put_answer(json_string_value(json_object_get(answer, "data")), ret_text, at);
	i = json_array_size(answers);
	json_decref(answers);
	return i == 0 ? NULL : ret_text;
}

/* One for each answer: all are handed out with the same. */
static const char *
zeek_ttls(const struct query_row *row, char *ret_text)
{
	json_t *answers = export_row_answers(row, "data");
	size_t count = json_array_size(answers), at = 0;

	json_decref(answers);
	for (size_t i = 0; i < count && at + 32 < JSON_LINE_TEXT_MAX; i++)
		at += (size_t)snprintf(ret_text + at, JSON_LINE_TEXT_MAX - at, "%s%" PRId64 ".000000",
		    i == 0 ? "" : ",", row->ttl_s < 0 || row->ttl_s > INT32_MAX ? 0 : row->ttl_s);
	return count == 0 ? NULL : ret_text;
}

static const char *
zeek_rejected(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return row->verdict == VERDICT_DENIED || row->verdict == VERDICT_LIMITED ? "T" : "F";
}

static const char *
zeek_ede(const struct query_row *row, char *ret_text)
{
	return zeek_number(row->ede, ret_text);
}

static const struct zeek_column zeek_dns_columns[] = {
    ZEEK_CONN_ID,
    {"proto", "enum", zeek_proto},
    {"trans_id", "count", NULL},
    {"rtt", "interval", zeek_rtt},
    {"query", "string", zeek_query},
    {"qclass", "count", zeek_qclass},
    {"qclass_name", "string", zeek_qclass_name},
    {"qtype", "count", zeek_qtype},
    {"qtype_name", "string", zeek_qtype_name},
    {"rcode", "count", zeek_rcode},
    {"rcode_name", "string", zeek_rcode_name},
    {"AA", "bool", NULL},
    {"TC", "bool", NULL},
    {"RD", "bool", NULL},
    {"RA", "bool", NULL},
    {"Z", "count", NULL},
    {"answers", "vector[string]", zeek_answers},
    {"TTLs", "vector[interval]", zeek_ttls},
    {"rejected", "bool", zeek_rejected},
    ZEEK_POSTERN,
    {"postern.ede", "count", zeek_ede},
};

void
export_zeek_dns_begin(FILE *out)
{
	zeek_put_header(out, "dns", zeek_dns_columns, ZEEK_COUNT(zeek_dns_columns));
}

int
export_zeek_dns_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	(void)options;
	if (row->kind != QUERY_DNS)
		return 0;
	return zeek_put_row(out, zeek_dns_columns, ZEEK_COUNT(zeek_dns_columns), row);
}
