/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to policy_parse*.c: the walk over a policy's YAML. Functions return -1 only when nothing more can be read. */
#ifndef POSTERN_POLICY_POLICY_PARSE_H
#define POSTERN_POLICY_POLICY_PARSE_H

#include "policy/text/events.h"
#include "policy/text/policy.h"

struct parse {
	struct events in;
	struct policy policy;
	bool version_seen;
	struct policy_place *places; /* by rule: its target's value; owned */
	size_t place_size;
};

/* A list of entries, the value of "allow" or "deny": parse is a struct parse *, action an enum rule_action. */
int policy_parse_entry_list(void *parse, void *unused, unsigned int action);

/* "limits" of the sandbox, or (of_rule) of an entry: parse is a struct parse *, limits a struct limits *. */
int policy_parse_limits(void *parse, void *limits, unsigned int of_rule);

/* Once all is read: the same rule twice, where both are counted. -1: no memory. */
int policy_parse_twins(struct parse *p);

/* The value that is there is an enum policy_setting's: keep its place. */
static inline void
policy_parse_setting(struct parse *p, unsigned int setting)
{
	events_origin(&p->in, p->policy.setting_origins[setting], ":%zu", events_here(&p->in).line);
}

/* The language's words, for what has to agree with them (the schema's test); those of limits are in limits.h. */
extern const struct events_keys policy_parse_root_keys, policy_parse_entry_keys, policy_parse_limits_pair_keys;

#endif
