/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A fresh namespace accepts router advertisements, redirects and source routes, and may inherit
 * anything from the host (net.core.devconf_inherit_init_net). So nothing is assumed: every row of the checklist is read;
 * when it differs it is written and read again, and a value that does not stick fails the attach. Rows marked optional
 * harden or speed up, and no promise hangs on them: some do not exist on older kernels, or are not offered in a namespace
 * that belongs to a user namespace (rootless). Missing or read-only ones are passed over; one that can be written and
 * then reads otherwise is a failure too. */
#include "tap/sysctl.h"

#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SYSCTL_ROOT "/proc/sys/net/"
/* Longest value of the checklist as the kernel prints it. */
#define SYSCTL_VALUE_MAX 64
/* Root, family, "conf" and a device's name. */
#define SYSCTL_PREFIX_MAX 64

struct sysctl_row {
	const char *key;
	const char *value;
	bool optional;
};

static const struct sysctl_row sysctl_namespace_rows[] = {
    {"ipv4/ip_forward", "0", false},
    {"ipv4/ip_nonlocal_bind", "0", false},
    {"ipv4/tcp_syncookies", "1", false},
    {"ipv4/tcp_fastopen", "0", false},
    {"ipv4/icmp_echo_ignore_broadcasts", "1", false},
    {"ipv4/icmp_ignore_bogus_error_responses", "1", false},
    /* A refusal is an ICMP error, and the kernel's own limit of one a second would make it look like a drop. The ruleset
	 * bounds them instead. The masks also lift the limit that all namespaces of the host share. */
    {"ipv4/icmp_ratelimit", "0", false},
    {"ipv4/icmp_ratemask", "0", false},
    {"ipv4/tcp_max_syn_backlog", "1024", true},
    {"ipv4/ipfrag_low_thresh", "196608", true},
    {"ipv4/ipfrag_high_thresh", "262144", true},
    {"ipv4/ipfrag_time", "5", true},
    {"core/somaxconn", "4096", true},
};

static const struct sysctl_row sysctl_namespace6_rows[] = {
    {"ipv6/icmp/ratelimit", "0", false},
    {"ipv6/icmp/ratemask", "", true},
    {"ipv6/icmp/echo_ignore_multicast", "1", true},
    {"ipv6/icmp/echo_ignore_anycast", "1", true},
    {"ipv6/ip_nonlocal_bind", "0", false},
    {"ipv6/ip6frag_low_thresh", "196608", true},
    {"ipv6/ip6frag_high_thresh", "262144", true},
    {"ipv6/ip6frag_time", "5", true},
    /* The nf_defrag queue is another one than the stack's own. */
    {"netfilter/nf_conntrack_frag6_low_thresh", "196608", true},
    {"netfilter/nf_conntrack_frag6_high_thresh", "262144", true},
    {"netfilter/nf_conntrack_frag6_timeout", "5", true},
};

/* Below ipv4/conf/{all,default,DEVICE}. */
static const struct sysctl_row sysctl_conf4_rows[] = {
    {"accept_redirects", "0", false},
    {"secure_redirects", "0", false},
    {"send_redirects", "0", false},
    {"accept_source_route", "0", false},
    {"rp_filter", "0", false}, /* a strict one would drop what the local default route brings in (F-15) */
    {"src_valid_mark", "0", false},
    {"arp_ignore", "1", false}, /* the local default makes every address local: answer for the device's own only */
    {"arp_announce", "2", false},
    {"arp_accept", "0", false},
    {"arp_filter", "0", false},
    {"proxy_arp", "0", false},
    {"proxy_arp_pvlan", "0", false},
    {"forwarding", "0", false},
    {"route_localnet", "0", false},
    {"bootp_relay", "0", false},
    {"log_martians", "0", false},
};

/* Below ipv6/conf/{all,default,DEVICE}. */
static const struct sysctl_row sysctl_conf6_rows[] = {
    {"accept_ra", "0", false},
    {"autoconf", "0", false},
    {"accept_redirects", "0", false},
    {"accept_source_route", "-1", false},
    {"forwarding", "0", false},
    {"proxy_ndp", "0", false},
    {"accept_dad", "0", false},
    {"router_solicitations", "0", false},
    {"seg6_enabled", "0", true},
    {"accept_untracked_na", "0", true},
    {"disable_ipv6", "0", false},
};

/* Not below "all": addr_gen_mode there would rewrite every device, and the others have no meaning there. */
static const struct sysctl_row sysctl_conf6_device_rows[] = {
    {"dad_transmits", "0", false},
    {"addr_gen_mode", "1", false}, /* no link-local of the kernel's choice: attach sets a fixed one */
    {"keep_addr_on_down", "1", true},
};

static const struct sysctl_row sysctl_conf6_off_rows[] = {
    {"accept_ra", "0", false},
    {"autoconf", "0", false},
    {"forwarding", "0", false},
    {"disable_ipv6", "1", false},
};

#define SYSCTL_COUNT(rows) (sizeof(rows) / sizeof((rows)[0]))

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

static int
sysctl_write(int fd, const char *value)
{
	char line[SYSCTL_VALUE_MAX];
	int len = snprintf(line, sizeof(line), "%s\n", value);

	return pwrite(fd, line, (size_t)len, 0) == len ? 0 : -errno;
}

/* 0, or -errno; -EILSEQ: written, but it reads otherwise. */
static int
sysctl_put(int fd, const char *value, char ret_now[SYSCTL_VALUE_MAX])
{
	int r = sysctl_read(fd, ret_now);

	if (r < 0 || strcmp(ret_now, value) == 0)
		return r;
	r = sysctl_write(fd, value);
	if (r == 0)
		r = sysctl_read(fd, ret_now);
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

/* prefix ends with a slash. */
static int
sysctl_apply_rows(const char *prefix, const struct sysctl_row *rows, size_t count, struct error *err)
{
	int dir = open(prefix, O_PATH | O_DIRECTORY | O_CLOEXEC), r = 0;

	if (dir < 0)
		return error_sys(err, errno, "%s", prefix);
	for (size_t i = 0; r == 0 && i < count; i++)
		r = sysctl_apply(dir, prefix, &rows[i], err);
	close(dir);
	return r;
}

/* The rows of one entry of ipv4/conf and ipv6/conf. */
static int
sysctl_apply_conf(const char *entry, bool ipv6, struct error *err)
{
	char prefix[SYSCTL_PREFIX_MAX];

	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv4/conf/%s/", entry);
	if (sysctl_apply_rows(prefix, sysctl_conf4_rows, SYSCTL_COUNT(sysctl_conf4_rows), err) < 0)
		return -1;
	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv6/conf/%s/", entry);
	if (!ipv6 && access(SYSCTL_ROOT "ipv6", F_OK) < 0)
		return 0; /* a kernel without IPv6 is as good as IPv6 off */
	if (!ipv6)
		return sysctl_apply_rows(prefix, sysctl_conf6_off_rows, SYSCTL_COUNT(sysctl_conf6_off_rows), err);
	if (strcmp(entry, "all") != 0 &&
	    sysctl_apply_rows(prefix, sysctl_conf6_device_rows, SYSCTL_COUNT(sysctl_conf6_device_rows), err) < 0)
		return -1;
	return sysctl_apply_rows(prefix, sysctl_conf6_rows, SYSCTL_COUNT(sysctl_conf6_rows), err);
}

int
sysctl_apply_namespace(bool ipv6, struct error *err)
{
	if (sysctl_apply_rows(SYSCTL_ROOT, sysctl_namespace_rows, SYSCTL_COUNT(sysctl_namespace_rows), err) < 0)
		return -1;
	if (ipv6 &&
	    sysctl_apply_rows(SYSCTL_ROOT, sysctl_namespace6_rows, SYSCTL_COUNT(sysctl_namespace6_rows), err) < 0)
		return -1;
	if (sysctl_apply_conf("all", ipv6, err) < 0)
		return -1;
	return sysctl_apply_conf("default", ipv6, err);
}

int
sysctl_apply_device(const char *device, bool ipv6, struct error *err)
{
	return sysctl_apply_conf(device, ipv6, err);
}

int
sysctl_apply_container(const char *device, struct error *err)
{
	static const struct sysctl_row rows[] = {{"accept_dad", "0", false}, {"dad_transmits", "0", false}};
	char prefix[SYSCTL_PREFIX_MAX];

	snprintf(prefix, sizeof(prefix), SYSCTL_ROOT "ipv6/conf/%s/", device);
	return sysctl_apply_rows(prefix, rows, SYSCTL_COUNT(rows), err);
}
