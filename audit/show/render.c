/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/render.h"

#include "audit/columns.h"
#include "audit/record.h"
#include "base/escape.h"
#include "policy/verdict.h"

#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

struct render_number_word {
	int64_t value;
	const char *word;
};

static const struct render_number_word render_qtypes[] = {{1, "A"}, {2, "NS"}, {5, "CNAME"}, {6, "SOA"}, {12, "PTR"},
    {15, "MX"}, {16, "TXT"}, {28, "AAAA"}, {33, "SRV"}, {35, "NAPTR"}, {43, "DS"}, {46, "RRSIG"}, {48, "DNSKEY"},
    {52, "TLSA"}, {64, "SVCB"}, {65, "HTTPS"}, {252, "AXFR"}, {255, "ANY"}, {257, "CAA"}};
static const struct render_number_word render_rcodes[] = {
    {0, "NOERROR"}, {1, "FORMERR"}, {2, "SERVFAIL"}, {3, "NXDOMAIN"}, {4, "NOTIMP"}, {5, "REFUSED"}};
static const struct render_number_word render_protos[] = {{IPPROTO_TCP, "tcp"}, {IPPROTO_UDP, "udp"},
    {IPPROTO_ICMP, "icmp"}, {IPPROTO_ICMPV6, "icmp6"}, {IPPROTO_SCTP, "sctp"}};

/* As v_connections has them. */
static const struct render_number_word render_tls_versions[] = {
    {0x0300, "SSLv3"}, {0x0301, "TLSv1"}, {0x0302, "TLSv1.1"}, {0x0303, "TLSv1.2"}, {0x0304, "TLSv1.3"}};

static const char *
render_lookup(
    const struct render_number_word *words, size_t count, int64_t value, const char *prefix, char ret_text[32])
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

const char *
render_tls_version(int64_t version, char ret_text[32])
{
	const char *word = RENDER_LOOKUP(render_tls_versions, version, "", ret_text);

	if (word == ret_text)
		snprintf(ret_text, 32, "0x%04" PRIx64, (uint64_t)version);
	return word;
}

const char *
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

const char *
render_name(const struct query_row *row, char *ret_text, size_t size)
{
	if (row->name.len > 0)
		return render_escape(row->name, ret_text, size);
	escape_terminal(row->name_raw.bytes, row->name_raw.len, ret_text, size);
	return ret_text;
}

unsigned int
render_index(int64_t value)
{
	return value < 0 || value > INT32_MAX ? UINT32_MAX : (unsigned int)value;
}

bool
render_is(struct query_text text, const char *word)
{
	return text.len == strlen(word) && memcmp(text.bytes, word, text.len) == 0;
}

const char *
render_verdict(const struct query_row *row)
{
	return verdict_text(render_index(row->verdict));
}

const char *
render_reason(const struct query_row *row)
{
	return reason_text(render_index(row->reason));
}

const char *
render_word(const struct column *column, const struct query_row *row, char *ret_text, size_t size)
{
	struct query_number number = {.set = false};
	unsigned int value;

	if (column->form == COLUMN_NAME)
		return render_name(row, ret_text, size);
	if (column->form >= COLUMN_WORD)
		number = columns_number(column, row);
	if (!number.set)
		return "";
	value = render_index(number.value);
	switch ((enum column_form)column->form) {
	case COLUMN_TIME:
		return render_time_utc(number.value, ret_text);
	case COLUMN_ID:
		snprintf(ret_text, size, "%016" PRIx64, (uint64_t)number.value);
		return ret_text;
	case COLUMN_VERDICT:
		return verdict_text(value);
	case COLUMN_REASON:
		return reason_text(value);
	case COLUMN_PROTO:
		return render_proto(number.value, ret_text);
	case COLUMN_NAME_SOURCE:
		return record_name_source_text(value);
	case COLUMN_TLS_VERSION:
		return render_tls_version(number.value, ret_text);
	case COLUMN_END:
		return record_end_text(value);
	case COLUMN_QTYPE:
		return render_qtype(number.value, ret_text);
	case COLUMN_RCODE:
		return render_rcode(number.value, ret_text);
	case COLUMN_EVENT:
		return record_event_text(value);
	case COLUMN_PLAIN:
	case COLUMN_NONZERO:
	case COLUMN_MILLISECONDS:
	case COLUMN_HUNDREDTHS:
	case COLUMN_ARRAY:
	case COLUMN_OBJECT:
	case COLUMN_LABELS:
	case COLUMN_CURSOR:
	case COLUMN_KIND:
	case COLUMN_LEARNED:
	case COLUMN_ECH:
	case COLUMN_TUNNEL:
	case COLUMN_NAME:
		break;
	}
	return "";
}
