/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/pktinfo.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* syscalls: setsockopt(SOL_IPV6,IPV6_FREEBIND) */
void
pktinfo_prepare(int fd)
{
	const int one = 1;

	/* IPv6 has no local route for the addresses asked, and takes them as a source only with this; on an IPv4 socket
	 * it fails, and is not needed. */
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one));
}

/* Room for one packet-info message of either family. */
union pktinfo_control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(sizeof(struct in6_pktinfo)) + CMSG_SPACE(sizeof(struct in_pktinfo))];
};

/* The address that a received datagram was sent to; left alone when the kernel did not say. */
static void
pktinfo_read(struct msghdr *message, struct addr *ret_dst)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo))) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			*ret_dst = addr_from_ipv4(&info.ipi_addr);
			return;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo))) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			*ret_dst = addr_from_ipv6(&info.ipi6_addr);
			return;
		}
	}
}

/* Makes the message's one control message. */
static void
pktinfo_put(struct msghdr *message, int level, int type, const void *info, size_t len)
{
	struct cmsghdr *c;

	message->msg_controllen = CMSG_SPACE(len);
	c = CMSG_FIRSTHDR(message);
	c->cmsg_level = level;
	c->cmsg_type = type;
	c->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(c), info, len);
}

/* Names the source of a datagram that goes out; control is the message's from now on. */
static void
pktinfo_write(struct msghdr *message, union pktinfo_control *control, const struct addr *src)
{
	struct in_pktinfo info4 = {0};
	struct in6_pktinfo info6 = {0};

	memset(control, 0, sizeof(*control));
	message->msg_control = control->bytes;
	if (src->family == 4) {
		memcpy(&info4.ipi_spec_dst, src->bytes, sizeof(info4.ipi_spec_dst));
		pktinfo_put(message, IPPROTO_IP, IP_PKTINFO, &info4, sizeof(info4));
	} else {
		memcpy(&info6.ipi6_addr, src->bytes, sizeof(info6.ipi6_addr));
		pktinfo_put(message, IPPROTO_IPV6, IPV6_PKTINFO, &info6, sizeof(info6));
	}
}

/* syscalls: recvmsg */
ssize_t
pktinfo_receive(int fd, void *bytes, size_t size, struct pktinfo_from *ret_from)
{
	union pktinfo_control control;
	struct iovec iov = {.iov_base = bytes, .iov_len = size};
	struct msghdr message = {.msg_name = &ret_from->peer,
	    .msg_namelen = sizeof(ret_from->peer),
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control.bytes,
	    .msg_controllen = sizeof(control.bytes)};
	ssize_t n = recvmsg(fd, &message, MSG_DONTWAIT);

	if (n < 0)
		return n;
	ret_from->peer_len = message.msg_namelen;
	ret_from->dst = (struct addr){0};
	ret_from->cut = (message.msg_flags & MSG_TRUNC) != 0;
	pktinfo_read(&message, &ret_from->dst);
	return n;
}

/* syscalls: sendmsg */
int
pktinfo_send(
    int fd, const void *bytes, size_t len, const struct sockaddr_storage *to, socklen_t to_len, const struct addr *src)
{
	union pktinfo_control control;
	struct sockaddr_storage peer = *to;
	struct iovec iov = {.iov_base = (void *)(uintptr_t)bytes, .iov_len = len};
	struct msghdr message = {.msg_name = &peer, .msg_namelen = to_len, .msg_iov = &iov, .msg_iovlen = 1};

	pktinfo_write(&message, &control, src);
	return sendmsg(fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno : 0;
}
