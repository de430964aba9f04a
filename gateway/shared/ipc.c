/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A channel is open or closed. Open, a message goes to the socket at once, or into the queue
 * behind those that wait for room there; the queue is sent when the socket can take more. The descriptors of a queued
 * message are duplicates, so that the caller may close its own.
 *
 *   closed --ipc_open--> open --ipc_close--> closed
 *                        open --peer gone, malformed message, message lost--> closed, broken_handler
 *
 * Trust. The other end may be a process that a guest took over. A message must be as long as its header says and carry
 * as many descriptors; then the message table decides whether this peer may send it (ipc_take), and no handler sees
 * another. Descriptors that no handler takes are closed. IPC_ROUND_MAX messages are handled before other channels get
 * their turn.
 *
 * When a step fails. A message that cannot be sent or queued breaks the channel: one of both ends would wait for it.
 * A receiver without free descriptors gets messages without theirs; its owner may refuse each (fds_lost_handler), which
 * keeps the channel. */
#include "gateway/shared/ipc.h"

#include "base/log.h"
#include "gateway/shared/msg.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Messages handled in one round, so that one busy peer does not starve the others. */
#define IPC_ROUND_MAX 64
/* Socket buffer: a burst of records; capped by net.core.wmem_max for the unprivileged. */
#define IPC_BUFFER_BYTES (1 << 20)

struct ipc_queued {
	STAILQ_ENTRY(ipc_queued) next;
	struct ipc_header header;
	int fds[IPC_FDS_MAX];
	unsigned char body[];
};

union ipc_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)];
};

static void ipc_handler(struct loop_source *source, uint32_t events);

int
ipc_pair(int ret_fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ret_fds) < 0)
		return -errno;
	for (int i = 0; i < 2; i++) {
		int bytes = IPC_BUFFER_BYTES;

		/* Best effort: the forced form needs CAP_NET_ADMIN. */
		if (setsockopt(ret_fds[i], SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof(bytes)) < 0)
			setsockopt(ret_fds[i], SOL_SOCKET, SO_SNDBUF, &bytes, sizeof(bytes));
	}
	return 0;
}

void
ipc_init(struct ipc *ipc, unsigned int self, unsigned int peer,
    bool (*message_handler)(struct ipc *ipc, struct ipc_message *message),
    void (*broken_handler)(struct ipc *ipc, const char *why))
{
	*ipc = (struct ipc){.self = (uint8_t)self,
	    .peer = (uint8_t)peer,
	    .source.fd = -1,
	    .message_handler = message_handler,
	    .broken_handler = broken_handler};
}

int
ipc_open(struct ipc *ipc, struct loop *loop, int fd)
{
	ipc->loop = loop;
	STAILQ_INIT(&ipc->queue);
	ipc->queue_len = 0;
	ipc->source.fd = fd;
	ipc->source.handler = ipc_handler;
	return loop_source_add(loop, &ipc->source, EPOLLIN);
}

/* Closes those that are open. */
static void
ipc_close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

/* Forgets the oldest message that waits. */
static void
ipc_queue_drop_head(struct ipc *ipc)
{
	struct ipc_queued *queued = STAILQ_FIRST(&ipc->queue);

	STAILQ_REMOVE_HEAD(&ipc->queue, next);
	ipc->queue_len--;
	ipc_close_fds(queued->fds, queued->header.fd_count);
	free(queued);
}

void
ipc_close(struct ipc *ipc)
{
	int fd = ipc->source.fd;

	if (fd < 0)
		return;
	loop_source_remove(ipc->loop, &ipc->source);
	close(fd);
	while (!STAILQ_EMPTY(&ipc->queue))
		ipc_queue_drop_head(ipc);
}

/* Closes the channel and tells its owner why. */
static void
ipc_break(struct ipc *ipc, const char *why)
{
	if (!ipc_is_open(ipc))
		return;
	ipc_close(ipc);
	ipc->broken_handler(ipc, why);
}

/* Writes one message to the socket: 0, or -errno (-EAGAIN: there is no room now).
 * syscalls: sendmsg */
static int
ipc_transmit(int fd, const struct ipc_header *header, const void *body, const int *fds)
{
	/* The kernel does not write through these pointers. */
	struct iovec iov[2] = {
	    {.iov_base = (void *)(uintptr_t)header, .iov_len = sizeof(*header)},
	    {.iov_base = (void *)(uintptr_t)body, .iov_len = header->size},
	};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};
	union ipc_control control;

	if (header->fd_count > 0) {
		struct cmsghdr *cmsg;

		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * header->fd_count);
		cmsg = CMSG_FIRSTHDR(&msg);
		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * header->fd_count);
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * header->fd_count);
	}
	return sendmsg(fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT) < 0 ? -errno : 0;
}

/* Is there no room for the message now? */
static bool
ipc_must_wait(int rc)
{
	return rc == -EAGAIN || rc == -EWOULDBLOCK || rc == -ENOBUFS || rc == -ETOOMANYREFS;
}

/* Copies the message to the end of the queue.
 * syscalls: fcntl(F_DUPFD_CLOEXEC) */
static int
ipc_enqueue(struct ipc *ipc, const struct ipc_header *header, const void *body, const int *fds)
{
	struct ipc_queued *queued;

	if (ipc->queue_len >= IPC_QUEUE_MAX)
		return -ENOBUFS;
	queued = malloc(sizeof(*queued) + header->size);
	if (queued == NULL)
		return -ENOMEM;
	queued->header = *header;
	if (header->size > 0)
		memcpy(queued->body, body, header->size);
	for (size_t i = 0; i < header->fd_count; i++) {
		queued->fds[i] = fcntl(fds[i], F_DUPFD_CLOEXEC, 0);
		if (queued->fds[i] < 0) {
			int rc = -errno;

			ipc_close_fds(queued->fds, i);
			free(queued);
			return rc;
		}
	}
	STAILQ_INSERT_TAIL(&ipc->queue, queued, next);
	ipc->queue_len++;
	return loop_source_set(ipc->loop, &ipc->source, EPOLLIN | EPOLLOUT);
}

/* syscalls: shutdown */
int
ipc_send(struct ipc *ipc, uint16_t type, uint64_t tag, const void *body, uint32_t size, const int *fds, size_t fd_count)
{
	struct ipc_header header = {.type = type, .fd_count = (uint16_t)fd_count, .size = size, .tag = tag};
	const char *wrong;
	int rc = -EAGAIN;

	if (!ipc_is_open(ipc))
		return -EPIPE;
	wrong = msg_wrong(type, ipc->self, ipc->peer, body, size, fd_count);
	if (wrong != NULL) {
		log_warnx("message %s (%u bytes, %zu descriptors) not sent: %s", msg_name(type), size, fd_count, wrong);
		rc = -EPROTO;
	} else {
		if (STAILQ_EMPTY(&ipc->queue))
			rc = ipc_transmit(ipc->source.fd, &header, body, fds);
		if (!ipc_must_wait(rc))
			return rc;
		rc = ipc_enqueue(ipc, &header, body, fds);
	}
	/* Sender or receiver would wait for a lost message for ever. The channel is not closed here, in the midst of
	 * the caller's work; the loop finds its end. */
	if (rc < 0)
		shutdown(ipc->source.fd, SHUT_RDWR);
	return rc;
}

/* Sends what waits, as far as the socket takes it. */
static void
ipc_flush(struct ipc *ipc)
{
	struct ipc_queued *queued;

	while ((queued = STAILQ_FIRST(&ipc->queue)) != NULL) {
		int rc = ipc_transmit(ipc->source.fd, &queued->header, queued->body, queued->fds);

		if (ipc_must_wait(rc))
			return;
		if (rc < 0) {
			ipc_break(ipc, strerror(-rc));
			return;
		}
		ipc_queue_drop_head(ipc);
	}
	loop_source_set(ipc->loop, &ipc->source, EPOLLIN);
}

/* Collects the descriptors that came with a message. */
static void
ipc_take_fds(struct msghdr *msg, struct ipc_message *message, size_t *ret_count)
{
	*ret_count = 0;
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg != NULL; cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		*ret_count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		memcpy(message->fds, CMSG_DATA(cmsg), *ret_count * sizeof(int));
	}
}

bool
ipc_take(struct ipc *ipc, struct ipc_message *message)
{
	const struct ipc_header *header = &message->header;

	return msg_wrong(header->type, ipc->peer, ipc->self, message->body, header->size, header->fd_count) == NULL &&
	    ipc->message_handler(ipc, message);
}

/* Closes the descriptors that came, and asks the owner to answer the message as refused. */
static bool
ipc_fds_lost(struct ipc *ipc, struct ipc_message *message, size_t fd_count)
{
	ipc_close_fds(message->fds, fd_count);
	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		message->fds[i] = -1;
	return ipc->fds_lost_handler != NULL &&
	    msg_wrong(message->header.type, ipc->peer, ipc->self, message->body, message->header.size,
		message->header.fd_count) == NULL &&
	    ipc->fds_lost_handler(ipc, message);
}

/* Receives and handles one message. False: nothing more now, or the channel broke.
 * syscalls: recvmsg */
static bool
ipc_receive(struct ipc *ipc)
{
	static _Alignas(8) unsigned char body[IPC_BODY_MAX]; /* one loop, one thread a process */
	struct ipc_message message = {.body = body};
	union ipc_control control;
	struct iovec iov[2] = {
	    {.iov_base = &message.header, .iov_len = sizeof(message.header)},
	    {.iov_base = body, .iov_len = sizeof(body)},
	};
	struct msghdr msg = {
	    .msg_iov = iov, .msg_iovlen = 2, .msg_control = control.bytes, .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(ipc->source.fd, &msg, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
	size_t fd_count;
	bool good;

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (n <= 0) {
		ipc_break(ipc, n == 0 ? "peer closed" : strerror(errno));
		return false;
	}
	ipc_take_fds(&msg, &message, &fd_count);
	good = (msg.msg_flags & MSG_TRUNC) == 0 && (size_t)n >= sizeof(message.header) &&
	    message.header.size == (size_t)n - sizeof(message.header) && message.header.fd_count <= IPC_FDS_MAX;
	if (good && (msg.msg_flags & MSG_CTRUNC) != 0 && fd_count < message.header.fd_count)
		good = ipc_fds_lost(ipc, &message, fd_count);
	else if (good)
		good =
		    (msg.msg_flags & MSG_CTRUNC) == 0 && message.header.fd_count == fd_count && ipc_take(ipc, &message);
	ipc_close_fds(message.fds, fd_count);
	if (!good)
		ipc_break(ipc, IPC_WHY_MALFORMED);
	return good && ipc_is_open(ipc);
}

/* Sends and receives what the socket is ready for. */
static void
ipc_handler(struct loop_source *source, uint32_t events)
{
	struct ipc *ipc = loop_owner(source, struct ipc, source);

	if ((events & EPOLLOUT) != 0)
		ipc_flush(ipc);
	if ((events & (EPOLLIN | EPOLLHUP | EPOLLERR)) == 0)
		return;
	for (int i = 0; i < IPC_ROUND_MAX && ipc_is_open(ipc); i++)
		if (!ipc_receive(ipc))
			break;
}
