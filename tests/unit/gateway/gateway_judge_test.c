/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the data path gathers for a verdict: leases and their ends, places, routes, the hello; each reason that comes of
 * it, over IPv4 and IPv6. */
#include "base/clock.h"
#include "gateway/path/judge.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include <sched.h>
#include <stdlib.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define HOST4 "5.6.7.8"
#define HOST6 "2a00:1::8"

static struct gateway gateway;
static struct sandbox sandbox;
static bool has_host_addresses;

static const char policy_text[] = "version: 1\nech: deny\nallow:\n"
				  "  - {host: a.example.com, ports: [22, 80, 443]}\n"
				  "  - {host: gone.example.com, ports: [22], expires: 2000-01-01T00:00:00Z}\n"
				  "  - {host: voice.example.com, ports: [5000], udp: true}\n"
				  "  - {cidr: 45.46.0.0/16, ports: [22, 443]}\n"
				  "  - {cidr: \"2600:46::/32\", ports: [22, 443]}\n"
				  "  - {cidr: 45.47.0.0/16, ports: [22], expires: 2000-01-01T00:00:00Z}\n"
				  "  - {cidr: \"2600:47::/32\", ports: [22], expires: 2000-01-01T00:00:00Z}\n"
				  "deny:\n"
				  "  - host: bad.example.com\n"
				  "  - cidr: 45.48.0.0/16\n"
				  "  - cidr: \"2600:48::/32\"\n";

static struct snapshot *
compiled(const char *text)
{
	struct policy policy;
	struct error err;

	if (policy_parse(text, strlen(text), "p.yaml", &policy, &err) < 0)
		fail_msg("%s", err.text);
	return snapshot_of_own(&policy);
}

static struct addr
addr_of(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

static struct name
name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

static void
lease(const char *name_text, const char *addr_text, uint32_t lifetime_s)
{
	struct name name = name_of(name_text);
	struct addr addr = addr_of(addr_text);

	assert_int_equal(lease_add(&sandbox.leases, &name, &addr, lifetime_s, 5000), 0);
}

static int
group_setup(void **state)
{
	(void)state;
	has_host_addresses = (unshare(CLONE_NEWNET) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) == 0) &&
	    system("ip link set lo up && ip address add " HOST4 "/32 dev lo && ip address add " HOST6
		   "/128 dev lo nodad") == 0;
	return 0;
}

static int
setup(void **state)
{
	(void)state;
	memset(&gateway, 0, sizeof(gateway));
	memset(&sandbox, 0, sizeof(sandbox));
	assert_int_equal(route_open(&gateway.route), 0);
	sandbox.gateway = &gateway;
	sandbox.policy = compiled(policy_text);
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	route_close(&gateway.route);
	snapshot_free(sandbox.policy);
	lease_table_free(&sandbox.leases);
	clock_skew_ms(0);
	return 0;
}

static struct judgement
raw(const char *addr_text, uint8_t proto, uint16_t port)
{
	struct addr addr = addr_of(addr_text);

	return judge_attempt(&sandbox, &addr, proto, port, NULL);
}

/* said NULL: nothing. */
static struct judgement
inspected(const char *addr_text, uint16_t port, const char *said, bool ech)
{
	struct addr addr = addr_of(addr_text);
	struct name name = said == NULL ? (struct name){.len = 0} : name_of(said);
	struct judge_claim claim = {.naming = said == NULL ? VERDICT_SILENT : VERDICT_SAID,
	    .source = port == 80 ? NAME_SOURCE_HOST : NAME_SOURCE_SNI,
	    .name = said == NULL ? NULL : &name,
	    .ech = ech};

	return judge_attempt(&sandbox, &addr, IPPROTO_TCP, port, &claim);
}

static void
expect(struct judgement got, enum reason reason, const char *rule, enum name_source source, const char *name)
{
	if (got.reason != reason || strcmp(snapshot_rule_text(sandbox.policy, got.rule), rule) != 0 ||
	    got.source != source || strcmp(got.name.text, name) != 0)
		fail_msg("%s by '%s', name '%s' of %d", reason_text(got.reason),
		    snapshot_rule_text(sandbox.policy, got.rule), got.name.text, (int)got.source);
	assert_int_equal(got.verdict, reason == REASON_ALLOWED ? VERDICT_ALLOWED : VERDICT_DENIED);
}

#define A "allow a.example.com:22,80,443"
#define NOTHING NAME_SOURCE_NONE, ""

static void
both_families_meet_each_reason(void **state)
{
	static const struct {
		const char *free, *cidr, *ended, *denied, *never;
		const char *cidr_rule, *ended_rule, *denied_rule;
	} families[] = {
	    {"93.184.216.34", "45.46.1.1", "45.47.1.1", "45.48.1.1", "10.0.0.1", "allow 45.46.0.0/16:22,443",
		"allow 45.47.0.0/16:22", "deny 45.48.0.0/16"},
	    {"2600:50::1", "2600:46::1", "2600:47::1", "2600:48::1", "fd00::1", "allow [2600:46::/32]:22,443",
		"allow [2600:47::/32]:22", "deny [2600:48::/32]"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(families); i++) {
		const char *free = families[i].free, *cidr = families[i].cidr;

		expect(raw(families[i].never, IPPROTO_TCP, 22), REASON_NEVER_ADDRESS, "", NOTHING);
		expect(raw(families[i].denied, IPPROTO_TCP, 22), REASON_RULE_DENY, families[i].denied_rule, NOTHING);
		expect(raw(families[i].ended, IPPROTO_TCP, 22), REASON_EXPIRED, families[i].ended_rule, NOTHING);
		expect(raw(cidr, IPPROTO_TCP, 22), REASON_ALLOWED, families[i].cidr_rule, NAME_SOURCE_CIDR, "");
		expect(raw(free, IPPROTO_TCP, 22), REASON_NOT_LEASED, "", NOTHING);
		expect(inspected(free, 443, NULL, false), REASON_SNI_MISSING, "", NOTHING);
		expect(inspected(free, 80, NULL, false), REASON_HOST_MISMATCH, "", NOTHING);
		expect(inspected(free, 443, "a.example.com", false), REASON_SNI_MISMATCH, A, NAME_SOURCE_CLAIM,
		    "a.example.com");
		expect(inspected(free, 80, "a.example.com", false), REASON_HOST_MISMATCH, A, NAME_SOURCE_CLAIM,
		    "a.example.com");
		expect(inspected(free, 443, "metadata.google.internal", false), REASON_NEVER_NAME, "",
		    NAME_SOURCE_CLAIM, "metadata.google.internal");
		expect(inspected(cidr, 443, "x.example.com", false), REASON_ALLOWED, families[i].cidr_rule,
		    NAME_SOURCE_CIDR, "x.example.com");
		lease("gone.example.com", free, 60);
		expect(raw(free, IPPROTO_TCP, 22), REASON_EXPIRED, "allow gone.example.com:22", NAME_SOURCE_LEASE,
		    "gone.example.com");
		expect(raw(free, IPPROTO_TCP, 23), REASON_NO_RULE, "", NAME_SOURCE_LEASE, "gone.example.com");
		lease("bad.example.com", free, 60);
		expect(raw(free, IPPROTO_TCP, 22), REASON_RULE_DENY, "deny bad.example.com", NAME_SOURCE_LEASE,
		    "bad.example.com");
		lease("a.example.com", free, 60);
		expect(raw(free, IPPROTO_TCP, 22), REASON_ALLOWED, A, NAME_SOURCE_LEASE, "a.example.com");
		expect(
		    inspected(free, 443, "a.example.com", false), REASON_ALLOWED, A, NAME_SOURCE_SNI, "a.example.com");
		expect(inspected(free, 443, "a.example.com", true), REASON_ECH, "", NOTHING);
		expect(
		    inspected(free, 80, "a.example.com", false), REASON_ALLOWED, A, NAME_SOURCE_HOST, "a.example.com");
		lease("voice.example.com", free, 60);
		expect(raw(free, IPPROTO_UDP, 5000), REASON_ALLOWED, "allow voice.example.com:5000/udp",
		    NAME_SOURCE_LEASE, "voice.example.com");
	}
	assert_int_equal(raw("93.184.216.34", IPPROTO_TCP, 22).dns_us, 5000);
}

static void
a_lease_that_has_ended_proves_nothing(void **state)
{
	(void)state;
	lease("a.example.com", "93.184.216.34", 60);
	lease("a.example.com", "2600:50::1", 120);
	clock_skew_ms(61000);
	expect(raw("93.184.216.34", IPPROTO_TCP, 22), REASON_NOT_LEASED, "", NOTHING);
	expect(inspected("93.184.216.34", 443, "a.example.com", false), REASON_SNI_MISMATCH, A, NAME_SOURCE_CLAIM,
	    "a.example.com");
	expect(raw("2600:50::1", IPPROTO_TCP, 22), REASON_ALLOWED, A, NAME_SOURCE_LEASE, "a.example.com");
	clock_skew_ms(121000);
	expect(raw("2600:50::1", IPPROTO_TCP, 22), REASON_NOT_LEASED, "", NOTHING);
}

/* Of several names that may all, the newest lease's is named. */
static void
the_newest_lease_is_looked_at_first(void **state)
{
	(void)state;
	snapshot_free(sandbox.policy);
	sandbox.policy = compiled("version: 1\nallow:\n  - {host: a.example.com, ports: [22]}\n"
				  "  - {host: b.example.com, ports: [22]}\n");
	lease("a.example.com", "93.184.216.34", 60);
	lease("b.example.com", "93.184.216.34", 60);
	assert_string_equal(raw("93.184.216.34", IPPROTO_TCP, 22).name.text, "b.example.com");
	assert_string_equal(raw("93.184.216.34", IPPROTO_TCP, 23).name.text, "b.example.com");
}

static void
the_host_itself_is_out_of_reach(void **state)
{
	(void)state;
	if (!has_host_addresses)
		skip();
	lease("a.example.com", HOST4, 60);
	lease("a.example.com", HOST6, 60);
	expect(raw(HOST4, IPPROTO_TCP, 22), REASON_NEVER_ADDRESS, "", NOTHING);
	expect(raw(HOST6, IPPROTO_TCP, 22), REASON_NEVER_ADDRESS, "", NOTHING);
	assert_string_equal(raw(HOST4, IPPROTO_TCP, 22).detail, "an address of the host itself");
	/* The kernel does not answer: refused, not let through. */
	route_close(&gateway.route);
	expect(raw("93.184.216.34", IPPROTO_TCP, 22), REASON_INTERNAL_ERROR, "", NOTHING);
	assert_int_equal(route_open(&gateway.route), 0);
}

/* Without a database every address could be in the denied place, and the detail says what is missing. */
static void
a_place_without_a_database_is_not_known(void **state)
{
	struct judgement got;

	(void)state;
	snapshot_free(sandbox.policy);
	sandbox.policy = compiled("version: 1\nallow:\n  - host: a.example.com\ndeny:\n  - country: KP\n");
	lease("a.example.com", "93.184.216.34", 60);
	got = inspected("93.184.216.34", 443, "a.example.com", false);
	expect(got, REASON_PLACE_UNKNOWN, "deny country:KP", NOTHING);
	assert_non_null(strstr(got.detail, "--country-db"));
	assert_null(judge_place_detail(&sandbox, REASON_RULE_DENY));
}

static bool
still(const char *addr_text, uint16_t port, const char *name_text, enum name_source source, bool ech)
{
	struct addr addr = addr_of(addr_text);
	struct name name = name_text == NULL ? (struct name){.len = 0} : name_of(name_text);

	return judge_still_allows(&sandbox, &addr, IPPROTO_TCP, port, &name, source, ech);
}

/* No lease is asked; a name that was never proven does not begin to count. */
static void
what_lives_is_judged_by_its_record(void **state)
{
	static const struct {
		const char *addr;
		uint16_t port;
		const char *name;
		enum name_source source;
		bool ech, allowed;
	} cases[] = {
	    {"93.184.216.34", 443, "a.example.com", NAME_SOURCE_SNI, false, true},
	    {"2600:50::1", 443, "a.example.com", NAME_SOURCE_SNI, false, true},
	    {"93.184.216.34", 443, "a.example.com", NAME_SOURCE_SNI, true, false},
	    {"93.184.216.34", 443, "a.example.com", NAME_SOURCE_CIDR, false, false},
	    {"93.184.216.34", 443, "x.example.com", NAME_SOURCE_SNI, false, false},
	    {"45.46.1.1", 443, "x.example.com", NAME_SOURCE_CIDR, false, true},
	    {"45.46.1.1", 443, "x.example.com", NAME_SOURCE_SNI, false, true},
	    {"45.46.1.1", 443, "bad.example.com", NAME_SOURCE_CIDR, false, false},
	    {"45.46.1.1", 22, NULL, NAME_SOURCE_CIDR, false, true},
	    {"2600:46::1", 22, NULL, NAME_SOURCE_CIDR, false, true},
	    {"45.47.1.1", 22, NULL, NAME_SOURCE_CIDR, false, false},
	    {"45.48.1.1", 22, "a.example.com", NAME_SOURCE_LEASE, false, false},
	    {"10.0.0.1", 22, "a.example.com", NAME_SOURCE_LEASE, false, false},
	};

	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++)
		if (still(cases[i].addr, cases[i].port, cases[i].name, cases[i].source, cases[i].ech) !=
		    cases[i].allowed)
			fail_msg("case %zu", i);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(both_families_meet_each_reason, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_lease_that_has_ended_proves_nothing, setup, teardown),
	    cmocka_unit_test_setup_teardown(the_newest_lease_is_looked_at_first, setup, teardown),
	    cmocka_unit_test_setup_teardown(the_host_itself_is_out_of_reach, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_place_without_a_database_is_not_known, setup, teardown),
	    cmocka_unit_test_setup_teardown(what_lives_is_judged_by_its_record, setup, teardown),
	};

	return cmocka_run_group_tests(tests, group_setup, NULL);
}
