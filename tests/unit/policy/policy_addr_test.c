/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Addresses and the never list, against an oracle of this file's own: the CSV, read and matched bit by bit. */
#include "policy/names/addr.h"

#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROWS_MAX 256
#define RANDOM_ROUNDS 300000

struct oracle_row {
	int family;
	uint8_t bytes[16];
	unsigned int bits;
	bool env;
	char text[64];
};

static struct oracle_row rows[ROWS_MAX];
static size_t row_count;

static struct addr
parse(const char *text)
{
	struct addr addr;

	if (!addr_parse(text, strlen(text), &addr))
		fail_msg("cannot parse %s", text);
	return addr;
}

static const struct never_prefix *
never(const char *text)
{
	struct addr addr = parse(text);

	return addr_never(&addr);
}

static void
oracle_add(const char *prefix, const char *action)
{
	struct oracle_row *row = &rows[row_count];
	char text[64];
	char *slash;

	snprintf(text, sizeof(text), "%s", prefix);
	memcpy(row->text, text, sizeof(text));
	slash = strchr(text, '/');
	if (slash == NULL || prefix[0] == '<')
		return;
	*slash = '\0';
	row->bits = (unsigned int)atoi(slash + 1);
	row->env = strncmp(action, "env-", 4) == 0;
	row->family = strchr(text, ':') != NULL ? 6 : 4;
	assert_int_equal(inet_pton(row->family == 4 ? AF_INET : AF_INET6, text, row->bytes), 1);
	assert_true(row_count + 1 < ROWS_MAX);
	row_count++;
}

static int
oracle_load(void **state)
{
	FILE *file = fopen("policy/names/prefixes.csv", "r");
	char line[1024];

	(void)state;
	if (file == NULL) {
		fprintf(stderr, "policy/names/prefixes.csv: run the tests from the top of the tree\n");
		return -1;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		char *prefix = strtok(line, ","), *reachable = strtok(NULL, ","), *action = strtok(NULL, ",");

		if (reachable != NULL && action != NULL && strcmp(prefix, "prefix") != 0)
			oracle_add(prefix, action);
	}
	fclose(file);
	return row_count > 90 ? 0 : -1;
}

static bool
oracle_bit(const uint8_t *bytes, unsigned int bit)
{
	return (bytes[bit / 8] & (1u << (7 - bit % 8))) != 0;
}

/* The longest row that holds the address; NULL when none does. */
static const struct oracle_row *
oracle_find(int family, const uint8_t *bytes)
{
	const struct oracle_row *found = NULL;

	for (size_t i = 0; i < row_count; i++) {
		bool same = rows[i].family == family && !rows[i].env;

		for (unsigned int bit = 0; same && bit < rows[i].bits; bit++)
			same = oracle_bit(rows[i].bytes, bit) == oracle_bit(bytes, bit);
		if (same && (found == NULL || rows[i].bits > found->bits))
			found = &rows[i];
	}
	return found;
}

/* IPv6 in all: outside 2000::/3, on a row, or with an ISATAP interface id. */
static bool
oracle_refuses(int family, const uint8_t *bytes)
{
	static const uint8_t isatap[2][4] = {{0, 0, 0x5e, 0xfe}, {2, 0, 0x5e, 0xfe}};

	if (oracle_find(family, bytes) != NULL)
		return true;
	return family == 6 &&
	    ((bytes[0] & 0xe0) != 0x20 || memcmp(bytes + 8, isatap[0], 4) == 0 || memcmp(bytes + 8, isatap[1], 4) == 0);
}

static void
expect_oracle(int family, const uint8_t *bytes)
{
	struct addr addr = family == 4 ? addr_from_ipv4(bytes) : addr_from_ipv6(bytes);
	const struct oracle_row *expected = oracle_find(addr.family, addr.bytes);
	const struct never_prefix *row = addr_never(&addr);
	char text[ADDR_TEXT_MAX];

	if ((row != NULL) != oracle_refuses(addr.family, addr.bytes))
		fail_msg("%s: list says %s, oracle says %s", addr_format(&addr, text), row == NULL ? "pass" : row->text,
		    expected == NULL ? "none or pattern" : expected->text);
	if (row != NULL && expected != NULL && !row->embeds_ipv4 && strcmp(row->text, expected->text) != 0)
		fail_msg("%s: row %s, most specific is %s", addr_format(&addr, text), row->text, expected->text);
}

/* Add delta (1 or -1) to the whole number; false when it wraps. */
static bool
bytes_step(uint8_t *bytes, size_t size, int delta)
{
	for (size_t i = size; i-- > 0;) {
		int sum = bytes[i] + delta;

		bytes[i] = (uint8_t)sum;
		if (sum >= 0 && sum <= 255)
			return true;
	}
	return false;
}

static void
case_A_07_every_row_at_its_edges(void **state)
{
	(void)state;
	for (size_t i = 0; i < row_count; i++) {
		size_t size = rows[i].family == 4 ? 4 : 16;
		uint8_t first[16], last[16];

		memcpy(first, rows[i].bytes, 16);
		memcpy(last, rows[i].bytes, 16);
		for (unsigned int bit = rows[i].bits; bit < 8 * size; bit++)
			last[bit / 8] |= (uint8_t)(1u << (7 - bit % 8));
		expect_oracle(rows[i].family, first);
		expect_oracle(rows[i].family, last);
		if (bytes_step(first, size, -1))
			expect_oracle(rows[i].family, first);
		if (bytes_step(last, size, 1))
			expect_oracle(rows[i].family, last);
	}
}

static void
case_A_07_neighbours_pass(void **state)
{
	static const char *const pass[] = {"1.1.1.1", "9.255.255.255", "11.0.0.0", "100.63.255.255", "100.128.0.0",
	    "126.255.255.255", "128.0.0.0", "169.253.255.255", "169.255.0.0", "172.15.255.255", "172.32.0.0",
	    "191.255.255.255", "192.0.1.0", "192.0.3.0", "192.167.255.255", "192.169.0.0", "198.17.255.255",
	    "198.20.0.0", "223.255.255.255", "168.63.129.15", "168.63.129.17", "2001:200::", "2000::1", "2600::1",
	    "2620:4f:7fff:ffff::1", "3fff:1000::", "34.118.224.1"};

	(void)state;
	for (size_t i = 0; i < sizeof(pass) / sizeof(pass[0]); i++)
		if (never(pass[i]) != NULL)
			fail_msg("%s is refused as %s", pass[i], never(pass[i])->text);
}

static void
case_A_02_mapped_addresses_are_ipv4(void **state)
{
	static const char *const mapped[] = {
	    "::ffff:169.254.169.254", "::ffff:a9fe:a9fe", "::FFFF:A9FE:A9FE", "0:0:0:0:0:ffff:a9fe:a9fe"};
	struct sockaddr_in6 sin6 = {.sin6_family = AF_INET6};
	struct addr addr;

	(void)state;
	for (size_t i = 0; i < sizeof(mapped) / sizeof(mapped[0]); i++) {
		addr = parse(mapped[i]);
		assert_int_equal(addr.family, 4);
		assert_string_equal(addr_never(&addr)->text, "169.254.169.254/32");
	}
	assert_string_equal(never("::ffff:7f00:1")->text, "127.0.0.0/8");
	assert_null(never("::ffff:1.1.1.1"));
	inet_pton(AF_INET6, "::ffff:127.0.0.1", &sin6.sin6_addr);
	assert_string_equal(addr_verdict((const struct sockaddr *)&sin6)->text, "127.0.0.0/8");
	/* One that somebody built by hand is refused by the list itself. */
	addr = (struct addr){.family = 6, .bytes = {[10] = 0xff, [11] = 0xff, 1, 1, 1, 1}};
	assert_string_equal(addr_never(&addr)->text, "::ffff:0:0/96");
}

static void
case_A_03_nat64_is_named_after_its_ipv4(void **state)
{
	(void)state;
	assert_string_equal(never("64:ff9b::a9fe:a9fe")->text, "64:ff9b::a9fe:a9fe/128");
	assert_non_null(strstr(never("64:ff9b::a9fe:a9fe")->why, "169.254.169.254/32"));
	assert_true(never("64:ff9b::a9fe:a9fe")->embeds_ipv4);
	assert_non_null(strstr(never("64:ff9b::7f00:1")->why, "127.0.0.0/8"));
	assert_non_null(strstr(never("64:ff9b::a00:1")->why, "10.0.0.0/8"));
	/* A public IPv4 address inside is refused all the same. */
	assert_string_equal(never("64:ff9b::101:101")->text, "64:ff9b::/96");
	assert_true(never("64:ff9b::101:101")->embeds_ipv4);
	assert_non_null(never("64:ff9b:1::1"));
}

static void
case_A_05_tunnels(void **state)
{
	(void)state;
	assert_string_equal(never("2002:a00:1::")->text, "2002::/16");
	/* Teredo of client 127.0.0.1: the address XOR ffffffff. */
	assert_string_equal(never("2001:0:4136:e378:8000:63bf:80ff:fffe")->text, "2001::/32");
	assert_non_null(never("2600::5efe:10.0.0.1"));
	assert_non_null(strstr(never("2600::5efe:10.0.0.1")->why, "ISATAP"));
	assert_non_null(never("2600::200:5efe:a00:1"));
	assert_non_null(never("2600:1:2:3:0:5efe:101:101"));
	assert_non_null(never("fe80::5efe:10.0.0.1"));
	assert_null(never("2600::5eff:a00:1"));
	assert_null(never("2600::100:5efe:a00:1"));
	assert_null(never("2600::2:0:5efe"));
}

static void
case_A_08_unspecified_is_loopback(void **state)
{
	(void)state;
	assert_string_equal(never("0.0.0.0")->text, "0.0.0.0/32");
	assert_string_equal(never("0.1.2.3")->text, "0.0.0.0/8");
	assert_string_equal(never("::")->text, "::/128");
	assert_non_null(never("::1"));
	assert_non_null(never("::7f00:1"));
}

static void
case_A_09_cgnat(void **state)
{
	(void)state;
	assert_non_null(strstr(never("100.100.100.200")->why, "Alibaba"));
	assert_non_null(strstr(never("100.100.100.100")->why, "Tailscale"));
	assert_string_equal(never("100.64.0.1")->text, "100.64.0.0/10");
	assert_string_equal(never("100.127.255.255")->text, "100.64.0.0/10");
}

static void
case_A_10_wireserver_is_public_and_refused(void **state)
{
	const struct never_prefix *row;
	struct prefix prefix;

	(void)state;
	assert_non_null(strstr(never("168.63.129.16")->why, "Azure"));
	assert_true(addr_prefix_parse("168.63.0.0/16", 13, &prefix));
	assert_true(addr_prefix_touches_never(&prefix, &row));
	assert_string_equal(row->text, "168.63.129.16/32");
}

static void
case_A_11_reason_names_the_cloud(void **state)
{
	static const struct {
		const char *addr, *row, *word;
	} cases[] = {
	    {"fd00:ec2::254", "fd00:ec2::254/128", "AWS"},
	    {"fd20:ce::254", "fd20:ce::254/128", "GCP"},
	    {"fd00:42::42", "fd00:42::42/128", "Scaleway"},
	    {"fe80::a9fe:a9fe", "fe80::a9fe:a9fe/128", "OpenStack"},
	    {"fd00:c1::a9fe:a9fe", "fd00:c1::a9fe:a9fe/128", "Oracle"},
	    {"fdaa::3", "fdaa::/16", "Fly.io"},
	    {"fd7a:115c:a1e0::1", "fd7a:115c:a1e0::/48", "Tailscale"},
	    {"fd12::1", "fc00::/7", "unique local"},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_string_equal(never(cases[i].addr)->text, cases[i].row);
		assert_non_null(strstr(never(cases[i].addr)->why, cases[i].word));
	}
}

static uint64_t
random_next(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* A third anywhere, a third within 2000::/3, a third near a row: its first bits, the rest at random. */
static void
case_A_22_random_addresses_match_the_oracle(void **state)
{
	uint64_t seed = 0x706f737465726e;
	uint8_t bytes[16];

	(void)state;
	for (unsigned int round = 0; round < RANDOM_ROUNDS; round++) {
		const struct oracle_row *row = &rows[random_next(&seed) % row_count];
		uint64_t half[2] = {random_next(&seed), random_next(&seed)};

		memcpy(bytes, half, 16);
		if (round % 3 == 1)
			bytes[0] = (uint8_t)(0x20 | (bytes[0] & 0x1f));
		if (round % 3 == 2)
			memcpy(bytes, row->bytes, row->bits / 8);
		if (round % 5 == 0)
			memcpy(bytes + 8, round % 2 == 0 ? "\x00\x00\x5e\xfe" : "\x02\x00\x5e\xfe", 4);
		expect_oracle(6, bytes);
		expect_oracle(4, bytes + (round % 2) * 4);
	}
	assert_non_null(never("4000::1"));
	assert_non_null(never("1000::1"));
	assert_non_null(never("5f00::1"));
	assert_non_null(never("3ffe::1"));
	assert_non_null(never("fec0::1"));
}

static void
addresses_that_are_none_are_refused(void **state)
{
	struct sockaddr_storage sa = {.ss_family = AF_UNIX};
	struct addr addr = {.family = 0};
	char text[ADDR_TEXT_MAX];

	(void)state;
	assert_non_null(addr_never(&addr));
	assert_non_null(addr_verdict((const struct sockaddr *)&sa));
	assert_false(addr_from_sockaddr((const struct sockaddr *)&sa, &addr, NULL));
	assert_string_equal(addr_format(&addr, text), "none");
}

static void
sockaddr_round_trip(void **state)
{
	static const char *const texts[] = {"1.2.3.4", "2600::1"};
	struct sockaddr_storage sa;
	char text[ADDR_PORT_TEXT_MAX];
	struct addr addr, back;
	uint16_t port;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		addr = parse(texts[i]);
		assert_int_equal(addr_to_sockaddr(&addr, 443, &sa),
		    i == 0 ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
		assert_true(addr_from_sockaddr((const struct sockaddr *)&sa, &back, &port));
		assert_true(addr_equal(&addr, &back));
		assert_int_equal(port, 443);
		assert_string_equal(addr_format_port(&addr, port, text), i == 0 ? "1.2.3.4:443" : "[2600::1]:443");
	}
}

static void
case_A_16_strict_address_forms(void **state)
{
	static const char *const bad[] = {"", "2130706433", "0x7f.1", "0177.0.0.1", "127.1", "010.8.8.8", "1.2.3.4 ",
	    " 1.2.3.4", "1.2.3", "1.2.3.4.5", "1.2.3.256", "1.2.3.04", "fe80::1%eth0", "[::1]", ":::", "1::2::3",
	    "12345::", "0x01.2.3.4", "+1.2.3.4", "1.2.3.-4",
	    "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000:0000"};
	struct addr addr;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (addr_parse(bad[i], strlen(bad[i]), &addr))
			fail_msg("'%s' was taken for an address", bad[i]);
	assert_false(addr_parse("1.2.3.4\0", 8, &addr));
	assert_false(addr_parse("1.2.3.4\0.5", 10, &addr));
	assert_true(addr_parse("1.2.3.4xxx", 7, &addr));
}

static void
prefix_forms(void **state)
{
	static const char *const good[] = {"0.0.0.0/0", "10.0.0.0/8", "1.2.3.4/32", "2600::/32", "::/0", "2600::1/128"};
	static const char *const bad[] = {"", "/", "/8", "1.2.3.4/", "1.2.3.4/33", "1.2.3.4/31x", "1.2.3.5/31",
	    "10.0.0.0/08", "10.0.0.0/+8", "10.0.0.0/-1", "10.0.0.0/8/8", "10.0.0.0/ 8", "2600::/129", "2600::1/127",
	    "::ffff:10.0.0.0/104", "::ffff:1.0.0.0/8", "10.0.0.0/1000", "10.0.0.0/256", "10/8", "10.0.0/8"};
	char text[ADDR_TEXT_MAX + 4];
	struct prefix prefix;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		assert_true(addr_prefix_parse(good[i], strlen(good[i]), &prefix));
		assert_string_equal(addr_prefix_format(&prefix, text), good[i]);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (addr_prefix_parse(bad[i], strlen(bad[i]), &prefix))
			fail_msg("'%s' was taken for a prefix", bad[i]);
	assert_true(addr_prefix_parse("1.2.3.4", 7, &prefix));
	assert_int_equal(prefix.bits, 32);
	assert_false(addr_prefix_parse("1.2.3.0/24\0", 11, &prefix));
}

static void
prefix_relations(void **state)
{
	struct prefix wide, narrow, other, v6;
	struct addr addr = parse("10.1.2.3");

	(void)state;
	assert_true(addr_prefix_parse("10.0.0.0/8", 10, &wide) && addr_prefix_parse("10.1.0.0/18", 11, &narrow));
	assert_true(addr_prefix_parse("11.0.0.0/8", 10, &other) && addr_prefix_parse("::/0", 4, &v6));
	assert_true(addr_prefix_contains(&wide, &addr) && addr_prefix_contains(&narrow, &addr));
	assert_false(addr_prefix_contains(&other, &addr) || addr_prefix_contains(&v6, &addr));
	assert_true(addr_prefix_overlaps(&wide, &narrow) && addr_prefix_overlaps(&narrow, &wide));
	assert_false(addr_prefix_overlaps(&wide, &other) || addr_prefix_overlaps(&wide, &v6));
}

static void
prefixes_that_touch_the_list(void **state)
{
	static const struct {
		const char *prefix, *row; /* NULL: touches nothing */
	} cases[] = {{"10.0.0.0/8", "10.0.0.0/8"}, {"10.1.2.0/24", "10.0.0.0/8"},
	    {"169.254.169.254/32", "169.254.169.254/32"}, {"169.254.160.0/20", "169.254.0.0/16"}, {"1.1.1.0/24", NULL},
	    {"140.82.112.0/20", NULL}, {"2600::/32", NULL}, {"fd00::/8", "fc00::/7"},
	    {"2001:db8::/48", "2001:db8::/32"}, {"64:ff9b::a00:0/104", "64:ff9b::/96"},
	    {"64:ff9b::a00:1/128", "64:ff9b::a00:0/104"}, {"2600::5efe:a00:1/128", "::5efe:0:0/96"},
	    {"2600::5efe:0:0/96", "::5efe:0:0/96"}, {"192.0.0.0/16", "192.0.0.0/24"}};
	const struct never_prefix *row;
	struct prefix prefix;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		assert_true(addr_prefix_parse(cases[i].prefix, strlen(cases[i].prefix), &prefix));
		row = NULL;
		if (addr_prefix_touches_never(&prefix, &row) != (cases[i].row != NULL))
			fail_msg("%s: wrong answer", cases[i].prefix);
		if (row != NULL)
			assert_string_equal(row->text, cases[i].row);
	}
	assert_true(addr_prefix_parse("0.0.0.0/0", 9, &prefix) && addr_prefix_touches_never(&prefix, &row));
	assert_true(addr_prefix_parse("::/0", 4, &prefix) && addr_prefix_touches_never(&prefix, &row));
	assert_true(addr_prefix_parse("2000::/3", 8, &prefix) && addr_prefix_touches_never(&prefix, &row));
}

static void
list_is_sorted_and_whole(void **state)
{
	const struct never_prefix *list;
	size_t count, env = 0;

	(void)state;
	list = addr_never_list(&count);
	assert_int_equal(count, row_count);
	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || list[i].prefix.bits >= list[i - 1].prefix.bits);
		assert_true(list[i].why[0] != '\0');
		env += list[i].env;
	}
	assert_int_equal(env, 8);
}

/* Last: what is switched on stays on. */
static void
platform_rows_are_off_until_named(void **state)
{
	const struct never_prefix *row;
	struct prefix prefix;

	(void)state;
	assert_true(addr_prefix_parse("34.118.224.0/24", 15, &prefix));
	assert_null(never("34.118.224.1"));
	assert_null(never("2600:2d00:2:1000::1"));
	assert_false(addr_prefix_touches_never(&prefix, &row));
	assert_false(addr_never_env("nowhere"));
	assert_true(addr_never_env("gcp"));
	assert_string_equal(never("34.118.224.1")->text, "34.118.224.0/20");
	assert_non_null(strstr(never("34.118.224.1")->why, "gcp"));
	assert_non_null(never("2600:2d00:2:1000::1"));
	assert_true(addr_prefix_touches_never(&prefix, &row));
	assert_null(never("161.26.0.1"));
	assert_true(addr_never_env("ibm") && addr_never_env("equinix"));
	assert_non_null(never("161.26.0.1"));
	assert_non_null(never("192.80.8.124"));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_A_07_every_row_at_its_edges),
	    cmocka_unit_test(case_A_07_neighbours_pass),
	    cmocka_unit_test(case_A_02_mapped_addresses_are_ipv4),
	    cmocka_unit_test(case_A_03_nat64_is_named_after_its_ipv4),
	    cmocka_unit_test(case_A_05_tunnels),
	    cmocka_unit_test(case_A_08_unspecified_is_loopback),
	    cmocka_unit_test(case_A_09_cgnat),
	    cmocka_unit_test(case_A_10_wireserver_is_public_and_refused),
	    cmocka_unit_test(case_A_11_reason_names_the_cloud),
	    cmocka_unit_test(case_A_16_strict_address_forms),
	    cmocka_unit_test(case_A_22_random_addresses_match_the_oracle),
	    cmocka_unit_test(addresses_that_are_none_are_refused),
	    cmocka_unit_test(sockaddr_round_trip),
	    cmocka_unit_test(prefix_forms),
	    cmocka_unit_test(prefix_relations),
	    cmocka_unit_test(prefixes_that_touch_the_list),
	    cmocka_unit_test(list_is_sorted_and_whole),
	    cmocka_unit_test(platform_rows_are_off_until_named),
	};

	return cmocka_run_group_tests(tests, oracle_load, NULL);
}
