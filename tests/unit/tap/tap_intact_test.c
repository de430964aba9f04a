/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Tampering is found and repaired, in the sandbox's namespace and in the host's chain. */
#include "tap_fixture.h"

#include <netinet/in.h>
#include <pthread.h>

static void
change(struct tap *tap, const char *command)
{
	char line[512];

	snprintf(line, sizeof(line), "%s 2>&1", command);
	assert_string_equal(fixture_run(tap_netns_fd(tap), line), "");
}

static const char *
ruleset(struct tap *tap)
{
	return fixture_run(tap_netns_fd(tap), "nft -s list ruleset");
}

static void
case_F_02_changes_are_found_and_repaired(void **state)
{
	static const char *const changes[] = {
	    "nft flush ruleset",
	    "nft delete table inet postern",
	    "nft delete table netdev postern",
	    "nft flush chain inet postern prerouting",
	    "nft add rule inet postern prerouting accept",
	    "nft insert rule inet postern prerouting accept",
	    "nft insert rule inet postern dial accept",
	    "nft insert rule netdev postern ingress accept",
	    "nft 'chain inet postern prerouting { policy accept; }'",
	    "nft add table inet postern '{ flags dormant; }'",
	    "nft add chain inet postern other '{ type filter hook prerouting priority -300; policy accept; }'",
	    "nft flush ruleset; nft add table inet postern",
	};
	struct tap_config config = fixture_config("tamper");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease lease = {.addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = 443};
	struct error err = {0};
	char good[65536];

	(void)state;
	strcpy(good, ruleset(tap));
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		(void)tap_lease_add(tap, &lease, 1, 60, NULL);
		change(tap, changes[i]);
		if (tap_intact(tap))
			fail_msg("not found: %s", changes[i]);
		assert_false(tap_intact(tap)); /* asking does not heal */
		(void)tap_lease_add(tap, &lease, 1, 60, NULL);
		assert_false(tap_intact(tap)); /* nor does a change of ours */
		assert_ok(tap_intact_load(tap, &err), err);
		assert_true(tap_intact(tap));
		assert_string_equal(ruleset(tap), good); /* and the sets are empty */

		/* Emptying what is empty is no transaction to the kernel: it must not make room for one that goes
		 * unseen. */
		assert_ok(tap_ranges_set(tap, NULL, 0, &err), err);
		assert_ok(tap_lease_flush(tap, &err), err);
		change(tap, changes[i]);
		if (tap_intact(tap))
			fail_msg("not found behind empty transactions: %s", changes[i]);
		assert_ok(tap_intact_load(tap, &err), err);
	}
	tap_detach(tap, false);
}

/* Whatever is flushed, there is no way out (F-02, E-10). */
static void
case_F_02_flushed_rules_open_nothing(void **state)
{
	int netns, fd;
	struct tap_config config = fixture_config_container("flushed", &netns);
	struct tap *tap = fixture_attach(&config);
	double ms;

	(void)state;
	change(tap, "nft flush ruleset");
	fd = fixture_socket(netns, AF_INET, SOCK_STREAM, 0);
	assert_int_not_equal(fixture_connect(fd, PUBLIC4, 443, &ms), 0);
	close(fd);
	fd = fixture_socket(netns, AF_INET, SOCK_STREAM, 0);
	assert_int_not_equal(fixture_connect(fd, "172.16.0.1", TAP_TPROXY_PORT, &ms), 0);
	assert_false(fixture_readable(tap_socket(tap, TAP_SOCKET_TCP4), 20));
	close(fd);
	tap_detach(tap, false);
	close(netns);
}

static void
test_harmless_changes_are_none(void **state)
{
	struct tap_config config = fixture_config("harmless");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease lease = {.addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = 443};
	struct error err = {0};

	(void)state;
	for (int i = 0; i < 5; i++) {
		assert_ok(tap_lease_add(tap, &lease, 1, 60, &err), err);
		assert_true(tap_intact(tap));
		change(tap, "nft add table ip admin; nft delete table ip admin"); /* not ours */
		assert_true(tap_intact(tap));
		assert_ok(tap_ranges_set(tap, NULL, 0, &err), err);
		assert_true(tap_intact(tap));
		assert_ok(tap_lease_flush(tap, &err), err);
		assert_true(tap_intact(tap));
		assert_int_equal(tap_lease_add(tap, &(struct tap_lease){.proto = 1}, 1, 60, &err), -1);
		assert_true(tap_intact(tap));
	}
	tap_detach(tap, false);
}

static void
test_constant_sets_cannot_be_changed(void **state)
{
	struct tap_config config = fixture_config("constant");
	struct tap *tap = fixture_attach(&config);

	(void)state;
	fixture_run(tap_netns_fd(tap),
	    "nft delete element inet postern never4 '{ 10.0.0.0/8 }' 2>&1; nft flush set inet postern never4 2>&1");
	assert_contains(fixture_run(tap_netns_fd(tap), "nft list set inet postern never4"), "10.0.0.0/8");
	tap_detach(tap, false);
}

struct writer {
	struct tap *tap;
	volatile bool stop;
	bool failed;
};

static void *
write_always(void *context)
{
	struct writer *writer = context;

	while (!writer->stop)
		if (system("nsenter --net=" FIXTURE_DIR "/postern-race "
			   "sh -c 'nft add table ip other; nft delete table ip other'") != 0)
			writer->failed = true;
	return NULL;
}

/* Somebody else's transactions while we list: counts are right or the listing starts over (F-13). */
static void
case_F_13_listing_while_others_write(void **state)
{
	struct tap_config config = fixture_config("race");
	struct tap *tap = fixture_attach(&config);
	struct writer writer = {.tap = tap};
	struct tap_lease leases[200];
	struct addr_range range = {fixture_addr("140.82.112.0"), fixture_addr("140.82.127.255"), IPPROTO_TCP, 22, 22};
	struct error err = {0};
	uint64_t totals[TAP_COUNTER_MAX];
	pthread_t thread;

	(void)state;
	for (unsigned int i = 0; i < 200; i++)
		leases[i] = (struct tap_lease){
		    .addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = (uint16_t)(i + 1000)};
	assert_int_equal(pthread_create(&thread, NULL, write_always, &writer), 0);
	for (int i = 0; i < 300; i++) {
		assert_ok(tap_lease_add(tap, leases, 200, 60, &err), err);
		assert_ok(tap_ranges_set(tap, &range, 1, &err), err);
		assert_ok(tap_counters(tap, totals, &err), err);
		assert_true(tap_intact(tap));
	}
	writer.stop = true;
	pthread_join(thread, NULL);
	assert_false(writer.failed);
	tap_detach(tap, false);
}

/* The host's own namespace (the test's): other people's rules do not matter to a sandbox (F-01). */
static void
case_F_01_host_flush_does_not_matter(void **state)
{
	struct tap_config config = fixture_config("hostflush");
	struct tap *tap = fixture_attach(&config);
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);

	(void)state;
	fixture_run(self, "nft flush ruleset; sysctl -qw net.ipv4.ip_forward=1");
	assert_true(tap_intact(tap));
	close(self);
	tap_detach(tap, false);
}

static void
test_host_chain(void **state)
{
	struct tap_host_resolver resolvers[] = {
	    {fixture_addr("127.0.0.53"), 53},
	    {fixture_addr("fd00::53"), 5353},
	};
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	struct error err = {0};
	const char *text;

	(void)state;
	assert_false(tap_host_chain_present("postern_host"));
	assert_ok(tap_host_chain_set("postern_host", 4242, resolvers, 2, &err), err);
	assert_true(tap_host_chain_present("postern_host"));
	text = fixture_run(self, "nft list ruleset");
	assert_contains(text, "type filter hook output priority filter; policy accept;");
	assert_contains(text, "meta skuid 4242 ip daddr 127.0.0.53 udp dport 53 accept");
	assert_contains(text, "meta skuid 4242 ip6 daddr fd00::53 tcp dport 5353 accept");
	assert_contains(text, "@never4");
	/* Setting it again replaces it. */
	assert_ok(tap_host_chain_set("postern_host", 4343, NULL, 0, &err), err);
	text = fixture_run(self, "nft list ruleset");
	assert_lacks(text, "4242");
	assert_lacks(text, "127.0.0.53");
	fixture_run(self, "nft flush ruleset");
	assert_false(tap_host_chain_present("postern_host"));
	assert_ok(tap_host_chain_set("postern_host", 4343, NULL, 0, &err), err);
	assert_ok(tap_host_chain_remove("postern_host", &err), err);
	assert_false(tap_host_chain_present("postern_host"));
	assert_ok(tap_host_chain_remove("postern_host", &err), err);
	close(self);
}

/* What a process of the gateway's uid can dial in this namespace: a child becomes that uid. */
static int
connect_as(uid_t uid, const char *addr, uint16_t port)
{
	int pipe_fds[2], result = -1;
	pid_t child;

	assert_int_equal(pipe(pipe_fds), 0);
	child = fork();
	if (child == 0) {
		double ms;
		int fd;

		if (setresuid(uid, uid, uid) < 0)
			_exit(1);
		fd = socket(strchr(addr, ':') == NULL ? AF_INET : AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
		result = fixture_connect(fd, addr, port, &ms);
		_exit(write(pipe_fds[1], &result, sizeof(result)) == sizeof(result) ? 0 : 1);
	}
	close(pipe_fds[1]);
	assert_int_equal(read(pipe_fds[0], &result, sizeof(result)), sizeof(result));
	close(pipe_fds[0]);
	return result;
}

static void
test_host_chain_refuses_the_uid_only(void **state)
{
	struct tap_host_resolver resolver = {fixture_addr("127.0.0.1"), 5300};
	struct sockaddr_in any = {.sin_family = AF_INET};
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), listeners[2];
	static const uint16_t ports[2] = {5300, 5301};
	struct error err = {0};

	(void)state;
	fixture_run(self, "ip link set lo up; ip addr add " PUBLIC4 "/32 dev lo");
	for (int i = 0; i < 2; i++) {
		listeners[i] = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
		any.sin_port = htons(ports[i]);
		assert_int_equal(bind(listeners[i], (struct sockaddr *)&any, sizeof(any)), 0);
		assert_int_equal(listen(listeners[i], 16), 0);
	}
	assert_ok(tap_host_chain_set("postern_host", 4242, &resolver, 1, &err), err);
	assert_int_equal(connect_as(4242, "127.0.0.1", 5300), 0); /* the resolver */
	assert_int_not_equal(connect_as(4242, "127.0.0.1", 5301), 0);
	assert_int_not_equal(connect_as(4242, "127.0.0.2", 5300), 0);
	assert_int_not_equal(connect_as(4242, "::1", 5301), 0);
	assert_int_equal(connect_as(4242, PUBLIC4, 5301), 0);
	assert_int_equal(connect_as(4243, "127.0.0.1", 5301), 0); /* another uid's business is its own */
	assert_ok(tap_host_chain_remove("postern_host", &err), err);
	assert_int_equal(connect_as(4242, "127.0.0.1", 5301), 0);
	close(listeners[0]);
	close(listeners[1]);
	close(self);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_F_02_changes_are_found_and_repaired),
	    cmocka_unit_test(case_F_02_flushed_rules_open_nothing),
	    cmocka_unit_test(test_harmless_changes_are_none),
	    cmocka_unit_test(test_constant_sets_cannot_be_changed),
	    cmocka_unit_test(case_F_13_listing_while_others_write),
	    cmocka_unit_test(case_F_01_host_flush_does_not_matter),
	    cmocka_unit_test(test_host_chain),
	    cmocka_unit_test(test_host_chain_refuses_the_uid_only),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
