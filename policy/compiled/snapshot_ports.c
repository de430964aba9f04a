/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which ports a name has in all: what a lease opens in the kernel, and whether the name may be resolved at all. */
#include "policy/compiled/snapshot_format.h"

#include <string.h>

/* A set of ports of one protocol. */
struct port_set {
	uint64_t words[(UINT16_MAX + 1) / 64];
};

/* The ports that a name's rules allow and deny, TCP and UDP apart. Only what is asked for is cleared first. */
struct name_ports {
	struct port_set tcp, udp;
	bool any;
};

/* Adds a range of ports. */
static void
set_range(struct port_set *set, struct port_range range)
{
	uint32_t first = range.first / 64, last = range.last / 64;
	uint64_t head = UINT64_MAX << range.first % 64, tail = UINT64_MAX >> (63 - range.last % 64);

	if (first == last) {
		set->words[first] |= head & tail;
		return;
	}
	set->words[first] |= head;
	for (uint32_t word = first + 1; word < last; word++)
		set->words[word] = UINT64_MAX;
	set->words[last] |= tail;
}

/* Is the port in the set? */
static bool
set_has(const struct port_set *set, uint32_t port)
{
	return (set->words[port / 64] >> port % 64 & 1) != 0;
}

/* Adds a rule's ports; the set is cleared first if nothing is in it. */
static void
name_ports_add(const struct snap_view *view, struct name_ports *ports, const struct snap_rule *rule)
{
	struct port_set *set = rule->proto == IPPROTO_UDP ? &ports->udp : &ports->tcp;

	if (!ports->any)
		memset(ports, 0, sizeof(*ports));
	ports->any = true;
	for (uint32_t r = 0; r < rule->range_count; r++)
		set_range(set, view->ports[rule->ranges + r]);
}

/* What a name's live rules say, port by port. */
struct name_rules {
	struct snap_heads heads;
	struct name_ports allowed, denied;
	struct name_ports bounds; /* only when there are some */
	uint32_t denier;          /* a rule that denies all, or SNAPSHOT_NO_RULE; then the rest is not filled */
};

/* Collects what a name's live rules say, up to one that denies all. */
static void
name_rules_collect(const struct snapshot *s, const struct name *name, int64_t now_us, struct name_rules *ret)
{
	const struct snap_view *view = &s->view;

	ret->allowed.any = ret->denied.any = ret->bounds.any = false;
	ret->denier = SNAPSHOT_NO_RULE;
	snapshot_decide_heads_of(s, name, &ret->heads);
	for (size_t i = 0; i < ret->heads.count; i++) {
		for (uint32_t next = ret->heads.rule[i]; next != 0; next = view->rules[next - 1].next) {
			const struct snap_rule *rule = &view->rules[next - 1];

			if (!snap_rule_lives(s, next - 1, now_us))
				continue;
			if (rule->action == RULE_DENY && rule->proto == 0) {
				ret->denier = next - 1;
				return;
			}
			name_ports_add(view,
			    rule->action == RULE_DENY ? &ret->denied
				: rule->bound         ? &ret->bounds
						      : &ret->allowed,
			    rule);
		}
	}
}

/* Is the port one that no rule denies and that lies within the bounds? */
static bool
port_is_free(const struct snapshot *s, const struct name_rules *rules, uint8_t proto, uint32_t port)
{
	bool udp = proto == IPPROTO_UDP;

	if (rules->denied.any && set_has(udp ? &rules->denied.udp : &rules->denied.tcp, port))
		return false;
	if (!snapshot_is_bounded(s))
		return true;
	return rules->bounds.any && set_has(udp ? &rules->bounds.udp : &rules->bounds.tcp, port);
}

/* Does the rule open a port that is free? */
static bool
rule_has_free_port(const struct snapshot *s, const struct name_rules *rules, const struct snap_rule *rule)
{
	for (uint32_t r = 0; r < rule->range_count; r++) {
		const struct port_range *range = &s->view.ports[rule->ranges + r];

		for (uint32_t port = range->first; port <= range->last; port++)
			if (port_is_free(s, rules, rule->proto, port))
				return true;
	}
	return false;
}

/* Is there anything that a rule could still open? */
static bool
name_is_learnable(const struct snapshot *s, const struct name_rules *rules)
{
	if (snapshot_mode(s) != POLICY_MODE_LEARN)
		return false;
	for (uint32_t port = 1; port <= UINT16_MAX; port++)
		if (port_is_free(s, rules, IPPROTO_TCP, port))
			return true;
	return false;
}

struct decision
snapshot_ports_any(const struct snapshot *s, const struct name *name, int64_t now_us)
{
	struct decision decision = snap_decision_none;
	const struct snap_rule *shut = NULL;
	struct name_rules rules;

	if (name_never(name) != NULL) {
		decision.reason = REASON_NEVER_NAME;
		return decision;
	}
	name_rules_collect(s, name, now_us, &rules);
	if (rules.denier != SNAPSHOT_NO_RULE) {
		decision.reason = REASON_RULE_DENY;
		decision.rule = rules.denier;
		return decision;
	}
	for (size_t i = 0; i < rules.heads.count; i++) {
		for (uint32_t next = rules.heads.rule[i]; next != 0; next = s->view.rules[next - 1].next) {
			const struct snap_rule *rule = &s->view.rules[next - 1];

			if (rule->action != RULE_ALLOW || rule->bound)
				continue;
			if (!snap_rule_lives(s, next - 1, now_us)) {
				decision.lapsed = decision.lapsed == SNAPSHOT_NO_RULE ? next - 1 : decision.lapsed;
				continue;
			}
			if (rule_has_free_port(s, &rules, rule)) {
				decision.verdict = VERDICT_ALLOWED;
				decision.reason = REASON_ALLOWED;
				decision.rule = next - 1;
				decision.lapsed = SNAPSHOT_NO_RULE;
				return decision;
			}
			shut = shut == NULL ? rule : shut;
		}
	}
	/* Allowed, and denied or out of bounds port by port: what shuts the first explains it. */
	if (shut != NULL)
		decision =
		    snapshot_decide_heads(s, &rules.heads, shut->proto, s->view.ports[shut->ranges].first, now_us);
	if (name_is_learnable(s, &rules)) {
		decision.reason = REASON_NO_RULE;
		decision.rule = SNAPSHOT_NO_RULE;
		decision.learnable = true;
	}
	return decision;
}

/* Appends the free ports of one protocol. */
static size_t
set_list(const struct snapshot *s, const struct name_rules *rules, uint8_t proto, struct proto_port *ret_ports,
    size_t count, size_t max)
{
	bool udp = proto == IPPROTO_UDP;
	const struct port_set *allowed = udp ? &rules->allowed.udp : &rules->allowed.tcp;

	for (uint32_t word = 0; word < sizeof(allowed->words) / sizeof(allowed->words[0]); word++) {
		for (uint64_t left = allowed->words[word]; left != 0 && count < max; left &= left - 1) {
			uint32_t port = word * 64 + (uint32_t)__builtin_ctzll(left);

			if (port_is_free(s, rules, proto, port))
				ret_ports[count++] = (struct proto_port){proto, (uint16_t)port};
		}
	}
	return count;
}

/* Learning needs a lease to know a connection's name: the ports that hosts have by default, or all within the bounds.
 */
static void
learn_ports_add(const struct snapshot *s, struct name_rules *rules)
{
	static const struct port_range defaults[] = {{80, 80}, {443, 443}};

	if (rules->bounds.any && snapshot_is_bounded(s)) {
		rules->allowed = rules->bounds;
		return;
	}
	if (!rules->allowed.any)
		memset(&rules->allowed, 0, sizeof(rules->allowed));
	rules->allowed.any = true;
	for (size_t i = 0; i < sizeof(defaults) / sizeof(defaults[0]); i++)
		set_range(&rules->allowed.tcp, defaults[i]);
}

size_t
snapshot_ports_list(
    const struct snapshot *s, const struct name *name, struct proto_port *ret_ports, size_t max, int64_t now_us)
{
	struct name_rules rules;
	size_t count;

	if (name_never(name) != NULL)
		return 0;
	name_rules_collect(s, name, now_us, &rules);
	if (rules.denier != SNAPSHOT_NO_RULE)
		return 0;
	if (snapshot_mode(s) == POLICY_MODE_LEARN)
		learn_ports_add(s, &rules);
	if (!rules.allowed.any)
		return 0;
	count = set_list(s, &rules, IPPROTO_TCP, ret_ports, 0, max);
	return set_list(s, &rules, IPPROTO_UDP, ret_ports, count, max);
}
