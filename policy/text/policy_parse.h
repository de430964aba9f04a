/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to policy_parse*.c: the walk over a policy's YAML. Functions return -1 only when nothing more can be read. */
#ifndef POSTERN_POLICY_POLICY_PARSE_H
#define POSTERN_POLICY_POLICY_PARSE_H

#include "policy/events.h"
#include "policy/text/policy.h"

struct parse {
	struct events in;
	struct policy policy;
	bool version_seen;
	struct policy_place *places; /* by rule: its target's value; owned */
	size_t place_size;
};

/* "allow" or "deny": a list of entries. */
int parse_rules(struct parse *p, enum rule_action action);

/* Once all is read: the same rule twice, where both are counted. -1: no memory. */
int parse_twins(struct parse *p);

/* "limits" of the sandbox, or of an entry (of_rule). */
int parse_limits(struct parse *p, bool of_rule, struct limits *ret_limits);

/* The text's file with a place behind it (":7"), escaped; of a long path the end is lost, not the place. */
void parse_origin(const struct parse *p, char ret_origin[RULE_ORIGIN_MAX], const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* The value that is there is an enum policy_setting's: keep its place. */
void parse_setting(struct parse *p, unsigned int setting);

/* What each level of the language knows, for the parser and for what has to agree with it (the schema's test). */
enum parse_level { PARSE_ROOT = 0, PARSE_ENTRY, PARSE_LIMITS, PARSE_RULE_LIMITS, PARSE_LIMIT, PARSE_LEVEL_MAX };
const char *const *parse_keys(enum parse_level level, size_t *ret_count);

/* Ready for events_next_key. */
struct events_keys parse_keys_begin(enum parse_level level);

#endif
