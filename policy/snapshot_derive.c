/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What follows from a block's rules: hashes, keys, UDP ports, address ranges. The maker stores it, and each reader works
 * it out again and compares, so that a block can state rules and nothing that contradicts them. */
#include "policy/snapshot_format.h"

#include "policy/ranges.h"

#include <stdlib.h>
#include <string.h>

uint64_t
snap_hash_name(uint64_t seed, const char *name, size_t len)
{
	uint64_t hash = snap_hash_start(seed);

	while (len-- > 0)
		hash = snap_hash_step(hash, (uint8_t)name[len]);
	return snap_hash_end(hash);
}

uint64_t
snap_hash_prefix(uint64_t seed, const struct prefix *prefix)
{
	uint64_t hash = snap_hash_step(snap_hash_step(snap_hash_start(seed), prefix->addr.family), prefix->bits);

	for (size_t i = 0; i < (prefix->addr.family == 4 ? 4u : 16u); i++)
		hash = snap_hash_step(hash, prefix->addr.bytes[i]);
	return snap_hash_end(hash);
}

uint64_t
snap_hash_rule(const struct snap_view *view, const struct snap_rule *rule)
{
	if (rule->kind == SNAP_CIDR)
		return snap_hash_prefix(view->seed, &rule->prefix);
	return snap_hash_name(view->seed, view->strings + rule->name, rule->name_len);
}

bool
snap_same_key(const struct snap_view *view, const struct snap_rule *a, const struct snap_rule *b)
{
	if (a->kind != b->kind)
		return false;
	if (a->kind == SNAP_CIDR)
		return memcmp(&a->prefix, &b->prefix, sizeof(a->prefix)) == 0;
	return a->name_len == b->name_len && memcmp(view->strings + a->name, view->strings + b->name, a->name_len) == 0;
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
snap_derive_udp_ports(
    const struct snap_view *view, uint16_t ret_ports[RULE_UDP_PORTS_MAX], size_t *ret_count, struct error *err)
{
	size_t count = 0;

	for (uint32_t i = 0; i < view->rule_count; i++) {
		const struct snap_rule *rule = &view->rules[i];

		if (rule->action != RULE_ALLOW || rule->proto != IPPROTO_UDP)
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

int
snap_derive_ranges(const struct snap_view *view, struct addr_range **ret_ranges, size_t *ret_count, struct error *err)
{
	struct ranges_rule *rules = calloc((size_t)view->rule_count + 1, sizeof(*rules));
	struct addr_range *ranges = calloc(SNAPSHOT_RANGES_MAX, sizeof(*ranges));
	size_t count = 0;
	int result;

	for (uint32_t i = 0; rules != NULL && i < view->rule_count; i++) {
		const struct snap_rule *rule = &view->rules[i];

		if (rule->kind == SNAP_CIDR)
			rules[count++] = (struct ranges_rule){.prefix = rule->prefix,
			    .action = rule->action,
			    .proto = rule->proto,
			    .port_count = rule->range_count,
			    .ports = view->ports + rule->ranges};
	}
	if (rules == NULL || ranges == NULL)
		result = error_set(err, ERROR_LIMIT, "no memory for the policy's address ranges");
	else
		result = ranges_compute(rules, count, ranges, ret_count, err);
	free(rules);
	if (result < 0)
		free(ranges);
	else
		*ret_ranges = ranges;
	return result;
}
