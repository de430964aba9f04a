/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The one-word form of a rule: what is read, what is refused and with which words. */
#include "policy/text/rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

struct refusal {
	const char *word, *says; /* part of the message */
};

static void
expect_refused(enum rule_action action, const struct refusal *table, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		struct rule rule;
		struct error err;

		if (rule_parse(action, table[i].word, &rule, &err) == 0)
			fail_msg("'%s' was accepted", table[i].word);
		assert_int_equal(err.code, ERROR_POLICY);
		if (strstr(err.text, table[i].says) == NULL)
			fail_msg("'%s': \"%s\" does not say \"%s\"", table[i].word, err.text, table[i].says);
	}
}

/* Reads the word, prints it, and reads what was printed: printed must be as given, and both rules the same. */
static void
expect_printed(enum rule_action action, const char *word, const char *printed)
{
	char text[RULE_TEXT_MAX];
	struct rule rule, again;
	struct error err;

	if (rule_parse(action, word, &rule, &err) < 0)
		fail_msg("'%s': %s", word, err.text);
	assert_string_equal(rule_format(&rule, text), printed);
	if (rule_parse(action, text, &again, &err) < 0)
		fail_msg("'%s' from '%s': %s", text, word, err.text);
	assert_true(rule_equal(&rule, &again));
	assert_string_equal(rule_format(&again, text), printed);
}

static void
words_and_their_canonical_form(void **state)
{
	static const char *const allow[][2] = {
	    {"example.com", "example.com"},
	    {"EXAMPLE.com.", "example.com"},
	    {"example.com:443", "example.com:443"},
	    {"example.com:443/tcp", "example.com:443"},
	    {"*.github.com:22,443", "*.github.com:22,443"},
	    {"*.github.com:443,22", "*.github.com:22,443"},
	    {"a.example:22,22,22-22", "a.example:22"},
	    {"a.example:23,22", "a.example:22-23"},
	    {"a.example:8000-8010,8005-8020", "a.example:8000-8020"},
	    {"a.example:8000-8010,8012", "a.example:8000-8010,8012"},
	    {"dns.example:5000/udp", "dns.example:5000/udp"},
	    {"b\xc3\xbc"
	     "cher.example:443",
		"xn--bcher-kva.example:443"},
	    {"*.b\xc3\xbc"
	     "cher.example",
		"*.xn--bcher-kva.example"},
	    {"140.82.112.0/20:22", "140.82.112.0/20:22"},
	    {"1.2.3.4:22", "1.2.3.4:22"},
	    {"1.2.3.4/32:22", "1.2.3.4:22"},
	    {"1.0.0.0/8:54-65535", "1.0.0.0/8:54-65535"},
	    {"[2600::/32]:443", "[2600::/32]:443"},
	    {"[2600::1]:22", "[2600::1]:22"},
	    {"[2600:0::0:1/128]:22", "[2600::1]:22"},
	    {"[2600::1]:5000-5003/udp", "[2600::1]:5000-5003/udp"},
	};
	static const char *const deny[][2] = {
	    {"example.com", "example.com"},
	    {"*.com", "*.com"},
	    {"localhost", "localhost"},
	    {"metadata.google.internal", "metadata.google.internal"},
	    {"example.com:53", "example.com:53"},
	    {"example.com:1-65535/udp", "example.com:1-65535/udp"},
	    {"10.0.0.0/8", "10.0.0.0/8"},
	    {"0.0.0.0/0", "0.0.0.0/0"},
	    {"1.2.3.4", "1.2.3.4"},
	    {"2600::/32", "[2600::/32]"},
	    {"2600::1", "[2600::1]"},
	    {"[2600::1]", "[2600::1]"},
	    {"::/0", "[::/0]"},
	    {"country:kp", "country:KP"},
	    {"country:KP:22,443", "country:KP:22,443"},
	    {"asn:64500", "asn:64500"},
	    {"asn:64500:5000/udp", "asn:64500:5000/udp"},
	    {"asn.:1", "asn.:1"},
	    {"country", "country."},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(allow) / sizeof(allow[0]); i++)
		expect_printed(RULE_ALLOW, allow[i][0], allow[i][1]);
	for (size_t i = 0; i < sizeof(deny) / sizeof(deny[0]); i++)
		expect_printed(RULE_DENY, deny[i][0], deny[i][1]);
}

static void
protocol_and_defaults(void **state)
{
	struct rule rule;

	(void)state;
	assert_int_equal(rule_parse(RULE_ALLOW, "example.com", &rule, NULL), 0);
	assert_int_equal(rule.proto, IPPROTO_TCP);
	assert_int_equal(rule.range_count, 0);
	assert_int_equal(rule_parse(RULE_DENY, "example.com", &rule, NULL), 0);
	assert_int_equal(rule.proto, 0);
	assert_int_equal(rule_parse(RULE_DENY, "example.com:22", &rule, NULL), 0);
	assert_int_equal(rule.proto, IPPROTO_TCP);
	assert_int_equal(rule_parse(RULE_DENY, "1.2.3.0/24:22/udp", &rule, NULL), 0);
	assert_int_equal(rule.proto, IPPROTO_UDP);
	assert_int_equal(rule.kind, RULE_CIDR);
}

static void
case_B_08_wildcards_in_odd_places(void **state)
{
	static const struct refusal table[] = {
	    {"*", "'*'"},
	    {"*.", "*.example.com"},
	    {"**", "'*'"},
	    {"*.*", "'*'"},
	    {"*.*.com", "'*'"},
	    {"**.example.com", "'*'"},
	    {"a*.example.com", "'*'"},
	    {"*a.example.com", "'*'"},
	    {"*example.com", "'*'"},
	    {"a.*.example.com", "'*'"},
	    {"a.*", "'*'"},
	    {"example.*", "'*'"},
	    {"example.com*", "'*'"},
	    {"*.example.*", "'*'"},
	    {".*.example.com", "'*'"},
	    {"*..example.com", "empty label"},
	    {"*.example..com", "empty label"},
	    {".example.com", "empty label"},
	    {"*.com", "top-level"},
	    {"*.com.", "top-level"},
	    {"*.org:443", "top-level"},
	    {"*.1.2.3.4", "address"},
	    {"*.2.3.4", "number"},
	    {"*.0x7f.1", "number"},
	    {"*.localhost", "top-level"},
	    {"*.google.internal", "never be allowed"},
	    {"?.example.com", "character"},
	    {"[a-z].example.com", "bracket"},
	    {"a+.example.com", "character"},
	    {"(a|b).example.com", "character"},
	    {"^example.com$", "character"},
	    {"a.example.com|b.example.com", "character"},
	    {"*:443", "'*'"},
	    {"*.:443", "*.example.com"},
	    {"\xef\xbc\x8a.example.com", "character"},
	    {"*\xe3\x80\x82"
	     "example.com",
		"'*'"},
	};

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
}

static void
case_B_15_address_literals(void **state)
{
	static const struct refusal table[] = {
	    {"1.2.3.4", "ports"},
	    {"[2600::1]", "ports"},
	    {"2600::1", "ports"},
	    {"2600::/32", "ports"},
	    {"127.0.0.1:80", "loopback"},
	    {"[::1]:80", "loopback"},
	    {"[::ffff:127.0.0.1]:80", "loopback"},
	    {"10.0.0.0/8:80", "10.0.0.0/8 is private use and can never be allowed"},
	    {"10.1.0.0/16:80", "lies in 10.0.0.0/8 (private use)"},
	    {"0.0.0.0/0:80", "name the public ranges"},
	    {"[::/0]:80", "name the public ranges"},
	    {"168.63.129.16:80", "Azure"},
	    {"140.82.112.1/20:22", "write 140.82.112.0/20"},
	    {"140.82.112.0/33:22", "no address range"},
	    {"140.82.112.0/:22", "no address range"},
	    {"140.82.112/20:22", "no address range"},
	    {"1.2.3.4.5:22", "number"},
	    {"127.1:22", "number"},
	    {"2130706433:22", "number"},
	    {"0177.0.0.1:22", "number"},
	};

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
}

static void
case_B_16_brackets(void **state)
{
	static const struct refusal table[] = {
	    {"[evil.com]", "bracket"},
	    {"[evil.com]:443", "bracket"},
	    {"[1.2.3.4]:443", "bracket"},
	    {"[[::1]]", "bracket"},
	    {"[[2600::1]]:22", "bracket"},
	    {"[::1", "bracket"},
	    {"[2600::1:22", "bracket"},
	    {"::1]", "bracket"},
	    {"2600::1]:22", "bracket"},
	    {"a[b].com", "bracket"},
	    {"[]", "bracket"},
	    {"[]:22", "bracket"},
	    {"[", "bracket"},
	    {"]", "bracket"},
	    {"[2600::1]22", "bracket"},
	    {"[2600::1]/32:22", "bracket"},
	    {"[2600::1]:", "port"},
	    {"[2600::1]::22", "port"},
	    {"[2600::1%eth0]:22", "bracket"},
	    {"[2600::1]:22]", "port"},
	};

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
}

static void
case_B_17_userinfo_and_ports(void **state)
{
	static const struct refusal table[] = {
	    {"allowed.com@evil.com", "'@'"},
	    {"allowed.com:80@evil.com", "'@'"},
	    {"user:pass@evil.com:443", "'@'"},
	    {"@evil.com", "'@'"},
	    {"evil.com@", "'@'"},
	    {"1.2.3.4@evil.com:80", "'@'"},
	    {"allowed.com:80:81", "more than one ':'"},
	    {"allowed.com::80", "more than one ':'"},
	    {"allowed.com:", "port"},
	    {":80", "host is empty"},
	    {":", "host is empty"},
	    {"", "empty"},
	    {"a.com:0", "1 to 65535"},
	    {"a.com:65536", "1 to 65535"},
	    {"a.com:65537", "1 to 65535"},
	    {"a.com:4294967376", "1 to 65535"},
	    {"a.com:080", "1 to 65535"},
	    {"a.com:+80", "1 to 65535"},
	    {"a.com:-80", "1 to 65535"},
	    {"a.com: 80", "1 to 65535"},
	    {"a.com:80 ", "1 to 65535"},
	    {"a.com:0x50", "1 to 65535"},
	    {"a.com:8e1", "1 to 65535"},
	    {"a.com:http", "1 to 65535"},
	    {"a.com:80,", "last ','"},
	    {"a.com:,80", "1 to 65535"},
	    {"a.com:80,,443", "1 to 65535"},
	    {"a.com:80-", "1 to 65535"},
	    {"a.com:-", "1 to 65535"},
	    {"a.com:80-90-100", "1 to 65535"},
	    {"a.com:90-80", "write 80-90"},
	    {"a.com:80/", "1 to 65535"},
	    {"a.com:80/sctp", "1 to 65535"},
	    {"a.com:80/UDP", "1 to 65535"},
	    {"a.com:/udp", "port"},
	    {"a.com:80/udp/udp", "1 to 65535"},
	    {"a.com:\xef\xbc\x98\xef\xbc\x90", "1 to 65535"},
	    {"https://a.com", "URL"},
	    {"https://a.com/x?y", "URL"},
	    {"http://a.com:80", "URL"},
	    {"a.com/path", "path"},
	    {"a.com/path:80", "path"},
	    {" a.com", "character"},
	    {"a.com ", "character"},
	    {"a.com\n", "character"},
	    {"a com", "character"},
	    {"a%2ecom", "character"},
	    {"a\\.com", "character"},
	};

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
}

static void
ports_that_never_leave(void **state)
{
	static const struct refusal table[] = {
	    {"dns.example:53", "port 53"},
	    {"dns.example:53/udp", "port 53"},
	    {"dns.example:50-60", "port 53"},
	    {"8.8.8.0/24:53", "port 53"},
	    {"8.8.8.0/24:1-65535", "port 53"},
	    {"web.example:443/udp", "QUIC"},
	    {"web.example:440-450/udp", "QUIC"},
	    {"1.1.1.0/24:443/udp", "QUIC"},
	    {"web.example:8000-8064", "65 ports for one host; at most 64"},
	    {"web.example:5000-5032/udp", "33 UDP ports in one rule; at most 32"},
	    {"a.example:1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31,33", "more than 16 port ranges"},
	};
	struct rule rule;

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
	assert_int_equal(rule_parse(RULE_ALLOW, "web.example:8000-8063", &rule, NULL), 0);
	assert_int_equal(rule_parse(RULE_ALLOW, "web.example:5000-5031/udp", &rule, NULL), 0);
	assert_int_equal(rule_parse(RULE_ALLOW, "1.0.0.0/8:54-65535", &rule, NULL), 0);
	assert_int_equal(
	    rule_parse(RULE_ALLOW, "a.example:1,3,5,7,9,11,13,15,17,19,21,23,25,27,29,31", &rule, NULL), 0);
}

static void
hosts_that_are_never_allowed(void **state)
{
	static const struct refusal table[] = {
	    {"metadata.google.internal", "GCP metadata"},
	    {"localhost", "can never be allowed"},
	    {"db", "without a dot"},
	    {"wpad.example.com", "proxy autodiscovery"},
	    {"printer.local", "mDNS"},
	    {"use-application-dns.net", "canary"},
	};

	(void)state;
	expect_refused(RULE_ALLOW, table, sizeof(table) / sizeof(table[0]));
}

/* Rules that no parser made: the check must not take them on trust. */
static void
check_refuses_malformed_rules(void **state)
{
	struct rule good, rule;

	(void)state;
	assert_int_equal(rule_parse(RULE_ALLOW, "a.example:22,443", &good, NULL), 0);
	rule = good;
	rule.proto = 0;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.proto = 132;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.ranges[0].first = 0;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.ranges[0] = rule.ranges[1];
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.ranges[1].last = 440;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.range_count = RULE_RANGES_MAX + 1;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule = good;
	rule.action = RULE_DENY;
	rule.range_count = 0;
	assert_int_equal(rule_check(&rule, NULL), -1);
	rule.proto = 0;
	assert_int_equal(rule_check(&rule, NULL), 0);
}

static void
longest_rule_fits_its_text(void **state)
{
	char word[RULE_TEXT_MAX] = "*.", text[RULE_TEXT_MAX];
	size_t len = 2;
	struct rule rule;
	struct error err;

	(void)state;
	for (size_t i = 0; i < 253; i++)
		word[len++] = (i + 1) % 64 == 0 ? '.' : 'a';
	word[len++] = ':';
	for (unsigned int i = 0; i < RULE_RANGES_MAX; i++)
		len += (size_t)snprintf(
		    word + len, sizeof(word) - len, "%s%u-%u", i == 0 ? "" : ",", 10000 + 10 * i, 10001 + 10 * i);
	snprintf(word + len, sizeof(word) - len, "/udp");
	if (rule_parse(RULE_ALLOW, word, &rule, &err) < 0)
		fail_msg("%s", err.text);
	assert_string_equal(rule_format(&rule, text), word);
	/* "allow " and all of it */
	assert_true(strlen(text) + 6 < RULE_TEXT_MAX);
}

static void
words_without_end_are_refused(void **state)
{
	static char word[1 << 16];
	struct rule rule;
	struct error err;

	(void)state;
	memset(word, 'a', sizeof(word) - 1);
	assert_int_equal(rule_parse(RULE_ALLOW, word, &rule, &err), -1);
	memset(word, '[', sizeof(word) - 1);
	assert_int_equal(rule_parse(RULE_ALLOW, word, &rule, &err), -1);
	/* Hostile bytes are escaped in what a terminal will show. */
	assert_int_equal(rule_parse(RULE_ALLOW, "\x1b[31m.com", &rule, &err), -1);
	assert_null(strchr(err.text, '\x1b'));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(words_and_their_canonical_form),
	    cmocka_unit_test(protocol_and_defaults),
	    cmocka_unit_test(case_B_08_wildcards_in_odd_places),
	    cmocka_unit_test(case_B_15_address_literals),
	    cmocka_unit_test(case_B_16_brackets),
	    cmocka_unit_test(case_B_17_userinfo_and_ports),
	    cmocka_unit_test(ports_that_never_leave),
	    cmocka_unit_test(hosts_that_are_never_allowed),
	    cmocka_unit_test(check_refuses_malformed_rules),
	    cmocka_unit_test(longest_rule_fits_its_text),
	    cmocka_unit_test(words_without_end_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
