/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each step of the precedence, and what it says: one policy, one row for each case. */
#include "policy/text/policy.h"
#include "policy/verdict.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define LEASES_MAX 4
/* 2000-01-01T00:00:05Z: what ends at 00:00:01 has ended. */
#define NOW_US INT64_C(946684805000000)

static struct snapshot *
compile(const char *text)
{
	struct policy policy;
	struct snapshot *snapshot;
	struct error err;
	int fd;

	if (policy_parse(text, strlen(text), "p.yaml", &policy, &err) < 0)
		fail_msg("%s", err.text);
	fd = snapshot_compile(&policy, &err);
	policy_free(&policy);
	snapshot = fd < 0 ? NULL : snapshot_open(fd, &err);
	if (snapshot == NULL)
		fail_msg("%s", err.text);
	close(fd);
	return snapshot;
}

static struct name
name_of(const char *text)
{
	struct name name = {.len = 0};

	if (text[0] != '\0')
		assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

struct row {
	const char *addr;               /* NULL: not known */
	const char *leases[LEASES_MAX]; /* "-name": its time is over */
	enum verdict_naming naming;
	const char *name;
	enum name_source source;
	uint16_t port;
	uint8_t proto; /* 0: TCP */
	/* What is wanted. */
	enum reason reason;
	const char *rule; /* its text; "" for none */
	enum name_source by;
	const char *proven;
	bool learned;
	const char *detail; /* NULL: none */
	/* Seldom. */
	struct addr_place place;
	bool placed, pardoned, ech, behind_kernel;
	enum verdict_route route;
};

struct walk {
	struct name names[LEASES_MAX];
	int64_t left_ms[LEASES_MAX];
	size_t count, at;
};

static bool
walk_next(void *context, struct verdict_lease *ret_lease)
{
	struct walk *walk = context;

	if (walk->at == walk->count)
		return false;
	*ret_lease =
	    (struct verdict_lease){.name = &walk->names[walk->at], .left_ms = walk->left_ms[walk->at], .dns_us = 7};
	walk->at++;
	return true;
}

static struct judgement
judge(const struct snapshot *policy, const struct row *row, struct verdict_trace *trace)
{
	struct walk walk = {.count = 0};
	struct name name = name_of(row->name == NULL ? "" : row->name);
	struct addr addr;
	struct verdict_case what = {.policy = policy,
	    .now_us = NOW_US,
	    .proto = row->proto == 0 ? IPPROTO_TCP : row->proto,
	    .port = row->port,
	    .addr = row->addr == NULL ? NULL : &addr,
	    .place = row->placed ? &row->place : NULL,
	    .place_pardoned = row->pardoned,
	    .route = row->route,
	    .naming = row->naming,
	    .name = &name,
	    .source = row->source,
	    .ech = row->ech,
	    .behind_kernel = row->behind_kernel,
	    .lease_next = walk_next,
	    .walk = &walk};

	if (row->addr != NULL)
		assert_true(addr_parse(row->addr, strlen(row->addr), &addr));
	for (; walk.count < LEASES_MAX && row->leases[walk.count] != NULL; walk.count++) {
		bool over = row->leases[walk.count][0] == '-';

		walk.names[walk.count] = name_of(row->leases[walk.count] + over);
		walk.left_ms[walk.count] = over ? 0 : 1000;
	}
	return verdict_judge(&what, trace);
}

static void
rows_check(const struct snapshot *policy, const struct row *rows, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct row *row = &rows[i];
		struct verdict_trace trace;
		struct judgement got = judge(policy, row, NULL), traced = judge(policy, row, &trace);
		const char *rule = snapshot_rule_text(policy, got.rule),
			   *proven = row->proven == NULL ? "" : row->proven;
		const char *detail = got.detail == NULL ? "" : got.detail;

		if (got.reason != row->reason || strcmp(rule, row->rule == NULL ? "" : row->rule) != 0 ||
		    got.source != row->by || strcmp(got.name.text, proven) != 0 || got.learned != row->learned ||
		    strcmp(detail, row->detail == NULL ? "" : row->detail) != 0)
			fail_msg("row %zu: %s by '%s', name '%s' of %d, learned %d, detail '%s'", i,
			    reason_text(got.reason), rule, got.name.text, (int)got.source, got.learned, detail);
		assert_int_equal(got.verdict, row->reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED);
		assert_int_equal(traced.reason, got.reason);
		assert_int_equal(traced.rule, got.rule);
		assert_in_range(trace.count, 0, VERDICT_STEPS_MAX);
	}
}

static const char policy_text[] = "version: 1\n"
				  "allow:\n"
				  "  - host: a.example.com\n    ports: [22, 443, 80]\n"
				  "  - host: b.example.com\n    ports: [22]\n"
				  "  - host: gone.example.com\n    ports: [22]\n    expires: 2000-01-01T00:00:01Z\n"
				  "  - host: voice.example.com\n    ports: [5000]\n    udp: true\n"
				  "  - cidr: 45.45.0.0/16\n    ports: [22, 443, 80]\n"
				  "  - cidr: 2600:45::/32\n    ports: [22, 443]\n"
				  "  - cidr: 47.47.0.0/16\n    ports: [22, 443]\n    expires: 2000-01-01T00:00:01Z\n"
				  "deny:\n"
				  "  - host: bad.example.com\n"
				  "  - cidr: 45.45.66.0/24\n"
				  "  - cidr: 2600:46::/32\n";

#define A "allow a.example.com:22,80,443"
#define B "allow b.example.com:22"
#define GONE "allow gone.example.com:22"
#define BAD "deny bad.example.com"
#define CIDR "allow 45.45.0.0/16:22,80,443"
#define CIDR6 "allow [2600:45::/32]:22,443"
#define ENDED "allow 47.47.0.0/16:22,443"
#define ELSEWHERE "93.184.216.34"
#define WITHOUT_LEASE "the name is allowed, but this sandbox did not resolve it to this address"

static void
addresses_come_first(void **state)
{
	static const struct row rows[] = {
	    {"10.0.0.1", {"a.example.com"}, .port = 22, .reason = REASON_NEVER_ADDRESS, .detail = "private use"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .route = VERDICT_ROUTE_HOST, .reason = REASON_NEVER_ADDRESS,
		.detail = "an address of the host itself"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .route = VERDICT_ROUTE_UNKNOWN, .reason = REASON_INTERNAL_ERROR,
		.detail = "the kernel did not answer a route lookup"},
	    {"45.45.66.1", {"a.example.com"}, .port = 22, .reason = REASON_RULE_DENY, .rule = "deny 45.45.66.0/24"},
	    {"2600:46::1", {"a.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_RULE_DENY, .rule = "deny [2600:46::/32]"},
	    {"45.45.66.1", .naming = VERDICT_PROVEN, .name = "a.example.com", .port = 22, .reason = REASON_RULE_DENY,
		.rule = "deny 45.45.66.0/24"},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
any_leased_name_will_do_where_none_is_said(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {NULL}, .port = 22, .reason = REASON_NOT_LEASED},
	    {ELSEWHERE, {"-a.example.com"}, .port = 22, .reason = REASON_NOT_LEASED},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .reason = REASON_ALLOWED, .rule = A, .by = NAME_SOURCE_LEASE,
		.proven = "a.example.com"},
	    {ELSEWHERE, {"a.example.com"}, .port = 23, .reason = REASON_NO_RULE, .by = NAME_SOURCE_LEASE,
		.proven = "a.example.com"},
	    /* The first that is allowed; what speaks against others does not matter. */
	    {ELSEWHERE, {"bad.example.com", "gone.example.com", "b.example.com", "a.example.com"}, .port = 22,
		.reason = REASON_ALLOWED, .rule = B, .by = NAME_SOURCE_LEASE, .proven = "b.example.com"},
	    /* Of refusals: a deny rule's, one for an end, the first. */
	    {ELSEWHERE, {"x.example.com", "gone.example.com", "bad.example.com"}, .port = 22,
		.reason = REASON_RULE_DENY, .rule = BAD, .by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	    {ELSEWHERE, {"x.example.com", "gone.example.com"}, .port = 22, .reason = REASON_EXPIRED, .rule = GONE,
		.by = NAME_SOURCE_LEASE, .proven = "gone.example.com"},
	    {ELSEWHERE, {"x.example.com", "y.example.com"}, .port = 22, .reason = REASON_NO_RULE,
		.by = NAME_SOURCE_LEASE, .proven = "x.example.com"},
	    {ELSEWHERE, {"voice.example.com"}, .port = 5000, .proto = IPPROTO_UDP, .reason = REASON_ALLOWED,
		.rule = "allow voice.example.com:5000/udp", .by = NAME_SOURCE_LEASE, .proven = "voice.example.com"},
	    {ELSEWHERE, {"voice.example.com"}, .port = 5000, .reason = REASON_NO_RULE, .by = NAME_SOURCE_LEASE,
		.proven = "voice.example.com"},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
a_name_that_is_said_must_be_leased(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {"b.example.com", "a.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_ALLOWED, .rule = A, .by = NAME_SOURCE_SNI, .proven = "a.example.com"},
	    {ELSEWHERE, {"-a.example.com", "b.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_SNI_MISMATCH, .rule = A, .by = NAME_SOURCE_CLAIM, .proven = "a.example.com",
		.detail = WITHOUT_LEASE},
	    {ELSEWHERE, {NULL}, VERDICT_SAID, "a.example.com", NAME_SOURCE_HOST, 80, .reason = REASON_HOST_MISMATCH,
		.rule = A, .by = NAME_SOURCE_CLAIM, .proven = "a.example.com", .detail = WITHOUT_LEASE},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "x.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_NO_RULE, .by = NAME_SOURCE_CLAIM, .proven = "x.example.com"},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "bad.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_RULE_DENY, .rule = BAD, .by = NAME_SOURCE_CLAIM, .proven = "bad.example.com"},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "metadata.google.internal", NAME_SOURCE_SNI, 443,
		.reason = REASON_NEVER_NAME, .by = NAME_SOURCE_CLAIM, .proven = "metadata.google.internal"},
	    /* Nothing said: an address rule alone lets it through. */
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_SNI_MISSING},
	    {ELSEWHERE, {NULL}, VERDICT_SILENT, NULL, NAME_SOURCE_HOST, 80, .reason = REASON_HOST_MISMATCH},
	    {ELSEWHERE, {"bad.example.com"}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_RULE_DENY,
		.rule = BAD, .by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	    {"45.45.1.1", {"a.example.com"}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = CIDR, .by = NAME_SOURCE_CIDR},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443, .ech = true,
		.reason = REASON_ALLOWED, .rule = A, .by = NAME_SOURCE_SNI, .proven = "a.example.com"},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
an_address_rule_lets_through_what_no_name_does(void **state)
{
	static const struct row rows[] = {
	    {"45.45.1.1", {NULL}, .port = 22, .reason = REASON_ALLOWED, .rule = CIDR, .by = NAME_SOURCE_CIDR},
	    {"2600:45::1", {"x.example.com"}, .port = 22, .reason = REASON_ALLOWED, .rule = CIDR6,
		.by = NAME_SOURCE_CIDR},
	    {"45.45.1.1", {"a.example.com"}, .port = 22, .reason = REASON_ALLOWED, .rule = A, .by = NAME_SOURCE_LEASE,
		.proven = "a.example.com"},
	    {"45.45.1.1", {"bad.example.com"}, .port = 22, .reason = REASON_RULE_DENY, .rule = BAD,
		.by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	    {"45.45.1.1", {"bad.example.com"}, VERDICT_UNHEARD, .port = 443, .reason = REASON_ALLOWED, .rule = CIDR,
		.by = NAME_SOURCE_CIDR},
	    {"45.45.1.1", {NULL}, VERDICT_SAID, "x.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = CIDR, .by = NAME_SOURCE_CIDR, .proven = "x.example.com"},
	    {"45.45.1.1", {NULL}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = CIDR, .by = NAME_SOURCE_CIDR, .proven = "a.example.com"},
	    {"45.45.1.1", {NULL}, VERDICT_SAID, "bad.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_RULE_DENY,
		.rule = BAD, .by = NAME_SOURCE_CLAIM, .proven = "bad.example.com"},
	    {"45.45.1.1", {NULL}, VERDICT_SAID, "metadata.google.internal", NAME_SOURCE_HOST, 80,
		.reason = REASON_NEVER_NAME, .by = NAME_SOURCE_CLAIM, .proven = "metadata.google.internal"},
	    /* One that has ended gives its reason to a want, not to a refusal that has one of its own. */
	    {"47.47.1.1", {NULL}, .port = 22, .reason = REASON_EXPIRED, .rule = ENDED},
	    {"47.47.1.1", {"x.example.com"}, .port = 22, .reason = REASON_EXPIRED, .rule = ENDED,
		.by = NAME_SOURCE_LEASE, .proven = "x.example.com"},
	    {"47.47.1.1", {"bad.example.com"}, .port = 22, .reason = REASON_RULE_DENY, .rule = BAD,
		.by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	    {"47.47.1.1", {"a.example.com"}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_SNI_MISSING},
	    {"47.47.1.1", {NULL}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_EXPIRED, .rule = ENDED},
	    {"47.47.1.1", {NULL}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_SNI_MISMATCH,
		.rule = A, .by = NAME_SOURCE_CLAIM, .proven = "a.example.com", .detail = WITHOUT_LEASE},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

/* A live connection, a record: leases are not asked, and what was never proven stays so. */
static void
a_record_is_judged_by_its_name(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {NULL}, VERDICT_PROVEN, "a.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = A, .by = NAME_SOURCE_SNI, .proven = "a.example.com"},
	    {NULL, {NULL}, VERDICT_PROVEN, "a.example.com", NAME_SOURCE_LEASE, 22, .reason = REASON_ALLOWED, .rule = A,
		.by = NAME_SOURCE_LEASE, .proven = "a.example.com"},
	    {ELSEWHERE, {NULL}, VERDICT_PROVEN, "x.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_NO_RULE,
		.by = NAME_SOURCE_CLAIM, .proven = "x.example.com"},
	    {"45.45.1.1", {NULL}, VERDICT_PROVEN, "x.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = CIDR, .by = NAME_SOURCE_CIDR, .proven = "x.example.com"},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_UNPROVEN, "a.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_SNI_MISMATCH, .rule = A, .by = NAME_SOURCE_CLAIM, .proven = "a.example.com",
		.detail = WITHOUT_LEASE},
	    {"45.45.1.1", {NULL}, VERDICT_UNPROVEN, "a.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = CIDR, .by = NAME_SOURCE_CIDR, .proven = "a.example.com"},
	    {"45.45.1.1", {NULL}, VERDICT_UNPROVEN, "bad.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_RULE_DENY,
		.rule = BAD, .by = NAME_SOURCE_CLAIM, .proven = "bad.example.com"},
	    /* Without a name: a lease of a denied one does not cut what an address rule allows. */
	    {"45.45.1.1", {"bad.example.com"}, VERDICT_UNPROVEN, "", .port = 22, .reason = REASON_ALLOWED, .rule = CIDR,
		.by = NAME_SOURCE_CIDR},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_UNPROVEN, "", .port = 22, .reason = REASON_NOT_LEASED},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
a_place_that_is_not_known_is_the_denied_one(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"DE", 1}, .reason = REASON_ALLOWED,
		.rule = "allow a.example.com:22", .by = NAME_SOURCE_LEASE, .proven = "a.example.com"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"KP", 1}, .reason = REASON_RULE_DENY,
		.rule = "deny country:KP"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"", 1}, .reason = REASON_PLACE_UNKNOWN,
		.rule = "deny country:KP"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"DE", 0},
		.reason = REASON_PLACE_UNKNOWN, .rule = "deny asn:64500"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"", 0}, .pardoned = true,
		.reason = REASON_ALLOWED, .rule = "allow a.example.com:22", .by = NAME_SOURCE_LEASE,
		.proven = "a.example.com"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .placed = true, .place = {"", 64500}, .pardoned = true,
		.reason = REASON_RULE_DENY, .rule = "deny asn:64500"},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .reason = REASON_ALLOWED, .rule = "allow a.example.com:22",
		.by = NAME_SOURCE_LEASE, .proven = "a.example.com"},
	};
	struct snapshot *policy = compile("version: 1\nallow:\n  - host: a.example.com\n    ports: [22]\n"
					  "deny:\n  - country: KP\n  - asn: 64500\n");

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
learning_lets_through_what_nothing_speaks_against(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {"x.example.com"}, .port = 9000, .reason = REASON_ALLOWED, .by = NAME_SOURCE_LEASE,
		.proven = "x.example.com", .learned = true},
	    /* A rule that allows goes before what is learned; either before a refusal. */
	    {ELSEWHERE, {"bad.example.com", "x.example.com", "a.example.com"}, .port = 22, .reason = REASON_ALLOWED,
		.rule = "allow a.example.com:22", .by = NAME_SOURCE_LEASE, .proven = "a.example.com"},
	    {ELSEWHERE, {"bad.example.com", "x.example.com"}, .port = 22, .reason = REASON_ALLOWED,
		.by = NAME_SOURCE_LEASE, .proven = "x.example.com", .learned = true},
	    {"45.45.1.1", {"x.example.com"}, .port = 22, .reason = REASON_ALLOWED, .rule = "allow 45.45.0.0/16:22",
		.by = NAME_SOURCE_CIDR},
	    {ELSEWHERE, {"x.example.com"}, .port = 9000, .proto = IPPROTO_UDP, .reason = REASON_NO_RULE,
		.by = NAME_SOURCE_LEASE, .proven = "x.example.com"},
	    {ELSEWHERE, {NULL}, .port = 9000, .reason = REASON_NOT_LEASED},
	    {ELSEWHERE, {"x.example.com"}, VERDICT_SAID, "x.example.com", NAME_SOURCE_SNI, 443,
		.reason = REASON_ALLOWED, .by = NAME_SOURCE_SNI, .proven = "x.example.com", .learned = true},
	    {ELSEWHERE, {NULL}, VERDICT_SAID, "x.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_SNI_MISMATCH,
		.by = NAME_SOURCE_CLAIM, .proven = "x.example.com", .detail = WITHOUT_LEASE},
	    {ELSEWHERE, {NULL}, VERDICT_PROVEN, "x.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.by = NAME_SOURCE_SNI, .proven = "x.example.com", .learned = true},
	    {ELSEWHERE, {"x.example.com"}, VERDICT_SILENT, NULL, NAME_SOURCE_SNI, 443, .reason = REASON_SNI_MISSING},
	    /* The kernel lets every public address in, over TCP. */
	    {ELSEWHERE, {"bad.example.com"}, .port = 22, .behind_kernel = true, .reason = REASON_RULE_DENY, .rule = BAD,
		.by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	};
	struct snapshot *policy =
	    compile("version: 1\nmode: learn\nallow:\n  - host: a.example.com\n    ports: [22]\n"
		    "  - cidr: 45.45.0.0/16\n    ports: [22]\ndeny:\n  - host: bad.example.com\n");

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
the_kernel_refuses_first_what_no_set_holds(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {"x.example.com"}, .port = 22, .behind_kernel = true, .reason = REASON_NOT_LEASED},
	    {ELSEWHERE, {"bad.example.com"}, .port = 22, .behind_kernel = true, .reason = REASON_NOT_LEASED},
	    {ELSEWHERE, {"x.example.com"}, .port = 5000, .proto = IPPROTO_UDP, .behind_kernel = true,
		.reason = REASON_UDP_DENIED},
	    {ELSEWHERE, {"a.example.com"}, .port = 22, .behind_kernel = true, .reason = REASON_ALLOWED, .rule = A,
		.by = NAME_SOURCE_LEASE, .proven = "a.example.com"},
	    {"45.45.1.1", {"bad.example.com"}, .port = 22, .behind_kernel = true, .reason = REASON_RULE_DENY,
		.rule = BAD, .by = NAME_SOURCE_LEASE, .proven = "bad.example.com"},
	    {"47.47.1.1", {NULL}, .port = 22, .behind_kernel = true, .reason = REASON_EXPIRED, .rule = ENDED},
	    {"47.47.1.1", {NULL}, .port = 23, .behind_kernel = true, .reason = REASON_NOT_LEASED},
	    {"45.45.66.1", {NULL}, .port = 22, .behind_kernel = true, .reason = REASON_RULE_DENY,
		.rule = "deny 45.45.66.0/24"},
	};
	struct snapshot *policy = compile(policy_text);

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
ech_is_refused_last(void **state)
{
	static const struct row rows[] = {
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI, 443, .ech = true,
		.reason = REASON_ECH},
	    {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "x.example.com", NAME_SOURCE_SNI, 443, .ech = true,
		.reason = REASON_NO_RULE, .by = NAME_SOURCE_CLAIM, .proven = "x.example.com"},
	    {ELSEWHERE, {NULL}, VERDICT_PROVEN, "a.example.com", NAME_SOURCE_SNI, 443, .ech = true,
		.reason = REASON_ECH},
	    {ELSEWHERE, {NULL}, VERDICT_PROVEN, "a.example.com", NAME_SOURCE_SNI, 443, .reason = REASON_ALLOWED,
		.rule = "allow a.example.com", .by = NAME_SOURCE_SNI, .proven = "a.example.com"},
	};
	struct snapshot *policy = compile("version: 1\nech: deny\nallow:\n  - host: a.example.com\n");

	(void)state;
	rows_check(policy, rows, COUNT(rows));
	snapshot_free(policy);
}

static void
question_check(const struct snapshot *policy, const char *text, enum reason reason, const char *rule)
{
	struct name name = name_of(text);
	struct judgement got = verdict_question(policy, &name, NOW_US);

	if (got.reason != reason || strcmp(snapshot_rule_text(policy, got.rule), rule) != 0)
		fail_msg("%s: %s by '%s'", text, reason_text(got.reason), snapshot_rule_text(policy, got.rule));
	assert_int_equal(got.verdict, reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED);
}

static void
questions(void **state)
{
	struct snapshot *policy = compile(policy_text);

	(void)state;
	question_check(policy, "a.example.com", REASON_ALLOWED, A);
	question_check(policy, "voice.example.com", REASON_ALLOWED, "allow voice.example.com:5000/udp");
	question_check(policy, "x.example.com", REASON_NO_RULE, "");
	question_check(policy, "bad.example.com", REASON_RULE_DENY, BAD);
	question_check(policy, "gone.example.com", REASON_EXPIRED, GONE);
	question_check(policy, "metadata.google.internal", REASON_NEVER_NAME, "");
	snapshot_free(policy);
	policy = compile("version: 1\nmode: learn\ndeny:\n  - host: bad.example.com\n");
	question_check(policy, "x.example.com", REASON_ALLOWED, "");
	question_check(policy, "bad.example.com", REASON_RULE_DENY, BAD);
	snapshot_free(policy);
}

/* The trace has the steps that were taken, up to the one that decided. */
static void
the_trace_ends_at_what_decided(void **state)
{
	static const struct row never = {"10.0.0.1", .port = 22}, denied = {"45.45.66.1", .port = 22},
				said = {ELSEWHERE, {"a.example.com"}, VERDICT_SAID, "a.example.com", NAME_SOURCE_SNI,
				    443, .proto = IPPROTO_TCP},
				leased = {"47.47.1.1", {"x.example.com"}, .port = 22};
	struct snapshot *policy = compile(policy_text);
	struct verdict_trace trace;

	(void)state;
	judge(policy, &never, &trace);
	assert_int_equal(trace.count, 1);
	assert_int_equal(trace.steps[0].reason, REASON_NEVER_ADDRESS);
	judge(policy, &denied, &trace);
	assert_int_equal(trace.count, 2);
	assert_int_equal(trace.steps[1].stage, VERDICT_STAGE_ADDRESS);
	assert_string_equal(snapshot_rule_text(policy, trace.steps[1].rule), "deny 45.45.66.0/24");
	judge(policy, &said, &trace);
	assert_int_equal(trace.count, 4);
	assert_int_equal(trace.steps[2].stage, VERDICT_STAGE_NAME);
	assert_int_equal(trace.steps[3].stage, VERDICT_STAGE_LEASE);
	assert_int_equal(trace.steps[3].left_ms, 1000);
	judge(policy, &leased, &trace);
	assert_int_equal(trace.count, 4);
	assert_string_equal(snapshot_rule_text(policy, trace.steps[1].lapsed), ENDED);
	assert_int_equal(trace.steps[2].stage, VERDICT_STAGE_LEASE);
	assert_int_equal(trace.steps[3].reason, REASON_NO_RULE);
	snapshot_free(policy);
}

static void
words_are_words(void **state)
{
	(void)state;
	assert_string_equal(verdict_text(VERDICT_ALLOWED), "allowed");
	assert_string_equal(verdict_text(VERDICT_MAX), "?");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(addresses_come_first),
	    cmocka_unit_test(any_leased_name_will_do_where_none_is_said),
	    cmocka_unit_test(a_name_that_is_said_must_be_leased),
	    cmocka_unit_test(an_address_rule_lets_through_what_no_name_does),
	    cmocka_unit_test(a_record_is_judged_by_its_name),
	    cmocka_unit_test(a_place_that_is_not_known_is_the_denied_one),
	    cmocka_unit_test(learning_lets_through_what_nothing_speaks_against),
	    cmocka_unit_test(the_kernel_refuses_first_what_no_set_holds),
	    cmocka_unit_test(ech_is_refused_last),
	    cmocka_unit_test(questions),
	    cmocka_unit_test(the_trace_ends_at_what_decided),
	    cmocka_unit_test(words_are_words),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
