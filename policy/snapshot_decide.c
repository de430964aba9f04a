/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decisions on a verified block: never list, then deny, then allow.
 *
 * A question about a name looks up the name and each of its parents, one about an address its network at each prefix
 * length in use: at most SNAP_HEADS_MAX chains of rules, the most specific first. Any deny rule that covers the port
 * decides; else the first allow rule that does. Nothing is allocated and no system call made. */
#include "policy/snapshot_format.h"

#include <string.h>

/* First rules (1 + index) of the chains that a question hits. */
struct heads {
	uint32_t rule[SNAP_HEADS_MAX];
	size_t count;
};

static const struct decision decision_none = {VERDICT_DENIED, REASON_NO_RULE, SNAPSHOT_NO_RULE};

static void
heads_add_name(
    const struct snap_view *view, struct heads *heads, enum snap_kind kind, const char *name, size_t len, uint64_t hash)
{
	uint32_t tag = (uint32_t)(hash >> 32);

	for (uint32_t step = 0; step < SNAP_PROBE_MAX; step++) {
		const struct snap_slot *slot = &view->tables[kind][((uint32_t)hash + step) & view->masks[kind]];
		const struct snap_rule *rule;

		if (slot->rule == 0)
			return;
		if (slot->tag != tag)
			continue;
		rule = &view->rules[slot->rule - 1];
		if (rule->name_len == len && memcmp(view->strings + rule->name, name, len) == 0) {
			heads->rule[heads->count++] = slot->rule;
			return;
		}
	}
}

/* The hash runs from the name's end, so that every parent's is a stop on the way; heads come out shortest parent first
 * and are turned round. */
static void
heads_of_name(const struct snap_view *view, const struct name *name, struct heads *heads)
{
	uint64_t hash = snap_hash_start(view->seed);

	heads->count = 0;
	for (size_t at = name->len; at-- > 0;) {
		if (name->text[at] == '.')
			heads_add_name(
			    view, heads, SNAP_WILDCARD, name->text + at + 1, name->len - at - 1, snap_hash_end(hash));
		hash = snap_hash_step(hash, (uint8_t)name->text[at]);
	}
	heads_add_name(view, heads, SNAP_EXACT, name->text, name->len, snap_hash_end(hash));
	for (size_t i = 0; i < heads->count / 2; i++) {
		uint32_t swap = heads->rule[i];

		heads->rule[i] = heads->rule[heads->count - 1 - i];
		heads->rule[heads->count - 1 - i] = swap;
	}
}

static struct prefix
prefix_of(const struct addr *addr, uint8_t bits)
{
	struct prefix prefix = {.addr = {.family = addr->family}, .bits = bits};

	memcpy(prefix.addr.bytes, addr->bytes, bits / 8);
	if (bits % 8 != 0)
		prefix.addr.bytes[bits / 8] = addr->bytes[bits / 8] & (uint8_t)(0xff00u >> bits % 8);
	return prefix;
}

static void
heads_add_prefix(const struct snap_view *view, struct heads *heads, const struct prefix *prefix)
{
	uint64_t hash = snap_hash_prefix(view->seed, prefix);
	uint32_t tag = (uint32_t)(hash >> 32);

	for (uint32_t step = 0; step < SNAP_PROBE_MAX; step++) {
		const struct snap_slot *slot =
		    &view->tables[SNAP_CIDR][((uint32_t)hash + step) & view->masks[SNAP_CIDR]];

		if (slot->rule == 0)
			return;
		if (slot->tag == tag && memcmp(&view->rules[slot->rule - 1].prefix, prefix, sizeof(*prefix)) == 0) {
			heads->rule[heads->count++] = slot->rule;
			return;
		}
	}
}

static void
heads_of_addr(const struct snapshot *s, const struct addr *addr, struct heads *heads)
{
	size_t family = addr->family == 6;

	heads->count = 0;
	for (size_t i = 0; i < s->length_count[family]; i++) {
		struct prefix prefix = prefix_of(addr, s->lengths[family][i]);

		heads_add_prefix(&s->view, heads, &prefix);
	}
}

static bool
rule_covers(const struct snap_view *view, const struct snap_rule *rule, uint8_t proto, uint16_t port)
{
	const struct port_range *ranges = view->ports + rule->ranges;

	if (rule->proto == 0)
		return true;
	if (rule->proto != proto)
		return false;
	for (uint32_t i = 0; i < rule->range_count; i++)
		if (ranges[i].first <= port && port <= ranges[i].last)
			return true;
	return false;
}

static struct decision
heads_decide(const struct snap_view *view, const struct heads *heads, uint8_t proto, uint16_t port)
{
	struct decision decision = decision_none;

	for (size_t i = 0; i < heads->count; i++) {
		for (uint32_t next = heads->rule[i]; next != 0; next = view->rules[next - 1].next) {
			const struct snap_rule *rule = &view->rules[next - 1];

			if (!rule_covers(view, rule, proto, port))
				continue;
			if (rule->action == RULE_DENY)
				return (struct decision){VERDICT_DENIED, REASON_RULE_DENY, next - 1};
			if (decision.verdict == VERDICT_DENIED)
				decision = (struct decision){VERDICT_ALLOWED, REASON_ALLOWED, next - 1};
		}
	}
	return decision;
}

struct decision
snapshot_decide_host(const struct snapshot *s, const struct name *name, uint8_t proto, uint16_t port)
{
	struct heads heads;

	if (name_never(name) != NULL)
		return (struct decision){VERDICT_DENIED, REASON_NEVER_NAME, SNAPSHOT_NO_RULE};
	heads_of_name(&s->view, name, &heads);
	return heads_decide(&s->view, &heads, proto, port);
}

struct decision
snapshot_decide_addr(const struct snapshot *s, const struct addr *addr, uint8_t proto, uint16_t port)
{
	struct heads heads;

	if (addr_never(addr) != NULL)
		return (struct decision){VERDICT_DENIED, REASON_NEVER_ADDRESS, SNAPSHOT_NO_RULE};
	heads_of_addr(s, addr, &heads);
	return heads_decide(&s->view, &heads, proto, port);
}

/* A set of ports of one protocol. */
struct port_set {
	uint64_t words[(UINT16_MAX + 1) / 64];
};

/* The ports that a name's rules allow and deny, TCP and UDP apart. Only what is asked for is cleared first. */
struct name_ports {
	struct port_set tcp, udp;
	bool any;
};

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

static bool
set_has(const struct port_set *set, uint32_t port)
{
	return (set->words[port / 64] >> port % 64 & 1) != 0;
}

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

/* Collect what rules of one action name. False when a rule names everything; *ret_rule is that rule. */
static bool
name_ports_collect(const struct snap_view *view, const struct heads *heads, enum rule_action action,
    struct name_ports *ret_ports, uint32_t *ret_rule)
{
	ret_ports->any = false;
	for (size_t i = 0; i < heads->count; i++) {
		for (uint32_t next = heads->rule[i]; next != 0; next = view->rules[next - 1].next) {
			const struct snap_rule *rule = &view->rules[next - 1];

			if (rule->action != action)
				continue;
			if (rule->proto == 0) {
				*ret_rule = next - 1;
				return false;
			}
			name_ports_add(view, ret_ports, rule);
		}
	}
	return true;
}

/* The first port of the rule that is not denied; 0 when all are. */
static uint16_t
rule_open_port(const struct snap_view *view, const struct snap_rule *rule, const struct name_ports *denied)
{
	const struct port_set *set = rule->proto == IPPROTO_UDP ? &denied->udp : &denied->tcp;

	for (uint32_t r = 0; r < rule->range_count; r++) {
		const struct port_range *range = &view->ports[rule->ranges + r];

		for (uint32_t port = range->first; port <= range->last; port++)
			if (!denied->any || !set_has(set, port))
				return (uint16_t)port;
	}
	return 0;
}

struct decision
snapshot_decide_dns(const struct snapshot *s, const struct name *name)
{
	const struct snap_view *view = &s->view;
	const struct snap_rule *shut = NULL;
	struct name_ports denied;
	struct heads heads;
	uint32_t denier;

	if (name_never(name) != NULL)
		return (struct decision){VERDICT_DENIED, REASON_NEVER_NAME, SNAPSHOT_NO_RULE};
	heads_of_name(view, name, &heads);
	if (!name_ports_collect(view, &heads, RULE_DENY, &denied, &denier))
		return (struct decision){VERDICT_DENIED, REASON_RULE_DENY, denier};
	for (size_t i = 0; i < heads.count; i++) {
		for (uint32_t next = heads.rule[i]; next != 0; next = view->rules[next - 1].next) {
			const struct snap_rule *rule = &view->rules[next - 1];

			if (rule->action != RULE_ALLOW)
				continue;
			if (rule_open_port(view, rule, &denied) != 0)
				return (struct decision){VERDICT_ALLOWED, REASON_ALLOWED, next - 1};
			shut = shut == NULL ? rule : shut;
		}
	}
	/* Allowed, and denied port by port: name the rule that shuts the first. */
	if (shut != NULL)
		return heads_decide(view, &heads, shut->proto, view->ports[shut->ranges].first);
	return decision_none;
}

static size_t
set_list(const struct port_set *allowed, const struct port_set *denied, uint8_t proto, struct proto_port *ret_ports,
    size_t count, size_t max)
{
	for (uint32_t word = 0; word < sizeof(allowed->words) / sizeof(allowed->words[0]); word++) {
		uint64_t left = allowed->words[word] & ~(denied == NULL ? 0 : denied->words[word]);

		for (; left != 0 && count < max; left &= left - 1)
			ret_ports[count++] =
			    (struct proto_port){proto, (uint16_t)(word * 64 + (uint32_t)__builtin_ctzll(left))};
	}
	return count;
}

size_t
snapshot_host_ports(const struct snapshot *s, const struct name *name, struct proto_port *ret_ports, size_t max)
{
	struct name_ports allowed, denied;
	struct heads heads;
	uint32_t rule;
	size_t count;

	if (name_never(name) != NULL)
		return 0;
	heads_of_name(&s->view, name, &heads);
	if (!name_ports_collect(&s->view, &heads, RULE_DENY, &denied, &rule) ||
	    !name_ports_collect(&s->view, &heads, RULE_ALLOW, &allowed, &rule) || !allowed.any)
		return 0;
	count = set_list(&allowed.tcp, denied.any ? &denied.tcp : NULL, IPPROTO_TCP, ret_ports, 0, max);
	return set_list(&allowed.udp, denied.any ? &denied.udp : NULL, IPPROTO_UDP, ret_ports, count, max);
}
