/* SPDX-License-Identifier: GPL-3.0-or-later */
/* tproxy takes the gateway's own addresses and the listener's own port like any others, so that dialling them must be
 * refused before. A listener on the loopback address is not found by a lookup of another address. */
#include "probe.h"

static bool
accepted(int listener)
{
	int fd = probe_readable(listener, 300) ? accept(listener, NULL, NULL) : -1;

	if (fd >= 0)
		close(fd);
	return fd >= 0;
}

int
main(void)
{
	int wildcard, loopback;
	double ms;

	probe_gateway_and_guest();
	probe_local_default();
	wildcard = probe_listen("0.0.0.0", 15001, SOCK_STREAM, true);
	probe_run("nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy drop;\n"
		  "meta l4proto tcp tproxy ip to :15001 accept\n"
		  "}\n}\n"
		  "END");
	probe_ok(probe_dial("172.16.0.1", 443, &ms, NULL) == 0 && accepted(wildcard),
	    "the gateway's address is intercepted");
	probe_ok(
	    probe_dial("172.16.0.1", 15001, &ms, NULL) == 0 && accepted(wildcard), "so is the listener's own port");
	probe_run("nft flush ruleset");
	probe_ok(probe_dial(PUBLIC4, 15001, &ms, NULL) == 0 && accepted(wildcard),
	    "without rules the local default route leads there too, for any address");
	close(wildcard);
	loopback = probe_listen("127.0.0.1", 15001, SOCK_STREAM, true);
	probe_ok(
	    probe_dial(PUBLIC4, 15001, &ms, NULL) == ECONNREFUSED, "a listener on 127.0.0.1 is not there for others");
	probe_run("nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy drop;\n"
		  "tcp dport 443 tproxy ip to 127.0.0.1:15001 accept\n"
		  "socket transparent 1 accept\n"
		  "}\n}\n"
		  "END");
	probe_ok(probe_dial(PUBLIC4, 443, &ms, NULL) == 0 && accepted(loopback), "and takes what tproxy gives it");
	close(loopback);
	return probe_finish();
}
