/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Leases and ranges in the kernel's sets, with nft(8) as the oracle. */
#include "tap_fixture.h"

static struct tap_lease
lease(const char *addr, uint8_t proto, uint16_t port)
{
	return (struct tap_lease){.addr = fixture_addr(addr), .proto = proto, .port = port};
}

static const char *
list_set(struct tap *tap, const char *set)
{
	char command[128];

	snprintf(command, sizeof(command), "nft list set inet postern %s", set);
	return fixture_run(tap_netns_fd(tap), command);
}

static void
test_add_delete_flush(void **state)
{
	struct tap_config config = fixture_config("leases");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease leases[] = {
	    lease(PUBLIC4, IPPROTO_TCP, 443),
	    lease(PUBLIC6, IPPROTO_TCP, 443),
	    lease(PUBLIC4, IPPROTO_UDP, 3478),
	};
	struct error err = {0};

	(void)state;
	assert_ok(tap_lease_add(tap, leases, 3, 90, &err), err);
	assert_contains(list_set(tap, "lease4"), PUBLIC4 " . tcp . 443 timeout 1m30s");
	assert_contains(list_set(tap, "lease4"), PUBLIC4 " . udp . 3478 timeout 1m30s");
	assert_contains(list_set(tap, "lease6"), PUBLIC6 " . tcp . 443 timeout 1m30s");
	assert_ok(tap_lease_del(tap, leases, 1, &err), err);
	assert_lacks(list_set(tap, "lease4"), "tcp . 443");
	assert_contains(list_set(tap, "lease4"), "udp . 3478");
	/* What is not there is no error; the same twice is not either. */
	assert_ok(tap_lease_del(tap, leases, 3, &err), err);
	assert_ok(tap_lease_del(tap, leases, 3, &err), err);
	leases[1] = leases[0];
	assert_ok(tap_lease_add(tap, leases, 2, 90, &err), err);
	assert_ok(tap_lease_del(tap, leases, 2, &err), err);
	assert_ok(tap_lease_add(tap, leases, 3, 90, &err), err);
	assert_ok(tap_lease_flush(tap, &err), err);
	assert_lacks(list_set(tap, "lease4"), "elements");
	assert_lacks(list_set(tap, "lease6"), "elements");
	assert_ok(tap_lease_flush(tap, &err), err);
	assert_ok(tap_lease_add(tap, NULL, 0, 90, &err), err);
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
}

static void
case_F_09_refresh_starts_the_countdown_again(void **state)
{
	struct tap_config config = fixture_config("refresh");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease one = lease(PUBLIC4, IPPROTO_TCP, 443);
	struct error err = {0};

	(void)state;
	assert_ok(tap_lease_add(tap, &one, 1, 3, &err), err);
	fixture_sleep_ms(1000);
	assert_ok(tap_lease_add(tap, &one, 1, 3, &err), err);
	fixture_sleep_ms(2500); /* 3.5 s after the first, 2.5 s after the second */
	assert_contains(list_set(tap, "lease4"), PUBLIC4);
	fixture_sleep_ms(800);
	assert_lacks(list_set(tap, "lease4"), PUBLIC4);
	/* Deleting what has expired, and entering it again. */
	assert_ok(tap_lease_del(tap, &one, 1, &err), err);
	assert_ok(tap_lease_add(tap, &one, 1, 100, &err), err);
	assert_contains(list_set(tap, "lease4"), "timeout 1m40s");
	/* Shorter is obeyed too: the gateway decides, within the bounds. */
	assert_ok(tap_lease_add(tap, &one, 1, 50, &err), err);
	assert_contains(list_set(tap, "lease4"), "timeout 50s");
	tap_detach(tap, false);
}

static void
test_timeouts_are_bounded(void **state)
{
	struct tap_config config = fixture_config("bounds");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease one = lease(PUBLIC4, IPPROTO_TCP, 443);
	struct error err = {0};

	(void)state;
	assert_ok(tap_lease_add(tap, &one, 1, 0, &err), err);
	assert_contains(list_set(tap, "lease4"), "timeout 1s");
	assert_ok(tap_lease_add(tap, &one, 1, UINT32_MAX, &err), err);
	assert_contains(
	    list_set(tap, "lease4"), "timeout 2h"); /* the set's own, so the element shows only what is left */
	assert_contains(list_set(tap, "lease4"), "expires 1h59m59s");
	tap_detach(tap, false);
}

/* A gateway that asks for these is not to be trusted: ERROR_CORRUPT, and nothing of the request is in force. */
static void
test_refused_leases(void **state)
{
	static const struct {
		const char *addr;
		uint8_t proto;
		uint16_t port;
	} rows[] = {
	    {"127.0.0.1", IPPROTO_TCP, 80},
	    {"169.254.169.254", IPPROTO_TCP, 80},
	    {"10.1.2.3", IPPROTO_TCP, 443},
	    {"172.16.0.1", IPPROTO_TCP, 443},
	    {"168.63.129.16", IPPROTO_TCP, 80},
	    {"fd00:ec2::254", IPPROTO_TCP, 80},
	    {"::1", IPPROTO_TCP, 80},
	    {"fe80::1", IPPROTO_TCP, 80},
	    {"64:ff9b::a9fe:a9fe", IPPROTO_TCP, 80},
	    {PUBLIC4, IPPROTO_TCP, 0},
	    {PUBLIC4, IPPROTO_TCP, 53},
	    {PUBLIC4, IPPROTO_UDP, 53},
	    {PUBLIC4, IPPROTO_ICMP, 80},
	    {PUBLIC4, IPPROTO_SCTP, 80},
	};
	struct tap_config config = fixture_config("refused");
	struct tap *tap = fixture_attach(&config);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct tap_lease leases[] = {
		    lease(PUBLIC4, IPPROTO_TCP, 443), lease(rows[i].addr, rows[i].proto, rows[i].port)};
		struct error err = {0};

		assert_int_equal(tap_lease_add(tap, leases, 2, 60, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_lacks(list_set(tap, "lease4"), "elements");
	}
	tap_detach(tap, false);
}

static void
test_family_that_is_off(void **state)
{
	struct tap_config config = fixture_config("off6");
	struct tap_lease both[] = {lease(PUBLIC6, IPPROTO_TCP, 443), lease(PUBLIC4, IPPROTO_TCP, 443)};
	struct addr_range range6 = {fixture_addr("2606:50c0::"), fixture_addr("2606:50c0::ff"), IPPROTO_TCP, 22, 22};
	struct error err = {0};
	struct tap *tap;

	(void)state;
	memset(&config.guest6, 0, sizeof(config.guest6));
	memset(&config.router6, 0, sizeof(config.router6));
	tap = fixture_attach(&config);
	/* A policy and a gateway may speak of IPv6 all the same. */
	assert_ok(tap_lease_add(tap, both, 2, 60, &err), err);
	assert_contains(list_set(tap, "lease4"), PUBLIC4);
	assert_ok(tap_lease_del(tap, both, 2, &err), err);
	assert_ok(tap_lease_add(tap, both, 1, 60, &err), err);
	assert_ok(tap_ranges_set(tap, &range6, 1, &err), err);
	both[0].addr.family = 0;
	assert_int_equal(tap_lease_add(tap, both, 1, 60, &err), -1);
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_ok(tap_lease_flush(tap, &err), err);
	assert_ok(tap_ranges_set(tap, NULL, 0, &err), err);
	tap_detach(tap, false);
}

/* count leases with addresses from first on, in batches. */
static int
add_many(struct tap *tap, unsigned int first, unsigned int count, uint32_t timeout_s, struct error *err)
{
	static struct tap_lease leases[TAP_LEASE_BATCH_MAX];

	for (unsigned int at = 0; at < count; at += TAP_LEASE_BATCH_MAX) {
		unsigned int part = count - at < TAP_LEASE_BATCH_MAX ? count - at : TAP_LEASE_BATCH_MAX;

		for (unsigned int i = 0; i < part; i++) {
			unsigned int n = first + at + i;
			uint8_t bytes[4] = {20, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n};

			leases[i] =
			    (struct tap_lease){.addr = addr_from_ipv4(bytes), .proto = IPPROTO_TCP, .port = 443};
		}
		if (tap_lease_add(tap, leases, part, timeout_s, err) < 0)
			return -1;
	}
	return 0;
}

static void
case_F_10_the_maximum(void **state)
{
	struct tap_config config = fixture_config("full");
	struct tap *tap = fixture_attach(&config);
	struct error err = {0};
	struct tap_lease leases[TAP_LEASE_BATCH_MAX + 1] = {{.proto = 0}};

	(void)state;
	assert_int_equal(tap_lease_add(tap, leases, TAP_LEASE_BATCH_MAX + 1, 60, &err), -1);
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_ok(add_many(tap, 0, TAP_LEASES_MAX, 600, &err), err);
	assert_int_equal(add_many(tap, TAP_LEASES_MAX, 1, 600, &err), -1);
	assert_int_equal(err.code, ERROR_LIMIT);
	/* Room comes back with the leases that go. */
	assert_ok(tap_lease_flush(tap, &err), err);
	assert_ok(add_many(tap, TAP_LEASES_MAX, 1, 600, &err), err);
	/* Refreshing does not fill it up: the count is taken anew when the bound is reached. */
	for (unsigned int i = 0; i < TAP_LEASES_MAX / TAP_LEASE_BATCH_MAX + 2; i++)
		assert_ok(add_many(tap, 0, TAP_LEASE_BATCH_MAX, 600, &err), err);
	tap_detach(tap, false);
}

static void
case_F_10_expired_leases_make_room(void **state)
{
	struct tap_config config = fixture_config("expired");
	struct tap *tap = fixture_attach(&config);
	struct error err = {0};

	(void)state;
	assert_ok(add_many(tap, 0, TAP_LEASES_MAX, 1, &err), err);
	fixture_sleep_ms(2200);
	assert_ok(add_many(tap, TAP_LEASES_MAX, TAP_LEASE_BATCH_MAX, 60, &err), err);
	tap_detach(tap, false);
}

static struct addr_range
range(const char *first, const char *last, uint8_t proto, uint16_t port_first, uint16_t port_last)
{
	return (struct addr_range){
	    .first = fixture_addr(first),
	    .last = fixture_addr(last),
	    .proto = proto,
	    .port_first = port_first,
	    .port_last = port_last,
	};
}

static void
test_ranges_are_replaced(void **state)
{
	struct tap_config config = fixture_config("ranges");
	struct tap *tap = fixture_attach(&config);
	struct addr_range ranges[] = {
	    range("140.82.112.0", "140.82.127.255", IPPROTO_TCP, 22, 22),
	    range("140.82.112.0", "140.82.127.255", IPPROTO_TCP, 443, 444),
	    range("20.0.0.7", "20.0.0.9", IPPROTO_UDP, 1, 52),
	    range("2606:50c0::", "2606:50c0::ffff", IPPROTO_TCP, 22, 22),
	};
	struct error err = {0};

	(void)state;
	assert_ok(tap_ranges_set(tap, ranges, 4, &err), err);
	assert_contains(list_set(tap, "range4"), "140.82.112.0/20 . tcp . 22");
	assert_contains(list_set(tap, "range4"), "140.82.112.0/20 . tcp . 443-444");
	assert_contains(list_set(tap, "range4"), "20.0.0.7-20.0.0.9 . udp . 1-52");
	assert_contains(list_set(tap, "range6"), "2606:50c0::/112 . tcp . 22");
	assert_ok(tap_ranges_set(tap, ranges, 1, &err), err);
	assert_lacks(list_set(tap, "range4"), "443");
	assert_lacks(list_set(tap, "range6"), "elements");
	assert_ok(tap_ranges_set(tap, NULL, 0, &err), err);
	assert_lacks(list_set(tap, "range4"), "elements");
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
}

static void
test_refused_ranges_leave_the_old_ones(void **state)
{
	struct tap_config config = fixture_config("badranges");
	struct tap *tap = fixture_attach(&config);
	struct addr_range good = range("140.82.112.0", "140.82.127.255", IPPROTO_TCP, 22, 22);
	struct addr_range bad[] = {
	    range("8.0.0.0", "11.0.0.0", IPPROTO_TCP, 80, 80), /* 10/8 is in it */
	    range("169.254.169.254", "169.254.169.254", IPPROTO_TCP, 80, 80),
	    range("0.0.0.0", "255.255.255.255", IPPROTO_TCP, 80, 80),
	    range("2000::", "2fff::", IPPROTO_TCP, 80, 80), /* documentation is in it */
	    range("20.0.0.9", "20.0.0.7", IPPROTO_TCP, 80, 80),
	    range("20.0.0.7", "20.0.0.9", IPPROTO_TCP, 81, 80),
	    range("20.0.0.7", "20.0.0.9", IPPROTO_TCP, 0, 80),
	    range("20.0.0.7", "20.0.0.9", IPPROTO_ICMP, 1, 80),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct addr_range both[] = {range("20.1.0.0", "20.1.0.0", IPPROTO_TCP, 1, 1), bad[i]};
		struct error err = {0};

		assert_ok(tap_ranges_set(tap, &good, 1, &err), err);
		assert_int_equal(tap_ranges_set(tap, both, 2, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_contains(list_set(tap, "range4"), "140.82.112.0/20 . tcp . 22");
		assert_lacks(list_set(tap, "range4"), "20.1.0.0");
	}
	tap_detach(tap, false);
}

/* Two ranges that overlap in part: the kernel refuses the transaction, and what was in force stays (F-11). */
static void
case_F_11_one_bad_element_changes_nothing(void **state)
{
	struct tap_config config = fixture_config("atomic");
	struct tap *tap = fixture_attach(&config);
	struct addr_range good = range("140.82.112.0", "140.82.127.255", IPPROTO_TCP, 22, 22);
	struct addr_range overlap[] = {
	    range("20.0.0.0", "20.0.0.9", IPPROTO_TCP, 1, 10),
	    range("20.0.0.5", "20.0.0.20", IPPROTO_TCP, 5, 20),
	};
	struct error err = {0};

	(void)state;
	assert_ok(tap_ranges_set(tap, &good, 1, &err), err);
	assert_int_equal(tap_ranges_set(tap, overlap, 2, &err), -1);
	assert_contains(list_set(tap, "range4"), "140.82.112.0/20 . tcp . 22");
	assert_lacks(list_set(tap, "range4"), "20.0.0");
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
}

static void
test_most_ranges(void **state)
{
	static struct addr_range ranges[SNAPSHOT_RANGES_MAX];
	struct tap_config config = fixture_config("manyr");
	struct tap *tap = fixture_attach(&config);
	struct error err = {0};

	(void)state;
	for (unsigned int i = 0; i < SNAPSHOT_RANGES_MAX; i++) {
		uint8_t bytes[16] = {0x26, 0x06, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, (uint8_t)(i >> 8), (uint8_t)i};

		ranges[i] = (struct addr_range){
		    .first = addr_from_ipv6(bytes),
		    .last = addr_from_ipv6(bytes),
		    .proto = IPPROTO_TCP,
		    .port_first = 1,
		    .port_last = 99,
		};
		ranges[i].last.bytes[15] = 7;
	}
	assert_ok(tap_ranges_set(tap, ranges, SNAPSHOT_RANGES_MAX, &err), err);
	assert_contains(list_set(tap, "range6"), "2606::fff:0/125 . tcp . 1-99");
	assert_int_equal(tap_ranges_set(tap, ranges, SNAPSHOT_RANGES_MAX + 1, &err), -1);
	tap_detach(tap, false);
}

static void
test_table_that_is_gone(void **state)
{
	struct tap_config config = fixture_config("gone");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease one = lease(PUBLIC4, IPPROTO_TCP, 443);
	struct error err = {0};

	(void)state;
	fixture_run(tap_netns_fd(tap), "nft flush ruleset");
	assert_int_equal(tap_lease_add(tap, &one, 1, 60, &err), -1);
	assert_int_equal(err.code, ERROR_SYSTEM); /* no gateway is to blame */
	assert_int_equal(tap_lease_flush(tap, &err), -1);
	assert_int_equal(tap_ranges_set(tap, NULL, 0, &err), -1);
	tap_detach(tap, false);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_add_delete_flush),
	    cmocka_unit_test(case_F_09_refresh_starts_the_countdown_again),
	    cmocka_unit_test(test_timeouts_are_bounded),
	    cmocka_unit_test(test_refused_leases),
	    cmocka_unit_test(test_family_that_is_off),
	    cmocka_unit_test(case_F_10_the_maximum),
	    cmocka_unit_test(case_F_10_expired_leases_make_room),
	    cmocka_unit_test(test_ranges_are_replaced),
	    cmocka_unit_test(test_refused_ranges_leave_the_old_ones),
	    cmocka_unit_test(case_F_11_one_bad_element_changes_nothing),
	    cmocka_unit_test(test_most_ranges),
	    cmocka_unit_test(test_table_that_is_gone),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
