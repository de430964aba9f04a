/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attach, adopt and detach: what is there afterwards, and that nothing is when it failed. */
#include "tap_fixture.h"

#include "tap/link.h"

#include <dirent.h>
#include <limits.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>

/* Network namespaces that open descriptors of this process refer to, and the descriptors. */
static size_t
count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

/* Detach closes what waits for RCU in a thread: wait for it. */
static void
assert_fds(size_t expected)
{
	for (int i = 0; i < 200 && count_fds() != expected; i++)
		fixture_sleep_ms(10);
	assert_int_equal(count_fds(), expected);
}

/* The number once threads of earlier detaches are through. */
static size_t
settled_fds(void)
{
	size_t last = 0;

	for (int same = 0; same < 10; same++) {
		if (count_fds() != last)
			same = 0;
		last = count_fds();
		fixture_sleep_ms(10);
	}
	return last;
}

static bool
file_exists(const char *path)
{
	return access(path, F_OK) == 0;
}

static void
test_tap_layout(void **state)
{
	struct tap_config config = fixture_config("layout");
	struct tap *tap;
	const char *text;

	(void)state;
	config.owner_uid = 1234;
	tap = fixture_attach(&config);
	assert_string_equal(tap_netns_path(tap), FIXTURE_DIR "/postern-layout");
	assert_true(file_exists(FIXTURE_DIR "/postern-layout"));
	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++) {
		assert_true(tap_socket(tap, (enum tap_socket)i) >= 0);
		assert_true(fcntl(tap_socket(tap, (enum tap_socket)i), F_GETFL) & O_NONBLOCK);
		assert_true(fcntl(tap_socket(tap, (enum tap_socket)i), F_GETFD) & FD_CLOEXEC);
	}
	text = fixture_run(tap_netns_fd(tap), "ip -d link; ip addr");
	assert_contains(text, "tun type tap pi off vnet_hdr on persist on user 1234");
	assert_contains(text, "06:01:ac:10:00:01");
	assert_contains(text, "inet 172.16.0.1/30");
	assert_contains(text, "inet6 fd70:6f73:7465:726e::1/64");
	assert_lacks(text, "tentative");
	text =
	    fixture_run(tap_netns_fd(tap), "ip route show table all; ip -6 route show table main; ip rule; ip neigh");
	assert_contains(text, "local default dev lo table local");
	assert_contains(text, "local default dev lo proto static metric");
	assert_contains(text, "172.16.0.2 dev tap0 lladdr 06:00:ac:10:00:02 PERMANENT");
	assert_contains(text, "fd70:6f73:7465:726e::2 dev tap0 lladdr 06:00:ac:10:00:02 PERMANENT");
	assert_lacks(text, "fwmark");
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
	assert_false(file_exists(FIXTURE_DIR "/postern-layout"));
}

static void
test_ip_netns_knows_it(void **state)
{
	struct tap_config config = fixture_config("ipnetns");
	struct tap *tap = fixture_attach(&config);
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	const char *text = fixture_run(self, "ip netns list; ip netns exec postern-ipnetns ip -o link");

	(void)state;
	assert_contains(text, "postern-ipnetns");
	assert_contains(text, "tap0");
	close(self);
	tap_detach(tap, false);
}

static void
test_ruleset_as_nft_sees_it(void **state)
{
	struct tap_config config = fixture_config("oracle");
	struct tap *tap = fixture_attach(&config);
	const char *text = fixture_run(tap_netns_fd(tap), "nft -j list ruleset >/dev/null && nft list ruleset");

	(void)state;
	assert_contains(text, "type filter hook prerouting priority mangle; policy drop;");
	assert_contains(text, "type filter hook forward priority filter; policy drop;");
	assert_contains(text, "type filter hook ingress device \"tap0\" priority -500; policy drop;");
	assert_contains(text, "ip saddr != 172.16.0.2 goto refuse_spoofed");
	assert_contains(text, "udp dport 53 socket transparent 1 accept");
	assert_contains(text, "ip daddr . meta l4proto . th dport @lease4 tproxy ip to 127.0.0.1:15001 accept");
	assert_contains(text, "169.254.0.0/16");
	assert_contains(text, "168.63.129.16");
	/* The SYN rule stands before the socket rule, the never list before both, port 53 before that. */
	assert_true(strstr(text, "dport 53") < strstr(text, "@never4 goto"));
	assert_true(strstr(text, "@never4 goto") < strstr(text, "tcp flags syn"));
	assert_true(strstr(text, "tcp flags syn") < strstr(text, "meta l4proto tcp socket transparent 1 accept"));
	tap_detach(tap, false);
}

static void
case_E_30_no_conntrack_no_nat_no_set_size(void **state)
{
	struct tap_config config = fixture_config("noct");
	struct tap *tap = fixture_attach(&config);
	const char *text = fixture_run(tap_netns_fd(tap), "nft list ruleset");

	(void)state;
	assert_lacks(text, " ct ");
	assert_lacks(text, "\tct ");
	assert_lacks(text, "type nat");
	assert_lacks(text, "masquerade");
	assert_lacks(text, " size ");
	tap_detach(tap, false);
}

/* Values of the checklist as another program reads them. */
static void
assert_sysctl(int netns_fd, const char *key, const char *value)
{
	char command[256], line[64];

	snprintf(command, sizeof(command), "cat /proc/sys/net/%s", key);
	snprintf(line, sizeof(line), "%s\n", value);
	if (strcmp(fixture_run(netns_fd, command), line) != 0)
		fail_msg("%s is %s, not %s", key, fixture_run(netns_fd, command), value);
}

static void
case_E_05_sysctls_whatever_is_inherited(void **state)
{
	static const struct {
		const char *key, *value;
	} rows[] = {
	    {"ipv4/conf/tap0/accept_redirects", "0"},
	    {"ipv4/conf/all/accept_redirects", "0"},
	    {"ipv4/conf/tap0/accept_source_route", "0"},
	    {"ipv4/conf/tap0/rp_filter", "0"},
	    {"ipv4/conf/all/rp_filter", "0"},
	    {"ipv4/conf/tap0/route_localnet", "0"},
	    {"ipv4/conf/tap0/arp_ignore", "1"},
	    {"ipv4/conf/tap0/arp_accept", "0"},
	    {"ipv4/conf/tap0/proxy_arp", "0"},
	    {"ipv4/conf/tap0/forwarding", "0"},
	    {"ipv4/ip_forward", "0"},
	    {"ipv4/tcp_syncookies", "1"},
	    {"ipv4/tcp_fastopen", "0"},
	    {"ipv4/icmp_ratelimit", "0"},
	    {"ipv6/conf/tap0/accept_ra", "0"},
	    {"ipv6/conf/tap0/autoconf", "0"},
	    {"ipv6/conf/tap0/accept_redirects", "0"},
	    {"ipv6/conf/tap0/accept_source_route", "-1"},
	    {"ipv6/conf/tap0/accept_dad", "0"},
	    {"ipv6/conf/tap0/forwarding", "0"},
	    {"ipv6/conf/all/forwarding", "0"},
	    {"ipv6/conf/tap0/proxy_ndp", "0"},
	    {"ipv6/icmp/ratelimit", "0"},
	};
	struct tap_config config = fixture_config("sysctl");
	struct tap *tap = fixture_attach(&config);

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_sysctl(tap_netns_fd(tap), rows[i].key, rows[i].value);
	/* An adopt puts them right again. */
	fixture_run(tap_netns_fd(tap),
	    "sysctl -qw net.ipv4.ip_forward=1 net.ipv4.conf.tap0.rp_filter=1 "
	    "net.ipv6.conf.tap0.accept_ra=2 net.ipv4.conf.tap0.accept_redirects=1");
	tap_detach(tap, true);
	tap = fixture_attach_as(&config, true);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_sysctl(tap_netns_fd(tap), rows[i].key, rows[i].value);
	tap_detach(tap, false);
}

static void
case_E_32_ipv6_off(void **state)
{
	struct tap_config config = fixture_config("v4only");
	const char *text;
	struct tap *tap;

	(void)state;
	memset(&config.guest6, 0, sizeof(config.guest6));
	memset(&config.router6, 0, sizeof(config.router6));
	tap = fixture_attach(&config);
	assert_sysctl(tap_netns_fd(tap), "ipv6/conf/tap0/disable_ipv6", "1");
	text = fixture_run(tap_netns_fd(tap), "ip -6 addr; nft list ruleset");
	assert_lacks(text, "inet6");
	assert_lacks(text, "@lease6");
	assert_contains(text, "meta nfproto ipv6 goto refuse_spoofed");
	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++)
		assert_true(tap_socket(tap, (enum tap_socket)i) >= 0);
	tap_detach(tap, false);
}

static void
test_container_layout(void **state)
{
	int netns;
	struct tap_config config = fixture_config_container("cont", &netns);
	struct tap *tap = fixture_attach(&config);
	const char *text = fixture_run(netns, "ip addr; ip route; ip -6 route");

	(void)state;
	assert_contains(text, "eth0@");
	assert_contains(text, "inet 172.16.0.2/30");
	assert_contains(text, "inet6 fd70:6f73:7465:726e::2/64");
	assert_contains(text, "default via 172.16.0.1 dev eth0");
	assert_contains(text, "default via fd70:6f73:7465:726e::1 dev eth0");
	assert_contains(text, "lo: <LOOPBACK,UP");
	assert_lacks(text, "tentative");
	assert_int_equal(tap_config(tap)->netns_fd, -1);
	text = fixture_run(tap_netns_fd(tap), "ip neigh");
	assert_contains(text, "PERMANENT");
	tap_detach(tap, false);
	close(netns);
}

static void
test_container_again_at_once(void **state)
{
	int netns;
	struct tap_config config = fixture_config_container("again", &netns);

	(void)state;
	for (int i = 0; i < 3; i++)
		tap_detach(fixture_attach(&config), false);
	close(netns);
}

static void
test_container_device_taken(void **state)
{
	int netns;
	struct tap_config config = fixture_config_container("taken", &netns);
	struct error err = {0};
	struct tap *tap;

	(void)state;
	fixture_run(netns, "ip link add eth0 type bridge");
	assert_int_equal(tap_attach(&config, FIXTURE_DIR, false, &tap, &err), -1);
	assert_int_equal(err.code, ERROR_EXISTS);
	assert_contains(err.text, "eth0");
	assert_false(file_exists(FIXTURE_DIR "/postern-taken"));
	close(netns);
}

static void
case_F_08_not_a_container_namespace(void **state)
{
	struct tap_config config = fixture_config("wrong");
	struct error err = {0};
	struct tap *tap;

	(void)state;
	config.kind = TAP_KIND_NETNS;
	strcpy(config.ifname, "eth0");
	config.netns_fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC); /* our own */
	assert_int_equal(tap_attach(&config, FIXTURE_DIR, false, &tap, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
	close(config.netns_fd);
	config.netns_fd = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
	assert_int_equal(tap_attach(&config, FIXTURE_DIR, false, &tap, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
	close(config.netns_fd);
	config.netns_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	assert_int_equal(tap_attach(&config, FIXTURE_DIR, false, &tap, &err), -1);
	assert_int_equal(err.code, ERROR_USAGE);
	close(config.netns_fd);
}

static void
test_name_taken(void **state)
{
	struct tap_config config = fixture_config("twice");
	struct tap *tap = fixture_attach(&config), *other;
	struct error err = {0};

	(void)state;
	assert_int_equal(tap_attach(&config, FIXTURE_DIR, false, &other, &err), -1);
	assert_int_equal(err.code, ERROR_EXISTS);
	assert_true(file_exists(FIXTURE_DIR "/postern-twice")); /* the first one's is untouched */
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
}

static void
case_E_31_same_addresses_in_two(void **state)
{
	struct tap_config a = fixture_config("twin-a"), b = fixture_config("twin-b");
	struct tap *tap_a = fixture_attach(&a), *tap_b = fixture_attach(&b);

	(void)state;
	assert_memory_equal(tap_config(tap_a)->guest_mac, tap_config(tap_b)->guest_mac, 6);
	assert_memory_equal(tap_router_mac(tap_a), tap_router_mac(tap_b), 6);
	tap_detach(tap_a, false);
	tap_detach(tap_b, false);
}

static void
test_without_directory(void **state)
{
	struct tap_config config = fixture_config("nodir");
	struct error err = {0};
	struct tap *tap;
	struct stat st;
	int fd;

	(void)state;
	assert_ok(tap_attach(&config, NULL, false, &tap, &err), err);
	assert_false(file_exists(FIXTURE_DIR "/postern-nodir"));
	assert_contains(tap_netns_path(tap), "/proc/");
	fd = open(tap_netns_path(tap), O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	tap_detach(tap, false);
}

static void
case_F_05_adopt_keeps_device_and_trusts_nothing(void **state)
{
	struct tap_config config = fixture_config("adopt");
	struct tap *tap = fixture_attach(&config);
	struct tap_lease lease = {.addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = 443};
	struct error err = {0};
	const char *text;
	char index[64];
	int vmm, netns;

	(void)state;
	assert_ok(tap_lease_add(tap, &lease, 1, 60, &err), err);
	vmm = fixture_open_tap(tap);
	strcpy(index, fixture_run(tap_netns_fd(tap), "ip -o link show tap0 | cut -d: -f1"));
	tap_detach(tap, true);
	assert_true(file_exists(FIXTURE_DIR "/postern-adopt"));

	/* A crash leaves the leases: nobody flushes them. */
	tap = fixture_attach_as(&config, true);
	assert_ok(tap_lease_add(tap, &lease, 1, 60, &err), err);
	fixture_run(tap_netns_fd(tap), "nft add rule inet postern prerouting accept");
	assert_false(tap_intact(tap));
	tap_detach(tap, true);
	netns = open(FIXTURE_DIR "/postern-adopt", O_RDONLY | O_CLOEXEC);
	fixture_run(netns, "nft add element inet postern lease4 '{ 8.8.8.8 . tcp . 80 }'");
	close(netns);

	tap = fixture_attach_as(&config, true);
	assert_true(tap_intact(tap));
	text = fixture_run(tap_netns_fd(tap), "nft list set inet postern lease4");
	assert_lacks(text, "elements");
	assert_contains(fixture_run(tap_netns_fd(tap), "ip -o link show tap0 | cut -d: -f1"), index);
	assert_contains(fixture_run(tap_netns_fd(tap), "ip -o link show tap0"), "LOWER_UP"); /* the VMM never noticed */
	close(vmm);
	tap_detach(tap, false);
}

static void
test_adopt_without_earlier_run(void **state)
{
	struct tap_config config = fixture_config("fresh");
	int fd;

	(void)state;
	tap_detach(fixture_attach_as(&config, true), false);
	/* A file that lost its mount. */
	fd = open(FIXTURE_DIR "/postern-fresh", O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	assert_true(fd >= 0);
	close(fd);
	tap_detach(fixture_attach_as(&config, true), false);
	assert_false(file_exists(FIXTURE_DIR "/postern-fresh"));
}

static void
test_adopt_makes_a_lost_device_again(void **state)
{
	struct tap_config config = fixture_config("lost");
	struct tap *tap = fixture_attach(&config);

	(void)state;
	fixture_run(tap_netns_fd(tap), "ip link del tap0");
	tap_detach(tap, true);
	tap = fixture_attach_as(&config, true);
	assert_contains(
	    fixture_run(tap_netns_fd(tap), "ip -d link show tap0; nft list ruleset"), "hook ingress device \"tap0\"");
	tap_detach(tap, false);
}

static void
test_adopt_container(void **state)
{
	int netns;
	struct tap_config config = fixture_config_container("adoptc", &netns);
	struct tap *tap = fixture_attach(&config);
	uint8_t mac[6];

	(void)state;
	memcpy(mac, tap_config(tap)->guest_mac, sizeof(mac));
	tap_detach(tap, true);
	tap = fixture_attach_as(&config, true);
	assert_memory_equal(tap_config(tap)->guest_mac, mac, sizeof(mac)); /* the same veth */
	tap_detach(tap, true);
	close(netns);

	/* The container was started anew: another namespace. */
	assert_int_equal(netns_create(&netns, NULL), 0);
	config.netns_fd = netns;
	tap = fixture_attach_as(&config, true);
	assert_contains(fixture_run(netns, "ip addr"), "172.16.0.2/30");
	tap_detach(tap, false);
	close(netns);
}

/* The container's old namespace took it along in the moment in which its next attach found it. */
static void
test_a_device_that_is_gone_is_deleted(void **state)
{
	int rtnl = link_open(NULL);

	(void)state;
	assert_true(rtnl >= 0);
	assert_int_equal(link_delete(rtnl, INT_MAX, NULL), 0);
	close(rtnl);
}

static void
test_detach_while_vmm_holds_the_tap(void **state)
{
	struct tap_config config = fixture_config("held");
	struct tap *tap = fixture_attach(&config);
	int vmm = fixture_open_tap(tap);
	char frame[64] = {0};

	(void)state;
	tap_detach(tap, false);
	for (int i = 0; i < 100 && write(vmm, frame, sizeof(frame)) >= 0; i++)
		fixture_sleep_ms(10);
	assert_true(write(vmm, frame, sizeof(frame)) < 0); /* the device is gone under the VMM */
	close(vmm);
}

/* Every kernel operation of an attach fails in turn: nothing is left, and then it works (F-06). */
static void
attach_failing_at_each_step(const struct tap_config *config, const char *path)
{
	size_t fds = settled_fds();
	struct error err = {0};
	struct tap *tap;
	unsigned int k;

	for (k = 1;; k++) {
		tap_fail_at = k;
		if (tap_attach(config, FIXTURE_DIR, false, &tap, &err) == 0)
			break;
		assert_int_equal(tap_fail_at, 0); /* it was the injected one */
		assert_contains(err.text, "injected");
		assert_false(file_exists(path));
		assert_fds(fds);
	}
	assert_true(k > 50);
	tap_fail_at = 0;
	assert_true(tap_intact(tap));
	tap_detach(tap, false);
	assert_fds(fds);
}

static void
case_F_06_failure_at_each_step_tap(void **state)
{
	struct tap_config config = fixture_config("fault");

	(void)state;
	attach_failing_at_each_step(&config, FIXTURE_DIR "/postern-fault");
}

static void
case_F_06_failure_at_each_step_container(void **state)
{
	int netns;
	struct tap_config config = fixture_config_container("faultc", &netns);

	(void)state;
	attach_failing_at_each_step(&config, FIXTURE_DIR "/postern-faultc");
	for (int i = 0; i < 100 && strstr(fixture_run(netns, "ip link"), "eth0") != NULL; i++)
		fixture_sleep_ms(10);
	assert_lacks(fixture_run(netns, "ip link"), "eth0");
	close(netns);
}

static void
case_F_07_many_cycles_leak_nothing(void **state)
{
	struct tap_config config = fixture_config("cycle");
	int self = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), netns;
	struct tap_config container = fixture_config_container("cyclec", &netns);
	size_t fds = settled_fds();

	(void)state;
	for (int i = 0; i < 200; i++)
		tap_detach(fixture_attach(i % 4 == 3 ? &container : &config), false);
	assert_fds(fds);
	assert_lacks(fixture_run(self, "ls " FIXTURE_DIR "; grep " FIXTURE_DIR "/ /proc/self/mounts"), "postern");
	for (int i = 0; i < 100 && strstr(fixture_run(netns, "ip link"), "eth0") != NULL; i++)
		fixture_sleep_ms(20);
	assert_lacks(fixture_run(netns, "ip link"), "eth0"); /* our ends are gone, so the namespaces are */
	close(netns);
	close(self);
}

static void
write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		_exit(3);
	close(fd);
}

/* As an ordinary user who is root of a user namespace of his own. */
static void
attach_as_user(uid_t uid, const char *id_map)
{
	struct tap_config config = fixture_config("user"), container;
	struct tap_lease lease = {.addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = 443};
	struct error err = {0};
	struct tap *tap;
	bool taps = false;
	int netns;

	if (setresgid(uid, uid, uid) < 0 || setresuid(uid, uid, uid) < 0 || unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		_exit(2);
	prctl(PR_SET_DUMPABLE, 1); /* else the files below belong to root */
	write_file("/proc/self/setgroups", "deny");
	write_file("/proc/self/uid_map", id_map);
	write_file("/proc/self/gid_map", id_map);
	container = fixture_config_container("userc", &netns);
	if (tap_probe(&taps, &err) < 0 || tap_attach(&container, NULL, false, &tap, &err) < 0 ||
	    tap_lease_add(tap, &lease, 1, 60, &err) < 0 || !tap_intact(tap)) {
		puts(err.text);
		_exit(4);
	}
	tap_detach(tap, false);
	if (!taps || tap_attach(&config, NULL, false, &tap, &err) < 0) {
		puts(err.text);
		_exit(5);
	}
	_exit(0);
}

static void
test_rootless(void **state)
{
	pid_t child;
	int status;

	(void)state;
	/* A device node that the user may open, as most systems have it. */
	assert_int_equal(mknod("/run/tun", S_IFCHR | 0666, 10 << 8 | 200), 0);
	assert_int_equal(chmod("/run/tun", 0666), 0);
	assert_int_equal(mount("/run/tun", "/dev/net/tun", NULL, MS_BIND, NULL), 0);
	child = fork();
	if (child == 0)
		attach_as_user(65533, "0 65533 1\n");
	assert_int_equal(waitpid(child, &status, 0), child);
	umount("/dev/net/tun");
	assert_true(WIFEXITED(status));
	if (WEXITSTATUS(status) == 2)
		skip(); /* no user namespaces here */
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void
test_probe(void **state)
{
	size_t fds = settled_fds();
	struct error err = {0};
	bool taps = false;

	(void)state;
	assert_ok(tap_probe(&taps, &err), err);
	assert_true(taps);
	assert_fds(fds);
}

static void
case_F_14_probe_names_what_is_missing(void **state)
{
	struct error err = {0};
	bool taps = false;

	(void)state;
	tap_fail_at = 4; /* making a TAP: not fatal, and said */
	assert_ok(tap_probe(&taps, &err), err);
	assert_false(taps);
	for (unsigned int k = 1; k < 40; k++) {
		if (k == 4 || k == 5)
			continue;
		memset(&err, 0, sizeof(err));
		tap_fail_at = k;
		assert_int_equal(tap_probe(&taps, &err), -1);
		assert_contains(err.text, "injected");
	}
	tap_fail_at = 0;
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_tap_layout),
	    cmocka_unit_test(test_ip_netns_knows_it),
	    cmocka_unit_test(test_ruleset_as_nft_sees_it),
	    cmocka_unit_test(case_E_30_no_conntrack_no_nat_no_set_size),
	    cmocka_unit_test(case_E_05_sysctls_whatever_is_inherited),
	    cmocka_unit_test(case_E_32_ipv6_off),
	    cmocka_unit_test(test_container_layout),
	    cmocka_unit_test(test_container_again_at_once),
	    cmocka_unit_test(test_container_device_taken),
	    cmocka_unit_test(case_F_08_not_a_container_namespace),
	    cmocka_unit_test(test_name_taken),
	    cmocka_unit_test(case_E_31_same_addresses_in_two),
	    cmocka_unit_test(test_without_directory),
	    cmocka_unit_test(case_F_05_adopt_keeps_device_and_trusts_nothing),
	    cmocka_unit_test(test_adopt_without_earlier_run),
	    cmocka_unit_test(test_adopt_makes_a_lost_device_again),
	    cmocka_unit_test(test_adopt_container),
	    cmocka_unit_test(test_a_device_that_is_gone_is_deleted),
	    cmocka_unit_test(test_detach_while_vmm_holds_the_tap),
	    cmocka_unit_test(case_F_06_failure_at_each_step_tap),
	    cmocka_unit_test(case_F_06_failure_at_each_step_container),
	    cmocka_unit_test(case_F_07_many_cycles_leak_nothing),
	    cmocka_unit_test(test_rootless),
	    cmocka_unit_test(test_probe),
	    cmocka_unit_test(case_F_14_probe_names_what_is_missing),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
