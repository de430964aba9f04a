/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Devices, addresses, routes and neighbours over rtnetlink; each call acts on the namespace its socket was opened
 * in. */
#ifndef POSTERN_TAP_LINK_H
#define POSTERN_TAP_LINK_H

#include "base/error.h"
#include "policy/names/addr.h"

#include <net/if.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Values per device of one family that are kept; newer kernels may know more. */
#define LINK_CONF_MAX 96

/* A device as the kernel describes it. */
struct link_info {
	uint32_t ifindex;
	uint32_t peer_ifindex; /* veth: the other end, in the namespace it is in; else 0 */
	unsigned int flags;    /* IFF_* */
	uint8_t mac[6];
	char kind[16]; /* "tun", "veth", or "" */
	bool is_tap;   /* kind "tun" in TAP mode */
	int32_t conf4[LINK_CONF_MAX],
	    conf6[LINK_CONF_MAX]; /* values of ipv4/conf and ipv6/conf, by the kernel\'s numbers */
	size_t conf4_count, conf6_count;
};

/* An rtnetlink socket in the calling thread's namespace, or -1. The caller closes it. */
int link_open(struct error *err);
/* The same in another namespace. */
int link_open_in(int netns_fd, struct error *err);

/* 0; -1 with ERROR_NOT_FOUND when there is no such device. */
int link_find(int rtnl, const char *name, struct link_info *ret_info, struct error *err);

/* A persistent TAP in the calling thread's namespace, down. owner_uid (uid_t)-1: root only. */
int link_add_tap(const char *name, uid_t owner_uid, gid_t owner_gid, struct error *err);
/* A veth pair, both ends down: name here, peer_name in peer_netns_fd. peer_mac NULL: the kernel chooses.
 * ERROR_EXISTS when a name is taken. */
int link_add_veth(
    int rtnl, const char *name, int peer_netns_fd, const char *peer_name, const uint8_t peer_mac[6], struct error *err);
/* Waits for RCU (some 20 ms). One that is gone is deleted: a veth goes when its peer's namespace does, when the kernel
 * has time. */
int link_delete(int rtnl, uint32_t ifindex, struct error *err);

int link_set_mac(int rtnl, uint32_t ifindex, const uint8_t mac[6], struct error *err);
int link_set_up(int rtnl, uint32_t ifindex, struct error *err);

/* A device that is up gets its carrier from its peer a moment later, in the kernel's own time; until then what is sent
 * is dropped, and IPv6 addresses wait. Have that done now. name is one of the calling thread's namespace. */
void link_settle(const char *name);

/* Without duplicate address detection; one that is there is replaced. */
int link_add_address(int rtnl, uint32_t ifindex, const struct addr *addr, uint8_t bits, struct error *err);
/* The kernel makes a new IPv6 address its own a moment later, by a work item; answers to who uses it before are lost.
 * Wait for that, at most some 200 ms. */
void link_wait_address(int rtnl, const struct addr *addr);
/* ERROR_SYSTEM when an IPv6 address of the device is tentative or failed duplicate detection (E-04). */
int link_check_addresses(int rtnl, uint32_t ifindex, struct error *err);
/* "local default dev lo": every destination of the family (4, 6) that has no better route is delivered to our
 * sockets. */
int link_add_local_default(int rtnl, int family, struct error *err);
/* "default via router dev ifindex". */
int link_add_default(int rtnl, uint32_t ifindex, const struct addr *router, struct error *err);
/* A permanent neighbour entry, which no ARP or NDP message changes. */
int link_add_neighbour(int rtnl, uint32_t ifindex, const struct addr *addr, const uint8_t mac[6], struct error *err);

#endif
