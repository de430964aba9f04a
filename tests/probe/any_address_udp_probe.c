/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A UDP socket bound to any:53 receives queries to every address, and IP_PKTINFO on the answer restores the address
 * that was asked; for IPv6 the socket must be transparent for that. */
#include "probe.h"

/* Receive on ours, answer from the address that was asked. 0 or errno. */
static int
answer(int ours, struct sockaddr_storage *from)
{
	char bytes[16], control[256];
	struct iovec iov = {bytes, sizeof(bytes)};
	struct msghdr msg = {.msg_name = from,
	    .msg_namelen = sizeof(*from),
	    .msg_iov = &iov,
	    .msg_iovlen = 1,
	    .msg_control = control,
	    .msg_controllen = sizeof(control)};
	struct cmsghdr *cmsg;
	ssize_t got = probe_readable(ours, 500) ? recvmsg(ours, &msg, 0) : -1;

	if (got < 0)
		return ENODATA;
	cmsg = CMSG_FIRSTHDR(&msg);
	if (cmsg->cmsg_level == IPPROTO_IP) {
		struct in_pktinfo info;

		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		info.ipi_ifindex = 0;
		info.ipi_spec_dst = info.ipi_addr;
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	} else {
		struct in6_pktinfo info;

		memcpy(&info, CMSG_DATA(cmsg), sizeof(info));
		info.ipi6_ifindex = 0;
		memcpy(CMSG_DATA(cmsg), &info, sizeof(info));
	}
	iov.iov_len = (size_t)got;
	return sendmsg(ours, &msg, 0) < 0 ? errno : 0;
}

/* 0: a connected socket of the guest, which takes answers from that address only, got one. */
static int
ask(int ours, const char *addr)
{
	int fd = probe_socket(true, addr, SOCK_DGRAM), r;
	struct sockaddr_storage sa, from;
	socklen_t len = probe_sockaddr(addr, 53, &sa);

	if (connect(fd, (struct sockaddr *)&sa, len) < 0 || send(fd, "q", 1, 0) != 1)
		abort();
	r = answer(ours, &from);
	if (r == 0 && !probe_readable(fd, 500))
		r = ETIMEDOUT;
	close(fd);
	return r;
}

int
main(void)
{
	int on = 1, udp4, udp6;

	probe_gateway_and_guest();
	probe_local_default();
	udp4 = probe_listen("0.0.0.0", 53, SOCK_DGRAM, false);
	udp6 = probe_listen("::", 53, SOCK_DGRAM, false);
	setsockopt(udp4, IPPROTO_IP, IP_PKTINFO, &on, sizeof(on));
	setsockopt(udp6, IPPROTO_IPV6, IPV6_RECVPKTINFO, &on, sizeof(on));
	setsockopt(udp6, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on));
	probe_ok(ask(udp4, "8.8.8.8") == 0, "8.8.8.8 is asked, and answers");
	probe_ok(ask(udp4, "10.96.0.10") == 0, "so does 10.96.0.10");
	probe_ok(
	    ask(udp6, "2001:4860:4860::8888") == EINVAL, "IPv6 from another's address: not from an ordinary socket");
	setsockopt(udp6, IPPROTO_IPV6, IPV6_TRANSPARENT, &on, sizeof(on));
	probe_ok(ask(udp6, "2001:4860:4860::8888") == 0, "but from a transparent one");
	return probe_finish();
}
