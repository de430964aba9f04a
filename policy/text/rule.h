/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One rule of a policy, and its one-word form: "host", "*.host:22,443", "140.82.112.0/20:22", "dns.example:5000/udp",
 * "country:KP", "asn:64500:25". */
#ifndef POSTERN_POLICY_RULE_H
#define POSTERN_POLICY_RULE_H

#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/text/limits.h"
#include "policy/names/name.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Port ranges in one rule. */
#define RULE_RANGES_MAX 16
/* Ports that a host rule may name in all: each leased address takes one set element per port. */
#define RULE_HOST_PORTS_MAX 64
/* UDP ports that one sandbox's policy may name in all: each costs two sockets. */
#define RULE_UDP_PORTS_MAX 32
/* "preset:x.yaml:line" and the like. */
#define RULE_ORIGIN_MAX 128
/* Longest printed rule: "allow " 6, name 253, ":" 1, 16 ranges of 12 each, "/udp" 4, " subdomains" 11, NUL. */
#define RULE_TEXT_MAX 472
/* Times that a counted grant may be used. */
#define RULE_USES_MAX 1000000
/* A relative expiry: at most ten years. */
#define RULE_EXPIRES_AFTER_MAX_S (3653 * 86400)

enum rule_action { RULE_ALLOW, RULE_DENY };
/* Country and ASN are for deny only. */
enum rule_kind { RULE_HOST, RULE_CIDR, RULE_COUNTRY, RULE_ASN };

struct port_range {
	uint16_t first, last; /* 1..65535, first <= last */
};

struct rule {
	enum rule_action action;
	enum rule_kind kind;
	bool wildcard;        /* host: "*." in front; one or more labels below name, not name itself */
	bool subdomains;      /* host: name itself and everything below; never together with wildcard */
	bool shared;          /* host: the author knows that many parties share the suffix */
	bool bound;           /* an allow rule of the organisation: allows nothing, bounds what other rules may allow */
	struct name name;     /* host */
	struct prefix prefix; /* cidr */
	char country[3];      /* country: ISO 3166-1 alpha-2, upper case */
	uint32_t asn;         /* asn: 1..4294967295 */
	uint8_t proto;        /* IPPROTO_TCP or IPPROTO_UDP; 0 in a deny rule without ports: everything */
	uint8_t range_count;  /* 0: allow = 80 and 443 for a host (a cidr must say); deny = every port */
	struct port_range ranges[RULE_RANGES_MAX]; /* sorted, not overlapping */
	int64_t expires_us;       /* microseconds since the epoch: from then on it is no rule; 0: never */
	uint32_t expires_after_s; /* "expires: 2h", not yet counted from anywhere (policy_resolve); 0: not relative */
	uint32_t uses;            /* allow: connections it is good for; 0: any number */
	struct limits limits;     /* allow: of this rule's connections; only kinds that limits_kind_is_of_rules */
	char origin[RULE_ORIGIN_MAX]; /* "read-the-news.yaml:7" or "edit by uid 1000" */
};

/* Parse the one-word form. On failure returns -1 with ERROR_POLICY and a text that says what and how to mend it. */
int rule_parse(enum rule_action action, const char *word, struct rule *ret_rule, struct error *err);

/* Checks shared by the word form and YAML: never list, ports, UDP 443 and 53, limits. Returns 0 or -1. */
int rule_check(const struct rule *rule, struct error *err);

/* The parts of YAML's entries. text is a host name or "*." and one; an address or a prefix; "KP"; "64500"; "22" or
 * "8000-8010" (added to the ranges that are there, kept sorted and merged). 0 or -1 with a text that says how to mend
 * it. */
int rule_set_host(struct rule *rule, const char *text, size_t len, struct error *err);
int rule_set_cidr(struct rule *rule, const char *text, size_t len, struct error *err);
int rule_set_country(struct rule *rule, const char *text, size_t len, struct error *err);
int rule_set_asn(struct rule *rule, const char *text, size_t len, struct error *err);
int rule_add_ports(struct rule *rule, const char *text, size_t len, struct error *err);

/* The word form, canonical: rule_parse of it gives the same rule, but for what words do not say: "subdomains" (printed
 * behind it for people), shared, expiry, uses, limits. */
const char *rule_format(const struct rule *rule, char ret_text[RULE_TEXT_MAX]);

/* Same action, target, protocol and ports? (Not origin, shared, expiry, uses and limits.) */
bool rule_equal(const struct rule *a, const struct rule *b);

/* The same in all that it says? (Not the origin.) */
bool rule_identical(const struct rule *a, const struct rule *b);

#endif
