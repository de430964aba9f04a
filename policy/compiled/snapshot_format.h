/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Private to snapshot_*.c: how a compiled policy lies in memory, and what its maker and its readers both derive.
 *
 * The block is one header, then sections at offsets that are multiples of SNAP_ALIGN, in native byte order: it never
 * leaves the machine. Rules are records of fixed size that point into pools of port ranges, limits and strings. One
 * hash table for each kind of rule (exact host, wildcard host, host with subdomains, prefix, country, ASN) leads to the
 * first rule of each key; rules of the same key are chained by rising index, so that a chain ends. */
#ifndef POSTERN_POLICY_SNAPSHOT_FORMAT_H
#define POSTERN_POLICY_SNAPSHOT_FORMAT_H

#include "policy/compiled/snapshot.h"

#include <assert.h>

#define SNAP_MAGIC "PSTNSNP1"
#define SNAP_VERSION 3
#define SNAP_ALIGN 8
/* Beyond what POLICY_RULES_MAX rules of the longest kind come to. */
#define SNAP_SIZE_MAX (256u << 20)
/* Steps of one lookup. A table is half empty, so that real ones need a dozen; its maker tries another seed if not. */
#define SNAP_PROBE_MAX 128
/* Keys that one question can hit: an exact name, 126 parents, and both with subdomains; or 129 prefix lengths. */
#define SNAP_HEADS_MAX 256

/* Rules of one key: bounds what a name of many parents can cost. */
#define SNAP_CHAIN_MAX 256

enum snap_kind { SNAP_EXACT = 0, SNAP_WILDCARD, SNAP_SUBTREE, SNAP_CIDR, SNAP_COUNTRY, SNAP_ASN, SNAP_KIND_MAX };

struct snap_rule {
	uint64_t id;        /* snapshot_rule_id */
	int64_t expires_us; /* 0: never */
	uint32_t uses;      /* 0: any number */
	uint32_t limits;    /* 1 + index in the pool; 0: none */
	uint32_t place;     /* country: its two letters, the first one higher; asn: the number */
	uint32_t ranges;    /* index of the first in the pool */
	uint32_t next;      /* 1 + index of the next rule of this key; 0: none */
	uint32_t name;      /* host: offset in strings, inside text */
	uint32_t text;      /* offset in strings, NUL-terminated */
	uint32_t origin;    /* likewise */
	uint8_t action;     /* enum rule_action */
	uint8_t kind;       /* enum snap_kind */
	uint8_t proto;      /* IPPROTO_TCP, IPPROTO_UDP; 0 in a deny rule for everything */
	uint8_t range_count;
	uint8_t name_len;     /* host */
	uint8_t bound;        /* 1: allows nothing, bounds what others allow */
	struct prefix prefix; /* cidr */
};
static_assert(sizeof(struct snap_rule) == 72, "no byte of a rule is padding");

struct snap_slot {
	uint32_t tag;  /* upper half of the key's hash */
	uint32_t rule; /* 1 + index; 0: empty */
};

struct snap_section {
	uint64_t offset;
	uint32_t count; /* elements */
	uint32_t zero;
};

struct snap_header {
	char magic[8];
	uint32_t version;
	uint32_t ech;                                 /* enum policy_ech */
	uint32_t mode;                                /* enum policy_mode */
	uint32_t bounded;                             /* 0 or 1 */
	uint32_t organisation_rules;                  /* so many of the first */
	uint32_t setting_origins[POLICY_SETTING_MAX]; /* 1 + offset in strings; 0: none */
	uint32_t zero;
	uint64_t size;
	uint64_t seed;        /* of the hash tables */
	struct limits limits; /* of the sandbox */
	struct snap_section rules;
	struct snap_section rule_limits;           /* struct limits */
	struct snap_section ports;                 /* struct port_range */
	struct snap_section strings;               /* char; the last one is NUL */
	struct snap_section tables[SNAP_KIND_MAX]; /* struct snap_slot; powers of two */
	struct snap_section ranges;                /* struct addr_range */
	struct snap_section udp_ports;             /* uint16_t, rising */
};

/* Pointers into a block, whether it is being made or read. */
struct snap_view {
	const struct snap_header *header;
	const struct snap_rule *rules;
	const struct limits *limits;
	const struct port_range *ports;
	const char *strings;
	const struct snap_slot *tables[SNAP_KIND_MAX];
	uint32_t masks[SNAP_KIND_MAX]; /* slots - 1 */
	uint64_t seed;
	uint32_t rule_count;
};

struct snap_block; /* snapshot.c: the mapping, which all snapshots of one memfd share */

struct snapshot {
	struct snap_block *block; /* a reference; NULL while it is being checked */
	const void *base;         /* the block's */
	size_t size;
	struct snap_view view;
	const struct addr_range *ranges;
	const uint16_t *udp_ports;
	uint32_t range_count, udp_port_count;
	uint8_t lengths[2][129]; /* prefix lengths that address rules use, falling; IPv4, IPv6 */
	uint8_t length_count[2];
	bool expires;                    /* some rule has a deadline */
	bool counts;                     /* some rule has a count */
	uint32_t country_rule, asn_rule; /* the first that is about a country, about a network; or SNAPSHOT_NO_RULE */
	bool *retired; /* by rule, owned; NULL when none has a count: the only part that each snapshot has for itself */
	char hash[65];
};

/* Check the block at s->base, of s->size bytes, and fill in all but block and retired. 0, or -1 with ERROR_CORRUPT. */
int snapshot_check(struct snapshot *s, struct error *err);

/* Is it a rule now? */
static inline bool
snap_rule_lives(const struct snapshot *s, uint32_t rule, int64_t now_us)
{
	int64_t expires_us = s->view.rules[rule].expires_us;

	return (expires_us == 0 || now_us < expires_us) && (s->retired == NULL || !s->retired[rule]);
}

/* No rule is about it. */
static const struct decision snap_decision_none = {
    .verdict = VERDICT_DENIED, .reason = REASON_NO_RULE, .rule = SNAPSHOT_NO_RULE, .lapsed = SNAPSHOT_NO_RULE};

/* First rules (1 + index) of the chains that a question hits, the most specific first. */
struct snap_heads {
	uint32_t rule[SNAP_HEADS_MAX];
	size_t count;
};

void snapshot_decide_heads_of(const struct snapshot *s, const struct name *name, struct snap_heads *ret_heads);

/* The verdict of the rules in these chains on one port. */
struct decision snapshot_decide_heads(
    const struct snapshot *s, const struct snap_heads *heads, uint8_t proto, uint16_t port, int64_t now_us);

/* A key while its hash is computed: bytes are fed from the end of a name, so that each parent's hash is on the way. */
static inline uint64_t
snap_hash_step(uint64_t hash, uint8_t byte)
{
	return (hash ^ byte) * 0x100000001b3u; /* FNV-1a, 64 bits */
}

static inline uint64_t
snap_hash_start(uint64_t seed)
{
	return 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
}

/* FNV's low bits mix badly; both halves are used. */
static inline uint64_t
snap_hash_end(uint64_t hash)
{
	hash ^= hash >> 32;
	hash *= 0xd6e8feb86659fd93u;
	return hash ^ hash >> 32;
}

uint64_t snapshot_derive_hash_prefix(uint64_t seed, const struct prefix *prefix);
uint64_t snapshot_derive_hash_place(uint64_t seed, uint32_t place);
uint64_t snapshot_derive_hash_rule(const struct snap_view *view, const struct snap_rule *rule);

/* Same kind, same name or prefix? */
bool snapshot_derive_same_key(const struct snap_view *view, const struct snap_rule *a, const struct snap_rule *b);

/* What snapshot_rule_id says of a rule with this text and origin. */
uint64_t snapshot_derive_rule_id(const char *text, const char *origin, bool bound);

/* The UDP ports of all allow rules, rising. 0, or -1 with ERROR_LIMIT when there are more than RULE_UDP_PORTS_MAX. */
int snapshot_derive_udp_ports(
    const struct snap_view *view, uint16_t ret_ports[RULE_UDP_PORTS_MAX], size_t *ret_count, struct error *err);
/* What ranges_compute says about the block's address rules; *ret_ranges (SNAPSHOT_RANGES_MAX) is the caller's. */
int snapshot_derive_ranges(
    const struct snap_view *view, struct addr_range **ret_ranges, size_t *ret_count, struct error *err);

#endif
