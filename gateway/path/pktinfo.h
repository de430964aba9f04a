/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The local address of a datagram: where the guest sent it, and from where the answer is to come. The sockets take
 * datagrams for any address (DNS, UDP relay), so the address travels beside each. */
#ifndef POSTERN_GATEWAY_PKTINFO_H
#define POSTERN_GATEWAY_PKTINFO_H

#include "policy/names/addr.h"

#include <netinet/in.h>
#include <stdbool.h>
#include <sys/socket.h>

/* Room for one packet-info message of either family. */
union pktinfo_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

/* Let the socket answer from addresses that are none of its namespace's. */
void pktinfo_prepare(int fd);

/* The address that a received datagram was sent to. False when the kernel did not say. */
bool pktinfo_read(struct msghdr *message, struct addr *ret_dst);

/* Name the source of a datagram that goes out; control is the message's from now on. */
void pktinfo_write(struct msghdr *message, union pktinfo_control *control, const struct addr *src);

#endif
