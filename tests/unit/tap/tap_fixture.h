/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the tests of tap/ share: a private mount and network namespace, sandboxes in it, guests on the other side.
 *
 * Nothing here can reach a real interface: the test's own network namespace is new and has no link. */
#ifndef POSTERN_TESTS_TAP_FIXTURE_H
#define POSTERN_TESTS_TAP_FIXTURE_H

#include "tap/link.h"
#include "tap/netns.h"
#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define FIXTURE_SKIPPED 77
#define FIXTURE_DIR "/run/netns"
#define FIXTURE_OUTPUT_MAX (256 * 1024)

/* Addresses that stand for the Internet's; no packet to them leaves the test. */
#define PUBLIC4 "93.184.216.34"
#define PUBLIC6 "2606:2800:21f::34"

/* Call first in main. */
__attribute__((unused)) static void
fixture_require_root(void)
{
	if (geteuid() == 0)
		return;
	puts("skipped: needs root");
	exit(FIXTURE_SKIPPED);
}

__attribute__((unused)) static int
fixture_setup(void **state)
{
	(void)state;
	if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("run", "/run", "tmpfs", 0, NULL) < 0)
		return -1;
	return 0;
}

__attribute__((unused)) static struct addr
fixture_addr(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

__attribute__((unused)) static struct tap_config
fixture_config(const char *name)
{
	struct tap_config config;

	tap_config_init(&config);
	strcpy(config.name, name);
	return config;
}

/* A container's namespace (caller closes) and the configuration of its sandbox. */
__attribute__((unused)) static struct tap_config
fixture_config_container(const char *name, int *ret_netns)
{
	struct tap_config config = fixture_config(name);

	assert_int_equal(netns_create(ret_netns, NULL), 0);
	config.kind = TAP_KIND_NETNS;
	strcpy(config.ifname, "eth0");
	config.netns_fd = *ret_netns;
	return config;
}

__attribute__((unused)) static struct tap *
fixture_attach_as(const struct tap_config *config, bool adopt)
{
	struct error err = {0};
	struct tap *tap = NULL;

	if (tap_attach(config, FIXTURE_DIR, adopt, &tap, &err) < 0)
		fail_msg("%s", err.text);
	return tap;
}

__attribute__((unused)) static struct tap *
fixture_attach(const struct tap_config *config)
{
	return fixture_attach_as(config, false);
}

/* Fails the test with the error's text unless the call succeeded. */
#define assert_ok(call, err)                                                                                           \
	do {                                                                                                           \
		if ((call) < 0)                                                                                        \
			fail_msg("%s", (err).text);                                                                    \
	} while (0)

__attribute__((unused)) static void
fixture_sleep_ms(long ms)
{
	struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};

	nanosleep(&pause, NULL);
}

__attribute__((unused)) static double
fixture_now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

/* Output of a shell command in a namespace; static storage. */
__attribute__((unused)) static const char *
fixture_run(int netns_fd, const char *command)
{
	static char output[FIXTURE_OUTPUT_MAX];
	struct netns_visit visit;
	size_t len = 0, got;
	FILE *pipe;

	assert_int_equal(netns_enter(&visit, netns_fd, NULL), 0);
	pipe = popen(command, "r");
	netns_leave(&visit);
	assert_non_null(pipe);
	while ((got = fread(output + len, 1, sizeof(output) - 1 - len, pipe)) > 0)
		len += got;
	output[len] = '\0';
	pclose(pipe);
	return output;
}

#define assert_contains(text, part)                                                                                    \
	do {                                                                                                           \
		if (strstr((text), (part)) == NULL)                                                                    \
			fail_msg("\"%s\" is not in:\n%s", (part), (text));                                             \
	} while (0)
#define assert_lacks(text, part)                                                                                       \
	do {                                                                                                           \
		if (strstr((text), (part)) != NULL)                                                                    \
			fail_msg("\"%s\" is in:\n%s", (part), (text));                                                 \
	} while (0)

__attribute__((unused)) static uint64_t
fixture_counter(struct tap *tap, enum tap_counter which)
{
	uint64_t totals[TAP_COUNTER_MAX];
	struct error err;

	assert_ok(tap_counters(tap, totals, &err), err);
	return totals[which];
}

/* A socket of the guest, made in its namespace. */
__attribute__((unused)) static int
fixture_socket(int netns_fd, int family, int type, int protocol)
{
	struct netns_visit visit;
	int fd;

	assert_int_equal(netns_enter(&visit, netns_fd, NULL), 0);
	fd = socket(family, type | SOCK_CLOEXEC, protocol);
	netns_leave(&visit);
	assert_true(fd >= 0);
	return fd;
}

/* The guest's end of a TAP, as a VMM opens it. */
__attribute__((unused)) static int
fixture_open_tap(const struct tap *tap)
{
	struct ifreq ifr = {.ifr_flags = IFF_TAP | IFF_NO_PI | IFF_VNET_HDR};
	struct netns_visit visit;
	int fd, r;

	strcpy(ifr.ifr_name, tap_config(tap)->ifname);
	assert_int_equal(netns_enter(&visit, tap_netns_fd(tap), NULL), 0);
	fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	r = fd < 0 ? -1 : ioctl(fd, TUNSETIFF, &ifr);
	netns_leave(&visit);
	assert_true(fd >= 0);
	assert_int_equal(r, 0);
	return fd;
}

/* Connect with a blocking socket; returns 0 or errno, and how long it took. */
__attribute__((unused)) static int
fixture_connect(int fd, const char *text, uint16_t port, double *ret_ms)
{
	struct addr addr = fixture_addr(text);
	struct timeval limit = {.tv_sec = 2};
	struct sockaddr_storage sa;
	socklen_t len = addr_to_sockaddr(&addr, port, &sa);
	double start = fixture_now_ms();
	int r;

	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	r = connect(fd, (struct sockaddr *)&sa, len) < 0 ? errno : 0;
	*ret_ms = fixture_now_ms() - start;
	return r;
}

__attribute__((unused)) static bool
fixture_readable(int fd, int timeout_ms)
{
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	return poll(&poll_fd, 1, timeout_ms) == 1;
}

#endif
