/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of the audit log as text, and what every form shares: texts made safe to print, and the words behind stored
 * numbers. The output is printable ASCII for any row, even a damaged one (CASES F-28): other bytes become \xNN. */
#ifndef POSTERN_AUDIT_RENDER_H
#define POSTERN_AUDIT_RENDER_H

#include "audit/query/query.h"

#include <stdio.h>

/* Version of the JSON objects, their member "v". Members are only added within a version. */
#define RENDER_JSON_VERSION 1

/* One line with newline: local time, sandbox, verdict, protocol, target, reason, rule, bytes, duration, end. colour:
 * ANSI colours around the verdict. */
void render_line_short(FILE *out, const struct query_row *row, bool colour);

/* The same line, followed by the other columns as KEY=VALUE: the guest's address, TLS, country and network, duration of
 * each step, packets, Community IDs. */
void render_line_wide(FILE *out, const struct query_row *row, bool colour);

/* One line with newline: a JSON object, described in postern-audit(5). 0 or -ENOMEM. */
int render_json(FILE *out, const struct query_row *row);

/* Printable ASCII, backslashes kept; cut at size. Returns ret_text. */
const char *render_escape(struct query_text text, char *ret_text, size_t size);

/* The row's name, canonical or as the guest said it; "" when there is none. Returns ret_text. */
const char *render_name(const struct query_row *row, char *ret_text, size_t size);

/* Is the text exactly this word? */
bool render_is(struct query_text text, const char *word);

/* A stored number as an enum's value: UINT32_MAX, which no enum has, for one outside unsigned int. */
unsigned int render_index(int64_t value);

/* "allowed", ...; "no_rule", ...; "?" for a number outside the enum. */
const char *render_verdict(const struct query_row *row);
const char *render_reason(const struct query_row *row);

/* "A", "HTTPS", "TYPE123"; "NXDOMAIN", "RCODE17"; "tcp", "132"; "TLSv1.3", "0x7f1c". */
const char *render_qtype(int64_t qtype, char ret_text[32]);
const char *render_rcode(int64_t rcode, char ret_text[32]);
const char *render_proto(int64_t proto, char ret_text[32]);
const char *render_tls_version(int64_t version, char ret_text[32]);

/* "999", "1.2K", "34M": bytes for people, powers of 1024. */
const char *render_bytes(int64_t bytes, char ret_text[32]);

/* A column of one of the forms from COLUMN_WORD on, as JSON and CSV have it; "" if it is NULL. size is at least 40, for
 * a name more. Returns ret_text or a constant. */
struct column;
const char *render_word(const struct column *column, const struct query_row *row, char *ret_text, size_t size);

/* RFC 3339 with microseconds, UTC. */
const char *render_time_utc(int64_t ts_us, char ret_text[40]);

#endif
