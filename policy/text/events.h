/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to policy_parse*.c: libyaml's events one by one, with what policies do not have refused and complaints kept.
 *
 * Functions that return int return 0, or -1 when no further event can be had or used ("broken"); the reader then
 * returns at once. A reported mistake alone is no reason for -1: reading goes on, so that one run shows all of them. */
#ifndef POSTERN_POLICY_EVENTS_H
#define POSTERN_POLICY_EVENTS_H

#include "base/error.h"
#include "policy/text/notes.h"
#include "policy/text/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <yaml.h>

/* Deepest nesting that is skipped over: three levels mean something. */
#define EVENTS_NEST_MAX 16
/* How much of a wrong value a message repeats, escaped. */
#define EVENTS_QUOTE_MAX 80
/* Keys that a mapping may know. */
#define EVENTS_KEYS_MAX 16

/* What is said of a value that begins with a bare asterisk. */
#define EVENTS_STAR_COMPLAINT "a value that begins with '*' must be quoted, as in \"*.example.com\""

struct place {
	size_t line, column; /* from 1 */
};

struct events {
	yaml_parser_t yaml;
	yaml_event_t event;             /* the current one; type YAML_NO_EVENT: none */
	const char *file;               /* for messages; not owned */
	struct policy_notes complaints; /* so far; owned */
	size_t error_count;
	struct place star;    /* reading ended at a value that begins with a bare '*'; line 0: it did not */
	enum error_code code; /* of the policy as a whole; ERROR_POLICY unless something worse came */
};

/* One key of a kind of mapping, and the function that reads its value: reader and into come from events_read_mapping,
 * what is the row's own. It returns -1 only when nothing more can be read. */
struct events_key {
	const char *word;
	int (*read)(void *reader, void *into, unsigned int what);
	unsigned int what;
};

/* The keys of one kind of mapping: the language's words stand here and nowhere else. */
struct events_keys {
	const struct events_key *keys;
	size_t count; /* at most EVENTS_KEYS_MAX */
};

struct events_quote {
	char text[EVENTS_QUOTE_MAX];
};

/* text (not owned) must be valid as long as e. -1 when it holds a NUL or bad UTF-8, or without memory. */
int events_open(struct events *e, const char *file, const char *text, size_t len);
void events_close(struct events *e);

/* Add to the complaints. */
void events_report(struct events *e, struct place at, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Write the complaints to *err, one "FILE:LINE:COLUMN: ..." a line, as many as fit. Returns -1. */
int events_fail(const struct events *e, struct error *err);

/* Fetch the next event; aliases, anchors and tags are complained about here, wherever they stand. */
int events_next(struct events *e);
/* Read past the node that begins with the current event; the current event is then its last. */
int events_skip(struct events *e);

/* Where the current event stands, and its value for a message ("" when it is no scalar). */
struct place events_here(const struct events *e);
struct events_quote events_quote(const struct events *e);

/* The current event is a scalar with this text; one without quotes; null in one of YAML's spellings. */
bool events_scalar_is(const struct events *e, const char *word);
bool events_scalar_is_plain(const struct events *e);
bool events_is_null(const struct events *e);
/* The scalar's bytes; only behind events_want_scalar. */
const char *events_scalar(const struct events *e, size_t *ret_len);

/* The current node must be a scalar with something in it. Otherwise complains (wants: "a host name"), skips it, and
 * sets *ret_ok to false. An alias was complained about already. */
int events_want_scalar(struct events *e, const char *wants, bool *ret_ok);

/* Reads the mapping that begins with the current event, each value by its key's function. Unknown and duplicate keys
 * are reported and skipped with their values. ret_places[i]: where key i stands; line 0: it does not. */
int events_read_mapping(struct events *e, const struct events_keys *keys, void *reader, void *into,
    struct place ret_places[EVENTS_KEYS_MAX]);

/* A value that had to be such a mapping is none: reports why, with the known words behind it, and skips the value. */
int events_refuse_mapping(struct events *e, const char *why, const struct events_keys *keys);

/* Writes the text's file with a place behind it (":7"), escaped; of a long path the end is cut, not the place. */
void events_origin(const struct events *e, char ret_origin[RULE_ORIGIN_MAX], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

#endif
