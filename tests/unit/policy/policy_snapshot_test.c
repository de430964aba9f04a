/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiled policies: precedence, a differential oracle that matches C strings and whole address sets, limits, and
 * blocks that somebody damaged. */
#include "policy/compiled/snapshot_format.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

static void
add(struct policy *policy, enum rule_action action, const char *word)
{
	struct rule rule;
	struct error err;

	if (rule_parse(action, word, &rule, &err) < 0)
		fail_msg("%s", err.text);
	snprintf(rule.origin, sizeof(rule.origin), "test:%zu", policy->rule_count + 1);
	if (policy_add(policy, &rule, &err) < 0)
		fail_msg("%s", err.text);
}

/* Words with a leading '!' deny. */
static struct policy
policy_of(const char *const *words, size_t count)
{
	struct policy policy;

	policy_init(&policy);
	for (size_t i = 0; i < count; i++)
		add(&policy, words[i][0] == '!' ? RULE_DENY : RULE_ALLOW, words[i] + (words[i][0] == '!'));
	return policy;
}

static struct snapshot *
open_policy(const struct policy *policy)
{
	struct snapshot *snapshot;
	struct error err;
	int fd = snapshot_compile(policy, &err);

	if (fd < 0)
		fail_msg("%s", err.text);
	snapshot = snapshot_open(fd, &err);
	if (snapshot == NULL)
		fail_msg("%s", err.text);
	close(fd);
	return snapshot;
}

static struct snapshot *
open_words(const char *const *words, size_t count)
{
	struct policy policy = policy_of(words, count);
	struct snapshot *snapshot = open_policy(&policy);

	policy_free(&policy);
	return snapshot;
}

#define OPEN(...)                                                                                                      \
	open_words((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static struct name
name_of(const char *text)
{
	struct name name;

	if (name_canonical(text, strlen(text), &name) != NAME_OK)
		fail_msg("'%s' is no name", text);
	return name;
}

static struct decision
host(const struct snapshot *snapshot, const char *text, uint8_t proto, uint16_t port)
{
	struct name name = name_of(text);

	return snapshot_decide_host(snapshot, &name, proto, port, 0);
}

static struct decision
dns(const struct snapshot *snapshot, const char *text)
{
	struct name name = name_of(text);

	return snapshot_ports_any(snapshot, &name, 0);
}

static struct decision
at_addr(const struct snapshot *snapshot, const char *text, uint8_t proto, uint16_t port)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return snapshot_decide_addr(snapshot, &addr, proto, port, 0);
}

static void
expect_reason(struct decision decision, enum reason reason)
{
	assert_string_equal(reason_text(decision.reason), reason_text(reason));
	assert_int_equal(decision.verdict, reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED);
	assert_int_equal(decision.rule != SNAPSHOT_NO_RULE, reason == REASON_ALLOWED || reason == REASON_RULE_DENY);
}

static void
case_B_06_wildcard_is_below_not_itself(void **state)
{
	struct snapshot *s = OPEN("*.x.example", "y.example");

	(void)state;
	expect_reason(host(s, "a.x.example", IPPROTO_TCP, 443), REASON_ALLOWED);
	expect_reason(host(s, "a.b.x.example", IPPROTO_TCP, 443), REASON_ALLOWED);
	expect_reason(host(s, "x.example", IPPROTO_TCP, 443), REASON_NO_RULE);
	expect_reason(host(s, "y.example", IPPROTO_TCP, 443), REASON_ALLOWED);
	expect_reason(host(s, "a.y.example", IPPROTO_TCP, 443), REASON_NO_RULE);
	expect_reason(host(s, "example", IPPROTO_TCP, 443), REASON_NEVER_NAME);
	assert_string_equal(snapshot_rule_text(s, host(s, "a.x.example", IPPROTO_TCP, 443).rule), "allow *.x.example");
	assert_string_equal(snapshot_rule_origin(s, host(s, "y.example", IPPROTO_TCP, 443).rule), "test:2");
	assert_string_equal(snapshot_rule_text(s, SNAPSHOT_NO_RULE), "");
	assert_string_equal(snapshot_rule_origin(s, 2), "");
	snapshot_free(s);
}

static void
case_B_05_boundaries(void **state)
{
	static const char *const refused[] = {"notexample.com", "example.com.evil.net", "xexample.com", "example.co",
	    "example.comm", "a.example.co", "a.notexample.com", "examplezcom.com", "exampl.com", "a-example.com",
	    "example.com.com"};
	struct snapshot *s = OPEN("example.com", "*.example.com");

	(void)state;
	for (size_t i = 0; i < sizeof(refused) / sizeof(refused[0]); i++)
		expect_reason(host(s, refused[i], IPPROTO_TCP, 443), REASON_NO_RULE);
	expect_reason(host(s, "example.com", IPPROTO_TCP, 443), REASON_ALLOWED);
	expect_reason(host(s, "notexample.com.example.com", IPPROTO_TCP, 443), REASON_ALLOWED);
	snapshot_free(s);
}

/* {deny wide, allow narrow, deny narrow, allow wide, never list} for names and addresses: the golden table. */
static void
case_A_14_precedence_matrix(void **state)
{
	static const struct {
		const char *words[3];
		const char *addr, *host; /* one of them */
		enum reason reason;
	} cases[] = {
	    {{"!1.0.0.0/8", "1.2.3.4:80"}, "1.2.3.4", NULL, REASON_RULE_DENY},
	    {{"1.2.3.4:80", "!1.0.0.0/8"}, "1.2.3.4", NULL, REASON_RULE_DENY},
	    {{"1.0.0.0/8:80", "!1.2.3.4"}, "1.2.3.4", NULL, REASON_RULE_DENY},
	    {{"1.0.0.0/8:80", "!1.2.3.4"}, "1.2.3.5", NULL, REASON_ALLOWED},
	    {{"!0.0.0.0/0", "1.2.3.4:80"}, "1.2.3.4", NULL, REASON_RULE_DENY},
	    {{"1.2.3.4:80", "!1.2.3.4:81"}, "1.2.3.4", NULL, REASON_ALLOWED},
	    {{"1.2.3.4:80", "!1.2.3.4:80/udp"}, "1.2.3.4", NULL, REASON_ALLOWED},
	    {{"1.2.3.4:80", "!1.2.3.4:80"}, "1.2.3.4", NULL, REASON_RULE_DENY},
	    {{"1.2.3.4:81"}, "1.2.3.4", NULL, REASON_NO_RULE},
	    {{"1.2.3.4:80/udp"}, "1.2.3.4", NULL, REASON_NO_RULE},
	    {{"1.0.0.0/8:80"}, "10.0.0.1", NULL, REASON_NEVER_ADDRESS},
	    {{"1.0.0.0/8:80"}, "169.254.169.254", NULL, REASON_NEVER_ADDRESS},
	    {{"1.0.0.0/8:80"}, "168.63.129.16", NULL, REASON_NEVER_ADDRESS},
	    {{"1.0.0.0/8:80"}, "::1", NULL, REASON_NEVER_ADDRESS},
	    {{"!10.0.0.0/8"}, "10.0.0.1", NULL, REASON_NEVER_ADDRESS},
	    {{"[2600::/32]:80", "![2600::1]"}, "2600::1", NULL, REASON_RULE_DENY},
	    {{"[2600::/32]:80", "![2600::1]"}, "2600::2", NULL, REASON_ALLOWED},
	    {{"[2600::/32]:80"}, "2600::5efe:102:304", NULL, REASON_NEVER_ADDRESS},
	    {{"[2600::/32]:80"}, "2601::1", NULL, REASON_NO_RULE},
	    {{"1.2.3.4:80", "!::/0"}, "1.2.3.4", NULL, REASON_ALLOWED},
	    {{"a.example"}, NULL, "a.example", REASON_ALLOWED},
	    {{"a.example", "!a.example"}, NULL, "a.example", REASON_RULE_DENY},
	    {{"!a.example", "a.example"}, NULL, "a.example", REASON_RULE_DENY},
	    {{"a.x.example", "!*.x.example"}, NULL, "a.x.example", REASON_RULE_DENY},
	    {{"*.x.example", "!a.x.example"}, NULL, "a.x.example", REASON_RULE_DENY},
	    {{"*.x.example", "!a.x.example"}, NULL, "b.x.example", REASON_ALLOWED},
	    {{"*.x.example", "!a.x.example"}, NULL, "c.a.x.example", REASON_ALLOWED},
	    {{"*.x.example", "!*.example"}, NULL, "a.x.example", REASON_RULE_DENY},
	    {{"a.example:80", "!a.example:443"}, NULL, "a.example", REASON_ALLOWED},
	    {{"a.example:80-90", "!a.example:80"}, NULL, "a.example", REASON_RULE_DENY},
	    {{"a.example:80/udp"}, NULL, "a.example", REASON_NO_RULE},
	    {{"*.example.com"}, NULL, "metadata.google.internal", REASON_NEVER_NAME},
	    {{"*.example.com"}, NULL, "wpad.example.com", REASON_NEVER_NAME},
	    {{"!localhost"}, NULL, "localhost", REASON_NEVER_NAME},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t count = cases[i].words[1] == NULL ? 1 : 2;
		struct snapshot *s = open_words(cases[i].words, count);
		struct decision decision = cases[i].addr != NULL ? at_addr(s, cases[i].addr, IPPROTO_TCP, 80)
								 : host(s, cases[i].host, IPPROTO_TCP, 80);

		if (decision.reason != cases[i].reason)
			fail_msg("case %zu (%s): %s", i, cases[i].words[0], reason_text(decision.reason));
		expect_reason(decision, cases[i].reason);
		snapshot_free(s);
	}
}

/* A rule that no parser let through must not get past the compiler either. */
static void
case_A_15_compiler_checks_again(void **state)
{
	struct policy policy;
	struct rule rule;
	struct error err;

	(void)state;
	policy_init(&policy);
	assert_int_equal(rule_parse(RULE_ALLOW, "1.2.3.4:80", &rule, &err), 0);
	rule.prefix.addr.bytes[0] = 10;
	snprintf(rule.origin, sizeof(rule.origin), "edit by uid 7");
	assert_int_equal(policy_add(&policy, &rule, &err), 0);
	assert_int_equal(snapshot_compile(&policy, &err), -1);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_non_null(strstr(err.text, "edit by uid 7: 10.2.3.4/32 lies in 10.0.0.0/8 (private use)"));
	policy_free(&policy);
}

static void
names_may_be_resolved_when_a_port_is_open(void **state)
{
	struct snapshot *s = OPEN("a.example", "b.example:22", "!b.example:22", "c.example", "!c.example",
	    "d.example:80,81", "!d.example:80", "!e.example:22", "f.example:5000/udp", "!f.example:5000", "*.g.example",
	    "!x.g.example", "h.example:5000/udp", "!h.example:1-65535/udp");

	(void)state;
	expect_reason(dns(s, "a.example"), REASON_ALLOWED);
	expect_reason(dns(s, "b.example"), REASON_RULE_DENY);
	assert_string_equal(snapshot_rule_text(s, dns(s, "b.example").rule), "deny b.example:22");
	expect_reason(dns(s, "c.example"), REASON_RULE_DENY);
	expect_reason(dns(s, "d.example"), REASON_ALLOWED);
	assert_string_equal(snapshot_rule_text(s, dns(s, "d.example").rule), "allow d.example:80-81");
	expect_reason(dns(s, "e.example"), REASON_NO_RULE);
	expect_reason(dns(s, "f.example"), REASON_ALLOWED);
	expect_reason(dns(s, "y.g.example"), REASON_ALLOWED);
	expect_reason(dns(s, "x.g.example"), REASON_RULE_DENY);
	expect_reason(dns(s, "g.example"), REASON_NO_RULE);
	expect_reason(dns(s, "h.example"), REASON_RULE_DENY);
	expect_reason(dns(s, "nothing.example"), REASON_NO_RULE);
	expect_reason(dns(s, "metadata.google.internal"), REASON_NEVER_NAME);
	snapshot_free(s);
}

static void
expect_ports(const struct snapshot *s, const char *text, size_t max, const char *expected)
{
	struct proto_port ports[256];
	struct name name = name_of(text);
	size_t count = snapshot_ports_list(s, &name, ports, max, 0), len = 0;
	char got[512] = "";

	for (size_t i = 0; i < count; i++)
		len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%u%s", i == 0 ? "" : " ", ports[i].port,
		    ports[i].proto == IPPROTO_UDP ? "u" : "");
	assert_string_equal(got, expected);
}

static void
ports_of_a_name(void **state)
{
	struct snapshot *s = OPEN("a.x.example", "a.x.example:22", "*.x.example:443,8000-8002", "!a.x.example:8001",
	    "b.x.example:5000/udp", "!c.x.example");
	struct name name = name_of("a.x.example");

	(void)state;
	expect_ports(s, "a.x.example", 64, "22 80 443 8000 8002");
	expect_ports(s, "a.x.example", 2, "22 80");
	expect_ports(s, "a.x.example", 0, "");
	expect_ports(s, "b.x.example", 64, "443 8000 8001 8002 5000u");
	expect_ports(s, "b.x.example", 5, "443 8000 8001 8002 5000u");
	expect_ports(s, "c.x.example", 64, "");
	expect_ports(s, "x.example", 64, "");
	expect_ports(s, "metadata.google.internal", 64, "");
	assert_int_equal(snapshot_ports_list(s, &name, NULL, 0, 0), 0);
	snapshot_free(s);
}

/* ---- the differential oracle ---- */

static uint64_t seed_now;

static uint32_t
pick(uint32_t below)
{
	seed_now = seed_now * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(seed_now >> 33) % below;
}

static void
pick_name(char *text, size_t size, bool pattern)
{
	static const char *const labels[] = {"a", "b", "aa", "ab", "x-y"};
	size_t len = 0, depth = 1 + pick(4);

	if (pattern && pick(3) == 0)
		len += (size_t)snprintf(text, size, "*.");
	for (size_t i = 0; i < depth; i++)
		len += (size_t)snprintf(text + len, size - len, "%s.", labels[pick(5)]);
	snprintf(text + len, size - len, "%s", pick(2) == 0 ? "com" : "net");
}

static void
pick_ports(char *text, size_t size)
{
	static const char *const ports[] = {"", ":443", ":22", ":80-90", ":5000/udp", ":1000-1010/udp", ":22,443"};

	snprintf(text, size, "%s", ports[pick(7)]);
}

/* By C strings alone: does the pattern match? */
static bool
oracle_host(const struct rule *rule, const char *text)
{
	char dotted[300];
	size_t len = strlen(text), suffix;

	if (rule->kind != RULE_HOST)
		return false;
	if (!rule->wildcard)
		return strcmp(rule->name.text, text) == 0;
	suffix = (size_t)snprintf(dotted, sizeof(dotted), ".%s", rule->name.text);
	return len > suffix && strcmp(text + len - suffix, dotted) == 0;
}

static bool
oracle_port(const struct rule *rule, uint8_t proto, uint16_t port)
{
	if (rule->proto == 0)
		return true;
	if (rule->proto != proto)
		return false;
	if (rule->range_count == 0)
		return port == 80 || port == 443;
	for (size_t i = 0; i < rule->range_count; i++)
		if (rule->ranges[i].first <= port && port <= rule->ranges[i].last)
			return true;
	return false;
}

static enum reason
oracle_decide(const struct policy *policy, const char *text, const struct addr *addr, uint8_t proto, uint16_t port)
{
	enum reason reason = REASON_NO_RULE;

	for (size_t i = 0; i < policy->rule_count; i++) {
		const struct rule *rule = &policy->rules[i];
		bool target = text != NULL ? oracle_host(rule, text)
					   : rule->kind == RULE_CIDR && addr_prefix_contains(&rule->prefix, addr);

		if (!target || !oracle_port(rule, proto, port))
			continue;
		if (rule->action == RULE_DENY)
			return REASON_RULE_DENY;
		reason = REASON_ALLOWED;
	}
	return reason;
}

static const uint16_t asked_ports[] = {22, 80, 85, 90, 91, 443, 999, 1000, 1005, 5000, 65535};
#define ASKED_PORTS (sizeof(asked_ports) / sizeof(asked_ports[0]))

static void
compare_names(const struct policy *policy, const struct snapshot *s)
{
	for (unsigned int round = 0; round < 60; round++) {
		struct proto_port ports[256];
		char text[64];
		struct name name;
		size_t open = 0, count;

		pick_name(text, sizeof(text), false);
		name = name_of(text);
		count = snapshot_ports_list(s, &name, ports, 256, 0);
		/* no rule names a port between 1100 and 5000 */
		for (uint32_t port = 1; port < 5002; port = port == 1100 ? 4999 : port + 1) {
			for (unsigned int udp = 0; udp < 2; udp++) {
				uint8_t proto = udp ? IPPROTO_UDP : IPPROTO_TCP;
				enum reason expected = oracle_decide(policy, text, NULL, proto, (uint16_t)port);

				assert_int_equal(
				    snapshot_decide_host(s, &name, proto, (uint16_t)port, 0).reason, expected);
				open += expected == REASON_ALLOWED;
			}
		}
		assert_int_equal(count, open);
		assert_int_equal(snapshot_ports_any(s, &name, 0).verdict, open > 0 ? VERDICT_ALLOWED : VERDICT_DENIED);
		for (size_t i = 0; i < count; i++)
			assert_int_equal(
			    oracle_decide(policy, text, NULL, ports[i].proto, ports[i].port), REASON_ALLOWED);
	}
}

static bool
in_range(const struct addr_range *range, const struct addr *addr, uint8_t proto, uint16_t port)
{
	return range->proto == proto && range->first.family == addr->family && port >= range->port_first &&
	    port <= range->port_last && memcmp(addr->bytes, range->first.bytes, 16) >= 0 &&
	    memcmp(addr->bytes, range->last.bytes, 16) <= 0;
}

static void
compare_addr(const struct policy *policy, const struct snapshot *s, const struct addr *addr)
{
	size_t count;
	const struct addr_range *ranges = snapshot_ranges(s, &count);

	for (size_t p = 0; p < ASKED_PORTS; p++) {
		for (unsigned int udp = 0; udp < 2; udp++) {
			uint8_t proto = udp ? IPPROTO_UDP : IPPROTO_TCP;
			enum reason expected = oracle_decide(policy, NULL, addr, proto, asked_ports[p]);
			size_t hits = 0;

			assert_int_equal(snapshot_decide_addr(s, addr, proto, asked_ports[p], 0).reason, expected);
			for (size_t r = 0; r < count; r++)
				hits += in_range(&ranges[r], addr, proto, asked_ports[p]);
			/* Disjoint: an open address is in exactly one range. */
			assert_int_equal(hits, expected == REASON_ALLOWED);
		}
	}
}

static void
pick_rule(struct policy *policy)
{
	enum rule_action action = pick(3) == 0 ? RULE_DENY : RULE_ALLOW;
	char target[128], ports[64], word[256], prefix[ADDR_TEXT_MAX + 4];
	struct rule rule;
	struct prefix range = {.addr = {.family = 4, .bytes = {1, 2, 3, 0}}, .bits = (uint8_t)(25 + pick(8))};

	pick_name(target, sizeof(target), true);
	pick_ports(ports, sizeof(ports));
	if (pick(2) == 0) {
		range.addr.bytes[3] = (uint8_t)(pick(256) & (0xffu << (32 - range.bits)));
		if (pick(3) == 0) {
			range.addr = (struct addr){.family = 6, .bytes = {0x26, [15] = range.addr.bytes[3]}};
			range.bits = (uint8_t)(range.bits + 96);
		}
		addr_prefix_format(&range, prefix);
		snprintf(target, sizeof(target), range.addr.family == 6 ? "[%s]" : "%s", prefix);
	}
	snprintf(word, sizeof(word), "%s%s", target, ports);
	if (rule_parse(action, word, &rule, NULL) == 0)
		assert_int_equal(policy_add(policy, &rule, NULL), 0);
}

static void
case_B_27_matcher_agrees_with_an_oracle(void **state)
{
	(void)state;
	seed_now = 20240229;
	for (unsigned int round = 0; round < 60; round++) {
		struct policy policy;
		struct snapshot *s;

		policy_init(&policy);
		for (uint32_t rules = 1 + pick(40); rules > 0; rules--)
			pick_rule(&policy);
		s = open_policy(&policy);
		assert_int_equal(snapshot_rule_count(s), policy.rule_count);
		if (round % 6 == 0)
			compare_names(&policy, s);
		for (unsigned int last = 0; last < 256; last++) {
			struct addr v4 = {.family = 4, .bytes = {1, 2, 3, (uint8_t)last}};
			struct addr v6 = {.family = 6, .bytes = {0x26, [15] = (uint8_t)last}};

			compare_addr(&policy, s, &v4);
			compare_addr(&policy, s, &v6);
		}
		snapshot_free(s);
		policy_free(&policy);
	}
}

static void
ranges_are_merged(void **state)
{
	static const struct {
		const char *words[4];
		const char *expected;
	} cases[] = {
	    {{"1.2.3.0/25:22", "1.2.3.128/25:22"}, "1.2.3.0-1.2.3.255 6 22-22"},
	    {{"1.2.3.0/24:22", "1.2.3.7:22"}, "1.2.3.0-1.2.3.255 6 22-22"},
	    {{"1.2.3.0/24:22", "1.2.3.0/24:23"}, "1.2.3.0-1.2.3.255 6 22-23"},
	    {{"1.2.3.0/24:20-30", "!1.2.3.0/24:25"}, "1.2.3.0-1.2.3.255 6 20-24; 1.2.3.0-1.2.3.255 6 26-30"},
	    {{"1.2.3.0/24:22", "!1.2.3.4"}, "1.2.3.0-1.2.3.3 6 22-22; 1.2.3.5-1.2.3.255 6 22-22"},
	    {{"1.2.3.0/24:22", "!1.2.3.0"}, "1.2.3.1-1.2.3.255 6 22-22"},
	    {{"1.2.3.0/24:22", "!1.2.3.255"}, "1.2.3.0-1.2.3.254 6 22-22"},
	    {{"1.2.3.0/24:22", "!1.2.0.0/16"}, ""},
	    {{"1.2.3.0/24:22", "!0.0.0.0/0"}, ""},
	    {{"1.2.3.0/24:22", "!::/0"}, "1.2.3.0-1.2.3.255 6 22-22"},
	    {{"1.2.3.0/24:5000/udp", "!1.2.3.0/24:5000"}, "1.2.3.0-1.2.3.255 17 5000-5000"},
	    {{"[2600::/32]:54-65535", "![2600::/33]"}, "2600:0:8000::-2600:0:ffff:ffff:ffff:ffff:ffff:ffff 6 54-65535"},
	    {{"!1.0.0.0/8"}, ""},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		size_t words = cases[i].words[1] == NULL ? 1 : 2, count, len = 0;
		struct snapshot *s = open_words(cases[i].words, words);
		const struct addr_range *ranges = snapshot_ranges(s, &count);
		char got[512] = "", first[ADDR_TEXT_MAX], last[ADDR_TEXT_MAX];

		for (size_t r = 0; r < count; r++)
			len += (size_t)snprintf(got + len, sizeof(got) - len, "%s%s-%s %u %u-%u", r == 0 ? "" : "; ",
			    addr_format(&ranges[r].first, first), addr_format(&ranges[r].last, last), ranges[r].proto,
			    ranges[r].port_first, ranges[r].port_last);
		assert_string_equal(got, cases[i].expected);
		snapshot_free(s);
	}
}

static void
udp_ports_are_listed(void **state)
{
	struct snapshot *s =
	    OPEN("a.example:5001,5000/udp", "1.2.3.4:5001,6000/udp", "b.example:7000", "!c.example:9/udp");
	const uint16_t *ports;
	size_t count;

	(void)state;
	ports = snapshot_udp_ports(s, &count);
	assert_int_equal(count, 3);
	assert_int_equal(ports[0], 5000);
	assert_int_equal(ports[1], 5001);
	assert_int_equal(ports[2], 6000);
	expect_reason(host(s, "a.example", IPPROTO_UDP, 5000), REASON_ALLOWED);
	expect_reason(host(s, "a.example", IPPROTO_TCP, 5000), REASON_NO_RULE);
	expect_reason(host(s, "b.example", IPPROTO_UDP, 7000), REASON_NO_RULE);
	expect_reason(host(s, "a.example", 132, 5000), REASON_NO_RULE);
	expect_reason(host(s, "a.example", 0, 0), REASON_NO_RULE);
	snapshot_free(s);
}

static void
expect_limit(struct policy *policy, const char *says)
{
	struct error err;

	assert_int_equal(snapshot_compile(policy, &err), -1);
	assert_int_equal(err.code, ERROR_LIMIT);
	if (strstr(err.text, says) == NULL)
		fail_msg("\"%s\" does not say \"%s\"", err.text, says);
	policy_free(policy);
}

static void
limits_are_errors(void **state)
{
	struct policy policy;
	struct rule rule;
	char word[64];

	(void)state;
	policy_init(&policy);
	add(&policy, RULE_ALLOW, "a.example:5000-5031/udp");
	add(&policy, RULE_ALLOW, "b.example:5032/udp");
	expect_limit(&policy, "more than 32 UDP ports");
	for (unsigned int i = 0; i < SNAPSHOT_RANGES_MAX + 1; i++) {
		snprintf(word, sizeof(word), "1.%u.%u.1:22", i / 256, i % 256);
		add(&policy, RULE_ALLOW, word);
	}
	expect_limit(&policy, "more than 4096");
	for (unsigned int i = 0; i < 257; i++)
		add(&policy, RULE_ALLOW, "a.example");
	expect_limit(&policy, "more than 256 rules for one target");
	assert_int_equal(rule_parse(RULE_ALLOW, "a.example", &rule, NULL), 0);
	policy.rules = &rule;
	policy.rule_count = POLICY_RULES_MAX;
	policy.rule_size = POLICY_RULES_MAX;
	assert_int_equal(policy_add(&policy, &rule, NULL), -1);
	policy_init(&policy);
}

static void
hash_is_the_policys_identity(void **state)
{
	struct snapshot *a = OPEN("a.example", "1.2.3.0/24:22", "!b.example"),
			*b = OPEN("a.example", "1.2.3.0/24:22", "!b.example"),
			*c = OPEN("a.example", "1.2.3.0/24:23", "!b.example");
	char hash_a[65], hash_b[65], hash_c[65];

	(void)state;
	snapshot_hash(a, hash_a);
	snapshot_hash(b, hash_b);
	snapshot_hash(c, hash_c);
	assert_int_equal(strlen(hash_a), 64);
	assert_int_equal(strspn(hash_a, "0123456789abcdef"), 64);
	assert_string_equal(hash_a, hash_b);
	assert_string_not_equal(hash_a, hash_c);
	assert_int_equal(snapshot_ech(a), POLICY_ECH_GREASE_OK);
	snapshot_free(a);
	snapshot_free(b);
	snapshot_free(c);
	snapshot_free(NULL);
}

/* ---- blocks that are not what they seem ---- */

static int
sealed_copy(const void *bytes, size_t len, int seals)
{
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, bytes, len), len);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static void
expect_corrupt(int fd)
{
	struct error err = {.code = ERROR_NONE};

	assert_null(snapshot_open(fd, &err));
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_true(err.text[0] != '\0');
}

static size_t
block_read(uint8_t *block, size_t size)
{
	static const char *const words[] = {"a.example", "*.a.example:22,443", "!b.a.example", "1.2.3.0/24:22",
	    "!1.2.3.4", "[2600::/32]:5000/udp", "c.example:5000-5001/udp", "a.example:22", "d.example", "!country:KP",
	    "!asn:64500:25"};
	struct policy policy = policy_of(words, sizeof(words) / sizeof(words[0]));
	ssize_t len;
	int fd;

	policy.rules[7].uses = 3;
	policy.rules[7].limits.of[LIMIT_UPLOAD] = (struct limit){1, 2};
	policy.rules[8].subdomains = true;
	policy.rules[8].expires_us = 1;
	policy.limits.of[LIMIT_CONNECTIONS] = (struct limit){1, 2};
	fd = snapshot_compile(&policy, NULL);

	assert_true(fd >= 0);
	len = pread(fd, block, size, 0);
	assert_true(len > 100 && (size_t)len < size);
	close(fd);
	policy_free(&policy);
	return (size_t)len;
}

static void
descriptors_must_be_sealed(void **state)
{
	static uint8_t block[8192];
	struct policy policy;
	struct snapshot *s;
	int fd, pipes[2];
	size_t len = block_read(block, sizeof(block));

	(void)state;
	policy_init(&policy);
	fd = snapshot_compile(&policy, NULL);
	assert_int_equal(fcntl(fd, F_GET_SEALS), SEALS);
	assert_int_equal(write(fd, "x", 1), -1);
	assert_int_equal(ftruncate(fd, 0), -1);
	assert_true(mmap(NULL, 1, PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED);
	assert_int_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	close(fd);
	fd = sealed_copy(block, len, SEALS);
	s = snapshot_open(fd, NULL);
	assert_non_null(s);
	snapshot_free(s);
	close(fd);
	for (int seal = 1; seal < 16; seal++) {
		fd = sealed_copy(block, len, seal);
		if ((seal & SEALS) != SEALS)
			expect_corrupt(fd);
		close(fd);
	}
	fd = sealed_copy(block, len, 0);
	expect_corrupt(fd);
	close(fd);
	assert_int_equal(pipe(pipes), 0);
	expect_corrupt(pipes[0]);
	close(pipes[0]);
	close(pipes[1]);
	expect_corrupt(-1);
	fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	expect_corrupt(fd);
	close(fd);
}

static void
every_question(const struct snapshot *s)
{
	static const char *const names[] = {"a.example", "b.a.example", "c.d.a.example", "c.example", "nothing.net"};
	static const char *const addrs[] = {"1.2.3.4", "1.2.3.5", "2600::1", "2601::1"};
	struct proto_port ports[64];
	char hash[65];
	size_t count;

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct name name = name_of(names[i]);
		struct decision decision = snapshot_decide_host(s, &name, IPPROTO_TCP, 443, 0);

		(void)strlen(snapshot_rule_text(s, decision.rule));
		(void)strlen(snapshot_rule_origin(s, decision.rule));
		(void)snapshot_ports_any(s, &name, 0);
		(void)snapshot_ports_list(s, &name, ports, 64, 0);
	}
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++)
		(void)at_addr(s, addrs[i], IPPROTO_UDP, 5000);
	(void)snapshot_decide_place(s, &(struct addr_place){"KP", 64500}, IPPROTO_TCP, 25, 0);
	for (uint32_t i = 0; i < snapshot_rule_count(s); i++)
		(void)limits_any(snapshot_rule_limits(s, i));
	(void)snapshot_next_expiry_us(s, 0);
	snapshot_hash(s, hash);
	(void)snapshot_ranges(s, &count);
	(void)snapshot_udp_ports(s, &count);
}

static void
damaged_blocks_are_refused_or_harmless(void **state)
{
	static uint8_t block[8192];
	size_t len = block_read(block, sizeof(block)), opened = 0;
	int longer;

	(void)state;
	for (size_t i = 0; i < len; i++) {
		static const uint8_t flips[] = {0x01, 0x80, 0xff};

		for (size_t f = 0; f < sizeof(flips); f++) {
			struct snapshot *s;
			int fd;

			block[i] ^= flips[f];
			fd = sealed_copy(block, len, SEALS);
			s = snapshot_open(fd, NULL);
			if (s != NULL)
				every_question(s);
			opened += s != NULL;
			snapshot_free(s);
			close(fd);
			block[i] ^= flips[f];
		}
	}
	/* Free text and unused pool bytes may change; the structure may not. */
	assert_true(opened < 3 * len / 2);
	for (size_t cut = 0; cut < len; cut++) {
		int fd = sealed_copy(block, cut, SEALS);

		expect_corrupt(fd);
		close(fd);
	}
	memset(block + len, 0, 8);
	longer = sealed_copy(block, len + 8, SEALS);
	expect_corrupt(longer);
	close(longer);
}

/* A block that states a deny rule and leaves it out of its table would be sound byte by byte. */
static void
rules_cannot_be_hidden(void **state)
{
	static uint8_t block[8192] __attribute__((aligned(8)));
	size_t len = block_read(block, sizeof(block)), hidden = 0, unchained = 0;
	const struct snap_header *header = (const struct snap_header *)(const void *)block;
	struct snap_rule *rules = (struct snap_rule *)(void *)(block + header->rules.offset);

	(void)state;
	for (size_t kind = 0; kind < SNAP_KIND_MAX; kind++) {
		struct snap_slot *slots = (struct snap_slot *)(void *)(block + header->tables[kind].offset);

		for (uint32_t i = 0; i < header->tables[kind].count; i++) {
			struct snap_slot slot = slots[i];
			int fd;

			if (slot.rule == 0)
				continue;
			slots[i] = (struct snap_slot){0, 0};
			fd = sealed_copy(block, len, SEALS);
			expect_corrupt(fd);
			close(fd);
			slots[i] = slot;
			hidden++;
		}
	}
	for (uint32_t i = 0; i < header->rules.count; i++) {
		uint32_t next = rules[i].next;

		for (uint32_t other = 0; other <= header->rules.count + 1; other++) {
			int fd;

			if (other == next)
				continue;
			rules[i].next = other;
			fd = sealed_copy(block, len, SEALS);
			expect_corrupt(fd);
			close(fd);
			unchained++;
		}
		rules[i].next = next;
	}
	assert_true(hidden >= 6 && unchained >= 60);
}

/* How long it takes is tests/bench/policy_bench.c's. */
static void
hundred_thousand_rules(void **state)
{
	struct policy policy;
	struct snapshot *s;
	char word[128];

	(void)state;
	policy_init(&policy);
	for (unsigned int i = 0; i < 100000; i++) {
		snprintf(
		    word, sizeof(word), "%shost%u.site%u.example:443,8000-8010", i % 3 == 0 ? "*." : "", i, i % 997);
		add(&policy, i % 10 == 0 ? RULE_DENY : RULE_ALLOW, word);
	}
	s = open_policy(&policy);
	expect_reason(host(s, "host7.site7.example", IPPROTO_TCP, 443), REASON_ALLOWED);
	expect_reason(host(s, "x.host9.site9.example", IPPROTO_TCP, 8010), REASON_ALLOWED);
	expect_reason(host(s, "x.host30.site30.example", IPPROTO_TCP, 443), REASON_RULE_DENY);
	expect_reason(host(s, "host9.site9.example", IPPROTO_TCP, 443), REASON_NO_RULE);
	snapshot_free(s);
	policy_free(&policy);
}

/* One mapping for all who open the same memfd, but what is used up is used up for one of them only. */
static void
one_memfd_is_mapped_once(void **state)
{
	struct policy policy = policy_of((const char *const[]){"one.example", "two.example"}, 2);
	struct name name = name_of("one.example");
	struct snapshot *a, *b, *other;
	struct error err;
	int fd, copy;

	(void)state;
	policy.rules[0].uses = 1;
	fd = snapshot_compile(&policy, &err);
	copy = snapshot_compile(&policy, &err);
	assert_true(fd >= 0 && copy >= 0);
	a = snapshot_open(fd, &err);
	b = snapshot_open(fd, &err);
	other = snapshot_open(copy, &err);
	assert_true(a != NULL && b != NULL && other != NULL);
	close(fd);
	close(copy);
	assert_ptr_equal(snapshot_rule_text(a, 0), snapshot_rule_text(b, 0));
	assert_ptr_not_equal(snapshot_rule_text(a, 0), snapshot_rule_text(other, 0));
	snapshot_rule_retire(a, 0);
	assert_int_equal(snapshot_decide_host(a, &name, IPPROTO_TCP, 443, 1).verdict, VERDICT_DENIED);
	assert_int_equal(snapshot_decide_host(b, &name, IPPROTO_TCP, 443, 1).verdict, VERDICT_ALLOWED);
	snapshot_free(a);
	assert_int_equal(snapshot_decide_host(b, &name, IPPROTO_TCP, 443, 1).verdict, VERDICT_ALLOWED);
	snapshot_free(b);
	snapshot_free(other);
	policy_free(&policy);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_B_06_wildcard_is_below_not_itself),
	    cmocka_unit_test(case_B_05_boundaries),
	    cmocka_unit_test(case_A_14_precedence_matrix),
	    cmocka_unit_test(case_A_15_compiler_checks_again),
	    cmocka_unit_test(names_may_be_resolved_when_a_port_is_open),
	    cmocka_unit_test(ports_of_a_name),
	    cmocka_unit_test(case_B_27_matcher_agrees_with_an_oracle),
	    cmocka_unit_test(ranges_are_merged),
	    cmocka_unit_test(udp_ports_are_listed),
	    cmocka_unit_test(limits_are_errors),
	    cmocka_unit_test(hash_is_the_policys_identity),
	    cmocka_unit_test(descriptors_must_be_sealed),
	    cmocka_unit_test(one_memfd_is_mapped_once),
	    cmocka_unit_test(damaged_blocks_are_refused_or_harmless),
	    cmocka_unit_test(rules_cannot_be_hidden),
	    cmocka_unit_test(hundred_thousand_rules),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
