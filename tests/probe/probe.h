/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Programs that prove one kernel behaviour the design leans on. Each runs in network namespaces of its own, prints TAP
 * lines, and exits 0, 1, or 77 when it cannot run here. Rules are written for nft(8), so that a reader can try them. */
#ifndef POSTERN_TESTS_PROBE_H
#define POSTERN_TESTS_PROBE_H

#include "policy/names/addr.h"
#include "tap/link.h"
#include "tap/netns.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define PROBE_SKIPPED 77

/* An address that stands for the Internet's. */
#define PUBLIC4 "93.184.216.34"
#define PUBLIC6 "2606:2800:21f::34"

static int probe_count, probe_failures;
static int probe_guest = -1; /* the guest's namespace */

__attribute__((unused, format(printf, 2, 3))) static void
probe_ok(bool ok, const char *fmt, ...)
{
	va_list ap;

	printf("%s %d - ", ok ? "ok" : "not ok", ++probe_count);
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	fflush(stdout);
	probe_failures += !ok;
}

__attribute__((unused)) static int
probe_finish(void)
{
	printf("1..%d\n", probe_count);
	return probe_failures == 0 ? 0 : 1;
}

__attribute__((unused, noreturn, format(printf, 1, 2))) static void
probe_skip(const char *fmt, ...)
{
	va_list ap;

	printf("1..0 # skipped: ");
	va_start(ap, fmt);
	vprintf(fmt, ap);
	va_end(ap);
	putchar('\n');
	exit(PROBE_SKIPPED);
}

/* A shell command in the current namespace; false when it failed. */
__attribute__((unused)) static bool
probe_try(const char *command)
{
	fflush(stdout);
	return system(command) == 0;
}

/* One that the probe cannot go on without. */
__attribute__((unused, format(printf, 1, 2))) static void
probe_run(const char *fmt, ...)
{
	char command[4096];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(command, sizeof(command), fmt, ap);
	va_end(ap);
	if (!probe_try(command))
		probe_skip("this failed: %s", command);
}

/* What a command prints; static storage. */
__attribute__((unused)) static const char *
probe_output(const char *command)
{
	static char output[65536];
	FILE *pipe = popen(command, "r");
	size_t len = pipe == NULL ? 0 : fread(output, 1, sizeof(output) - 1, pipe);

	output[len] = '\0';
	if (pipe != NULL)
		pclose(pipe);
	return output;
}

/* A fresh namespace as it is, nothing set. */
__attribute__((unused)) static void
probe_namespace(void)
{
	if (unshare(CLONE_NEWNET | CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		probe_skip("needs root and network namespaces");
	if (!probe_try("nft list ruleset >/dev/null 2>&1"))
		probe_skip("needs nft(8) and nf_tables");
	probe_run("ip link set lo up");
}

/* The gateway's namespace (current) with veth0 172.16.0.1/30, fd00::1/64 and all destinations local; the guest's with
 * eth0 .2 and a default route. */
__attribute__((unused)) static void
probe_gateway_and_guest(void)
{
	int rtnl;

	probe_namespace();
	if (netns_create(&probe_guest, NULL) < 0)
		probe_skip("a second namespace");
	rtnl = link_open(NULL);
	if (rtnl < 0 || link_add_veth(rtnl, "veth0", probe_guest, "eth0", NULL, NULL) < 0)
		probe_skip("needs veth");
	close(rtnl);
	probe_run(
	    "sysctl -qw net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.veth0.accept_dad=0; ip link set veth0 up; "
	    "ip addr add 172.16.0.1/30 dev veth0; ip -6 addr add fd00::1/64 dev veth0 nodad");
	probe_run("nsenter --net=/proc/%d/fd/%d sh -c 'sysctl -qw net.ipv6.conf.eth0.accept_dad=0; ip link set lo up; "
		  "ip link set eth0 up; ip addr add 172.16.0.2/30 dev eth0; ip -6 addr add fd00::2/64 dev eth0 nodad; "
		  "ip route add default via 172.16.0.1; ip -6 route add default via fd00::1'",
	    (int)getpid(), probe_guest);
	usleep(300000); /* carrier, IPv6 addresses */
}

__attribute__((unused)) static void
probe_local_default(void)
{
	probe_run("ip route add local default dev lo; ip -6 route add local default dev lo table main");
}

__attribute__((unused)) static double
probe_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

__attribute__((unused)) static socklen_t
probe_sockaddr(const char *text, uint16_t port, struct sockaddr_storage *ret_sa)
{
	struct addr addr;

	if (!addr_parse(text, strlen(text), &addr))
		abort();
	return addr_to_sockaddr(&addr, port, ret_sa);
}

/* A socket in the guest's namespace, or here. */
__attribute__((unused)) static int
probe_socket(bool in_guest, const char *like, int type)
{
	struct netns_visit visit;
	int fd;

	if (in_guest && netns_enter(&visit, probe_guest, NULL) < 0)
		abort();
	fd = socket(strchr(like, ':') == NULL ? AF_INET : AF_INET6, type | SOCK_CLOEXEC, 0);
	if (in_guest)
		netns_leave(&visit);
	if (fd < 0)
		abort();
	return fd;
}

/* A bound (and for TCP listening) socket in the gateway's namespace. */
__attribute__((unused)) static int
probe_listen(const char *addr, uint16_t port, int type, bool transparent)
{
	int fd = probe_socket(false, addr, type), on = 1;
	struct sockaddr_storage sa;
	socklen_t len = probe_sockaddr(addr, port, &sa);

	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
	if (transparent && setsockopt(fd, IPPROTO_IP, IP_TRANSPARENT, &on, sizeof(on)) < 0)
		probe_skip("needs IP_TRANSPARENT");
	if (bind(fd, (struct sockaddr *)&sa, len) < 0 || (type == SOCK_STREAM && listen(fd, 16) < 0))
		probe_skip("cannot bind %s:%u: %s", addr, port, strerror(errno));
	return fd;
}

/* Dial from the guest; 0 or errno. ETIMEDOUT after a second. *ret_fd (may be NULL) stays open on success. */
__attribute__((unused)) static int
probe_dial(const char *addr, uint16_t port, double *ret_ms, int *ret_fd)
{
	int fd = probe_socket(true, addr, SOCK_STREAM), r;
	struct timeval limit = {.tv_usec = 900000};
	struct sockaddr_storage sa;
	socklen_t len = probe_sockaddr(addr, port, &sa);
	double start = probe_now_ms();

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	r = connect(fd, (struct sockaddr *)&sa, len) < 0 ? errno : 0;
	*ret_ms = probe_now_ms() - start;
	if (r == 0 && ret_fd != NULL)
		*ret_fd = fd;
	else
		close(fd);
	return r == EINPROGRESS ? ETIMEDOUT : r;
}

__attribute__((unused)) static bool
probe_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

#endif
