/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A channel between two roles: messages over a SOCK_SEQPACKET socketpair, descriptors beside them.
 *
 * One send is one message: no framing to get wrong. Each end knows the roles at both ends, and checks every message
 * against the table in gateway/shared/msg.c, when it sends it and before a handler sees it. Sending never blocks: what
 * the socket does not take waits in a bounded queue; beyond the bound the channel counts as broken. */
#ifndef POSTERN_GATEWAY_IPC_H
#define POSTERN_GATEWAY_IPC_H

#include "base/loop.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/queue.h>

/* Largest body; what SOCK_SEQPACKET takes with the default wmem_max, with room to spare. */
#define IPC_BODY_MAX 65536
/* Descriptors in one message. */
#define IPC_FDS_MAX 12
/* Messages waiting in user space for a slow peer. */
#define IPC_QUEUE_MAX 8192

/* The reason for broken_handler when a message is malformed or message_handler refused it. */
#define IPC_WHY_MALFORMED "malformed message"

struct ipc_header {
	uint16_t type; /* enum msg_type */
	uint16_t fd_count;
	uint32_t size; /* of the body */
	uint64_t tag;  /* a request's number, repeated in its answer; 0 when none is expected */
};

struct ipc_message {
	struct ipc_header header;
	const void *body;     /* header.size bytes, aligned to 8; valid during the handler only */
	int fds[IPC_FDS_MAX]; /* header.fd_count of them; the handler takes one by setting its slot to -1, the rest are
				 closed */
};

struct ipc {
	struct loop *loop;
	struct loop_source source;
	uint8_t self, peer; /* enum msg_role: at this end, at the other */
	/* Called for each message that may come from peer, of the right size and with the right number of descriptors.
	 * Return false to declare it malformed: the channel is then closed and broken_handler called. */
	bool (*message_handler)(struct ipc *ipc, struct ipc_message *message);
	/* A message came, but not all of its descriptors: this process has as many open as it may. Its slots are -1.
	 * Answer it as refused; return false where that cannot be done. NULL: as if it returned false. */
	bool (*fds_lost_handler)(struct ipc *ipc, const struct ipc_message *message);
	/* The peer is gone, malformed or hopelessly slow. The channel is closed already. */
	void (*broken_handler)(struct ipc *ipc, const char *why);
	STAILQ_HEAD(, ipc_queued) queue; /* messages that wait for room in the socket */
	size_t queue_len;
};

/* A closed channel between the roles self and peer (enum msg_role). */
void ipc_init(struct ipc *ipc, unsigned int self, unsigned int peer,
    bool (*message_handler)(struct ipc *ipc, struct ipc_message *message),
    void (*broken_handler)(struct ipc *ipc, const char *why));
/* Start on fd (owned from now on). Returns 0 or -errno. */
int ipc_open(struct ipc *ipc, struct loop *loop, int fd);
/* Close the descriptor and drop the queue; no handler is called. */
void ipc_close(struct ipc *ipc);
static inline bool
ipc_is_open(const struct ipc *ipc)
{
	return ipc->source.fd >= 0;
}

/* Send or queue. The descriptors stay the caller's (they are duplicated while queued). Returns 0, -EPIPE when closed,
 * -EPROTO when no such message goes to the peer (a bug of this program), -ENOBUFS when the queue is full, -ENOMEM or
 * -EMFILE: after all but -EPIPE the channel breaks on the next round. */
int ipc_send(
    struct ipc *ipc, uint16_t type, uint64_t tag, const void *body, uint32_t size, const int *fds, size_t fd_count);

/* Check a message that came, and hand it to message_handler. False: malformed. Descriptors that no handler took are the
 * caller's to close. */
bool ipc_take(struct ipc *ipc, struct ipc_message *message);

/* A socketpair for one channel. Returns 0 or -errno. */
int ipc_pair(int ret_fds[2]);

#endif
