/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One rule: reading its word form strictly, printing it, comparing it.
 *
 * Patterns are a whole leftmost "*" and nothing else; what a rule may say beyond its form is rule_check.c's. Texts are
 * (pointer, length) throughout and every complaint names the remedy. */
#include "policy/text/rule.h"

#include "policy/names/country.h"
#include "policy/text/quantity.h"

#include "base/escape.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A word longer than any rule: refused unread. */
#define RULE_WORD_MAX 1024
/* How much of a wrong word a message repeats, escaped. */
#define QUOTE_MAX 160

/* What says in a word that it is about a place; no host can be meant, since those have a dot. */
#define WORD_COUNTRY "country:"
#define WORD_ASN "asn:"

struct quote {
	char text[QUOTE_MAX];
};

static struct quote
quote(const char *text, size_t len)
{
	struct quote quoted;

	escape_terminal(text, len, quoted.text, sizeof(quoted.text));
	return quoted;
}

static int complain(struct error *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int
complain(struct error *err, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	return error_set(err, ERROR_POLICY, "%s", text);
}

static bool
holds(const char *text, size_t len, const char *part)
{
	return len > 0 && memmem(text, len, part, strlen(part)) != NULL;
}

/* What people paste instead of a host name; says so better than "bad character" does. */
static int
host_look(const char *text, size_t len, struct error *err)
{
	struct quote shown = quote(text, len);

	if (holds(text, len, "://"))
		return complain(err, "'%s' is a URL; give only the host, as in example.com", shown.text);
	if (holds(text, len, "@"))
		return complain(err, "'%s' holds '@'; give only the host, without a user", shown.text);
	if (holds(text, len, "[") || holds(text, len, "]"))
		return complain(err, "'%s': brackets go around an IPv6 address only, as in [2600::1]:443", shown.text);
	if (holds(text, len, "/"))
		return complain(err, "'%s' holds '/'; give only the host, without a path", shown.text);
	if (holds(text, len, "*"))
		return complain(
		    err, "'%s': '*' stands only for whole labels in front, as in *.example.com", shown.text);
	return 0;
}

static int
host_name(struct rule *rule, const char *text, size_t len, struct error *err)
{
	struct addr addr;
	enum name_error error;

	if (host_look(text, len, err) < 0)
		return -1;
	if (addr_parse(text, len, &addr))
		return complain(err, "'%s' is an address, not a host name%s", quote(text, len).text,
		    rule->wildcard ? "" : "; write it as a cidr");
	if (holds(text, len, ":"))
		return complain(err, "'%s' holds ':'; ports are named apart from the host", quote(text, len).text);
	error = name_from_user(text, len, &rule->name);
	if (error == NAME_OK)
		return 0;
	return complain(err, "host name '%s' %s", quote(text, len).text, name_error_text(error));
}

int
rule_set_host(struct rule *rule, const char *text, size_t len, struct error *err)
{
	rule->kind = RULE_HOST;
	rule->wildcard = len >= 2 && text[0] == '*' && text[1] == '.';
	if (len == 0)
		return complain(err, "the host is empty; name one, as in example.com");
	if (!rule->wildcard)
		return host_name(rule, text, len, err);
	if (len == 2)
		return complain(err, "'*.' names no host; write *.example.com");
	return host_name(rule, text + 2, len - 2, err);
}

/* The prefix a person meant who left host bits in; "" when it is no prefix at all. */
static void
cidr_mended(const char *text, size_t len, char ret_text[ADDR_TEXT_MAX + 4])
{
	const char *slash = len == 0 ? NULL : memchr(text, '/', len);
	struct prefix prefix;
	unsigned int bits = 0;
	size_t rest;

	ret_text[0] = '\0';
	if (slash == NULL || !addr_parse(text, (size_t)(slash - text), &prefix.addr))
		return;
	rest = len - (size_t)(slash - text) - 1;
	if (rest == 0 || rest > 3 || (prefix.addr.family == 4 && memchr(text, ':', len) != NULL))
		return;
	for (size_t i = 1; i <= rest; i++) {
		if (slash[i] < '0' || slash[i] > '9')
			return;
		bits = bits * 10 + (unsigned int)(slash[i] - '0');
	}
	if (bits > 128)
		return;
	prefix.bits = (uint8_t)bits;
	for (unsigned int bit = bits; bit < 128; bit++)
		prefix.addr.bytes[bit / 8] &= (uint8_t) ~(0x80u >> bit % 8);
	addr_prefix_format(&prefix, ret_text);
	if (!addr_prefix_parse(ret_text, strlen(ret_text), &prefix))
		ret_text[0] = '\0';
}

int
rule_set_cidr(struct rule *rule, const char *text, size_t len, struct error *err)
{
	char mended[ADDR_TEXT_MAX + 4];

	rule->kind = RULE_CIDR;
	if (addr_prefix_parse(text, len, &rule->prefix))
		return 0;
	cidr_mended(text, len, mended);
	if (mended[0] != '\0')
		return complain(err, "'%s' has bits set behind its length; write %s", quote(text, len).text, mended);
	return complain(
	    err, "'%s' is no address range; write it as 140.82.112.0/20 or 2600::/32", quote(text, len).text);
}

int
rule_set_country(struct rule *rule, const char *text, size_t len, struct error *err)
{
	char code[3] = "";

	rule->kind = RULE_COUNTRY;
	for (size_t i = 0; i < len && len == 2; i++)
		code[i] = text[i] >= 'a' && text[i] <= 'z' ? (char)(text[i] - ('a' - 'A')) : text[i];
	if (memcmp(code, "UK", 2) == 0)
		return complain(err, "'%s' is no country code; the United Kingdom's is GB", quote(text, len).text);
	if (len != 2 || !country_is_code(code))
		return complain(
		    err, "'%s' is no country code; write its two letters of ISO 3166, as in KP", quote(text, len).text);
	memcpy(rule->country, code, sizeof(code));
	return 0;
}

int
rule_set_asn(struct rule *rule, const char *text, size_t len, struct error *err)
{
	size_t lead = len > 2 && (text[0] == 'A' || text[0] == 'a') && (text[1] == 'S' || text[1] == 's') ? 2 : 0;
	uint64_t asn;

	rule->kind = RULE_ASN;
	if (!quantity_parse_count(text + lead, len - lead, UINT32_MAX, &asn) || asn == 0)
		return complain(err, "'%s' is no number of an autonomous system; write 1 to 4294967295, as in 64500",
		    quote(text, len).text);
	if (lead > 0)
		return complain(err, "'%s': write the number alone, %u", quote(text, len).text, (unsigned int)asn);
	rule->asn = (uint32_t)asn;
	return 0;
}

/* Decimal, no sign, no leading zero, 1..65535; 0 when it is not. */
static uint16_t
port_parse(const char *text, size_t len)
{
	unsigned int port = 0;

	if (len == 0 || len > 5 || text[0] == '0')
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return 0;
		port = port * 10 + (unsigned int)(text[i] - '0');
	}
	return port <= UINT16_MAX ? (uint16_t)port : 0;
}

/* Put a range among the others; ranges that meet or overlap become one, so that equal sets print equally. */
static int
range_add(struct rule *rule, struct port_range range, struct error *err)
{
	struct port_range merged[RULE_RANGES_MAX + 1];
	size_t count = 0, i = 0;

	for (; i < rule->range_count && rule->ranges[i].last + 1 < range.first; i++)
		merged[count++] = rule->ranges[i];
	for (; i < rule->range_count && rule->ranges[i].first <= range.last + 1; i++) {
		if (rule->ranges[i].first < range.first)
			range.first = rule->ranges[i].first;
		if (rule->ranges[i].last > range.last)
			range.last = rule->ranges[i].last;
	}
	merged[count++] = range;
	for (; i < rule->range_count; i++)
		merged[count++] = rule->ranges[i];
	if (count > RULE_RANGES_MAX)
		return complain(err, "more than %d port ranges in one rule; split it", RULE_RANGES_MAX);
	memcpy(rule->ranges, merged, count * sizeof(merged[0]));
	rule->range_count = (uint8_t)count;
	return 0;
}

int
rule_add_ports(struct rule *rule, const char *text, size_t len, struct error *err)
{
	const char *dash = len == 0 ? NULL : memchr(text, '-', len);
	size_t first_len = dash == NULL ? len : (size_t)(dash - text);
	struct port_range range;

	range.first = port_parse(text, first_len);
	range.last = dash == NULL ? range.first : port_parse(dash + 1, len - first_len - 1);
	if (range.first == 0 || range.last == 0)
		return complain(
		    err, "'%s' is no port; ports are 1 to 65535, as in 22 or 8000-8010", quote(text, len).text);
	if (range.first > range.last)
		return complain(
		    err, "port range '%s' is backwards; write %u-%u", quote(text, len).text, range.last, range.first);
	return range_add(rule, range, err);
}

/* Parse "22", "8000-8010" and lists of them ("22,443"), optional "/udp" or "/tcp" at the end. */
static int
rule_parse_ports(struct rule *rule, const char *text, size_t len, struct error *err)
{
	const char *end = text + len, *item = text, *comma;

	rule->proto = IPPROTO_TCP;
	rule->range_count = 0;
	memset(rule->ranges, 0, sizeof(rule->ranges));
	if (len >= 4 && memcmp(end - 4, "/udp", 4) == 0) {
		rule->proto = IPPROTO_UDP;
		end -= 4;
	} else if (len >= 4 && memcmp(end - 4, "/tcp", 4) == 0) {
		end -= 4;
	}
	if (item == end)
		return complain(err, "no port is named; write one, as in :443, or leave the ':' out");
	for (;;) {
		comma = memchr(item, ',', (size_t)(end - item));
		if (rule_add_ports(rule, item, (size_t)((comma == NULL ? end : comma) - item), err) < 0)
			return -1;
		if (comma == NULL)
			return 0;
		item = comma + 1;
		if (item == end)
			return complain(err, "a port is missing behind the last ','");
	}
}

/* "[v6]", "[v6/n]", each with or without ":ports". */
static int
bracket_parse(struct rule *rule, const char *word, size_t len, struct error *err)
{
	const char *close = memchr(word, ']', len);
	size_t inner = close == NULL ? 0 : (size_t)(close - word) - 1, rest;

	if (close == NULL)
		return complain(err, "'%s' has no closing bracket", quote(word, len).text);
	if (memchr(word + 1, ':', inner) == NULL || !addr_prefix_parse(word + 1, inner, &rule->prefix))
		return complain(
		    err, "'%s': brackets go around an IPv6 address only, as in [2600::1]:443", quote(word, len).text);
	rule->kind = RULE_CIDR;
	rest = len - inner - 2;
	if (rest == 0)
		return 0;
	if (close[1] != ':')
		return complain(err, "'%s': only ':' and ports may follow the bracket", quote(word, len).text);
	return rule_parse_ports(rule, close + 2, rest - 1, err);
}

/* "country:KP", "asn:64500", each with or without ":ports". */
static int
place_parse(struct rule *rule, const char *word, size_t len, size_t lead, struct error *err)
{
	const char *text = word + lead, *colon = memchr(text, ':', len - lead);
	size_t target = colon == NULL ? len - lead : (size_t)(colon - text);

	if ((word[0] == 'c' ? rule_set_country : rule_set_asn)(rule, text, target, err) < 0)
		return -1;
	return colon == NULL ? 0 : rule_parse_ports(rule, colon + 1, len - lead - target - 1, err);
}

static bool
begins(const char *word, size_t len, const char *lead)
{
	return len >= strlen(lead) && memcmp(word, lead, strlen(lead)) == 0;
}

static int
word_parse(struct rule *rule, const char *word, size_t len, struct error *err)
{
	const char *colon;
	size_t target;
	struct addr addr;

	if (len == 0)
		return complain(err, "the rule is empty; name a host, as in example.com");
	if (len > RULE_WORD_MAX)
		return complain(err, "the rule is longer than %d bytes", RULE_WORD_MAX);
	if (holds(word, len, "://") || holds(word, len, "@"))
		return host_look(word, len, err);
	if (begins(word, len, WORD_COUNTRY))
		return place_parse(rule, word, len, sizeof(WORD_COUNTRY) - 1, err);
	if (begins(word, len, WORD_ASN))
		return place_parse(rule, word, len, sizeof(WORD_ASN) - 1, err);
	if (word[0] == '[')
		return bracket_parse(rule, word, len, err);
	if (holds(word, len, "[") || holds(word, len, "]"))
		return host_look(word, len, err);
	if (addr_prefix_parse(word, len, &rule->prefix)) {
		rule->kind = RULE_CIDR;
		return 0;
	}
	colon = memchr(word, ':', len);
	target = colon == NULL ? len : (size_t)(colon - word);
	if (colon != NULL && memchr(colon + 1, ':', len - target - 1) != NULL)
		return complain(err, "'%s' holds more than one ':'; write host:port, or [2600::1]:443 for IPv6",
		    quote(word, len).text);
	if (addr_parse(word, target, &addr) ||
	    (memchr(word, '/', target) != NULL && word[0] >= '0' && word[0] <= '9')) {
		if (rule_set_cidr(rule, word, target, err) < 0)
			return -1;
	} else if (rule_set_host(rule, word, target, err) < 0) {
		return -1;
	}
	return colon == NULL ? 0 : rule_parse_ports(rule, colon + 1, len - target - 1, err);
}

int
rule_parse(enum rule_action action, const char *word, struct rule *ret_rule, struct error *err)
{
	struct rule rule = {.action = action};

	if (word_parse(&rule, word, strnlen(word, RULE_WORD_MAX + 1), err) < 0)
		return -1;
	if (rule.proto == 0 && action == RULE_ALLOW)
		rule.proto = IPPROTO_TCP;
	if (rule_check(&rule, err) < 0)
		return -1;
	*ret_rule = rule;
	return 0;
}

static size_t
ports_format(const struct rule *rule, char *text, size_t size)
{
	size_t len = 0;

	for (size_t i = 0; i < rule->range_count; i++) {
		const struct port_range *range = &rule->ranges[i];
		const char *lead = i == 0 ? ":" : ",";

		if (range->first == range->last)
			len += (size_t)snprintf(text + len, size - len, "%s%u", lead, range->first);
		else
			len += (size_t)snprintf(text + len, size - len, "%s%u-%u", lead, range->first, range->last);
	}
	if (rule->proto == IPPROTO_UDP)
		len += (size_t)snprintf(text + len, size - len, "/udp");
	return len;
}

static bool
is_place_mark(const struct rule *rule)
{
	return !rule->wildcard && (strcmp(rule->name.text, "country") == 0 || strcmp(rule->name.text, "asn") == 0);
}

static int
target_format(const struct rule *rule, char ret_text[RULE_TEXT_MAX])
{
	const struct addr *addr = &rule->prefix.addr;
	char prefix[ADDR_TEXT_MAX + 4];

	switch (rule->kind) {
	case RULE_HOST:
		/* A host of the name that marks a place is told apart by a dot at its end. */
		return snprintf(ret_text, RULE_TEXT_MAX, "%s%s%s", rule->wildcard ? "*." : "", rule->name.text,
		    is_place_mark(rule) ? "." : "");
	case RULE_COUNTRY:
		return snprintf(ret_text, RULE_TEXT_MAX, WORD_COUNTRY "%.2s", rule->country);
	case RULE_ASN:
		return snprintf(ret_text, RULE_TEXT_MAX, WORD_ASN "%u", rule->asn);
	case RULE_CIDR:
		break;
	}
	if (rule->prefix.bits == (addr->family == 4 ? 32 : 128))
		addr_format(addr, prefix);
	else
		addr_prefix_format(&rule->prefix, prefix);
	return snprintf(ret_text, RULE_TEXT_MAX, addr->family == 6 ? "[%s]" : "%s", prefix);
}

const char *
rule_format(const struct rule *rule, char ret_text[RULE_TEXT_MAX])
{
	size_t len = (size_t)target_format(rule, ret_text);

	len += ports_format(rule, ret_text + len, RULE_TEXT_MAX - len);
	if (rule->subdomains)
		snprintf(ret_text + len, RULE_TEXT_MAX - len, " subdomains");
	return ret_text;
}

static bool
target_equal(const struct rule *a, const struct rule *b)
{
	switch (a->kind) {
	case RULE_HOST:
		return a->wildcard == b->wildcard && a->subdomains == b->subdomains && name_equal(&a->name, &b->name);
	case RULE_CIDR:
		return a->prefix.bits == b->prefix.bits && addr_equal(&a->prefix.addr, &b->prefix.addr);
	case RULE_COUNTRY:
		return memcmp(a->country, b->country, sizeof(a->country)) == 0;
	case RULE_ASN:
		return a->asn == b->asn;
	}
	return false;
}

bool
rule_equal(const struct rule *a, const struct rule *b)
{
	if (a->action != b->action || a->kind != b->kind || a->bound != b->bound || a->proto != b->proto ||
	    a->range_count != b->range_count)
		return false;
	if (memcmp(a->ranges, b->ranges, a->range_count * sizeof(a->ranges[0])) != 0)
		return false;
	return target_equal(a, b);
}

bool
rule_identical(const struct rule *a, const struct rule *b)
{
	return rule_equal(a, b) && a->shared == b->shared && a->expires_us == b->expires_us &&
	    a->expires_after_s == b->expires_after_s && a->uses == b->uses && limits_equal(&a->limits, &b->limits);
}
