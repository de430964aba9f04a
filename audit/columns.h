/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The columns of the log's tables, each written once: what it is in SQL, which member of a record fills it, which
 * member of a reader's row it becomes, and where JSON and CSV show it. CREATE TABLE, INSERT and UPDATE, a row's digest,
 * SELECT, JSON and CSV are made by walking these tables.
 *
 * A new field of the log is a member in audit/record.h, one in audit/row.h and an entry in audit/columns.c, the last of
 * its table that has a type. Without places of its own it is the last in every output. */
#ifndef POSTERN_AUDIT_COLUMNS_H
#define POSTERN_AUDIT_COLUMNS_H

#include "audit/row.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The tables whose rows are linked in the chain. Stored as numbers in its column tbl: append only. */
enum columns_table {
	COLUMNS_CONNECTIONS = 1,
	COLUMNS_DNS,
	COLUMNS_EVENTS,
	COLUMNS_SANDBOXES,
	COLUMNS_ACCOUNTS,
	COLUMNS_TABLE_MAX
};

/* Entries of one table; the largest has 50. */
#define COLUMNS_MAX 64
/* Names of all columns of one table, with commas, and the NUL. */
#define COLUMNS_TEXT_MAX 1024

/* How a member of a record becomes a value. */
enum column_bind {
	COLUMN_BIND_NONE = 0,        /* the record says nothing of this column */
	COLUMN_BIND_INTEGER,         /* signed if it has 64 bits */
	COLUMN_BIND_COUNT,           /* uint64_t; beyond the column's maximum it is the maximum: no count wraps */
	COLUMN_BIND_NONZERO,         /* as INTEGER; 0 is NULL */
	COLUMN_BIND_UNLESS_MAX,      /* as INTEGER; the type's maximum is NULL */
	COLUMN_BIND_REFUSAL,         /* as INTEGER; an UPDATE sets it only for a connection that was not allowed */
	COLUMN_BIND_ADDR,            /* struct addr; family 0 is NULL */
	COLUMN_BIND_TEXT,            /* printable ASCII, other bytes escaped; "" is NULL */
	COLUMN_BIND_TEXT_ALWAYS,     /* the same, but "" is kept */
	COLUMN_BIND_JSON,            /* JSON; what is none becomes one string; "" is NULL */
	COLUMN_BIND_NAME,            /* uint16_t length, then the bytes; NULL unless all are [a-z0-9._-] */
	COLUMN_BIND_NAME_RAW,        /* the same member: its bytes where NAME is NULL */
	COLUMN_BIND_DOMAIN,          /* the same member: the name's registered part; NULL if it is no name */
	COLUMN_BIND_ENTROPY,         /* the same member: of the characters before that */
	COLUMN_BIND_SEQ,             /* the next number; its member is not read */
	COLUMN_BIND_CLOSED,          /* time of a close; NULL of one that is still open */
	COLUMN_BIND_UP_PORT,         /* NULL without an address before it */
	COLUMN_BIND_COMMUNITY_ID,    /* of a struct record_flow */
	COLUMN_BIND_UP_COMMUNITY_ID, /* of a struct record_close and the row it closes */
};

struct column_source {
	uint16_t offset; /* in struct record */
	uint8_t size;    /* of an integer, in bytes */
	uint8_t bind;    /* enum column_bind */
};

/* What a member of struct query_row is. */
enum column_member {
	COLUMN_ABSENT = 0, /* readers do not read it */
	COLUMN_TEXT,       /* struct query_text */
	COLUMN_INTEGER,    /* int64_t or uint64_t; NULL reads as 0 */
	COLUMN_NUMBER,     /* struct query_number */
};

/* How JSON and CSV show it. */
enum column_form {
	COLUMN_PLAIN = 0,    /* by its type */
	COLUMN_NONZERO,      /* JSON: absent if 0 */
	COLUMN_MILLISECONDS, /* microseconds; JSON: milliseconds, absent if 0 or NULL */
	COLUMN_HUNDREDTHS,   /* JSON: divided by 100 */
	COLUMN_ARRAY,        /* JSON text; JSON: the array it is, else a string */
	COLUMN_OBJECT,       /* likewise an object */
	COLUMN_LABELS,       /* likewise; absent if it is none, or has no members */
	COLUMN_CURSOR,
	COLUMN_KIND,    /* of the row; JSON tells "flow" and "deny", CSV has "connection" for both */
	COLUMN_LEARNED, /* was it let through by mode: learn alone? */
	COLUMN_ECH,     /* RECORD_FLAG_ECH */
	COLUMN_TUNNEL,  /* RECORD_FLAG_TUNNEL */
	COLUMN_WORD,    /* forms from here on are one text in both, absent or empty if NULL */
	COLUMN_TIME = COLUMN_WORD,
	COLUMN_ID,
	COLUMN_VERDICT,
	COLUMN_REASON,
	COLUMN_PROTO,
	COLUMN_NAME_SOURCE,
	COLUMN_TLS_VERSION,
	COLUMN_END,
	COLUMN_QTYPE,
	COLUMN_RCODE,
	COLUMN_EVENT,
	COLUMN_NAME,
};

/* Where an output has it. */
struct column_output {
	const char *name; /* NULL: not there */
	uint8_t at;       /* entries are in this order; 0: behind those, in the table's order */
};

struct column {
	const char *name;            /* in SQL; NULL: no column of the table, but made of others for readers */
	const char *type;            /* type and constraint */
	const char *note;            /* for who reads the file's schema; NULL: none */
	struct column_source first;  /* of the record that makes the row */
	struct column_source second; /* of one that completes it: a connection's or a sandbox's end */
	uint8_t chain_at;            /* place in a row's digest (from 1), where that is not its place in the table */
	bool in_view;                /* its table's view has it among the last, under its own name */
	const char *select;          /* SQL for readers, of table t; NULL: the column itself */
	uint16_t row;                /* offset in struct query_row */
	uint8_t member;              /* enum column_member */
	uint8_t form;                /* enum column_form */
	struct column_output json, csv;
};

/* A table: its columns in the order of CREATE TABLE, then what is made of them. */
struct columns {
	const char *name;
	const char *note; /* NULL: none */
	const struct column *columns;
	size_t count;
};

/* NULL outside the enum. Constant. */
const struct columns *columns_of(unsigned int table);
const char *columns_table_name(unsigned int table);

/* "id, seq, ...": all columns that the file has, in the order of a row's digest; the first two are id and seq. Returns
 * ret_text, or NULL outside the enum. */
const char *columns_chained(unsigned int table, char ret_text[COLUMNS_TEXT_MAX]);

/* Number of the column's entry, which must exist, from 0. */
size_t columns_index(unsigned int table, const char *name);

/* Fill ret_sorted with the table's entries that have this output, in its order; output is json or csv of an entry, by
 * its offset in struct column. Returns how many there are. */
size_t columns_sort(unsigned int table, size_t output, const struct column *ret_sorted[COLUMNS_MAX]);

/* The member of a row, by its type. */
static inline struct query_text
columns_text(const struct column *column, const struct query_row *row)
{
	return *(const struct query_text *)(const void *)((const char *)row + column->row);
}

/* An integer is always set. */
static inline struct query_number
columns_number(const struct column *column, const struct query_row *row)
{
	const void *at = (const char *)row + column->row;

	if (column->member == COLUMN_NUMBER)
		return *(const struct query_number *)at;
	return (struct query_number){.set = true, .value = *(const int64_t *)at};
}

#endif
