/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From a policy to a sealed block.
 *
 * Theory of operation. Every rule is checked again, so that no path around the parser leads to the data path. The size
 * of each section follows from the rules, so the memfd gets its final size first and is filled in place: rules, pools,
 * then the hash tables, then what is derived from the rules. All bytes that hold nothing are zero and the seed is
 * searched from zero up, so that equal policies give equal blocks and equal hashes. The writable mapping is gone before
 * the seals are set (F_SEAL_WRITE demands it), and a block without all four seals is never handed out. */
#include "policy/compiled/snapshot_format.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)
/* Seeds tried until no lookup takes more than SNAP_PROBE_MAX steps. */
#define SEEDS_MAX 16
#define SLOTS_MIN 4

struct compile {
	const struct policy *policy;
	struct snap_header header; /* copied to the front of the block at the end */
	uint8_t *base;             /* writable mapping */
	struct snap_rule *rules;   /* in the block, like all below */
	struct limits *limits;
	struct port_range *ports;
	char *strings;
	struct snap_slot *tables[SNAP_KIND_MAX];
	uint32_t *tails; /* by first rule of a key: last rule of it; not in the block */
	struct snap_view view;
	uint32_t ports_used, strings_used, limits_used;
};

/* What an allow rule without ports means for a host. */
static const struct port_range default_ports[] = {{80, 80}, {443, 443}};

/* Returns the kind of table that holds the rule. */
static enum snap_kind
kind_of(const struct rule *rule)
{
	switch (rule->kind) {
	case RULE_CIDR:
		return SNAP_CIDR;
	case RULE_COUNTRY:
		return SNAP_COUNTRY;
	case RULE_ASN:
		return SNAP_ASN;
	case RULE_HOST:
		break;
	}
	if (rule->subdomains)
		return SNAP_SUBTREE;
	return rule->wildcard ? SNAP_WILDCARD : SNAP_EXACT;
}

/* Returns how many port ranges the rule has in the block. */
static uint32_t
range_count_of(const struct rule *rule)
{
	if (rule->action == RULE_ALLOW && rule->range_count == 0)
		return sizeof(default_ports) / sizeof(default_ports[0]);
	return rule->range_count;
}

/* "allow " and the word form. */
static size_t
text_of(const struct rule *rule, char ret_text[RULE_TEXT_MAX])
{
	char word[RULE_TEXT_MAX];

	return (size_t)snprintf(
	    ret_text, RULE_TEXT_MAX, "%s %s", rule->action == RULE_ALLOW ? "allow" : "deny", rule_format(rule, word));
}

/* Refuses what no parser lets through: the data path trusts the block. */
static int
policy_check(const struct policy *policy, struct error *err)
{
	if (policy->include_count != 0)
		return error_set(err, ERROR_POLICY, "preset:%s is included, and nobody has put it in its place",
		    policy->includes[0].preset);
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (!limits_is_sound((enum limit_kind)kind, policy->limits.of[kind]))
			return error_set(
			    err, ERROR_POLICY, "the limit %s is out of range", limits_kind_text((unsigned int)kind));
	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];

		if (rule_check(rule, err) == 0) {
			if (rule->expires_after_s == 0)
				continue;
			error_set(err, ERROR_POLICY,
			    "the expiry counts from when the policy is applied, and that is not known");
		}
		if (rule->origin[0] != '\0')
			error_prefix(err, "%s", rule->origin);
		return -1;
	}
	return 0;
}

/* Places a section at the end of the block so far. */
static void
section_place(struct snap_header *header, struct snap_section *section, size_t count, size_t element)
{
	section->offset = header->size;
	section->count = (uint32_t)count;
	header->size += (count * element + SNAP_ALIGN - 1) / SNAP_ALIGN * SNAP_ALIGN;
}

/* Returns the size of a table for so many keys: a power of two, at most half full. */
static size_t
slots_for(size_t keys)
{
	size_t slots = SLOTS_MIN;

	while (slots < 2 * keys)
		slots *= 2;
	return slots;
}

/* The sections whose size follows from counting. */
static void
layout(struct compile *c)
{
	size_t kinds[SNAP_KIND_MAX] = {0}, ports = 0, strings = 1, limits = 0;
	char text[RULE_TEXT_MAX];

	for (size_t i = 0; i < c->policy->rule_count; i++) {
		const struct rule *rule = &c->policy->rules[i];

		kinds[kind_of(rule)]++;
		ports += range_count_of(rule);
		limits += limits_any(&rule->limits);
		strings += text_of(rule, text) + strnlen(rule->origin, sizeof(rule->origin)) + 2;
	}
	for (size_t i = 0; i < POLICY_SETTING_MAX; i++)
		strings += strnlen(c->policy->setting_origins[i], RULE_ORIGIN_MAX) + 1;
	memcpy(c->header.magic, SNAP_MAGIC, sizeof(c->header.magic));
	c->header.version = SNAP_VERSION;
	c->header.ech = c->policy->ech;
	c->header.mode = c->policy->mode;
	c->header.bounded = c->policy->bounded;
	c->header.limits = c->policy->limits;
	c->header.organisation_rules = (uint32_t)c->policy->organisation_rules;
	c->header.size = sizeof(c->header);
	section_place(&c->header, &c->header.rules, c->policy->rule_count, sizeof(struct snap_rule));
	section_place(&c->header, &c->header.rule_limits, limits, sizeof(struct limits));
	section_place(&c->header, &c->header.ports, ports, sizeof(struct port_range));
	section_place(&c->header, &c->header.strings, strings, 1);
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++)
		section_place(&c->header, &c->header.tables[kind], slots_for(kinds[kind]), sizeof(struct snap_slot));
}

/* Points into the mapped block, as its readers will. */
static void
pointers_set(struct compile *c)
{
	c->rules = (struct snap_rule *)(void *)(c->base + c->header.rules.offset);
	c->limits = (struct limits *)(void *)(c->base + c->header.rule_limits.offset);
	c->ports = (struct port_range *)(void *)(c->base + c->header.ports.offset);
	c->strings = (char *)c->base + c->header.strings.offset;
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++) {
		c->tables[kind] = (struct snap_slot *)(void *)(c->base + c->header.tables[kind].offset);
		c->view.tables[kind] = c->tables[kind];
		c->view.masks[kind] = c->header.tables[kind].count - 1;
	}
	c->view.header = &c->header;
	c->view.rules = c->rules;
	c->view.limits = c->limits;
	c->view.ports = c->ports;
	c->view.strings = c->strings;
	c->view.rule_count = c->header.rules.count;
}

/* Copies a text of the given length into the pool; its offset. */
static uint32_t
string_put(struct compile *c, const char *text, size_t len)
{
	uint32_t at = c->strings_used;

	memcpy(c->strings + at, text, len);
	c->strings_used += (uint32_t)len + 1;
	return at;
}

/* What is particular to a kind of rule. */
static void
target_put(const struct rule *from, struct snap_rule *to)
{
	switch (from->kind) {
	case RULE_CIDR:
		to->prefix = from->prefix;
		return;
	case RULE_COUNTRY:
		to->place = (uint32_t)(uint8_t)from->country[0] << 8 | (uint8_t)from->country[1];
		return;
	case RULE_ASN:
		to->place = from->asn;
		return;
	case RULE_HOST:
		break;
	}
	/* The name needs no copy of its own: it stands behind the action and the "*.". */
	to->name = to->text + (uint32_t)(from->action == RULE_ALLOW ? sizeof("allow") : sizeof("deny")) +
	    (from->wildcard ? 2 : 0);
	to->name_len = from->name.len;
}

/* Writes one rule's record, and its ports, limits and texts into their pools. */
static void
rule_put(struct compile *c, size_t index)
{
	const struct rule *from = &c->policy->rules[index];
	const struct port_range *ranges = from->ranges;
	struct snap_rule *to = &c->rules[index];
	char text[RULE_TEXT_MAX];
	size_t len = text_of(from, text);

	to->action = (uint8_t)from->action;
	to->kind = (uint8_t)kind_of(from);
	to->proto = from->proto;
	to->bound = from->bound;
	to->expires_us = from->expires_us;
	to->uses = from->uses;
	to->range_count = (uint8_t)range_count_of(from);
	if (to->range_count != from->range_count)
		ranges = default_ports;
	to->ranges = c->ports_used;
	memcpy(c->ports + c->ports_used, ranges, to->range_count * sizeof(*ranges));
	c->ports_used += to->range_count;
	if (limits_any(&from->limits)) {
		c->limits[c->limits_used] = from->limits;
		to->limits = ++c->limits_used;
	}
	to->text = string_put(c, text, len);
	to->origin = string_put(c, from->origin, strnlen(from->origin, sizeof(from->origin)));
	to->id = snapshot_derive_rule_id(c->strings + to->text, c->strings + to->origin, from->bound);
	target_put(from, to);
}

/* Enter a rule into its kind's table: a new key takes a slot, a known one gets a longer chain. False: too many steps.
 */
static bool
table_add(struct compile *c, uint32_t index)
{
	struct snap_rule *rule = &c->rules[index];
	uint64_t hash = snapshot_derive_hash_rule(&c->view, rule);
	struct snap_slot *table = c->tables[rule->kind];
	uint32_t mask = c->view.masks[rule->kind], tag = (uint32_t)(hash >> 32);

	rule->next = 0;
	for (uint32_t step = 0; step < SNAP_PROBE_MAX; step++) {
		struct snap_slot *slot = &table[((uint32_t)hash + step) & mask];

		if (slot->rule == 0) {
			*slot = (struct snap_slot){tag, index + 1};
			c->tails[index] = index;
			return true;
		}
		if (slot->tag == tag && snapshot_derive_same_key(&c->view, &c->rules[slot->rule - 1], rule)) {
			c->rules[c->tails[slot->rule - 1]].next = index + 1;
			c->tails[slot->rule - 1] = index;
			return true;
		}
	}
	return false;
}

/* Refuses more rules of one key than a lookup may walk. */
static int
chains_check(const struct compile *c, struct error *err)
{
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++) {
		for (uint32_t at = 0; at <= c->view.masks[kind]; at++) {
			uint32_t next = c->tables[kind][at].rule, chain = 0;

			for (; next != 0; next = c->rules[next - 1].next)
				if (++chain > SNAP_CHAIN_MAX)
					return error_set(err, ERROR_LIMIT, "%s: more than %d rules for one target: %s",
					    c->strings + c->rules[next - 1].origin, SNAP_CHAIN_MAX,
					    c->strings + c->rules[next - 1].text);
		}
	}
	return 0;
}

/* Fills all tables, with the first seed that keeps every lookup short. */
static int
tables_fill(struct compile *c, struct error *err)
{
	uint32_t index;

	for (c->header.seed = 0; c->header.seed < SEEDS_MAX; c->header.seed++) {
		c->view.seed = c->header.seed;
		for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++)
			memset(c->tables[kind], 0, c->header.tables[kind].count * sizeof(struct snap_slot));
		for (index = 0; index < c->view.rule_count; index++)
			if (!table_add(c, index))
				break;
		if (index == c->view.rule_count)
			return chains_check(c, err);
	}
	return error_set(err, ERROR_LIMIT, "the policy's names do not fit a table");
}

/* Put a derived section behind the mapped part.
 * syscalls(control): ftruncate pwrite64 */
static int
section_write(struct compile *c, int fd, struct snap_section *section, const void *from, size_t count, size_t element,
    struct error *err)
{
	ssize_t wrote;

	section_place(&c->header, section, count, element);
	if (ftruncate(fd, (off_t)c->header.size) < 0)
		return error_sys(err, errno, "cannot size the compiled policy");
	if (count == 0)
		return 0;
	wrote = pwrite(fd, from, count * element, (off_t)section->offset);
	if (wrote < 0)
		return error_sys(err, errno, "cannot write the compiled policy");
	if ((size_t)wrote != count * element)
		return error_set(err, ERROR_LIMIT, "no memory for the compiled policy");
	return 0;
}

/* Writes what follows from the rules: address ranges and UDP ports. */
static int
derive(struct compile *c, int fd, struct error *err)
{
	uint16_t udp_ports[RULE_UDP_PORTS_MAX];
	struct addr_range *ranges;
	size_t count;
	int result;

	if (snapshot_derive_ranges(&c->view, &ranges, &count, err) < 0)
		return -1;
	result = section_write(c, fd, &c->header.ranges, ranges, count, sizeof(*ranges), err);
	free(ranges);
	if (result < 0 || snapshot_derive_udp_ports(&c->view, udp_ports, &count, err) < 0)
		return -1;
	return section_write(c, fd, &c->header.udp_ports, udp_ports, count, sizeof(udp_ports[0]), err);
}

/* Fills the mapped block; the header last. */
static int
fill(struct compile *c, int fd, struct error *err)
{
	pointers_set(c);
	c->tails = calloc(c->policy->rule_count + 1, sizeof(*c->tails));
	if (c->tails == NULL)
		return error_set(err, ERROR_LIMIT, "no memory for %zu rules", c->policy->rule_count);
	for (size_t i = 0; i < c->policy->rule_count; i++)
		rule_put(c, i);
	for (size_t i = 0; i < POLICY_SETTING_MAX; i++) {
		const char *origin = c->policy->setting_origins[i];

		if (origin[0] != '\0')
			c->header.setting_origins[i] = 1 + string_put(c, origin, strnlen(origin, RULE_ORIGIN_MAX));
	}
	if (tables_fill(c, err) < 0 || derive(c, fd, err) < 0)
		return -1;
	memcpy(c->base, &c->header, sizeof(c->header));
	return 0;
}

/* Sizes, maps, fills and seals the memfd.
 * syscalls(control): ftruncate mmap(PROT_READ|PROT_WRITE) fcntl(F_ADD_SEALS) */
static int
block_make(struct compile *c, int fd, struct error *err)
{
	size_t size = c->header.size;
	int result;

	if (ftruncate(fd, (off_t)size) < 0)
		return error_sys(err, errno, "cannot size the compiled policy");
	c->base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (c->base == MAP_FAILED)
		return error_sys(err, errno, "cannot map the compiled policy");
	result = fill(c, fd, err);
	free(c->tails);
	munmap(c->base, size);
	if (result == 0 && fcntl(fd, F_ADD_SEALS, SEALS) < 0)
		return error_sys(err, errno, "cannot seal the compiled policy");
	return result;
}

/* syscalls(control): memfd_create */
int
snapshot_compile(const struct policy *policy, struct error *err)
{
	struct compile c = {.policy = policy};
	int fd;

	if (policy->rule_count > POLICY_RULES_MAX)
		return error_set(err, ERROR_LIMIT, "more than %d rules", POLICY_RULES_MAX);
	if (policy_check(policy, err) < 0)
		return -1;
	layout(&c);
	if (c.header.size > SNAP_SIZE_MAX)
		return error_set(err, ERROR_LIMIT, "the compiled policy is larger than %u bytes", SNAP_SIZE_MAX);
	fd = memfd_create("postern-policy", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (fd < 0)
		return error_sys(err, errno, "cannot make room for the compiled policy");
	if (block_make(&c, fd, err) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}
