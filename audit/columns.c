/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/columns.h"

#include "audit/record.h"

#include <stdio.h>
#include <string.h>

/* A member of the record that makes the row, or of the one that completes it. */
#define SOURCE(kind, what, how)                                                                                        \
	{                                                                                                              \
		offsetof(struct record, kind.what), (uint8_t)sizeof(((struct record *)NULL)->kind.what),               \
		    COLUMN_BIND_##how                                                                                  \
	}
#define FIRST(kind, what, how) .first = SOURCE(kind, what, how)
#define SECOND(kind, what, how) .second = SOURCE(kind, what, how)
#define BOTH(kind, what, how) FIRST(kind, what, how), SECOND(kind, what, how)

/* The member of a reader's row. */
#define ROW(what)                                                                                                      \
	.row = offsetof(struct query_row, what),                                                                       \
	.member = _Generic(((struct query_row *)NULL)->what, struct query_text                                         \
			   : COLUMN_TEXT, struct query_number                                                          \
			   : COLUMN_NUMBER, default                                                                    \
			   : COLUMN_INTEGER)

#define FORM(word) .form = COLUMN_##word
#define JSON(...) .json = {__VA_ARGS__}
#define CSV(...) .csv = {__VA_ARGS__}

/* Every row of a table that readers read begins like this, */
#define HEAD(kind, id_note, seq_note, sandbox_note, ts_note)                                                           \
	{"id", "INTEGER PRIMARY KEY", id_note, BOTH(kind, id, INTEGER), ROW(id), FORM(ID), JSON("id", 2),              \
	    CSV("id", 3)},                                                                                             \
	    {"seq", "INTEGER NOT NULL", seq_note, BOTH(kind, id, SEQ), ROW(seq), CSV("seq", 4)},                       \
	    {"sandbox_id", "INTEGER NOT NULL", sandbox_note, FIRST(kind, sandbox, INTEGER), ROW(sandbox_id),           \
		FORM(NONZERO), JSON("sandbox_id", 6), CSV("sandbox_id", 6)},                                           \
	{                                                                                                              \
		"ts", "INTEGER NOT NULL", ts_note, FIRST(kind, ts_us, INTEGER), ROW(ts_us), FORM(TIME), JSON("ts", 1), \
		    CSV("time", 2)                                                                                     \
	}
/* and these are made of its sandbox, or of other members. */
#define TAIL                                                                                                           \
	{.select = "(SELECT s.name FROM sandboxes s WHERE s.id = t.sandbox_id)",                                       \
	    ROW(sandbox),                                                                                              \
	    JSON("sandbox", 5),                                                                                        \
	    CSV("sandbox", 5)},                                                                                        \
	    {.select = "(SELECT CASE WHEN json_valid(s.detail) THEN s.detail -> '$.labels' END FROM sandboxes s "      \
		       "WHERE s.id = t.sandbox_id)",                                                                   \
		ROW(labels),                                                                                           \
		FORM(LABELS),                                                                                          \
		JSON("labels", 7),                                                                                     \
		CSV("labels", 57)},                                                                                    \
	    {FORM(CURSOR), JSON("cursor", 3)},                                                                         \
	{                                                                                                              \
		FORM(KIND), JSON("kind", 4), CSV("kind", 1)                                                            \
	}

/* clang-format off */
static const struct column connections_columns[] = {
    HEAD(flow, "sender's epoch << 31, plus a counter; the 16 hex digits of the JSON output",
	"grows with every insert and change in any table: the cursor of log -f", NULL, "first seen"),
    {"last_ts", "INTEGER", "refused packets: last seen", FIRST(flow, last_us, NONZERO), ROW(last_us), FORM(TIME),
	JSON("last", 41), CSV("last_time", 40)},
    {"count", "INTEGER NOT NULL", "refused packets: how many so far; else 1", FIRST(flow, count, COUNT), ROW(count),
	JSON("count", 46), CSV("count", 13)},
    {"proto", "INTEGER NOT NULL", "IP protocol number", FIRST(flow, proto, INTEGER), ROW(proto), FORM(PROTO),
	JSON("proto", 18), CSV("proto", 14)},
    {"src", "TEXT", NULL, FIRST(flow, src, ADDR), ROW(src), JSON("src", 14), CSV("src", 15)},
    {"sport", "INTEGER NOT NULL", NULL, FIRST(flow, sport, INTEGER), ROW(sport), JSON("sport", 15), CSV("sport", 16)},
    {"dst", "TEXT", "as dialled; NULL: many", FIRST(flow, dst, ADDR), ROW(dst), JSON("dst", 16), CSV("dst", 17)},
    {"dport", "INTEGER NOT NULL", "0: none", FIRST(flow, dport, INTEGER), ROW(dport), JSON("dport", 17),
	CSV("dport", 18)},
    {"name", "TEXT", "canonical host name ([a-z0-9._-]), or NULL", FIRST(flow, name_len, NAME), ROW(name), FORM(NAME),
	JSON("name", 19), CSV("name", 19)},
    {"name_raw", "BLOB", "what the guest said instead, as it came: anything", FIRST(flow, name_len, NAME_RAW),
	ROW(name_raw)},
    {"name_source", "INTEGER NOT NULL", "name_sources: the proof behind the name", FIRST(flow, name_source, INTEGER),
	ROW(name_source), FORM(NAME_SOURCE), JSON("name_source", 20), CSV("name_source", 20)},
    {"verdict", "INTEGER NOT NULL", "verdicts", FIRST(flow, verdict, INTEGER), SECOND(close, verdict, REFUSAL),
	ROW(verdict), FORM(VERDICT), JSON("verdict", 8), CSV("verdict", 7)},
    {"reason", "INTEGER NOT NULL", "reasons", FIRST(flow, reason, INTEGER), SECOND(close, reason, INTEGER),
	ROW(reason), FORM(REASON), JSON("reason", 9), CSV("reason", 8)},
    {"rule", "TEXT", "deciding rule and where it stands", FIRST(flow, rule, TEXT), ROW(rule), JSON("rule", 10),
	CSV("rule", 9)},
    {"detail", "TEXT", "why, where the reason alone does not tell", FIRST(flow, detail, TEXT), ROW(detail),
	JSON("detail", 12), CSV("detail", 10)},
    {"generation", "INTEGER NOT NULL", "of the policy that decided", FIRST(flow, generation, INTEGER), ROW(generation),
	JSON("policy_rev", 13), CSV("generation", 11)},
    {"alpn", "TEXT", "as offered in the ClientHello", FIRST(flow, alpn, TEXT), ROW(alpn), JSON("alpn", 21),
	CSV("alpn", 24)},
    {"tls_version", "INTEGER", "highest offered, as on the wire: 772 is TLS 1.3", FIRST(flow, tls_version, NONZERO),
	.chain_at = 27, ROW(tls_version), FORM(TLS_VERSION), JSON("tls_version", 22), CSV("tls_version", 25)},
    {"ja4", "TEXT", "fingerprint of the ClientHello", FIRST(flow, ja4, TEXT), .chain_at = 28, ROW(ja4), JSON("ja4", 23),
	CSV("ja4", 26)},
    {"http_method", "TEXT", NULL, FIRST(flow, http_method, TEXT), .chain_at = 29, ROW(http_method),
	JSON("http_method", 24), CSV("http_method", 28)},
    {"flags", "INTEGER NOT NULL", "1: ClientHello carried the ECH extension, 2: HTTP Upgrade, 4: mode: learn",
	FIRST(flow, flags, INTEGER), .chain_at = 21, ROW(flags)},
    {"country", "TEXT", "of dst, as asn and as_org, by the databases named in event daemon_start",
	FIRST(flow, country, TEXT), .chain_at = 30, ROW(country), JSON("country", 27), CSV("country", 21)},
    {"asn", "INTEGER", NULL, FIRST(flow, asn, NONZERO), .chain_at = 31, ROW(asn), JSON("asn", 28), CSV("asn", 22)},
    {"as_org", "TEXT", NULL, FIRST(flow, as_org, TEXT), .chain_at = 32, ROW(as_org), JSON("as_org", 29),
	CSV("as_org", 23)},
    {"dns_us", "INTEGER", "set-up: the question upstream that led here", FIRST(flow, dns_us, NONZERO), .chain_at = 33,
	ROW(dns_us), JSON("dns_us", 30), CSV("dns_us", 35)},
    {"hello_us", "INTEGER", "accept to a whole ClientHello or request head", FIRST(flow, hello_us, NONZERO),
	.chain_at = 34, ROW(hello_us), JSON("hello_us", 31), CSV("hello_us", 36)},
    {"connect_us", "INTEGER", "connecting to the origin", SECOND(close, connect_us, NONZERO), .chain_at = 35,
	ROW(connect_us), JSON("connect_us", 32), CSV("connect_us", 37)},
    {"first_byte_us", "INTEGER", "accept to the origin's first byte", SECOND(close, first_byte_us, NONZERO),
	.chain_at = 36, ROW(first_byte_us), JSON("first_byte_us", 33), CSV("first_byte_us", 38)},
    {"bytes_out", "INTEGER", "payload, guest to origin; so far, while it is open", SECOND(close, bytes_out, COUNT),
	.chain_at = 23, ROW(bytes_out), JSON("bytes_out", 34), CSV("bytes_out", 30)},
    {"bytes_in", "INTEGER", "and back", SECOND(close, bytes_in, COUNT), .chain_at = 24, ROW(bytes_in),
	JSON("bytes_in", 35), CSV("bytes_in", 31)},
    {"packets_out", "INTEGER", "TCP segments on the guest's side, UDP datagrams", SECOND(close, packets_out, COUNT),
	.chain_at = 37, ROW(packets_out), JSON("packets_out", 36), CSV("packets_out", 32)},
    {"packets_in", "INTEGER", NULL, SECOND(close, packets_in, COUNT), .chain_at = 38, ROW(packets_in),
	JSON("packets_in", 37), CSV("packets_in", 33)},
    {"duration_us", "INTEGER", NULL, SECOND(close, duration_us, INTEGER), .chain_at = 25, ROW(duration_us),
	FORM(MILLISECONDS), JSON("dur_ms", 38), CSV("duration_us", 34)},
    {"closed_ts", "INTEGER", NULL, SECOND(close, ts_us, CLOSED), .chain_at = 26, ROW(closed_us), FORM(TIME),
	JSON("closed", 40), CSV("closed_time", 39)},
    {"community_id", "TEXT", "of src and dst", FIRST(flow, src, COMMUNITY_ID), .chain_at = 39, .in_view = true,
	ROW(community_id), JSON("community_id", 42), CSV("community_id", 42)},
    {"up_src", "TEXT", "our end of the connection to dst", SECOND(close, up_src, ADDR), .chain_at = 40,
	.in_view = true, ROW(up_src), JSON("up_src", 43), CSV("up_src", 43)},
    {"up_sport", "INTEGER", NULL, SECOND(close, up_sport, UP_PORT), .chain_at = 41, .in_view = true, ROW(up_sport),
	JSON("up_sport", 44), CSV("up_sport", 44)},
    {"up_community_id", "TEXT", "of up_src and dst", SECOND(close, up_src, UP_COMMUNITY_ID), .chain_at = 42,
	.in_view = true, ROW(up_community_id), JSON("up_community_id", 45), CSV("up_community_id", 45)},
    {"domain", "TEXT", "the part of name that is registered", FIRST(flow, name_len, DOMAIN), .chain_at = 43,
	.in_view = true},
    {"end", "INTEGER NOT NULL", "ends; 0: still open", FIRST(flow, end, INTEGER), SECOND(close, end, INTEGER),
	.chain_at = 22, ROW(end), FORM(END), JSON("end", 39), CSV("end", 41)},
    {FORM(ECH), JSON("ech", 25), CSV("ech", 27)},
    {FORM(TUNNEL), JSON("tunnel", 26), CSV("tunnel", 29)},
    {FORM(LEARNED), JSON("learned", 11), CSV("learned", 12)},
    TAIL,
};

static const struct column dns_columns[] = {
    HEAD(dns, NULL, NULL, NULL, NULL),
    {"count", "INTEGER NOT NULL", NULL, FIRST(dns, count, COUNT), ROW(count), JSON("count", 46), CSV("count", 13)},
    {"transport", "INTEGER NOT NULL", "17: UDP, 6: TCP", FIRST(dns, transport, INTEGER), ROW(proto), FORM(PROTO),
	JSON("proto", 18), CSV("proto", 14)},
    {"src", "TEXT", NULL, FIRST(dns, src, ADDR), ROW(src), JSON("src", 14), CSV("src", 15)},
    {"sport", "INTEGER NOT NULL", NULL, FIRST(dns, sport, INTEGER), ROW(sport), JSON("sport", 15), CSV("sport", 16)},
    {"server", "TEXT", "the resolver that the guest meant to ask; all are answered by postern",
	FIRST(dns, server, ADDR), ROW(dst), JSON("dst", 16), CSV("dst", 17)},
    {"qname", "TEXT", "canonical name, or NULL", FIRST(dns, qname_len, NAME), ROW(name), FORM(NAME), JSON("qname", 19),
	CSV("name", 19)},
    {"qname_raw", "BLOB", "what was asked instead: anything", FIRST(dns, qname_len, NAME_RAW), ROW(name_raw)},
    {"qtype", "INTEGER NOT NULL", NULL, FIRST(dns, qtype, INTEGER), ROW(qtype), FORM(QTYPE), JSON("qtype", 20),
	CSV("qtype", 46)},
    {"verdict", "INTEGER NOT NULL", NULL, FIRST(dns, verdict, INTEGER), ROW(verdict), FORM(VERDICT), JSON("verdict", 8),
	CSV("verdict", 7)},
    {"reason", "INTEGER NOT NULL", NULL, FIRST(dns, reason, INTEGER), ROW(reason), FORM(REASON), JSON("reason", 9),
	CSV("reason", 8)},
    {"rule", "TEXT", NULL, FIRST(dns, rule, TEXT), ROW(rule), JSON("rule", 10), CSV("rule", 9)},
    {"detail", "TEXT", NULL, FIRST(dns, detail, TEXT), ROW(detail), JSON("detail", 12), CSV("detail", 10)},
    {"generation", "INTEGER NOT NULL", NULL, FIRST(dns, generation, INTEGER), ROW(generation), JSON("policy_rev", 13),
	CSV("generation", 11)},
    {"rcode", "INTEGER NOT NULL", "as answered", FIRST(dns, rcode, INTEGER), ROW(rcode), FORM(RCODE), JSON("rcode", 21),
	CSV("rcode", 47)},
    {"ede", "INTEGER", "RFC 8914 INFO-CODE, or NULL", FIRST(dns, ede, UNLESS_MAX), ROW(ede), JSON("ede", 22),
	CSV("ede", 48)},
    {"answers", "TEXT", "JSON array of strings: \"A 192.0.2.1\"", FIRST(dns, answers, JSON), ROW(answers), FORM(ARRAY),
	JSON("answers", 23), CSV("answers", 49)},
    {"ttl", "INTEGER NOT NULL", "seconds, as answered", FIRST(dns, ttl_s, INTEGER), ROW(ttl_s), JSON("ttl", 24),
	CSV("ttl", 50)},
    {"upstream_us", "INTEGER NOT NULL", "time spent asking upstream; 0: not asked", FIRST(dns, upstream_us, INTEGER),
	ROW(upstream_us), FORM(MILLISECONDS), JSON("rtt_ms", 25), CSV("upstream_us", 51)},
    {"leases", "INTEGER", "addresses it may connect to by this answer", FIRST(dns, leases, INTEGER), ROW(leases),
	JSON("leases", 26), CSV("leases", 52)},
    {"domain", "TEXT", "the part of qname that is registered", FIRST(dns, qname_len, DOMAIN), ROW(domain),
	JSON("domain", 27), CSV("domain", 53)},
    {"entropy", "INTEGER", "of qname's characters before it, hundredths of a bit a character",
	FIRST(dns, qname_len, ENTROPY), ROW(entropy), FORM(HUNDREDTHS), JSON("entropy", 28), CSV("entropy", 54)},
    {.select = "53", ROW(dport), JSON("dport", 17), CSV("dport", 18)},
    {FORM(LEARNED), JSON("learned", 11), CSV("learned", 12)},
    TAIL,
};

static const struct column events_columns[] = {
    HEAD(event, NULL, NULL, "0: the daemon itself", NULL),
    {"kind", "INTEGER NOT NULL", "event_kinds", FIRST(event, kind, INTEGER), ROW(event), FORM(EVENT), JSON("event", 8),
	CSV("event", 55)},
    {"uid", "INTEGER", "who asked; NULL: nobody", FIRST(event, uid, UNLESS_MAX), ROW(uid), JSON("uid", 9),
	CSV("uid", 56)},
    {"detail", "TEXT", "JSON object", FIRST(event, detail, JSON), ROW(detail), FORM(OBJECT), JSON("detail", 10),
	CSV("detail", 10)},
    {.select = "1", ROW(count)},
    TAIL,
};

static const struct column sandboxes_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "microseconds since the epoch when it was attached; never used again",
	BOTH(sandbox, id, INTEGER)},
    {"seq", "INTEGER NOT NULL", "as in connections", BOTH(sandbox, id, SEQ)},
    {"name", "TEXT NOT NULL", "may come again later, under another id", BOTH(sandbox, name, TEXT)},
    {"kind", "TEXT NOT NULL", "'tap' or 'netns'", BOTH(sandbox, kind, TEXT_ALWAYS)},
    {"attached_ts", "INTEGER", "microseconds since the epoch, UTC, as every *ts", FIRST(sandbox, ts_us, INTEGER)},
    {"detached_ts", "INTEGER", "NULL while attached", SECOND(sandbox, ts_us, INTEGER)},
    {"uid", "INTEGER", "who attached it", BOTH(sandbox, uid, UNLESS_MAX)},
    {"detail", "TEXT", "JSON: guest addresses, mac, device, labels, parent", BOTH(sandbox, detail, JSON)},
};

/* What came in, and what was recorded of it, by verdict. */
#define COUNTS(what, kind, note)                                                                                       \
    {what, "INTEGER NOT NULL", note, FIRST(account, attempts[kind], COUNT)},                                          \
    {what "_allowed", "INTEGER NOT NULL", NULL, FIRST(account, recorded[kind][VERDICT_ALLOWED], COUNT)},               \
    {what "_denied", "INTEGER NOT NULL", NULL, FIRST(account, recorded[kind][VERDICT_DENIED], COUNT)},                 \
    {what "_limited", "INTEGER NOT NULL", NULL, FIRST(account, recorded[kind][VERDICT_LIMITED], COUNT)},               \
    {what "_failed", "INTEGER NOT NULL", NULL, FIRST(account, recorded[kind][VERDICT_FAILED], COUNT)}

static const struct column accounts_columns[] = {
    {"id", "INTEGER PRIMARY KEY", "of the sender's epoch, as in connections", FIRST(account, id, INTEGER)},
    {"seq", "INTEGER NOT NULL", NULL, FIRST(account, id, SEQ)},
    {"sandbox_id", "INTEGER NOT NULL", NULL, FIRST(account, sandbox, INTEGER)},
    {"ts", "INTEGER NOT NULL", NULL, FIRST(account, ts_us, INTEGER)},
    {"final", "INTEGER NOT NULL", "1: nothing came after it", FIRST(account, final, INTEGER)},
    COUNTS("connections", RECORD_ATTEMPT_CONNECTION, "accepted; then: recorded, by verdict"),
    COUNTS("queries", RECORD_ATTEMPT_DNS, NULL),
    COUNTS("packets", RECORD_ATTEMPT_REFUSED, "refused, by the kernel's counters"),
};
/* clang-format on */

#define COLUMNS(columns) columns, sizeof(columns) / sizeof((columns)[0])
static const struct columns columns_tables[] = {
    [COLUMNS_CONNECTIONS] = {"connections", "one row for each attempt, allowed or not", COLUMNS(connections_columns)},
    [COLUMNS_DNS] = {"dns", "one row for each query, or several equal ones", COLUMNS(dns_columns)},
    [COLUMNS_EVENTS] = {"events", NULL, COLUMNS(events_columns)},
    [COLUMNS_SANDBOXES] = {"sandboxes", NULL, COLUMNS(sandboxes_columns)},
    [COLUMNS_ACCOUNTS] = {"accounts", "what a gateway itself counted of a sandbox; rows must add up to it",
	COLUMNS(accounts_columns)},
};
_Static_assert(sizeof(columns_tables) / sizeof(columns_tables[0]) == COLUMNS_TABLE_MAX, "columns of each table");
_Static_assert(sizeof(connections_columns) / sizeof(connections_columns[0]) <= COLUMNS_MAX, "the largest table fits");
/* A name's bytes are found behind its length. */
_Static_assert(offsetof(struct record_flow, name) == offsetof(struct record_flow, name_len) + sizeof(uint16_t) &&
	offsetof(struct record_dns, qname) == offsetof(struct record_dns, qname_len) + sizeof(uint16_t),
    "length and name are adjacent");

const struct columns *
columns_of(unsigned int table)
{
	return table > 0 && table < COLUMNS_TABLE_MAX ? &columns_tables[table] : NULL;
}

const char *
columns_table_name(unsigned int table)
{
	return table > 0 && table < COLUMNS_TABLE_MAX ? columns_tables[table].name : NULL;
}

size_t
columns_index(unsigned int table, const char *name)
{
	size_t i = 0;

	while (
	    columns_tables[table].columns[i].name == NULL || strcmp(columns_tables[table].columns[i].name, name) != 0)
		i++;
	return i;
}

/* Inserts an entry behind all whose place is not greater. Returns how many there are now. */
static size_t
columns_place(const struct column *column, size_t place, const struct column **sorted, size_t *places, size_t count)
{
	size_t at = count;

	for (; at > 0 && places[at - 1] > place; at--) {
		sorted[at] = sorted[at - 1];
		places[at] = places[at - 1];
	}
	sorted[at] = column;
	places[at] = place;
	return count + 1;
}

const char *
columns_chained(unsigned int table, char ret_text[COLUMNS_TEXT_MAX])
{
	const struct columns *columns = columns_of(table);
	const struct column *sorted[COLUMNS_MAX];
	size_t places[COLUMNS_MAX], count = 0, len = 0;

	for (size_t i = 0; columns != NULL && i < columns->count; i++) {
		const struct column *column = &columns->columns[i];

		if (column->type != NULL)
			count = columns_place(
			    column, column->chain_at != 0 ? column->chain_at : i + 1, sorted, places, count);
	}
	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(
		    ret_text + len, COLUMNS_TEXT_MAX - len, "%s%s", i == 0 ? "" : ", ", sorted[i]->name);
	return columns == NULL ? NULL : ret_text;
}

size_t
columns_sort(unsigned int table, size_t output, const struct column *ret_sorted[COLUMNS_MAX])
{
	const struct columns *columns = columns_of(table);
	size_t places[COLUMNS_MAX], count = 0;

	for (size_t i = 0; i < columns->count; i++) {
		const struct column *column = &columns->columns[i];
		const struct column_output *shown = (const void *)((const char *)column + output);

		if (shown->name != NULL)
			count = columns_place(
			    column, shown->at != 0 ? shown->at : UINT8_MAX + i, ret_sorted, places, count);
	}
	return count;
}
