/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiled rules with terms: deadlines, counts, limits, subtrees, places, bounds, learning; and what identifies a rule.
 */
#include "policy/compiled/snapshot_format.h"
#include "policy/verdict.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define HEAD "version: 1\n"
#define SECOND INT64_C(1000000)

static struct policy
parsed(const char *text)
{
	struct policy policy;
	struct error err;

	if (policy_parse(text, strlen(text), "p.yaml", &policy, &err) < 0)
		fail_msg("\n%s\n%s", text, err.text);
	return policy;
}

static struct snapshot *
compiled(struct policy *policy)
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
	policy_free(policy);
	return snapshot;
}

/* Applied at second 0. */
static struct snapshot *
open_text(const char *text)
{
	struct policy policy = parsed(text);

	policy_resolve(&policy, 0);
	return compiled(&policy);
}

/* Entries of the first text bound the second, as an organisation's do. */
static struct snapshot *
open_bounded(const char *bounds, const char *text)
{
	struct policy policy = parsed(text), bound = parsed(bounds);

	for (size_t i = 0; i < bound.rule_count; i++) {
		bound.rules[i].bound = bound.rules[i].action == RULE_ALLOW;
		assert_int_equal(policy_add(&policy, &bound.rules[i], NULL), 0);
	}
	policy.bounded = true;
	policy_resolve(&policy, 0);
	policy_free(&bound);
	return compiled(&policy);
}

static struct name
name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

static struct decision
host(const struct snapshot *s, const char *text, uint16_t port, int64_t now_us)
{
	struct name name = name_of(text);

	return snapshot_decide_host(s, &name, IPPROTO_TCP, port, now_us);
}

static struct decision
dns(const struct snapshot *s, const char *text, int64_t now_us)
{
	struct name name = name_of(text);

	return snapshot_ports_any(s, &name, now_us);
}

static size_t
port_count(const struct snapshot *s, const char *text, int64_t now_us)
{
	struct name name = name_of(text);
	struct proto_port ports[RULE_HOST_PORTS_MAX];

	return snapshot_ports_list(s, &name, ports, RULE_HOST_PORTS_MAX, now_us);
}

static struct decision
at_addr(const struct snapshot *s, const char *text, uint16_t port, int64_t now_us)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return snapshot_decide_addr(s, &addr, IPPROTO_TCP, port, now_us);
}

static void
rules_end_at_their_deadline(void **state)
{
	struct snapshot *s = open_text(HEAD "allow:\n  - host: a.example\n    expires: 10s\n");
	struct decision decision;

	(void)state;
	assert_int_equal(host(s, "a.example", 443, 10 * SECOND - 1).reason, REASON_ALLOWED);
	decision = host(s, "a.example", 443, 10 * SECOND);
	assert_int_equal(decision.verdict, VERDICT_DENIED);
	assert_int_equal(decision.reason, REASON_NO_RULE);
	assert_int_equal(decision.rule, SNAPSHOT_NO_RULE);
	assert_int_equal(decision.lapsed, 0);
	assert_false(decision.learnable || decision.out_of_bounds);
	snapshot_free(s);
}

static void
deadlines_are_seen_by_every_question(void **state)
{
	static const char text[] = HEAD "allow:\n"
					"  - host: a.example\n    expires: 10s\n"
					"  - cidr: 1.2.3.0/24\n    ports: 22\n    expires: 20s\n"
					"  - host: b.example\n"
					"  - host: b.example\n    ports: [443, 22]\n    expires: 30s\n"
					"deny:\n"
					"  - host: b.example\n    ports: 80\n    expires: 5s\n";
	struct snapshot *s = open_text(text);
	size_t count;

	(void)state;
	assert_int_equal(dns(s, "a.example", 0).reason, REASON_ALLOWED);
	assert_int_equal(port_count(s, "a.example", 0), 2);
	assert_int_equal(dns(s, "a.example", 10 * SECOND).reason, REASON_NO_RULE);
	assert_int_equal(dns(s, "a.example", 10 * SECOND).lapsed, 0);
	assert_int_equal(port_count(s, "a.example", 10 * SECOND), 0);
	assert_int_equal(at_addr(s, "1.2.3.4", 22, 20 * SECOND - 1).reason, REASON_ALLOWED);
	assert_int_equal(at_addr(s, "1.2.3.4", 22, 20 * SECOND).reason, REASON_NO_RULE);
	snapshot_ranges(s, &count);
	assert_int_equal(count, 1);
	snapshot_free(s);
	/* Shut for a while: by the gateway, as the kernel's ranges do not change with time. */
	s = open_text(HEAD "allow:\n  - cidr: 1.2.3.0/24\n    ports: 22\ndeny:\n  - cidr: 1.2.3.0/25\n    expires: 5s\n"
			   "  - cidr: 1.2.3.128/25\n");
	assert_int_equal(at_addr(s, "1.2.3.4", 22, 5 * SECOND - 1).reason, REASON_RULE_DENY);
	assert_int_equal(at_addr(s, "1.2.3.4", 22, 5 * SECOND).reason, REASON_ALLOWED);
	assert_int_equal(snapshot_ranges(s, &count)->last.bytes[3], 127);
	assert_int_equal(count, 1);
	snapshot_free(s);
	s = open_text(text);
	/* The rule without a deadline is named where both allow it. */
	assert_int_equal(host(s, "b.example", 443, 0).rule, 2);
	assert_int_equal(host(s, "b.example", 22, 0).rule, 3);
	assert_int_equal(host(s, "b.example", 22, 30 * SECOND).lapsed, 3);
	assert_int_equal(host(s, "b.example", 443, 30 * SECOND).rule, 2);
	/* A deny rule ends as well. */
	assert_int_equal(host(s, "b.example", 80, 5 * SECOND - 1).reason, REASON_RULE_DENY);
	assert_int_equal(host(s, "b.example", 80, 5 * SECOND).reason, REASON_ALLOWED);
	assert_int_equal(port_count(s, "b.example", 0), 2);
	assert_int_equal(port_count(s, "b.example", 5 * SECOND), 3);
	assert_int_equal(port_count(s, "b.example", 30 * SECOND), 2);
	assert_int_equal(snapshot_next_expiry_us(s, 0), 5 * SECOND);
	assert_int_equal(snapshot_next_expiry_us(s, 5 * SECOND), 10 * SECOND);
	assert_int_equal(snapshot_next_expiry_us(s, 20 * SECOND - 1), 20 * SECOND);
	assert_int_equal(snapshot_next_expiry_us(s, 30 * SECOND), 0);
	assert_int_equal(snapshot_rule_expires_us(s, 0), 10 * SECOND);
	assert_int_equal(snapshot_rule_expires_us(s, 2), 0);
	assert_int_equal(snapshot_rule_expires_us(s, SNAPSHOT_NO_RULE), 0);
	assert_true(snapshot_rule_is_live(s, 0, 0) && !snapshot_rule_is_live(s, 0, 10 * SECOND));
	assert_false(snapshot_rule_is_live(s, SNAPSHOT_NO_RULE, 0));
	snapshot_free(s);
}

static void
used_up_rules_are_no_rules(void **state)
{
	struct snapshot *s =
	    open_text(HEAD "allow:\n  - host: a.example\n    uses: 2\n  - host: a.example\n    ports: [80, 443, 8080]\n"
			   "    uses: 1\n    expires: 10s\n  - host: b.example\n  - host: b.example\n    uses: 3\n");

	(void)state;
	assert_int_equal(snapshot_rule_uses(s, 0), 2);
	assert_int_equal(snapshot_rule_uses(s, 2), 0);
	assert_int_equal(snapshot_rule_uses(s, SNAPSHOT_NO_RULE), 0);
	assert_int_equal(host(s, "a.example", 443, 0).rule, 0);
	snapshot_rule_retire(s, 0);
	assert_int_equal(host(s, "a.example", 443, 0).rule, 1);
	assert_int_equal(host(s, "a.example", 443, 10 * SECOND).lapsed, 0);
	snapshot_rule_retire(s, 1);
	assert_int_equal(host(s, "a.example", 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(dns(s, "a.example", 0).reason, REASON_NO_RULE);
	assert_int_equal(port_count(s, "a.example", 0), 0);
	/* What is allowed anyway uses nothing up. */
	assert_int_equal(host(s, "b.example", 443, 0).rule, 2);
	snapshot_rule_retire(s, SNAPSHOT_NO_RULE);
	snapshot_free(s);
	s = open_text(HEAD "allow:\n  - host: a.example\n");
	snapshot_rule_retire(s, 0);
	assert_int_equal(host(s, "a.example", 443, 0).reason, REASON_ALLOWED);
	snapshot_free(s);
}

static void
limits_travel_with_the_block(void **state)
{
	struct snapshot *s =
	    open_text(HEAD "limits: {connections: 256, upload: {soft: 1MiB, hard: 50MiB}}\n"
			   "allow:\n  - host: a.example\n  - host: b.example\n    limits: {upload: 100}\n"
			   "  - host: c.example\n    limits: {connections: 3}\n");

	(void)state;
	assert_int_equal(snapshot_limits(s)->of[LIMIT_CONNECTIONS].hard, 256);
	assert_int_equal(snapshot_limits(s)->of[LIMIT_UPLOAD].soft, 1 << 20);
	assert_int_equal(snapshot_limits(s)->of[LIMIT_DOWNLOAD].hard, 0);
	assert_false(limits_any(snapshot_rule_limits(s, 0)));
	assert_int_equal(snapshot_rule_limits(s, 1)->of[LIMIT_UPLOAD].hard, 100);
	assert_int_equal(snapshot_rule_limits(s, 1)->of[LIMIT_UPLOAD].soft, 80);
	assert_int_equal(snapshot_rule_limits(s, 2)->of[LIMIT_CONNECTIONS].hard, 3);
	assert_false(limits_any(snapshot_rule_limits(s, SNAPSHOT_NO_RULE)));
	snapshot_free(s);
}

static void
subdomains_are_the_host_and_all_below(void **state)
{
	struct snapshot *s = open_text(HEAD "allow:\n  - host: x.example\n    subdomains: true\n"
					    "deny:\n  - host: bad.x.example\n    subdomains: true\n");

	(void)state;
	assert_int_equal(host(s, "x.example", 443, 0).reason, REASON_ALLOWED);
	assert_int_equal(host(s, "a.x.example", 443, 0).reason, REASON_ALLOWED);
	assert_int_equal(host(s, "a.b.c.x.example", 443, 0).reason, REASON_ALLOWED);
	assert_int_equal(host(s, "notx.example", 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(host(s, "x.example.net", 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(host(s, "bad.x.example", 443, 0).reason, REASON_RULE_DENY);
	assert_int_equal(host(s, "a.bad.x.example", 443, 0).reason, REASON_RULE_DENY);
	assert_int_equal(host(s, "notbad.x.example", 443, 0).reason, REASON_ALLOWED);
	assert_int_equal(dns(s, "x.example", 0).reason, REASON_ALLOWED);
	assert_int_equal(dns(s, "bad.x.example", 0).reason, REASON_RULE_DENY);
	assert_int_equal(port_count(s, "q.x.example", 0), 2);
	assert_string_equal(snapshot_rule_text(s, 0), "allow x.example subdomains");
	snapshot_free(s);
}

static struct decision
place(const struct snapshot *s, const char *country, uint32_t asn, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct addr_place place = {.asn = asn};

	memcpy(place.country, country, strlen(country));
	return snapshot_decide_place(s, &place, proto, port, now_us);
}

static void
places_are_denied(void **state)
{
	struct snapshot *s = open_text(HEAD "deny:\n  - country: KP\n  - asn: 64500\n    ports: 25\n"
					    "  - asn: 64501\n    expires: 10s\n");
	struct decision decision;

	(void)state;
	assert_int_equal(snapshot_country_rule(s), 0);
	assert_int_equal(snapshot_asn_rule(s), 1);
	assert_true(snapshot_needs_place(s));
	decision = place(s, "KP", 1, IPPROTO_TCP, 443, 0);
	assert_int_equal(decision.reason, REASON_RULE_DENY);
	assert_string_equal(snapshot_rule_text(s, decision.rule), "deny country:KP");
	assert_int_equal(place(s, "KR", 1, IPPROTO_TCP, 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(place(s, "DE", 64500, IPPROTO_TCP, 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(place(s, "DE", 64500, IPPROTO_TCP, 25, 0).rule, 1);
	assert_int_equal(place(s, "DE", 64501, IPPROTO_UDP, 25, 9 * SECOND).rule, 2);
	assert_int_equal(place(s, "DE", 64501, IPPROTO_UDP, 25, 10 * SECOND).reason, REASON_NO_RULE);
	snapshot_free(s);
}

/* Whatever is not known could be what is denied: but only where a rule is about it, and as long as it lives. */
static void
unknown_places_are_refused(void **state)
{
	struct snapshot *s =
	    open_text(HEAD "deny:\n  - country: KP\n    ports: 25\n  - asn: 64501\n    expires: 10s\n");
	struct addr_place nowhere = {.asn = 0};
	struct decision decision;
	struct addr addr;

	(void)state;
	decision = place(s, "", 1, IPPROTO_TCP, 25, 0);
	assert_int_equal(decision.reason, REASON_PLACE_UNKNOWN);
	assert_int_equal(decision.verdict, VERDICT_DENIED);
	assert_int_equal(decision.rule, 0);
	assert_int_equal(place(s, "", 1, IPPROTO_TCP, 443, 0).reason, REASON_NO_RULE);
	assert_int_equal(place(s, "", 1, IPPROTO_UDP, 25, 0).reason, REASON_NO_RULE);
	assert_int_equal(place(s, "DE", 0, IPPROTO_TCP, 443, 0).reason, REASON_PLACE_UNKNOWN);
	assert_int_equal(place(s, "DE", 0, IPPROTO_TCP, 443, 0).rule, 1);
	assert_int_equal(place(s, "DE", 0, IPPROTO_TCP, 443, 10 * SECOND).reason, REASON_NO_RULE);
	/* What is known to be denied is said to be. */
	assert_int_equal(place(s, "", 64501, IPPROTO_TCP, 25, 0).reason, REASON_RULE_DENY);
	/* An address rule's deny comes first, its allow does not help. */
	snapshot_free(s);
	s = open_text(HEAD "allow:\n  - cidr: 1.2.3.0/24\n    ports: 443\ndeny:\n  - country: KP\n  - cidr: 1.2.3.4\n");
	assert_int_equal(snapshot_asn_rule(s), SNAPSHOT_NO_RULE);
	assert_true(addr_parse("1.2.3.4", strlen("1.2.3.4"), &addr));
	assert_int_equal(verdict_address(s, &addr, &nowhere, IPPROTO_TCP, 443, 0).reason, REASON_RULE_DENY);
	assert_true(addr_parse("1.2.3.5", strlen("1.2.3.5"), &addr));
	assert_int_equal(verdict_address(s, &addr, &nowhere, IPPROTO_TCP, 443, 0).reason, REASON_PLACE_UNKNOWN);
	memcpy(nowhere.country, "DE", 3);
	assert_int_equal(verdict_address(s, &addr, &nowhere, IPPROTO_TCP, 443, 0).reason, REASON_ALLOWED);
	assert_int_equal(verdict_address(s, &addr, &nowhere, IPPROTO_TCP, 80, 0).reason, REASON_NO_RULE);
	snapshot_free(s);
}

static void
bounds_allow_nothing_by_themselves(void **state)
{
	struct snapshot *s = open_bounded(HEAD "allow:\n  - host: '*.corp.example'\n    ports: [80, 443, 22]\n"
					       "  - cidr: 1.2.0.0/16\n    ports: [\"20-25\"]\n",
	    HEAD "allow:\n  - host: a.corp.example\n    ports: [443, 8443]\n  - host: other.example\n"
		 "  - cidr: 1.2.3.0/24\n    ports: [22, 80]\n  - cidr: 1.0.0.0/8\n    ports: 25\n"
		 "  - host: d.corp.example\n    ports: 9000\n");
	const struct addr_range *ranges;
	struct decision decision;
	char first[ADDR_TEXT_MAX];
	size_t count;

	(void)state;
	assert_true(snapshot_is_bounded(s));
	assert_int_equal(host(s, "a.corp.example", 443, 0).reason, REASON_ALLOWED);
	decision = host(s, "a.corp.example", 8443, 0);
	assert_int_equal(decision.reason, REASON_NO_RULE);
	assert_true(decision.out_of_bounds);
	assert_int_equal(decision.rule, SNAPSHOT_NO_RULE);
	decision = host(s, "b.corp.example", 443, 0);
	assert_int_equal(decision.reason, REASON_NO_RULE);
	assert_false(decision.out_of_bounds);
	assert_true(host(s, "other.example", 443, 0).out_of_bounds);
	assert_int_equal(dns(s, "a.corp.example", 0).reason, REASON_ALLOWED);
	assert_int_equal(dns(s, "b.corp.example", 0).reason, REASON_NO_RULE);
	assert_true(dns(s, "other.example", 0).out_of_bounds);
	assert_true(dns(s, "d.corp.example", 0).out_of_bounds);
	assert_int_equal(port_count(s, "a.corp.example", 0), 1);
	assert_int_equal(port_count(s, "other.example", 0), 0);
	assert_int_equal(at_addr(s, "1.2.3.4", 22, 0).reason, REASON_ALLOWED);
	assert_true(at_addr(s, "1.2.3.4", 80, 0).out_of_bounds);
	assert_true(at_addr(s, "1.3.3.4", 25, 0).out_of_bounds);
	assert_int_equal(at_addr(s, "1.2.9.9", 25, 0).reason, REASON_ALLOWED);
	ranges = snapshot_ranges(s, &count);
	assert_int_equal(count, 2);
	assert_string_equal(addr_format(&ranges[0].first, first), "1.2.3.0");
	assert_int_equal(ranges[0].port_first, 22);
	assert_int_equal(ranges[0].port_last, 22);
	assert_string_equal(addr_format(&ranges[1].first, first), "1.2.0.0");
	assert_int_equal(ranges[1].port_first, 25);
	snapshot_free(s);
	/* Bounded by nothing at all: nothing is allowed. */
	s = open_bounded(HEAD, HEAD "allow:\n  - host: a.example\n  - cidr: 1.1.1.1\n    ports: 443\n");
	assert_true(host(s, "a.example", 443, 0).out_of_bounds);
	assert_int_equal(dns(s, "a.example", 0).verdict, VERDICT_DENIED);
	snapshot_ranges(s, &count);
	assert_int_equal(count, 0);
	snapshot_free(s);
}

static void
learning_allows_nothing_unasked(void **state)
{
	struct snapshot *s = open_text(HEAD "mode: learn\nallow:\n  - host: a.example\n    ports: 22\n"
					    "deny:\n  - host: b.example\n  - host: c.example\n    ports: 443\n"
					    "  - cidr: 9.9.9.0/24\n");
	const struct addr_range *ranges;
	struct decision decision;
	size_t count;

	(void)state;
	assert_int_equal(snapshot_mode(s), POLICY_MODE_LEARN);
	assert_int_equal(host(s, "a.example", 22, 0).reason, REASON_ALLOWED);
	assert_false(host(s, "a.example", 22, 0).learnable);
	decision = host(s, "unknown.example", 8080, 0);
	assert_int_equal(decision.verdict, VERDICT_DENIED);
	assert_int_equal(decision.reason, REASON_NO_RULE);
	assert_true(decision.learnable);
	assert_false(host(s, "b.example", 443, 0).learnable);
	assert_false(host(s, "c.example", 443, 0).learnable);
	assert_true(host(s, "c.example", 80, 0).learnable);
	assert_true(dns(s, "c.example", 0).learnable);
	assert_true(dns(s, "unknown.example", 0).learnable);
	assert_int_equal(dns(s, "unknown.example", 0).verdict, VERDICT_DENIED);
	assert_false(dns(s, "b.example", 0).learnable);
	assert_false(dns(s, "metadata.google.internal", 0).learnable);
	assert_int_equal(dns(s, "a.example", 0).reason, REASON_ALLOWED);
	assert_int_equal(port_count(s, "unknown.example", 0), 2);
	assert_int_equal(port_count(s, "c.example", 0), 1);
	assert_int_equal(port_count(s, "a.example", 0), 3);
	assert_true(at_addr(s, "1.1.1.1", 443, 0).learnable);
	assert_false(at_addr(s, "9.9.9.9", 443, 0).learnable);
	assert_false(at_addr(s, "10.0.0.1", 443, 0).learnable);
	ranges = snapshot_ranges(s, &count);
	assert_true(count > 20);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(ranges[i].proto, IPPROTO_TCP);
		assert_true(ranges[i].port_last < 53 || ranges[i].port_first > 53);
		assert_null(addr_never(&ranges[i].first));
		assert_null(addr_never(&ranges[i].last));
		assert_true(snapshot_decide_addr(s, &ranges[i].first, IPPROTO_TCP, ranges[i].port_first, 0).learnable);
	}
	snapshot_free(s);
	/* The organisation bounds what is learned, too. */
	s = open_bounded(HEAD "allow:\n  - host: '*.corp.example'\n    ports: [443, 8443]\n",
	    HEAD "mode: learn\nallow:\n  - host: a.corp.example\n");
	assert_true(host(s, "b.corp.example", 8443, 0).learnable);
	assert_false(host(s, "b.corp.example", 80, 0).learnable);
	assert_false(host(s, "other.example", 443, 0).learnable);
	assert_true(dns(s, "b.corp.example", 0).learnable);
	assert_false(dns(s, "other.example", 0).learnable);
	assert_int_equal(port_count(s, "b.corp.example", 0), 2);
	assert_int_equal(port_count(s, "other.example", 0), 0);
	snapshot_ranges(s, &count);
	assert_int_equal(count, 0);
	snapshot_free(s);
}

static void
rules_keep_their_identity(void **state)
{
	struct snapshot *a = open_text(HEAD "allow:\n  - host: a.example\n  - host: b.example\n    uses: 3\n");
	struct snapshot *b = open_text(HEAD "\n\nallow:\n  - host: c.example\n  - host: b.example\n    uses: 5\n"
					    "  - host: a.example\n    ports: 22\n");

	(void)state;
	assert_int_equal(snapshot_rule_id(a, 1), snapshot_rule_id(b, 1));
	assert_int_not_equal(snapshot_rule_id(a, 0), snapshot_rule_id(a, 1));
	assert_int_not_equal(snapshot_rule_id(a, 0), snapshot_rule_id(b, 2));
	assert_int_not_equal(snapshot_rule_id(a, 0), 0);
	assert_int_equal(snapshot_rule_id(a, SNAPSHOT_NO_RULE), 0);
	assert_int_not_equal(snapshot_derive_rule_id("allow a.example", "edit by uid 1", false),
	    snapshot_derive_rule_id("allow a.example", "edit by uid 2", false));
	assert_int_equal(snapshot_derive_rule_id("allow a.example", "p.yaml:1", false),
	    snapshot_derive_rule_id("allow a.example", "p.yaml:22", false));
	assert_int_not_equal(snapshot_derive_rule_id("allow a.example", "p.yaml:1", false),
	    snapshot_derive_rule_id("allow a.example", "p.yaml:1", true));
	assert_int_not_equal(snapshot_derive_rule_id("a", "bc", false), snapshot_derive_rule_id("ab", "c", false));
	snapshot_free(a);
	snapshot_free(b);
}

/* Terms that no parser writes are not compiled. */
static void
impossible_terms_are_refused(void **state)
{
	static const struct rule bad[] = {
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .expires_us = -1},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .expires_us = 1, .expires_after_s = 1},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .uses = RULE_USES_MAX + 1},
	    {.action = RULE_DENY, .uses = 1},
	    {.action = RULE_DENY, .bound = true},
	    {.action = RULE_DENY, .limits.of[LIMIT_UPLOAD] = {1, 1}},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .limits.of[LIMIT_UPLOAD] = {0, 1}},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .limits.of[LIMIT_UPLOAD] = {2, 1}},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .limits.of[LIMIT_UPLOAD] = {1, LIMIT_BYTES_MAX + 1}},
	    {.action = RULE_ALLOW, .proto = IPPROTO_TCP, .limits.of[LIMIT_DNS_QUERIES_PER_SECOND] = {1, 1}},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct rule rule = bad[i];
		struct policy policy = {.rules = &rule, .rule_count = 1};
		struct error err = {0};

		assert_int_equal(rule_set_host(&rule, "a.example", 9, &err), 0);
		if (snapshot_compile(&policy, &err) >= 0)
			fail_msg("row %zu was compiled", i);
		assert_int_equal(err.code, ERROR_POLICY);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(rules_end_at_their_deadline),
	    cmocka_unit_test(deadlines_are_seen_by_every_question),
	    cmocka_unit_test(used_up_rules_are_no_rules),
	    cmocka_unit_test(limits_travel_with_the_block),
	    cmocka_unit_test(subdomains_are_the_host_and_all_below),
	    cmocka_unit_test(places_are_denied),
	    cmocka_unit_test(unknown_places_are_refused),
	    cmocka_unit_test(unknown_places_are_refused),
	    cmocka_unit_test(bounds_allow_nothing_by_themselves),
	    cmocka_unit_test(learning_allows_nothing_unasked),
	    cmocka_unit_test(rules_keep_their_identity),
	    cmocka_unit_test(impossible_terms_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
