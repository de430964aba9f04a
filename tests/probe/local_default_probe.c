/* SPDX-License-Identifier: GPL-3.0-or-later */
/* "local default dev lo" delivers every destination to our sockets, beside the guest's more specific subnet: for IPv4
 * in table local, while there is no `ip rule`; for IPv6 in table main, since table local is looked up before it. */
#include "probe.h"

static bool
reaches(const char *addr)
{
	int listener = probe_listen(strchr(addr, ':') == NULL ? "0.0.0.0" : "::", 8080, SOCK_STREAM, false), fd = -1, r;
	double ms;

	r = probe_dial(addr, 8080, &ms, &fd);
	if (r == 0)
		close(fd);
	close(listener);
	return r == 0;
}

int
main(void)
{
	probe_gateway_and_guest();
	probe_ok(!reaches(PUBLIC4), "IPv4 without the route: not ours");
	probe_run("ip route add local default dev lo");
	probe_ok(strstr(probe_output("ip route show table local"), "local default dev lo") != NULL,
	    "IPv4: it stands in table local");
	probe_ok(reaches(PUBLIC4), "IPv4: any destination is delivered here, and the answer finds the guest");

	probe_run("ip -6 route add local default dev lo table local");
	probe_ok(!reaches(PUBLIC6), "IPv6 in table local: answers to the guest loop back");
	probe_run("ip -6 route del local default dev lo table local; ip -6 route add local default dev lo table main");
	probe_ok(reaches(PUBLIC6), "IPv6 in table main: delivered, and answered");
	probe_run("ip rule add fwmark 99 lookup main");
	probe_ok(
	    !reaches(PUBLIC4), "IPv4 with any `ip rule`: the tables are apart, and answers to the guest loop back");
	return probe_finish();
}
