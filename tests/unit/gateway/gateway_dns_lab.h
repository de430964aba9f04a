/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sandbox's DNS server between a guest and a scripted resolver, in two network namespaces of its own, on one loop.
 *
 * The guest's namespace delivers every address locally, as a sandbox's does. The host's namespace has a default route
 * that leads nowhere, its own address 5.6.7.1, and the resolver on loopback. */
#ifndef POSTERN_TESTS_UNIT_GATEWAY_DNS_LAB_H
#define POSTERN_TESTS_UNIT_GATEWAY_DNS_LAB_H

#include "tests/unit/gateway/gateway_far_end.h"
#include "tests/unit/gateway/gateway_dns_wire.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include "gateway/path/dns/dns.h"
#include "gateway/path/dns/dns_upstream.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <unistd.h>

#define LAB_GUEST4 "172.16.0.2"
#define LAB_GUEST6 "fd70:6f73:7465:726e::2"
#define LAB_HOST4 "5.6.7.1"
#define LAB_RESOLVER_PORT 5300
#define LAB_RESOLVER_CONNS 4

static int lab_sandbox_netns = -1, lab_host_netns = -1;

struct lab_asked {
	struct name name;
	uint16_t type;
	bool tcp;
	uint16_t port; /* the source port of the query */
	size_t len;
	uint8_t bytes[DNS_QUERY_MAX];
};

struct lab {
	struct far_end *far;
	struct sandbox sandbox;
	int guest; /* UDP, bound to the guest's address */

	/* The resolver: answers are written by the test's script; len 0: no answer. */
	struct loop_source resolver_udp, resolver_tcp, resolver_conns[LAB_RESOLVER_CONNS];
	void (*script)(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer);
	size_t asked_count;
	struct lab_asked asked[256];

	/* The keeper: holds lease requests back, or refuses them. */
	bool hold, refuse;
	uint64_t held_tag;
	size_t lease_requests;
	uint32_t timeout_s;
	size_t lease_count;
	struct tap_lease leases[TAP_LEASES_MAX];

	size_t reply_len;
	uint8_t reply[65535];
	struct addr reply_from;
};

static struct lab *lab_current; /* for handlers whose argument does not lead to it */

static inline void
lab_run(const char *command)
{
	if (system(command) != 0) {
		print_error("failed: %s\n", command);
		fail();
	}
}

static inline int
lab_netns_new(void)
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
	(void)state;
	lab_sandbox_netns = lab_netns_new();
	if (lab_sandbox_netns < 0)
		return 0; /* the tests skip themselves */
	lab_run("ip link set lo up && ip address add " LAB_GUEST4 "/32 dev lo && ip -6 address add " LAB_GUEST6
		"/128 dev lo nodad && ip route add local default dev lo && ip -6 route add local default dev lo "
		"table main");
	lab_host_netns = lab_netns_new();
	lab_run(
	    "ip link set lo up && ip link add v0 type veth peer name v1 && ip link set v0 up && ip link set v1 up && "
	    "ip address add " LAB_HOST4 "/24 dev v0 && ip route add default via 5.6.7.254 && "
	    "ip -6 address add 2a00:1::1/64 dev v0 nodad && ip -6 route add default via 2a00:1::fe");
	return 0;
}

static inline struct addr
addr_of(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

/* A socket made in a namespace and bound; text NULL: to any address. */
static inline int
lab_socket(int netns, int family, int type, const char *text, uint16_t port)
{
	struct sockaddr_storage sa = {.ss_family = (sa_family_t)family};
	socklen_t len = family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6);
	int one = 1, fd;

	assert_int_equal(setns(netns, CLONE_NEWNET), 0);
	fd = socket(family, type | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(fd >= 0);
	if (text != NULL) {
		struct addr addr = addr_of(text);

		len = addr_to_sockaddr(&addr, port, &sa);
	} else if (family == AF_INET) {
		((struct sockaddr_in *)&sa)->sin_port = htons(port);
	} else {
		((struct sockaddr_in6 *)&sa)->sin6_port = htons(port);
	}
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)), 0);
	if (family == AF_INET6) {
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof(one)), 0);
		assert_int_equal(setsockopt(fd, IPPROTO_IPV6, IPV6_RECVPKTINFO, &one, sizeof(one)), 0);
	} else {
		assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_PKTINFO, &one, sizeof(one)), 0);
	}
	assert_int_equal(bind(fd, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(setns(lab_host_netns, CLONE_NEWNET), 0);
	if (type == SOCK_STREAM)
		assert_int_equal(listen(fd, 64), 0);
	return fd;
}

/* Begin the answer to a question: header and question as they came. */
static inline void
lab_answer(struct wire *w, const struct dns_question *question, unsigned int flags, unsigned int an)
{
	wire_header(w, question->id, 0x8180 | flags, 1, an, 0, 0);
	wire_put(w, question->wire, question->wire_len);
}

/* Read a query, write it down, have the script answer it. */
static inline void
lab_resolve(struct lab *lab, const uint8_t *bytes, size_t len, bool tcp, uint16_t port, struct wire *ret_answer)
{
	struct dns_question question;
	struct lab_asked *asked = &lab->asked[lab->asked_count];
	uint16_t rcode;

	assert_int_equal(dns_message_read_question(bytes, len, &question, &rcode), DNS_READ_OK);
	assert_true(lab->asked_count < sizeof(lab->asked) / sizeof(lab->asked[0]));
	assert_true(len <= sizeof(asked->bytes));
	asked->name = question.name;
	asked->type = question.type;
	asked->tcp = tcp;
	asked->port = port;
	asked->len = len;
	memcpy(asked->bytes, bytes, len);
	lab->asked_count++;
	ret_answer->len = 0;
	lab->script(lab, &question, tcp, ret_answer);
}

static struct sockaddr_in lab_resolver_peer; /* whom resolver_udp is answering: scripts may send more */

static inline void
lab_resolver_udp_handler(struct loop_source *source, uint32_t events)
{
	struct lab *lab = loop_owner(source, struct lab, resolver_udp);
	struct wire *answer = calloc(1, sizeof(*answer));
	uint8_t bytes[1024];
	socklen_t len = sizeof(lab_resolver_peer);
	ssize_t n = recvfrom(source->fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&lab_resolver_peer, &len);

	(void)events;
	assert_true(n > 0 && answer != NULL);
	lab_resolve(lab, bytes, (size_t)n, false, ntohs(lab_resolver_peer.sin_port), answer);
	if (answer->len > 0)
		sendto(source->fd, answer->bytes, answer->len, 0, (struct sockaddr *)&lab_resolver_peer, len);
	free(answer);
}

/* A connection to the resolver: whole messages only, which loopback delivers as they were written. */
static inline void
lab_resolver_conn_handler(struct loop_source *source, uint32_t events)
{
	struct lab *lab = lab_current;
	struct wire *answer = calloc(1, sizeof(*answer));
	uint8_t bytes[1024], size[2];
	ssize_t n = recv(source->fd, bytes, sizeof(bytes), 0);

	(void)events;
	assert_non_null(answer);
	if (n <= 0) {
		close(loop_source_remove(lab->far->gateway.loop, source));
		free(answer);
		return;
	}
	assert_true(n > 2 && (bytes[0] << 8 | bytes[1]) == n - 2);
	lab_resolve(lab, bytes + 2, (size_t)n - 2, true, 0, answer);
	size[0] = (uint8_t)(answer->len >> 8);
	size[1] = (uint8_t)answer->len;
	if (answer->len > 0) {
		send(source->fd, size, 2, MSG_NOSIGNAL | MSG_MORE);
		send(source->fd, answer->bytes, answer->len, MSG_NOSIGNAL);
	}
	free(answer);
}

static inline void
lab_resolver_tcp_handler(struct loop_source *source, uint32_t events)
{
	struct lab *lab = loop_owner(source, struct lab, resolver_tcp);

	(void)events;
	for (size_t i = 0; i < LAB_RESOLVER_CONNS; i++) {
		struct loop_source *conn = &lab->resolver_conns[i];

		if (conn->fd >= 0)
			continue;
		conn->fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		assert_true(conn->fd >= 0);
		conn->handler = lab_resolver_conn_handler;
		assert_int_equal(loop_source_add(lab->far->gateway.loop, conn, EPOLLIN), 0);
		return;
	}
	fail();
}

static inline void
lab_keeper_answer(struct lab *lab, uint64_t tag)
{
	struct msg_result result = {.code = lab->refuse ? ERROR_CORRUPT : ERROR_NONE};

	assert_int_equal(ipc_send(&lab->far->keeper, MSG_RESULT, tag, &result, sizeof(result), NULL, 0), 0);
}

static inline bool
lab_keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct lab *lab = lab_current;
	const struct msg_lease *lease = message->body;

	(void)ipc;
	assert_int_equal(message->header.type, MSG_LEASE_ADD);
	assert_true(lease->count > 0 && lease->count <= TAP_LEASE_BATCH_MAX);
	assert_true(lab->lease_count + lease->count <= TAP_LEASES_MAX);
	assert_true(lease->timeout_s >= TAP_LEASE_MIN_S && lease->timeout_s <= TAP_LEASE_MAX_S);
	lab->lease_requests++;
	lab->timeout_s = lease->timeout_s;
	for (uint32_t i = 0; i < lease->count; i++)
		assert_null(addr_never(&lease->leases[i].addr));
	memcpy(lab->leases + lab->lease_count, lease->leases, lease->count * sizeof(struct tap_lease));
	lab->lease_count += lease->count;
	if (lab->hold)
		lab->held_tag = message->header.tag;
	else
		lab_keeper_answer(lab, message->header.tag);
	return true;
}

static inline void
lab_close(struct lab *lab)
{
	dns_detach(&lab->sandbox);
	far_end_account_end(lab->far, &lab->sandbox);
	assert_null(lab->sandbox.dns);
	dns_upstream_free(lab->far->gateway.dns_upstream);
	far_end_settle(lab->far);
	close(loop_source_remove(lab->far->gateway.loop, &lab->resolver_udp));
	close(loop_source_remove(lab->far->gateway.loop, &lab->resolver_tcp));
	for (size_t i = 0; i < LAB_RESOLVER_CONNS; i++)
		if (lab->resolver_conns[i].fd >= 0)
			close(loop_source_remove(lab->far->gateway.loop, &lab->resolver_conns[i]));
	close(lab->guest);
	snapshot_free(lab->sandbox.policy);
	lease_table_free(&lab->sandbox.leases);
	far_end_free(lab->far);
	free(lab);
	lab_current = NULL;
}

static inline void
lab_open(struct lab **ret_lab, const char *const *rules,
    void (*script)(struct lab *lab, const struct dns_question *question, bool tcp, struct wire *ret_answer))
{
	struct lab *lab = calloc(1, sizeof(*lab));

	if (lab_sandbox_netns < 0) {
		free(lab);
		skip();
	}
	assert_non_null(lab);
	if (lab_current != NULL)
		lab_close(lab_current); /* the test before failed and left it */
	lab_current = lab;
	lab->script = script;
	lab->far = far_end_new();
	lab->far->keeper.message_handler = lab_keeper_handler;
	lab->far->gateway.resolvers[0].addr = addr_of("127.0.0.1");
	lab->far->gateway.resolvers[0].port = LAB_RESOLVER_PORT;
	lab->far->gateway.resolver_count = 1;
	lab->resolver_udp.fd = lab_socket(lab_host_netns, AF_INET, SOCK_DGRAM, "127.0.0.1", LAB_RESOLVER_PORT);
	lab->resolver_udp.handler = lab_resolver_udp_handler;
	lab->resolver_tcp.fd = lab_socket(lab_host_netns, AF_INET, SOCK_STREAM, "127.0.0.1", LAB_RESOLVER_PORT);
	lab->resolver_tcp.handler = lab_resolver_tcp_handler;
	for (size_t i = 0; i < LAB_RESOLVER_CONNS; i++)
		lab->resolver_conns[i].fd = -1;
	assert_int_equal(loop_source_add(lab->far->gateway.loop, &lab->resolver_udp, EPOLLIN), 0);
	assert_int_equal(loop_source_add(lab->far->gateway.loop, &lab->resolver_tcp, EPOLLIN), 0);
	lab->sandbox.gateway = &lab->far->gateway;
	lab->sandbox.id = clock_real_us();
	lab->sandbox.generation = 1;
	lab->sandbox.policy = snapshot_of_words(rules);
	far_end_account(lab->far, &lab->sandbox);
	assert_int_equal(dns_attach(&lab->sandbox, lab_socket(lab_sandbox_netns, AF_INET, SOCK_DGRAM, NULL, 53),
			     lab_socket(lab_sandbox_netns, AF_INET6, SOCK_DGRAM, NULL, 53),
			     lab_socket(lab_sandbox_netns, AF_INET, SOCK_STREAM, NULL, 53),
			     lab_socket(lab_sandbox_netns, AF_INET6, SOCK_STREAM, NULL, 53)),
	    0);
	lab->guest = lab_socket(lab_sandbox_netns, AF_INET, SOCK_DGRAM, LAB_GUEST4, 0);
	*ret_lab = lab;
}

/* Send what is in w to server:53 as a datagram. */
static inline void
lab_send(struct lab *lab, const char *server, const struct wire *w)
{
	struct addr addr = addr_of(server);
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&addr, 53, &sa);

	assert_int_equal(sendto(lab->guest, w->bytes, w->len, 0, (struct sockaddr *)&sa, len), (ssize_t)w->len);
}

/* The next datagram for the guest, if one comes within so many rounds. */
static inline bool
lab_receive_within(struct lab *lab, int rounds)
{
	for (int i = 0; i < rounds; i++) {
		struct sockaddr_storage from;
		socklen_t len = sizeof(from);
		ssize_t n = recvfrom(lab->guest, lab->reply, sizeof(lab->reply), 0, (struct sockaddr *)&from, &len);

		if (n >= 0) {
			lab->reply_len = (size_t)n;
			assert_true(addr_from_sockaddr((struct sockaddr *)&from, &lab->reply_from, NULL));
			assert_true(lab->reply_len >= DNS_HEADER_SIZE);
			far_end_settle(lab->far); /* the record */
			return true;
		}
		loop_round(lab->far->gateway.loop, i < 50 ? 1 : 10);
	}
	return false;
}

static inline bool
lab_receive(struct lab *lab)
{
	return lab_receive_within(lab, 400);
}

/* Everything that is going to happen has happened, and the guest got nothing. */
static inline bool
lab_silence(struct lab *lab)
{
	return !lab_receive_within(lab, 60);
}

/* Ask 8.8.8.8 and get the reply. */
static inline void
lab_ask(struct lab *lab, const char *name, unsigned int type)
{
	static struct wire query;

	wire_query(&query, 0x7777, name, type, 1232);
	lab_send(lab, "8.8.8.8", &query);
	assert_true(lab_receive(lab));
	assert_int_equal(lab->reply[0] << 8 | lab->reply[1], 0x7777);
}

static inline unsigned int
lab_rcode(const struct lab *lab)
{
	return lab->reply[3] & 0xfu;
}

static inline unsigned int
lab_reply_count(const struct lab *lab)
{
	return (unsigned int)(lab->reply[6] << 8 | lab->reply[7]);
}

/* The last DNS record; there must be count of them. */
static inline const struct record_dns *
lab_record(const struct lab *lab, size_t count)
{
	const struct record *last = NULL;

	assert_int_equal(far_end_count(lab->far, RECORD_DNS, &last), count);
	assert_non_null(last);
	return &last->dns;
}

static inline bool
lab_leased(const struct lab *lab, const char *name_text, const char *addr_text)
{
	struct name name = name_of(name_text);
	struct addr addr = addr_of(addr_text);

	return lease_find(&lab->sandbox.leases, &name, &addr) != NULL;
}

#endif
