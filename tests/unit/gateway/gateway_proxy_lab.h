/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP path between three network namespaces of its own: a sandbox, a host and an origin beyond it. In the sandbox
 * every address is local, as under the keeper's routes, so that a plain listener takes what a transparent one would. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_PROXY_LAB_H
#define POSTERN_TESTS_UNIT_GATEWAY_PROXY_LAB_H

#include "gateway/path/tcp/proxy.h"
#include "gateway/path/tcp/relay.h"
#include "gateway/path/tcp/tls_hello.h"
#include "tests/unit/gateway/gateway_far_end.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#define GUEST4 "172.16.0.2"
#define ORIGIN4 "5.6.7.8"
#define SHARED4 "5.6.7.9" /* also the origin's */
#define NOBODY4 "5.6.7.10"
#define ORIGIN6 "2a00:1::8"
#define LAB_BYTES_MAX 65536

static int sandbox_netns, host_netns, origin_netns;

static inline void
lab_run(const char *command)
{
	if (system(command) != 0) {
		print_error("failed: %s\n", command);
		fail();
	}
}

static inline int
lab_netns(void)
{
	int fd;

	if (unshare(CLONE_NEWNET) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) < 0)
		return -1;
	fd = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static inline int
lab_setup(void **state)
{
	char command[256];

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(tls_hello_setup(), 0);
	sandbox_netns = lab_netns();
	if (sandbox_netns < 0)
		return 0; /* the tests skip themselves */
	lab_run("ip link set lo up && ip address add " GUEST4 "/32 dev lo && ip route add local default dev lo && "
		"ip -6 route add local default dev lo table main");
	origin_netns = lab_netns();
	host_netns = lab_netns();
	snprintf(command, sizeof(command), "ip link add v0 type veth peer name v1 netns /proc/%d/fd/%d", getpid(),
	    origin_netns);
	lab_run(command);
	lab_run("ip link set lo up && ip link set v0 up && ip address add 5.6.7.1/24 dev v0 && "
		"ip -6 address add 2a00:1::1/64 dev v0 nodad");
	assert_int_equal(setns(origin_netns, CLONE_NEWNET), 0);
	lab_run(
	    "ip link set lo up && ip link set v1 up && ip address add " ORIGIN4 "/24 dev v1 && ip address add " SHARED4
	    "/24 dev v1 && ip address add " NOBODY4 "/24 dev v1 && ip -6 address add " ORIGIN6 "/64 dev v1 nodad");
	assert_int_equal(setns(host_netns, CLONE_NEWNET), 0);
	return 0;
}

static inline struct addr
lab_addr(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

static inline socklen_t
lab_sockaddr(const char *text, uint16_t port, struct sockaddr_storage *ret_sa)
{
	struct addr addr = lab_addr(text);

	return addr_to_sockaddr(&addr, port, ret_sa);
}

/* A listener made in a namespace. */
static inline int
lab_listener(int netns, const char *text, uint16_t port)
{
	struct sockaddr_storage sa;
	socklen_t len = lab_sockaddr(text, port, &sa);
	int one = 1, fd;

	assert_int_equal(setns(netns, CLONE_NEWNET), 0);
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	if (sa.ss_family == AF_INET6)
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(fd, 2048), 0);
	assert_int_equal(setns(host_netns, CLONE_NEWNET), 0);
	return fd;
}

struct lab {
	struct far_end *far;
	struct sandbox sandbox;
	uint16_t port;
	int origin;                 /* listens on every address of the origin */
	size_t fds;                 /* open before */
	uint8_t got[LAB_BYTES_MAX]; /* what lab_recv saw last */
};

static inline size_t
lab_count_fds(void)
{
	DIR *dir = opendir("/proc/self/fd");
	size_t count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

static inline void
lab_edit(struct lab *lab, const char *const *words, struct msg_policy_done *ret_done)
{
	memset(ret_done, 0, sizeof(*ret_done));
	snapshot_free(lab->sandbox.policy);
	lab->sandbox.policy = snapshot_of_words(words);
	lab->sandbox.generation++;
	proxy_rejudge(&lab->sandbox, REASON_REVOKED, true, ret_done);
}

static inline void
lab_lease(struct lab *lab, const char *name_text, const char *addr_text)
{
	struct name name;
	struct addr addr = lab_addr(addr_text);

	assert_int_equal(name_canonical(name_text, strlen(name_text), &name), NAME_OK);
	assert_int_equal(lease_add(&lab->sandbox.leases, &name, &addr, 60, 5000), 0);
}

/* Skips the test where namespaces cannot be made. */
static inline void
lab_open(struct lab *lab, uint16_t port, const char *const *rules)
{
	memset(lab, 0, sizeof(*lab));
	if (sandbox_netns < 0)
		skip();
	relay_pool_drain();
	lab->port = port;
	lab->fds = lab_count_fds();
	lab->far = far_end_new();
	lab->sandbox.gateway = &lab->far->gateway;
	lab->sandbox.id = 7;
	lab->sandbox.generation = 3;
	lab->sandbox.policy = snapshot_of_words(rules);
	far_end_account(lab->far, &lab->sandbox);
	lab_lease(lab, "good.example.com", ORIGIN4);
	lab_lease(lab, "good.example.com", ORIGIN6);
	assert_int_equal(proxy_attach(&lab->sandbox, lab_listener(sandbox_netns, "0.0.0.0", port),
			     lab_listener(sandbox_netns, "::", port)),
	    0);
	lab->origin = lab_listener(origin_netns, "0.0.0.0", port);
}

static inline void
lab_settle(struct lab *lab)
{
	far_end_settle(lab->far);
}

/* Detaches; nothing may be left: no flow, no descriptor but the reserve. */
static inline void
lab_close(struct lab *lab)
{
	proxy_detach(&lab->sandbox, END_DETACHED);
	assert_null(lab->sandbox.proxy);
	assert_int_equal(proxy_flow_count(&lab->sandbox), 0);
	assert_int_equal(lab->far->gateway.flow_count, 0);
	lab_settle(lab);
	far_end_account_end(lab->far, &lab->sandbox);
	if (lab->origin >= 0)
		close(lab->origin);
	snapshot_free(lab->sandbox.policy);
	lease_table_free(&lab->sandbox.leases);
	far_end_free(lab->far);
	relay_pool_drain();
	assert_in_range(lab_count_fds(), lab->fds, lab->fds + 1);
}

/* The tests say little at a time and look for it at once. */
static inline void
lab_no_delay(int fd)
{
	int one = 1;

	assert_int_equal(setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)), 0);
}

/* A guest's connection; the kernel completes it at once. */
static inline int
lab_dial(struct lab *lab, const char *to)
{
	struct sockaddr_storage sa;
	socklen_t len = lab_sockaddr(to, lab->port, &sa);
	int fd;

	assert_int_equal(setns(sandbox_netns, CLONE_NEWNET), 0);
	fd = socket(sa.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	assert_int_equal(setns(host_netns, CLONE_NEWNET), 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	lab_no_delay(fd);
	return fd;
}

static inline void
lab_send(struct lab *lab, int fd, const void *bytes, size_t len)
{
	assert_int_equal(send(fd, bytes, len, MSG_NOSIGNAL), len);
	lab_settle(lab);
}

/* The origin's side of the next connection, -1 when there is none. */
static inline int
lab_accept(struct lab *lab)
{
	int fd;

	lab_settle(lab);
	fd = accept4(lab->origin, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (fd >= 0)
		lab_no_delay(fd);
	return fd;
}

/* What has arrived: bytes, 0 for FIN, or -errno (-EAGAIN: nothing). */
static inline ssize_t
lab_recv(struct lab *lab, int fd)
{
	ssize_t n;

	lab_settle(lab);
	n = recv(fd, lab->got, sizeof(lab->got), MSG_DONTWAIT);
	return n < 0 ? -errno : n;
}

static inline void
lab_expect(struct lab *lab, int fd, const void *bytes, size_t len)
{
	ssize_t n = lab_recv(lab, fd);

	assert_int_equal(n, len);
	assert_memory_equal(lab->got, bytes, len);
}

static inline void
lab_reset(int fd)
{
	struct linger linger = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	close(fd);
}

/* Nothing may happen when nothing happens: a round waits its time out. */
static inline void
lab_expect_quiet(struct lab *lab)
{
	int64_t before;

	lab_settle(lab);
	before = clock_mono_us();
	assert_int_equal(loop_round(lab->far->gateway.loop, 40), 0);
	assert_true(clock_mono_us() - before > 30000);
}

/* The one record of a refused attempt; the origin must have seen nothing. */
static inline const struct record_flow *
lab_expect_refused(struct lab *lab, enum verdict verdict, enum reason reason)
{
	const struct record *last = NULL;

	lab_settle(lab);
	assert_int_equal(far_end_count(lab->far, RECORD_FLOW_OPEN, &last), 1);
	assert_int_equal(far_end_count(lab->far, RECORD_FLOW_CLOSE, NULL), 0);
	assert_int_equal(last->flow.verdict, verdict);
	assert_string_equal(reason_text(last->flow.reason), reason_text(reason));
	assert_int_equal(last->flow.end, END_REFUSED);
	assert_int_equal(last->flow.dport, lab->port);
	assert_int_equal(lab_accept(lab), -1);
	return &last->flow;
}

/* The last opened connection's record. */
static inline const struct record_flow *
lab_expect_opened(struct lab *lab, size_t count)
{
	const struct record *last = NULL;

	lab_settle(lab);
	assert_int_equal(far_end_count(lab->far, RECORD_FLOW_OPEN, &last), count);
	assert_int_equal(last->flow.verdict, VERDICT_ALLOWED);
	assert_int_equal(last->flow.end, END_OPEN);
	return &last->flow;
}

static inline const struct record_close *
lab_expect_closed(struct lab *lab, size_t count, enum end_reason end)
{
	const struct record *last = NULL;

	lab_settle(lab);
	assert_int_equal(far_end_count(lab->far, RECORD_FLOW_CLOSE, &last), count);
	assert_string_equal(record_end_text(last->close.end), record_end_text(end));
	return &last->close;
}

/* A small sound ClientHello; sni NULL for none. Returns its length. */
static inline size_t
lab_hello(uint8_t *ret_bytes, const char *sni, bool ech)
{
	static const uint8_t head[] = {0x16, 3, 1, 0, 0, 1, 0, 0, 0, 3, 3};
	static const uint8_t middle[] = {0, 0, 2, 0xc0, 0x2f, 1, 0, 0, 0};
	size_t len = 0, sni_len = sni == NULL ? 0 : strlen(sni), extensions;

	memcpy(ret_bytes, head, sizeof(head));
	memset(ret_bytes + sizeof(head), 5, 32);
	len = sizeof(head) + 32;
	memcpy(ret_bytes + len, middle, sizeof(middle));
	len += sizeof(middle);
	extensions = len;
	if (sni != NULL) {
		const uint8_t extension[] = {
		    0, 0, 0, (uint8_t)(sni_len + 5), 0, (uint8_t)(sni_len + 3), 0, 0, (uint8_t)sni_len};

		memcpy(ret_bytes + len, extension, sizeof(extension));
		memcpy(ret_bytes + len + sizeof(extension), sni, sni_len);
		len += sizeof(extension) + sni_len;
	}
	if (ech) {
		memcpy(ret_bytes + len, "\xfe\x0d\0\1\1", 5);
		len += 5;
	}
	ret_bytes[extensions - 1] = (uint8_t)(len - extensions);
	ret_bytes[4] = (uint8_t)(len - 5);
	ret_bytes[8] = (uint8_t)(len - 9);
	return len;
}

#endif
