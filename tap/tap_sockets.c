/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which sockets are in a sandbox's namespace that we did not make (E-10), by sock_diag.
 *
 * All of ours are transparent, and so is what was accepted from them. An ordinary process cannot set that option here;
 * one that may could change the ruleset as well, which tap_intact finds. */
#include "tap/attr.h"
#include "tap/netns.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/packet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Its first line is "sockets: used N", of the namespace alone (since Linux 4.16). */
#define SOCKDIAG_STAT "/proc/thread-self/net/sockstat"
#define SOCKDIAG_ANSWER_MAX (32 * 1024)
/* SYN_RECV and TIME_WAIT are no sockets of any process. */
#define SOCKDIAG_TCP_STATES (~(1u << TCP_TIME_WAIT | 1u << TCP_SYN_RECV))

/* Has the socket IP_TRANSPARENT set? */
static bool
sockdiag_is_transparent(const struct nlmsghdr *nlh)
{
	struct inet_diag_sockopt option;
	const struct nlattr *attr;

	attr_each(attr, nlh, sizeof(struct inet_diag_msg))
	{
		if (mnl_attr_get_type(attr) != INET_DIAG_SOCKOPT || mnl_attr_get_payload_len(attr) < sizeof(option))
			continue;
		memcpy(&option, mnl_attr_get_payload(attr), sizeof(option));
		return option.transparent;
	}
	return false;
}

/* Dump callback: counts a TCP or UDP socket that is not ours. */
static int
sockdiag_count_inet(const struct nlmsghdr *nlh, void *context)
{
	size_t *count = context;

	if (mnl_nlmsg_get_payload_len(nlh) >= sizeof(struct inet_diag_msg) && !sockdiag_is_transparent(nlh))
		(*count)++;
	return MNL_CB_OK;
}

/* Dump callback: counts a packet socket. */
static int
sockdiag_count_packet(const struct nlmsghdr *nlh, void *context)
{
	(void)nlh;
	(*(size_t *)context)++;
	return MNL_CB_OK;
}

/* Counts the sockets of a family (and protocol, but for AF_PACKET). A family or protocol that the kernel lacks has
 * none. 0 or -errno. */
static int
sockdiag_dump(int fd, uint8_t family, uint8_t proto, size_t *count)
{
	char bytes[256], answer[SOCKDIAG_ANSWER_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bytes);
	struct inet_diag_req_v2 *inet;
	ssize_t len;
	int r;

	nlh->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	if (family == AF_PACKET) {
		((struct packet_diag_req *)mnl_nlmsg_put_extra_header(nlh, sizeof(struct packet_diag_req)))
		    ->sdiag_family = family;
	} else {
		inet = mnl_nlmsg_put_extra_header(nlh, sizeof(*inet));
		inet->sdiag_family = family;
		inet->sdiag_protocol = proto;
		inet->idiag_states = proto == IPPROTO_TCP ? SOCKDIAG_TCP_STATES : ~0u;
	}
	if (send(fd, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	do {
		len = recv(fd, answer, sizeof(answer), 0);
		if (len < 0)
			return -errno;
		r = mnl_cb_run(answer, (size_t)len, 0, 0,
		    family == AF_PACKET ? sockdiag_count_packet : sockdiag_count_inet, count);
	} while (r > 0);
	return r < 0 && errno != ENOENT && errno != EINVAL ? -errno : 0;
}

/* Raw sockets of the calling thread's namespace: one line each after the heading. Many kernels come without
 * raw_diag. */
static int
sockdiag_count_raw(const char *path, size_t *count)
{
	char bytes[4096];
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	size_t lines = 0;
	ssize_t len;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* no IPv6 */
	while ((len = read(fd, bytes, sizeof(bytes))) > 0)
		for (ssize_t i = 0; i < len; i++)
			lines += bytes[i] == '\n';
	if (len < 0)
		r = -errno;
	close(fd);
	*count += lines > 0 ? lines - 1 : 0;
	return r;
}

int
tap_sockets_count(struct tap *tap, size_t *ret_count, struct error *err)
{
	struct netns_visit visit;
	char text[128];
	ssize_t len = -1;
	int fd, r = 0;

	if (netns_enter(&visit, tap->netns_fd, err) < 0)
		return -1;
	fd = open(SOCKDIAG_STAT, O_RDONLY | O_CLOEXEC);
	if (fd >= 0)
		len = read(fd, text, sizeof(text) - 1);
	if (len < 0)
		r = errno;
	if (fd >= 0)
		close(fd);
	netns_leave(&visit);
	if (r == 0) {
		text[len] = '\0';
		r = sscanf(text, "sockets: used %zu", ret_count) == 1 ? 0 : EBADMSG;
	}
	return r != 0 ? error_sys(err, r, "count the sockets of sandbox %s", tap->config.name) : 0;
}

int
tap_sockets_foreign(struct tap *tap, size_t *ret_count, struct error *err)
{
	static const uint8_t lists[][2] = {{AF_INET, IPPROTO_TCP}, {AF_INET6, IPPROTO_TCP}, {AF_INET, IPPROTO_UDP},
	    {AF_INET6, IPPROTO_UDP}, {AF_PACKET, 0}};
	struct netns_visit visit;
	size_t count = 0;
	int fd, r = 0;

	if (netns_enter(&visit, tap->netns_fd, err) < 0)
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (fd >= 0)
		r = sockdiag_count_raw("/proc/thread-self/net/raw", &count);
	if (fd >= 0 && r == 0)
		r = sockdiag_count_raw("/proc/thread-self/net/raw6", &count);
	netns_leave(&visit);
	if (fd < 0)
		return error_sys(err, errno, "sock_diag socket");
	for (size_t i = 0; r == 0 && i < sizeof(lists) / sizeof(lists[0]); i++)
		r = sockdiag_dump(fd, lists[i][0], lists[i][1], &count);
	close(fd);
	if (r < 0)
		return error_sys(err, -r, "list the sockets of sandbox %s", tap->config.name);
	*ret_count = count;
	return 0;
}
