/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Decisions on a verified block: never list, then deny, then allow.
 *
 * A question about a name looks up the name and each of its parents, one about an address its network at each prefix
 * length in use: at most SNAP_HEADS_MAX chains of rules, the most specific first. Rules past their deadline or used up
 * are passed over. Any deny rule that covers the port decides; else the first allow rule that does, grants last; and
 * where there are bounds, one of those must cover it too. Nothing is allocated and no system call made. */
#include "policy/compiled/snapshot_format.h"

#include <string.h>

/* Makes a decision of a reason and the rule behind it. */
static struct decision
decision_of(enum reason reason, uint32_t rule)
{
	struct decision decision = snap_decision_none;

	decision.verdict = reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED;
	decision.reason = reason;
	decision.rule = rule;
	return decision;
}

/* What rules are looked up by; the members of one kind are set. */
struct snap_key {
	const char *name;
	size_t name_len;
	const struct prefix *prefix;
	uint32_t place;
};

/* Appends the first rule of the key, if its kind's table has one. Inline: the kind is known, and so the comparison. */
static inline __attribute__((always_inline)) void
heads_add(const struct snap_view *view, struct snap_heads *heads, enum snap_kind kind, const struct snap_key *key,
    uint64_t hash)
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
		if (kind == SNAP_CIDR      ? memcmp(&rule->prefix, key->prefix, sizeof(*key->prefix)) == 0
			: kind > SNAP_CIDR ? rule->place == key->place
					   : rule->name_len == key->name_len &&
			    memcmp(view->strings + rule->name, key->name, key->name_len) == 0) {
			heads->rule[heads->count++] = slot->rule;
			return;
		}
	}
}

/* The hash runs from the name's end, so that every parent's is a stop on the way; heads come out shortest parent first
 * and are turned round. */
void
snapshot_decide_heads_of(const struct snapshot *s, const struct name *name, struct snap_heads *ret_heads)
{
	const struct snap_view *view = &s->view;
	uint64_t hash = snap_hash_start(view->seed), end;
	struct snap_key key;

	ret_heads->count = 0;
	for (size_t at = name->len; at-- > 0;) {
		if (name->text[at] == '.') {
			key = (struct snap_key){.name = name->text + at + 1, .name_len = name->len - at - 1};
			end = snap_hash_end(hash);
			heads_add(view, ret_heads, SNAP_SUBTREE, &key, end);
			heads_add(view, ret_heads, SNAP_WILDCARD, &key, end);
		}
		hash = snap_hash_step(hash, (uint8_t)name->text[at]);
	}
	end = snap_hash_end(hash);
	key = (struct snap_key){.name = name->text, .name_len = name->len};
	heads_add(view, ret_heads, SNAP_SUBTREE, &key, end);
	heads_add(view, ret_heads, SNAP_EXACT, &key, end);
	for (size_t i = 0; i < ret_heads->count / 2; i++) {
		uint32_t swap = ret_heads->rule[i];

		ret_heads->rule[i] = ret_heads->rule[ret_heads->count - 1 - i];
		ret_heads->rule[ret_heads->count - 1 - i] = swap;
	}
}

/* Returns the address's network of this length. */
static struct prefix
prefix_of(const struct addr *addr, uint8_t bits)
{
	struct prefix prefix = {.addr = {.family = addr->family}, .bits = bits};

	memcpy(prefix.addr.bytes, addr->bytes, bits / 8);
	if (bits % 8 != 0)
		prefix.addr.bytes[bits / 8] = addr->bytes[bits / 8] & (uint8_t)(0xff00u >> bits % 8);
	return prefix;
}

/* Looks the address's networks up, at each prefix length in use. */
static void
heads_of_addr(const struct snapshot *s, const struct addr *addr, struct snap_heads *heads)
{
	size_t family = addr->family == 6;

	heads->count = 0;
	for (size_t i = 0; i < s->length_count[family]; i++) {
		struct prefix prefix = prefix_of(addr, s->lengths[family][i]);
		struct snap_key key = {.prefix = &prefix};

		heads_add(&s->view, heads, SNAP_CIDR, &key, snapshot_derive_hash_prefix(s->view.seed, &prefix));
	}
}

/* Is the rule about this port? */
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

/* The order in which allow rules are named: what is allowed for good, what ends by itself, what is used up by use. */
enum { RANK_PLAIN = 0, RANK_EXPIRES, RANK_COUNTED, RANK_MAX };

/* Returns the rank of an allow rule. */
static size_t
rule_rank(const struct snap_rule *rule)
{
	if (rule->uses != 0)
		return RANK_COUNTED;
	return rule->expires_us != 0 ? RANK_EXPIRES : RANK_PLAIN;
}

/* What the rules have said so far, none of them a deny. */
struct tally {
	uint32_t allow[RANK_MAX]; /* the first of each rank */
	uint32_t lapsed;
	bool within; /* the bounds, or there are none */
};

/* Decides by what the rules have said: the first allow rule of the best rank, within the bounds. */
static struct decision
tally_decide(const struct snapshot *s, const struct tally *tally)
{
	struct decision decision = snap_decision_none;
	uint32_t rule = SNAPSHOT_NO_RULE;

	for (size_t rank = RANK_MAX; rank-- > 0;)
		if (tally->allow[rank] != SNAPSHOT_NO_RULE)
			rule = tally->allow[rank];
	if (rule != SNAPSHOT_NO_RULE && tally->within)
		return decision_of(REASON_ALLOWED, rule);
	decision.out_of_bounds = rule != SNAPSHOT_NO_RULE;
	decision.lapsed = rule == SNAPSHOT_NO_RULE ? tally->lapsed : SNAPSHOT_NO_RULE;
	decision.learnable = tally->within && snapshot_mode(s) == POLICY_MODE_LEARN;
	return decision;
}

struct decision
snapshot_decide_heads(
    const struct snapshot *s, const struct snap_heads *heads, uint8_t proto, uint16_t port, int64_t now_us)
{
	const struct snap_view *view = &s->view;
	struct tally tally = {.allow = {SNAPSHOT_NO_RULE, SNAPSHOT_NO_RULE, SNAPSHOT_NO_RULE},
	    .lapsed = SNAPSHOT_NO_RULE,
	    .within = !snapshot_is_bounded(s)};

	for (size_t i = 0; i < heads->count; i++) {
		for (uint32_t next = heads->rule[i]; next != 0; next = view->rules[next - 1].next) {
			const struct snap_rule *rule = &view->rules[next - 1];
			uint32_t *first;

			if (!rule_covers(view, rule, proto, port))
				continue;
			if (!snap_rule_lives(s, next - 1, now_us)) {
				first = rule->action == RULE_ALLOW && !rule->bound ? &tally.lapsed : NULL;
			} else if (rule->action == RULE_DENY) {
				return decision_of(REASON_RULE_DENY, next - 1);
			} else if (rule->bound) {
				tally.within = true;
				first = NULL;
			} else {
				first = &tally.allow[rule_rank(rule)];
			}
			if (first != NULL && *first == SNAPSHOT_NO_RULE)
				*first = next - 1;
		}
	}
	return tally_decide(s, &tally);
}

struct decision
snapshot_decide_host(const struct snapshot *s, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct snap_heads heads;

	if (name_never(name) != NULL)
		return decision_of(REASON_NEVER_NAME, SNAPSHOT_NO_RULE);
	snapshot_decide_heads_of(s, name, &heads);
	return snapshot_decide_heads(s, &heads, proto, port, now_us);
}

struct decision
snapshot_decide_addr(const struct snapshot *s, const struct addr *addr, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct snap_heads heads;

	if (addr_never(addr) != NULL)
		return decision_of(REASON_NEVER_ADDRESS, SNAPSHOT_NO_RULE);
	heads_of_addr(s, addr, &heads);
	return snapshot_decide_heads(s, &heads, proto, port, now_us);
}

/* The first live rule of a kind that is about this port, whatever its place, from the kind's first one on;
 * SNAPSHOT_NO_RULE: none. Mostly that one is it: a guest can ask this often, by a name with many addresses that nobody
 * knows the place of. */
static uint32_t
place_rule_any(
    const struct snapshot *s, enum snap_kind kind, uint32_t first, uint8_t proto, uint16_t port, int64_t now_us)
{
	for (uint32_t rule = first; rule < s->view.rule_count; rule++)
		if (s->view.rules[rule].kind == kind && rule_covers(&s->view, &s->view.rules[rule], proto, port) &&
		    snap_rule_lives(s, rule, now_us))
			return rule;
	return SNAPSHOT_NO_RULE;
}

struct decision
snapshot_decide_place(
    const struct snapshot *s, const struct addr_place *place, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct snap_heads heads;
	struct snap_key asn = {.place = place->asn},
			country = {.place = (uint32_t)(uint8_t)place->country[0] << 8 | (uint8_t)place->country[1]};
	struct decision decision;
	uint32_t could_be = SNAPSHOT_NO_RULE;

	heads.count = 0;
	if (place->asn != 0)
		heads_add(&s->view, &heads, SNAP_ASN, &asn, snapshot_derive_hash_place(s->view.seed, asn.place));
	if (place->country[0] != '\0')
		heads_add(
		    &s->view, &heads, SNAP_COUNTRY, &country, snapshot_derive_hash_place(s->view.seed, country.place));
	decision = snapshot_decide_heads(s, &heads, proto, port, now_us);
	if (decision.reason == REASON_RULE_DENY)
		return decision;
	if (place->country[0] == '\0')
		could_be = place_rule_any(s, SNAP_COUNTRY, s->country_rule, proto, port, now_us);
	if (could_be == SNAPSHOT_NO_RULE && place->asn == 0)
		could_be = place_rule_any(s, SNAP_ASN, s->asn_rule, proto, port, now_us);
	return could_be == SNAPSHOT_NO_RULE ? snap_decision_none : decision_of(REASON_PLACE_UNKNOWN, could_be);
}
