/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sockets of TCP connections. */
#include "gateway/path/tcp/flow.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

/* Makes every end of a connection a reset, that of this process included: the end of a process must not look like the
 * end of the data. flow_socket_close takes it off.
 * syscalls: setsockopt(SOL_SOCKET,SO_LINGER) */
static void
flow_socket_linger(int fd)
{
	struct linger linger = {.l_onoff = 1, .l_linger = 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
}

void
flow_socket_reset(int fd)
{
	flow_socket_linger(fd);
	close(fd);
}

/* syscalls: setsockopt(SOL_SOCKET,SO_LINGER) */
void
flow_socket_close(int fd)
{
	struct linger linger = {.l_onoff = 0};

	(void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

/* syscalls: setsockopt(SOL_TCP,TCP_NODELAY) setsockopt(SOL_TCP,TCP_USER_TIMEOUT)
 * syscalls: setsockopt(SOL_SOCKET,SO_KEEPALIVE) setsockopt(SOL_TCP,TCP_KEEPIDLE)
 * syscalls: setsockopt(SOL_TCP,TCP_KEEPINTVL) setsockopt(SOL_TCP,TCP_KEEPCNT) */
void
flow_socket_prepare(int fd)
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
	flow_socket_linger(fd);
}

/* syscalls: getsockopt(SOL_TCP,TCP_INFO) */
bool
flow_socket_segments(int fd, struct flow_segments *ret_segments)
{
	struct tcp_info info = {0};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) < 0)
		return false;
	*ret_segments = (struct flow_segments){.out = info.tcpi_segs_in, .in = info.tcpi_segs_out};
	return true;
}

/* syscalls: socket(AF_INET,SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK,0)
 * syscalls: socket(AF_INET6,SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK,0) */
int
flow_socket_origin(const struct attempt_ends *ends)
{
	int fd = socket(ends->dst.family == 6 ? AF_INET6 : AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	if (fd >= 0)
		flow_socket_prepare(fd);
	return fd;
}

/* Sets how many bytes make a socket readable.
 * syscalls: setsockopt(SOL_SOCKET,SO_RCVLOWAT) */
static void
flow_socket_low_water(int fd, int bytes)
{
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVLOWAT, &bytes, sizeof(bytes));
}

/* syscalls: recvfrom */
bool
flow_socket_peek(int fd, size_t size, bool (*agrees)(const uint8_t *bytes, size_t len), bool *partial, bool *ret_agrees)
{
	uint8_t bytes[FLOW_PEEK_MAX];
	ssize_t n;
	bool so_far;

	assert(size <= sizeof(bytes));
	n = recv(fd, bytes, size, MSG_PEEK | MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	so_far = n > 0 && agrees(bytes, (size_t)n);
	/* Half of it: once, wait for all. A second time it is all there will be. */
	if (so_far && n < (ssize_t)size && !*partial) {
		*partial = true;
		flow_socket_low_water(fd, (int)size);
		return false;
	}
	if (*partial)
		flow_socket_low_water(fd, 1);
	*ret_agrees = so_far && n == (ssize_t)size;
	return true;
}
