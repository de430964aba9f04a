/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A fresh namespace trusts its neighbours: one router advertisement from the guest installs a default route. */
#include "probe.h"

#include <netinet/icmp6.h>

static void
send_advertisement(void)
{
	static const uint8_t message[] = {134, 0, 0, 0, 64, 0, 0x07, 0x08, 0, 0, 0, 0, 0, 0, 0, 0};
	struct sockaddr_in6 all = {.sin6_family = AF_INET6};
	struct netns_visit visit;
	int fd, hops = 255;

	inet_pton(AF_INET6, "ff02::1", &all.sin6_addr);
	if (netns_enter(&visit, probe_guest, NULL) < 0)
		abort();
	fd = socket(AF_INET6, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMPV6);
	setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, "eth0", 5);
	netns_leave(&visit);
	setsockopt(fd, IPPROTO_IPV6, IPV6_MULTICAST_HOPS, &hops, sizeof(hops));
	if (sendto(fd, message, sizeof(message), 0, (struct sockaddr *)&all, sizeof(all)) < 0)
		probe_skip("cannot send a router advertisement: %s", strerror(errno));
	close(fd);
	usleep(100000);
}

static bool
reads(const char *key, const char *value)
{
	char command[256], line[16];

	snprintf(command, sizeof(command), "cat /proc/sys/net/%s", key);
	snprintf(line, sizeof(line), "%s\n", value);
	return strcmp(probe_output(command), line) == 0;
}

int
main(void)
{
	probe_gateway_and_guest();
	if (reads("ipv4/conf/all/accept_redirects", "1") && reads("ipv6/conf/veth0/accept_ra", "1"))
		probe_ok(true, "a fresh namespace has accept_redirects=1 and accept_ra=1");
	else
		probe_skip("this host's namespaces inherit other defaults");
	send_advertisement();
	probe_ok(strstr(probe_output("ip -6 route"), "default") != NULL, "one advertisement installs a default route");
	probe_run("ip -6 route flush proto ra; sysctl -qw net.ipv6.conf.veth0.accept_ra=0");
	send_advertisement();
	probe_ok(strstr(probe_output("ip -6 route"), "default") == NULL, "with accept_ra=0 it does not");
	return probe_finish();
}
