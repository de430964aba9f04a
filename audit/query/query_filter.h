/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a reader of the audit log asks for: one struct for the log, its totals and its exports.
 *
 * A filter is a list of terms. Terms on the same field are alternatives, terms on different fields must all hold, and a
 * negated term must not. What a kind of rows does not have (events have no host) no term about it holds for, and every
 * negated one does. */
#ifndef POSTERN_AUDIT_QUERY_FILTER_H
#define POSTERN_AUDIT_QUERY_FILTER_H

#include "policy/names/addr.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Terms of one filter: more than anybody types; each costs a comparison for each row looked at. */
#define QUERY_TERMS_MAX 64

/* Kinds of rows, as bits for a filter. */
#define QUERY_CONNECTION 0x1u
#define QUERY_DNS 0x2u
#define QUERY_EVENT 0x4u
#define QUERY_ALL 0x7u
#define QUERY_KINDS 3

/* What a term is about, and which of its members say what is asked. */
enum query_field {
	QUERY_FIELD_DENIED,     /* verdict is in low..high, apart from QUERY_FIELD_VERDICT so that both must hold */
	QUERY_FIELD_VERDICT,    /* low..high: enum verdict */
	QUERY_FIELD_REASON,     /* low..high: enum reason */
	QUERY_FIELD_HOST,       /* name, or with below: names below it */
	QUERY_FIELD_IP,         /* prefix: of the address dialled; of a query, of one among its answers */
	QUERY_FIELD_SRC,        /* prefix: of who dialled or asked */
	QUERY_FIELD_PORT,       /* low..high: of the destination */
	QUERY_FIELD_PROTO,      /* low..high: IP protocol number */
	QUERY_FIELD_RULE,       /* text: within the deciding rule */
	QUERY_FIELD_END,        /* low..high: enum end_reason */
	QUERY_FIELD_EVENT,      /* low..high: enum event_kind */
	QUERY_FIELD_COUNTRY,    /* text: ISO 3166-1 alpha-2, upper case */
	QUERY_FIELD_ASN,        /* low..high */
	QUERY_FIELD_QTYPE,      /* low..high */
	QUERY_FIELD_BYTES,      /* low..high: bytes out and in together */
	QUERY_FIELD_ID,         /* low..high */
	QUERY_FIELD_SANDBOX,    /* text: its name */
	QUERY_FIELD_SANDBOX_ID, /* low..high */
	QUERY_FIELD_LABEL,      /* text, value: a label of the sandbox; value NULL: any */
	QUERY_FIELD_MAX
};

struct query_term {
	enum query_field field;
	bool negated;
	bool below;
	int64_t low, high;
	const char *text, *value;
	struct name name;
	struct prefix prefix;
};

struct query_filter {
	unsigned int kinds;         /* QUERY_*; 0 is QUERY_ALL */
	const char *sandbox;        /* name; NULL: any */
	int64_t sandbox_id;         /* 0: any */
	int64_t since_us, until_us; /* ts in [since, until); 0: no bound */
	const struct query_term *terms;
	size_t term_count;
	uint64_t last;    /* at most so many, the newest; 0: all */
	bool will_follow; /* rows that change after query_start are left to query_follow, so that none comes twice */
};

/* Is there a kind of rows that has everything the filter asks about? */
bool query_sql_possible(const struct query_filter *filter);

#endif
