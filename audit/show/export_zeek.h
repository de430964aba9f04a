/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Zeek's logs, for their files alone: columns, and what the logs have in common. */
#ifndef POSTERN_AUDIT_EXPORT_ZEEK_H
#define POSTERN_AUDIT_EXPORT_ZEEK_H

#include "audit/show/export.h"
#include "audit/show/export_row.h"

#include <stdbool.h>

/* Zeek's words for no value, and for a text without a character. */
#define ZEEK_UNSET "-"
#define ZEEK_EMPTY "(empty)"

/* Returns the value in ret_text or a literal; NULL: unset. A set or vector comes joined and escaped. */
typedef const char *zeek_value(const struct query_row *row, char ret_text[JSON_LINE_TEXT_MAX]);

struct zeek_column {
	const char *name, *type;
	zeek_value *value; /* NULL: always unset */
};

#define ZEEK_CONN_ID                                                                                                   \
	{"ts", "time", zeek_ts}, {"uid", "string", zeek_uid}, {"id.orig_h", "addr", zeek_orig_h},                      \
	    {"id.orig_p", "port", zeek_orig_p}, {"id.resp_h", "addr", zeek_resp_h},                                    \
	{                                                                                                              \
		"id.resp_p", "port", zeek_resp_p                                                                       \
	}
#define ZEEK_POSTERN                                                                                                   \
	{"postern.sandbox", "string", zeek_sandbox}, {"postern.verdict", "string", zeek_verdict},                      \
	    {"postern.reason", "string", zeek_reason}, {"postern.rule", "string", zeek_rule},                          \
	{                                                                                                              \
		"postern.detail", "string", zeek_detail                                                                \
	}

#define ZEEK_COUNT(columns) (sizeof(columns) / sizeof((columns)[0]))

/* Values for the columns that several logs have. */
zeek_value zeek_ts, zeek_uid, zeek_orig_h, zeek_orig_p, zeek_resp_h, zeek_resp_p, zeek_proto, zeek_name, zeek_sandbox,
    zeek_verdict, zeek_reason, zeek_rule, zeek_detail;

/* Stored values as Zeek writes them: NULL for an empty text or a NULL number; counts and intervals are never negative.
 */
const char *zeek_text(struct query_text text, char *ret_text);
const char *zeek_count(int64_t value, char *ret_text);
const char *zeek_number(struct query_number number, char *ret_text);
const char *zeek_seconds(int64_t value_us, char *ret_text);

/* Is it a connection whose end is still to come, and will be told? */
bool zeek_waits(const struct export_options *options, const struct query_row *row);

void zeek_put_header(FILE *out, const char *path, const struct zeek_column *columns, size_t count);
int zeek_put_row(FILE *out, const struct zeek_column *columns, size_t count, const struct query_row *row);

#endif
