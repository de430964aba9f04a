/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The local address of a datagram: where the guest sent it, and from where the answer is to come. The sockets take
 * datagrams for any address (DNS, UDP relay), so the address travels beside each. */
#ifndef POSTERN_GATEWAY_PKTINFO_H
#define POSTERN_GATEWAY_PKTINFO_H

#include "policy/names/addr.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

struct pktinfo_from {
	struct sockaddr_storage peer; /* with the scope of a link-local address */
	socklen_t peer_len;
	struct addr dst; /* that the datagram was sent to; family 0: the kernel did not say */
	bool cut;        /* it was longer than the buffer */
};

/* Let the socket answer from addresses that are none of its namespace's. */
void pktinfo_prepare(int fd);

/* Receive a datagram without waiting. Its bytes, or -1 with errno. */
ssize_t pktinfo_receive(int fd, void *bytes, size_t size, struct pktinfo_from *ret_from);

/* Send a datagram from src, an address of any owner, without waiting. 0 or -errno. */
int pktinfo_send(
    int fd, const void *bytes, size_t len, const struct sockaddr_storage *to, socklen_t to_len, const struct addr *src);

#endif
