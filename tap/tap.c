/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The tap as an object: made empty, asked for what it holds. The files that fill, change and empty it all use this one;
 * it uses none of them. */
#include "tap/tap_internal.h"

#include <errno.h>
#include <stdlib.h>

unsigned int tap_fail_at;

int
tap_step(struct error *err)
{
	if (tap_fail_at == 0 || --tap_fail_at > 0)
		return 0;
	return error_sys(err, EIO, "injected");
}

struct tap *
tap_alloc(const struct tap_config *config)
{
	struct tap *tap = calloc(1, sizeof(*tap));

	if (tap == NULL)
		return NULL;
	tap->config = *config;
	tap->config.netns_fd = -1;
	tap->netns_fd = -1;
	tap->nft_fd = -1;
	tap->detach_rtnl = -1;
	for (unsigned int i = 0; i < TAP_SOCKET_MAX; i++)
		tap->sockets[i] = -1;
	return tap;
}

int
tap_socket(const struct tap *tap, enum tap_socket which)
{
	return tap->sockets[which];
}

const struct tap_config *
tap_config(const struct tap *tap)
{
	return &tap->config;
}

const uint8_t *
tap_router_mac(const struct tap *tap)
{
	return tap->router_mac;
}

const char *
tap_netns_path(const struct tap *tap)
{
	return tap->netns_path;
}

int
tap_netns_fd(const struct tap *tap)
{
	return tap->netns_fd;
}
