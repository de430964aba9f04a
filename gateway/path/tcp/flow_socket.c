/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sockets of TCP connections. */
#include "gateway/path/tcp/flow.h"

#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Make every end of a connection a reset, that of this process included: the end of a process must not look like the
 * end of the data. Whoever closes in order takes it off. */
static void
flow_linger_reset(int fd)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void
flow_close_reset(int fd)
{
	flow_linger_reset(fd);
	close(fd);
}

void
flow_close_in_order(int fd)
{
	struct linger linger = {.l_onoff = 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

void
flow_set_options(int fd)
{
	static const struct {
		int level, name, value;
	} options[] = {
	    {IPPROTO_TCP, TCP_NODELAY, 1},
	    {SOL_SOCKET, SO_KEEPALIVE, 1},
	    {IPPROTO_TCP, TCP_KEEPIDLE, FLOW_KEEPALIVE_IDLE_S},
	    {IPPROTO_TCP, TCP_KEEPINTVL, FLOW_KEEPALIVE_STEP_S},
	    {IPPROTO_TCP, TCP_KEEPCNT, FLOW_KEEPALIVE_COUNT},
	    {IPPROTO_TCP, TCP_USER_TIMEOUT, FLOW_USER_TIMEOUT_MS},
	};

	for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++)
		(void)setsockopt(fd, options[i].level, options[i].name, &options[i].value, sizeof(options[i].value));
	flow_linger_reset(fd);
}

bool
flow_count_segments(int fd, struct flow_segments *ret_segments)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	*ret_segments = (struct flow_segments){.out = info.tcpi_segs_in, .in = info.tcpi_segs_out};
	return true;
}

int
flow_origin_socket(const struct flow_ends *ends)
{
	int fd = socket(ends->dst.family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		flow_set_options(fd);
	return fd;
}
