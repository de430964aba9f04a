/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The policy's YAML: what is refused, where the complaint points, and that printing and reading agree. */
#include "policy/snapshot.h"

#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "version: 1\n"

static void
expect_bad(const char *text, size_t len, const char *says)
{
	struct policy policy = {.rule_count = 12345};
	struct error err = {.code = ERROR_NONE};

	if (policy_parse(text, len, "p.yaml", &policy, &err) == 0)
		fail_msg("accepted:\n%s", text);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_int_equal(policy.rule_count, 12345);
	if (strstr(err.text, says) == NULL)
		fail_msg("\n%s\n\"%s\" does not say \"%s\"", text, err.text, says);
}

static struct policy
expect_good(const char *text)
{
	struct policy policy;
	struct error err;

	if (policy_parse(text, strlen(text), "p.yaml", &policy, &err) < 0)
		fail_msg("\n%s\n%s", text, err.text);
	return policy;
}

static struct snapshot *
compiled(const struct policy *policy)
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

static enum reason
ask(const struct snapshot *snapshot, const char *host, uint16_t port)
{
	struct name name;

	assert_int_equal(name_canonical(host, strlen(host), &name), NAME_OK);
	return snapshot_decide_host(snapshot, &name, IPPROTO_TCP, port, 0).reason;
}

static void
case_A_15_rules_that_can_never_apply(void **state)
{
	static const char *const bad[][2] = {
	    {HEAD "allow:\n  - host: metadata.google.internal\n", "p.yaml:3:11: host name 'metadata.google.internal'"},
	    {HEAD "allow:\n  - host: localhost\n", "p.yaml:3:11:"},
	    {HEAD "allow:\n  - host: db\n", "without a dot"},
	    {HEAD "allow:\n  - host: printer.local\n", "mDNS"},
	    {HEAD "allow:\n  - host: \"*.internal\"\n", "top-level"},
	    {HEAD "allow:\n  - host: \"*.google.internal\"\n", "can never be allowed"},
	    {HEAD "allow:\n  - host: wpad.example.com\n", "proxy autodiscovery"},
	    {HEAD "allow:\n  - host: \"*.wpad.example.com\"\n", "proxy autodiscovery"},
	    {HEAD "allow:\n  - host: use-application-dns.net\n", "canary"},
	    {HEAD "allow:\n  - host: x.onion\n", "RFC7686"},
	    {HEAD "allow:\n  - host: 1.0.0.10.in-addr.arpa\n", "can never be allowed"},
	    {HEAD "allow:\n  - cidr: 10.0.0.0/8\n    ports: [80]\n",
		"p.yaml:3:11: 10.0.0.0/8 is private use and can never be allowed"},
	    {HEAD "allow:\n  - cidr: 10.2.3.4\n    ports: [80]\n", "10.2.3.4/32 lies in 10.0.0.0/8 (private use)"},
	    {HEAD "allow:\n  - cidr: 169.254.169.254/32\n    ports: [80]\n", "IMDS"},
	    {HEAD "allow:\n  - cidr: 169.254.0.0/16\n    ports: [80]\n", "link local"},
	    {HEAD "allow:\n  - cidr: 127.0.0.1\n    ports: [80]\n", "loopback"},
	    {HEAD "allow:\n  - cidr: 0.0.0.0/0\n    ports: [80]\n", "name the public ranges"},
	    {HEAD "allow:\n  - cidr: 168.63.129.16\n    ports: [80]\n", "Azure"},
	    {HEAD "allow:\n  - cidr: 168.0.0.0/8\n    ports: [80]\n", "168.63.129.16/32"},
	    {HEAD "allow:\n  - cidr: 100.64.0.0/10\n    ports: [80]\n", "CGNAT"},
	    {HEAD "allow:\n  - cidr: 192.168.1.0/24\n    ports: [80]\n", "private use"},
	    {HEAD "allow:\n  - cidr: 172.20.0.1\n    ports: [443]\n", "private use"},
	    {HEAD "allow:\n  - cidr: 224.0.0.251\n    ports: [5353]\n    udp: true\n", "multicast"},
	    {HEAD "allow:\n  - cidr: 198.51.100.0/24\n    ports: [80]\n", "TEST-NET-2"},
	    {HEAD "allow:\n  - cidr: ::1\n    ports: [80]\n", "loopback"},
	    {HEAD "allow:\n  - cidr: ::/0\n    ports: [80]\n", "name the public ranges"},
	    {HEAD "allow:\n  - cidr: fd00:ec2::254\n    ports: [80]\n", "AWS"},
	    {HEAD "allow:\n  - cidr: fe80::/10\n    ports: [80]\n", "link local"},
	    {HEAD "allow:\n  - cidr: 2002::/16\n    ports: [80]\n", "6to4"},
	    {HEAD "allow:\n  - cidr: 64:ff9b::a9fe:a9fe\n    ports: [80]\n", "169.254.169.254"},
	    {HEAD "allow:\n  - cidr: \"::ffff:169.254.169.254\"\n    ports: [80]\n", "IMDS"},
	    {HEAD "allow:\n  - cidr: 1.1.1.1\n", "must name its ports"},
	    {HEAD "allow:\n  - cidr: 1.1.1.1\n    ports: [53]\n", "port 53"},
	    {HEAD "allow:\n  - host: dns.example\n    ports: [53]\n    udp: true\n", "port 53"},
	    {HEAD "allow:\n  - host: web.example\n    ports: [443]\n    udp: true\n", "QUIC"},
	    {HEAD "allow:\n  - host: web.example\n    udp: true\n", "must name its ports"},
	    {HEAD "allow:\n  - host: web.example\n    ports: [\"1000-2000\"]\n", "at most 64"},
	    {HEAD "allow:\n  - host: 1.2.3.4\n", "write it as a cidr"},
	    {HEAD "allow:\n  - host: 2600::1\n", "write it as a cidr"},
	    {HEAD "allow:\n  - host: \"127.1\"\n", "number"},
	    {HEAD "allow:\n  - host: 2130706433\n", "number"},
	    {HEAD "allow:\n  - host: \"*.com\"\n", "top-level"},
	    {HEAD "allow:\n  - cidr: 140.82.112.1/20\n    ports: [22]\n", "write 140.82.112.0/20"},
	    {HEAD "allow:\n  - cidr: 140.82.112.0/20\n    ports: []\n", "list of ports is empty"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

/* What is looser in YAML than in a rule book. */
static void
text_that_is_refused(void **state)
{
	static const char *const bad[][2] = {
	    {"", "p.yaml:1:1: version: 1 is required"},
	    {"\n\n", "version: 1 is required"},
	    {"# nothing\n", "version: 1 is required"},
	    {"{}", "p.yaml:1:1: version: 1 is required"},
	    {"allow: []\n", "p.yaml:1:1: version: 1 is required"},
	    {"null\n", "version: 1 is required"},
	    {"[]", "a policy begins with"},
	    {"- version: 1\n", "a policy begins with"},
	    {"version\n", "a policy begins with"},
	    {"version: 2\n", "p.yaml:1:10: version '2' is not supported"},
	    {"version: \"1\"\n", "is not supported"},
	    {"version: 1.0\n", "is not supported"},
	    {"version: 01\n", "is not supported"},
	    {"version: 0x1\n", "is not supported"},
	    {"version: [1]\n", "p.yaml:1:10: a single value belongs here; write 1"},
	    {"version:\n", "a value is missing"},
	    {HEAD "version: 1\n", "p.yaml:2:1: 'version' stands twice, first in line 1"},
	    {HEAD "allow: []\nallow: []\n", "p.yaml:3:1: 'allow' stands twice, first in line 2"},
	    {HEAD "\"allow\": []\nallow: []\n", "stands twice"},
	    {HEAD "alow: []\n", "p.yaml:2:1: unknown key 'alow'; known here: version, name, allow, deny, ech"},
	    {HEAD "Allow: []\n", "unknown key"},
	    {HEAD "<<: {}\n", "unknown key '<<'"},
	    {HEAD "? [a]\n: b\n", "a key is a single word"},
	    {HEAD "? {a: b}\n: [c, {d: e}]\n", "a key is a single word"},
	    {HEAD "include: [preset:x]\n", "'include' is not supported by this version"},
	    {HEAD "limits: {upload: 1}\n", "'limits' is not supported"},
	    {HEAD "mode: audit\n", "'mode' is not supported"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2h\n", "p.yaml:4:5: 'expires' is not supported"},
	    {HEAD "allow:\n  - host: a.example\n    uses: 2\n", "'uses' is not supported"},
	    {HEAD "allow:\n  - host: a.example\n    subdomains: true\n", "'subdomains' is not supported"},
	    {HEAD "allow:\n  - host: a.example\n    shared: true\n", "'shared' is not supported"},
	    {HEAD "allow:\n", "p.yaml:2:7: 'allow' has no value; write 'allow: []'"},
	    {HEAD "allow: null\n", "p.yaml:2:8: 'allow' has no value"},
	    {HEAD "allow: ~\n", "'allow' has no value"},
	    {HEAD "deny: NULL\n", "'deny' has no value; write 'deny: []'"},
	    {HEAD "allow: \"\"\n", "'allow' is a list"},
	    {HEAD "allow: a.example\n", "'allow' is a list"},
	    {HEAD "allow: {host: a.example}\n", "'allow' is a list"},
	    {HEAD "allow:\n  host: a.example\n", "'allow' is a list"},
	    {HEAD "allow: all\n", "'allow' is a list"},
	    {HEAD "allow: [null]\n", "an entry is"},
	    {HEAD "allow:\n  -\n", "an entry is"},
	    {HEAD "allow: [[]]\n", "an entry is"},
	    {HEAD "allow: [{}]\n", "p.yaml:2:9: the entry names neither 'host' nor 'cidr'"},
	    {HEAD "allow:\n  - a.example\n",
		"p.yaml:3:5: an entry is 'host: NAME' or 'cidr: RANGE'; write '- host: \"a.example\"'"},
	    {HEAD "allow:\n  - ports: [22]\n", "neither 'host' nor 'cidr'"},
	    {HEAD "allow:\n  - host: a.example\n    cidr: 1.1.1.1\n", "p.yaml:4:11: an entry has either"},
	    {HEAD "allow:\n  - host: a.example\n    host: b.example\n", "'host' stands twice, first in line 3"},
	    {HEAD "allow:\n  - host:\n", "a value is missing"},
	    {HEAD "allow:\n  - host: \"\"\n", "a value is missing"},
	    {HEAD "allow:\n  - host: null\n", "a value is missing"},
	    {HEAD "allow:\n  - host: [a.example]\n",
		"p.yaml:3:11: a single value belongs here; write a host name, as in example.com"},
	    {HEAD "allow:\n  - host: a.example:443\n", "ports are named apart"},
	    {HEAD "allow:\n  - host: https://a.example\n", "p.yaml:3:11: 'https://a.example' is a URL"},
	    {HEAD "allow:\n  - host: a.example/x\n", "without a path"},
	    {HEAD "allow:\n  - host: me@a.example\n", "without a user"},
	    {HEAD "allow:\n  - host: a.example\n    port: 22\n",
		"unknown key 'port'; known here: host, cidr, ports, udp"},
	    {HEAD "allow:\n  - host: a.example\n    ports:\n", "a value is missing"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [22, null]\n", "a value is missing"},
	    {HEAD "allow:\n  - host: a.example\n    ports: {from: 22}\n", "belongs here"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [[22]]\n", "belongs here"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [22:22]\n", "'22:22' is no port"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 022\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 0x16\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 2_2\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 22.0\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [0]\n", "p.yaml:4:13: '0' is no port"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [22, 65536]\n", "p.yaml:4:17: '65536' is no port"},
	    {HEAD "allow:\n  - host: a.example\n    ports: \"22,23\"\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: [90-80]\n", "write 80-90"},
	    {HEAD "allow:\n  - host: a.example\n    ports: all\n", "1 to 65535"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 5000\n    udp: yes\n",
		"'yes' is neither true nor false; write true"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 5000\n    udp: True\n", "write true"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 5000\n    udp: \"true\"\n", "write true"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 5000\n    udp: 1\n", "write true"},
	    {HEAD "allow:\n  - host: a.example\n    ports: 5000\n    udp: on\n", "write true"},
	    {HEAD "ech: yes\n", "neither grease-ok nor deny"},
	    {HEAD "ech:\n", "a value is missing"},
	    {HEAD "name: \"\"\n", "a value is missing"},
	    {HEAD "name: a b\n", "is not 1 to 63"},
	    {HEAD "name: ../x\n", "is not 1 to 63"},
	    {HEAD "name: [x]\n", "belongs here"},
	    {HEAD "name: aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\n", "is not 1 to 63"},
	    {HEAD "allow: &a []\n", "p.yaml:2:8: anchors are not accepted"},
	    {HEAD "allow:\n  - host: &h a.example\n", "p.yaml:3:11: anchors"},
	    {HEAD "allow:\n  - &e\n    host: a.example\n", "anchors"},
	    {HEAD "deny: &a []\nallow: *a\n", "p.yaml:3:8: aliases"},
	    {HEAD "allow:\n  - host: *name\n", "p.yaml:3:11: aliases"},
	    {HEAD "allow:\n  - *name\n", "aliases"},
	    {HEAD "*name : x\n", "aliases"},
	    {HEAD "allow: !!seq []\n", "p.yaml:2:8: tags are not accepted"},
	    {HEAD "allow:\n  - host: !!str a.example\n", "tags"},
	    {HEAD "allow:\n  - host: !x a.example\n", "tags"},
	    {HEAD "allow:\n  - !!map\n    host: a.example\n", "tags"},
	    {HEAD "allow:\n  - host: *.example.com\n", "p.yaml:3:11: a value that begins with '*' must be quoted"},
	    {HEAD "allow:\n\t- host: a.example\n",
		"p.yaml:3:1: found character that cannot start any token; indent with spaces"},
	    {HEAD "---\nversion: 1\n", "p.yaml:2:1: a second document"},
	    {"version: 1\n...\nversion: 1\n", "p.yaml:3:1:"},
	    {"%YAML 1.1\n---\nversion: 1\n", "directives"},
	    {"%TAG ! tag:x,2000:\n---\nversion: 1\n", "directives"},
	    {HEAD "allow: [\n", "p.yaml:3:1:"},
	    {HEAD "allow: ]\n", "p.yaml:2:8:"},
	    {HEAD "allow: \"\n", "p.yaml:"},
	    {HEAD " allow: []\n", "p.yaml:2:"},
	    {HEAD "allow: [{host: a.example, host: b.example}]\n", "stands twice"},
	    {"{\"version\": 1, \"allow\": [], \"allow\": []}", "p.yaml:1:29: 'allow' stands twice"},
	    {HEAD "allow: [[[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]]]\n", "nested too deeply"},
	    {"\xff\xfe" HEAD, "p.yaml:1:1: byte 0xff is not valid UTF-8"},
	    {HEAD "# \xc3\xa4\xc3", "p.yaml:2:4: byte 0xc3"},
	    {HEAD "# \xed\xa0\x80\n", "not valid UTF-8"},
	    {HEAD "# \xc0\xae\n", "not valid UTF-8"},
	    {HEAD "# \xf5\x80\x80\x80\n", "not valid UTF-8"},
	    {HEAD "name: \"\x1b[31m\"\n", "p.yaml:"},
	    {HEAD "allow:\n  - host: \"\\0a.example\"\n", "character"},
	    {HEAD "allow:\n  - host: \"a.example\\0.evil.example\"\n", "\\x00.evil.example' holds a character"},
	    {HEAD "allow:\n  - host: |\n      a.example\n", "character"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i][0], strlen(bad[i][0]), bad[i][1]);
}

static void
case_B_11_nul_in_a_policy(void **state)
{
	static const char text[] = HEAD "allow:\n  - host: \"a.example\"\n    ports: [443]\n# end\n";

	(void)state;
	for (size_t i = 0; i < sizeof(text) - 1; i++) {
		char copy[sizeof(text)];

		memcpy(copy, text, sizeof(text));
		copy[i] = '\0';
		expect_bad(copy, sizeof(text) - 1, "NUL byte");
	}
	expect_bad(text, sizeof(text), "p.yaml:6:1: a NUL byte");
}

static void
case_B_01_empty_means_nothing(void **state)
{
	static const char *const texts[] = {HEAD, "version: 1", HEAD "allow: []\n", HEAD "allow: []\ndeny: []\n",
	    HEAD "# only comments\n# allow everything\n", "   \n\n" HEAD "   \n", HEAD "deny:\n  - host: a.example\n",
	    HEAD "deny:\n  - cidr: 0.0.0.0/0\n", "{\"version\": 1}", "{\"version\": 1, \"allow\": []}",
	    "---\nversion: 1\n...\n"};
	static const char *const hosts[] = {"a.example", "github.com", "example.com", "b.a.example"};
	struct proto_port ports[RULE_HOST_PORTS_MAX];
	struct addr addr;

	(void)state;
	assert_true(addr_parse("1.1.1.1", 7, &addr));
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct policy policy = expect_good(texts[i]);
		struct snapshot *snapshot = compiled(&policy);
		size_t count = 1;

		snapshot_ranges(snapshot, &count);
		assert_int_equal(count, 0);
		snapshot_udp_ports(snapshot, &count);
		assert_int_equal(count, 0);
		for (size_t h = 0; h < sizeof(hosts) / sizeof(hosts[0]); h++) {
			struct name name;

			assert_int_equal(name_canonical(hosts[h], strlen(hosts[h]), &name), NAME_OK);
			assert_int_equal(
			    snapshot_decide_host(snapshot, &name, IPPROTO_TCP, 443, 0).verdict, VERDICT_DENIED);
			assert_int_equal(snapshot_decide_dns(snapshot, &name, 0).verdict, VERDICT_DENIED);
			assert_int_equal(snapshot_host_ports(snapshot, &name, ports, RULE_HOST_PORTS_MAX, 0), 0);
		}
		assert_int_equal(snapshot_decide_addr(snapshot, &addr, IPPROTO_TCP, 443, 0).verdict, VERDICT_DENIED);
		snapshot_free(snapshot);
		policy_free(&policy);
	}
}

static void
case_B_03_B_04_spellings_in_a_policy(void **state)
{
	static const char *const locales[] = {"tr_TR.UTF-8", "tr_TR", "C"};

	(void)state;
	for (size_t i = 0; i < sizeof(locales) / sizeof(locales[0]); i++) {
		struct policy policy;
		struct snapshot *snapshot;

		setlocale(LC_ALL, locales[i]);
		policy = expect_good(HEAD "allow:\n  - host: WIKIPEDIA.ORG.\n  - host: '*.GitHub.COM.'\n"
					  "deny:\n  - host: eVIl.github.com.\n");
		snapshot = compiled(&policy);
		assert_int_equal(ask(snapshot, "wikipedia.org", 443), REASON_ALLOWED);
		assert_int_equal(ask(snapshot, "WIKIPEDIA.org.", 443), REASON_ALLOWED);
		assert_int_equal(ask(snapshot, "A.github.COM", 443), REASON_ALLOWED);
		assert_int_equal(ask(snapshot, "EVIL.GITHUB.COM.", 443), REASON_RULE_DENY);
		snapshot_free(snapshot);
		policy_free(&policy);
	}
	setlocale(LC_ALL, "C");
	expect_bad(HEAD "allow:\n  - host: ok.com..\n", 36, "empty label");
	expect_bad(HEAD "allow:\n  - host: .ok.com\n", 35, "empty label");
	expect_bad(HEAD "allow:\n  - host: \".\"\n", 32, "is empty");
}

static void
all_mistakes_are_shown(void **state)
{
	static const char text[] = "version: 3\n"
				   "foo: 1\n"
				   "allow:\n"
				   "  - host: 10.0.0.1\n"
				   "  - cidr: 10.0.0.0/8\n"
				   "    ports: [22, 0]\n"
				   "  - host: good.example\n"
				   "deny: 5\n";
	char many[8192] = HEAD "allow:\n";
	struct policy policy;
	struct error err;
	size_t lines = 1;

	(void)state;
	assert_int_equal(policy_parse(text, strlen(text), "p.yaml", &policy, &err), -1);
	for (const char *p = err.text; *p != '\0'; p++)
		lines += *p == '\n';
	assert_int_equal(lines, 5);
	assert_non_null(strstr(err.text, "p.yaml:1:10: "));
	assert_non_null(strstr(err.text, "\np.yaml:2:1: "));
	assert_non_null(strstr(err.text, "\np.yaml:4:11: "));
	assert_non_null(strstr(err.text, "\np.yaml:6:17: "));
	assert_non_null(strstr(err.text, "\np.yaml:8:7: "));
	for (size_t i = 0; i < 200; i++)
		strcat(many, "  - host: a..example\n");
	expect_bad(many, strlen(many), " more errors)");
	assert_int_equal(policy_parse(many, strlen(many), "p.yaml", &policy, &err), -1);
	assert_true(strlen(err.text) < ERROR_TEXT_MAX - 1);
}

static void
everything_that_a_policy_says(void **state)
{
	struct policy policy = expect_good("version: 1\nname: read-the-news\nech: deny\n"
					   "allow:\n"
					   "  - host: news.ycombinator.com\n"
					   "  - {host: '*.github.com', ports: [22, \"8000-8010\", 443]}\n"
					   "  - cidr: 140.82.112.0/20\n"
					   "    ports: 22\n"
					   "  - host: voice.example\n"
					   "    ports: 5000-5003\n"
					   "    udp: true\n"
					   "  - host: plain.example\n"
					   "    udp: false\n"
					   "deny:\n"
					   "  - host: gist.github.com\n"
					   "  - cidr: 2600:1::/32\n"
					   "  - host: quiet.example\n"
					   "    udp: true\n");
	char text[RULE_TEXT_MAX];
	static const char *const words[] = {"news.ycombinator.com", "*.github.com:22,443,8000-8010",
	    "140.82.112.0/20:22", "voice.example:5000-5003/udp", "plain.example", "gist.github.com", "[2600:1::/32]",
	    "quiet.example:1-65535/udp"};

	(void)state;
	assert_string_equal(policy.name, "read-the-news");
	assert_int_equal(policy.ech, POLICY_ECH_DENY);
	assert_true(policy.ech_set);
	assert_int_equal(policy.rule_count, sizeof(words) / sizeof(words[0]));
	for (size_t i = 0; i < policy.rule_count; i++)
		assert_string_equal(rule_format(&policy.rules[i], text), words[i]);
	assert_string_equal(policy.rules[0].origin, "p.yaml:5");
	assert_string_equal(policy.rules[2].origin, "p.yaml:7");
	assert_int_equal(policy.rules[4].action, RULE_ALLOW);
	assert_int_equal(policy.rules[5].action, RULE_DENY);
	policy_free(&policy);
}

/* What is printed reads back to the same, and prints the same again. */
static void
printing_and_reading_agree(void **state)
{
	static const char *const texts[] = {HEAD, HEAD "ech: grease-ok\n",
	    HEAD "name: x\nech: deny\nallow:\n  - host: a.example\n  - host: '*.a.example'\n    ports: [22, 80-81]\n"
		 "  - cidr: 2600::/32\n    ports: 443\n  - cidr: 1.1.1.1\n    ports: [5000]\n    udp: true\n"
		 "deny:\n  - host: b.a.example\n  - host: '*.zip'\n    ports: 443\n  - cidr: 10.0.0.0/8\n"
		 "  - host: localhost\n    udp: true\n",
	    "{\"version\": 1, \"name\": \"json\", \"allow\": [{\"host\": \"*.b.example\", \"ports\": [443, "
	    "\"8000-8001\"]}], "
	    "\"deny\": [{\"cidr\": \"::/0\"}]}"};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		struct policy policy = expect_good(texts[i]), again;
		char *text = policy_format(&policy), *text_again;

		assert_non_null(text);
		again = expect_good(text);
		assert_string_equal(policy.name, again.name);
		assert_int_equal(policy.ech, again.ech);
		assert_int_equal(policy.ech_set, again.ech_set);
		assert_int_equal(policy.rule_count, again.rule_count);
		for (size_t r = 0; r < policy.rule_count; r++)
			assert_true(rule_equal(&policy.rules[r], &again.rules[r]));
		text_again = policy_format(&again);
		assert_string_equal(text, text_again);
		free(text);
		free(text_again);
		policy_free(&policy);
		policy_free(&again);
	}
}

static void
layers_are_merged(void **state)
{
	struct policy base = expect_good(HEAD "name: org\nech: deny\ndeny:\n  - host: bad.example\n");
	struct policy layer = expect_good(HEAD "name: task\nallow:\n  - host: '*.a.example'\n  - host: bad.example\n");
	struct policy empty = expect_good(HEAD);
	struct error err;

	(void)state;
	assert_int_equal(policy_merge(&base, &layer, &err), 0);
	assert_int_equal(policy_merge(&base, &empty, &err), 0);
	assert_string_equal(base.name, "task");
	assert_int_equal(base.ech, POLICY_ECH_DENY);
	assert_int_equal(base.rule_count, 3);
	assert_int_equal(base.rules[0].action, RULE_DENY);
	policy_free(&base);
	policy_free(&layer);
	policy_free(&empty);
	policy_free(&empty);
}

static void
files_are_read(void **state)
{
	char path[] = "/tmp/postern-policy-XXXXXX", missing[64];
	int fd = mkstemp(path);
	struct policy policy;
	struct error err;

	(void)state;
	assert_true(fd >= 0);
	assert_int_equal(write(fd, HEAD "deny: 1\n", 19), 19);
	assert_int_equal(policy_read_file(path, &policy, &err), -1);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	assert_non_null(strstr(err.text, ":2:7: "));
	assert_int_equal(ftruncate(fd, 11), 0);
	assert_int_equal(policy_read_file(path, &policy, &err), 0);
	policy_free(&policy);
	assert_int_equal(ftruncate(fd, POLICY_FILE_MAX + 1), 0);
	assert_int_equal(policy_read_file(path, &policy, &err), -1);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_non_null(strstr(err.text, "larger than"));
	close(fd);
	unlink(path);
	snprintf(missing, sizeof(missing), "%s/x", path);
	assert_int_equal(policy_read_file(path, &policy, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_int_equal(policy_read_file(missing, &policy, &err), -1);
	assert_int_equal(policy_read_file("/tmp", &policy, &err), -1);
	assert_int_equal(err.code, ERROR_SYSTEM);
}

/* The size of the text bounds the work: hostile shapes of a megabyte are answered at once (the run has a time limit). */
static void
hostile_shapes_end_quickly(void **state)
{
	static const char *const pieces[] = {"[", "{", "? ", "- ", "a: ", "\"", "#", "&a ", "!a ", "[a, ",
	    "{a: ", "\n ", "'", "| ", "*", "a:\n ", "- - ", "? - ", "%", "---\n", "\\", ",", "a ", "\xc3\xa4"};
	size_t size = 1 << 20;
	char *text = malloc(size);
	struct policy policy;
	struct error err;

	(void)state;
	assert_non_null(text);
	for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
		size_t len = 0, piece = strlen(pieces[i]);

		while (len + piece <= size) {
			memcpy(text + len, pieces[i], piece);
			len += piece;
		}
		assert_int_equal(policy_parse(text, len, "p.yaml", &policy, &err), -1);
		memcpy(text, "version: 1\nallow: ", 18);
		assert_int_equal(policy_parse(text, len, "p.yaml", &policy, &err), -1);
	}
	free(text);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_A_15_rules_that_can_never_apply),
	    cmocka_unit_test(text_that_is_refused),
	    cmocka_unit_test(case_B_11_nul_in_a_policy),
	    cmocka_unit_test(case_B_01_empty_means_nothing),
	    cmocka_unit_test(case_B_03_B_04_spellings_in_a_policy),
	    cmocka_unit_test(all_mistakes_are_shown),
	    cmocka_unit_test(everything_that_a_policy_says),
	    cmocka_unit_test(printing_and_reading_agree),
	    cmocka_unit_test(layers_are_merged),
	    cmocka_unit_test(files_are_read),
	    cmocka_unit_test(hostile_shapes_end_quickly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
