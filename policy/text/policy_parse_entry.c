/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "allow" and "deny" in a policy's YAML: entries of one target each, with ports and terms. */
#include "policy/text/policy_parse.h"

#include "policy/text/quantity.h"

#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* One entry while it is read. */
struct entry {
	struct rule rule;
	struct place target_at; /* of the value of host, cidr, country or asn; line 0: none yet */
	bool udp;
};

/* Would YAML and JSON take the plain word for a number, true or false? It can be no target, even where it is a name. */
static bool
is_no_text(const char *text, size_t len)
{
	bool digit = false;

	if ((len == 4 && memcmp(text, "true", 4) == 0) || (len == 5 && memcmp(text, "false", 5) == 0))
		return true;
	for (size_t i = 0; i < len; i++) {
		bool is_digit = text[i] >= '0' && text[i] <= '9';

		if (!is_digit && memchr("+-_eE", text[i], 5) == NULL)
			return false;
		digit = digit || is_digit;
	}
	return digit;
}

/* What kinds of target there are: an entry has one of them. */
static const struct target {
	const char *wants;
	int (*set)(struct rule *rule, const char *text, size_t len, struct error *err);
	bool number; /* a plain number is no mistake */
} targets[] = {
    [RULE_HOST] = {"a host name, as in example.com", rule_set_host, false},
    [RULE_CIDR] = {"an address range, as in 140.82.112.0/20", rule_set_cidr, false},
    [RULE_COUNTRY] = {"a country's two letters, as in KP", rule_set_country, false},
    [RULE_ASN] = {"the number of an autonomous system, as in 64500", rule_set_asn, true},
};

static int
read_target(void *parse, void *into, unsigned int kind)
{
	const struct target *target = &targets[kind];
	struct parse *p = parse;
	struct entry *entry = into;
	const char *text;
	struct error err;
	size_t len;
	bool ok;

	if (events_want_scalar(&p->in, target->wants, &ok) < 0)
		return -1;
	if (entry->target_at.line != 0) {
		events_report(&p->in, events_here(&p->in),
		    "an entry has one of 'host', 'cidr', 'country' and 'asn'; make it two entries");
		return 0;
	}
	entry->target_at = events_here(&p->in);
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (!target->number && events_scalar_is_plain(&p->in) && is_no_text(text, len))
		events_report(&p->in, events_here(&p->in), "'%s' is a number or a truth value; write %s",
		    events_quote(&p->in).text, target->wants);
	else if (target->set(&entry->rule, text, len, &err) < 0)
		events_report(&p->in, events_here(&p->in), "%s", err.text);
	return 0;
}

static int
read_port(struct parse *p, struct entry *entry)
{
	const char *text;
	struct error err;
	size_t len;
	bool ok;

	if (events_want_scalar(&p->in, "a port, as in 22 or \"8000-8010\"", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (rule_add_ports(&entry->rule, text, len, &err) < 0)
		events_report(&p->in, events_here(&p->in), "%s", err.text);
	return 0;
}

static int
read_ports(void *parse, void *entry, unsigned int unused)
{
	struct parse *p = parse;
	bool any = false;

	(void)unused;
	if (p->in.event.type != YAML_SEQUENCE_START_EVENT)
		return read_port(p, entry);
	for (;;) {
		if (events_next(&p->in) < 0)
			return -1;
		if (p->in.event.type == YAML_SEQUENCE_END_EVENT)
			break;
		any = true;
		if (read_port(p, entry) < 0)
			return -1;
	}
	if (!any)
		events_report(&p->in, events_here(&p->in), "the list of ports is empty; name one or leave 'ports' out");
	return 0;
}

/* true or false, unquoted; flag is the offset of the bool in struct entry. */
static int
read_flag(void *parse, void *entry, unsigned int flag)
{
	struct parse *p = parse;
	bool *value = (bool *)((char *)entry + flag), ok;

	if (events_want_scalar(&p->in, "true or false", &ok) < 0)
		return -1;
	if (events_scalar_is_plain(&p->in) && events_scalar_is(&p->in, "true"))
		*value = true;
	else if (events_scalar_is_plain(&p->in) && events_scalar_is(&p->in, "false"))
		*value = false;
	else if (ok)
		events_report(&p->in, events_here(&p->in), "'%s' is neither true nor false; write true",
		    events_quote(&p->in).text);
	return 0;
}

/* "2h", or a point in time. */
static int
read_expires(void *parse, void *into, unsigned int unused)
{
	struct parse *p = parse;
	struct entry *entry = into;
	const char *text;
	size_t len;
	bool ok;

	(void)unused;
	if (events_want_scalar(&p->in, "for how long, as in 2h, or until when, as in 2026-12-01T10:00:00Z", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (!quantity_parse_duration(text, len, RULE_EXPIRES_AFTER_MAX_S, &entry->rule.expires_after_s) &&
	    !quantity_parse_instant(text, len, &entry->rule.expires_us))
		events_report(&p->in, events_here(&p->in),
		    "'%s' is no expiry; write for how long, as in 90s, 10m, 2h or 7d, "
		    "or until when, as in 2026-12-01T10:00:00Z",
		    events_quote(&p->in).text);
	return 0;
}

static int
read_uses(void *parse, void *into, unsigned int unused)
{
	struct parse *p = parse;
	struct entry *entry = into;
	uint64_t uses = 0;
	const char *text;
	size_t len;
	bool ok;

	(void)unused;
	if (events_want_scalar(&p->in, "how many connections, as in 3", &ok) < 0)
		return -1;
	if (!ok)
		return 0;
	text = events_scalar(&p->in, &len);
	if (!events_scalar_is_plain(&p->in) || !quantity_parse_count(text, len, RULE_USES_MAX, &uses) || uses == 0)
		events_report(&p->in, events_here(&p->in), "'%s' is no number from 1 to %d", events_quote(&p->in).text,
		    RULE_USES_MAX);
	entry->rule.uses = (uint32_t)uses;
	return 0;
}

static int
read_limits(void *parse, void *entry, unsigned int unused)
{
	(void)unused;
	return policy_parse_limits(parse, &((struct entry *)entry)->rule.limits, true);
}

static const struct events_key keys[] = {
    {"host", read_target, RULE_HOST},
    {"cidr", read_target, RULE_CIDR},
    {"country", read_target, RULE_COUNTRY},
    {"asn", read_target, RULE_ASN},
    {"ports", read_ports, 0},
    {"udp", read_flag, offsetof(struct entry, udp)},
    {"subdomains", read_flag, offsetof(struct entry, rule.subdomains)},
    {"shared", read_flag, offsetof(struct entry, rule.shared)},
    {"expires", read_expires, 0},
    {"uses", read_uses, 0},
    {"limits", read_limits, 0},
};
const struct events_keys policy_parse_entry_keys = {keys, COUNT(keys)};
static_assert(COUNT(keys) <= EVENTS_KEYS_MAX, "each key's place is kept");

/* Where the rule's target stands, for the notes. */
static int
place_keep(struct parse *p, struct place at)
{
	size_t size = p->place_size == 0 ? 64 : 2 * p->place_size;
	struct policy_place *places;

	if (p->policy.rule_count == p->place_size) {
		places = reallocarray(p->places, size, sizeof(*places));
		if (places == NULL)
			return -1;
		p->places = places;
		p->place_size = size;
	}
	p->places[p->policy.rule_count] = (struct policy_place){(uint32_t)at.line, (uint32_t)at.column};
	return 0;
}

static int
entry_add(struct parse *p, struct entry *entry, struct place at)
{
	struct rule *rule = &entry->rule;
	struct error err;

	events_origin(&p->in, rule->origin, ":%zu", at.line);
	if (place_keep(p, entry->target_at) < 0)
		error_set(&err, ERROR_LIMIT, "no memory to read it");
	else if (policy_add(&p->policy, rule, &err) == 0)
		return 0;
	events_report(&p->in, at, "%s", err.text);
	p->in.code = err.code;
	return -1;
}

/* All keys are read: give protocol and ports their final form, check, append. */
static int
entry_finish(struct parse *p, struct entry *entry, struct place at)
{
	struct rule *rule = &entry->rule;
	struct error err;

	if (entry->target_at.line == 0) {
		events_report(&p->in, at, "the entry names no 'host', 'cidr', 'country' or 'asn'");
		return 0;
	}
	if (entry->udp && rule->action == RULE_DENY && rule->range_count == 0) {
		rule->ranges[0] = (struct port_range){1, UINT16_MAX};
		rule->range_count = 1;
	}
	if (entry->udp)
		rule->proto = IPPROTO_UDP;
	else if (rule->action == RULE_ALLOW || rule->range_count > 0)
		rule->proto = IPPROTO_TCP;
	if (rule_check(rule, &err) < 0) {
		events_report(&p->in, entry->target_at, "%s", err.text);
		return 0;
	}
	return entry_add(p, entry, at);
}

static int
refuse_entry(struct parse *p)
{
	struct place at = events_here(&p->in);

	if (p->in.event.type == YAML_SCALAR_EVENT && !events_is_null(&p->in))
		events_report(&p->in, at, "an entry is 'host: NAME' or 'cidr: RANGE'; write '- host: \"%s\"'",
		    events_quote(&p->in).text);
	else if (p->in.event.type != YAML_ALIAS_EVENT)
		events_report(&p->in, at, "an entry is 'host: NAME' or 'cidr: RANGE'");
	return events_skip(&p->in);
}

static int
read_entry(struct parse *p, enum rule_action action)
{
	struct entry entry = {.rule = {.action = action}};
	struct place at = events_here(&p->in), places[EVENTS_KEYS_MAX];
	size_t errors_before = p->in.error_count;

	if (p->in.event.type != YAML_MAPPING_START_EVENT)
		return refuse_entry(p);
	if (events_read_mapping(&p->in, &policy_parse_entry_keys, p, &entry, places) < 0)
		return -1;
	/* A deny counts nothing. */
	for (size_t i = 0; action == RULE_DENY && i < COUNT(keys); i++)
		if (places[i].line != 0 && (keys[i].read == read_uses || keys[i].read == read_limits))
			events_report(&p->in, places[i], "'%s' is for allow entries only; remove it", keys[i].word);
	return p->in.error_count > errors_before ? 0 : entry_finish(p, &entry, at);
}

int
policy_parse_entry_list(void *parse, void *unused, unsigned int action)
{
	const char *key = action == RULE_ALLOW ? "allow" : "deny";
	struct parse *p = parse;

	(void)unused;
	p->policy.has_allow = p->policy.has_allow || action == RULE_ALLOW;
	if (p->in.event.type != YAML_SEQUENCE_START_EVENT) {
		if (events_is_null(&p->in))
			events_report(
			    &p->in, events_here(&p->in), "'%s' has no value; write '%s: []' for none", key, key);
		else if (p->in.event.type != YAML_ALIAS_EVENT)
			events_report(&p->in, events_here(&p->in),
			    "'%s' is a list; begin each entry with '- host:' or '- cidr:'", key);
		return events_skip(&p->in);
	}
	for (;;) {
		if (events_next(&p->in) < 0)
			return -1;
		if (p->in.event.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (read_entry(p, (enum rule_action)action) < 0)
			return -1;
	}
}
