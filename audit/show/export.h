/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Rows of the audit log in the formats that other tools read: CSV, Zeek's logs, OCSF, ECS. postern-audit(5) has the
 * mappings, column by column.
 *
 * Whatever a row holds, the output is printable ASCII but for the separators of its format; bytes outside it become
 * \xNN (CASES F-28). A number outside its enum becomes "?" or the schema's own word for unknown. */
#ifndef POSTERN_AUDIT_EXPORT_H
#define POSTERN_AUDIT_EXPORT_H

#include "audit/query/query.h"
#include "base/error.h"

#include <stdio.h>

/* Versions of OCSF that can be written: those that the large collectors take in, and the newest. */
enum export_ocsf { EXPORT_OCSF_1_1, EXPORT_OCSF_1_3, EXPORT_OCSF_1_5, EXPORT_OCSF_1_8, EXPORT_OCSF_MAX };

struct export_options {
	enum export_ocsf ocsf;
	bool following; /* rows that change come again: what writes a connection once waits for its end */
};

struct export_format {
	const char *word;   /* of -o */
	unsigned int kinds; /* QUERY_*: the kinds of rows that the format has a place for */
	/* What stands before the first row and after the last; NULL: nothing. */
	void (*begin)(FILE *out);
	/* One row: a line, or nothing when the format has no place for it. 0 or -ENOMEM. */
	int (*row)(FILE *out, const struct export_options *options, const struct query_row *row);
	void (*end)(FILE *out);
};

/* The format with this word; NULL: there is none. */
const struct export_format *export_find(const char *word);

/* "1.1", "1.3", "1.5", "1.8". 0, or -1 with ERROR_USAGE. */
int export_parse_ocsf(const char *text, enum export_ocsf *ret_ocsf, struct error *err);

#endif
