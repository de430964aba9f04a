/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/pktinfo.h"

#include <string.h>

void
pktinfo_prepare(int fd)
{
	const int one = 1;

	/* IPv6 has no local route for the addresses asked, and takes them as a source only with this; on an IPv4 socket
	 * it fails, and is not needed. */
	(void)setsockopt(fd, IPPROTO_IPV6, IPV6_FREEBIND, &one, sizeof(one));
}

bool
pktinfo_read(struct msghdr *message, struct addr *ret_dst)
{
	for (struct cmsghdr *c = CMSG_FIRSTHDR(message); c != NULL; c = CMSG_NXTHDR(message, c)) {
		if (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(struct in_pktinfo))) {
			struct in_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			*ret_dst = addr_from_ipv4(&info.ipi_addr);
			return true;
		}
		if (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_PKTINFO &&
		    c->cmsg_len >= CMSG_LEN(sizeof(struct in6_pktinfo))) {
			struct in6_pktinfo info;

			memcpy(&info, CMSG_DATA(c), sizeof(info));
			*ret_dst = addr_from_ipv6(&info.ipi6_addr);
			return true;
		}
	}
	return false;
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

void
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
