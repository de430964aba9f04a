/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The link: forged addresses of both layers, foreign frames, ARP and neighbour discovery, broadcasts. Each is refused,
 * counted in its class, and changes nothing. */
#include "tap_wire.h"

static void
case_E_01_spoofed_sources(void **state)
{
	static const char *const sources[] = {
	    "8.8.8.8", GATEWAY4, "172.16.0.3", "172.17.0.2", "127.0.0.1", "0.0.0.0", PUBLIC4};
	static const char *const sources6[] = {"2606::1", GATEWAY6, "fd70:6f73:7465:726e::3", "fe80::2", "::"};
	struct wire wire = wire_make("spoof");
	struct frame frame, answer;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	lease(&wire, PUBLIC6, IPPROTO_TCP, 443);
	drain(&wire);
	for (size_t i = 0; i < sizeof(sources) / sizeof(sources[0]); i++) {
		frame = tcp(sources[i], PUBLIC4, 443, SYN);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, sources[i]);
		frame = udp(sources[i], "8.8.8.8", 53);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, sources[i]);
	}
	for (size_t i = 0; i < sizeof(sources6) / sizeof(sources6[0]); i++) {
		frame = tcp(sources6[i], PUBLIC6, 443, SYN);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, sources6[i]);
		frame = udp(sources6[i], GATEWAY6, 53);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, sources6[i]);
	}
	assert_false(answered(&wire, ETH_P_IP, 0, &answer)); /* nobody is answered in the guest's stead */
	wire_free(&wire);
}

static void
case_E_02_foreign_frames(void **state)
{
	static const uint16_t types[] = {
	    ETH_P_8021Q, ETH_P_8021AD, 0x88cc /* LLDP */, ETH_P_PPP_SES, ETH_P_MPLS_UC, 0x0040, 0xffff};
	struct wire wire = wire_make("frames");
	struct frame inner = tcp(GUEST4, PUBLIC4, 443, SYN), frame;

	(void)state;
	lease(&wire, PUBLIC4, IPPROTO_TCP, 443);
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		frame = ether(types[i]);
		put16(&frame, i % 2 == 0 ? 0 : 5); /* priority tag, VLAN 5 */
		put16(&frame, ETH_P_IP);
		put(&frame, inner.bytes + 14, inner.len - 14);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "foreign EtherType");
	}
	frame = inner;
	frame.bytes[11] ^= 1;
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "source MAC");
	frame = inner;
	memset(frame.bytes + 6, 0, 6);
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "no source MAC");
	wire_free(&wire);
}

static void
case_E_02_arp(void **state)
{
	static const uint8_t other_mac[6] = {0x06, 9, 9, 9, 9, 9};
	struct wire wire = wire_make("arp");
	struct frame frame, answer;
	const char *neighbours;

	(void)state;
	drain(&wire);
	frame = arp(1, guest_mac, GUEST4, GATEWAY4);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_ARP, 0, &answer));
	assert_memory_equal(answer.bytes + 22, router_mac, 6);
	frame = arp(1, guest_mac, "0.0.0.0", GATEWAY4); /* a probe */
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_ARP, 0, &answer));
	/* For the gateway's address only, although every address is local. */
	frame = arp(1, guest_mac, GUEST4, "172.16.0.3");
	send_frame(&wire, &frame);
	frame = arp(1, guest_mac, GUEST4, "8.8.8.8");
	send_frame(&wire, &frame);
	frame = arp(1, guest_mac, GUEST4, "127.0.0.1");
	send_frame(&wire, &frame);
	assert_false(answered(&wire, ETH_P_ARP, 0, &answer));
	frame = arp(1, other_mac, GUEST4, GATEWAY4);
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "sender MAC");
	frame = arp(2, guest_mac, GATEWAY4, GATEWAY4);
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "gratuitous ARP of the gateway");
	for (unsigned int i = 1; i < 200; i++) {
		char sender[16];

		snprintf(sender, sizeof(sender), "172.16.%u.9", i);
		frame = arp(1, guest_mac, sender, GATEWAY4);
		send_frame(&wire, &frame);
	}
	neighbours = fixture_run(tap_netns_fd(wire.tap), "ip neigh | grep -v PERMANENT");
	assert_string_equal(neighbours, "");
	assert_contains(
	    fixture_run(tap_netns_fd(wire.tap), "ip neigh"), GUEST4 " dev tap0 lladdr 06:00:ac:10:00:02 PERMANENT");
	wire_free(&wire);
}

static void
case_E_03_router_advertisements(void **state)
{
	static const uint8_t advertisement[] = {134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0,
	    /* prefix 2001:470::/64, on-link and autonomous */
	    3, 4, 64, 0xc0, 0, 1, 0x51, 0x80, 0, 0, 0x38, 0x40, 0, 0, 0, 0, 0x20, 0x01, 0x04, 0x70, 0, 0, 0, 0, 0, 0, 0,
	    0, 0, 0, 0, 0};
	static const uint8_t redirect[40] = {137};
	static const char *const state_command = "ip -6 route show table all; ip -6 addr; ip route show table all";
	struct wire wire = wire_make("ra");
	char before[8192];
	struct frame frame;

	(void)state;
	strcpy(before, fixture_run(tap_netns_fd(wire.tap), state_command));
	frame = icmp6("fe80::2", "ff02::1", advertisement, sizeof(advertisement));
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "RA to all nodes");
	frame = icmp6("fe80::2", "fe80::1", advertisement, sizeof(advertisement));
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "RA to the gateway");
	frame = icmp6(GUEST6, GATEWAY6, redirect, sizeof(redirect));
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "redirect");
	fixture_sleep_ms(50);
	assert_string_equal(fixture_run(tap_netns_fd(wire.tap), state_command), before);
	/* With the rules gone, the sysctls hold. */
	fixture_run(tap_netns_fd(wire.tap), "nft flush ruleset");
	frame = icmp6("fe80::2", "ff02::1", advertisement, sizeof(advertisement));
	send_frame(&wire, &frame);
	fixture_sleep_ms(50);
	assert_string_equal(fixture_run(tap_netns_fd(wire.tap), state_command), before);
	wire_free(&wire);
}

static void
case_E_04_advertisements_for_the_gateway(void **state)
{
	static const char *const targets[] = {GATEWAY6, "fe80::1"};
	struct wire wire = wire_make("dad");
	struct frame frame, answer;
	const char *text;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		frame = neighbour(136, "fe80::2", "ff02::1", targets[i], guest_mac);
		send_frame(&wire, &frame);
		frame = neighbour(135, "::", "ff02::1:ff00:1", targets[i], NULL); /* as in duplicate detection */
		send_frame(&wire, &frame);
	}
	fixture_sleep_ms(50);
	text = fixture_run(tap_netns_fd(wire.tap), "ip -6 addr");
	assert_contains(text, GATEWAY6);
	assert_lacks(text, "dadfailed");
	assert_lacks(text, "tentative");
	drain(&wire);
	frame = neighbour(135, GUEST6, "ff02::1:ff00:1", GATEWAY6, guest_mac);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_ICMPV6, &answer));
	wire_free(&wire);
}

static void
test_neighbour_discovery(void **state)
{
	struct wire wire = wire_make("ndp");
	struct frame frame, answer;
	const char *count;

	(void)state;
	drain(&wire);
	frame = neighbour(135, "fe80::2", "ff02::1:ff00:1", GATEWAY6, guest_mac);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_ICMPV6, &answer));
	/* For the gateway's addresses only. */
	frame = neighbour(135, GUEST6, "ff02::1:ff00:1", "2606::ff00:1", guest_mac);
	send_frame(&wire, &frame);
	assert_false(answered(&wire, ETH_P_IPV6, IPPROTO_ICMPV6, &answer));
	frame = neighbour(135, "2606::5", "ff02::1:ff00:1", GATEWAY6, guest_mac);
	assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "solicitation from elsewhere");
	/* A flood from many link-local sources does not fill the host's neighbour table; who was known before stays so.
	 */
	for (unsigned int i = 0; i < 500; i++) {
		char from[32];

		snprintf(from, sizeof(from), "fe80::%x", i + 0x100);
		/* To the group, and to the gateway itself, as in a probe: an error would be sent for the latter. */
		frame = neighbour(135, from, i % 2 == 0 ? "ff02::1:ff00:1" : GATEWAY6, GATEWAY6, guest_mac);
		send_frame(&wire, &frame);
	}
	fixture_sleep_ms(20);
	drain(&wire);
	frame = neighbour(135, "fe80::2", "ff02::1:ff00:1", GATEWAY6, guest_mac);
	send_frame(&wire, &frame);
	assert_true(answered(&wire, ETH_P_IPV6, IPPROTO_ICMPV6, &answer));
	count = fixture_run(tap_netns_fd(wire.tap), "ip -6 neigh | wc -l");
	assert_in_range(atoi(count), 1, 3); /* the guest's own, and two at most */
	assert_contains(
	    fixture_run(tap_netns_fd(wire.tap), "ip -6 neigh"), GUEST6 " dev tap0 lladdr 06:00:ac:10:00:02 PERMANENT");
	wire_free(&wire);
}

static void
case_E_12_broadcast_and_multicast(void **state)
{
	static const struct {
		const char *from, *to;
		uint8_t mac[6];
	} rows[] = {
	    {GUEST4, "255.255.255.255", {255, 255, 255, 255, 255, 255}},
	    {"0.0.0.0", "255.255.255.255", {255, 255, 255, 255, 255, 255}}, /* DHCP */
	    {GUEST4, "172.16.0.3", {255, 255, 255, 255, 255, 255}},
	    {GUEST4, "224.0.0.251", {1, 0, 0x5e, 0, 0, 251}},
	    {GUEST4, "239.255.255.250", {1, 0, 0x5e, 127, 255, 250}},
	    {GUEST4, PUBLIC4, {255, 255, 255, 255, 255, 255}}, /* unicast address in a broadcast frame */
	    {GUEST6, "ff02::1", {0x33, 0x33, 0, 0, 0, 1}},
	    {"fe80::2", "ff02::fb", {0x33, 0x33, 0, 0, 0, 0xfb}},
	    {GUEST6, "ff0e::1234", {0x33, 0x33, 0, 0, 0x12, 0x34}},
	};
	static const uint16_t ports[] = {53, 67, 1900, 5353};
	struct wire wire = wire_make("cast");
	struct frame frame, answer;

	(void)state;
	drain(&wire);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		for (size_t j = 0; j < sizeof(ports) / sizeof(ports[0]); j++) {
			frame = udp(rows[i].from, rows[i].to, ports[j]);
			memcpy(frame.bytes, rows[i].mac, 6);
			assert_refused_as(&wire, &frame, TAP_COUNTER_NEVER, rows[i].to);
		}
	}
	assert_false(answered(&wire, ETH_P_IP, 0, &answer));
	wire_free(&wire);
}

static void
test_link_chatter_is_not_counted(void **state)
{
	static const uint8_t solicitation[8] = {133}, report[28] = {143, 0, 0, 0, 0, 0, 0, 1, 4};
	struct wire wire = wire_make("chatter");
	uint64_t totals[TAP_COUNTER_MAX];
	struct frame frame;

	(void)state;
	frame = icmp6("fe80::2", "ff02::2", solicitation, sizeof(solicitation));
	memcpy(frame.bytes, "\x33\x33\0\0\0\2", 6);
	send_frame(&wire, &frame);
	frame = icmp6("fe80::2", "ff02::16", report, sizeof(report));
	memcpy(frame.bytes, "\x33\x33\0\0\0\x16", 6);
	send_frame(&wire, &frame);
	frame = ip(GUEST4, "224.0.0.22", IPPROTO_IGMP, "\x22\0\0\0\0\0\0\0", 8);
	memcpy(frame.bytes, "\x01\0\x5e\0\0\x16", 6);
	send_frame(&wire, &frame);
	fixture_sleep_ms(20);
	counters(&wire, totals);
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		assert_int_equal(totals[i], 0);
	/* To the gateway itself it is no chatter. */
	frame = ip(GUEST4, PUBLIC4, IPPROTO_IGMP, "\x22\0\0\0\0\0\0\0", 8);
	assert_refused_as(&wire, &frame, TAP_COUNTER_PROTO, "IGMP to a host");
	wire_free(&wire);
}

static void
case_E_26_short_frames(void **state)
{
	struct wire wire = wire_make("runts");
	struct frame whole = tcp(GUEST4, "8.8.8.8", 443, SYN), answer;
	uint8_t bytes[VNET_HEADER + 128] = {0};

	(void)state;
	memcpy(bytes + VNET_HEADER, whole.bytes, whole.len);
	for (int round = 0; round < 200; round++)
		for (size_t len = 0; len <= VNET_HEADER + 60; len++)
			(void)!write(wire.fd, bytes, len);
	drain(&wire);
	send_frame(&wire, &whole);
	assert_true(answered(&wire, ETH_P_IP, IPPROTO_TCP, &answer));
	assert_true(tap_intact(wire.tap));
	wire_free(&wire);
}

static void
case_E_32_ipv6_off_means_off(void **state)
{
	static const uint16_t ports[] = {53, TAP_TPROXY_PORT, 22};
	struct tap_config config = fixture_config("v6off");
	struct wire wire;
	struct frame frame;

	(void)state;
	memset(&config.guest6, 0, sizeof(config.guest6));
	memset(&config.router6, 0, sizeof(config.router6));
	wire.tap = fixture_attach(&config);
	wire.fd = fixture_open_tap(wire.tap);
	fixture_sleep_ms(50);
	for (size_t i = 0; i < 3; i++) {
		frame = tcp("fe80::2", "fe80::1", ports[i], SYN);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "IPv6");
		frame = udp("fe80::2", "fe80::1", ports[i]);
		assert_refused_as(&wire, &frame, TAP_COUNTER_SPOOFED, "IPv6");
	}
	wire_free(&wire);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_E_01_spoofed_sources),
	    cmocka_unit_test(case_E_02_foreign_frames),
	    cmocka_unit_test(case_E_02_arp),
	    cmocka_unit_test(case_E_03_router_advertisements),
	    cmocka_unit_test(case_E_04_advertisements_for_the_gateway),
	    cmocka_unit_test(test_neighbour_discovery),
	    cmocka_unit_test(case_E_12_broadcast_and_multicast),
	    cmocka_unit_test(test_link_chatter_is_not_counted),
	    cmocka_unit_test(case_E_26_short_frames),
	    cmocka_unit_test(case_E_32_ipv6_off_means_off),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
