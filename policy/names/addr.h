/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses in one normal form, and the never list: the one function that says which are refused whatever a policy
 * says.
 *
 * The list is compiled at build time from policy/names/prefixes.csv (see there for sources). IPv4-mapped IPv6 addresses
 * become IPv4 before anything looks at them. IPv6 is judged positively first: only 2000::/3 can be reached at all. */
#ifndef POSTERN_POLICY_ADDR_H
#define POSTERN_POLICY_ADDR_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* "ffff:...:255.255.255.255" and NUL, INET6_ADDRSTRLEN. */
#define ADDR_TEXT_MAX 46
/* "[addr]:65535" */
#define ADDR_PORT_TEXT_MAX (ADDR_TEXT_MAX + 8)

/* An IPv4 or IPv6 address; never an IPv4-mapped one. Unused bytes are zero, so that memcmp compares. */
struct addr {
	uint8_t family;    /* 4 or 6; 0 = none */
	uint8_t bytes[16]; /* network order; IPv4 in the first four */
};

struct prefix {
	struct addr addr; /* host bits zero */
	uint8_t bits;     /* 0..32 or 0..128 */
};

struct addr addr_from_ipv4(const void *four_bytes);
/* Normalises ::ffff:a.b.c.d to IPv4. */
struct addr addr_from_ipv6(const void *sixteen_bytes);
/* False when the family is neither AF_INET nor AF_INET6. ret_port (may be NULL) in host order. */
bool addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret_addr, uint16_t *ret_port);
/* Fills *ret_sa; returns its length. port in host order. */
socklen_t addr_to_sockaddr(const struct addr *addr, uint16_t port, struct sockaddr_storage *ret_sa);

/* Strict inet_pton forms only (no 0x7f.1, no 127.1, no zone). False otherwise. */
bool addr_parse(const char *text, size_t len, struct addr *ret_addr);
/* "a.b.c.d/n" or "v6/n", or a bare address (full length). Host bits must be zero. */
bool addr_prefix_parse(const char *text, size_t len, struct prefix *ret_prefix);
const char *addr_format(const struct addr *addr, char ret_text[ADDR_TEXT_MAX]);
/* "1.2.3.4:80" or "[2600::1]:80". */
const char *addr_format_port(const struct addr *addr, uint16_t port, char ret_text[ADDR_PORT_TEXT_MAX]);
const char *addr_prefix_format(const struct prefix *prefix, char ret_text[ADDR_TEXT_MAX + 4]);

static inline bool
addr_equal(const struct addr *a, const struct addr *b)
{
	return __builtin_memcmp(a, b, sizeof(*a)) == 0;
}

bool addr_prefix_contains(const struct prefix *prefix, const struct addr *addr);
bool addr_prefix_overlaps(const struct prefix *a, const struct prefix *b);

/* A row of the never list. */
struct never_prefix {
	struct prefix prefix;
	bool embeds_ipv4; /* action "decode": blocked as well, and named after the IPv4 address it embeds */
	bool env;         /* "env-*": blocked only on the platform named in why; see addr_never_env */
	const char *text; /* "169.254.169.254/32" */
	const char *why;  /* first clause of the CSV's reason, for messages and records */
};

/* All rows, longest prefix last; for the nftables sets and for tests. */
const struct never_prefix *addr_never_list(size_t *ret_count);

/* Is this destination refused whatever a policy says? NULL: no. Otherwise the most specific row (static storage).
 * Covers the static list, ISATAP interface ids, and anything in IPv6 outside 2000::/3. It does not know the host's own
 * addresses: gateway/shared/route.h asks the kernel for those. (CASES A-01..A-22) */
const struct never_prefix *addr_never(const struct addr *addr);

/* The same for the exact sockaddr handed to connect(2); an unknown family is refused too. */
const struct never_prefix *addr_verdict(const struct sockaddr *sa);

/* Does any address of the prefix fall on the never list (then *ret_row says which), for policy entries? */
bool addr_prefix_touches_never(const struct prefix *prefix, const struct never_prefix **ret_row);

/* Switch on the rows of a platform ("gcp", "ibm", "equinix"); false for an unknown one. They are off otherwise. */
bool addr_never_env(const char *platform);

#endif
