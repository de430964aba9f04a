/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Queries of our own to the configured resolvers (the only file that touches c-ares): transport only, raw answers back.
 *
 * Environment, resolv.conf, hosts and search lists are not looked at (CASES F-41). */
#ifndef POSTERN_GATEWAY_DNS_UPSTREAM_H
#define POSTERN_GATEWAY_DNS_UPSTREAM_H

#include "base/loop.h"
#include "gateway/path/dns/dns_message.h"
#include "gateway/path/gateway.h"

#include <stddef.h>
#include <stdint.h>

/* Channels over which queries are spread. An idle channel has no socket, so each of the first that many queries under
 * way at once has a socket, and so a source port, of its own. About 75 KiB each. */
#define DNS_UPSTREAM_CHANNELS 32
/* A channel that never gets idle takes no more new queries after this many, so that its port changes. */
#define DNS_UPSTREAM_RENEW 64
/* Queries under way in all; beyond it new ones are refused (-ENOBUFS). */
#define DNS_UPSTREAM_MAX 4096
/* Wait for one server, and rounds through all servers; the second round waits twice as long. */
#define DNS_UPSTREAM_TIMEOUT_MS 2000
#define DNS_UPSTREAM_TRIES 2

struct dns_upstream;

enum dns_upstream_status {
	DNS_UPSTREAM_OK,      /* an answer, whatever it says */
	DNS_UPSTREAM_REFUSED, /* the resolvers answered that they cannot or will not, or none can be reached */
	DNS_UPSTREAM_NETWORK, /* no resolver answered in time */
	DNS_UPSTREAM_ERROR,   /* our own fault: memory, descriptors */
};

/* Embedded in its owner; must live until handler ran or dns_upstream_cancel. */
struct dns_upstream_request {
	struct dns_upstream_job *job; /* NULL: not under way */
	/* bytes is the raw answer (with DNS_UPSTREAM_OK, else NULL) to query, which was sent; both valid during the
	 * call. */
	void (*handler)(struct dns_upstream_request *request, enum dns_upstream_status status, const uint8_t *query,
	    size_t query_len, const uint8_t *bytes, size_t len);
};

/* All channels are made here, because making one opens files, which the seccomp filter forbids later. 0 or -errno. */
int dns_upstream_new(
    struct loop *loop, const struct options_resolver *resolvers, size_t count, struct dns_upstream **ret_upstream);
/* Cancels everything; no handler runs. Accepts NULL. The loop must run one more round to free sockets' sources. */
void dns_upstream_free(struct dns_upstream *upstream);

/* Ask for a name. tcp: over TCP from the start and without mixed case; for when UDP brought an answer that does not
 * match. Returns 0 or -errno (then handler will not run). The handler never runs before this returns. */
int dns_upstream_send(struct dns_upstream *upstream, struct dns_upstream_request *request, const struct name *name,
    uint16_t type, bool tcp);
/* The owner goes away: its handler will not run. Harmless when not under way. */
void dns_upstream_cancel(struct dns_upstream_request *request);

#endif
