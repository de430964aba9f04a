/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. An attach is a list of steps, each of which either is done or ends the attach; one undo, which
 * is the detach, takes back all that was made. The order is the promise:
 *
 *   namespace     new, or the one of an earlier run (adopt); published as a file
 *   sysctls       before there is a device whose packets they could govern, then those of the device
 *   device        made down
 *   ruleset       base policy drop, in one transaction
 *   sockets       so that nothing that is let in can meet another socket
 *   addresses     the router's, without duplicate detection; local default routes; permanent neighbour entries
 *   container     NETNS only: address, default route, lo up in the container's own namespace
 *   device up     the first moment a packet of the guest is looked at
 *
 * Adopt takes over namespace and device as they are and does every other step again: each of them replaces what is
 * there. Sets are empty afterwards; existing contents are never trusted (F-05). */
#include "tap/link.h"
#include "tap/netns.h"
#include "tap/nft.h"
#include "tap/sysctl.h"
#include "tap/tap_internal.h"
#include "tap/uplink.h"

#include <errno.h>
#include <limits.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* lo, in every namespace. */
#define ATTACH_LO_IFINDEX 1
/* A container that was just detached has its eth0 until the kernel took the other end apart, some 40 ms. */
#define ATTACH_VETH_TRIES 10
#define ATTACH_VETH_PAUSE_MS 20

/* Steps of an attach; the calling thread is in the sandbox's namespace from attach_inside on. */

/* Opens or makes the namespace. ret_adopted: it is one of an earlier run. */
static int
attach_namespace(struct tap *tap, const char *netns_dir, bool adopt, bool *ret_adopted, struct error *err)
{
	int len;

	*ret_adopted = false;
	if (netns_dir != NULL) {
		len = snprintf(tap->netns_path, sizeof(tap->netns_path), "%s/postern-%s", netns_dir, tap->config.name);
		if (len < 0 || (size_t)len >= sizeof(tap->netns_path))
			return error_set(err, ERROR_USAGE, "%s: path too long", netns_dir);
	}
	if (netns_dir != NULL && adopt) {
		if (netns_open(tap->netns_path, &tap->netns_fd, err) == 0) {
			*ret_adopted = tap->netns_published = true;
			return netns_check(tap->netns_fd, err);
		}
		if (err->code != ERROR_NOT_FOUND)
			return -1;
		netns_unpublish(tap->netns_path); /* a file that lost its mount */
	}
	if (netns_create(&tap->netns_fd, err) < 0)
		return -1;
	if (netns_dir == NULL) {
		snprintf(tap->netns_path, sizeof(tap->netns_path), "/proc/%d/fd/%d", (int)getpid(), tap->netns_fd);
		return 0;
	}
	if (netns_publish(netns_dir, tap->netns_path, tap->netns_fd, err) < 0)
		return -1;
	tap->netns_published = true;
	return 0;
}

/* 06:00: or 06:01: and the address; locally administered, unicast. The same in every sandbox with the same addresses,
 * so that a VM snapshot's ARP cache fits wherever it is restored. */
static void
attach_mac(uint8_t mac[6], uint8_t second, const struct addr *addr)
{
	mac[0] = 0x06;
	mac[1] = second;
	memcpy(mac + 2, addr->bytes, 4);
}

/* Was a MAC address asked for? */
static bool
attach_mac_is_set(const uint8_t mac[6])
{
	static const uint8_t none[6];

	return memcmp(mac, none, sizeof(none)) != 0;
}

/* Keeps the TAP of an earlier run, to which a VMM may be attached, or make one. */
static int
attach_tap(struct tap *tap, int rtnl, struct link_info *ret_info, struct error *err)
{
	struct error none = {0};

	if (!attach_mac_is_set(tap->config.guest_mac))
		attach_mac(tap->config.guest_mac, 0, &tap->config.guest4);
	if (link_find(rtnl, tap->config.ifname, ret_info, &none) == 0) {
		if (ret_info->is_tap)
			return 0;
		return error_set(err, ERROR_EXISTS, "the namespace has a device %s that is no TAP", tap->config.ifname);
	}
	if (none.code != ERROR_NOT_FOUND) {
		*err = none;
		return -1;
	}
	if (link_add_tap(tap->config.ifname, tap->config.owner_uid, tap->config.owner_gid, err) < 0)
		return -1;
	return link_find(rtnl, tap->config.ifname, ret_info, err);
}

/* The container's end of the veth as its own namespace sees it. */
static int
attach_find_peer(const struct tap *tap, struct link_info *ret_peer, struct error *err)
{
	int rtnl = link_open_in(tap->config.netns_fd, err), r;

	if (rtnl < 0)
		return -1;
	r = link_find(rtnl, tap->config.ifname, ret_peer, err);
	close(rtnl);
	return r;
}

/* Makes the veth pair; waits for an eth0 of an earlier sandbox to go. */
static int
attach_make_veth(struct tap *tap, int rtnl, struct error *err)
{
	static const struct timespec pause = {.tv_nsec = ATTACH_VETH_PAUSE_MS * 1000000L};
	const uint8_t *mac = attach_mac_is_set(tap->config.guest_mac) ? tap->config.guest_mac : NULL;
	struct link_info there;
	struct error none;

	for (int i = 0; i < ATTACH_VETH_TRIES; i++) {
		if (link_add_veth(rtnl, TAP_VETH_NAME, tap->config.netns_fd, tap->config.ifname, mac, err) == 0)
			return 0;
		if (err->code != ERROR_EXISTS)
			return -1;
		if (attach_find_peer(tap, &there, &none) == 0 && strcmp(there.kind, "veth") != 0)
			return -1;
		nanosleep(&pause, NULL);
	}
	return -1;
}

/* Keeps the veth of an earlier run when it leads to this container, or make one. */
static int
attach_veth(struct tap *tap, int rtnl, struct link_info *ret_info, struct error *err)
{
	struct link_info peer;
	struct error none = {0};
	bool kept = false;

	if (link_find(rtnl, TAP_VETH_NAME, ret_info, &none) == 0) {
		kept = attach_find_peer(tap, &peer, &none) == 0 && strcmp(peer.kind, "veth") == 0 &&
		    peer.peer_ifindex == ret_info->ifindex && ret_info->peer_ifindex == peer.ifindex;
		if (!kept && link_delete(rtnl, ret_info->ifindex, err) < 0)
			return -1;
	} else if (none.code != ERROR_NOT_FOUND) {
		*err = none;
		return -1;
	}
	if (!kept && attach_make_veth(tap, rtnl, err) < 0)
		return -1;
	if (link_find(rtnl, TAP_VETH_NAME, ret_info, err) < 0 || attach_find_peer(tap, &peer, err) < 0)
		return -1;
	memcpy(tap->config.guest_mac, peer.mac, sizeof(peer.mac));
	return 0;
}

/* Makes the device, or takes the one that is there, down or as it is; its MAC address and sysctls. */
static int
attach_device(struct tap *tap, int rtnl, struct link_info *ret_info, struct error *err)
{
	const char *device = tap_device(&tap->config);
	bool vm = tap->config.kind == TAP_KIND_TAP;

	if ((vm ? attach_tap(tap, rtnl, ret_info, err) : attach_veth(tap, rtnl, ret_info, err)) < 0)
		return -1;
	attach_mac(tap->router_mac, 1, &tap->config.router4);
	if (memcmp(ret_info->mac, tap->router_mac, sizeof(ret_info->mac)) != 0 &&
	    link_set_mac(rtnl, ret_info->ifindex, tap->router_mac, err) < 0)
		return -1;
	return sysctl_apply_device(device, ret_info, tap_has_ipv6(&tap->config), err);
}

/* The router's addresses, the local default routes, the guest as a permanent neighbour. */
static int
attach_addresses(struct tap *tap, int rtnl, uint32_t ifindex, struct error *err)
{
	static const struct addr link_local = {.family = 6, .bytes = {0xfe, 0x80, [15] = 1}};
	const struct tap_config *config = &tap->config;

	if (link_add_address(rtnl, ifindex, &config->router4, config->bits4, err) < 0 ||
	    link_add_local_default(rtnl, 4, err) < 0 ||
	    link_add_neighbour(rtnl, ifindex, &config->guest4, config->guest_mac, err) < 0)
		return -1;
	if (!tap_has_ipv6(config))
		return 0;
	if (link_add_address(rtnl, ifindex, &link_local, 64, err) < 0 ||
	    link_add_address(rtnl, ifindex, &config->router6, config->bits6, err) < 0 ||
	    link_add_local_default(rtnl, 6, err) < 0 ||
	    link_add_neighbour(rtnl, ifindex, &config->guest6, config->guest_mac, err) < 0)
		return -1;
	return link_check_addresses(rtnl, ifindex, err);
}

/* In the container's namespace: its end of the veth gets the guest's addresses and becomes the way out. Permanent
 * neighbour entries for the router, because the kernel joins the multicast group in which it would be asked for its
 * MAC a moment after the address is there, and a program that asks in that moment waits a second. */
static int
attach_container_links(const struct tap *tap, int rtnl, struct error *err)
{
	const struct tap_config *config = &tap->config;
	struct link_info peer;
	bool ipv6 = tap_has_ipv6(config);

	if (link_find(rtnl, config->ifname, &peer, err) < 0)
		return -1;
	if (ipv6 && sysctl_apply_container(config->ifname, err) < 0)
		return -1;
	if (link_set_up(rtnl, ATTACH_LO_IFINDEX, err) < 0 ||
	    link_add_address(rtnl, peer.ifindex, &config->guest4, config->bits4, err) < 0 ||
	    (ipv6 && link_add_address(rtnl, peer.ifindex, &config->guest6, config->bits6, err) < 0) ||
	    link_set_up(rtnl, peer.ifindex, err) < 0)
		return -1;
	if (link_add_neighbour(rtnl, peer.ifindex, &config->router4, tap->router_mac, err) < 0 ||
	    link_add_default(rtnl, peer.ifindex, &config->router4, err) < 0)
		return -1;
	if (ipv6 &&
	    (link_add_neighbour(rtnl, peer.ifindex, &config->router6, tap->router_mac, err) < 0 ||
		link_add_default(rtnl, peer.ifindex, &config->router6, err) < 0))
		return -1;
	return 0;
}

/* The device is up: have both ends of a veth know it, and the container's address in use, before the attach is
 * reported. */
static int
attach_settle(const struct tap_config *config, struct error *err)
{
	struct netns_visit visit;
	int rtnl;

	if (config->kind != TAP_KIND_NETNS)
		return 0;
	link_settle(TAP_VETH_NAME);
	if (netns_enter(&visit, config->netns_fd, err) < 0)
		return -1;
	link_settle(config->ifname);
	rtnl = link_open(err);
	if (rtnl >= 0 && tap_has_ipv6(config))
		link_wait_address(rtnl, &config->guest6);
	if (rtnl >= 0)
		close(rtnl);
	netns_leave(&visit);
	return rtnl < 0 ? -1 : 0;
}

/* The step "container". */
static int
attach_container(const struct tap *tap, struct error *err)
{
	struct netns_visit visit;
	int rtnl, r = -1;

	if (tap->config.kind != TAP_KIND_NETNS)
		return 0;
	if (netns_enter(&visit, tap->config.netns_fd, err) < 0)
		return -1;
	rtnl = link_open(err);
	if (rtnl >= 0) {
		r = attach_container_links(tap, rtnl, err);
		close(rtnl);
	}
	netns_leave(&visit);
	return r < 0 ? error_prefix(err, "in the container's namespace") : 0;
}

/* All steps that are done from inside the namespace. */
static int
attach_inside(struct tap *tap, bool adopted, struct error *err)
{
	struct link_info device;
	struct netns_visit visit;
	int rtnl = -1, r = -1;

	if (netns_enter(&visit, tap->netns_fd, err) < 0)
		return -1;
	if (sysctl_apply_namespace(tap_has_ipv6(&tap->config), err) == 0)
		rtnl = link_open(err);
	if (rtnl >= 0 && link_set_up(rtnl, ATTACH_LO_IFINDEX, err) == 0 &&
	    attach_device(tap, rtnl, &device, err) == 0 && (tap->nft_fd = nft_open(err)) >= 0 &&
	    tap_intact_load(tap, err) == 0 && tap_socket_make_all(tap, adopted, err) == 0 &&
	    attach_addresses(tap, rtnl, device.ifindex, err) == 0 && attach_container(tap, err) == 0 &&
	    link_set_up(rtnl, device.ifindex, err) == 0)
		r = attach_settle(&tap->config, err);
	if (rtnl >= 0)
		close(rtnl);
	netns_leave(&visit);
	return r;
}

int
tap_attach(const struct tap_config *config, const char *netns_dir, bool adopt, struct tap **ret_tap, struct error *err)
{
	struct error own;
	struct tap *tap;
	bool adopted;
	int r;

	if (err == NULL)
		err = &own;
	if (tap_config_check(config, err) < 0)
		return -1;
	if (config->kind == TAP_KIND_NETNS &&
	    (netns_check(config->netns_fd, err) < 0 ||
		(!adopt && uplink_check(config->netns_fd, config->ifname, err) < 0)))
		return -1;
	tap = tap_alloc(config);
	if (tap == NULL)
		return error_sys(err, ENOMEM, "sandbox %s", config->name);
	tap->config.netns_fd = config->netns_fd;
	r = attach_namespace(tap, netns_dir, adopt, &adopted, err);
	if (r == 0)
		r = attach_inside(tap, adopted, err);
	tap->config.netns_fd = -1; /* the caller's, which may close it */
	if (r < 0) {
		tap_detach(tap, false);
		return error_prefix(err, "attach %s", config->name);
	}
	*ret_tap = tap;
	return 0;
}
