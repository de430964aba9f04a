/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Verifying a block that somebody else made, and that nobody can change any more (snapshot.c).
 *
 * Theory of operation. The header's sections must lie within the block; then each rule must be one that the compiler
 * could have written (canonical name, real prefix, ports in order, offsets inside their pools); then each table must
 * find every rule of its kind exactly once and within SNAP_PROBE_MAX steps; last, ranges and UDP ports are derived
 * again and compared. After that no decision can leave the block or fail to end, and none needs a check. Any doubt is
 * ERROR_CORRUPT. */
#include "policy/compiled/snapshot_format.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHA256_SIZE 32

/* Sets the error. Returns -1. */
static int
corrupt(struct error *err, const char *what)
{
	return error_set(err, ERROR_CORRUPT, "compiled policy: %s", what);
}

/* The section's first byte, or NULL when it does not lie wholly inside the block. */
static const void *
section_find(const struct snapshot *s, const struct snap_section *section, size_t element, size_t count_max)
{
	if (section->offset % SNAP_ALIGN != 0 || section->offset < sizeof(struct snap_header) ||
	    section->offset > s->size)
		return NULL;
	if (section->count > count_max || section->zero != 0 || section->count * element > s->size - section->offset)
		return NULL;
	return (const uint8_t *)s->base + section->offset;
}

/* Are these limits that a policy (a rule) may have? */
static bool
limits_are_sound(const struct limits *limits, bool of_rule)
{
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++) {
		if (!limits_is_sound((enum limit_kind)kind, limits->of[kind]))
			return false;
		if (of_rule && limits->of[kind].hard != 0 && !limits_kind_is_of_rules((enum limit_kind)kind))
			return false;
	}
	return true;
}

/* Checks the header and finds every section. */
static int
sections_find(struct snapshot *s, struct error *err)
{
	const struct snap_header *header = s->base;
	struct snap_view *view = &s->view;

	if (memcmp(header->magic, SNAP_MAGIC, sizeof(header->magic)) != 0 || header->version != SNAP_VERSION)
		return corrupt(err, "of another version");
	if (header->size != s->size)
		return corrupt(err, "size does not agree");
	if (header->ech > POLICY_ECH_DENY || header->mode > POLICY_MODE_LEARN || header->bounded > 1)
		return corrupt(err, "unknown setting");
	if (!limits_are_sound(&header->limits, false))
		return corrupt(err, "impossible limits");
	view->header = header;
	view->seed = header->seed;
	view->rules = section_find(s, &header->rules, sizeof(struct snap_rule), POLICY_RULES_MAX);
	view->rule_count = header->rules.count;
	view->limits = section_find(s, &header->rule_limits, sizeof(struct limits), POLICY_RULES_MAX);
	view->ports = section_find(s, &header->ports, sizeof(struct port_range), SNAP_SIZE_MAX);
	view->strings = section_find(s, &header->strings, 1, SNAP_SIZE_MAX);
	s->ranges = section_find(s, &header->ranges, sizeof(struct addr_range), SNAPSHOT_RANGES_MAX);
	s->range_count = header->ranges.count;
	s->udp_ports = section_find(s, &header->udp_ports, sizeof(uint16_t), RULE_UDP_PORTS_MAX);
	s->udp_port_count = header->udp_ports.count;
	if (view->rules == NULL || view->limits == NULL || view->ports == NULL || view->strings == NULL ||
	    s->ranges == NULL || s->udp_ports == NULL)
		return corrupt(err, "a section is out of bounds");
	if (header->organisation_rules > view->rule_count || header->zero != 0)
		return corrupt(err, "rules of nobody");
	for (size_t i = 0; i < POLICY_SETTING_MAX; i++)
		if (header->setting_origins[i] > header->strings.count)
			return corrupt(err, "a setting's origin is out of bounds");
	if (header->strings.count == 0 || view->strings[header->strings.count - 1] != '\0')
		return corrupt(err, "texts are not terminated");
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++) {
		const struct snap_section *section = &header->tables[kind];

		/* A table's size is a power of two. */
		view->tables[kind] = section_find(s, section, sizeof(struct snap_slot), SNAP_SIZE_MAX);
		if (view->tables[kind] == NULL || section->count == 0 || (section->count & (section->count - 1)) != 0)
			return corrupt(err, "a table is out of bounds");
		view->masks[kind] = section->count - 1;
	}
	return 0;
}

/* Are the rule's ports in order, in the pool, and as many as its kind may have? */
static bool
ports_are_sound(const struct snap_view *view, const struct snap_rule *rule)
{
	uint32_t pool = view->header->ports.count, ports = 0;
	const struct port_range *ranges;

	if (rule->range_count > RULE_RANGES_MAX || rule->ranges > pool || rule->range_count > pool - rule->ranges)
		return false;
	ranges = view->ports + rule->ranges;
	for (uint32_t i = 0; i < rule->range_count; i++) {
		if (ranges[i].first == 0 || ranges[i].first > ranges[i].last ||
		    (i > 0 && ranges[i].first <= ranges[i - 1].last))
			return false;
		ports += ranges[i].last - ranges[i].first + 1u;
	}
	if (rule->action == RULE_ALLOW && rule->kind < SNAP_CIDR && ports > RULE_HOST_PORTS_MAX)
		return false;
	if (rule->action == RULE_DENY && rule->proto == 0)
		return rule->range_count == 0;
	return rule->range_count > 0 && (rule->proto == IPPROTO_TCP || rule->proto == IPPROTO_UDP);
}

/* Is the name canonical, and inside the strings? */
static bool
host_is_sound(const struct snap_view *view, const struct snap_rule *rule)
{
	uint32_t pool = view->header->strings.count;
	struct name name;

	if (rule->name > pool || rule->name_len > pool - rule->name)
		return false;
	if (name_canonical(view->strings + rule->name, rule->name_len, &name) != NAME_OK)
		return false;
	return name.len == rule->name_len && memcmp(name.text, view->strings + rule->name, name.len) == 0;
}

/* Is it a prefix of a family, with no bit set behind its length? */
static bool
prefix_is_sound(const struct prefix *prefix)
{
	unsigned int width = prefix->addr.family == 4 ? 32 : 128;

	if ((prefix->addr.family != 4 && prefix->addr.family != 6) || prefix->bits > width)
		return false;
	for (unsigned int bit = prefix->bits; bit < 128; bit++)
		if ((prefix->addr.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return false;
	return true;
}

/* Deadline, count, limits: only what rules of the kind may have. */
static bool
terms_are_sound(const struct snap_view *view, const struct snap_rule *rule)
{
	if (rule->expires_us < 0 || rule->uses > RULE_USES_MAX || rule->bound > 1)
		return false;
	if (rule->action == RULE_DENY && (rule->uses != 0 || rule->limits != 0 || rule->bound != 0))
		return false;
	if (rule->limits == 0)
		return true;
	return rule->limits <= view->header->rule_limits.count &&
	    limits_are_sound(&view->limits[rule->limits - 1], true);
}

/* Is the rule's target one of its kind? */
static bool
target_is_sound(const struct snap_view *view, const struct snap_rule *rule)
{
	switch ((enum snap_kind)rule->kind) {
	case SNAP_EXACT:
	case SNAP_WILDCARD:
	case SNAP_SUBTREE:
		return host_is_sound(view, rule);
	case SNAP_CIDR:
		return prefix_is_sound(&rule->prefix);
	case SNAP_COUNTRY:
		return rule->action == RULE_DENY && rule->place <= UINT16_MAX;
	case SNAP_ASN:
		return rule->action == RULE_DENY && rule->place != 0;
	case SNAP_KIND_MAX:
		break;
	}
	return false;
}

/* Could the compiler have written this record? */
static bool
rule_is_sound(const struct snap_view *view, uint32_t index)
{
	const struct snap_rule *rule = &view->rules[index];
	uint32_t pool = view->header->strings.count;

	if ((rule->action != RULE_ALLOW && rule->action != RULE_DENY) || rule->kind >= SNAP_KIND_MAX)
		return false;
	if (rule->text >= pool || rule->origin >= pool)
		return false;
	if (rule->id !=
	    snapshot_derive_rule_id(view->strings + rule->text, view->strings + rule->origin, rule->bound != 0))
		return false;
	/* Rising, so that a chain ends. */
	if (rule->next != 0 && (rule->next > view->rule_count || rule->next - 1 <= index))
		return false;
	return ports_are_sound(view, rule) && terms_are_sound(view, rule) && target_is_sound(view, rule);
}

/* A lookup of the slot's key ends at this very slot: not later than SNAP_PROBE_MAX steps, past no hole, past no twin.
 */
static bool
slot_is_found(const struct snap_view *view, size_t kind, uint32_t at)
{
	const struct snap_slot *slots = view->tables[kind];
	const struct snap_rule *rule = &view->rules[slots[at].rule - 1];
	uint64_t hash = snapshot_derive_hash_rule(view, rule);
	uint32_t tag = (uint32_t)(hash >> 32);

	if (slots[at].tag != tag)
		return false;
	for (uint32_t step = 0; step < SNAP_PROBE_MAX; step++) {
		uint32_t here = ((uint32_t)hash + step) & view->masks[kind];

		if (here == at)
			return true;
		if (slots[here].rule == 0)
			return false;
		if (slots[here].tag == tag && snapshot_derive_same_key(view, &view->rules[slots[here].rule - 1], rule))
			return false;
	}
	return false;
}

/* Each chain holds rules of one key only, no two chains have the same key, chains rise: so no rule is in two places,
 * and when as many are reached as there are of this kind, none is in no place. */
static int
table_check(const struct snap_view *view, size_t kind, struct error *err)
{
	const struct snap_slot *slots = view->tables[kind];
	uint32_t rules = 0, reached = 0, chain;

	for (uint32_t i = 0; i < view->rule_count; i++)
		rules += view->rules[i].kind == kind;
	for (uint32_t at = 0; at <= view->masks[kind]; at++)
		if (slots[at].rule > view->rule_count ||
		    (slots[at].rule != 0 && view->rules[slots[at].rule - 1].kind != kind))
			return corrupt(err, "a table names no rule");
	for (uint32_t at = 0; at <= view->masks[kind]; at++) {
		if (slots[at].rule == 0)
			continue;
		if (!slot_is_found(view, kind, at))
			return corrupt(err, "a table is out of order");
		chain = 0;
		for (uint32_t next = slots[at].rule; next != 0; next = view->rules[next - 1].next) {
			if (!snapshot_derive_same_key(view, &view->rules[slots[at].rule - 1], &view->rules[next - 1]))
				return corrupt(err, "a chain of rules mixes keys");
			chain++;
		}
		if (chain > SNAP_CHAIN_MAX)
			return corrupt(err, "a chain of rules is too long");
		reached += chain;
	}
	return reached == rules ? 0 : corrupt(err, "a rule is in no table");
}

/* Derives ranges and UDP ports again, and compares. */
static int
derived_check(const struct snapshot *s, struct error *err)
{
	uint16_t ports[RULE_UDP_PORTS_MAX];
	struct addr_range *ranges;
	struct error why;
	size_t count;
	bool equal;

	if (snapshot_derive_udp_ports(&s->view, ports, &count, &why) < 0 || count != s->udp_port_count ||
	    memcmp(ports, s->udp_ports, count * sizeof(ports[0])) != 0)
		return corrupt(err, "UDP ports do not follow from the rules");
	if (snapshot_derive_ranges(&s->view, &ranges, &count, &why) < 0)
		return corrupt(err, "address ranges do not follow from the rules");
	equal = count == s->range_count && memcmp(ranges, s->ranges, count * sizeof(*ranges)) == 0;
	free(ranges);
	return equal ? 0 : corrupt(err, "address ranges do not follow from the rules");
}

/* What questions have to look at: which prefix lengths, the longest first; whether there are deadlines, places, counts.
 */
static void
rules_note(struct snapshot *s)
{
	bool used[2][129] = {{false}};

	s->country_rule = s->asn_rule = SNAPSHOT_NO_RULE;
	for (uint32_t i = 0; i < s->view.rule_count; i++) {
		const struct snap_rule *rule = &s->view.rules[i];

		s->expires = s->expires || rule->expires_us != 0;
		if (rule->kind == SNAP_COUNTRY && s->country_rule == SNAPSHOT_NO_RULE)
			s->country_rule = i;
		if (rule->kind == SNAP_ASN && s->asn_rule == SNAPSHOT_NO_RULE)
			s->asn_rule = i;
		s->counts = s->counts || rule->uses != 0;
		if (rule->kind == SNAP_CIDR)
			used[rule->prefix.addr.family == 6][rule->prefix.bits] = true;
	}
	for (size_t family = 0; family < 2; family++)
		for (size_t bits = 129; bits-- > 0;)
			if (used[family][bits])
				s->lengths[family][s->length_count[family]++] = (uint8_t)bits;
}

/* Notes the block's SHA-256. */
static int
hash_note(struct snapshot *s, struct error *err)
{
	unsigned char digest[EVP_MAX_MD_SIZE];
	unsigned int len = 0;

	/* A confined role may open no file, and OpenSSL's first use would look for its configuration. */
	if (OPENSSL_init_crypto(OPENSSL_INIT_NO_LOAD_CONFIG, NULL) != 1)
		return error_set(err, ERROR_SYSTEM, "cannot start OpenSSL");
	if (EVP_Digest(s->base, s->size, digest, &len, EVP_sha256(), NULL) != 1 || len != SHA256_SIZE)
		return error_set(err, ERROR_SYSTEM, "cannot hash the compiled policy");
	for (size_t i = 0; i < SHA256_SIZE; i++)
		snprintf(s->hash + 2 * i, 3, "%02x", digest[i]);
	return 0;
}

int
snapshot_check(struct snapshot *s, struct error *err)
{
	if (sections_find(s, err) < 0)
		return -1;
	for (uint32_t i = 0; i < s->view.rule_count; i++)
		if (!rule_is_sound(&s->view, i))
			return corrupt(err, "a rule is malformed");
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++)
		if (table_check(&s->view, kind, err) < 0)
			return -1;
	if (derived_check(s, err) < 0)
		return -1;
	rules_note(s);
	return hash_note(s, err);
}
