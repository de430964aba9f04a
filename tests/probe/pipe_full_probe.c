/* SPDX-License-Identifier: GPL-3.0-or-later */
/* splice(2) from a socket with data says EAGAIN when the pipe is full: it does not mean that the socket is empty. */
#include "probe.h"

#include <fcntl.h>

int
main(void)
{
	static const char bytes[4 * 1024 * 1024];
	int pair[2], pipe_fds[2];
	ssize_t moved, total = 0;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) < 0 || pipe2(pipe_fds, O_NONBLOCK) < 0)
		probe_skip("no socket pair");
	for (int i = 0; i < 64 && send(pair[0], bytes, 16384, 0) > 0; i++)
		;
	while ((moved = splice(pair[1], NULL, pipe_fds[1], NULL, sizeof(bytes), SPLICE_F_NONBLOCK | SPLICE_F_MOVE)) > 0)
		total += moved;
	probe_ok(total > 0 && moved < 0 && errno == EAGAIN, "%zd bytes moved, then EAGAIN", total);
	probe_ok(probe_readable(pair[1], 0), "and the socket is readable still");
	return probe_finish();
}
