/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The UDP relay between three network namespaces of its own: a sandbox, a host and an origin beyond it. */
#include "gateway/path/udp/udp.h"
#include "tests/unit/gateway/gateway_far_end.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <unistd.h>

#define PORT 5000
#define GUEST4 "172.16.0.2"
#define GUEST6 "fd70:6f73:7465:726e::2"
#define HOST4 "5.6.7.1"
#define ORIGIN4 "5.6.7.8"
#define BROADCAST4 "5.6.7.255"
#define ORIGIN6 "2a00:1::8"

static int sandbox_netns, host_netns, origin_netns;

static void
run(const char *command)
{
	if (system(command) != 0) {
		print_error("failed: %s\n", command);
		fail();
	}
}

static int
netns_new(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -1;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static int
netns_setup(void **state)
{
	char command[256];

	(void)state;
	sandbox_netns = netns_new();
	if (sandbox_netns < 0)
		return 0; /* the tests skip themselves */
	run("ip link set lo up && ip address add " GUEST4 "/32 dev lo && ip -6 address add " GUEST6
	    "/128 dev lo nodad && ip route add local default dev lo && ip -6 route add local default dev lo table "
	    "main");
	origin_netns = netns_new();
	host_netns = netns_new();
	snprintf(command, sizeof(command), "ip link add v0 type veth peer name v1 netns /proc/%d/fd/%d", getpid(),
	    origin_netns);
	run(command);
	run("ip link set lo up && ip link set v0 up && ip address add " HOST4
	    "/24 dev v0 && ip -6 address add 2a00:1::1/64 dev v0 nodad");
	assert_int_equal(setns(origin_netns, CLONE_NEWNET), 0);
	run("ip link set lo up && ip link set v1 up && ip address add " ORIGIN4
	    "/24 dev v1 && ip -6 address add " ORIGIN6 "/64 dev v1 nodad && sysctl -qw net.ipv4.icmp_ratelimit=0");
	assert_int_equal(setns(host_netns, CLONE_NEWNET), 0);
	return 0;
}

static struct addr
addr_of(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

static socklen_t
sockaddr_of(const char *text, uint16_t port, struct sockaddr_storage *ret_sa)
{
	struct addr addr = addr_of(text);

	return addr_to_sockaddr(&addr, port, ret_sa);
}

/* A UDP socket made in a namespace, bound to text:port (text NULL: any address). */
static int
udp_socket_in(int netns, int family, const char *text, uint16_t port)
{
	struct sockaddr_storage sa = {.ss_family = (sa_family_t)family};
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int one = 1, fd;

	assert_int_equal(setns(netns, CLONE_NEWNET), 0);
	fd = socket(family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (text != NULL)
		len = sockaddr_of(text, port, &sa);
	else if (family == AF_INET)
		((struct sockaddr_in *)&sa)->sin_port = htons(port);
	else
		((struct sockaddr_in6 *)&sa)->sin6_port = htons(port);
	if (family == AF_INET6) {
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)), 0);
	} else {
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)), 0);
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(setns(host_netns, CLONE_NEWNET), 0);
	return fd;
}

struct fixture {
	struct far_end *far;
	struct sandbox sandbox;
	int guest, origin;
};

static void
lease(struct fixture *f, const char *name_text, const char *addr_text, uint32_t lifetime_s)
{
	struct name name;
	struct addr addr = addr_of(addr_text);

	assert_int_equal(name_canonical(name_text, strlen(name_text), &name), NAME_OK);
	assert_int_equal(lease_add(&f->sandbox.leases, &name, &addr, lifetime_s, 5000), 0);
}

static const char *const allow_all_of_it[] = {"voice.example.net:5000/udp", "[2a00:1::/64]:5000/udp", NULL};

/* Skips the test where namespaces cannot be made. */
static void
fixture_open(struct fixture *f, const char *const *rules)
{
	memset(f, 0, sizeof(*f));
	if (sandbox_netns < 0)
		skip();
	f->far = far_end_new();
	f->far->ack = false;
	f->sandbox.gateway = &f->far->gateway;
	f->sandbox.id = clock_real_us();
	f->sandbox.generation = 3;
	f->sandbox.guest4 = addr_of(GUEST4);
	f->sandbox.guest6 = addr_of(GUEST6);
	f->sandbox.policy = snapshot_of_words(rules);
	lease(f, "voice.example.net", ORIGIN4, 600);
	far_end_account(f->far, &f->sandbox);
	assert_int_equal(udp_attach(&f->sandbox), 0);
	assert_int_equal(udp_add_port(&f->sandbox, PORT, udp_socket_in(sandbox_netns, AF_INET, NULL, PORT),
			     udp_socket_in(sandbox_netns, AF_INET6, NULL, PORT)),
	    0);
	f->guest = udp_socket_in(sandbox_netns, AF_INET, GUEST4, 40000);
	f->origin = udp_socket_in(origin_netns, AF_INET, ORIGIN4, PORT);
}

static void
fixture_close(struct fixture *f)
{
	udp_detach(&f->sandbox, END_DETACHED);
	assert_null(f->sandbox.udp);
	far_end_settle(f->far);
	assert_int_equal(f->far->gateway.flow_count, 0);
	far_end_account_end(f->far, &f->sandbox);
	close(f->guest);
	if (f->origin >= 0)
		close(f->origin);
	snapshot_free(f->sandbox.policy);
	lease_table_free(&f->sandbox.leases);
	far_end_free(f->far);
}

static void
send_from(int fd, const char *to, uint16_t port, const char *text)
{
	struct sockaddr_storage sa;
	socklen_t len = sockaddr_of(to, port, &sa);

	assert_int_equal(sendto(fd, text, strlen(text), 0, (struct sockaddr *)&sa, len), strlen(text));
}

/* What arrived, or NULL; from whom in *ret_from (may be NULL). Static storage. */
static const char *
received(int fd, struct sockaddr_storage *ret_from)
{
	static char text[256];
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	ssize_t n = recvfrom(fd, text, sizeof(text) - 1, 0, (struct sockaddr *)&from, &len);

	if (n < 0)
		return NULL;
	text[n] = '\0';
	if (ret_from != NULL)
		*ret_from = from;
	return text;
}

static void
ack_all(struct fixture *f)
{
	if (f->far->record_count > 0)
		far_end_durable(f->far, f->far->records[f->far->record_count - 1].seq);
	far_end_settle(f->far);
}

/* Open a flow, its record durable and its first datagram at the origin; *ret_peer: the relay as the origin sees it. */
static void
open_flow(struct fixture *f, struct sockaddr_storage *ret_peer)
{
	send_from(f->guest, ORIGIN4, PORT, "hello");
	far_end_settle(f->far);
	ack_all(f);
	assert_string_equal(received(f->origin, ret_peer), "hello");
}

/* Written before sent: nothing reaches the origin until the record is durable; then both ways. */
static void
test_held_until_durable(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer, from;
	const struct record *opened = NULL, *closed = NULL, *progress = NULL;
	struct addr addr;
	uint16_t port;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	send_from(f.guest, ORIGIN4, PORT, "one");
	send_from(f.guest, ORIGIN4, PORT, "two");
	far_end_settle(f.far);
	assert_null(received(f.origin, NULL));
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_OPEN, &opened), 1);
	assert_int_equal(opened->flow.verdict, VERDICT_ALLOWED);
	assert_int_equal(opened->flow.end, END_OPEN);
	assert_int_equal(opened->flow.proto, IPPROTO_UDP);
	assert_int_equal(opened->flow.name_source, NAME_SOURCE_LEASE);
	assert_int_equal(opened->flow.sport, 40000);
	assert_int_equal(opened->flow.generation, 3);
	assert_int_equal(opened->flow.dns_us, 5000);
	ack_all(&f);
	assert_string_equal(received(f.origin, &peer), "one");
	assert_string_equal(received(f.origin, NULL), "two");

	assert_true(sendto(f.origin, "answer", 6, 0, (struct sockaddr *)&peer, sizeof(struct sockaddr_in)) == 6);
	far_end_settle(f.far);
	assert_string_equal(received(f.guest, &from), "answer");
	assert_true(addr_from_sockaddr((struct sockaddr *)&from, &addr, &port));
	assert_int_equal(port, PORT);
	assert_true(addr_equal(&addr, &opened->flow.dst)); /* from the address the guest had addressed */

	far_end_pass(f.far, 59000);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, NULL), 0);
	assert_int_equal(far_end_count(f.far, RECORD_PROGRESS, NULL), 0);
	far_end_pass(f.far, 2000);
	assert_int_equal(far_end_count(f.far, RECORD_PROGRESS, &progress), 1);
	assert_int_equal(progress->close.bytes_out, 6);
	assert_int_equal(progress->close.packets_out, 2);
	assert_int_equal(progress->close.end, END_OPEN);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.packets_out, 2);
	assert_int_equal(closed->close.packets_in, 1);
	assert_true(closed->close.first_byte_us > 0);
	assert_true(addr_from_sockaddr((struct sockaddr *)&peer, &addr, &port));
	assert_true(addr_equal(&addr, &closed->close.up_src));
	assert_int_equal(closed->close.up_sport, port);
	assert_true(closed->close.id == opened->flow.id);
	assert_int_equal(closed->close.bytes_out, 6);
	assert_int_equal(closed->close.bytes_in, 6);
	assert_int_equal(closed->close.end, END_TIMEOUT);
	assert_true(closed->close.duration_us >= INT64_C(60000000));
	fixture_close(&f);
}

static void
test_ipv6(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer, from;
	const struct record *opened = NULL;
	struct addr addr;
	int guest, origin;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	guest = udp_socket_in(sandbox_netns, AF_INET6, GUEST6, 40000);
	origin = udp_socket_in(origin_netns, AF_INET6, ORIGIN6, PORT);
	send_from(guest, ORIGIN6, PORT, "six");
	far_end_settle(f.far);
	ack_all(&f);
	assert_string_equal(received(origin, &peer), "six");
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_OPEN, &opened), 1);
	assert_int_equal(opened->flow.name_source, NAME_SOURCE_CIDR);
	assert_true(sendto(origin, "answer", 6, 0, (struct sockaddr *)&peer, sizeof(struct sockaddr_in6)) == 6);
	far_end_settle(f.far);
	assert_string_equal(received(guest, &from), "answer");
	assert_true(addr_from_sockaddr((struct sockaddr *)&from, &addr, NULL));
	assert_true(addr_equal(&addr, &opened->flow.dst));
	close(guest);
	close(origin);
	fixture_close(&f);
}

/* Only the origin that was addressed can answer. */
static void
test_others_cannot_answer(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer;
	int other;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	other = udp_socket_in(origin_netns, AF_INET, ORIGIN4, PORT + 1);
	sendto(other, "spoof", 5, 0, (struct sockaddr *)&peer, sizeof(struct sockaddr_in));
	far_end_settle(f.far);
	assert_null(received(f.guest, NULL));
	close(other);
	fixture_close(&f);
}

/* F-38: a flood of refused datagrams is one record, then one more that says how many. */
static void
case_F_38_refusals_are_counted(void **state)
{
	struct fixture f;
	const struct record *record = NULL;
	uint64_t id;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	for (int i = 0; i < 100; i++)
		send_from(f.guest, "5.6.7.9", PORT, "x");
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &record), 1);
	assert_int_equal(record->flow.count, 1);
	assert_int_equal(record->flow.verdict, VERDICT_DENIED);
	assert_int_equal(record->flow.reason, REASON_NOT_LEASED);
	assert_int_equal(record->flow.end, END_REFUSED);
	assert_int_equal(record->flow.dport, PORT);
	id = record->flow.id;
	far_end_pass(f.far, 6000);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &record), 2);
	assert_true(record->flow.id == id);
	assert_int_equal(record->flow.count, 100);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_OPEN, NULL), 0);
	fixture_close(&f);
}

/* Refused whatever the policy says: never list, the host's own address, its broadcast address. */
static void
case_A_13_A_19_never(void **state)
{
	static const char *const rules[] = {"5.6.0.0/16:5000/udp", NULL};
	static const char *const targets[] = {"10.0.0.1", HOST4, BROADCAST4, "224.0.0.251", "255.255.255.255"};
	struct fixture f;
	int one = 1;

	(void)state;
	fixture_open(&f, rules);
	setsockopt(f.guest, SOL_SOCKET, SO_BROADCAST, &one, sizeof(one));
	for (size_t i = 0; i < sizeof(targets) / sizeof(targets[0]); i++) {
		struct sockaddr_storage sa;
		socklen_t len = sockaddr_of(targets[i], PORT, &sa);
		const struct record *record = NULL;
		size_t before = far_end_count(f.far, RECORD_REFUSED, NULL);

		if (sendto(f.guest, "x", 1, 0, (struct sockaddr *)&sa, len) < 0)
			continue; /* multicast: no route in the sandbox */
		far_end_settle(f.far);
		if (far_end_count(f.far, RECORD_REFUSED, &record) == before)
			continue; /* not delivered to the relay */
		assert_int_equal(record->flow.reason, REASON_NEVER_ADDRESS);
	}
	assert_true(far_end_count(f.far, RECORD_REFUSED, NULL) >= 3);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_OPEN, NULL), 0);
	assert_null(received(f.origin, NULL));
	fixture_close(&f);
}

static void
test_nobody_there(void **state)
{
	struct fixture f;
	const struct record *closed = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	close(f.origin);
	f.origin = -1;
	send_from(f.guest, ORIGIN4, PORT, "hello");
	far_end_settle(f.far);
	ack_all(&f);
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.end, END_CONNECT_FAILED);
	assert_int_equal(closed->close.verdict, VERDICT_FAILED);
	assert_int_equal(closed->close.reason, REASON_UPSTREAM_ERROR);
	fixture_close(&f);
}

static void
test_origin_goes_away(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer;
	const struct record *closed = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	sendto(f.origin, "answer", 6, 0, (struct sockaddr *)&peer, sizeof(struct sockaddr_in));
	far_end_settle(f.far);
	close(f.origin);
	f.origin = -1;
	send_from(f.guest, ORIGIN4, PORT, "more");
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.end, END_RST_ORIGIN);
	assert_int_equal(closed->close.verdict, VERDICT_ALLOWED);
	fixture_close(&f);
}

/* No answer: half a minute. */
static void
test_unanswered_times_out_sooner(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer;
	const struct record *closed = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	far_end_pass(f.far, 31000);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.end, END_TIMEOUT);
	assert_int_equal(closed->close.verdict, VERDICT_ALLOWED);
	fixture_close(&f);
}

/* An expired lease cuts no live flow: its element in the kernel is renewed, and never cut shorter than it was. */
static void
case_F_36_live_flow_outlives_its_lease(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	for (int i = 0; i < 30; i++) {
		far_end_pass(f.far, 20000);
		send_from(f.guest, ORIGIN4, PORT, "more");
		far_end_settle(f.far);
		assert_string_equal(received(f.origin, &peer), "more");
		sendto(f.origin, "answer", 6, 0, (struct sockaddr *)&peer, sizeof(struct sockaddr_in));
		far_end_settle(f.far);
		assert_string_equal(received(f.guest, NULL), "answer");
		if (i == 20)
			assert_int_equal(f.far->leases_added, 0); /* 180 seconds of the lease are left */
	}
	assert_true(f.far->leases_added >= 2);
	assert_true(f.far->lease.id == f.sandbox.id);
	assert_int_equal(f.far->lease.count, 1);
	assert_int_equal(f.far->lease.leases[0].proto, IPPROTO_UDP);
	assert_int_equal(f.far->lease.leases[0].port, PORT);
	assert_true(f.far->lease.timeout_s >= 120 + LEASE_GRACE_S);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, NULL), 0);
	fixture_close(&f);
}

/* F-33: an edit cuts exactly the flows that are no longer allowed, and says which; an expired lease cuts none. */
static void
case_F_33_policy_edit_cuts(void **state)
{
	static const char *const other[] = {"unrelated.example.org:5000/udp", NULL};
	static const char *const address[] = {"voice.example.net:5000/udp", "-5.6.7.0/24", NULL};
	struct fixture f;
	struct sockaddr_storage peer;
	struct msg_policy_done *done = calloc(1, sizeof(*done));
	const struct record *closed = NULL;

	(void)state;
	for (int i = 0; i < 2; i++) {
		fixture_open(&f, allow_all_of_it);
		open_flow(&f, &peer);
		lease_table_free(&f.sandbox.leases);
		memset(&f.sandbox.leases, 0, sizeof(f.sandbox.leases));
		memset(done, 0, sizeof(*done));
		udp_rejudge(&f.sandbox, REASON_REVOKED, true, done);
		assert_int_equal(done->cut_count, 0);
		snapshot_free(f.sandbox.policy);
		f.sandbox.policy = snapshot_of_words(i == 0 ? other : address);
		udp_rejudge(&f.sandbox, REASON_REVOKED, true, done);
		assert_int_equal(done->cut_count, 1);
		assert_int_equal(done->cut[0].dport, PORT);
		assert_string_equal(done->cut[0].name.text, "voice.example.net");
		far_end_settle(f.far);
		assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
		assert_int_equal(closed->close.end, END_POLICY);
		assert_int_equal(closed->close.reason, REASON_REVOKED);
		assert_true(closed->close.id == done->cut[0].record_id);
		send_from(f.guest, ORIGIN4, PORT, "after");
		far_end_settle(f.far);
		ack_all(&f);
		assert_null(received(f.origin, NULL));
		fixture_close(&f);
	}
	free(done);
}

static void
test_port_removed(void **state)
{
	struct fixture f;
	struct sockaddr_storage peer;
	const struct record *closed = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	assert_int_equal(udp_add_port(&f.sandbox, PORT, dup(f.guest), dup(f.guest)), -EEXIST);
	udp_del_port(&f.sandbox, PORT + 1, END_POLICY);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, NULL), 0);
	udp_del_port(&f.sandbox, PORT, END_POLICY);
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.end, END_POLICY);
	assert_int_equal(udp_add_port(&f.sandbox, PORT, udp_socket_in(sandbox_netns, AF_INET, NULL, PORT), -1), 0);
	fixture_close(&f);
}

/* The sandbox goes while an opening record is not durable yet; its acknowledgement then finds nobody. */
static void
test_detach_while_waiting(void **state)
{
	struct fixture f;
	const struct record *closed = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	send_from(f.guest, ORIGIN4, PORT, "hello");
	far_end_settle(f.far);
	udp_detach(&f.sandbox, END_SHUTDOWN);
	far_end_settle(f.far);
	ack_all(&f);
	assert_null(received(f.origin, NULL));
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.end, END_SHUTDOWN);
	assert_int_equal(closed->close.bytes_out, 0);
	fixture_close(&f);
}

/* E-17: as many flows as the limit says, then refusals that say so. */
static void
case_E_17_flow_limit(void **state)
{
	struct fixture f;
	const struct record *record = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	for (uint16_t i = 0; i < 300; i++) {
		int guest = udp_socket_in(sandbox_netns, AF_INET, GUEST4, (uint16_t)(41000 + i));

		send_from(guest, ORIGIN4, PORT, "x");
		loop_round(f.far->gateway.loop, 0);
		close(guest);
	}
	far_end_settle(f.far);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_OPEN, NULL), 256);
	far_end_pass(f.far, 6000);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &record), 2);
	assert_int_equal(record->flow.reason, REASON_LIMIT_CONNECTIONS);
	assert_int_equal(record->flow.verdict, VERDICT_LIMITED);
	assert_int_equal(record->flow.count, 44);
	fixture_close(&f);
}

/* F-22: no log, no flow. */
static void
case_F_22_no_log_no_flow(void **state)
{
	struct fixture f;
	const struct record *record = NULL;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	ipc_close(&f.far->auditor);
	far_end_settle(f.far);
	send_from(f.guest, ORIGIN4, PORT, "hello");
	far_end_settle(f.far);
	assert_null(received(f.origin, NULL));
	far_end_auditor(f.far);
	far_end_pass(f.far, 6000);
	assert_int_equal(far_end_count(f.far, RECORD_REFUSED, &record), 1);
	assert_int_equal(record->flow.reason, REASON_AUDIT_UNAVAILABLE);
	assert_int_equal(record->flow.verdict, VERDICT_FAILED);
	send_from(f.guest, ORIGIN4, PORT, "again");
	far_end_settle(f.far);
	ack_all(&f);
	assert_string_equal(received(f.origin, NULL), "again");
	fixture_close(&f);
}

/* A record that never becomes durable holds a bounded number of datagrams, and not for ever. */
static void
test_held_is_bounded(void **state)
{
	struct fixture f;
	const struct record *closed = NULL;
	size_t passed = 0;

	(void)state;
	fixture_open(&f, allow_all_of_it);
	for (int i = 0; i < 20; i++)
		send_from(f.guest, ORIGIN4, PORT, "x");
	far_end_settle(f.far);
	ack_all(&f);
	while (received(f.origin, NULL) != NULL)
		passed++;
	assert_int_equal(passed, 8);
	fixture_close(&f);

	fixture_open(&f, allow_all_of_it);
	send_from(f.guest, ORIGIN4, PORT, "x");
	far_end_settle(f.far);
	far_end_pass(f.far, 31000);
	assert_int_equal(far_end_count(f.far, RECORD_FLOW_CLOSE, &closed), 1);
	assert_int_equal(closed->close.reason, REASON_AUDIT_UNAVAILABLE);
	assert_int_equal(closed->close.verdict, VERDICT_FAILED);
	ack_all(&f);
	assert_null(received(f.origin, NULL));
	fixture_close(&f);
}

/* Empty datagrams are datagrams; the largest ones arrive whole. */
static void
test_sizes(void **state)
{
	static char big[60000];
	struct fixture f;
	struct sockaddr_storage peer, sa;
	socklen_t len = sockaddr_of(ORIGIN4, PORT, &sa);
	static char buffer[65536];

	(void)state;
	fixture_open(&f, allow_all_of_it);
	open_flow(&f, &peer);
	assert_int_equal(sendto(f.guest, "", 0, 0, (struct sockaddr *)&sa, len), 0);
	memset(big, 'b', sizeof(big));
	assert_int_equal(sendto(f.guest, big, sizeof(big), 0, (struct sockaddr *)&sa, len), sizeof(big));
	far_end_settle(f.far);
	assert_int_equal(recv(f.origin, buffer, sizeof(buffer), 0), 0);
	assert_int_equal(recv(f.origin, buffer, sizeof(buffer), 0), sizeof(big));
	assert_memory_equal(buffer, big, sizeof(big));
	fixture_close(&f);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_held_until_durable),
	    cmocka_unit_test(test_ipv6),
	    cmocka_unit_test(test_others_cannot_answer),
	    cmocka_unit_test(case_F_38_refusals_are_counted),
	    cmocka_unit_test(case_A_13_A_19_never),
	    cmocka_unit_test(test_nobody_there),
	    cmocka_unit_test(test_origin_goes_away),
	    cmocka_unit_test(test_unanswered_times_out_sooner),
	    cmocka_unit_test(case_F_36_live_flow_outlives_its_lease),
	    cmocka_unit_test(case_F_33_policy_edit_cuts),
	    cmocka_unit_test(test_port_removed),
	    cmocka_unit_test(test_detach_while_waiting),
	    cmocka_unit_test(case_E_17_flow_limit),
	    cmocka_unit_test(case_F_22_no_log_no_flow),
	    cmocka_unit_test(test_held_is_bounded),
	    cmocka_unit_test(test_sizes),
	};

	return cmocka_run_group_tests(tests, netns_setup, NULL);
}
