/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every text of a row goes through render_escape before it is put anywhere. Names that the guest
 * chose freely (name_raw) have their backslashes escaped as well, so that the output maps back to one input; the other
 * texts were escaped when they were stored and keep theirs. */
#include "audit/show/render.h"

#include "audit/record.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longer texts are cut. */
#define RENDER_SHORT_MAX 512

#define COLOUR_GREEN "\x1b[32m"
#define COLOUR_RED "\x1b[31m"
#define COLOUR_YELLOW "\x1b[33m"
#define COLOUR_BLUE "\x1b[34m"
#define COLOUR_OFF "\x1b[0m"

/* Local time with milliseconds. */
static const char *
render_time_local(int64_t ts_us, char ret_text[40])
{
	time_t seconds = (time_t)(ts_us / 1000000);
	struct tm tm;
	char date[32];

	if (ts_us < 0 || localtime_r(&seconds, &tm) == NULL ||
	    strftime(date, sizeof(date), "%Y-%m-%d %H:%M:%S", &tm) == 0)
		snprintf(date, sizeof(date), "0000-00-00 00:00:00");
	snprintf(ret_text, 40, "%.31s.%03d", date, ts_us < 0 ? 0 : (int)(ts_us / 1000 % 1000));
	return ret_text;
}

static const char *
render_verdict_colour(int64_t verdict)
{
	if (verdict == VERDICT_ALLOWED)
		return COLOUR_GREEN;
	return verdict == VERDICT_FAILED ? COLOUR_YELLOW : COLOUR_RED;
}

/* "name:port (address)", "address:port", "[v6]:port"; no port where there is none; "-" for many addresses. */
static void
render_target(FILE *out, const struct query_row *row)
{
	char name[RENDER_SHORT_MAX], dst[RENDER_SHORT_MAX], port[24] = "";
	bool bracket;

	render_name(row, name, sizeof(name));
	render_escape(row->dst, dst, sizeof(dst));
	if (row->dport != 0)
		snprintf(port, sizeof(port), ":%" PRId64, row->dport);
	bracket = strchr(dst, ':') != NULL && row->dport != 0;
	if (name[0] != '\0' && dst[0] != '\0')
		fprintf(out, "%s%s (%s)", name, port, dst);
	else if (dst[0] == '\0')
		fprintf(out, "%s%s", name[0] == '\0' ? "-" : name, port);
	else
		fprintf(out, "%s%s%s%s", bracket ? "[" : "", dst, bracket ? "]" : "", port);
}

static void
render_short_text(FILE *out, const char *label, struct query_text text)
{
	char escaped[RENDER_SHORT_MAX];

	if (text.len > 0)
		fprintf(out, "  %s%s", label, render_escape(text, escaped, sizeof(escaped)));
}

static void
render_short_connection(FILE *out, const struct query_row *row)
{
	char proto[32], sent[32], received[32];

	fprintf(out, "%-5s ", render_proto(row->proto, proto));
	render_target(out, row);
	if (row->reason != REASON_ALLOWED)
		fprintf(out, "  %s", render_reason(row));
	render_short_text(out, "", row->rule);
	render_short_text(out, "", row->detail);
	if (row->count > 1)
		fprintf(out, "  x%" PRId64, row->count);
	if (row->bytes_out.set && row->bytes_in.set)
		fprintf(out, "  out %s in %s", render_bytes(row->bytes_out.value, sent),
		    render_bytes(row->bytes_in.value, received));
	if (row->duration_us.set && row->duration_us.value >= 0)
		fprintf(out, "  %" PRId64 ".%03ds", row->duration_us.value / 1000000,
		    (int)(row->duration_us.value / 1000 % 1000));
	if (row->end != END_REFUSED)
		fprintf(out, "  %s", record_end_text(render_index(row->end)));
}

/* "A 1.2.3.4, CNAME x.y" from the JSON array, "NODATA" when it is empty; the text itself when it is no array. */
static void
render_short_answers(FILE *out, struct query_text answers)
{
	json_t *array = answers.len == 0 ? NULL : json_loadb(answers.bytes, answers.len, 0, NULL);
	char escaped[RENDER_SHORT_MAX];
	size_t i;
	json_t *item;

	if (!json_is_array(array)) {
		if (answers.len > 0)
			fprintf(out, " -> %s", render_escape(answers, escaped, sizeof(escaped)));
		json_decref(array);
		return;
	}
	if (json_array_size(array) == 0)
		fputs(" -> NODATA", out);
	json_array_foreach(array, i, item)
	{
		struct query_text text = {.bytes = json_string_value(item), .len = json_string_length(item)};

		fprintf(out, "%s%s", i == 0 ? " -> " : ", ", render_escape(text, escaped, sizeof(escaped)));
	}
	json_decref(array);
}

static void
render_short_dns(FILE *out, const struct query_row *row)
{
	char name[RENDER_SHORT_MAX], word[32];

	render_name(row, name, sizeof(name));
	fprintf(out, "dns   %s", name[0] == '\0' ? "." : name);
	fprintf(out, " %s", render_qtype(row->qtype, word));
	if (row->rcode == 0 && row->verdict == VERDICT_ALLOWED && row->answers.len > 0)
		render_short_answers(out, row->answers);
	else
		fprintf(out, " -> %s", render_rcode(row->rcode, word));
	if (row->reason != REASON_ALLOWED)
		fprintf(out, "  %s", render_reason(row));
	render_short_text(out, "", row->rule);
	render_short_text(out, "", row->detail);
	if (row->count > 1)
		fprintf(out, "  x%" PRId64, row->count);
	if (row->rcode == 0 && row->verdict == VERDICT_ALLOWED && row->ttl_s > 0)
		fprintf(out, "  ttl %" PRId64, row->ttl_s);
}

static void
render_short_event(FILE *out, const struct query_row *row)
{
	fputs(record_event_text(render_index(row->event)), out);
	if (row->uid.set)
		fprintf(out, "  by uid %" PRId64, row->uid.value);
	render_short_text(out, "", row->detail);
}

/* All but the newline. */
static void
render_line(FILE *out, const struct query_row *row, bool colour)
{
	bool event = row->kind == QUERY_EVENT;
	const char *start = event ? COLOUR_BLUE : render_verdict_colour(row->verdict);
	char time_text[40], sandbox[RENDER_SHORT_MAX];

	render_escape(row->sandbox, sandbox, sizeof(sandbox));
	fprintf(out, "%s  %-12s  %s%-7s%s  ", render_time_local(row->ts_us, time_text),
	    sandbox[0] == '\0' ? "-" : sandbox, colour ? start : "", event ? "event" : render_verdict(row),
	    colour ? COLOUR_OFF : "");
	if (row->kind == QUERY_CONNECTION)
		render_short_connection(out, row);
	else if (row->kind == QUERY_DNS)
		render_short_dns(out, row);
	else
		render_short_event(out, row);
}

void
render_line_short(FILE *out, const struct query_row *row, bool colour)
{
	render_line(out, row, colour);
	fputc('\n', out);
}

static void
render_wide_text(FILE *out, const char *key, struct query_text text)
{
	char escaped[RENDER_SHORT_MAX];

	if (text.len > 0)
		fprintf(out, "  %s=%s", key, render_escape(text, escaped, sizeof(escaped)));
}

static void
render_wide_number(FILE *out, const char *key, struct query_number number)
{
	if (number.set)
		fprintf(out, "  %s=%" PRId64, key, number.value);
}

/* Milliseconds with three digits: "dns=12.500ms". */
static void
render_wide_time(FILE *out, const char *key, struct query_number us)
{
	if (us.set && us.value >= 0)
		fprintf(out, "  %s=%" PRId64 ".%03dms", key, us.value / 1000, (int)(us.value % 1000));
}

/* "src=172.16.0.2:40000", "src=[fd00::2]:40000". */
static void
render_wide_end(FILE *out, const char *key, struct query_text addr, int64_t port)
{
	char escaped[RENDER_SHORT_MAX];
	bool bracket;

	if (addr.len == 0)
		return;
	render_escape(addr, escaped, sizeof(escaped));
	bracket = strchr(escaped, ':') != NULL;
	fprintf(out, "  %s=%s%s%s:%" PRId64, key, bracket ? "[" : "", escaped, bracket ? "]" : "", port);
}

static void
render_wide_connection(FILE *out, const struct query_row *row)
{
	char word[32];

	render_wide_end(out, "src", row->src, row->sport);
	if (row->up_sport.set)
		render_wide_end(out, "up", row->up_src, row->up_sport.value);
	fprintf(out, "  proof=%s", record_name_source_text(render_index(row->name_source)));
	if (row->tls_version.set)
		fprintf(out, "  tls=%s", render_tls_version(row->tls_version.value, word));
	render_wide_text(out, "ja4", row->ja4);
	render_wide_text(out, "alpn", row->alpn);
	render_wide_text(out, "method", row->http_method);
	render_wide_text(out, "country", row->country);
	render_wide_number(out, "asn", row->asn);
	render_wide_text(out, "as", row->as_org);
	render_wide_time(out, "dns", row->dns_us);
	render_wide_time(out, "hello", row->hello_us);
	render_wide_time(out, "connect", row->connect_us);
	render_wide_time(out, "first", row->first_byte_us);
	if (row->packets_out.set && row->packets_in.set)
		fprintf(out, "  packets=%" PRId64 "/%" PRId64, row->packets_out.value, row->packets_in.value);
	render_wide_text(out, "id", row->community_id);
	render_wide_text(out, "up_id", row->up_community_id);
}

static void
render_wide_dns(FILE *out, const struct query_row *row)
{
	char word[32];

	render_wide_end(out, "src", row->src, row->sport);
	render_wide_end(out, "server", row->dst, row->dport);
	fprintf(out, "  proto=%s", render_proto(row->proto, word));
	if (row->upstream_us > 0)
		render_wide_time(out, "upstream", (struct query_number){.set = true, .value = row->upstream_us});
	render_wide_number(out, "leases", row->leases);
	render_wide_text(out, "domain", row->domain);
	if (row->entropy.set && row->entropy.value >= 0)
		fprintf(out, "  entropy=%" PRId64 ".%02d", row->entropy.value / 100, (int)(row->entropy.value % 100));
}

void
render_line_wide(FILE *out, const struct query_row *row, bool colour)
{
	render_line(out, row, colour);
	if (row->kind == QUERY_CONNECTION)
		render_wide_connection(out, row);
	else if (row->kind == QUERY_DNS)
		render_wide_dns(out, row);
	fputc('\n', out);
}
