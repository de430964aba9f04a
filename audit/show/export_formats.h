/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The formats of audit/show/export.c, for it alone: a file each. See struct export_format. */
#ifndef POSTERN_AUDIT_EXPORT_FORMATS_H
#define POSTERN_AUDIT_EXPORT_FORMATS_H

#include "audit/show/export.h"

void export_csv_begin(FILE *out);
int export_csv_row(FILE *out, const struct export_options *options, const struct query_row *row);

void export_zeek_conn_begin(FILE *out);
int export_zeek_conn_row(FILE *out, const struct export_options *options, const struct query_row *row);
void export_zeek_dns_begin(FILE *out);
int export_zeek_dns_row(FILE *out, const struct export_options *options, const struct query_row *row);
void export_zeek_ssl_begin(FILE *out);
int export_zeek_ssl_row(FILE *out, const struct export_options *options, const struct query_row *row);
void export_zeek_http_begin(FILE *out);
int export_zeek_http_row(FILE *out, const struct export_options *options, const struct query_row *row);
void export_zeek_end(FILE *out);

int export_ocsf_row(FILE *out, const struct export_options *options, const struct query_row *row);

int export_ecs_row(FILE *out, const struct export_options *options, const struct query_row *row);

#endif
