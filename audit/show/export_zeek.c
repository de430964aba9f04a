/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Rows as Zeek would have logged the same traffic between the guest and the gateway: conn.log,
 * dns.log, ssl.log and http.log in Zeek's tab-separated form, with the columns of Zeek 7 in their order and with their
 * types, so that tools for Zeek read them. What postern does not know (it keeps no payload, no URLs, no answers of
 * origins) is unset, "-". Zeek has no place for a verdict: columns named postern.* follow Zeek's own, as those of its
 * scripts do.
 *
 * A connection is one line, written at its end, as Zeek does. In a log that is not followed, open connections are
 * lines, too, with state S1. */
#include "audit/record.h"
#include "audit/show/export_formats.h"
#include "audit/show/export_row.h"
#include "audit/show/render.h"
#include "policy/reason.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

/* Zeek's words for no value, and for a text without a character. */
#define ZEEK_UNSET "-"
#define ZEEK_EMPTY "(empty)"

/* How a column's value is made of a member of the row. */
enum zeek_as {
	ZEEK_NOTHING = 0, /* unset */
	ZEEK_TEXT,        /* struct query_text; empty is unset */
	ZEEK_ADDRESS,     /* struct query_text; unset unless it is an address */
	ZEEK_COUNT,       /* int64_t; a negative one is 0 */
	ZEEK_PORT,        /* int64_t; one that is no port is 0 */
	ZEEK_NUMBER,      /* struct query_number, as ZEEK_COUNT */
	ZEEK_TIME,        /* int64_t, microseconds, as seconds */
	ZEEK_INTERVAL,    /* struct query_number, microseconds, as seconds */
};

struct zeek_column {
	const char *name, *type;
	/* One of: always this word; of the member at; what the function returns, in ret_text or a literal, NULL being
	 * unset. A set or vector comes joined and escaped. */
	const char *word;
	enum zeek_as as;
	size_t at;
	const char *(*by)(const struct query_row *row, char ret_text[JSON_LINE_TEXT_MAX]);
};

/* Zeek's enum transport_proto. */
static const char *
zeek_proto(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	if (row->proto == IPPROTO_TCP)
		return "tcp";
	if (row->proto == IPPROTO_UDP)
		return "udp";
	return row->proto == IPPROTO_ICMP || row->proto == IPPROTO_ICMPV6 ? "icmp" : "unknown_transport";
}

/* Zeek's ids begin with a letter, too: C for a connection. */
static const char *
zeek_uid(const struct query_row *row, char *ret_text)
{
	char id[24];

	snprintf(ret_text, JSON_LINE_TEXT_MAX, "C%s", export_row_id(row, id));
	return ret_text;
}

static const char *
zeek_service(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	if (export_row_is_tls(row))
		return "ssl";
	return export_row_is_http(row) ? "http" : NULL;
}

/* What was let through, by how it ended. */
static const char *
zeek_state_of_end(enum end_reason end)
{
	switch (end) {
	case END_FIN:
		return "SF";
	case END_RST_GUEST:
		return "RSTO";
	case END_RST_ORIGIN:
	case END_POLICY: /* cut by the gateway: the guest saw a reset from the far side */
	case END_DETACHED:
		return "RSTR";
	case END_REFUSED:
	case END_CONNECT_FAILED:
		return "REJ";
	case END_OPEN:
	case END_TIMEOUT:
		return "S1";
	case END_NEXT_HOST:
	case END_SHUTDOWN:
	case END_GATEWAY_CRASH:
	case END_DAEMON_CRASH:
	case END_ERROR:
	case END_MAX:
		break;
	}
	return "OTH";
}

static const char *
zeek_conn_state(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	if (row->proto == IPPROTO_UDP && (row->bytes_in.set || row->end != END_OPEN))
		return row->bytes_in.set && row->bytes_in.value > 0 ? "SF" : "S0";
	if (row->proto != IPPROTO_TCP)
		return "OTH";
	return zeek_state_of_end(row->end < 0 || row->end >= END_MAX ? END_MAX : (enum end_reason)row->end);
}

static const char *
zeek_count(int64_t value, char *ret_text)
{
	snprintf(ret_text, JSON_LINE_TEXT_MAX, "%" PRIu64, (uint64_t)(value < 0 ? 0 : value));
	return ret_text;
}

/* Refused packets share a row, and it counts them. */
static const char *
zeek_orig_pkts(const struct query_row *row, char *ret_text)
{
	if (!row->packets_out.set)
		return row->last_us.set ? zeek_count(row->count, ret_text) : NULL;
	return zeek_count(row->packets_out.value, ret_text);
}

static const char *
zeek_name(const struct query_row *row, char *ret_text)
{
	return render_name(row, ret_text, JSON_LINE_TEXT_MAX)[0] == '\0' ? NULL : ret_text;
}

static const char *
zeek_verdict(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return render_verdict(row);
}

static const char *
zeek_reason(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return render_reason(row);
}

static const char *
zeek_end(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return record_end_text(render_index(row->end));
}

/* Only a name that the hello named; a lease's is no server_name. */
static const char *
zeek_server_name(const struct query_row *row, char *ret_text)
{
	return export_row_has_server_name(row) ? zeek_name(row, ret_text) : NULL;
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
zeek_ech(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return (row->flags & RECORD_FLAG_ECH) != 0 ? "T" : "F";
}

static const char *
zeek_seconds(int64_t value_us, char *ret_text)
{
	int64_t us = value_us < 0 ? 0 : value_us;

	snprintf(ret_text, JSON_LINE_TEXT_MAX, "%" PRId64 ".%06d", us / 1000000, (int)(us % 1000000));
	return ret_text;
}

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
zeek_qtype_name(const struct query_row *row, char *ret_text)
{
	return render_qtype(row->qtype, ret_text);
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

#define ZEEK_OF(kind, member) .as = kind, .at = offsetof(struct query_row, member)
#define ZEEK_ABSENT .as = ZEEK_NOTHING

/* clang-format off */
#define ZEEK_CONN_ID                                                                                                   \
	{"ts", "time", ZEEK_OF(ZEEK_TIME, ts_us)}, {"uid", "string", .by = zeek_uid},                                  \
	{"id.orig_h", "addr", ZEEK_OF(ZEEK_ADDRESS, src)}, {"id.orig_p", "port", ZEEK_OF(ZEEK_PORT, sport)},           \
	{"id.resp_h", "addr", ZEEK_OF(ZEEK_ADDRESS, dst)}, {"id.resp_p", "port", ZEEK_OF(ZEEK_PORT, dport)}
#define ZEEK_POSTERN                                                                                                   \
	{"postern.sandbox", "string", ZEEK_OF(ZEEK_TEXT, sandbox)}, {"postern.verdict", "string", .by = zeek_verdict}, \
	{"postern.reason", "string", .by = zeek_reason}, {"postern.rule", "string", ZEEK_OF(ZEEK_TEXT, rule)},         \
	{"postern.detail", "string", ZEEK_OF(ZEEK_TEXT, detail)}
/* clang-format on */

static const struct zeek_column zeek_conn_columns[] = {
    ZEEK_CONN_ID,
    {"proto", "enum", .by = zeek_proto},
    {"service", "string", .by = zeek_service},
    {"duration", "interval", ZEEK_OF(ZEEK_INTERVAL, duration_us)},
    {"orig_bytes", "count", ZEEK_OF(ZEEK_NUMBER, bytes_out)},
    {"resp_bytes", "count", ZEEK_OF(ZEEK_NUMBER, bytes_in)},
    {"conn_state", "string", .by = zeek_conn_state},
    {"local_orig", "bool", .word = "T"},
    {"local_resp", "bool", .word = "F"},
    {"missed_bytes", "count", .word = "0"},
    {"history", "string", ZEEK_ABSENT},
    {"orig_pkts", "count", .by = zeek_orig_pkts},
    {"orig_ip_bytes", "count", ZEEK_ABSENT},
    {"resp_pkts", "count", ZEEK_OF(ZEEK_NUMBER, packets_in)},
    {"resp_ip_bytes", "count", ZEEK_ABSENT},
    {"tunnel_parents", "set[string]", ZEEK_ABSENT},
    {"ip_proto", "count", ZEEK_OF(ZEEK_COUNT, proto)},
    {"community_id", "string", ZEEK_OF(ZEEK_TEXT, community_id)},
    {"resp_cc", "string", ZEEK_OF(ZEEK_TEXT, country)},
    {"postern.name", "string", .by = zeek_name},
    ZEEK_POSTERN,
    {"postern.end", "string", .by = zeek_end},
    {"postern.resp_asn", "count", ZEEK_OF(ZEEK_NUMBER, asn)},
};

static const struct zeek_column zeek_dns_columns[] = {
    ZEEK_CONN_ID,
    {"proto", "enum", .by = zeek_proto},
    {"trans_id", "count", ZEEK_ABSENT},
    {"rtt", "interval", .by = zeek_rtt},
    {"query", "string", .by = zeek_query},
    {"qclass", "count", .word = "1"},
    {"qclass_name", "string", .word = "C_INTERNET"},
    {"qtype", "count", ZEEK_OF(ZEEK_COUNT, qtype)},
    {"qtype_name", "string", .by = zeek_qtype_name},
    {"rcode", "count", ZEEK_OF(ZEEK_COUNT, rcode)},
    {"rcode_name", "string", .by = zeek_rcode_name},
    {"AA", "bool", ZEEK_ABSENT},
    {"TC", "bool", ZEEK_ABSENT},
    {"RD", "bool", ZEEK_ABSENT},
    {"RA", "bool", ZEEK_ABSENT},
    {"Z", "count", ZEEK_ABSENT},
    {"answers", "vector[string]", .by = zeek_answers},
    {"TTLs", "vector[interval]", .by = zeek_ttls},
    {"rejected", "bool", .by = zeek_rejected},
    ZEEK_POSTERN,
    {"postern.ede", "count", ZEEK_OF(ZEEK_NUMBER, ede)},
};

static const struct zeek_column zeek_ssl_columns[] = {
    ZEEK_CONN_ID,
    {"version", "string", ZEEK_ABSENT},
    {"cipher", "string", ZEEK_ABSENT},
    {"curve", "string", ZEEK_ABSENT},
    {"server_name", "string", .by = zeek_server_name},
    {"resumed", "bool", ZEEK_ABSENT},
    {"last_alert", "string", ZEEK_ABSENT},
    {"next_protocol", "string", ZEEK_ABSENT},
    {"established", "bool", ZEEK_ABSENT},
    {"ssl_history", "string", ZEEK_ABSENT},
    {"cert_chain_fps", "vector[string]", ZEEK_ABSENT},
    {"client_cert_chain_fps", "vector[string]", ZEEK_ABSENT},
    {"sni_matches_cert", "bool", ZEEK_ABSENT},
    {"ja4", "string", ZEEK_OF(ZEEK_TEXT, ja4)},
    {"postern.version_offered", "string", .by = zeek_tls_offered},
    {"postern.alpn_offered", "string", ZEEK_OF(ZEEK_TEXT, alpn)},
    {"postern.ech", "bool", .by = zeek_ech},
    ZEEK_POSTERN,
};

static const struct zeek_column zeek_http_columns[] = {
    ZEEK_CONN_ID,
    {"trans_depth", "count", ZEEK_ABSENT},
    {"method", "string", ZEEK_OF(ZEEK_TEXT, http_method)},
    {"host", "string", .by = zeek_name},
    {"uri", "string", ZEEK_ABSENT},
    {"referrer", "string", ZEEK_ABSENT},
    {"version", "string", ZEEK_ABSENT},
    {"user_agent", "string", ZEEK_ABSENT},
    {"origin", "string", ZEEK_ABSENT},
    {"request_body_len", "count", ZEEK_ABSENT},
    {"response_body_len", "count", ZEEK_ABSENT},
    {"status_code", "count", ZEEK_ABSENT},
    {"status_msg", "string", ZEEK_ABSENT},
    {"info_code", "count", ZEEK_ABSENT},
    {"info_msg", "string", ZEEK_ABSENT},
    {"tags", "set[enum]", ZEEK_ABSENT},
    {"username", "string", ZEEK_ABSENT},
    {"password", "string", ZEEK_ABSENT},
    {"proxied", "set[string]", ZEEK_ABSENT},
    {"orig_fuids", "vector[string]", ZEEK_ABSENT},
    {"orig_filenames", "vector[string]", ZEEK_ABSENT},
    {"orig_mime_types", "vector[string]", ZEEK_ABSENT},
    {"resp_fuids", "vector[string]", ZEEK_ABSENT},
    {"resp_filenames", "vector[string]", ZEEK_ABSENT},
    {"resp_mime_types", "vector[string]", ZEEK_ABSENT},
    ZEEK_POSTERN,
};

#define ZEEK_COLUMNS(columns) columns, sizeof(columns) / sizeof((columns)[0])

static const struct zeek_log {
	const char *path;
	const struct zeek_column *columns;
	size_t count;
	unsigned int kind;
	bool (*has)(const struct query_row *row); /* which rows of the kind are in it; NULL: all */
} zeek_conn = {"conn", ZEEK_COLUMNS(zeek_conn_columns), QUERY_CONNECTION, NULL},
  zeek_dns = {"dns", ZEEK_COLUMNS(zeek_dns_columns), QUERY_DNS, NULL},
  zeek_ssl = {"ssl", ZEEK_COLUMNS(zeek_ssl_columns), QUERY_CONNECTION, export_row_is_tls},
  zeek_http = {"http", ZEEK_COLUMNS(zeek_http_columns), QUERY_CONNECTION, export_row_is_http};

/* The column's value of the row; NULL: unset. */
static const char *
zeek_value(const struct zeek_column *column, const struct query_row *row, char *ret_text)
{
	const void *at = (const char *)row + column->at;
	const struct query_text *text = at;
	const struct query_number *number = at;
	const int64_t *value = at;

	if (column->by != NULL)
		return column->by(row, ret_text);
	switch (column->as) {
	case ZEEK_NOTHING:
		break;
	case ZEEK_TEXT:
		return text->len == 0 ? NULL : render_escape(*text, ret_text, JSON_LINE_TEXT_MAX);
	case ZEEK_ADDRESS:
		return export_row_address(*text, ret_text)[0] == '\0' ? NULL : ret_text;
	case ZEEK_COUNT:
		return zeek_count(*value, ret_text);
	case ZEEK_PORT:
		return zeek_count(*value > UINT16_MAX ? 0 : *value, ret_text);
	case ZEEK_NUMBER:
		return number->set ? zeek_count(number->value, ret_text) : NULL;
	case ZEEK_TIME:
		return zeek_seconds(*value, ret_text);
	case ZEEK_INTERVAL:
		return number->set ? zeek_seconds(number->value, ret_text) : NULL;
	}
	return column->word;
}

/* Time as in "#open" and "#close". */
static void
zeek_put_stamp(FILE *out, const char *word)
{
	time_t now = time(NULL);
	struct tm tm;
	char text[32] = "";

	if (localtime_r(&now, &tm) != NULL)
		strftime(text, sizeof(text), "%Y-%m-%d-%H-%M-%S", &tm);
	fprintf(out, "#%s\t%s\n", word, text);
}

static void
zeek_put_header(FILE *out, const struct zeek_log *log)
{
	fprintf(out,
	    "#separator \\x09\n#set_separator\t,\n#empty_field\t" ZEEK_EMPTY "\n#unset_field\t" ZEEK_UNSET
	    "\n#path\t%s\n",
	    log->path);
	zeek_put_stamp(out, "open");
	fputs("#fields", out);
	for (size_t i = 0; i < log->count; i++)
		fprintf(out, "\t%s", log->columns[i].name);
	fputs("\n#types", out);
	for (size_t i = 0; i < log->count; i++)
		fprintf(out, "\t%s", log->columns[i].type);
	fputc('\n', out);
}

/* A value that looks like Zeek's words for no value is told from them by escaping its first character. */
static void
zeek_put_value(FILE *out, const char *value)
{
	if (value == NULL)
		fputs(ZEEK_UNSET, out);
	else if (value[0] == '\0')
		fputs(ZEEK_EMPTY, out);
	else if (strcmp(value, ZEEK_UNSET) == 0 || strcmp(value, ZEEK_EMPTY) == 0)
		fprintf(out, "\\x%02x%s", (unsigned char)value[0], value + 1);
	else
		fputs(value, out);
}

/* A line, unless the row is of another log, or an open connection that comes again at its end. */
static int
zeek_put_row(FILE *out, const struct export_options *options, const struct query_row *row, const struct zeek_log *log)
{
	char text[JSON_LINE_TEXT_MAX];
	bool waits = log->kind == QUERY_CONNECTION && options->following && row->end == END_OPEN &&
	    row->verdict == VERDICT_ALLOWED;

	if (row->kind != log->kind || (log->has != NULL && !log->has(row)) || waits)
		return 0;
	for (size_t i = 0; i < log->count; i++) {
		if (i > 0)
			fputc('\t', out);
		zeek_put_value(out, zeek_value(&log->columns[i], row, text));
	}
	fputc('\n', out);
	return 0;
}

void
export_zeek_conn_begin(FILE *out)
{
	zeek_put_header(out, &zeek_conn);
}

int
export_zeek_conn_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	return zeek_put_row(out, options, row, &zeek_conn);
}

void
export_zeek_dns_begin(FILE *out)
{
	zeek_put_header(out, &zeek_dns);
}

int
export_zeek_dns_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	return zeek_put_row(out, options, row, &zeek_dns);
}

void
export_zeek_ssl_begin(FILE *out)
{
	zeek_put_header(out, &zeek_ssl);
}

int
export_zeek_ssl_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	return zeek_put_row(out, options, row, &zeek_ssl);
}

void
export_zeek_http_begin(FILE *out)
{
	zeek_put_header(out, &zeek_http);
}

int
export_zeek_http_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	return zeek_put_row(out, options, row, &zeek_http);
}

void
export_zeek_end(FILE *out)
{
	zeek_put_stamp(out, "close");
}
