/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Zeek's logs of what a connection said first: ssl.log and http.log. */
#include "audit/show/export_formats.h"
#include "audit/show/export_zeek.h"
#include "audit/record.h"
#include "policy/reason.h"

/* Only a name that was said in the hello; a lease's is no server_name. */
static const char *
zeek_server_name(const struct query_row *row, char *ret_text)
{
	if (row->name_source != NAME_SOURCE_SNI && row->name_source != NAME_SOURCE_CLAIM)
		return NULL;
	return zeek_name(row, ret_text);
}

static const char *
zeek_ja4(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->ja4, ret_text);
}

/* As Zeek writes versions: TLSv13. */
static const char *
zeek_tls_offered(const struct query_row *row, char *ret_text)
{
	const char *version = export_row_tls_version(row);

	if (version == NULL)
		return NULL;
	snprintf(ret_text, JSON_LINE_TEXT_MAX, "TLSv1%c", version[2]);
	return ret_text;
}

static const char *
zeek_alpn(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->alpn, ret_text);
}

static const char *
zeek_ech(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return (row->flags & RECORD_FLAG_ECH) != 0 ? "T" : "F";
}

static const char *
zeek_method(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->http_method, ret_text);
}

static const struct zeek_column zeek_ssl_columns[] = {
    ZEEK_CONN_ID,
    {"version", "string", NULL},
    {"cipher", "string", NULL},
    {"curve", "string", NULL},
    {"server_name", "string", zeek_server_name},
    {"resumed", "bool", NULL},
    {"last_alert", "string", NULL},
    {"next_protocol", "string", NULL},
    {"established", "bool", NULL},
    {"ssl_history", "string", NULL},
    {"cert_chain_fps", "vector[string]", NULL},
    {"client_cert_chain_fps", "vector[string]", NULL},
    {"sni_matches_cert", "bool", NULL},
    {"ja4", "string", zeek_ja4},
    {"postern.version_offered", "string", zeek_tls_offered},
    {"postern.alpn_offered", "string", zeek_alpn},
    {"postern.ech", "bool", zeek_ech},
    ZEEK_POSTERN,
};

static const struct zeek_column zeek_http_columns[] = {
    ZEEK_CONN_ID,
    {"trans_depth", "count", NULL},
    {"method", "string", zeek_method},
    {"host", "string", zeek_name},
    {"uri", "string", NULL},
    {"referrer", "string", NULL},
    {"version", "string", NULL},
    {"user_agent", "string", NULL},
    {"origin", "string", NULL},
    {"request_body_len", "count", NULL},
    {"response_body_len", "count", NULL},
    {"status_code", "count", NULL},
    {"status_msg", "string", NULL},
    {"info_code", "count", NULL},
    {"info_msg", "string", NULL},
    {"tags", "set[enum]", NULL},
    {"username", "string", NULL},
    {"password", "string", NULL},
    {"proxied", "set[string]", NULL},
    {"orig_fuids", "vector[string]", NULL},
    {"orig_filenames", "vector[string]", NULL},
    {"orig_mime_types", "vector[string]", NULL},
    {"resp_fuids", "vector[string]", NULL},
    {"resp_filenames", "vector[string]", NULL},
    {"resp_mime_types", "vector[string]", NULL},
    ZEEK_POSTERN,
};

void
export_zeek_ssl_begin(FILE *out)
{
	zeek_put_header(out, "ssl", zeek_ssl_columns, ZEEK_COUNT(zeek_ssl_columns));
}

int
export_zeek_ssl_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	if (row->kind != QUERY_CONNECTION || !export_row_is_tls(row) || zeek_waits(options, row))
		return 0;
	return zeek_put_row(out, zeek_ssl_columns, ZEEK_COUNT(zeek_ssl_columns), row);
}

void
export_zeek_http_begin(FILE *out)
{
	zeek_put_header(out, "http", zeek_http_columns, ZEEK_COUNT(zeek_http_columns));
}

int
export_zeek_http_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	if (row->kind != QUERY_CONNECTION || !export_row_is_http(row) || zeek_waits(options, row))
		return 0;
	return zeek_put_row(out, zeek_http_columns, ZEEK_COUNT(zeek_http_columns), row);
}
