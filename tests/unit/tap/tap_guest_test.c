/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a guest with ordinary sockets sees, from a container's namespace: the refusals are fast, what is open reaches
 * our sockets, and nothing else is there. */
#include "tap_fixture.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

/* Refusals must arrive within this (F-17). */
#define FAST_MS 10
#define FAST_TRIES 3

struct guest {
	struct tap *tap;
	int netns;
};

static struct guest
guest_make(const char *name)
{
	struct guest guest;
	struct tap_config config = fixture_config_container(name, &guest.netns);

	guest.tap = fixture_attach(&config);
	return guest;
}

static void
guest_free(struct guest *guest)
{
	tap_detach(guest->tap, false);
	close(guest->netns);
}

static int
family_of(const char *addr)
{
	return strchr(addr, ':') == NULL ? AF_INET : AF_INET6;
}

/* Dial from the guest; the descriptor, or -1 with the error. */
static int
dial(const struct guest *guest, const char *addr, uint16_t port, int *ret_error, double *ret_ms)
{
	int fd = fixture_socket(guest->netns, family_of(addr), SOCK_STREAM, 0);

	*ret_error = fixture_connect(fd, addr, port, ret_ms);
	if (*ret_error == 0)
		return fd;
	close(fd);
	return -1;
}

/* Refused, and fast in one of a few tries, because others use the machine too. Returns the tries. */
static unsigned int
assert_refused(const struct guest *guest, const char *addr, uint16_t port)
{
	unsigned int tries = 0;
	double ms;

	do {
		int error, fd = dial(guest, addr, port, &error, &ms);

		if (fd >= 0 || error != ECONNREFUSED)
			fail_msg("[%s]:%u is not refused: %s", addr, port, fd >= 0 ? "connected" : strerror(error));
		tries++;
	} while (ms >= FAST_MS && tries < FAST_TRIES);
	if (ms >= FAST_MS)
		fail_msg("[%s]:%u was refused after %.1f ms", addr, port, ms);
	return tries;
}

static void
lease_add(const struct guest *guest, const char *addr, uint8_t proto, uint16_t port)
{
	struct tap_lease one = {.addr = fixture_addr(addr), .proto = proto, .port = port};
	struct error err = {0};

	assert_ok(tap_lease_add(guest->tap, &one, 1, 60, &err), err);
}

static void
case_F_17_unleased_is_refused_fast(void **state)
{
	struct guest guest = guest_make("refused");
	uint64_t before;

	(void)state;
	assert_refused(&guest, PUBLIC4, 443); /* the first one may resolve the gateway's MAC */
	before = fixture_counter(guest.tap, TAP_COUNTER_TCP);
	for (int i = 0; i < 20; i++) {
		before += assert_refused(&guest, PUBLIC4, 443);
		before += assert_refused(&guest, PUBLIC6, 443);
	}
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_TCP), before);
	guest_free(&guest);
}

/* A datagram from the guest; the ICMP error that comes back, as a connected socket sees it. */
static int
udp_error(const struct guest *guest, const char *addr, uint16_t port, double *ret_ms)
{
	int fd = fixture_socket(guest->netns, family_of(addr), SOCK_DGRAM, 0), error = 0;
	struct addr to = fixture_addr(addr);
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&to, port, &sa);
	double start = fixture_now_ms();
	char byte = 'x';

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(send(fd, &byte, 1, 0), 1);
	if (fixture_readable(fd, 1000) && recv(fd, &byte, 1, 0) < 0)
		error = errno;
	*ret_ms = fixture_now_ms() - start;
	close(fd);
	return error;
}

static void
test_udp_is_refused_fast(void **state)
{
	static const char *const addrs[] = {PUBLIC4, PUBLIC6, "169.254.169.254", "fd00:ec2::254"};
	struct guest guest = guest_make("udp");
	unsigned int slow = 0;
	double ms;

	(void)state;
	for (int round = 0; round < 20; round++) {
		for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
			assert_int_equal(udp_error(&guest, addrs[i], 443, &ms), ECONNREFUSED);
			slow += ms >= FAST_MS;
		}
	}
	assert_true(slow < 20);
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_UDP), 40);
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_NEVER), 40);
	guest_free(&guest);
}

static void
test_never_list_is_refused_fast(void **state)
{
	static const char *const addrs[] = {
	    "169.254.169.254",
	    "10.0.0.1",
	    "192.168.1.1",
	    "100.100.100.200",
	    "168.63.129.16",
	    "172.16.0.1",
	    "172.16.0.3",
	    "198.51.100.1",
	    "fd00:ec2::254",
	    "fd70:6f73:7465:726e::1",
	    "fd70:6f73:7465:726e::77",
	    "2001:db8::1",
	    "2002::1",
	    "64:ff9b::101:101",
	    "2606::5efe:808:808",
	    "2606::200:5efe:808:808",
	    "5f00::1",
	};
	struct guest guest = guest_make("never");
	uint64_t before;

	(void)state;
	assert_refused(&guest, PUBLIC4, 443);
	before = fixture_counter(guest.tap, TAP_COUNTER_NEVER);
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		/* The guest's own subnet is on the link, and nobody but the gateway answers there. */
		if (strcmp(addrs[i], "172.16.0.3") == 0 || strcmp(addrs[i], "fd70:6f73:7465:726e::77") == 0)
			continue;
		before += assert_refused(&guest, addrs[i], 80);
	}
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_NEVER), before);
	guest_free(&guest);
}

static void
case_E_11_listener_cannot_be_dialled(void **state)
{
	struct guest guest = guest_make("loop");

	(void)state;
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	assert_refused(&guest, "172.16.0.1", TAP_TPROXY_PORT);
	assert_refused(&guest, "172.16.0.1", 443);
	assert_refused(&guest, "fd70:6f73:7465:726e::1", TAP_TPROXY_PORT);
	assert_refused(&guest, "fd70:6f73:7465:726e::1", 443);
	assert_refused(&guest, PUBLIC4, TAP_TPROXY_PORT);
	assert_refused(&guest, PUBLIC6, TAP_TPROXY_PORT);
	assert_false(fixture_readable(tap_socket(guest.tap, TAP_SOCKET_TCP4), 50));
	assert_false(fixture_readable(tap_socket(guest.tap, TAP_SOCKET_TCP6), 50));
	guest_free(&guest);
}

/* The guest dials, our listener accepts, and the accepted socket is named after what was dialled. */
static int
accept_as(const struct guest *guest, const char *addr, uint16_t port)
{
	enum tap_socket which = family_of(addr) == AF_INET ? TAP_SOCKET_TCP4 : TAP_SOCKET_TCP6;
	struct addr dialled, expected = fixture_addr(addr);
	struct sockaddr_storage sa;
	socklen_t len = sizeof(sa);
	uint16_t dialled_port;
	int fd;

	assert_true(fixture_readable(tap_socket(guest->tap, which), 1000));
	fd = accept4(tap_socket(guest->tap, which), NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sa, &len), 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&sa, &dialled, &dialled_port));
	assert_true(addr_equal(&dialled, &expected));
	assert_int_equal(dialled_port, port);
	return fd;
}

static void
leased_round_trip(const struct guest *guest, const char *addr, uint16_t port)
{
	char bytes[5] = "";
	double ms;
	int error, ours, fd = dial(guest, addr, port, &error, &ms);

	if (fd < 0)
		fail_msg("[%s]:%u: %s", addr, port, strerror(error));
	ours = accept_as(guest, addr, port);
	assert_int_equal(send(fd, "ping", 4, 0), 4);
	assert_int_equal(recv(ours, bytes, 4, MSG_WAITALL), 4);
	assert_int_equal(send(ours, "pong", 4, 0), 4);
	assert_int_equal(recv(fd, bytes, 4, MSG_WAITALL), 4);
	assert_memory_equal(bytes, "pong", 4);
	close(ours);
	close(fd);
}

static void
test_leased_reaches_the_listener(void **state)
{
	struct guest guest = guest_make("leased");
	uint64_t before;

	(void)state;
	assert_refused(&guest, PUBLIC4, 443);
	before = fixture_counter(guest.tap, TAP_COUNTER_TCP);
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	lease_add(&guest, PUBLIC6, IPPROTO_TCP, 443);
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, TAP_TPROXY_PORT);
	leased_round_trip(&guest, PUBLIC4, 443);
	leased_round_trip(&guest, PUBLIC6, 443);
	leased_round_trip(&guest, PUBLIC4, TAP_TPROXY_PORT);
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_TCP), before); /* none of their packets was refused */
	/* The lease is for this address, port and protocol. */
	assert_refused(&guest, PUBLIC4, 444);
	assert_refused(&guest, "93.184.216.35", 443);
	assert_refused(&guest, "2606:2800:21f::35", 443);
	guest_free(&guest);
}

static void
test_range_reaches_the_listener(void **state)
{
	struct guest guest = guest_make("range");
	struct addr_range ranges[] = {
	    {fixture_addr("140.82.112.0"), fixture_addr("140.82.127.255"), IPPROTO_TCP, 22, 23},
	    {fixture_addr("2606:50c0::"), fixture_addr("2606:50c0::ffff"), IPPROTO_TCP, 22, 22},
	};
	struct error err = {0};

	(void)state;
	assert_ok(tap_ranges_set(guest.tap, ranges, 2, &err), err);
	leased_round_trip(&guest, "140.82.112.0", 22);
	leased_round_trip(&guest, "140.82.127.255", 23);
	leased_round_trip(&guest, "2606:50c0::abcd", 22);
	assert_refused(&guest, "140.82.128.0", 22);
	assert_refused(&guest, "140.82.111.255", 22);
	assert_refused(&guest, "140.82.112.1", 24);
	assert_refused(&guest, "140.82.112.1", 21);
	assert_refused(&guest, "2606:50c0::1:0", 22);
	guest_free(&guest);
}

static void
test_expiry_does_not_cut_a_live_connection(void **state)
{
	struct guest guest = guest_make("expiry");
	struct tap_lease one = {.addr = fixture_addr(PUBLIC4), .proto = IPPROTO_TCP, .port = 443};
	struct error err = {0};
	char byte = 'x';
	double ms;
	int error, fd, ours;

	(void)state;
	assert_ok(tap_lease_add(guest.tap, &one, 1, 1, &err), err);
	fd = dial(&guest, PUBLIC4, 443, &error, &ms);
	assert_true(fd >= 0);
	ours = accept_as(&guest, PUBLIC4, 443);
	fixture_sleep_ms(1300);
	assert_refused(&guest, PUBLIC4, 443);
	assert_int_equal(send(fd, &byte, 1, 0), 1);
	assert_true(fixture_readable(ours, 500));
	assert_int_equal(recv(ours, &byte, 1, 0), 1);
	close(ours);
	close(fd);
	guest_free(&guest);
}

/* The same source port within TIME_WAIT: the SYN must meet the listener, not the old socket. */
static void
test_port_reuse_in_time_wait_is_fast(void **state)
{
	struct guest guest = guest_make("reuse");
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_port = htons(40000)};
	struct linger abort_on_close = {.l_onoff = 1};
	double ms;
	int on = 1, ours, fd, slow = 0;

	(void)state;
	inet_pton(AF_INET, "172.16.0.2", &source.sin_addr);
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	leased_round_trip(&guest, PUBLIC4, 443);
	for (int i = 0; i < 20; i++) {
		fd = fixture_socket(guest.netns, AF_INET, SOCK_STREAM, 0);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		assert_int_equal(bind(fd, (struct sockaddr *)&source, sizeof(source)), 0);
		assert_int_equal(fixture_connect(fd, PUBLIC4, 443, &ms), 0);
		slow += ms >= FAST_MS;
		ours = accept_as(&guest, PUBLIC4, 443);
		close(ours); /* first, so that TIME_WAIT is on our side */
		fixture_sleep_ms(2);
		setsockopt(fd, SOL_SOCKET, SO_LINGER, &abort_on_close, i % 2 == 0 ? 0 : sizeof(abort_on_close));
		close(fd);
		fixture_sleep_ms(2);
	}
	assert_true(slow < 5);
	guest_free(&guest);
}

/* A query to any address arrives at our socket, and the answer bears that address. */
static void
dns_udp(const struct guest *guest, const char *addr)
{
	bool v4 = family_of(addr) == AF_INET;
	int ours = tap_socket(guest->tap, v4 ? TAP_SOCKET_DNS_UDP4 : TAP_SOCKET_DNS_UDP6);
	int fd = fixture_socket(guest->netns, v4 ? AF_INET : AF_INET6, SOCK_DGRAM, 0);
	struct addr to = fixture_addr(addr), asked;
	struct sockaddr_storage sa, from;
	socklen_t len = addr_to_sockaddr(&to, 53, &sa);
	char bytes[16], control[256];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr msg = {.msg_name = &from,
	    .msg_namelen = sizeof(from),
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;
	ssize_t got;

	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(send(fd, "query", 5, 0), 5);
	assert_true(fixture_readable(ours, 1000));
	got = recvmsg(ours, &msg, 0);
	assert_int_equal(got, 5);
	cmsg = CMSG_FIRSTHDR(&msg);
	assert_non_null(cmsg);
	if (v4) {
		struct in_pktinfo info;

		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		asked = addr_from_ipv4(&info.ipi_addr);
		info.ipi_ifindex = 0;
		info.ipi_spec_dst = info.ipi_addr;
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	} else {
		struct in6_pktinfo info;

		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		asked = addr_from_ipv6(&info.ipi6_addr);
		info.ipi6_ifindex = 0;
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	}
	assert_true(addr_equal(&asked, &to));
	iov.iov_len = 5;
	assert_int_equal(sendmsg(ours, &msg, 0), 5); /* back to where it came from, from the address that was asked */
	assert_true(fixture_readable(fd, 1000));
	assert_int_equal(recv(fd, bytes, sizeof(bytes), 0), 5);
	close(fd);
}

static void
dns_tcp(const struct guest *guest, const char *addr)
{
	int ours = tap_socket(guest->tap, family_of(addr) == AF_INET ? TAP_SOCKET_DNS_TCP4 : TAP_SOCKET_DNS_TCP6);
	double ms;
	int error, fd = dial(guest, addr, 53, &error, &ms), accepted;

	if (fd < 0)
		fail_msg("[%s]:53: %s", addr, strerror(error));
	assert_true(fixture_readable(ours, 1000));
	accepted = accept4(ours, NULL, NULL, SOCK_CLOEXEC);
	assert_true(accepted >= 0);
	assert_int_equal(send(fd, "query", 5, 0), 5);
	assert_true(fixture_readable(accepted, 1000));
	close(accepted);
	close(fd);
}

static void
test_dns_to_any_address(void **state)
{
	static const char *const addrs[] = {
	    "172.16.0.1",
	    "8.8.8.8",
	    "10.96.0.10",
	    "169.254.169.253",
	    "192.168.1.1",
	    "fd70:6f73:7465:726e::1",
	    "2001:4860:4860::8888",
	    "fd00:ec2::253",
	};
	struct guest guest = guest_make("dns");

	(void)state;
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		dns_udp(&guest, addrs[i]);
		dns_tcp(&guest, addrs[i]);
	}
	for (unsigned int i = 0; i < TAP_COUNTER_MAX; i++)
		assert_int_equal(fixture_counter(guest.tap, (enum tap_counter)i), 0);
	guest_free(&guest);
}

static void
test_udp_relay_needs_lease_and_socket(void **state)
{
	static const char *const addrs[] = {PUBLIC4, PUBLIC6};
	struct guest guest = guest_make("relay");
	struct error err = {0};
	double ms;

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		int family = family_of(addrs[i]) == AF_INET ? 4 : 6, relay, fd;
		struct addr to = fixture_addr(addrs[i]);
		struct sockaddr_storage sa;
		socklen_t len = addr_to_sockaddr(&to, 3478, &sa);
		char byte = 'x';

		lease_add(&guest, addrs[i], IPPROTO_UDP, 3478);
		assert_int_equal(udp_error(&guest, addrs[i], 3478, &ms), ECONNREFUSED); /* lease, no socket */
		relay = tap_socket_udp(guest.tap, family, 3478, &err);
		assert_ok(relay, err);
		assert_true(fcntl(relay, F_GETFL) & O_NONBLOCK);
		fd = fixture_socket(guest.netns, family_of(addrs[i]), SOCK_DGRAM, 0);
		assert_int_equal(sendto(fd, &byte, 1, 0, (struct sockaddr *)&sa, len), 1);
		assert_true(fixture_readable(relay, 1000));
		close(fd);
		/* socket, no lease */
		assert_int_equal(
		    udp_error(&guest, family == 4 ? "93.184.216.35" : "2606::35", 3478, &ms), ECONNREFUSED);
		close(relay);
		assert_int_equal(udp_error(&guest, addrs[i], 3478, &ms), ECONNREFUSED); /* no socket any more */
	}
	assert_int_equal(tap_socket_udp(guest.tap, 4, 53, &err), -1);
	assert_int_equal(tap_socket_udp(guest.tap, 4, 0, &err), -1);
	assert_int_equal(tap_socket_udp(guest.tap, 5, 99, &err), -1);
	guest_free(&guest);
}

/* Another service in the namespace, on any address: out of the guest's reach with our listeners alive, and when they
 * are dead (E-10, F-03). Its port is leased too, which changes nothing. */
static void
case_F_03_nothing_answers_without_our_sockets(void **state)
{
	struct guest guest = guest_make("dead");
	struct sockaddr_in6 any = {.sin6_family = AF_INET6, .sin6_port = htons(8080)};
	int service = fixture_socket(tap_netns_fd(guest.tap), AF_INET6, SOCK_STREAM, 0);
	struct error err = {0};
	size_t foreign = 0;

	(void)state;
	assert_int_equal(bind(service, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(service, 8), 0);
	assert_ok(tap_sockets_foreign(guest.tap, &foreign, &err), err);
	assert_int_equal(foreign, 1);
	assert_refused(&guest, "172.16.0.1", 8080);
	assert_refused(&guest, PUBLIC4, 8080);
	assert_refused(&guest, "fd70:6f73:7465:726e::1", 8080);
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 8080);
	leased_round_trip(&guest, PUBLIC4, 8080); /* ours got it */
	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++) {
		close(guest.tap->sockets[i]);
		guest.tap->sockets[i] = -1;
	}
	assert_refused(&guest, PUBLIC4, 8080);
	assert_refused(&guest, PUBLIC4, 443);
	assert_refused(&guest, "8.8.8.8", 53);
	assert_refused(&guest, "172.16.0.1", 8080);
	assert_refused(&guest, "fd70:6f73:7465:726e::1", 8080);
	assert_false(fixture_readable(service, 50));
	close(service);
	guest_free(&guest);
}

/* The kernel counts netlink sockets for a moment after their end. */
static void
assert_socket_count(struct tap *tap, size_t expected)
{
	struct error err = {0};
	size_t count = 0;

	for (int i = 0; i < 500; i++) {
		assert_ok(tap_sockets_count(tap, &count, &err), err);
		if (count == expected)
			return;
		usleep(10000);
	}
	fail_msg("%zu sockets are counted, not %zu", count, expected);
}

static void
case_E_10_foreign_sockets_are_counted(void **state)
{
	static const size_t own = TAP_SOCKET_MAX + 1; /* and that of the rules */
	struct guest guest = guest_make("foreign");
	int relay, client, ours, raw, packet, error;
	struct error err = {0};
	size_t foreign = 99;
	double ms;

	(void)state;
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	client = dial(&guest, PUBLIC4, 443, &error, &ms);
	ours = accept_as(&guest, PUBLIC4, 443);
	relay = tap_socket_udp(guest.tap, 4, 3478, &err);
	assert_ok(relay, err);
	assert_ok(tap_sockets_foreign(guest.tap, &foreign, &err), err);
	assert_int_equal(foreign, 0); /* all of these are ours */
	assert_socket_count(guest.tap, own + 2);
	raw = fixture_socket(tap_netns_fd(guest.tap), AF_INET, SOCK_RAW, IPPROTO_ICMP);
	packet = fixture_socket(tap_netns_fd(guest.tap), AF_PACKET, SOCK_RAW, 0);
	assert_ok(tap_sockets_foreign(guest.tap, &foreign, &err), err);
	assert_int_equal(foreign, 2);
	assert_socket_count(guest.tap, own + 4);
	close(raw);
	close(packet);
	close(relay);
	close(ours);
	close(client);
	guest_free(&guest);
}

/* A process in the sandbox's own namespace (a VMM) has no way out either. */
static void
test_no_way_out_from_inside(void **state)
{
	static const char *const addrs[] = {PUBLIC4, PUBLIC6, "169.254.169.254", "172.16.0.1"};
	struct guest guest = guest_make("inside");
	double ms;

	(void)state;
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	for (size_t i = 0; i < sizeof(addrs) / sizeof(addrs[0]); i++) {
		int fd = fixture_socket(tap_netns_fd(guest.tap), family_of(addrs[i]), SOCK_STREAM | SOCK_NONBLOCK, 0);

		fixture_connect(fd, addrs[i], 443, &ms);
		assert_false(fixture_readable(tap_socket(guest.tap, TAP_SOCKET_TCP4), 20));
		assert_false(fixture_readable(tap_socket(guest.tap, TAP_SOCKET_TCP6), 20));
		close(fd);
	}
	guest_free(&guest);
}

/* More half-open connections than the backlog takes: cookies complete the honest one (E-16). */
static void
case_E_16_syn_cookies_complete(void **state)
{
	struct guest guest = guest_make("cookies");
	int fds[64], count = 0, one = 1;

	(void)state;
	lease_add(&guest, PUBLIC4, IPPROTO_TCP, 443);
	fixture_run(tap_netns_fd(guest.tap), "sysctl -qw net.ipv4.tcp_syncookies=2"); /* cookies for all */
	leased_round_trip(&guest, PUBLIC4, 443);
	for (int i = 0; i < 64; i++) {
		int error;
		double ms, start = fixture_now_ms();
		int fd = dial(&guest, PUBLIC4, 443, &error, &ms);

		assert_true(fd >= 0);
		assert_true(fixture_now_ms() - start < 500);
		fds[count++] = fd;
		setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	}
	for (int i = 0; i < count; i++) {
		close(accept_as(&guest, PUBLIC4, 443));
		close(fds[i]);
	}
	assert_int_equal(fixture_counter(guest.tap, TAP_COUNTER_TCP), 0);
	guest_free(&guest);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_F_17_unleased_is_refused_fast),
	    cmocka_unit_test(test_udp_is_refused_fast),
	    cmocka_unit_test(test_never_list_is_refused_fast),
	    cmocka_unit_test(case_E_11_listener_cannot_be_dialled),
	    cmocka_unit_test(test_leased_reaches_the_listener),
	    cmocka_unit_test(test_range_reaches_the_listener),
	    cmocka_unit_test(test_expiry_does_not_cut_a_live_connection),
	    cmocka_unit_test(test_port_reuse_in_time_wait_is_fast),
	    cmocka_unit_test(test_dns_to_any_address),
	    cmocka_unit_test(test_udp_relay_needs_lease_and_socket),
	    cmocka_unit_test(case_F_03_nothing_answers_without_our_sockets),
	    cmocka_unit_test(case_E_10_foreign_sockets_are_counted),
	    cmocka_unit_test(test_no_way_out_from_inside),
	    cmocka_unit_test(case_E_16_syn_cookies_complete),
	};

	fixture_require_root();
	return cmocka_run_group_tests(tests, fixture_setup, NULL);
}
