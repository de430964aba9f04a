/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a name's registration says: whose names lie below it, and what else a person should know who allows it.
 *
 * From the Public Suffix List as compiled into libpsl, from policy/names/shared_hosts.csv (object stores and others
 * that the list lacks) and from policy/names/noted_names.csv. No file is read. */
#ifndef POSTERN_POLICY_SHARED_H
#define POSTERN_POLICY_SHARED_H

#include "policy/names/name.h"

#include <stdbool.h>
#include <stddef.h>

/* "2023-02-09" */
#define SHARED_DATE_MAX 16

enum shared_span {
	SHARED_SPAN_ONE = 0, /* one party's names, as far as we know */
	SHARED_SPAN_MANY,    /* names that anybody gets from one provider: a private suffix, an object store */
	SHARED_SPAN_PUBLIC,  /* names that anybody registers: a public suffix, or one lies below */
};

/* Who has the names below this one? *ret_what (may be NULL): "pages of all ...", static storage, or NULL. */
enum shared_span shared_span_of(const struct name *name, const char **ret_what);

/* Is it what one registers ("example.co.uk"): one label below a public suffix? (Not what a provider gives out
 * below its own.) */
bool shared_is_apex(const struct name *name);

/* The ending of the name that is registered, private suffixes counted ("example.co.uk", "alice.github.io"): a pointer
 * into name->text, which is the whole name where the list knows no such ending. */
const char *shared_registered(const struct name *name);

/* Date of the suffix list. */
const char *shared_list_date(char ret_date[SHARED_DATE_MAX]);

/* Rows of policy/names/shared_hosts.csv. */
enum shared_kind {
	SHARED_SUFFIX, /* one label below it is one party's */
	SHARED_TREE,   /* parties' names lie several labels below it */
	SHARED_HOST,   /* the one name is everybody's, told apart by what comes after it */
	SHARED_ABOVE,  /* some row lies below it */
};
struct shared_host {
	const char *name;
	enum shared_kind kind;
	const char *what;
};
const struct shared_host *shared_host_list(size_t *ret_count);

/* The row of kind SHARED_HOST for exactly this name; NULL: none. */
const struct shared_host *shared_host_find(const struct name *name);

/* Rows of policy/names/noted_names.csv; each is about the name and all below it. */
enum noted_kind { NOTED_DOH, NOTED_EMBEDS, NOTED_ECH };
struct noted_name {
	const char *name;
	enum noted_kind kind;
	const char *what;
};
const struct noted_name *shared_noted_list(size_t *ret_count);

/* The row for the name or the nearest one above it; NULL: none. */
const struct noted_name *shared_noted_find(const struct name *name);

#endif
