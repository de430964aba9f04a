/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the lines of audit/show/render.c and audit/show/render_json.c share: a row's texts without what a terminal or a program
 * could be harmed by. */
#ifndef POSTERN_AUDIT_RENDER_TEXT_H
#define POSTERN_AUDIT_RENDER_TEXT_H

#include "audit/query/query.h"

#include <stddef.h>
#include <stdint.h>

/* Printable ASCII, backslashes kept; cut at size. Returns ret_text. */
const char *render_escape(struct query_text text, char *ret_text, size_t size);

/* The row's name in whichever form it is there; "" when there is none. */
const char *render_name(const struct query_row *row, char *ret_text, size_t size);

/* Stored numbers may be anything: words only for those inside unsigned int. */
unsigned int render_index(int64_t value);

#endif
