/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the exports have in common, beside audit/show/render.h. */
#ifndef POSTERN_AUDIT_EXPORT_ROW_H
#define POSTERN_AUDIT_EXPORT_ROW_H

#include "audit/show/json_line.h"
#include "audit/query/query.h"

#include <stdbool.h>
#include <stddef.h>

/* The name as a host name: "" unless it is canonical. */
const char *export_row_host(const struct query_row *row, char *ret_text, size_t size);

/* An address as text: "" unless it is one (a damaged file may hold anything). Returns ret_text. */
const char *export_row_address(struct query_text text, char ret_text[64]);

/* 16 hexadecimal digits, as views and JSON show them. */
const char *export_row_id(const struct query_row *row, char ret_text[24]);

/* "TLS 1.3" -> "1.3": the version offered, from the number on the wire; NULL when there is none or it is not known. */
const char *export_row_tls_version(const struct query_row *row);

/* Was a TLS hello, an HTTP request read from it? */
bool export_row_is_tls(const struct query_row *row);
bool export_row_is_http(const struct query_row *row);

/* sandboxes.id in decimal: names come again, ids do not. */
const char *export_row_sandbox_id(const struct query_row *row, char ret_text[24]);

/* A query's answers, stored as "A 192.0.2.1", as an array of objects: type, class, ttl, and the data under this key.
 * The caller frees it. */
json_t *export_row_answers(const struct query_row *row, const char *data_key);

/* Was it let through by mode: learn alone? */
bool export_row_learned(const struct query_row *row);

#endif
