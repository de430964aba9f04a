/* SPDX-License-Identifier: GPL-3.0-or-later */
/* reject works in prerouting of family inet, and at once: TCP resets always, ICMP errors only when the namespace's rate
 * limits are lifted, which leave about one a second otherwise. */
#include "probe.h"

/* How many of ten datagrams to ten ports get an ICMP error within 100 ms. */
static int
refusals(const char *addr)
{
	struct sockaddr_storage sa;
	int count = 0, fd;
	char byte = 'x';

	for (uint16_t port = 1000; port < 1010; port++) {
		socklen_t len = probe_sockaddr(addr, port, &sa);

		fd = probe_socket(true, addr, SOCK_DGRAM);
		if (connect(fd, (struct sockaddr *)&sa, len) == 0 && send(fd, &byte, 1, 0) == 1 &&
		    probe_readable(fd, 100) && recv(fd, &byte, 1, 0) < 0 && errno == ECONNREFUSED)
			count++;
		close(fd);
	}
	return count;
}

int
main(void)
{
	double ms;
	int r;

	probe_gateway_and_guest();
	probe_local_default();
	probe_run("nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy drop;\n"
		  "icmpv6 type 135-136 accept\n"
		  "meta l4proto tcp reject with tcp reset\n"
		  "meta l4proto udp reject with icmpx port-unreachable\n"
		  "}\n}\n"
		  "END");
	probe_dial(PUBLIC4, 443, &ms, NULL);
	r = probe_dial(PUBLIC4, 443, &ms, NULL);
	probe_ok(r == ECONNREFUSED && ms < 10, "IPv4 reset within 10 ms");
	probe_dial(PUBLIC6, 443, &ms, NULL);
	r = probe_dial(PUBLIC6, 443, &ms, NULL);
	probe_ok(r == ECONNREFUSED && ms < 10, "IPv6 reset within 10 ms");
	probe_ok(refusals(PUBLIC4) < 10, "with the default limits, some ICMP errors do not come");
	probe_run("sysctl -qw net.ipv4.icmp_ratelimit=0 net.ipv4.icmp_ratemask=0 net.ipv6.icmp.ratelimit=0");
	probe_ok(refusals(PUBLIC4) == 10, "with the limits lifted, all do: IPv4");
	probe_ok(refusals(PUBLIC6) == 10, "IPv6");
	return probe_finish();
}
