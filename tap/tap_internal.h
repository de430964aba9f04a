/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the files of tap/ share and hide from others: struct tap, fixed names and numbers, the fault hook. */
#ifndef POSTERN_TAP_TAP_INTERNAL_H
#define POSTERN_TAP_TAP_INTERNAL_H

#include "tap/tap.h"

#include <limits.h>

/* Both tables (families inet and netdev) of a sandbox's namespace. */
#define TAP_TABLE "postern"
/* Our end of a NETNS sandbox's veth. */
#define TAP_VETH_NAME "veth0"
/* Where the transparent listeners stand, on 127.0.0.1 and ::1. Not on any address: a lookup of ADDR:15001 must not find
 * them, and loopback destinations are on the never list, so that no guest can dial a listener itself (E-11). */
#define TAP_TPROXY_PORT 15001
/* nfnetlink_log group of the refusal rules. One namespace, one group. */
#define TAP_LOG_GROUP 1
/* Bytes of a refused packet handed to the gateway: an IPv6 header, the transport's first bytes, some room. */
#define TAP_LOG_SNAPLEN 96

struct tap {
	struct tap_config config;
	uint8_t router_mac[6];
	char netns_path[PATH_MAX];
	bool netns_published; /* netns_path is a bind mount that detach removes */
	int netns_fd;
	int sockets[TAP_SOCKET_MAX];
	int nft_fd;           /* opened inside the namespace, kept: a warm socket costs 3 us per change, a new one 25 */
	uint32_t nft_gen;     /* the ruleset generation that our own last change made */
	uint64_t nft_digest;  /* of our tables as the kernel reported them right after the load */
	size_t lease_bound;   /* no more elements than this are in the lease sets; exact only after a count */
	size_t lease_counted; /* what the last count found, and when */
	int64_t lease_counted_ms;
	int detach_rtnl; /* detach: socket in the namespace, through which detach_ifindex is deleted; else -1 */
	uint32_t detach_ifindex;
};

/* Test hook (F-06): when set to k > 0, the k-th kernel operation of tap/ from now on fails with EIO, once. */
extern unsigned int tap_fail_at;
/* Called before each kernel operation of an attach; 0, or -1 with the injected error. */
int tap_step(struct error *err);

/* A tap with nothing made yet: every descriptor is -1. NULL without memory. */
struct tap *tap_alloc(const struct tap_config *config);

/* tap_intact.c: note that a transaction of our own went through. certain: it changed something. One that only empties
 * sets may find them empty; the kernel does not count that as a transaction, and counting it here would hide the next
 * one of another program. */
void tap_intact_committed(struct tap *tap, bool certain);

/* tap_socket.c: make all of tap->sockets in the namespace the calling thread is in. patient: wait up to a second for an
 * address that a process of an earlier run, about to end, still holds. */
int tap_socket_make_all(struct tap *tap, bool patient, struct error *err);

/* Name of the guest-facing device inside the sandbox's namespace. */
static inline const char *
tap_device(const struct tap_config *config)
{
	return config->kind == TAP_KIND_TAP ? config->ifname : TAP_VETH_NAME;
}

static inline bool
tap_has_ipv6(const struct tap_config *config)
{
	return config->guest6.family == 6;
}

#endif
