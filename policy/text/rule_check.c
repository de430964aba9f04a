/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a rule may say: a rule that cannot apply, or that opens more than anybody can mean, is refused when it is read
 * and not ignored when traffic comes. That is what is on the never list, ports that never leave (53, UDP 443),
 * wildcards over the names of strangers, names made to be mistaken for others. The compiler asks again, so that no path
 * around the parser leads to the data path. */
#include "policy/names/lookalike.h"
#include "policy/text/rule.h"
#include "policy/names/shared.h"

#include <string.h>

#define PORT_DNS 53
#define PORT_HTTPS 443

static bool
names_port(const struct rule *rule, uint16_t port)
{
	for (size_t i = 0; i < rule->range_count; i++)
		if (rule->ranges[i].first <= port && port <= rule->ranges[i].last)
			return true;
	return false;
}

static int
check_shape(const struct rule *rule, struct error *err)
{
	if (rule->range_count > RULE_RANGES_MAX)
		return error_set(err, ERROR_POLICY, "more than %d port ranges in one rule; split it", RULE_RANGES_MAX);
	for (size_t i = 0; i < rule->range_count; i++)
		if (rule->ranges[i].first == 0 || rule->ranges[i].first > rule->ranges[i].last ||
		    (i > 0 && rule->ranges[i].first <= rule->ranges[i - 1].last))
			return error_set(err, ERROR_POLICY, "port ranges are out of order");
	if (rule->proto != IPPROTO_TCP && rule->proto != IPPROTO_UDP &&
	    (rule->proto != 0 || rule->action == RULE_ALLOW))
		return error_set(err, ERROR_POLICY, "rules are for TCP or UDP");
	if (rule->action == RULE_DENY && (rule->proto == 0) != (rule->range_count == 0))
		return error_set(err, ERROR_POLICY, "a deny rule names both protocol and ports, or neither");
	if (rule->kind == RULE_HOST && rule->wildcard && rule->subdomains)
		return error_set(err, ERROR_POLICY,
		    "'*.%s' with subdomains is said twice; write the host without '*.', or leave "
		    "subdomains out",
		    rule->name.text);
	if (rule->kind != RULE_HOST && (rule->subdomains || rule->shared))
		return error_set(err, ERROR_POLICY, "subdomains and shared are for hosts only");
	return 0;
}

static int
check_ports(const struct rule *rule, struct error *err)
{
	unsigned int count = 0;

	for (size_t i = 0; i < rule->range_count; i++)
		count += rule->ranges[i].last - rule->ranges[i].first + 1u;
	if (rule->range_count == 0 && rule->kind == RULE_CIDR)
		return error_set(
		    err, ERROR_POLICY, "a rule for addresses must name its ports, as in 140.82.112.0/20:22");
	if (rule->range_count == 0 && rule->proto == IPPROTO_UDP)
		return error_set(err, ERROR_POLICY, "a rule for UDP must name its ports, as in example.com:5000/udp");
	if (names_port(rule, PORT_DNS))
		return error_set(err, ERROR_POLICY,
		    "port 53 cannot be allowed: DNS is answered by postern itself; leave the port out");
	if (rule->proto == IPPROTO_UDP && names_port(rule, PORT_HTTPS))
		return error_set(err, ERROR_POLICY,
		    "UDP port 443 (QUIC) cannot be allowed: browsers fall back to TCP, where names are checked");
	if (rule->proto == IPPROTO_UDP && count > RULE_UDP_PORTS_MAX)
		return error_set(
		    err, ERROR_POLICY, "%u UDP ports in one rule; at most %d can be served", count, RULE_UDP_PORTS_MAX);
	if (rule->kind == RULE_HOST && count > RULE_HOST_PORTS_MAX)
		return error_set(
		    err, ERROR_POLICY, "%u ports for one host; at most %d can be opened", count, RULE_HOST_PORTS_MAX);
	return 0;
}

static int
check_cidr(const struct rule *rule, struct error *err)
{
	char text[ADDR_TEXT_MAX + 4];
	const struct never_prefix *row;

	if (!addr_prefix_touches_never(&rule->prefix, &row))
		return 0;
	addr_prefix_format(&rule->prefix, text);
	if (row->prefix.bits == rule->prefix.bits)
		return error_set(err, ERROR_POLICY, "%s is %s and can never be allowed", text, row->why);
	if (row->prefix.bits < rule->prefix.bits)
		return error_set(
		    err, ERROR_POLICY, "%s lies in %s (%s) and can never be allowed", text, row->text, row->why);
	return error_set(err, ERROR_POLICY,
	    "%s holds %s (%s), which can never be allowed; name the public ranges you need", text, row->text, row->why);
}

/* Whose names does a wildcard or "subdomains" let in? */
static int
check_span(const struct rule *rule, struct error *err)
{
	const char *lead = rule->wildcard ? "*." : "", *what;
	bool single = memchr(rule->name.text, '.', rule->name.len) == NULL;

	if (single)
		return error_set(err, ERROR_POLICY, "'%s%s' spans a whole top-level domain; name the hosts you need",
		    lead, rule->name.text);
	switch (shared_span_of(&rule->name, &what)) {
	case SHARED_SPAN_ONE:
		return 0;
	case SHARED_SPAN_PUBLIC:
		return error_set(err, ERROR_POLICY,
		    "'%s%s' spans a public suffix, below which anybody registers names; name the hosts you need", lead,
		    rule->name.text);
	case SHARED_SPAN_MANY:
		break;
	}
	if (rule->shared)
		return 0;
	return error_set(err, ERROR_POLICY,
	    "'%s%s' spans names of many parties%s%s%s; name the hosts you need, or say 'shared: true' if you mean them "
	    "all",
	    lead, rule->name.text, what == NULL ? "" : " (", what == NULL ? "" : what, what == NULL ? "" : ")");
}

static int
check_host(const struct rule *rule, struct error *err)
{
	enum lookalike lookalike = lookalike_of(&rule->name);
	const struct never_name *row;

	if ((rule->wildcard || rule->subdomains) && check_span(rule, err) < 0)
		return -1;
	row = name_never(&rule->name);
	if (row != NULL)
		return error_set(err, ERROR_POLICY, "host name '%s' can never be allowed: %s (%s)", rule->name.text,
		    row->why, row->name);
	if (lookalike != LOOKALIKE_NONE)
		return error_set(err, ERROR_POLICY, "host name '%s' %s, so that it can be taken for another; check it",
		    rule->name.text, lookalike_text(lookalike));
	return 0;
}

/* Deadline, count and limits; what an entry of YAML and the command line's options may say. */
static int
check_terms(const struct rule *rule, struct error *err)
{
	if (rule->expires_us < 0 || rule->expires_after_s > RULE_EXPIRES_AFTER_MAX_S ||
	    (rule->expires_us != 0 && rule->expires_after_s != 0))
		return error_set(err, ERROR_POLICY, "the expiry is out of range");
	if (rule->action == RULE_DENY && (rule->uses != 0 || limits_any(&rule->limits) || rule->bound))
		return error_set(err, ERROR_POLICY, "a deny rule has neither uses nor limits; remove them");
	if (rule->uses > RULE_USES_MAX)
		return error_set(err, ERROR_POLICY, "%u uses; at most %d can be counted", rule->uses, RULE_USES_MAX);
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		struct limit limit = rule->limits.of[kind];

		if (!limits_is_sound((enum limit_kind)kind, limit) ||
		    (limit.hard != 0 && !limits_kind_is_of_rules((enum limit_kind)kind)))
			return error_set(
			    err, ERROR_POLICY, "a rule has no such limit: %s", limits_kind_text((unsigned int)kind));
	}
	return 0;
}

static int
check_target(const struct rule *rule, struct error *err)
{
	switch (rule->kind) {
	case RULE_HOST:
		return check_host(rule, err);
	case RULE_CIDR:
		return check_cidr(rule, err);
	case RULE_COUNTRY:
	case RULE_ASN:
		break;
	}
	return error_set(
	    err, ERROR_POLICY, "a country or ASN can be denied only: where an address is says nothing of who has it");
}

int
rule_check(const struct rule *rule, struct error *err)
{
	if (check_shape(rule, err) < 0 || check_terms(rule, err) < 0)
		return -1;
	/* A deny rule may name what is refused anyway. */
	if (rule->action == RULE_DENY)
		return 0;
	return check_target(rule, err) < 0 ? -1 : check_ports(rule, err);
}
