/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The UDP relay's own state: udp.c (a sandbox's ports) and udp_flow.c (one flow) share it. */
#ifndef POSTERN_GATEWAY_UDP_H
#define POSTERN_GATEWAY_UDP_H

#include "gateway/path/attempt.h"
#include "gateway/path/pktinfo.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

/* Live flows of one sandbox; more are refused with limit_connections. */
#define UDP_FLOWS_MAX 256
#define UDP_BUCKETS 64
/* New flows: a burst of this many, then UDP_OPEN_PER_S; more are refused with limit_rate. A flow whose origin answers
 * with an ICMP error ends at once, so UDP_FLOWS_MAX alone does not bound how many records a guest can cause. */
#define UDP_OPEN_BURST 512
#define UDP_OPEN_PER_S 64
/* Held while a flow's record is not durable; more is dropped, as a full socket buffer would. */
#define UDP_HELD_MAX 8
#define UDP_HELD_BYTES_MAX 16384
/* A flow ends after this much quiet: once answered, and while it was never answered. */
#define UDP_IDLE_MS 60000
#define UDP_UNANSWERED_MS 30000
/* A live flow's kernel element is renewed for this long, seconds, when less than half of it is left: more than two
 * looks, which come at least every UDP_IDLE_MS, and LEASE_GRACE_S. */
#define UDP_KEEP_S 240
/* Datagrams read from one socket for one event. */
#define UDP_BATCH_MAX 32
/* The largest payload there is, and one byte to see that it is not larger. */
#define UDP_DATAGRAM_MAX 65536

/* One relay socket in the sandbox's namespace. */
struct udp_socket {
	struct loop_source source; /* fd owned; -1: none */
	struct udp_port *port;
};

struct udp_port {
	struct udp_port *next;
	struct udp_relay *relay;
	struct udp_socket sockets[2]; /* IPv4, IPv6 */
	uint16_t port;
	struct loop_deferred deferred; /* frees */
};

enum udp_state {
	UDP_HELD,  /* the record is on its way to the disk: datagrams wait in held; ends by OPEN or CLOSED */
	UDP_OPEN,  /* durable: datagrams pass */
	UDP_CLOSED /* unlinked, sources and descriptors gone, waits for the end of the round to be freed */
};

struct udp_flow {
	struct udp_flow *next_in_bucket;
	struct udp_relay *relay;
	struct udp_socket *guest;     /* answers leave through it */
	struct sockaddr_storage peer; /* the guest, with the scope of a link-local address */
	socklen_t peer_len;
	struct attempt attempt;
	enum udp_state state;
	struct loop_source source;     /* upstream socket, connected, owned */
	struct loop_timer timer;       /* idle */
	struct loop_deferred deferred; /* frees */
	struct udp_held *held, **held_tail;
	size_t held_count, held_bytes;
	int64_t last_ms;                  /* last datagram either way */
	uint64_t bytes_out, bytes_in;     /* payload passed on */
	uint64_t packets_out, packets_in; /* datagrams passed on */
	bool answered;
};

struct udp_relay {
	struct sandbox *sandbox; /* NULL once detached */
	struct loop *loop;
	struct udp_port *ports;
	struct udp_flow *buckets[UDP_BUCKETS];
	size_t flow_count;
	struct attempt_refusals refusals;
	int64_t tokens_milli;          /* new flows that may begin, in thousandths */
	int64_t tokens_ms;             /* when they were last counted */
	struct loop_deferred deferred; /* frees */
};

struct udp_datagram {
	const uint8_t *bytes;
	size_t len;
};

struct udp_flow *udp_flow_find(struct udp_relay *relay, const struct attempt_ends *key);

/* Judge a new flow and open it holding its first datagram, or count the refusal. */
void udp_flow_open(struct udp_socket *guest, const struct attempt_ends *key, const struct pktinfo_from *from,
    struct udp_datagram datagram);

/* A datagram of the guest for a flow: pass on, hold or drop. May close the flow. */
void udp_flow_forward(struct udp_flow *flow, struct udp_datagram datagram);

/* End a flow: close its record, release what it holds; its memory goes at the end of the round. */
void udp_flow_close(struct udp_flow *flow, enum end_reason end, enum verdict verdict, enum reason reason);

/* What gateway.c and repolicy.c drive, as for connections (gateway/path/tcp/proxy.h). add_port takes the descriptors
 * (closed on failure too): 0 or -errno. */
int udp_attach(struct sandbox *sandbox);
int udp_add_port(struct sandbox *sandbox, uint16_t port, int udp4, int udp6);
void udp_del_port(struct sandbox *sandbox, uint16_t port, enum end_reason end);
void udp_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done);
void udp_recount(struct sandbox *sandbox);
void udp_detach(struct sandbox *sandbox, enum end_reason end);

#endif
