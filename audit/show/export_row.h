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

/* Did the hello name a server? */
bool export_row_has_server_name(const struct query_row *row);

/* The time of what the row says: of a connection that has ended, its end. */
int64_t export_row_time_us(const struct query_row *row);

/* "ID-SEQ": a row may be written at its begin and at its end, and its id alone would not tell them apart. */
const char *export_row_version_id(const struct query_row *row, char ret_text[48]);

/* A sentence for a row of kind QUERY_EVENT. */
const char *export_row_event_message(unsigned int event);

/* Members that OCSF and ECS name alike. An address goes to "ip", a text that is none to another object, under its own
 * key; a port, where there is one, to "port"; both numbers' sum, when both are set, under key; the duration of each
 * step of a connection, in microseconds. */
void export_row_put_ip(json_t *object, json_t *other, const char *other_key, struct query_text text);
void export_row_put_port(json_t *object, int64_t port);
void export_row_put_sum(json_t *object, const char *key, struct query_number a, struct query_number b);
void export_row_put_steps(json_t *object, const struct query_row *row);

/* The process in an event's detail: pid, name, and its command line under this key. The caller frees it. */
json_t *export_row_process(const json_t *detail, const char *command_key);

/* A query's answers, stored as "A 192.0.2.1", as an array of objects: type, class, ttl, and the data under this key.
 * The caller frees it. */
json_t *export_row_answers(const struct query_row *row, const char *data_key);

/* Was it let through by mode: learn alone? */
bool export_row_learned(const struct query_row *row);

#endif
