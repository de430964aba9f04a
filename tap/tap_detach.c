/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A namespace has no uplink and forwards nothing, so no order of removal opens a way out. Removing
 * is dropping the last reference: the kernel then takes the table and the addresses apart in its own time. The device
 * is deleted where leaving it would be felt: a TAP that a VMM still holds open would keep the namespace alive (its
 * descriptor refers to it), and a container's eth0 is in the way of its next attach for as long as anything does (the
 * gateway's log outlives its sandbox by a moment). What waits for RCU is done by a thread of its own, since the keeper
 * serves others meanwhile. */
#include "tap/link.h"
#include "tap/netns.h"
#include "tap/tap_internal.h"

#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of the thread that waits for RCU: it makes a few system calls. */
#define DETACH_STACK_SIZE (64 * 1024)

/* Closes a descriptor, if there is one. */
static void
detach_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* Does what waits for RCU: closing an nfnetlink socket does while a transaction of the namespace is young, and deleting
 * a device does always. Takes the tap. */
static void *
detach_finish(void *context)
{
	struct tap *tap = context;

	if (tap->detach_rtnl >= 0)
		link_delete(tap->detach_rtnl, tap->detach_ifindex, NULL);
	detach_close(&tap->detach_rtnl);
	detach_close(&tap->sockets[TAP_SOCKET_NFLOG]);
	detach_close(&tap->nft_fd);
	free(tap);
	return NULL;
}

/* detach_finish in a thread of its own, or here when there can be none. */
static void
detach_finish_later(struct tap *tap)
{
	pthread_attr_t attr;
	pthread_t thread;
	int r;

	pthread_attr_init(&attr);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, DETACH_STACK_SIZE);
	r = pthread_create(&thread, &attr, detach_finish, tap);
	pthread_attr_destroy(&attr);
	if (r != 0)
		detach_finish(tap);
}

/* Finds the device that detach_finish has to delete: a TAP that a VMM holds open, which has a carrier; a veth. */
static void
detach_device(struct tap *tap)
{
	struct link_info info;
	int rtnl;

	if (tap->netns_fd < 0)
		return;
	rtnl = link_open_in(tap->netns_fd, NULL);
	if (rtnl < 0)
		return;
	if (link_find(rtnl, tap_device(&tap->config), &info, NULL) == 0 &&
	    (tap->config.kind == TAP_KIND_TAP ? info.is_tap && (info.flags & IFF_RUNNING) != 0
					      : strcmp(info.kind, "veth") == 0)) {
		tap->detach_rtnl = rtnl;
		tap->detach_ifindex = info.ifindex;
	} else {
		close(rtnl);
	}
}

void
tap_detach(struct tap *tap, bool keep)
{
	if (tap == NULL)
		return;
	if (keep && tap->nft_fd >= 0)
		tap_lease_flush(tap, NULL);
	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++)
		if (i != TAP_SOCKET_NFLOG)
			detach_close(&tap->sockets[i]);
	if (!keep) {
		detach_device(tap);
		if (tap->netns_published)
			netns_unpublish(tap->netns_path);
	}
	detach_close(&tap->netns_fd);
	detach_finish_later(tap);
}

/* Only the sandbox's name is known: a container's device, whose name is always the same, is found and deleted as in
 * tap_detach; all else goes in its own time. */
void
tap_detach_kept(const char *name, const char *netns_dir)
{
	const struct tap_config container = {.kind = TAP_KIND_NETNS};
	char path[PATH_MAX];
	struct tap *tap;
	int len, fd;

	if (netns_dir == NULL)
		return;
	len = snprintf(path, sizeof(path), "%s/postern-%s", netns_dir, name);
	if (len < 0 || (size_t)len >= sizeof(path))
		return;
	if (netns_open(path, &fd, NULL) < 0) {
		netns_unpublish(path); /* a file that lost its mount */
		return;
	}
	tap = tap_alloc(&container);
	if (tap == NULL) {
		netns_unpublish(path);
		close(fd);
		return;
	}
	tap->netns_fd = fd;
	detach_device(tap);
	netns_unpublish(path);
	detach_close(&tap->netns_fd);
	detach_finish_later(tap);
}
