/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Random worlds for property tests of the verdict: policies of two layers, leases, places, questions; and an oracle
 * that answers them as postern-policy(5) words it, by walking lists. It shares no code with policy/verdict.c nor with
 * the compiled policy, and knows a few deliberate mistakes, so that the tests can show that they would notice. */
#ifndef POSTERN_TESTS_UNIT_POLICY_WORLDS_H
#define POSTERN_TESTS_UNIT_POLICY_WORLDS_H

#include "policy/text/layers.h"
#include "policy/verdict.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define WORLD_SEED 20
#define WORLD_RULES_MAX 28
#define WORLD_LEASES_MAX 8
#define WORLD_TEXT_MAX 8192
#define WORLD_COUNT(array) (sizeof(array) / sizeof((array)[0]))

enum world_kind { WORLD_TREE, WORLD_WILD, WORLD_EXACT, WORLD_CIDR, WORLD_COUNTRY, WORLD_ASN };

struct world_rule {
	enum world_kind kind;
	bool deny, organisation, udp, off; /* off: taken out to make a failing world smaller */
	size_t host, cidr, place;          /* index in world_hosts, world_cidrs; 0 or 1 for the place */
	uint16_t ports[2];
	size_t port_count; /* 0: none said */
	bool ended, timed, counted, used_up;
	char origin[32];
};

struct world_lease {
	size_t name, addr;
	bool live;
};

struct world {
	struct world_rule rules[WORLD_RULES_MAX]; /* organisation's first, allow before deny in each layer */
	size_t count;
	bool bounded, learn, ech_deny, placed;       /* placed: the databases of places are there */
	struct world_lease leases[WORLD_LEASES_MAX]; /* newest last */
	size_t lease_count;
	char organisation[WORLD_TEXT_MAX], sandbox[WORLD_TEXT_MAX];
	struct snapshot *policy;
};

static const char *const world_hosts[] = {
    "example.com", "a.example.com", "b.example.com", "a.b.example.com", "c.a.b.example.com", "x.example.net"};
static const char *const world_names[] = {"example.com", "a.example.com", "b.example.com", "a.b.example.com",
    "c.a.b.example.com", "x.example.net", "y.example.net", "metadata.google.internal"};
#define WORLD_NEVER_NAME 7
static const struct {
	const char *text;
	unsigned int bits;  /* of 32 or 128 */
	unsigned int addrs; /* which of world_addrs it holds */
} world_cidrs[] = {{"45.45.0.0/16", 16, 3}, {"45.45.1.0/24", 24, 1}, {"45.45.1.1/32", 32, 1}, {"47.47.0.0/16", 16, 4},
    {"2600:45::/32", 32, 24}, {"2600:45::1/128", 128, 8}, {"2600:47::/32", 32, 32}};
static const struct {
	const char *text, *country;
	uint32_t asn;
	bool never, host;
} world_addrs[] = {{"45.45.1.1", "KP", 64500, false, false}, {"45.45.2.1", "DE", 64501, false, false},
    {"47.47.1.1", "", 64500, false, false}, {"2600:45::1", "KP", 0, false, false}, {"2600:45::2", "", 0, false, false},
    {"2600:47::1", "DE", 64501, false, false}, {"10.0.0.1", "", 0, true, false}, {"fd00::1", "", 0, true, false},
    {"5.6.7.8", "", 0, false, true}};
#define WORLD_ADDRS_OPEN 6 /* behind them: never list, then the host's own */
static const char *const world_countries[] = {"KP", "DE"};
static const uint32_t world_asns[] = {64500, 64501};
static const uint16_t world_ports[] = {22, 80, 443, 5000};

/* The mistakes that can be planted into the oracle. */
enum world_mistake {
	WORLD_RIGHT,
	WORLD_ENDED_ADDRESS_FORGOTTEN, /* an allow rule by address that has ended does not give its reason */
	WORLD_ADDRESS_BEATS_NAME,      /* an allow rule by address lets a denied name through */
	WORLD_LEASE_NOT_NEEDED,        /* a name that is said and allowed is enough */
	WORLD_ADDRESS_BEFORE_LEASE,    /* an allow rule by address is named before a leased name's */
	WORLD_MISTAKES
};
static enum world_mistake world_mistake;
static unsigned int world_seed;
/* What world_agrees compared last, in words. */
static char world_said[1024];

static inline unsigned int
world_below(unsigned int n)
{
	return (unsigned int)rand_r(&world_seed) / 7 % n;
}

static inline struct name
world_name(size_t index)
{
	struct name name;

	assert_int_equal(name_canonical(world_names[index], strlen(world_names[index]), &name), NAME_OK);
	return name;
}

static inline struct addr
world_addr(size_t index)
{
	struct addr addr;

	assert_true(addr_parse(world_addrs[index].text, strlen(world_addrs[index].text), &addr));
	return addr;
}

/* ---- making one ---- */

static inline struct world_rule
world_rule_make(bool organisation, bool deny)
{
	struct world_rule rule = {.organisation = organisation, .deny = deny};

	rule.kind = (enum world_kind)world_below(deny ? 6 : 4);
	rule.host = world_below(WORLD_COUNT(world_hosts));
	rule.cidr = world_below(WORLD_COUNT(world_cidrs));
	rule.place = world_below(2);
	rule.udp = world_below(5) == 0;
	rule.port_count = rule.kind == WORLD_CIDR && !deny ? 1 + world_below(2) : world_below(3);
	if (rule.udp && rule.port_count == 0 && !deny)
		rule.port_count = 1;
	rule.ports[0] = rule.udp && !deny ? (world_below(2) ? 22 : 5000) : world_ports[world_below(4)];
	rule.ports[1] = rule.ports[0] == 5000 ? 22 : 5000;
	rule.ended = world_below(5) == 0;
	rule.timed = !rule.ended && world_below(5) == 0;
	rule.counted = !deny && !organisation && world_below(5) == 0;
	rule.used_up = rule.counted && world_below(2) == 0;
	return rule;
}

/* Half of the places denied would leave nothing to decide: mostly addresses and names. */
static inline void
world_make(struct world *world)
{
	memset(world, 0, sizeof(*world));
	world->bounded = world_below(4) == 0;
	world->learn = world_below(4) == 0;
	world->ech_deny = world_below(4) == 0;
	world->placed = world_below(4) != 0;
	for (int layer = 0; layer < 4; layer++) {
		bool organisation = layer < 2, deny = layer % 2 == 1;
		unsigned int most = organisation && !deny ? (world->bounded ? 6 : 0) : deny ? 4 : 12;

		for (unsigned int left = most == 0 ? 0 : world_below(most); left > 0; left--) {
			struct world_rule rule = world_rule_make(organisation, deny);

			if ((rule.kind == WORLD_COUNTRY || rule.kind == WORLD_ASN) && world_below(3) != 0)
				continue;
			world->rules[world->count++] = rule;
		}
	}
	for (unsigned int left = world_below(WORLD_LEASES_MAX); left > 0; left--) {
		struct world_lease lease = {world_below(WORLD_NEVER_NAME),
		    world_below(4) == 0 ? world_below(WORLD_COUNT(world_addrs)) : world_below(3), world_below(6) != 0};
		bool twice = false;

		for (size_t i = 0; i < world->lease_count; i++)
			twice = twice || (world->leases[i].name == lease.name && world->leases[i].addr == lease.addr);
		if (!twice)
			world->leases[world->lease_count++] = lease;
	}
}

static inline size_t
world_rule_print(const struct world_rule *rule, char *text, size_t size)
{
	size_t len = 0;

#define PUT(...) len += (size_t)snprintf(text + len, size - len, __VA_ARGS__)
	switch (rule->kind) {
	case WORLD_EXACT:
		PUT("  - {host: %s", world_hosts[rule->host]);
		break;
	case WORLD_WILD:
		PUT("  - {host: \"*.%s\"", world_hosts[rule->host]);
		break;
	case WORLD_TREE:
		PUT("  - {host: %s, subdomains: true", world_hosts[rule->host]);
		break;
	case WORLD_CIDR:
		PUT("  - {cidr: \"%s\"", world_cidrs[rule->cidr].text);
		break;
	case WORLD_COUNTRY:
		PUT("  - {country: %s", world_countries[rule->place]);
		break;
	case WORLD_ASN:
		PUT("  - {asn: %u", world_asns[rule->place]);
		break;
	}
	if (rule->port_count > 0)
		PUT(", ports: [%u", rule->ports[0]);
	if (rule->port_count > 1)
		PUT(", %u", rule->ports[1]);
	PUT("%s%s%s%s}\n", rule->port_count > 0 ? "]" : "", rule->udp ? ", udp: true" : "",
	    rule->ended       ? ", expires: 2000-01-01T00:00:00Z"
		: rule->timed ? ", expires: 2090-01-01T00:00:00Z"
			      : "",
	    rule->counted ? ", uses: 5" : "");
#undef PUT
	return len;
}

/* Writes the text of a layer; a rule that stands in it already is taken out. */
static inline void
world_print(struct world *world, bool organisation, char *text)
{
	static char lines[WORLD_RULES_MAX][256];
	size_t len = (size_t)snprintf(text, WORLD_TEXT_MAX, "version: 1\n%s%s",
	    !organisation && world->learn ? "mode: learn\n" : "",
	    !organisation && world->ech_deny ? "ech: deny\n" : "");

	for (int deny = 0; deny < 2; deny++) {
		bool any = false;

		if (organisation && !world->bounded && deny == 0)
			continue;
		for (size_t i = 0; i < world->count; i++) {
			struct world_rule *rule = &world->rules[i];

			if (rule->organisation != organisation || rule->deny != (deny == 1))
				continue;
			world_rule_print(rule, lines[i], sizeof(lines[i]));
			for (size_t j = 0; j < i; j++)
				rule->off = rule->off ||
				    (!world->rules[j].off && world->rules[j].deny == rule->deny &&
					world->rules[j].organisation == organisation &&
					strncmp(lines[i], lines[j], strcspn(lines[i], "e}")) == 0 &&
					strcmp(lines[i], lines[j]) == 0);
			if (rule->off)
				continue;
			if (!any)
				len +=
				    (size_t)snprintf(text + len, WORLD_TEXT_MAX - len, deny ? "deny:\n" : "allow:\n");
			any = true;
			snprintf(
			    rule->origin, sizeof(rule->origin), "%s:%zu", organisation ? "o.yaml" : "s.yaml", 0 * len);
			len += (size_t)snprintf(text + len, WORLD_TEXT_MAX - len, "%s", lines[i]);
			/* Its line is the last one so far. */
			size_t line = 0;

			for (const char *c = text; *c != '\0'; c++)
				line += *c == '\n';
			snprintf(
			    rule->origin, sizeof(rule->origin), "%s:%zu", organisation ? "o.yaml" : "s.yaml", line);
		}
		if (!any)
			len += (size_t)snprintf(text + len, WORLD_TEXT_MAX - len, deny ? "deny: []\n" : "allow: []\n");
	}
}

/* Compiles both texts as posternd does, and uses up what is used up. False: no policy (a twin). */
static inline bool
world_compile(struct world *world)
{
	struct policy organisation, sandbox, effective;
	struct policy_layers layers = {.organisation = &organisation, .sandbox = &sandbox};
	struct error err;
	bool good;
	int fd;

	world_print(world, true, world->organisation);
	world_print(world, false, world->sandbox);
	if (policy_parse(world->organisation, strlen(world->organisation), "o.yaml", &organisation, &err) < 0)
		fail_msg("%s\n%s", world->organisation, err.text);
	good = policy_parse(world->sandbox, strlen(world->sandbox), "s.yaml", &sandbox, &err) == 0;
	if (!good && strstr(err.text, "twice") == NULL && strstr(err.text, "same") == NULL)
		fail_msg("%s\n%s", world->sandbox, err.text);
	if (good) {
		if (layers_merge(&layers, &effective, &err) < 0)
			fail_msg("%s", err.text);
		fd = snapshot_compile(&effective, &err);
		if (fd < 0)
			fail_msg("%s", err.text);
		world->policy = snapshot_open(fd, &err);
		assert_non_null(world->policy);
		close(fd);
		policy_free(&effective);
		policy_free(&sandbox);
	}
	policy_free(&organisation);
	for (size_t i = 0; good && i < world->count; i++)
		for (uint32_t rule = 0; world->rules[i].used_up && rule < snapshot_rule_count(world->policy); rule++)
			if (!world->rules[i].off &&
			    strcmp(snapshot_rule_origin(world->policy, rule), world->rules[i].origin) == 0)
				snapshot_rule_retire(world->policy, rule);
	return good;
}

static inline void
world_free(struct world *world)
{
	snapshot_free(world->policy);
	world->policy = NULL;
}

/* ---- the oracle ---- */

struct oracle_answer {
	enum reason reason;
	const struct world_rule *rule; /* NULL: none */
	bool learned;
};

/* What is asked about a connection. */
struct world_question {
	size_t addr; /* index; SIZE_MAX: not known */
	uint8_t proto;
	uint16_t port;
	enum verdict_naming naming;
	size_t name; /* SIZE_MAX: none */
	bool ech, unplaced, pardoned;
};

static inline bool
oracle_lives(const struct world_rule *rule)
{
	return !rule->ended && !rule->used_up;
}

static inline bool
oracle_bounds(const struct world_rule *rule)
{
	return rule->organisation && !rule->deny;
}

static inline bool
oracle_port(const struct world_rule *rule, uint8_t proto, uint16_t port)
{
	if (rule->deny && rule->port_count == 0)
		return !rule->udp || proto == IPPROTO_UDP;
	if (rule->udp != (proto == IPPROTO_UDP))
		return false;
	if (rule->port_count == 0)
		return port == 80 || port == 443;
	return port == rule->ports[0] || (rule->port_count > 1 && port == rule->ports[1]);
}

static inline bool
oracle_name_matches(const struct world_rule *rule, size_t name)
{
	const char *text = world_names[name], *host = world_hosts[rule->host];
	size_t len = strlen(text), end = strlen(host);
	bool itself = strcmp(text, host) == 0;
	bool below = len > end && text[len - end - 1] == '.' && strcmp(text + len - end, host) == 0;

	if (rule->off || rule->kind > WORLD_EXACT)
		return false;
	return rule->kind == WORLD_EXACT ? itself : rule->kind == WORLD_WILD ? below : itself || below;
}

static inline bool
oracle_addr_matches(const struct world_rule *rule, size_t addr)
{
	return !rule->off && rule->kind == WORLD_CIDR && addr < WORLD_ADDRS_OPEN &&
	    (world_cidrs[rule->cidr].addrs >> addr & 1) != 0;
}

/* The more particular rule: its place in the text says nothing but among equals. */
static inline size_t
oracle_weight(const struct world_rule *rule)
{
	if (rule->kind == WORLD_CIDR)
		return world_cidrs[rule->cidr].bits;
	if (rule->kind > WORLD_CIDR)
		return rule->kind;
	return strlen(world_hosts[rule->host]) * 4 + rule->kind;
}

/* Of the rules that match, with these the deny rules, the allow rules for good, those with an end, those with a count.
 */
static inline struct oracle_answer
oracle_rules(const struct world *world, const bool *matches, uint8_t proto, uint16_t port)
{
	const struct world_rule *deny = NULL, *allow = NULL, *ended = NULL;
	bool within = !world->bounded;

	for (size_t i = 0; i < world->count; i++) {
		const struct world_rule *rule = &world->rules[i], **slot;
		int rank = rule->counted ? 2 : rule->timed,
		    best = allow == NULL ? 3
		    : allow->counted     ? 2
					 : allow->timed;

		if (!matches[i] || !oracle_port(rule, proto, port))
			continue;
		if (oracle_bounds(rule)) {
			within = within || oracle_lives(rule);
			continue;
		}
		if (rule->deny && !oracle_lives(rule))
			continue;
		slot = rule->deny ? &deny : oracle_lives(rule) ? &allow : &ended;
		if (*slot == NULL || (slot == &allow && rank < best) ||
		    ((slot != &allow || rank == best) && oracle_weight(rule) > oracle_weight(*slot)))
			*slot = rule;
	}
	if (deny != NULL)
		return (struct oracle_answer){REASON_RULE_DENY, deny, false};
	if (allow != NULL && within)
		return (struct oracle_answer){REASON_ALLOWED, allow, false};
	if (within && world->learn)
		return (struct oracle_answer){REASON_NO_RULE, ended, true};
	if (allow == NULL && ended != NULL)
		return (struct oracle_answer){REASON_EXPIRED, ended, false};
	return (struct oracle_answer){REASON_NO_RULE, NULL, false};
}

static inline struct oracle_answer
oracle_name(const struct world *world, size_t name, uint8_t proto, uint16_t port)
{
	bool matches[WORLD_RULES_MAX] = {false};
	struct oracle_answer answer;

	if (name == WORLD_NEVER_NAME)
		return (struct oracle_answer){REASON_NEVER_NAME, NULL, false};
	for (size_t i = 0; i < world->count; i++)
		matches[i] = oracle_name_matches(&world->rules[i], name);
	answer = oracle_rules(world, matches, proto, port);
	if (!answer.learned)
		return answer;
	/* Learning is for TCP. */
	if (proto == IPPROTO_TCP)
		return (struct oracle_answer){REASON_ALLOWED, NULL, true};
	return (struct oracle_answer){answer.rule != NULL ? REASON_EXPIRED : REASON_NO_RULE, answer.rule, false};
}

/* Never list, host, deny by prefix, deny by place; then what allow rules by prefix say. */
static inline struct oracle_answer
oracle_addr(const struct world *world, const struct world_question *q)
{
	const char *country = world->placed && !q->unplaced ? world_addrs[q->addr].country : "";
	uint32_t asn = world->placed && !q->unplaced ? world_addrs[q->addr].asn : 0;
	const struct world_rule *denied = NULL, *unknown = NULL;
	bool matches[WORLD_RULES_MAX] = {false};
	struct oracle_answer answer;

	if (world_addrs[q->addr].never || world_addrs[q->addr].host)
		return (struct oracle_answer){REASON_NEVER_ADDRESS, NULL, false};
	for (size_t i = 0; i < world->count; i++)
		matches[i] = oracle_addr_matches(&world->rules[i], q->addr);
	answer = oracle_rules(world, matches, q->proto, q->port);
	if (answer.reason == REASON_RULE_DENY)
		return answer;
	for (size_t i = 0; i < world->count; i++) {
		const struct world_rule *rule = &world->rules[i];

		if (rule->off || rule->kind < WORLD_COUNTRY || !oracle_lives(rule) ||
		    !oracle_port(rule, q->proto, q->port))
			continue;
		if (rule->kind == WORLD_COUNTRY ? strcmp(country, world_countries[rule->place]) == 0
						: asn == world_asns[rule->place])
			denied = denied == NULL || rule->kind > denied->kind ? rule : denied;
		if (rule->kind == WORLD_COUNTRY ? country[0] == '\0' : asn == 0)
			unknown = unknown == NULL || rule->kind < unknown->kind ? rule : unknown;
	}
	if (denied != NULL)
		return (struct oracle_answer){REASON_RULE_DENY, denied, false};
	if (unknown != NULL && !q->pardoned)
		return (struct oracle_answer){REASON_PLACE_UNKNOWN, unknown, false};
	/* Addresses are not learned, and one that has ended is told by the caller. */
	if (answer.learned)
		return (struct oracle_answer){
		    answer.rule != NULL ? REASON_EXPIRED : REASON_NO_RULE, answer.rule, false};
	return answer;
}

static inline bool
oracle_refuses(const struct oracle_answer *addr)
{
	return addr->reason != REASON_ALLOWED && addr->reason != REASON_NO_RULE && addr->reason != REASON_EXPIRED;
}

/* Of all names leased to the address, in this order, the best word. */
static inline struct oracle_answer
oracle_leases(const struct world *world, const struct world_lease *leases, size_t count, const struct world_question *q)
{
	struct oracle_answer best = {REASON_NOT_LEASED, NULL, false};
	int best_worth = 0;

	for (size_t i = 0; i < count; i++) {
		struct oracle_answer answer;
		int worth = 1;

		if (leases[i].addr != q->addr || !leases[i].live)
			continue;
		answer = oracle_name(world, leases[i].name, q->proto, q->port);
		if (answer.reason == REASON_ALLOWED)
			worth = answer.learned ? 4 : 5;
		else if (answer.reason == REASON_RULE_DENY)
			worth = 3;
		else if (answer.reason == REASON_EXPIRED)
			worth = 2;
		if (worth > best_worth) {
			best_worth = worth;
			best = answer;
		}
	}
	return best;
}

static inline bool
oracle_leased(const struct world_lease *leases, size_t count, const struct world_question *q)
{
	for (size_t i = 0; i < count; i++)
		if (leases[i].live && leases[i].addr == q->addr && leases[i].name == q->name)
			return true;
	return world_mistake == WORLD_LEASE_NOT_NEEDED;
}

/* "HOW A DECISION IS MADE". leases: the sandbox's, in the order in which they are looked at. */
static inline struct oracle_answer
oracle_judge(const struct world *world, const struct world_lease *leases, size_t count, const struct world_question *q)
{
	struct oracle_answer addr = {REASON_NO_RULE, NULL, false}, name = {REASON_NOT_LEASED, NULL, false};
	enum reason unproven = q->port == 80 ? REASON_HOST_MISMATCH : REASON_SNI_MISMATCH;
	bool by_addr, wanting, denied, proven = false;

	if (q->addr != SIZE_MAX)
		addr = oracle_addr(world, q);
	if (oracle_refuses(&addr))
		return addr;
	by_addr = addr.reason == REASON_ALLOWED;
	switch (q->naming) {
	case VERDICT_LEASED:
	case VERDICT_UNHEARD:
	case VERDICT_SILENT:
		name = oracle_leases(world, leases, count, q);
		proven = q->naming != VERDICT_SILENT;
		unproven = q->port == 80 ? REASON_HOST_MISMATCH : REASON_SNI_MISSING;
		break;
	case VERDICT_SAID:
	case VERDICT_PROVEN:
	case VERDICT_UNPROVEN:
		if (q->name == SIZE_MAX)
			break;
		name = oracle_name(world, q->name, q->proto, q->port);
		proven = q->naming == VERDICT_PROVEN || (q->naming == VERDICT_SAID && oracle_leased(leases, count, q));
		break;
	}
	wanting = name.reason == REASON_NO_RULE || name.reason == REASON_NOT_LEASED;
	denied = name.reason == REASON_NEVER_NAME || (name.reason == REASON_RULE_DENY && q->naming != VERDICT_UNHEARD);
	if (world_mistake == WORLD_ADDRESS_BEATS_NAME)
		denied = false;
	if (name.reason == REASON_ALLOWED && proven && !name.learned &&
	    !(by_addr && world_mistake == WORLD_ADDRESS_BEFORE_LEASE))
		return name;
	if (by_addr && !denied)
		return addr;
	if (name.reason == REASON_ALLOWED && proven)
		return name;
	if (name.reason == REASON_ALLOWED)
		return (struct oracle_answer){unproven, q->naming == VERDICT_SILENT ? NULL : name.rule, false};
	if (wanting && addr.reason == REASON_EXPIRED && world_mistake != WORLD_ENDED_ADDRESS_FORGOTTEN)
		return addr;
	if (wanting && q->naming == VERDICT_SILENT)
		return (struct oracle_answer){unproven, NULL, false};
	return name;
}

/* With the hello's extension. */
static inline struct oracle_answer
oracle_connection(
    const struct world *world, const struct world_lease *leases, size_t count, const struct world_question *q)
{
	struct oracle_answer answer = oracle_judge(world, leases, count, q);

	if (answer.reason == REASON_ALLOWED && q->ech && world->ech_deny)
		return (struct oracle_answer){REASON_ECH, NULL, false};
	return answer;
}

/* May the name be resolved? When some port of it is open. */
static inline struct oracle_answer
oracle_dns(const struct world *world, size_t name)
{
	const struct world_rule *all = NULL, *open = NULL, *shut = NULL, *ended = NULL;
	struct oracle_answer answer = {REASON_NO_RULE, NULL, false};
	bool learnable = world->learn && !world->bounded;

	if (name == WORLD_NEVER_NAME)
		return (struct oracle_answer){REASON_NEVER_NAME, NULL, false};
	for (size_t i = 0; i < world->count; i++) {
		const struct world_rule *rule = &world->rules[i], **slot = NULL;
		size_t ports = rule->port_count == 0 ? 2 : rule->port_count;
		bool free = false;

		if (!oracle_name_matches(rule, name))
			continue;
		if (rule->deny && rule->port_count == 0 && !rule->udp && oracle_lives(rule))
			slot = &all;
		for (size_t p = 0; !rule->deny && oracle_lives(rule) && p < ports; p++) {
			uint16_t port = rule->port_count == 0 ? (p == 0 ? 80 : 443) : rule->ports[p];
			struct oracle_answer here =
			    oracle_name(world, name, rule->udp ? IPPROTO_UDP : IPPROTO_TCP, port);

			free = free || (here.reason == REASON_ALLOWED && !here.learned);
			/* In the bounds and not denied: there is something to learn. */
			learnable = learnable || (world->learn && here.reason == REASON_ALLOWED && !rule->udp);
		}
		if (!rule->deny && !rule->organisation)
			slot = !oracle_lives(rule) ? &ended : free ? &open : &shut;
		if (slot != NULL && (*slot == NULL || oracle_weight(rule) > oracle_weight(*slot)))
			*slot = rule;
	}
	if (all != NULL)
		return (struct oracle_answer){REASON_RULE_DENY, all, false};
	if (open != NULL)
		return (struct oracle_answer){REASON_ALLOWED, open, false};
	if (learnable)
		return (struct oracle_answer){REASON_ALLOWED, NULL, true};
	if (shut != NULL) {
		uint16_t first = shut->port_count == 0 ? 80 : shut->ports[0];

		if (shut->port_count > 1 && shut->ports[1] < first)
			first = shut->ports[1];
		answer = oracle_name(world, name, shut->udp ? IPPROTO_UDP : IPPROTO_TCP, first);
		return answer;
	}
	return ended != NULL ? (struct oracle_answer){REASON_EXPIRED, ended, false} : answer;
}

/* ---- comparing ---- */

static inline bool
world_agrees(const struct world *world, const struct oracle_answer *want, const struct judgement *got)
{
	const char *rule = want->rule == NULL ? "" : want->rule->origin;

	snprintf(world_said, sizeof(world_said), "%s by '%s' (%s) instead of %s by '%s'", reason_text(got->reason),
	    snapshot_rule_text(world->policy, got->rule), snapshot_rule_origin(world->policy, got->rule),
	    reason_text(want->reason), rule);
	return got->reason == want->reason && got->learned == want->learned &&
	    got->verdict == (want->reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED) &&
	    strcmp(snapshot_rule_origin(world->policy, got->rule), rule) == 0;
}

static inline void
world_show(const struct world *world, const struct world_question *q, unsigned int seed)
{
	print_error("seed %u\n", seed);
	print_error("address %s, port %u/%s, naming %d, name %s, ech %d, places %s%s\n",
	    q->addr == SIZE_MAX ? "unknown" : world_addrs[q->addr].text, q->port,
	    q->proto == IPPROTO_UDP ? "udp" : "tcp", (int)q->naming, q->name == SIZE_MAX ? "-" : world_names[q->name],
	    q->ech, world->placed && !q->unplaced ? "known" : "not known", q->pardoned ? " (pardoned)" : "");
	for (size_t i = 0; i < world->lease_count; i++)
		print_error("lease of %s at %s%s\n", world_names[world->leases[i].name],
		    world_addrs[world->leases[i].addr].text, world->leases[i].live ? "" : ", over");
	for (size_t i = 0; i < world->count; i++)
		if (world->rules[i].used_up && !world->rules[i].off)
			print_error("used up: %s\n", world->rules[i].origin);
	print_error("-- organisation\n%s-- sandbox\n%s", world->organisation, world->sandbox);
}

/* A world that fails is made smaller, rule by rule, as long as it fails. */
static inline void
world_shrink(struct world *world, bool (*agrees)(struct world *world, const struct world_question *q),
    const struct world_question *q)
{
	for (size_t i = 0; i < world->count; i++) {
		if (world->rules[i].off)
			continue;
		world->rules[i].off = true;
		world_free(world);
		if (!world_compile(world)) {
			world->rules[i].off = false;
			(void)world_compile(world);
		} else if (agrees(world, q)) {
			world->rules[i].off = false;
			world_free(world);
			(void)world_compile(world);
		}
	}
}

/* Of the first world; POSTERN_TEST_SEED says another, as a failure printed it. */
static inline unsigned int
world_first_seed(void)
{
	const char *text = getenv("POSTERN_TEST_SEED");
	unsigned int seed = text == NULL ? WORLD_SEED : (unsigned int)strtoul(text, NULL, 10);

	print_message("seed %u\n", seed);
	return seed;
}

/* How many worlds: a second or two, with POSTERN_TEST_LONG some minutes. */
static inline size_t
world_many(void)
{
	return getenv("POSTERN_TEST_LONG") != NULL ? 30000 : 250;
}

#endif
