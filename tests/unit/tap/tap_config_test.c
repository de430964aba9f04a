/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tap_config_check: what a sandbox may look like. */
#include "tap_fixture.h"

static int
check(const struct tap_config *config)
{
	struct error err = {0};
	int r = tap_config_check(config, &err);

	if (r < 0)
		assert_int_equal(err.code, ERROR_USAGE);
	return r;
}

static void
test_default_is_good(void **state)
{
	struct tap_config config = fixture_config("agent-1");

	(void)state;
	assert_int_equal(check(&config), 0);
	assert_int_equal(config.bits4, 30);
	assert_true(config.owner_uid == (uid_t)-1);
	assert_int_equal(config.netns_fd, -1);
}

static void
test_names(void **state)
{
	static const struct {
		const char *name;
		int good;
	} rows[] = {
	    {"a", 1}, {"0", 1}, {"a.b_c-d", 1}, {"", 0}, {"-a", 0}, {".a", 0}, {"A", 0}, {"a/b", 0}, {"a b", 0},
	    {"a\n", 0}, {"..", 0}, {"a\xc3\xa9", 0},
	    {"a23456789012345678901234567890123456789012345678901234567890123", 1}, /* 63 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_config config = fixture_config("x");

		strcpy(config.name, rows[i].name);
		if ((check(&config) == 0) != rows[i].good)
			fail_msg("name \"%s\"", rows[i].name);
	}
}

static void
test_unterminated_name(void **state)
{
	struct tap_config config = fixture_config("x");

	(void)state;
	memset(config.name, 'a', sizeof(config.name));
	assert_int_equal(check(&config), -1);
	config = fixture_config("x");
	memset(config.ifname, 'a', sizeof(config.ifname));
	assert_int_equal(check(&config), -1);
}

static void
case_F_18_device_names(void **state)
{
	static const struct {
		const char *name;
		int good;
	} rows[] = {
	    {"tap0", 1},
	    {"vmtap0", 1},
	    {"a23456789012345", 1},
	    {"", 0},
	    {"a/b", 0},
	    {"a:b", 0},
	    {"a b", 0},
	    {"lo", 0},
	    {"all", 0},
	    {"default", 0},
	    {".", 0},
	    {"..", 0},
	    {"veth0", 0},
	    {"t\xff", 0},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_config config = fixture_config("x");

		strcpy(config.ifname, rows[i].name);
		if ((check(&config) == 0) != rows[i].good)
			fail_msg("device \"%s\"", rows[i].name);
	}
}

static void
test_subnets(void **state)
{
	static const struct {
		const char *guest, *gateway;
		uint8_t bits;
		int good;
	} rows[] = {
	    {"192.168.241.2", "192.168.241.1", 29, 1}, {"10.0.0.2", "10.0.0.1", 8, 1}, {"10.0.0.2", "10.0.0.1", 7, 0},
	    {"10.0.0.2", "10.0.0.1", 31, 0}, {"10.0.0.1", "10.0.0.1", 24, 0}, /* the same */
	    {"10.0.1.2", "10.0.0.1", 24, 0},                                  /* two subnets */
	    {"10.0.0.0", "10.0.0.1", 24, 0},                                  /* network */
	    {"10.0.0.255", "10.0.0.1", 24, 0},                                /* broadcast */
	    {"10.0.0.2", "10.0.0.0", 24, 0}, {"127.0.0.2", "127.0.0.1", 24, 0}, {"224.0.0.2", "224.0.0.1", 24, 0},
	    {"0.0.0.2", "0.0.0.1", 24, 0}, {"255.255.255.254", "255.255.255.253", 29, 0},
	    {"fd00::2", "fd00::1", 64, 0}, /* no IPv4 */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_config config = fixture_config("x");

		config.guest4 = fixture_addr(rows[i].guest);
		config.router4 = fixture_addr(rows[i].gateway);
		config.bits4 = rows[i].bits;
		if ((check(&config) == 0) != rows[i].good)
			fail_msg("%s behind %s/%u", rows[i].guest, rows[i].gateway, rows[i].bits);
	}
}

static void
test_subnets6(void **state)
{
	static const struct {
		const char *guest, *gateway;
		uint8_t bits;
		int good;
	} rows[] = {
	    {"fd00::2", "fd00::1", 64, 1},
	    {"fd00::2", "fd00::1", 126, 1},
	    {"fd00::2", "fd00::1", 127, 0},
	    {"fd00::", "fd00::1", 64, 0}, /* subnet router anycast */
	    {"fd00:1::2", "fd00::1", 64, 0},
	    {"fe80::2", "fe80::1", 64, 0},
	    {"ff02::2", "ff02::1", 64, 0},
	    {"::2", "::1", 64, 0},
	    {"10.0.0.2", "10.0.0.1", 24, 0},
	};
	struct tap_config config = fixture_config("x");

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		config.guest6 = fixture_addr(rows[i].guest);
		config.router6 = fixture_addr(rows[i].gateway);
		config.bits6 = rows[i].bits;
		if ((check(&config) == 0) != rows[i].good)
			fail_msg("%s behind %s/%u", rows[i].guest, rows[i].gateway, rows[i].bits);
	}
}

static void
case_E_32_ipv6_off_is_both_or_none(void **state)
{
	struct tap_config config = fixture_config("x");

	(void)state;
	memset(&config.guest6, 0, sizeof(config.guest6));
	assert_int_equal(check(&config), -1);
	memset(&config.router6, 0, sizeof(config.router6));
	assert_int_equal(check(&config), 0);
}

static void
test_mac_and_kind(void **state)
{
	struct tap_config config = fixture_config("x");

	(void)state;
	config.guest_mac[0] = 0x01;
	assert_int_equal(check(&config), -1);
	config.guest_mac[0] = 0x02;
	assert_int_equal(check(&config), 0);
	config.kind = (enum tap_kind)7;
	assert_int_equal(check(&config), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_default_is_good),
	    cmocka_unit_test(test_names),
	    cmocka_unit_test(test_unterminated_name),
	    cmocka_unit_test(case_F_18_device_names),
	    cmocka_unit_test(test_subnets),
	    cmocka_unit_test(test_subnets6),
	    cmocka_unit_test(case_E_32_ipv6_off_is_both_or_none),
	    cmocka_unit_test(test_mac_and_kind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
