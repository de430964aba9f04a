/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Asks the kernel how the host would reach an address: the never list's dynamic part.
 *
 * The host's own addresses, broadcast and multicast ones change while the daemon runs. Instead of following their
 * changes, each verdict asks the routing table (RTM_GETROUTE, about 10 µs, no privilege): what the answer says is what
 * connect(2) would do now. (CASES) */
#ifndef POSTERN_GATEWAY_ROUTE_H
#define POSTERN_GATEWAY_ROUTE_H

#include "policy/names/addr.h"

#include <stdbool.h>
#include <stdint.h>

enum route_kind {
	ROUTE_UNICAST, /* leaves the host by a unicast route */
	ROUTE_NONE,    /* no route, unreachable, prohibited, blackhole */
	ROUTE_HOST,    /* the host itself: local, broadcast, anycast, multicast */
	ROUTE_ERROR,   /* the kernel did not answer: refuse */
};

struct route {
	int fd; /* NETLINK_ROUTE socket; -1 while closed */
	uint32_t seq;
};

/* Opens the socket in the current network namespace. Returns 0 or -errno. */
int route_open(struct route *route);
void route_close(struct route *route);

enum route_kind route_lookup(struct route *route, const struct addr *dst);

/* Can the host reach global IPv6 addresses at all? (Otherwise AAAA is answered with NODATA.) */
bool route_has_ipv6(struct route *route);

#endif
