/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What follows from a block's rules: hashes, keys, UDP ports, address ranges. The maker stores it, and each reader
 * works it out again and compares, so that a block can state rules and nothing that contradicts them. */
#include "policy/compiled/snapshot_format.h"

#include "policy/compiled/ranges.h"

#include <stdlib.h>
#include <string.h>

uint64_t
snapshot_derive_hash_prefix(uint64_t seed, const struct prefix *prefix)
{
	uint64_t hash = snap_hash_step(snap_hash_step(snap_hash_start(seed), prefix->addr.family), prefix->bits);

	for (size_t i = 0; i < (prefix->addr.family == 4 ? 4u : 16u); i++)
		hash = snap_hash_step(hash, prefix->addr.bytes[i]);
	return snap_hash_end(hash);
}

uint64_t
snapshot_derive_hash_place(uint64_t seed, uint32_t place)
{
	uint64_t hash = snap_hash_start(seed);

	for (unsigned int shift = 0; shift < 32; shift += 8)
		hash = snap_hash_step(hash, (uint8_t)(place >> shift));
	return snap_hash_end(hash);
}

uint64_t
snapshot_derive_hash_rule(const struct snap_view *view, const struct snap_rule *rule)
{
	uint64_t hash = snap_hash_start(view->seed);

	if (rule->kind == SNAP_CIDR)
		return snapshot_derive_hash_prefix(view->seed, &rule->prefix);
	if (rule->kind == SNAP_COUNTRY || rule->kind == SNAP_ASN)
		return snapshot_derive_hash_place(view->seed, rule->place);
	for (uint32_t at = rule->name_len; at-- > 0;)
		hash = snap_hash_step(hash, (uint8_t)view->strings[rule->name + at]);
	return snap_hash_end(hash);
}

bool
snapshot_derive_same_key(const struct snap_view *view, const struct snap_rule *a, const struct snap_rule *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SNAP_CIDR)
		return memcmp(&a->prefix, &b->prefix, sizeof(a->prefix)) == 0;
	if (a->kind == SNAP_COUNTRY || a->kind == SNAP_ASN)
		return a->place == b->place;
	return a->name_len == b->name_len && memcmp(view->strings + a->name, view->strings + b->name, a->name_len) == 0;
}

/* Feeds a text and its end into a hash. */
static uint64_t
hash_text(uint64_t hash, const char *text, size_t len)
{
	for (size_t i = 0; i < len; i++)
		hash = snap_hash_step(hash, (uint8_t)text[i]);
	return snap_hash_step(hash, 0);
}

/* The line is left out: a rule that moves within its file stays the rule that it was. */
uint64_t
snapshot_derive_rule_id(const char *text, const char *origin, bool bound)
{
	size_t len = strlen(origin), file = len;
	uint64_t hash = snap_hash_start(bound);

	while (file > 0 && origin[file - 1] >= '0' && origin[file - 1] <= '9')
		file--;
	if (file > 0 && file < len && origin[file - 1] == ':')
		len = file - 1;
	hash = snap_hash_end(hash_text(hash_text(hash, text, strlen(text)), origin, len));
	return hash == 0 ? 1 : hash;
}

/* Add one port to a rising list. False when it is full. */
static bool
port_insert(uint16_t *ports, size_t *count, uint16_t port)
{
	size_t at = 0;

	while (at < *count && ports[at] < port)
		at++;
	if (at < *count && ports[at] == port)
		return true;
	if (*count == RULE_UDP_PORTS_MAX)
		return false;
	memmove(ports + at + 1, ports + at, (*count - at) * sizeof(ports[0]));
	ports[at] = port;
	(*count)++;
	return true;
}

int
snapshot_derive_udp_ports(
    const struct snap_view *view, uint16_t ret_ports[RULE_UDP_PORTS_MAX], size_t *ret_count, struct error *err)
{
	size_t count = 0;

	for (uint32_t i = 0; i < view->rule_count; i++) {
		const struct snap_rule *rule = &view->rules[i];

		if (rule->action != RULE_ALLOW || rule->bound || rule->proto != IPPROTO_UDP)
			continue;
		for (uint32_t r = 0; r < rule->range_count; r++) {
			const struct port_range *range = &view->ports[rule->ranges + r];

			for (uint32_t port = range->first; port <= range->last; port++)
				if (!port_insert(ret_ports, &count, (uint16_t)port))
					return error_set(err, ERROR_LIMIT, "%s: the rules name more than %d UDP ports",
					    view->strings + rule->origin, RULE_UDP_PORTS_MAX);
		}
	}
	*ret_count = count;
	return 0;
}

/* Mode learn: all that is public, but for DNS, which is never let out. */
static const struct port_range learn_ports[] = {{1, 52}, {54, UINT16_MAX}};
static const struct prefix learn_prefixes[] = {
    {.addr = {.family = 4}, .bits = 0},
    {.addr = {.family = 6, .bytes = {0x20}}, .bits = 3},
};
#define LEARN_PREFIXES (sizeof(learn_prefixes) / sizeof(learn_prefixes[0]))

/* The never list is taken out whole, platforms included: the kernel's sets are checked against it, and each process
 * that derives the ranges has to come to the same ones. */
static size_t
learn_rules(struct ranges_rule *rules)
{
	size_t never_count, count = 0;
	const struct never_prefix *never = addr_never_list(&never_count);

	for (size_t i = 0; i < LEARN_PREFIXES; i++)
		rules[count++] = (struct ranges_rule){.prefix = learn_prefixes[i],
		    .part = RANGES_ALLOW,
		    .proto = IPPROTO_TCP,
		    .port_count = sizeof(learn_ports) / sizeof(learn_ports[0]),
		    .ports = learn_ports};
	for (size_t i = 0; i < never_count; i++)
		rules[count++] = (struct ranges_rule){.prefix = never[i].prefix, .part = RANGES_DENY};
	return count;
}

int
snapshot_derive_ranges(
    const struct snap_view *view, struct addr_range **ret_ranges, size_t *ret_count, struct error *err)
{
	bool learn = view->header->mode == POLICY_MODE_LEARN;
	size_t never_count, count = 0;
	struct ranges_rule *rules;
	struct addr_range *ranges = calloc(SNAPSHOT_RANGES_MAX, sizeof(*ranges));
	int result;

	addr_never_list(&never_count);
	rules = calloc((size_t)view->rule_count + LEARN_PREFIXES + never_count, sizeof(*rules));
	for (uint32_t i = 0; rules != NULL && i < view->rule_count; i++) {
		const struct snap_rule *rule = &view->rules[i];
		bool deny = rule->action == RULE_DENY;

		/* A deny rule with a deadline is the gateway's alone: what the kernel refused by it would stay shut
		 * after it, as these ranges do not change with time. */
		if (rule->kind == SNAP_CIDR && !(deny && rule->expires_us != 0))
			rules[count++] = (struct ranges_rule){.prefix = rule->prefix,
			    .part = deny      ? RANGES_DENY
				: rule->bound ? RANGES_BOUND
					      : RANGES_ALLOW,
			    .proto = rule->proto,
			    .port_count = rule->range_count,
			    .ports = view->ports + rule->ranges};
	}
	if (rules != NULL && learn)
		count += learn_rules(rules + count);
	if (rules == NULL || ranges == NULL)
		result = error_set(err, ERROR_LIMIT, "no memory for the policy's address ranges");
	else
		result = ranges_compute(rules, count, view->header->bounded != 0, ranges, ret_count, err);
	free(rules);
	if (result < 0)
		free(ranges);
	else
		*ret_ranges = ranges;
	return result;
}
