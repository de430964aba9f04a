/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses, prefixes and the never list's lookup.
 *
 * Theory of operation. never_gen turns prefixes.csv into never_prefixes (the public list) and one lookup table per
 * family, longest prefix first; a lookup is a scan of some fifty masked compares that stops at the first hit, which is
 * the most specific row. What a list cannot say is said in code: IPv6 outside 2000::/3 is refused whether or not a row
 * covers it, ISATAP interface ids are refused under every prefix, NAT64 is named after the IPv4 address inside, and
 * what is no address at all is refused. When in doubt the answer is a row, never NULL. */
#include "policy/names/addr.h"

#include <arpa/inet.h>
#include <assert.h>
#include <stdio.h>
#include <string.h>

struct never_ipv4 {
	uint32_t net, mask; /* host order */
	uint16_t row;       /* in never_prefixes */
	uint16_t platform;  /* 1 + index in never_platforms; 0: everywhere */
};

struct never_ipv6 {
	uint64_t net[2], mask[2]; /* host order, high half first */
	uint16_t row;
	uint16_t platform;
};

#define NEVER_LIST_PREFIXES
#include "never_list.inc"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define NEVER_PLATFORMS COUNT(never_platforms)

static_assert(COUNT(never_nat64) == COUNT(never_ipv4), "one NAT64 row per IPv4 row");
static_assert(COUNT(never_ipv4) + COUNT(never_ipv6) == COUNT(never_prefixes), "each row is looked up");
static_assert(NEVER_PLATFORMS <= 32, "platforms_on is a 32 bit set");

/* Refusals that no row of the CSV can express. */
static const struct never_prefix never_outside = {
    .prefix = {.addr = {.family = 6}, .bits = 0}, .text = "::/0", .why = "outside 2000::/3"};
static const struct never_prefix never_isatap = {
    .prefix = {.addr = {.family = 6}, .bits = 0}, .text = "::5efe:0:0/96", .why = "ISATAP interface id: embeds IPv4"};
static const struct never_prefix never_no_address = {.text = "none", .why = "not an IPv4 or IPv6 address"};

/* The high 96 bits of the NAT64 well-known prefix 64:ff9b::/96. */
static const uint8_t nat64_prefix[12] = {0x00, 0x64, 0xff, 0x9b};

/* Set of platforms switched on by addr_never_env; written at start, before anything is judged. */
static uint32_t platforms_on;

struct addr
addr_from_ipv4(const void *four_bytes)
{
	struct addr addr = {.family = 4};

	memcpy(addr.bytes, four_bytes, 4);
	return addr;
}

struct addr
addr_from_ipv6(const void *sixteen_bytes)
{
	static const uint8_t mapped[12] = {[10] = 0xff, [11] = 0xff};
	struct addr addr = {.family = 6};

	memcpy(addr.bytes, sixteen_bytes, 16);
	if (memcmp(addr.bytes, mapped, sizeof(mapped)) == 0)
		return addr_from_ipv4(addr.bytes + sizeof(mapped));
	return addr;
}

bool
addr_from_sockaddr(const struct sockaddr *sa, struct addr *ret_addr, uint16_t *ret_port)
{
	struct sockaddr_in sin;
	struct sockaddr_in6 sin6;
	uint16_t port;

	if (sa->sa_family == AF_INET) {
		memcpy(&sin, sa, sizeof(sin));
		*ret_addr = addr_from_ipv4(&sin.sin_addr);
		port = sin.sin_port;
	} else if (sa->sa_family == AF_INET6) {
		memcpy(&sin6, sa, sizeof(sin6));
		*ret_addr = addr_from_ipv6(&sin6.sin6_addr);
		port = sin6.sin6_port;
	} else {
		return false;
	}
	if (ret_port != NULL)
		*ret_port = ntohs(port);
	return true;
}

socklen_t
addr_to_sockaddr(const struct addr *addr, uint16_t port, struct sockaddr_storage *ret_sa)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

	memset(ret_sa, 0, sizeof(*ret_sa));
	if (addr->family == 4) {
		memcpy(&sin.sin_addr, addr->bytes, 4);
		memcpy(ret_sa, &sin, sizeof(sin));
		return sizeof(sin);
	}
	memcpy(&sin6.sin6_addr, addr->bytes, 16);
	memcpy(ret_sa, &sin6, sizeof(sin6));
	return sizeof(sin6);
}

/* inet_pton over (pointer, length); it knows strict forms only. Tells whether the text was an IPv4-mapped address. */
static bool
addr_read(const char *text, size_t len, struct addr *ret_addr, bool *ret_mapped)
{
	char copy[ADDR_TEXT_MAX];
	uint8_t bytes[16];

	if (len == 0 || len >= sizeof(copy) || memchr(text, '\0', len) != NULL)
		return false;
	memcpy(copy, text, len);
	copy[len] = '\0';
	*ret_mapped = false;
	if (inet_pton(AF_INET, copy, bytes) == 1) {
		*ret_addr = addr_from_ipv4(bytes);
		return true;
	}
	if (inet_pton(AF_INET6, copy, bytes) != 1)
		return false;
	*ret_addr = addr_from_ipv6(bytes);
	*ret_mapped = ret_addr->family == 4;
	return true;
}

bool
addr_parse(const char *text, size_t len, struct addr *ret_addr)
{
	bool mapped;

	return addr_read(text, len, ret_addr, &mapped);
}

/* Bits of an address of this family. */
static unsigned int
addr_width(const struct addr *addr)
{
	return addr->family == 4 ? 32 : 128;
}

/* The first count bits of both are the same. */
static bool
bits_equal(const uint8_t *a, const uint8_t *b, unsigned int count)
{
	unsigned int whole = count / 8, rest = count % 8;

	if (memcmp(a, b, whole) != 0)
		return false;
	return rest == 0 || ((a[whole] ^ b[whole]) >> (8 - rest)) == 0;
}

/* Are all bits behind the prefix zero? */
static bool
host_bits_zero(const struct prefix *prefix)
{
	unsigned int width = addr_width(&prefix->addr);

	for (unsigned int bit = prefix->bits; bit < width; bit++)
		if ((prefix->addr.bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return false;
	return true;
}

bool
addr_prefix_parse(const char *text, size_t len, struct prefix *ret_prefix)
{
	const char *slash = len == 0 ? NULL : memchr(text, '/', len);
	struct prefix prefix;
	unsigned int bits = 0;
	bool mapped;

	if (!addr_read(text, slash == NULL ? len : (size_t)(slash - text), &prefix.addr, &mapped))
		return false;
	prefix.bits = (uint8_t)addr_width(&prefix.addr);
	if (slash == NULL) {
		*ret_prefix = prefix;
		return true;
	}
	len -= (size_t)(slash - text) + 1;
	/* The length of a mapped prefix would count IPv6 bits: two readings, so none. A leading zero is one too. */
	if (mapped || len == 0 || len > 3 || (slash[1] == '0' && len > 1))
		return false;
	for (size_t i = 1; i <= len; i++) {
		if (slash[i] < '0' || slash[i] > '9')
			return false;
		bits = bits * 10 + (unsigned int)(slash[i] - '0');
	}
	if (bits > prefix.bits)
		return false;
	prefix.bits = (uint8_t)bits;
	if (!host_bits_zero(&prefix))
		return false;
	*ret_prefix = prefix;
	return true;
}

const char *
addr_format(const struct addr *addr, char ret_text[ADDR_TEXT_MAX])
{
	int family = addr->family == 4 ? AF_INET : AF_INET6;

	if (addr->family == 0 || inet_ntop(family, addr->bytes, ret_text, ADDR_TEXT_MAX) == NULL)
		memcpy(ret_text, "none", sizeof("none"));
	return ret_text;
}

const char *
addr_format_port(const struct addr *addr, uint16_t port, char ret_text[ADDR_PORT_TEXT_MAX])
{
	char text[ADDR_TEXT_MAX];

	snprintf(ret_text, ADDR_PORT_TEXT_MAX, addr->family == 6 ? "[%s]:%u" : "%s:%u", addr_format(addr, text), port);
	return ret_text;
}

const char *
addr_prefix_format(const struct prefix *prefix, char ret_text[ADDR_TEXT_MAX + 4])
{
	char text[ADDR_TEXT_MAX];

	snprintf(ret_text, ADDR_TEXT_MAX + 4, "%s/%u", addr_format(&prefix->addr, text), prefix->bits);
	return ret_text;
}

bool
addr_prefix_contains(const struct prefix *prefix, const struct addr *addr)
{
	return prefix->addr.family == addr->family && bits_equal(prefix->addr.bytes, addr->bytes, prefix->bits);
}

bool
addr_prefix_overlaps(const struct prefix *a, const struct prefix *b)
{
	unsigned int bits = a->bits < b->bits ? a->bits : b->bits;

	return a->addr.family == b->addr.family && bits_equal(a->addr.bytes, b->addr.bytes, bits);
}

const struct never_prefix *
addr_never_list(size_t *ret_count)
{
	*ret_count = COUNT(never_prefixes);
	return never_prefixes;
}

/* Does a row of this platform apply on this host? 0 is every platform. */
static bool
platform_is_on(unsigned int platform)
{
	return platform == 0 || (platforms_on >> (platform - 1) & 1) != 0;
}

/* Reads 4 bytes in network order. */
static uint32_t
load_u32(const uint8_t *bytes)
{
	uint32_t value;

	memcpy(&value, bytes, sizeof(value));
	return ntohl(value);
}

/* Reads 8 bytes in network order. */
static uint64_t
load_u64(const uint8_t *bytes)
{
	return (uint64_t)load_u32(bytes) << 32 | load_u32(bytes + 4);
}

/* Index in never_ipv4 of the most specific row, or -1. */
static int
never_ipv4_find(const uint8_t *bytes)
{
	uint32_t value = load_u32(bytes);

	for (size_t i = 0; i < COUNT(never_ipv4); i++)
		if ((value & never_ipv4[i].mask) == never_ipv4[i].net && platform_is_on(never_ipv4[i].platform))
			return (int)i;
	return -1;
}

/* The most specific row of never_ipv6 that holds the address, or NULL. */
static const struct never_prefix *
never_ipv6_find(const uint8_t *bytes)
{
	uint64_t high = load_u64(bytes), low = load_u64(bytes + 8);

	for (size_t i = 0; i < COUNT(never_ipv6); i++) {
		const struct never_ipv6 *row = &never_ipv6[i];

		if ((high & row->mask[0]) == row->net[0] && (low & row->mask[1]) == row->net[1] &&
		    platform_is_on(row->platform))
			return &never_prefixes[row->row];
	}
	return NULL;
}

/* RFC 5214 section 6.1: the interface id begins with 0000:5efe or, with the universal bit, 0200:5efe. */
static bool
is_isatap(const uint8_t *bytes)
{
	return (load_u32(bytes + 8) & ~0x02000000u) == 0x00005efe;
}

/* The row that refuses an IPv6 address, those included that no list can express; NULL when none does. */
static const struct never_prefix *
ipv6_never(const uint8_t *bytes)
{
	const struct never_prefix *row;
	int inner;

	if (memcmp(bytes, nat64_prefix, sizeof(nat64_prefix)) == 0) {
		inner = never_ipv4_find(bytes + sizeof(nat64_prefix));
		if (inner >= 0)
			return &never_nat64[inner];
	}
	row = never_ipv6_find(bytes);
	if (row != NULL)
		return row;
	if (bytes[0] >> 5 != 1)
		return &never_outside;
	return is_isatap(bytes) ? &never_isatap : NULL;
}

const struct never_prefix *
addr_never(const struct addr *addr)
{
	int row;

	if (addr->family == 6)
		return ipv6_never(addr->bytes);
	if (addr->family != 4)
		return &never_no_address;
	row = never_ipv4_find(addr->bytes);
	return row < 0 ? NULL : &never_prefixes[never_ipv4[row].row];
}

const struct never_prefix *
addr_verdict(const struct sockaddr *sa)
{
	struct addr addr;

	if (!addr_from_sockaddr(sa, &addr, NULL))
		return &never_no_address;
	return addr_never(&addr);
}

/* Does the row of never_prefixes apply on this host? Its platform is the first word of its reason. */
static bool
row_is_on(size_t row)
{
	if (!never_prefixes[row].env)
		return true;
	for (size_t i = 0; i < NEVER_PLATFORMS; i++) {
		size_t len = strlen(never_platforms[i]);

		if (strncmp(never_prefixes[row].why, never_platforms[i], len) == 0 &&
		    never_prefixes[row].why[len] == ':')
			return platform_is_on((unsigned int)i + 1);
	}
	return true;
}

/* The row that holds the whole prefix is the better explanation, and the most specific of those the best; failing
 * that, the widest row inside the prefix. */
bool
addr_prefix_touches_never(const struct prefix *prefix, const struct never_prefix **ret_row)
{
	const struct never_prefix *inside = NULL;

	for (size_t i = COUNT(never_prefixes); i-- > 0;) {
		const struct never_prefix *row = &never_prefixes[i];

		if (!addr_prefix_overlaps(&row->prefix, prefix) || !row_is_on(i))
			continue;
		if (row->prefix.bits <= prefix->bits) {
			/* Not the first by mask alone: NAT64 and ISATAP have rows of their own. */
			*ret_row = prefix->bits == addr_width(&prefix->addr) ? addr_never(&prefix->addr) : row;
			return true;
		}
		inside = row;
	}
	/* No row has been hit, or only ones inside; a prefix wider than 2000::/3 or next to it has never_outside. */
	if (inside == NULL && prefix->addr.family == 6 && (prefix->bits < 3 || prefix->addr.bytes[0] >> 5 != 1))
		inside = &never_outside;
	/* Shorter prefixes hold ISATAP ids too; those are refused address by address. */
	if (inside == NULL && prefix->addr.family == 6 && prefix->bits >= 96 && is_isatap(prefix->addr.bytes))
		inside = &never_isatap;
	if (inside == NULL && prefix->addr.family != 4 && prefix->addr.family != 6)
		inside = &never_no_address;
	if (inside == NULL)
		return false;
	*ret_row = inside;
	return true;
}

bool
addr_never_env(const char *platform)
{
	for (size_t i = 0; i < NEVER_PLATFORMS; i++) {
		if (strcmp(never_platforms[i], platform) == 0) {
			platforms_on |= 1u << i;
			return true;
		}
	}
	return false;
}
