/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Rows as Zeek would have logged the same traffic between the guest and the gateway: conn.log,
 * dns.log, ssl.log and http.log in Zeek's tab-separated form, with the columns of Zeek 7 in their order and their
 * types, so that what reads Zeek reads this. What postern does not know (it keeps no payload, no URLs, no server's
 * answers) is unset,
 * "-". Zeek has no place for a verdict: columns named postern.* follow behind Zeek's own, as those of its scripts do.
 *
 * A connection is one line, written at its end, as Zeek does; of a log that is not followed, open ones are lines, too,
 * with state S1. */
#include "audit/show/export_formats.h"
#include "audit/show/export_zeek.h"
#include "audit/record.h"
#include "audit/show/render.h"
#include "policy/reason.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <string.h>
#include <time.h>

const char *
zeek_text(struct query_text text, char *ret_text)
{
	return text.len == 0 ? NULL : render_escape(text, ret_text, JSON_LINE_TEXT_MAX);
}

const char *
zeek_count(int64_t value, char *ret_text)
{
	snprintf(ret_text, JSON_LINE_TEXT_MAX, "%" PRIu64, (uint64_t)(value < 0 ? 0 : value));
	return ret_text;
}

const char *
zeek_number(struct query_number number, char *ret_text)
{
	return number.set ? zeek_count(number.value, ret_text) : NULL;
}

/* Microseconds as seconds. */
const char *
zeek_seconds(int64_t value_us, char *ret_text)
{
	int64_t us = value_us < 0 ? 0 : value_us;

	snprintf(ret_text, JSON_LINE_TEXT_MAX, "%" PRId64 ".%06d", us / 1000000, (int)(us % 1000000));
	return ret_text;
}

static const char *
zeek_port(int64_t port, char *ret_text)
{
	return zeek_count(port > UINT16_MAX ? 0 : port, ret_text);
}

const char *
zeek_ts(const struct query_row *row, char *ret_text)
{
	return zeek_seconds(row->ts_us, ret_text);
}

/* Zeek's begin with a letter, too: C for a connection. */
const char *
zeek_uid(const struct query_row *row, char *ret_text)
{
	char id[24];

	snprintf(ret_text, JSON_LINE_TEXT_MAX, "C%s", export_row_id(row, id));
	return ret_text;
}

static const char *
zeek_address(struct query_text text, char *ret_text)
{
	return export_row_address(text, ret_text)[0] == '\0' ? NULL : ret_text;
}

const char *
zeek_orig_h(const struct query_row *row, char *ret_text)
{
	return zeek_address(row->src, ret_text);
}

const char *
zeek_orig_p(const struct query_row *row, char *ret_text)
{
	return zeek_port(row->sport, ret_text);
}

const char *
zeek_resp_h(const struct query_row *row, char *ret_text)
{
	return zeek_address(row->dst, ret_text);
}

const char *
zeek_resp_p(const struct query_row *row, char *ret_text)
{
	return zeek_port(row->dport, ret_text);
}

/* Zeek's enum transport_proto. */
const char *
zeek_proto(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	if (row->proto == IPPROTO_TCP)
		return "tcp";
	if (row->proto == IPPROTO_UDP)
		return "udp";
	return row->proto == IPPROTO_ICMP || row->proto == IPPROTO_ICMPV6 ? "icmp" : "unknown_transport";
}

static const char *
zeek_service(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	if (export_row_is_tls(row))
		return "ssl";
	return export_row_is_http(row) ? "http" : NULL;
}

static const char *
zeek_duration(const struct query_row *row, char *ret_text)
{
	return row->duration_us.set ? zeek_seconds(row->duration_us.value, ret_text) : NULL;
}

static const char *
zeek_orig_bytes(const struct query_row *row, char *ret_text)
{
	return zeek_number(row->bytes_out, ret_text);
}

static const char *
zeek_resp_bytes(const struct query_row *row, char *ret_text)
{
	return zeek_number(row->bytes_in, ret_text);
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
zeek_true(const struct query_row *row, char *ret_text)
{
	(void)row, (void)ret_text;
	return "T";
}

static const char *
zeek_false(const struct query_row *row, char *ret_text)
{
	(void)row, (void)ret_text;
	return "F";
}

static const char *
zeek_zero(const struct query_row *row, char *ret_text)
{
	(void)row, (void)ret_text;
	return "0";
}

/* Refused packets share a row, and it counts them. */
static const char *
zeek_orig_pkts(const struct query_row *row, char *ret_text)
{
	if (!row->packets_out.set && row->last_us.set)
		return zeek_count(row->count, ret_text);
	return zeek_number(row->packets_out, ret_text);
}

static const char *
zeek_resp_pkts(const struct query_row *row, char *ret_text)
{
	return zeek_number(row->packets_in, ret_text);
}

static const char *
zeek_ip_proto(const struct query_row *row, char *ret_text)
{
	return zeek_count(row->proto, ret_text);
}

static const char *
zeek_community_id(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->community_id, ret_text);
}

const char *
zeek_name(const struct query_row *row, char *ret_text)
{
	return render_name(row, ret_text, JSON_LINE_TEXT_MAX)[0] == '\0' ? NULL : ret_text;
}

const char *
zeek_sandbox(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->sandbox, ret_text);
}

const char *
zeek_verdict(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return render_verdict(row);
}

const char *
zeek_reason(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return render_reason(row);
}

const char *
zeek_rule(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->rule, ret_text);
}

const char *
zeek_detail(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->detail, ret_text);
}

static const char *
zeek_end(const struct query_row *row, char *ret_text)
{
	(void)ret_text;
	return end_reason_text(render_index(row->end));
}

static const char *
zeek_country(const struct query_row *row, char *ret_text)
{
	return zeek_text(row->country, ret_text);
}

static const char *
zeek_asn(const struct query_row *row, char *ret_text)
{
	return zeek_number(row->asn, ret_text);
}

static const struct zeek_column zeek_conn_columns[] = {
    ZEEK_CONN_ID,
    {"proto", "enum", zeek_proto},
    {"service", "string", zeek_service},
    {"duration", "interval", zeek_duration},
    {"orig_bytes", "count", zeek_orig_bytes},
    {"resp_bytes", "count", zeek_resp_bytes},
    {"conn_state", "string", zeek_conn_state},
    {"local_orig", "bool", zeek_true},
    {"local_resp", "bool", zeek_false},
    {"missed_bytes", "count", zeek_zero},
    {"history", "string", NULL},
    {"orig_pkts", "count", zeek_orig_pkts},
    {"orig_ip_bytes", "count", NULL},
    {"resp_pkts", "count", zeek_resp_pkts},
    {"resp_ip_bytes", "count", NULL},
    {"tunnel_parents", "set[string]", NULL},
    {"ip_proto", "count", zeek_ip_proto},
    {"community_id", "string", zeek_community_id},
    {"resp_cc", "string", zeek_country},
    {"postern.name", "string", zeek_name},
    ZEEK_POSTERN,
    {"postern.end", "string", zeek_end},
    {"postern.resp_asn", "count", zeek_asn},
};

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

void
zeek_put_header(FILE *out, const char *path, const struct zeek_column *columns, size_t count)
{
	fprintf(out,
	    "#separator \\x09\n#set_separator\t,\n#empty_field\t" ZEEK_EMPTY "\n#unset_field\t" ZEEK_UNSET
	    "\n#path\t%s\n",
	    path);
	zeek_put_stamp(out, "open");
	fputs("#fields", out);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "\t%s", columns[i].name);
	fputs("\n#types", out);
	for (size_t i = 0; i < count; i++)
		fprintf(out, "\t%s", columns[i].type);
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

int
zeek_put_row(FILE *out, const struct zeek_column *columns, size_t count, const struct query_row *row)
{
	char text[JSON_LINE_TEXT_MAX];

	for (size_t i = 0; i < count; i++) {
		if (i > 0)
			fputc('\t', out);
		zeek_put_value(out, columns[i].value == NULL ? NULL : columns[i].value(row, text));
	}
	fputc('\n', out);
	return 0;
}

bool
zeek_waits(const struct export_options *options, const struct query_row *row)
{
	return options->following && row->end == END_OPEN && row->verdict == VERDICT_ALLOWED;
}

void
export_zeek_conn_begin(FILE *out)
{
	zeek_put_header(out, "conn", zeek_conn_columns, ZEEK_COUNT(zeek_conn_columns));
}

int
export_zeek_conn_row(FILE *out, const struct export_options *options, const struct query_row *row)
{
	if (row->kind != QUERY_CONNECTION || zeek_waits(options, row))
		return 0;
	return zeek_put_row(out, zeek_conn_columns, ZEEK_COUNT(zeek_conn_columns), row);
}

void
export_zeek_end(FILE *out)
{
	zeek_put_stamp(out, "close");
}
