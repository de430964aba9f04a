/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/attr.h"
#include "tap/link.h"

#include "tap/netns.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <libmnl/libmnl.h>
#include <linux/ethtool.h>
#include <linux/if_addr.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <linux/sockios.h>
#include <linux/veth.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* lo is the first device of every network namespace. */
#define LINK_LO_IFINDEX 1
/* Largest request built here, and largest answer read (a device with all its attributes). */
#define LINK_REQUEST_MAX 1024
#define LINK_ANSWER_MAX 16384

/* Tries, and the pause between them, until a new address is in use. */
#define LINK_WAIT_TRIES 1000
#define LINK_WAIT_PAUSE_US 200

struct link_request {
	union {
		struct nlmsghdr header;
		char bytes[LINK_REQUEST_MAX];
	};
};

int
link_open(struct error *err)
{
	int fd;

	if (tap_step(err) < 0)
		return -1;
	fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (fd < 0)
		return error_sys(err, errno, "rtnetlink socket");
	return fd;
}

int
link_open_in(int netns_fd, struct error *err)
{
	struct netns_visit visit;
	int fd;

	if (netns_enter(&visit, netns_fd, err) < 0)
		return -1;
	fd = link_open(err);
	netns_leave(&visit);
	return fd;
}

/* Begins a request. */
static struct nlmsghdr *
link_request_start(struct link_request *request, uint16_t type, uint16_t flags)
{
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(request->bytes);

	nlh->nlmsg_type = type;
	nlh->nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	return nlh;
}

/* Sends; the kernel has worked on it, and queued what it answers, when send(2) returns. */
static int
link_send(int rtnl, const struct nlmsghdr *nlh)
{
	ssize_t sent = send(rtnl, nlh, nlh->nlmsg_len, 0);

	return sent < 0 ? -errno : 0;
}

/* Sends and waits for the acknowledgement. 0 or -errno of the operation. */
static int
link_talk(int rtnl, struct nlmsghdr *nlh)
{
	char answer[LINK_ANSWER_MAX];
	const struct nlmsghdr *first = (const struct nlmsghdr *)(const void *)answer;
	ssize_t len;
	int r;

	nlh->nlmsg_flags |= NLM_F_ACK;
	r = link_send(rtnl, nlh);
	if (r < 0)
		return r;
	len = recv(rtnl, answer, sizeof(answer), 0);
	if (len < 0)
		return -errno;
	if (!mnl_nlmsg_ok(first, (int)len) || first->nlmsg_type != NLMSG_ERROR ||
	    mnl_nlmsg_get_payload_len(first) < sizeof(struct nlmsgerr))
		return -EBADMSG;
	return ((const struct nlmsgerr *)mnl_nlmsg_get_payload(first))->error;
}

/* Does a request, as a step of an attach; the text says what failed. */
static int __attribute__((format(printf, 4, 5)))
link_do(int rtnl, struct nlmsghdr *nlh, struct error *err, const char *fmt, ...)
{
	char what[128];
	va_list ap;
	int r;

	if (tap_step(err) < 0)
		return -1;
	r = link_talk(rtnl, nlh);
	if (r == 0)
		return 0;
	va_start(ap, fmt);
	vsnprintf(what, sizeof(what), fmt, ap);
	va_end(ap);
	return error_sys(err, -r, "%s", what);
}

/* What a device is, from IFLA_LINKINFO. */
static void
link_parse_kind(const struct nlattr *linkinfo, struct link_info *info)
{
	const struct nlattr *attr, *data = NULL, *inner;

	attr_each_nested(attr, linkinfo)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			strncpy(info->kind, mnl_attr_get_str(attr), sizeof(info->kind) - 1);
		if (mnl_attr_get_type(attr) == IFLA_INFO_DATA)
			data = attr;
	}
	if (data == NULL || strcmp(info->kind, "tun") != 0)
		return;
	attr_each_nested(inner, data)
	{
		if (mnl_attr_get_type(inner) == IFLA_TUN_TYPE && mnl_attr_get_payload_len(inner) == 1)
			info->is_tap = mnl_attr_get_u8(inner) == IFF_TAP;
	}
}

/* An array of the device's values; the kernel counts IPv4's from 1, and number n stands at [n] here. */
static size_t
link_parse_conf(const struct nlattr *attr, size_t first, int32_t conf[LINK_CONF_MAX])
{
	size_t count = mnl_attr_get_payload_len(attr) / sizeof(conf[0]);

	if (count > LINK_CONF_MAX - first)
		count = LINK_CONF_MAX - first;
	memcpy(conf + first, mnl_attr_get_payload(attr), count * sizeof(conf[0]));
	return first + count;
}

/* The values of ipv4/conf and ipv6/conf, from IFLA_AF_SPEC. */
static void
link_parse_families(const struct nlattr *af_spec, struct link_info *info)
{
	const struct nlattr *family, *attr;

	attr_each_nested(family, af_spec)
	{
		attr_each_nested(attr, family)
		{
			if (mnl_attr_get_type(family) == AF_INET && mnl_attr_get_type(attr) == IFLA_INET_CONF)
				info->conf4_count = link_parse_conf(attr, 1, info->conf4);
			if (mnl_attr_get_type(family) == AF_INET6 && mnl_attr_get_type(attr) == IFLA_INET6_CONF)
				info->conf6_count = link_parse_conf(attr, 0, info->conf6);
		}
	}
}

/* Fills *info from RTM_NEWLINK. */
static void
link_parse(const struct nlmsghdr *nlh, struct link_info *info)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	const struct nlattr *attr;

	memset(info, 0, sizeof(*info));
	info->ifindex = (uint32_t)ifi->ifi_index;
	info->flags = ifi->ifi_flags;
	attr_each(attr, nlh, sizeof(*ifi))
	{
		uint16_t type = mnl_attr_get_type(attr);

		if (type == IFLA_ADDRESS && mnl_attr_get_payload_len(attr) == sizeof(info->mac))
			memcpy(info->mac, mnl_attr_get_payload(attr), sizeof(info->mac));
		else if (type == IFLA_LINK && mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
			info->peer_ifindex = mnl_attr_get_u32(attr);
		else if (type == IFLA_LINKINFO)
			link_parse_kind(attr, info);
		else if (type == IFLA_AF_SPEC)
			link_parse_families(attr, info);
	}
}

int
link_find(int rtnl, const char *name, struct link_info *ret_info, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_GETLINK, 0);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	char answer[LINK_ANSWER_MAX];
	const struct nlmsghdr *first = (const struct nlmsghdr *)(const void *)answer;
	ssize_t len;
	int r;

	if (tap_step(err) < 0)
		return -1;
	ifi->ifi_family = AF_UNSPEC;
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	r = link_send(rtnl, nlh);
	if (r < 0)
		return error_sys(err, -r, "look up device %s", name);
	len = recv(rtnl, answer, sizeof(answer), 0);
	if (len < 0)
		return error_sys(err, errno, "look up device %s", name);
	if (mnl_nlmsg_ok(first, (int)len) && first->nlmsg_type == RTM_NEWLINK) {
		link_parse(first, ret_info);
		return 0;
	}
	if (!mnl_nlmsg_ok(first, (int)len) || first->nlmsg_type != NLMSG_ERROR)
		return error_sys(err, EBADMSG, "look up device %s", name);
	r = -((const struct nlmsgerr *)mnl_nlmsg_get_payload(first))->error;
	if (r == ENODEV)
		return error_set(err, ERROR_NOT_FOUND, "no device %s", name);
	return error_sys(err, r, "look up device %s", name);
}

int
link_add_tap(const char *name, uid_t owner_uid, gid_t owner_gid, struct error *err)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	/* With neither owner nor group set, the kernel lets every user open the device. */
	unsigned long owner = owner_uid == (uid_t)-1 ? 0 : owner_uid;
	int tun, r = -1;

	if (tap_step(err) < 0)
		return -1;
	tun = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (tun < 0)
		return error_sys(err, errno, "/dev/net/tun (kernel module tun)");
	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	if (ioctl(tun, TUNSETIFF, &ifr) < 0)
		error_sys(err, errno, "make TAP %s", name);
	else if (ioctl(tun, TUNSETOWNER, owner) < 0)
		error_sys(err, errno, "TAP %s: owner %lu", name, owner);
	else if (owner_gid != (gid_t)-1 && ioctl(tun, TUNSETGROUP, (unsigned long)owner_gid) < 0)
		error_sys(err, errno, "TAP %s: group %lu", name, (unsigned long)owner_gid);
	else if (tap_step(err) < 0)
		r = -1;
	else if (ioctl(tun, TUNSETPERSIST, 1) < 0)
		error_sys(err, errno, "TAP %s: make it persistent", name);
	else
		r = 0;
	close(tun);
	return r;
}

int
link_add_veth(
    int rtnl, const char *name, int peer_netns_fd, const char *peer_name, const uint8_t peer_mac[6], struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL);
	struct nlattr *linkinfo, *data, *peer;
	int r;

	if (tap_step(err) < 0)
		return -1;
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(nlh, IFLA_IFNAME, name);
	linkinfo = mnl_attr_nest_start(nlh, IFLA_LINKINFO);
	mnl_attr_put_strz(nlh, IFLA_INFO_KIND, "veth");
	data = mnl_attr_nest_start(nlh, IFLA_INFO_DATA);
	peer = mnl_attr_nest_start(nlh, VETH_INFO_PEER);
	mnl_nlmsg_put_extra_header(nlh, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(nlh, IFLA_IFNAME, peer_name);
	mnl_attr_put_u32(nlh, IFLA_NET_NS_FD, (uint32_t)peer_netns_fd);
	if (peer_mac != NULL)
		mnl_attr_put(nlh, IFLA_ADDRESS, 6, peer_mac);
	mnl_attr_nest_end(nlh, peer);
	mnl_attr_nest_end(nlh, data);
	mnl_attr_nest_end(nlh, linkinfo);
	r = link_talk(rtnl, nlh);
	if (r == -EEXIST)
		return error_set(err, ERROR_EXISTS, "the namespace has a device %s already", peer_name);
	if (r < 0)
		return error_sys(err, -r, "make veth %s (kernel module veth)", peer_name);
	return 0;
}

int
link_delete(int rtnl, uint32_t ifindex, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_DELLINK, 0);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	int r;

	ifi->ifi_index = (int)ifindex;
	r = link_talk(rtnl, nlh);
	return r < 0 && r != -ENODEV ? error_sys(err, -r, "delete device") : 0;
}

int
link_set_mac(int rtnl, uint32_t ifindex, const uint8_t mac[6], struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWLINK, 0);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	ifi->ifi_index = (int)ifindex;
	mnl_attr_put(nlh, IFLA_ADDRESS, 6, mac);
	return link_do(rtnl, nlh, err, "set the router's MAC address");
}

int
link_set_up(int rtnl, uint32_t ifindex, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWLINK, 0);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));

	ifi->ifi_index = (int)ifindex;
	ifi->ifi_flags = IFF_UP;
	ifi->ifi_change = IFF_UP;
	return link_do(rtnl, nlh, err, "set device up");
}

void
link_settle(const char *name)
{
	/* Asking a driver for its link makes the kernel work off what is pending for the device. */
	struct ethtool_value link = {.cmd = ETHTOOL_GLINK};
	struct ifreq ifr = {.ifr_data = (char *)&link};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return;
	strncpy(ifr.ifr_name, name, sizeof(ifr.ifr_name) - 1);
	(void)ioctl(fd, SIOCETHTOOL, &ifr);
	close(fd);
}

/* AF_* of an address. */
static uint8_t
link_family(const struct addr *addr)
{
	return addr->family == 4 ? AF_INET : AF_INET6;
}

/* Bytes of an address. */
static uint16_t
link_addr_len(const struct addr *addr)
{
	return addr->family == 4 ? 4 : 16;
}

int
link_add_address(int rtnl, uint32_t ifindex, const struct addr *addr, uint8_t bits, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE);
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	char text[ADDR_TEXT_MAX];

	ifa->ifa_family = link_family(addr);
	ifa->ifa_prefixlen = bits;
	ifa->ifa_flags = IFA_F_NODAD;
	ifa->ifa_index = ifindex;
	mnl_attr_put(nlh, IFA_LOCAL, link_addr_len(addr), addr->bytes);
	mnl_attr_put(nlh, IFA_ADDRESS, link_addr_len(addr), addr->bytes);
	return link_do(rtnl, nlh, err, "add address %s", addr_format(addr, text));
}

/* Is a packet to the address for a socket here? */
static bool
link_is_local(int rtnl, const struct addr *addr)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_GETROUTE, 0);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	char answer[LINK_ANSWER_MAX];
	const struct nlmsghdr *first = (const struct nlmsghdr *)(const void *)answer;
	ssize_t len;

	rtm->rtm_family = link_family(addr);
	rtm->rtm_dst_len = (uint8_t)(link_addr_len(addr) * 8);
	mnl_attr_put(nlh, RTA_DST, link_addr_len(addr), addr->bytes);
	if (link_send(rtnl, nlh) < 0)
		return true;
	len = recv(rtnl, answer, sizeof(answer), 0);
	if (len < 0 || !mnl_nlmsg_ok(first, (int)len) || first->nlmsg_type != RTM_NEWROUTE)
		return false;
	return ((const struct rtmsg *)mnl_nlmsg_get_payload(first))->rtm_type == RTN_LOCAL;
}

void
link_wait_address(int rtnl, const struct addr *addr)
{
	static const struct timespec pause = {.tv_nsec = LINK_WAIT_PAUSE_US * 1000L};

	for (int i = 0; i < LINK_WAIT_TRIES && !link_is_local(rtnl, addr); i++)
		nanosleep(&pause, NULL);
}

/* A dump callback: context is the ifindex whose addresses must be settled. */
static int
link_check_address(const struct nlmsghdr *nlh, void *context)
{
	const struct ifaddrmsg *ifa = mnl_nlmsg_get_payload(nlh);
	const uint32_t *ifindex = context;
	const struct nlattr *attr;
	uint32_t flags = ifa->ifa_flags;

	if (nlh->nlmsg_type != RTM_NEWADDR || ifa->ifa_index != *ifindex)
		return MNL_CB_OK;
	attr_each(attr, nlh, sizeof(*ifa))
	{
		if (mnl_attr_get_type(attr) == IFA_FLAGS && mnl_attr_get_payload_len(attr) == sizeof(uint32_t))
			flags = mnl_attr_get_u32(attr);
	}
	if ((flags & (IFA_F_TENTATIVE | IFA_F_DADFAILED)) == 0)
		return MNL_CB_OK;
	errno = EADDRNOTAVAIL;
	return MNL_CB_ERROR;
}

int
link_check_addresses(int rtnl, uint32_t ifindex, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_GETADDR, NLM_F_DUMP);
	struct ifaddrmsg *ifa = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifa));
	char answer[LINK_ANSWER_MAX];
	ssize_t len;
	int r;

	if (tap_step(err) < 0)
		return -1;
	ifa->ifa_family = AF_INET6;
	r = link_send(rtnl, nlh);
	if (r < 0)
		return error_sys(err, -r, "list addresses");
	do {
		len = recv(rtnl, answer, sizeof(answer), 0);
		if (len < 0)
			return error_sys(err, errno, "list addresses");
		r = mnl_cb_run(answer, (size_t)len, 0, 0, link_check_address, &ifindex);
	} while (r > 0);
	return r < 0 ? error_sys(err, errno, "the router's IPv6 addresses are not usable at once") : 0;
}

int
link_add_local_default(int rtnl, int family, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));

	rtm->rtm_family = family == 4 ? AF_INET : AF_INET6;
	/* IPv4's local and main tables are one trie while there is no `ip rule`; IPv6's are looked up one after the
	 * other, and a local default in table local would hide the guest's subnet. */
	rtm->rtm_table = family == 4 ? RT_TABLE_LOCAL : RT_TABLE_MAIN;
	rtm->rtm_protocol = RTPROT_STATIC;
	rtm->rtm_scope = family == 4 ? RT_SCOPE_HOST : RT_SCOPE_UNIVERSE;
	rtm->rtm_type = RTN_LOCAL;
	mnl_attr_put_u32(nlh, RTA_OIF, LINK_LO_IFINDEX);
	return link_do(rtnl, nlh, err, "add the IPv%d local default route", family);
}

int
link_add_default(int rtnl, uint32_t ifindex, const struct addr *router, struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE);
	struct rtmsg *rtm = mnl_nlmsg_put_extra_header(nlh, sizeof(*rtm));
	char text[ADDR_TEXT_MAX];

	rtm->rtm_family = link_family(router);
	rtm->rtm_table = RT_TABLE_MAIN;
	rtm->rtm_protocol = RTPROT_STATIC;
	rtm->rtm_scope = RT_SCOPE_UNIVERSE;
	rtm->rtm_type = RTN_UNICAST;
	mnl_attr_put(nlh, RTA_GATEWAY, link_addr_len(router), router->bytes);
	mnl_attr_put_u32(nlh, RTA_OIF, ifindex);
	return link_do(rtnl, nlh, err, "add the default route via %s", addr_format(router, text));
}

int
link_add_neighbour(int rtnl, uint32_t ifindex, const struct addr *addr, const uint8_t mac[6], struct error *err)
{
	struct link_request request;
	struct nlmsghdr *nlh = link_request_start(&request, RTM_NEWNEIGH, NLM_F_CREATE | NLM_F_REPLACE);
	struct ndmsg *nd = mnl_nlmsg_put_extra_header(nlh, sizeof(*nd));
	char text[ADDR_TEXT_MAX];

	nd->ndm_family = link_family(addr);
	nd->ndm_ifindex = (int)ifindex;
	nd->ndm_state = NUD_PERMANENT;
	mnl_attr_put(nlh, NDA_DST, link_addr_len(addr), addr->bytes);
	mnl_attr_put(nlh, NDA_LLADDR, 6, mac);
	return link_do(rtnl, nlh, err, "add neighbour %s", addr_format(addr, text));
}
