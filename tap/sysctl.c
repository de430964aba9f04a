/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A fresh namespace accepts router advertisements, redirects and source routes, and may inherit
 * anything from the host (net.core.devconf_inherit_init_net). So nothing is assumed: every row of the checklist is
 * read; when it differs it is written and read again, and a value that does not stick fails the attach. Rows marked
 * optional harden or speed up, and no promise hangs on them: some do not exist on older kernels, or are not offered in
 * a namespace that belongs to a user namespace (rootless). Missing or read-only ones are skipped; one that can be
 * written and then reads otherwise is a failure too. */
#include "tap/sysctl.h"

#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SYSCTL_ROOT "/proc/sys/net/"
/* Longest value of the checklist as the kernel prints it. */
#define SYSCTL_VALUE_MAX 64
/* Root, family, "conf" and a device's name. */
#define SYSCTL_PREFIX_MAX 64

#define SYSCTL_NO_CONF (-1)

struct sysctl_row {
	const char *key;
	const char *value;
	bool optional;
	int conf; /* the kernel's number of a value per device, SYSCTL_NO_CONF for others */
};

static const struct sysctl_row sysctl_namespace_rows[] = {
    {"ipv4/ip_forward", "0", false, SYSCTL_NO_CONF},
    {"ipv4/ip_nonlocal_bind", "0", false, SYSCTL_NO_CONF},
    {"ipv4/tcp_syncookies", "1", false, SYSCTL_NO_CONF},
    {"ipv4/tcp_fastopen", "0", false, SYSCTL_NO_CONF},
    {"ipv4/icmp_echo_ignore_broadcasts", "1", false, SYSCTL_NO_CONF},
    {"ipv4/icmp_ignore_bogus_error_responses", "1", false, SYSCTL_NO_CONF},
    /* A refusal is an ICMP error, and the kernel's own limit of one a second would make it look like a drop: the
     * ruleset bounds them instead. The masks also lift the limit that all namespaces of the host share. */
    {"ipv4/icmp_ratelimit", "0", false, SYSCTL_NO_CONF},
    {"ipv4/icmp_ratemask", "0", false, SYSCTL_NO_CONF},
    {"ipv4/tcp_max_syn_backlog", "1024", true, SYSCTL_NO_CONF},
    {"ipv4/ipfrag_low_thresh", "196608", true, SYSCTL_NO_CONF},
    {"ipv4/ipfrag_high_thresh", "262144", true, SYSCTL_NO_CONF},
    {"ipv4/ipfrag_time", "5", true, SYSCTL_NO_CONF},
    {"core/somaxconn", "4096", true, SYSCTL_NO_CONF},
};

static const struct sysctl_row sysctl_namespace6_rows[] = {
    {"ipv6/icmp/ratelimit", "0", false, SYSCTL_NO_CONF},
    {"ipv6/icmp/ratemask", "", true, SYSCTL_NO_CONF},
    {"ipv6/icmp/echo_ignore_multicast", "1", true, SYSCTL_NO_CONF},
    {"ipv6/icmp/echo_ignore_anycast", "1", true, SYSCTL_NO_CONF},
    {"ipv6/ip_nonlocal_bind", "0", false, SYSCTL_NO_CONF},
    {"ipv6/ip6frag_low_thresh", "196608", true, SYSCTL_NO_CONF},
    {"ipv6/ip6frag_high_thresh", "262144", true, SYSCTL_NO_CONF},
    {"ipv6/ip6frag_time", "5", true, SYSCTL_NO_CONF},
    /* The nf_defrag queue is another one than the stack's own. */
    {"netfilter/nf_conntrack_frag6_low_thresh", "196608", true, SYSCTL_NO_CONF},
    {"netfilter/nf_conntrack_frag6_high_thresh", "262144", true, SYSCTL_NO_CONF},
    {"netfilter/nf_conntrack_frag6_timeout", "5", true, SYSCTL_NO_CONF},
};

/* Below ipv4/conf/{all,default,DEVICE}. */
static const struct sysctl_row sysctl_conf4_rows[] = {
    {"accept_redirects", "0", false, IPV4_DEVCONF_ACCEPT_REDIRECTS},
    {"secure_redirects", "0", false, IPV4_DEVCONF_SECURE_REDIRECTS},
    {"send_redirects", "0", false, IPV4_DEVCONF_SEND_REDIRECTS},
    {"accept_source_route", "0", false, IPV4_DEVCONF_ACCEPT_SOURCE_ROUTE},
    {"rp_filter", "0", false,
	IPV4_DEVCONF_RP_FILTER}, /* a strict one would drop what the local default route brings in (F-15) */
    {"src_valid_mark", "0", false, IPV4_DEVCONF_SRC_VMARK},
    {"arp_ignore", "1", false,
	IPV4_DEVCONF_ARP_IGNORE}, /* the local default makes every address local: answer for the device's own only */
    {"arp_announce", "2", false, IPV4_DEVCONF_ARP_ANNOUNCE},
    {"arp_accept", "0", false, IPV4_DEVCONF_ARP_ACCEPT},
    {"arp_filter", "0", false, IPV4_DEVCONF_ARPFILTER},
    {"proxy_arp", "0", false, IPV4_DEVCONF_PROXY_ARP},
    {"proxy_arp_pvlan", "0", false, IPV4_DEVCONF_PROXY_ARP_PVLAN},
    {"forwarding", "0", false, IPV4_DEVCONF_FORWARDING},
    {"route_localnet", "0", false, IPV4_DEVCONF_ROUTE_LOCALNET},
    {"bootp_relay", "0", false, IPV4_DEVCONF_BOOTP_RELAY},
    {"log_martians", "0", false, IPV4_DEVCONF_LOG_MARTIANS},
};

/* Below ipv6/conf/{all,default,DEVICE}. */
static const struct sysctl_row sysctl_conf6_rows[] = {
    {"accept_ra", "0", false, DEVCONF_ACCEPT_RA},
    {"autoconf", "0", false, DEVCONF_AUTOCONF},
    {"accept_redirects", "0", false, DEVCONF_ACCEPT_REDIRECTS},
    {"accept_source_route", "-1", false, DEVCONF_ACCEPT_SOURCE_ROUTE},
    {"forwarding", "0", false, DEVCONF_FORWARDING},
    {"proxy_ndp", "0", false, DEVCONF_PROXY_NDP},
    {"accept_dad", "0", false, DEVCONF_ACCEPT_DAD},
    {"router_solicitations", "0", false, DEVCONF_RTR_SOLICITS},
    {"seg6_enabled", "0", true, DEVCONF_SEG6_ENABLED},
    {"accept_untracked_na", "0", true, DEVCONF_ACCEPT_UNTRACKED_NA},
    {"disable_ipv6", "0", false, DEVCONF_DISABLE_IPV6},
};

/* Not below "all": addr_gen_mode there would rewrite every device, and the others have no meaning there. */
static const struct sysctl_row sysctl_conf6_device_rows[] = {
    {"dad_transmits", "0", false, DEVCONF_DAD_TRANSMITS},
    {"addr_gen_mode", "1", false,
	DEVCONF_ADDR_GEN_MODE}, /* no link-local of the kernel's choice: attach sets a fixed one */
    {"keep_addr_on_down", "1", true, DEVCONF_KEEP_ADDR_ON_DOWN},
};

static const struct sysctl_row sysctl_conf6_off_rows[] = {
    {"accept_ra", "0", false, DEVCONF_ACCEPT_RA},
    {"autoconf", "0", false, DEVCONF_AUTOCONF},
    {"forwarding", "0", false, DEVCONF_FORWARDING},
    {"disable_ipv6", "1", false, DEVCONF_DISABLE_IPV6},
};

/* Read into ret_value without the line's end. */
static int
sysctl_read(int fd, char ret_value[SYSCTL_VALUE_MAX])
{
	ssize_t len = pread(fd, ret_value, SYSCTL_VALUE_MAX - 1, 0);

	if (len < 0)
		return -errno;
	while (len > 0 && (ret_value[len - 1] == '\n' || ret_value[len - 1] == ' '))
		len--;
	ret_value[len] = '\0';
	return 0;
}

/* Sets a value that is another one. 0, or -errno; -EILSEQ: written, but it reads otherwise. */
static int
sysctl_put(int fd, const char *value, char ret_now[SYSCTL_VALUE_MAX])
{
	int r = sysctl_read(fd, ret_now), len;
	char line[SYSCTL_VALUE_MAX];

	if (r < 0 || strcmp(ret_now, value) == 0)
		return r;
	len = snprintf(line, sizeof(line), "%s\n", value);
	r = pwrite(fd, line, (size_t)len, 0) == len ? sysctl_read(fd, ret_now) : -errno;
	if (r == 0 && strcmp(ret_now, value) != 0)
		r = -EILSEQ;
	return r;
}

/* dir is a descriptor of prefix, for the shorter path walk; there are a hundred of these files. */
static int
sysctl_apply(int dir, const char *prefix, const struct sysctl_row *row, struct error *err)
{
	char now[SYSCTL_VALUE_MAX] = "";
	int fd, r;

	if (tap_step(err) < 0)
		return -1;
	fd = openat(dir, row->key, O_RDWR | O_CLOEXEC);
	r = fd < 0 ? -errno : sysctl_put(fd, row->value, now);
	if (fd >= 0)
		close(fd);
	if (r == -EILSEQ)
		return error_set(
		    err, ERROR_SYSTEM, "%s%s: set to \"%s\", but it reads \"%s\"", prefix, row->key, row->value, now);
	if (r < 0 && !row->optional)
		return error_sys(err, -r, "%s%s", prefix, row->key);
	return 0;
}

/* Values of a device as rtnetlink told them; count 0: none are known. */
struct sysctl_known {
	const int32_t *conf;
	size_t count;
};

/* Has the device the value already? */
static bool
sysctl_is_known(const struct sysctl_known *known, const struct sysctl_row *row)
{
	return row->conf >= 0 && (size_t)row->conf < known->count &&
	    known->conf[row->conf] == (int32_t)strtol(row->value, NULL, 10);
}

/* prefix ends with a slash. */
static int
sysctl_apply_rows(
    const char *prefix, const struct sysctl_row *rows, size_t count, struct sysctl_known known, struct error *err)
{
	int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (dir < 0)
		return error_sys(err, errno, "%s", prefix);
	for (size_t i = 0; r == 0 && i < count; i++)
		if (!sysctl_is_known(&known, &rows[i]))
			r = sysctl_apply(dir, prefix, &rows[i], err);
	close(dir);
	return r;
}

#define SYSCTL_APPLY(prefix, rows, known, err)                                                                         \
	sysctl_apply_rows(prefix, rows, sizeof(rows) / sizeof((rows)[0]), known, err)

static const struct sysctl_known sysctl_none;

/* The rows of one entry of ipv4/conf and ipv6/conf. */
static int
sysctl_apply_conf(
    const char *entry, bool ipv6, struct sysctl_known known4, struct sysctl_known known6, struct error *err)
{
	char prefix[SYSCTL_PREFIX_MAX];

	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv4/conf/%s/", entry);
	if (SYSCTL_APPLY(prefix, sysctl_conf4_rows, known4, err) < 0)
		return -1;
	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv6/conf/%s/", entry);
	if (!ipv6 && access(SYSCTL_ROOT "ipv6", F_OK) < 0)
		return 0; /* a kernel without IPv6 is as good as IPv6 off */
	if (!ipv6)
		return SYSCTL_APPLY(prefix, sysctl_conf6_off_rows, known6, err);
	if (strcmp(entry, "all") != 0 && SYSCTL_APPLY(prefix, sysctl_conf6_device_rows, known6, err) < 0)
		return -1;
	return SYSCTL_APPLY(prefix, sysctl_conf6_rows, known6, err);
}

int
sysctl_apply_namespace(bool ipv6, struct error *err)
{
	if (SYSCTL_APPLY(SYSCTL_ROOT, sysctl_namespace_rows, sysctl_none, err) < 0)
		return -1;
	if (ipv6 && SYSCTL_APPLY(SYSCTL_ROOT, sysctl_namespace6_rows, sysctl_none, err) < 0)
		return -1;
	if (sysctl_apply_conf("all", ipv6, sysctl_none, sysctl_none, err) < 0)
		return -1;
	return sysctl_apply_conf("default", ipv6, sysctl_none, sysctl_none, err);
}

int
sysctl_apply_device(const char *device, const struct link_info *info, bool ipv6, struct error *err)
{
	struct sysctl_known known4 = {info->conf4, info->conf4_count}, known6 = {info->conf6, info->conf6_count};

	return sysctl_apply_conf(device, ipv6, known4, known6, err);
}

int
sysctl_apply_container(const char *device, struct error *err)
{
	static const struct sysctl_row rows[] = {
	    {"accept_dad", "0", false, SYSCTL_NO_CONF},
	    {"dad_transmits", "0", false, SYSCTL_NO_CONF},
	};
	char prefix[SYSCTL_PREFIX_MAX];

	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv6/conf/%s/", device);
	return SYSCTL_APPLY(prefix, rows, sysctl_none, err);
}
