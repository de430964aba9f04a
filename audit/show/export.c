/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/show/export.h"

#include "audit/show/export_formats.h"

#include <assert.h>
#include <string.h>

static const struct export_format export_formats[] = {
    {"csv", QUERY_ALL, export_csv_begin, export_csv_row, NULL},
    {"zeek", QUERY_CONNECTION, export_zeek_conn_begin, export_zeek_conn_row, export_zeek_end},
    {"zeek-dns", QUERY_DNS, export_zeek_dns_begin, export_zeek_dns_row, export_zeek_end},
    {"zeek-ssl", QUERY_CONNECTION, export_zeek_ssl_begin, export_zeek_ssl_row, export_zeek_end},
    {"zeek-http", QUERY_CONNECTION, export_zeek_http_begin, export_zeek_http_row, export_zeek_end},
    {"ocsf", QUERY_ALL, NULL, export_ocsf_row, NULL},
    {"ecs", QUERY_ALL, NULL, export_ecs_row, NULL},
};

static const char *const export_ocsf_words[] = {"1.1", "1.3", "1.5", "1.8"};
static_assert(sizeof(export_ocsf_words) / sizeof(export_ocsf_words[0]) == EXPORT_OCSF_MAX, "a word for each version");

const struct export_format *
export_find(const char *word)
{
	for (size_t i = 0; i < sizeof(export_formats) / sizeof(export_formats[0]); i++)
		if (strcmp(export_formats[i].word, word) == 0)
			return &export_formats[i];
	return NULL;
}

int
export_parse_ocsf(const char *text, enum export_ocsf *ret_ocsf, struct error *err)
{
	for (unsigned int i = 0; i < EXPORT_OCSF_MAX; i++) {
		if (strcmp(export_ocsf_words[i], text) == 0) {
			*ret_ocsf = (enum export_ocsf)i;
			return 0;
		}
	}
	return error_set(err, ERROR_USAGE, "--ocsf-version %s: 1.1, 1.3, 1.5 or 1.8", text);
}
