/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sandbox in a namespace that has an uplink already would be no sandbox: all promises hold for packets that come to
 * us, and those that leave by another device do not. So a namespace is attached only when nothing in it leads
 * elsewhere: lo, our own device, and kinds that end inside the namespace. What others have a far end that may be
 * anywhere: a veth's in another namespace, a TAP's in a process (slirp4netns, pasta), a tunnel's or WireGuard's in the
 * namespace it was made in.
 *
 * Looked at when a sandbox is made, not when it is adopted: by then the guest may have made devices of its own, none of
 * which can lead out. */
#include "tap/uplink.h"

#include "tap/attr.h"
#include "tap/link.h"

#include <errno.h>
#include <libmnl/libmnl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define UPLINK_ANSWER_MAX 32768

/* Cannot be moved between namespaces, or lead nowhere. */
static const char *const uplink_harmless_kinds[] = {"bridge", "dummy", "ifb", "nlmon"};
/* The kernel puts these into every new namespace when their modules are loaded. A tunnel that is made by hand cannot
 * have such a name there. */
static const char *const uplink_fallback_names[] = {
    "sit0", "tunl0", "ip6tnl0", "gre0", "gretap0", "erspan0", "ip_vti0", "ip6_vti0", "ip6gre0"};

struct uplink_search {
	const char *own;
	char name[IFNAMSIZ]; /* of the first that leads elsewhere; "": none */
	char kind[32];
};

/* Is the word one of these? */
static bool
uplink_listed(const char *word, const char *const *words, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (strcmp(word, words[i]) == 0)
			return true;
	return false;
}

/* The kind of a device ("" when it has none), from IFLA_LINKINFO. */
static void
uplink_kind(const struct nlattr *linkinfo, char ret_kind[32])
{
	const struct nlattr *attr;

	attr_each_nested(attr, linkinfo)
	{
		if (mnl_attr_get_type(attr) == IFLA_INFO_KIND && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			snprintf(ret_kind, 32, "%s", mnl_attr_get_str(attr));
	}
}

/* Dump callback: one device; stops at the first that leads elsewhere. */
static int
uplink_one(const struct nlmsghdr *nlh, void *context)
{
	const struct ifinfomsg *ifi = mnl_nlmsg_get_payload(nlh);
	struct uplink_search *search = context;
	char name[IFNAMSIZ] = "", kind[32] = "";
	const struct nlattr *attr;

	attr_each(attr, nlh, sizeof(*ifi))
	{
		if (mnl_attr_get_type(attr) == IFLA_IFNAME && mnl_attr_validate(attr, MNL_TYPE_NUL_STRING) >= 0)
			snprintf(name, sizeof(name), "%s", mnl_attr_get_str(attr));
		else if (mnl_attr_get_type(attr) == IFLA_LINKINFO)
			uplink_kind(attr, kind);
	}
	if ((ifi->ifi_flags & IFF_LOOPBACK) != 0 || strcmp(name, search->own) == 0 ||
	    uplink_listed(
		kind, uplink_harmless_kinds, sizeof(uplink_harmless_kinds) / sizeof(uplink_harmless_kinds[0])) ||
	    uplink_listed(
		name, uplink_fallback_names, sizeof(uplink_fallback_names) / sizeof(uplink_fallback_names[0])))
		return MNL_CB_OK;
	memcpy(search->name, name, sizeof(name));
	memcpy(search->kind, kind, sizeof(kind));
	return MNL_CB_STOP;
}

/* Goes through the devices. 0 or -errno. */
static int
uplink_list(int rtnl, struct uplink_search *search)
{
	char bytes[UPLINK_ANSWER_MAX];
	struct nlmsghdr *nlh = mnl_nlmsg_put_header(bytes);
	struct ifinfomsg *ifi = mnl_nlmsg_put_extra_header(nlh, sizeof(*ifi));
	ssize_t len;
	int r;

	nlh->nlmsg_type = RTM_GETLINK;
	nlh->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	ifi->ifi_family = AF_UNSPEC;
	if (send(rtnl, nlh, nlh->nlmsg_len, 0) < 0)
		return -errno;
	do {
		len = recv(rtnl, bytes, sizeof(bytes), 0);
		if (len < 0)
			return -errno;
		r = mnl_cb_run(bytes, (size_t)len, 0, 0, uplink_one, search);
	} while (r > MNL_CB_STOP);
	return r < 0 ? -errno : 0;
}

int
uplink_check(int netns_fd, const char *own, struct error *err)
{
	struct uplink_search search = {.own = own};
	int rtnl = link_open_in(netns_fd, err), r;

	if (rtnl < 0)
		return -1;
	r = uplink_list(rtnl, &search);
	close(rtnl);
	if (r < 0)
		return error_sys(err, -r, "list the devices of the container's namespace");
	if (search.name[0] == '\0')
		return 0;
	return error_set(err, ERROR_USAGE,
	    "the namespace has another device, %s%s%s%s, by which packets could leave unseen: remove it, or make the "
	    "container "
	    "without a network",
	    search.name, search.kind[0] == '\0' ? "" : " (", search.kind, search.kind[0] == '\0' ? "" : ")");
}
