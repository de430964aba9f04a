/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Every text of a row goes through render_escape before it is put anywhere. Names that the guest
 * chose freely (name_raw) have their backslashes escaped as well, so that the output maps back to one input; the other
 * texts were escaped when they were stored and keep theirs. */
#include "audit/render.h"

#include "audit/record.h"
#include "base/escape.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Longer texts are cut in the short form. In JSON, detail and answers of the longest record fit. */
#define RENDER_SHORT_MAX 512
#define RENDER_TEXT_MAX 8192

#define COLOUR_GREEN "\x1b[32m"
#define COLOUR_RED "\x1b[31m"
#define COLOUR_YELLOW "\x1b[33m"
#define COLOUR_BLUE "\x1b[34m"
#define COLOUR_OFF "\x1b[0m"

struct render_word {
	int64_t value;
	const char *word;
};

static const struct render_word render_qtypes[] = {{1, "A"}, {2, "NS"}, {5, "CNAME"}, {6, "SOA"}, {12, "PTR"},
    {15, "MX"}, {16, "TXT"}, {28, "AAAA"}, {33, "SRV"}, {35, "NAPTR"}, {43, "DS"}, {46, "RRSIG"}, {48, "DNSKEY"},
    {52, "TLSA"}, {64, "SVCB"}, {65, "HTTPS"}, {252, "AXFR"}, {255, "ANY"}, {257, "CAA"}};
static const struct render_word render_rcodes[] = {
    {0, "NOERROR"}, {1, "FORMERR"}, {2, "SERVFAIL"}, {3, "NXDOMAIN"}, {4, "NOTIMP"}, {5, "REFUSED"}};
static const struct render_word render_protos[] = {{IPPROTO_TCP, "tcp"}, {IPPROTO_UDP, "udp"}, {IPPROTO_ICMP, "icmp"},
    {IPPROTO_ICMPV6, "icmp6"}, {IPPROTO_SCTP, "sctp"}};

static const char *
render_lookup(const struct render_word *words, size_t count, int64_t value, const char *prefix, char ret_text[32])
{
	for (size_t i = 0; i < count; i++)
		if (words[i].value == value)
			return words[i].word;
	snprintf(ret_text, 32, "%s%" PRId64, prefix, value);
	return ret_text;
}

#define RENDER_LOOKUP(words, value, prefix, ret_text)                                                                  \
	render_lookup(words, sizeof(words) / sizeof((words)[0]), value, prefix, ret_text)

const char *
render_qtype(int64_t qtype, char ret_text[32])
{
	return RENDER_LOOKUP(render_qtypes, qtype, "TYPE", ret_text);
}

const char *
render_rcode(int64_t rcode, char ret_text[32])
{
	return RENDER_LOOKUP(render_rcodes, rcode, "RCODE", ret_text);
}

const char *
render_proto(int64_t proto, char ret_text[32])
{
	return RENDER_LOOKUP(render_protos, proto, "", ret_text);
}

const char *
render_bytes(int64_t bytes, char ret_text[32])
{
	static const char units[] = "KMGTPE";
	double scaled = (double)bytes;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(ret_text, 32, "%" PRId64, bytes);
		return ret_text;
	}
	for (scaled /= 1024; scaled >= 1023.5 && unit + 2 < sizeof(units); unit++)
		scaled /= 1024;
	snprintf(ret_text, 32, scaled < 9.95 ? "%.1f%c" : "%.0f%c", scaled, units[unit]);
	return ret_text;
}

const char *
render_time_utc(int64_t ts_us, char ret_text[40])
{
	time_t seconds = (time_t)(ts_us / 1000000);
	struct tm tm;
	char date[32];

	if (ts_us < 0 || gmtime_r(&seconds, &tm) == NULL || strftime(date, sizeof(date), "%Y-%m-%dT%H:%M:%S", &tm) == 0)
		snprintf(date, sizeof(date), "0000-00-00T00:00:00");
	snprintf(ret_text, 40, "%.31s.%06dZ", date, ts_us < 0 ? 0 : (int)(ts_us % 1000000));
	return ret_text;
}

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

/* Printable ASCII, backslashes kept; cut at size. */
static const char *
render_escape(struct query_text text, char *ret_text, size_t size)
{
	size_t out = 0;

	for (size_t i = 0; i < text.len && out + 1 < size; i++) {
		uint8_t byte = (uint8_t)text.bytes[i];

		if (byte >= 0x20 && byte <= 0x7e) {
			ret_text[out++] = (char)byte;
			continue;
		}
		if (out + 5 > size)
			break;
		out += (size_t)snprintf(ret_text + out, size - out, "\\x%02x", byte);
	}
	ret_text[out] = '\0';
	return ret_text;
}

/* The row's name in whichever form it is there; "" when there is none. */
static const char *
render_name(const struct query_row *row, char *ret_text, size_t size)
{
	if (row->name.len > 0)
		return render_escape(row->name, ret_text, size);
	escape_terminal(row->name_raw.bytes, row->name_raw.len, ret_text, size);
	return ret_text;
}

static const char *
render_verdict_colour(int64_t verdict)
{
	if (verdict == VERDICT_ALLOWED)
		return COLOUR_GREEN;
	return verdict == VERDICT_FAILED ? COLOUR_YELLOW : COLOUR_RED;
}

/* Stored numbers may be anything: words only for those inside unsigned int. */
static unsigned int
render_index(int64_t value)
{
	return value < 0 || value > INT32_MAX ? UINT32_MAX : (unsigned int)value;
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
		fprintf(out, "  %s", reason_text(render_index(row->reason)));
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
		fprintf(out, "  %s", end_reason_text(render_index(row->end)));
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
		fprintf(out, "  %s", reason_text(render_index(row->reason)));
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
	fputs(event_kind_text(render_index(row->event)), out);
	if (row->uid.set)
		fprintf(out, "  by uid %" PRId64, row->uid.value);
	render_short_text(out, "", row->detail);
}

void
render_short(FILE *out, const struct query_row *row, bool colour)
{
	bool event = row->kind == QUERY_EVENT;
	const char *start = event ? COLOUR_BLUE : render_verdict_colour(row->verdict);
	char time_text[40], sandbox[RENDER_SHORT_MAX];

	render_escape(row->sandbox, sandbox, sizeof(sandbox));
	fprintf(out, "%s  %-12s  %s%-7s%s  ", render_time_local(row->ts_us, time_text),
	    sandbox[0] == '\0' ? "-" : sandbox, colour ? start : "",
	    event ? "event" : verdict_text(render_index(row->verdict)), colour ? COLOUR_OFF : "");
	if (row->kind == QUERY_CONNECTION)
		render_short_connection(out, row);
	else if (row->kind == QUERY_DNS)
		render_short_dns(out, row);
	else
		render_short_event(out, row);
	fputc('\n', out);
}

/* Members in the order they are set; NULL values are left out. */
static void
json_put_text(json_t *object, const char *key, const char *text)
{
	if (text != NULL && text[0] != '\0')
		json_object_set_new(object, key, json_string(text));
}

static void
json_put_bytes(json_t *object, const char *key, struct query_text text)
{
	char escaped[RENDER_TEXT_MAX];

	if (text.bytes != NULL)
		json_put_text(object, key, render_escape(text, escaped, sizeof(escaped)));
}

static void
json_put_integer(json_t *object, const char *key, int64_t value)
{
	json_object_set_new(object, key, json_integer(value));
}

static void
json_put_number(json_t *object, const char *key, struct query_number number)
{
	if (number.set)
		json_put_integer(object, key, number.value);
}

/* A JSON column: as it is when it is what it should be, else as one string. */
static void
json_put_json(json_t *object, const char *key, struct query_text text, bool array)
{
	json_t *value = text.len == 0 ? NULL : json_loadb(text.bytes, text.len, JSON_REJECT_DUPLICATES, NULL);

	if (value != NULL && (array ? json_is_array(value) : json_is_object(value))) {
		json_object_set_new(object, key, value);
		return;
	}
	json_decref(value);
	json_put_bytes(object, key, text);
}

static bool
render_is(struct query_text text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.bytes, word, text.len) == 0;
}

static void
json_put_name(json_t *object, const char *key, const struct query_row *row)
{
	char name[RENDER_TEXT_MAX];

	json_put_text(object, key, render_name(row, name, sizeof(name)));
}

static void
json_put_connection(json_t *object, const struct query_row *row)
{
	char word[40];

	json_put_bytes(object, "src", row->src);
	json_put_integer(object, "sport", row->sport);
	json_put_bytes(object, "dst", row->dst);
	json_put_integer(object, "dport", row->dport);
	json_put_text(object, "proto", render_proto(row->proto, word));
	json_put_name(object, "name", row);
	json_put_text(object, "name_source", name_source_text(render_index(row->name_source)));
	json_put_bytes(object, "alpn", row->alpn);
	json_object_set_new(object, "ech", json_boolean((row->flags & RECORD_FLAG_ECH) != 0));
	json_object_set_new(object, "tunnel", json_boolean((row->flags & RECORD_FLAG_TUNNEL) != 0));
	json_put_number(object, "bytes_out", row->bytes_out);
	json_put_number(object, "bytes_in", row->bytes_in);
	if (row->duration_us.set)
		json_object_set_new(object, "dur_ms", json_real((double)row->duration_us.value / 1000));
	json_put_text(object, "end", end_reason_text(render_index(row->end)));
	if (row->closed_us.set)
		json_put_text(object, "closed", render_time_utc(row->closed_us.value, word));
	if (row->last_us.set)
		json_put_text(object, "last", render_time_utc(row->last_us.value, word));
}

static void
json_put_dns(json_t *object, const struct query_row *row)
{
	char word[32];

	json_put_bytes(object, "src", row->src);
	json_put_integer(object, "sport", row->sport);
	json_put_bytes(object, "dst", row->dst);
	json_put_integer(object, "dport", row->dport);
	json_put_text(object, "proto", render_proto(row->proto, word));
	json_put_name(object, "qname", row);
	json_put_text(object, "qtype", render_qtype(row->qtype, word));
	json_put_text(object, "rcode", render_rcode(row->rcode, word));
	json_put_number(object, "ede", row->ede);
	json_put_json(object, "answers", row->answers, true);
	json_put_integer(object, "ttl", row->ttl_s);
	if (row->upstream_us != 0)
		json_object_set_new(object, "rtt_ms", json_real((double)row->upstream_us / 1000));
}

static const char *
render_kind(const struct query_row *row)
{
	if (row->kind == QUERY_DNS)
		return "dns";
	if (row->kind == QUERY_EVENT)
		return "event";
	return row->verdict == VERDICT_ALLOWED ? "flow" : "deny";
}

static json_t *
render_object(const struct query_row *row)
{
	json_t *object = json_object();
	char word[40];

	json_put_integer(object, "v", RENDER_JSON_VERSION);
	json_put_text(object, "ts", render_time_utc(row->ts_us, word));
	snprintf(word, sizeof(word), "%016" PRIx64, row->id);
	json_put_text(object, "id", word);
	json_put_text(object, "kind", render_kind(row));
	json_put_bytes(object, "sandbox", row->sandbox);
	if (row->sandbox_id != 0)
		json_put_integer(object, "sandbox_id", row->sandbox_id);
	if (row->kind == QUERY_EVENT) {
		json_put_text(object, "event", event_kind_text(render_index(row->event)));
		json_put_number(object, "uid", row->uid);
		json_put_json(object, "detail", row->detail, false);
		return object;
	}
	json_put_text(object, "verdict", verdict_text(render_index(row->verdict)));
	json_put_text(object, "reason", reason_text(render_index(row->reason)));
	json_put_bytes(object, "rule", row->rule);
	if (render_is(row->rule, RECORD_RULE_LEARN))
		json_object_set_new(object, "learned", json_true());
	json_put_bytes(object, "detail", row->detail);
	json_put_integer(object, "policy_rev", row->generation);
	if (row->kind == QUERY_DNS)
		json_put_dns(object, row);
	else
		json_put_connection(object, row);
	json_put_integer(object, "count", row->count);
	return object;
}

int
render_json(FILE *out, const struct query_row *row)
{
	json_t *object = render_object(row);
	char *text = json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(12));

	json_decref(object);
	if (text == NULL)
		return -ENOMEM;
	/* What jansson leaves of the bytes outside 0x20-0x7e, inside JSON columns. */
	for (const char *at = text; *at != '\0'; at++) {
		if (*at == 0x7f)
			fputs("\\u007f", out);
		else
			fputc(*at, out);
	}
	fputc('\n', out);
	free(text);
	return 0;
}
