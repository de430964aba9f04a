/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The splice pump.
 *
 * Theory of operation. splice's EAGAIN does not say whether the socket is empty or the pipe is full. So a pipe is
 * filled only while it is empty, and emptied before it is filled again: EAGAIN while filling then means "source empty",
 * EAGAIN while emptying "sink full", and a direction is always either reading (holding nothing, not even a pipe) or
 * writing (holding one pipe). The owner watches the source while reading and the sink while writing, level-triggered,
 * never both: a stopped reader costs one pipe and its socket buffers, no wake-ups, and nothing grows.
 *
 * FIN goes on only when prefix and pipe are empty, by shutdown(SHUT_WR): the other direction continues. Errors are told
 * with the side they came from; the owner turns a reset into a reset.
 *
 * When no pipe can be had (descriptors are short) bytes are copied instead: peeked at, offered to the sink, and only
 * what it took is taken from the source, so that this way holds no bytes either. */
#include "gateway/path/tcp/relay.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct {
	int fds[RELAY_POOL_MAX][2];
	size_t count;
} relay_pool;

static uint8_t relay_copy_buffer[RELAY_SHORT_BYTES];

void
relay_init(struct relay_way *way)
{
	*way = (struct relay_way){.status = RELAY_READING, .pipe_fds = {-1, -1}, .budget = UINT64_MAX};
}

void
relay_prefix_own(struct relay_way *way, uint8_t *bytes, size_t len)
{
	free(way->prefix);
	way->prefix = bytes;
	way->prefix_len = len;
	way->prefix_at = 0;
}

/* Gets a pipe, from the pool or a new one. False: none can be had.
 * syscalls: pipe2 fcntl(F_SETPIPE_SZ) */
static bool
relay_borrow(struct relay_way *way)
{
	if (way->pipe_fds[0] >= 0)
		return true;
	if (relay_pool.count > 0) {
		relay_pool.count--;
		way->pipe_fds[0] = relay_pool.fds[relay_pool.count][0];
		way->pipe_fds[1] = relay_pool.fds[relay_pool.count][1];
		return true;
	}
	if (pipe2(way->pipe_fds, O_CLOEXEC | O_NONBLOCK) < 0) {
		way->pipe_fds[0] = way->pipe_fds[1] = -1;
		return false;
	}
	(void)fcntl(way->pipe_fds[1], F_SETPIPE_SZ, RELAY_PIPE_BYTES);
	return true;
}

/* Back to the pool when empty; a pipe with bytes in it is never given to another connection. */
static void
relay_release(struct relay_way *way)
{
	if (way->pipe_fds[0] < 0)
		return;
	if (way->stuck == 0 && relay_pool.count < RELAY_POOL_MAX) {
		relay_pool.fds[relay_pool.count][0] = way->pipe_fds[0];
		relay_pool.fds[relay_pool.count][1] = way->pipe_fds[1];
		relay_pool.count++;
	} else {
		close(way->pipe_fds[0]);
		close(way->pipe_fds[1]);
	}
	way->pipe_fds[0] = way->pipe_fds[1] = -1;
	way->stuck = 0;
}

void
relay_clear(struct relay_way *way)
{
	relay_release(way);
	relay_prefix_own(way, NULL, 0);
}

size_t
relay_pool_fds(void)
{
	return relay_pool.count * 2;
}

void
relay_pool_drain(void)
{
	while (relay_pool.count > 0) {
		relay_pool.count--;
		close(relay_pool.fds[relay_pool.count][0]);
		close(relay_pool.fds[relay_pool.count][1]);
	}
}

/* Ends a turn with this status; a pipe without bytes goes back. */
static enum relay_status
relay_rest(struct relay_way *way, enum relay_status status)
{
	if (status != RELAY_WRITING)
		relay_release(way);
	return way->status = status;
}

/* Ends the direction: this side failed. */
static enum relay_status
relay_fail(struct relay_way *way, enum relay_status side, int sys_errno)
{
	way->sys_errno = sys_errno;
	return way->status = side; /* bytes may be stuck: relay_clear closes the pipe */
}

/* As much of len as the budget has. */
static size_t
relay_within(const struct relay_way *way, size_t len)
{
	return len < way->budget ? len : (size_t)way->budget;
}

/* Counts bytes that the sink took. */
static void
relay_given(struct relay_way *way, size_t len)
{
	way->bytes += len;
	if (way->budget != UINT64_MAX)
		way->budget -= len;
}

/* Write prefix and pipe. 0 when nothing is held any more, or -errno (-EAGAIN: sink full, or the budget is spent).
 * syscalls: sendto splice */
static int
relay_flush(struct relay_way *way, int sink)
{
	while (way->prefix_at < way->prefix_len) {
		size_t len = relay_within(way, way->prefix_len - way->prefix_at);
		ssize_t n;

		if (len == 0)
			return -EAGAIN;
		n = send(sink, way->prefix + way->prefix_at, len, MSG_DONTWAIT | MSG_NOSIGNAL);
		if (n < 0)
			return -errno;
		way->prefix_at += (size_t)n;
		relay_given(way, (size_t)n);
	}
	if (way->prefix != NULL)
		relay_prefix_own(way, NULL, 0);
	while (way->stuck > 0) {
		size_t len = relay_within(way, way->stuck);
		ssize_t n;

		if (len == 0)
			return -EAGAIN;
		n = splice(way->pipe_fds[0], NULL, sink, NULL, len, SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		way->stuck -= (size_t)n;
		relay_given(way, (size_t)n);
	}
	return 0;
}

/* Without a pipe: offer the sink what the source has, take from the source what the sink took.
 * syscalls: recvfrom sendto shutdown */
static enum relay_status
relay_copy(struct relay_way *way, int source, int sink)
{
	size_t len = relay_within(way, sizeof(relay_copy_buffer));
	ssize_t n = recv(source, relay_copy_buffer, len, MSG_PEEK | MSG_DONTWAIT);
	ssize_t sent;

	if (n < 0)
		return errno == EAGAIN ? relay_rest(way, RELAY_READING) : relay_fail(way, RELAY_SOURCE_FAILED, errno);
	if (n == 0) {
		way->eof = true;
		if (shutdown(sink, SHUT_WR) < 0)
			return relay_fail(way, RELAY_SINK_FAILED, errno);
		return relay_rest(way, RELAY_FINISHED);
	}
	sent = send(sink, relay_copy_buffer, (size_t)n, MSG_DONTWAIT | MSG_NOSIGNAL);
	if (sent < 0)
		return errno == EAGAIN ? relay_rest(way, RELAY_WRITING) : relay_fail(way, RELAY_SINK_FAILED, errno);
	relay_given(way, (size_t)sent);
	/* The same bytes again: peeked at above, so they are there. */
	if (recv(source, relay_copy_buffer, (size_t)sent, MSG_DONTWAIT) != sent)
		return relay_fail(way, RELAY_SOURCE_FAILED, EIO);
	return relay_rest(way, RELAY_READING);
}

enum relay_status
relay_pump_prefix(struct relay_way *way, int sink)
{
	int rc;

	do {
		rc = relay_flush(way, sink);
	} while (rc == -EINTR);
	if (rc == 0)
		return RELAY_READING;
	if (rc == -EAGAIN)
		return RELAY_WRITING;
	way->sys_errno = -rc;
	return RELAY_SINK_FAILED;
}

/* syscalls: shutdown splice */
enum relay_status
relay_pump(struct relay_way *way, int source, int sink)
{
	size_t moved = 0;

	if (way->status == RELAY_FINISHED || way->status == RELAY_SOURCE_FAILED || way->status == RELAY_SINK_FAILED)
		return way->status;
	for (;;) {
		int rc = relay_flush(way, sink);
		ssize_t n;

		if (rc == -EINTR)
			continue;
		if (rc == -EAGAIN)
			return relay_rest(way, RELAY_WRITING);
		if (rc < 0)
			return relay_fail(way, RELAY_SINK_FAILED, -rc);
		if (way->eof)
			return shutdown(sink, SHUT_WR) < 0 ? relay_fail(way, RELAY_SINK_FAILED, errno)
							   : relay_rest(way, RELAY_FINISHED);
		if (moved >= RELAY_TURN_BYTES || way->budget == 0)
			return relay_rest(way, RELAY_READING);
		if (!relay_borrow(way))
			return relay_copy(way, source, sink);
		n = splice(source, NULL, way->pipe_fds[1], NULL, relay_within(way, RELAY_PIPE_BYTES),
		    SPLICE_F_MOVE | SPLICE_F_NONBLOCK);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return errno == EAGAIN ? relay_rest(way, RELAY_READING)
					       : relay_fail(way, RELAY_SOURCE_FAILED, errno);
		way->eof = n == 0;
		way->stuck = (size_t)n;
		moved += n < RELAY_SHORT_BYTES ? RELAY_TURN_BYTES : (size_t)n;
	}
}
