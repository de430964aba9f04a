/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Words and numbers of the log as HTML. Whatever the log holds, what is written is text: never a tag, an entity, an
 * attribute or a character that turns the line round (CASES F-30). */
#ifndef POSTERN_AUDIT_REPORT_HTML_H
#define POSTERN_AUDIT_REPORT_HTML_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* Bytes that may be anything: printable ASCII, the rest as \xNN. */
void report_html_bytes(FILE *out, const char *bytes, size_t len);

/* Text in UTF-8, for people's own words: invalid bytes, controls and characters that steer direction or are invisible
 * become \xNN or \u{NNNN}. */
void report_html_utf8(FILE *out, const char *text, size_t len);

/* "12 KiB" of 1024 each. */
void report_html_size(FILE *out, int64_t bytes);
/* "1,234,567" */
void report_html_count(FILE *out, int64_t count);
/* "0.41 s", "3 min 12 s", "2 h 5 min". */
void report_html_duration(FILE *out, int64_t us);
/* A time element: UTC, "2026-11-29 10:31:05.123". */
void report_html_time(FILE *out, int64_t ts_us);
/* Only its text. */
void report_html_time_text(FILE *out, int64_t ts_us);

#endif
