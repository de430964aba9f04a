/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The policy's YAML: what is refused, where the complaint points, and that printing and reading agree. */
#include "policy/compiled/snapshot.h"

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

static void
twins_that_count_are_refused(void **state)
{
	static const char *const bad[][2] = {
	    {HEAD "allow:\n  - host: a.example\n    uses: 3\n  - host: b.example\n  - host: A.example.\n    uses: 4\n",
		"p.yaml:6:11: the same rule as in line 3"},
	    {HEAD "allow:\n  - {host: a.example, ports: [443, 80], uses: 3}\n  - {host: a.example, ports: [80, 443], "
		  "limits: {upload: 1MB}}\n",
		"p.yaml:4:12: the same rule as in line 3"},
	    /* An end does not make them two: their text is the same. */
	    {HEAD "allow:\n  - {host: a.example, uses: 3, expires: 1h}\n  - host: a.example\n"
		  "  - {host: a.example, uses: 3, expires: 2h}\n",
		"p.yaml:5:12: the same rule as in line 3"},
	};
	static const char *const good[] = {
	    HEAD "allow:\n  - host: a.example\n  - host: a.example\n",
	    HEAD "allow:\n  - host: a.example\n  - {host: a.example, uses: 3}\n",
	    HEAD "allow:\n  - {host: a.example, uses: 3}\n  - {host: '*.a.example', uses: 3}\n",
	    HEAD "allow:\n  - {host: a.example, uses: 3}\n  - {host: a.example, ports: [443], uses: 3}\n",
	    HEAD "deny:\n  - host: a.example\n  - host: a.example\n",
	};
	struct policy policy;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		expect_bad(bad[i][0], strlen(bad[i][0]), bad[i][1]);
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		if (policy_parse(good[i], strlen(good[i]), "p.yaml", &policy, &err) < 0)
			fail_msg("%s", err.text);
		policy_free(&policy);
	}
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
	    {HEAD "alow: []\n",
		"p.yaml:2:1: unknown key 'alow'; known here: version, name, include, mode, ech, limits,"},
	    {HEAD "Allow: []\n", "unknown key"},
	    {HEAD "<<: {}\n", "unknown key '<<'"},
	    {HEAD "? [a]\n: b\n", "a key is a single word"},
	    {HEAD "? {a: b}\n: [c, {d: e}]\n", "a key is a single word"},
	    {HEAD "include: preset:npm\n", "p.yaml:2:10: 'include' is a list, as in [preset:npm]"},
	    {HEAD "include:\n", "'include' has no value; write 'include: []'"},
	    {HEAD "include: {preset: npm}\n", "'include' is a list"},
	    {HEAD "include: [npm]\n", "p.yaml:2:11: 'npm' is no preset; write preset:NAME"},
	    {HEAD "include: [\"preset:\"]\n", "is no preset"},
	    {HEAD "include: [\"preset:../../etc/shadow\"]\n", "is no preset"},
	    {HEAD "include: [preset:NPM]\n", "is no preset"},
	    {HEAD "include: [preset:-x]\n", "is no preset"},
	    {HEAD "include: [preset:a, preset:b, preset:a]\n", "p.yaml:2:31: 'preset:a' stands twice, first in line 2"},
	    {HEAD "include: [[preset:a]]\n", "p.yaml:2:11: a single value belongs here; write a preset"},
	    {HEAD "include: [null]\n", "a value is missing"},
	    {HEAD "mode: audit\n", "p.yaml:2:7: 'audit' is neither enforce nor learn"},
	    {HEAD "mode: LEARN\n", "neither enforce nor learn"},
	    {HEAD "mode: true\n", "neither enforce nor learn"},
	    {HEAD "mode:\n", "a value is missing; write enforce or learn"},
	    {HEAD "mode: [learn]\n", "a single value belongs here"},
	    {HEAD "mode: learn\nmode: enforce\n", "'mode' stands twice"},
	    {HEAD "limits:\n", "p.yaml:2:8: 'limits' has keys"},
	    {HEAD "limits: {}\n", "p.yaml:2:9: 'limits' is empty"},
	    {HEAD "limits: 5\n", "'limits' has keys"},
	    {HEAD "limits: [upload]\n", "'limits' has keys"},
	    {HEAD "limits: {uploads: 1}\n", "p.yaml:2:10: unknown key 'uploads'; known here: connections,"},
	    {HEAD "limits: {upload: 1, upload: 2}\n", "'upload' stands twice"},
	    {HEAD "limits: {upload: 0}\n", "p.yaml:2:18: '0' is no size"},
	    {HEAD "limits: {upload: -1}\n", "is no size"},
	    {HEAD "limits: {upload: 1.5GiB}\n", "is no size"},
	    {HEAD "limits: {upload: 50 MiB}\n", "'50 MiB' is no size; write bytes, or KiB, MiB, GiB"},
	    {HEAD "limits: {upload: 50mib}\n", "is no size"},
	    {HEAD "limits: {upload: 50M}\n", "is no size"},
	    {HEAD "limits: {upload: 50TiB}\n", "is no size"},
	    {HEAD "limits: {upload: MiB}\n", "is no size"},
	    {HEAD "limits: {upload: \"50\"}\n", "is no size"},
	    {HEAD "limits: {upload: 0x50}\n", "is no size"},
	    {HEAD "limits: {upload: 050}\n", "is no size"},
	    {HEAD "limits: {upload: 1125899906842625}\n", "is no size"},
	    {HEAD "limits: {upload: 1048577GiB}\n", "is no size"},
	    {HEAD "limits: {upload: 18446744073709551617}\n", "is no size"},
	    {HEAD "limits: {upload: 17179869184GiB}\n", "is no size"},
	    {HEAD "limits: {upload: unlimited}\n", "is no size"},
	    {HEAD "limits:\n  upload:\n", "a value is missing; write a size, as in 50MiB"},
	    {HEAD "limits: {upload: [1]}\n", "a single value belongs here"},
	    {HEAD "limits: {connections: 10KiB}\n", "p.yaml:2:23: '10KiB' is no number from 1 to 1000000000"},
	    {HEAD "limits: {connections: 0}\n", "is no number"},
	    {HEAD "limits: {connections: 1000000001}\n", "is no number"},
	    {HEAD "limits: {connections: {soft: 1}}\n", "p.yaml:2:23: the limit has no 'hard'"},
	    {HEAD "limits: {connections: {}}\n", "the limit has no 'hard'"},
	    {HEAD "limits: {connections: {hard: 5, soft: 6}}\n", "p.yaml:2:39: soft is above hard"},
	    {HEAD "limits: {connections: {hard: 5, hard: 6}}\n", "'hard' stands twice"},
	    {HEAD "limits: {connections: {hard: 5, max: 6}}\n", "unknown key 'max'; known here: soft, hard"},
	    {HEAD "limits: {connections: {hard: [5]}}\n", "a single value belongs here"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 0s\n", "p.yaml:4:14: '0s' is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2\n", "is no expiry; write for how long"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2 h\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: -2h\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2H\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 30m1h\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 1h1h\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 1000w\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 99999999999999999999s\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: never\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01T10:00\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01 10:00:00Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-13-01T10:00:00Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-02-29T10:00:00Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01T24:00:00Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01T10:00:60Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01T10:00:00+1:00\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 1999-12-01T10:00:00Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires: 2026-12-01T10:00:00.1234567Z\n", "is no expiry"},
	    {HEAD "allow:\n  - host: a.example\n    expires:\n", "a value is missing"},
	    {HEAD "allow:\n  - host: a.example\n    expires: {in: 2h}\n", "a single value belongs here"},
	    {HEAD "allow:\n  - host: a.example\n    uses: 0\n", "p.yaml:4:11: '0' is no number from 1 to 1000000"},
	    {HEAD "allow:\n  - host: a.example\n    uses: 1000001\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses: -1\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses: 01\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses: \"1\"\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses: 1e3\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses: once\n", "is no number"},
	    {HEAD "allow:\n  - host: a.example\n    uses:\n", "a value is missing"},
	    {HEAD "deny:\n  - host: a.example\n    uses: 3\n", "p.yaml:4:5: 'uses' is for allow entries only"},
	    {HEAD "deny:\n  - host: a.example\n    limits: {upload: 1}\n", "p.yaml:4:5: 'limits' is for allow"},
	    {HEAD "allow:\n  - host: a.example\n    limits: {dns_queries_per_second: 1}\n",
		"p.yaml:4:14: unknown key 'dns_queries_per_second'; known here: connections, upload, download"},
	    {HEAD "allow:\n  - host: a.example\n    limits: {}\n", "'limits' is empty"},
	    {HEAD "allow:\n  - host: a.example\n    subdomains: yes\n", "p.yaml:4:17: 'yes' is neither true nor"},
	    {HEAD "allow:\n  - host: a.example\n    subdomains: 1\n", "neither true nor false"},
	    {HEAD "allow:\n  - host: \"*.a.example\"\n    subdomains: true\n", "p.yaml:3:11: '*.a.example' with"},
	    {HEAD "allow:\n  - cidr: 1.1.1.1\n    ports: 443\n    subdomains: true\n", "for hosts only"},
	    {HEAD "allow:\n  - cidr: 1.1.1.1\n    ports: 443\n    shared: true\n", "for hosts only"},
	    {HEAD "allow:\n  - host: a.example\n    shared: \"true\"\n", "neither true nor false"},
	    {HEAD "allow:\n  - country: DE\n    ports: 443\n", "p.yaml:3:14: a country or ASN can be denied only"},
	    {HEAD "allow:\n  - asn: 64500\n    ports: 443\n", "p.yaml:3:10: a country or ASN can be denied only"},
	    {HEAD "deny:\n  - host: true\n", "p.yaml:3:11: 'true' is a number or a truth value"},
	    {HEAD "deny:\n  - host: -1\n", "write a host name"},
	    {HEAD "deny:\n  - host: 1e9\n", "write a host name"},
	    {HEAD "deny:\n  - country: UK\n", "p.yaml:3:14: 'UK' is no country code; the United Kingdom's is GB"},
	    {HEAD "deny:\n  - country: XX\n", "is no country code; write its two letters"},
	    {HEAD "deny:\n  - country: DEU\n", "is no country code"},
	    {HEAD "deny:\n  - country: D\n", "is no country code"},
	    {HEAD "deny:\n  - country: Germany\n", "is no country code"},
	    {HEAD "deny:\n  - asn: AS64500\n", "p.yaml:3:10: 'AS64500': write the number alone, 64500"},
	    {HEAD "deny:\n  - asn: 0\n", "is no number of an autonomous system"},
	    {HEAD "deny:\n  - asn: 4294967296\n", "is no number of an autonomous system"},
	    {HEAD "deny:\n  - asn: 1.10\n", "is no number of an autonomous system"},
	    {HEAD "deny:\n  - asn: 64500\n    country: DE\n", "p.yaml:4:14: an entry has one of"},
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
	    {HEAD "allow: [{}]\n", "p.yaml:2:9: the entry names no 'host', 'cidr', 'country' or 'asn'"},
	    {HEAD "allow:\n  - a.example\n",
		"p.yaml:3:5: an entry is 'host: NAME' or 'cidr: RANGE'; write '- host: \"a.example\"'"},
	    {HEAD "allow:\n  - ports: [22]\n", "the entry names no 'host', 'cidr'"},
	    {HEAD "allow:\n  - host: a.example\n    cidr: 1.1.1.1\n",
		"p.yaml:4:11: an entry has one of 'host', 'cidr'"},
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
		"unknown key 'port'; known here: host, cidr, country, asn, ports, udp,"},
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
			assert_int_equal(snapshot_ports_any(snapshot, &name, 0).verdict, VERDICT_DENIED);
			assert_int_equal(snapshot_ports_list(snapshot, &name, ports, RULE_HOST_PORTS_MAX, 0), 0);
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

/* Each wildcard that somebody forgot to quote is told of, and hides nothing that stands behind it. */
static void
bare_asterisks_hide_no_other_mistake(void **state)
{
	static const char text[] =
	    "version: 1\nnmae: x\nallow:\n  - host: *.example.com\n  - host: a..b\n"
	    "  - {host: *.\xc3\xa4.example, port: 1}\n  - host: \"*.com\"\n  - host: *.example.org\n"
	    "    ports: [0]\n";
	static const struct {
		uint32_t line, column;
		const char *part;
	} expected[] = {{2, 1, "unknown key 'nmae'"}, {4, 11, "must be quoted"}, {5, 11, "empty label"},
	    {6, 12, "must be quoted"}, {6, 25, "unknown key 'port'"}, {7, 11, "top-level"}, {8, 11, "must be quoted"},
	    {9, 13, "'0' is no port"}};
	struct policy_notes notes = {.notes = NULL};
	struct policy policy;
	struct error err;

	(void)state;
	assert_int_equal(policy_parse_noted(text, strlen(text), "p.yaml", &policy, &notes, &err), -1);
	assert_true(notes.broken);
	assert_int_equal(notes.count, sizeof(expected) / sizeof(expected[0]));
	for (size_t i = 0; i < notes.count; i++) {
		assert_int_equal(notes.notes[i].line, expected[i].line);
		assert_int_equal(notes.notes[i].column, expected[i].column);
		assert_non_null(strstr(notes.notes[i].text, expected[i].part));
	}
	assert_non_null(strstr(err.text, "p.yaml:8:11: a value that begins with '*'"));
	notes_free(&notes);
}

static void
a_byte_order_mark_is_no_mistake(void **state)
{
	static const char text[] = "\xef\xbb\xbfversion: 1\nallow:\n  - host: a.example\n";
	struct policy policy;

	(void)state;
	assert_int_equal(policy_parse(text, strlen(text), "p.yaml", &policy, NULL), 0);
	assert_int_equal(policy.rule_count, 1);
	policy_free(&policy);
	expect_bad("\xef\xbb\xbf", 3, "version: 1 is required");
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

/* The terms of entries and of the whole: values as they are stored, in every spelling that is taken. */
static void
terms_of_entries(void **state)
{
	static const struct {
		const char *text;
		uint32_t after_s;
		int64_t expires_us;
	} expiries[] = {
	    {"1s", 1, 0},
	    {"90s", 90, 0},
	    {"10m", 600, 0},
	    {"2h", 7200, 0},
	    {"1h30m", 5400, 0},
	    {"7d", 7 * 86400, 0},
	    {"1w2d3h4m5s", 788645, 0},
	    {"3653d", 3653 * 86400, 0},
	    {"2026-12-01T10:00Z", 0, INT64_C(1796119200000000)},
	    {"2026-12-01T10:00:00Z", 0, INT64_C(1796119200000000)},
	    {"\"2026-12-01T11:00:00+01:00\"", 0, INT64_C(1796119200000000)},
	    {"2026-12-01T04:30:00-05:30", 0, INT64_C(1796119200000000)},
	    {"2026-12-01T10:00:00.000001Z", 0, INT64_C(1796119200000001)},
	    {"2026-12-01T10:00:00.5Z", 0, INT64_C(1796119200500000)},
	    {"2000-01-01T00:00:00Z", 0, INT64_C(946684800000000)},
	    {"2024-02-29T23:59:59Z", 0, INT64_C(1709251199000000)},
	    {"9999-12-31T23:59:59Z", 0, INT64_C(253402300799000000)},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(expiries) / sizeof(expiries[0]); i++) {
		char text[256];
		struct policy policy;

		snprintf(text, sizeof(text), HEAD "allow:\n  - host: a.example\n    expires: %s\n", expiries[i].text);
		policy = expect_good(text);
		assert_int_equal(policy.rules[0].expires_after_s, expiries[i].after_s);
		assert_int_equal(policy.rules[0].expires_us, expiries[i].expires_us);
		policy_resolve(&policy, 1000000);
		assert_int_equal(policy.rules[0].expires_after_s, 0);
		assert_int_equal(policy.rules[0].expires_us,
		    expiries[i].after_s == 0 ? expiries[i].expires_us
					     : (int64_t)expiries[i].after_s * 1000000 + 1000000);
		policy_free(&policy);
	}
}

static void
limits_in_every_spelling(void **state)
{
	static const struct {
		const char *text;
		uint64_t soft, hard;
	} sizes[] = {
	    {"1", 1, 1},
	    {"\"1KiB\"", 820, 1024},
	    {"100", 80, 100},
	    {"1KiB", 820, 1024},
	    {"1kB", 800, 1000},
	    {"50MiB", UINT64_C(41943040), UINT64_C(52428800)},
	    {"1MB", 800000, 1000000},
	    {"2GB", UINT64_C(1600000000), UINT64_C(2000000000)},
	    {"1048576GiB", UINT64_C(900719925474100), UINT64_C(1125899906842624)},
	    {"{hard: 10}", 8, 10},
	    {"{soft: 1, hard: 10}", 1, 10},
	    {"{hard: 1MiB, soft: 1MiB}", 1048576, 1048576},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		char text[256];
		struct policy policy;

		snprintf(text, sizeof(text),
		    HEAD "limits: {download: %s}\nallow:\n  - host: a.example\n    limits: {upload: %s}\n",
		    sizes[i].text, sizes[i].text);
		policy = expect_good(text);
		assert_int_equal(policy.limits.of[LIMIT_DOWNLOAD].soft, sizes[i].soft);
		assert_int_equal(policy.limits.of[LIMIT_DOWNLOAD].hard, sizes[i].hard);
		assert_int_equal(policy.limits.of[LIMIT_UPLOAD].hard, 0);
		assert_int_equal(policy.rules[0].limits.of[LIMIT_UPLOAD].soft, sizes[i].soft);
		assert_int_equal(policy.rules[0].limits.of[LIMIT_UPLOAD].hard, sizes[i].hard);
		policy_free(&policy);
	}
}

static void
settings_and_kinds(void **state)
{
	struct policy policy =
	    expect_good(HEAD "include: [preset:npm, \"preset:go-2\"]\nmode: learn\n"
			     "limits:\n  connections: 1\n  new_connections_per_minute: 2\n"
			     "  dns_queries_per_second: 3\n  unique_names_per_minute: 4\n"
			     "  upload: 5\n  download: 6\n"
			     "allow:\n  - host: a.example\n    subdomains: true\n    shared: true\n"
			     "    uses: 3\n  - host: b.example\n    subdomains: false\n"
			     "deny:\n  - country: no\n  - country: KP\n    ports: 443\n  - asn: 4294967295\n"
			     "  - asn: 1\n    udp: true\n");
	static const char *const words[] = {
	    "a.example subdomains", "b.example", "country:NO", "country:KP:443", "asn:4294967295", "asn:1:1-65535/udp"};
	char text[RULE_TEXT_MAX];
	struct rule rule;

	(void)state;
	assert_int_equal(policy.include_count, 2);
	assert_string_equal(policy.includes[0].preset, "npm");
	assert_string_equal(policy.includes[1].preset, "go-2");
	assert_int_equal(policy.includes[1].line, 2);
	assert_int_equal(policy.includes[1].column, 23);
	assert_int_equal(policy.mode, POLICY_MODE_LEARN);
	assert_true(policy.mode_set && policy.has_allow);
	for (size_t kind = 0; kind < LIMIT_KIND_MAX; kind++)
		assert_int_equal(policy.limits.of[kind].hard, kind + 1);
	assert_true(policy.rules[0].subdomains && policy.rules[0].shared);
	assert_int_equal(policy.rules[0].uses, 3);
	assert_int_equal(policy.rule_count, sizeof(words) / sizeof(words[0]));
	for (size_t i = 0; i < policy.rule_count; i++)
		assert_string_equal(rule_format(&policy.rules[i], text), words[i]);
	for (size_t i = 2; i < policy.rule_count; i++) {
		assert_int_equal(rule_parse(RULE_DENY, words[i], &rule, NULL), 0);
		assert_true(rule_equal(&rule, &policy.rules[i]));
		assert_int_equal(rule_parse(RULE_ALLOW, words[i], &rule, NULL), -1);
	}
	policy_free(&policy);
	policy = expect_good(HEAD "mode: enforce\ninclude: []\ndeny: []\n");
	assert_int_equal(policy.mode, POLICY_MODE_ENFORCE);
	assert_true(policy.mode_set && !policy.has_allow && policy.include_count == 0);
	policy_free(&policy);
}

/* A restart must not begin a relative expiry anew, so somebody has to say when it began. */
static void
relative_expiries_need_a_beginning(void **state)
{
	struct policy policy = expect_good(HEAD "allow:\n  - host: a.example\n    expires: 2h\n");
	struct snapshot *snapshot;
	struct error err;

	(void)state;
	assert_int_equal(snapshot_compile(&policy, &err), -1);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_non_null(strstr(err.text, "p.yaml:3: "));
	policy_resolve(&policy, 5000000);
	policy_resolve(&policy, 999000000);
	snapshot = compiled(&policy);
	assert_int_equal(snapshot_rule_expires_us(snapshot, 0), INT64_C(7205000000));
	snapshot_free(snapshot);
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
	    HEAD
	    "mode: learn\ninclude: [preset:npm, preset:go]\nlimits: {upload: 50MiB, download: {soft: 1kB, hard: 1MB}, "
	    "connections: 7}\nallow:\n  - host: a.example\n    subdomains: true\n    shared: true\n    expires: 90m\n"
	    "    uses: 5\n    limits: {upload: 3GiB}\n  - host: b.example\n    ports: 5000\n    udp: true\n"
	    "    expires: 2026-12-01T10:00:00.25+02:00\ndeny:\n  - country: kp\n    ports: [25]\n  - asn: 64500\n"
	    "    expires: 9999-12-31T23:59:59.999999Z\n  - asn: 64501\n    udp: true\n",
	    HEAD "mode: enforce\nallow: []\ndeny: []\n",
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
			assert_true(rule_identical(&policy.rules[r], &again.rules[r]));
		assert_true(limits_equal(&policy.limits, &again.limits));
		assert_int_equal(policy.mode, again.mode);
		assert_int_equal(policy.mode_set, again.mode_set);
		assert_int_equal(policy.has_allow, again.has_allow);
		assert_int_equal(policy.include_count, again.include_count);
		for (size_t include = 0; include < policy.include_count; include++)
			assert_string_equal(policy.includes[include].preset, again.includes[include].preset);
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
	assert_int_equal(policy_file_read(path, &policy, &err), -1);
	assert_int_equal(strncmp(err.text, path, strlen(path)), 0);
	assert_non_null(strstr(err.text, ":2:7: "));
	assert_int_equal(ftruncate(fd, 11), 0);
	assert_int_equal(policy_file_read(path, &policy, &err), 0);
	policy_free(&policy);
	assert_int_equal(ftruncate(fd, POLICY_FILE_MAX + 1), 0);
	assert_int_equal(policy_file_read(path, &policy, &err), -1);
	assert_int_equal(err.code, ERROR_POLICY);
	assert_non_null(strstr(err.text, "larger than"));
	close(fd);
	unlink(path);
	snprintf(missing, sizeof(missing), "%s/x", path);
	assert_int_equal(policy_file_read(path, &policy, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
	assert_int_equal(policy_file_read(missing, &policy, &err), -1);
	assert_int_equal(policy_file_read("/tmp", &policy, &err), -1);
	assert_int_equal(err.code, ERROR_SYSTEM);
}

/* The size of the text bounds the work: hostile shapes of a megabyte are answered at once (the run has a time limit).
 */
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
	    cmocka_unit_test(twins_that_count_are_refused),
	    cmocka_unit_test(text_that_is_refused),
	    cmocka_unit_test(case_B_11_nul_in_a_policy),
	    cmocka_unit_test(case_B_01_empty_means_nothing),
	    cmocka_unit_test(case_B_03_B_04_spellings_in_a_policy),
	    cmocka_unit_test(all_mistakes_are_shown),
	    cmocka_unit_test(bare_asterisks_hide_no_other_mistake),
	    cmocka_unit_test(a_byte_order_mark_is_no_mistake),
	    cmocka_unit_test(everything_that_a_policy_says),
	    cmocka_unit_test(terms_of_entries),
	    cmocka_unit_test(limits_in_every_spelling),
	    cmocka_unit_test(settings_and_kinds),
	    cmocka_unit_test(relative_expiries_need_a_beginning),
	    cmocka_unit_test(printing_and_reading_agree),
	    cmocka_unit_test(layers_are_merged),
	    cmocka_unit_test(files_are_read),
	    cmocka_unit_test(hostile_shapes_end_quickly),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
