/* SPDX-License-Identifier: GPL-3.0-or-later */
/* With the listener dead a tproxy rule lets the packet go on: under policy accept it reaches any other service of the
 * namespace, under policy drop it reaches none. */
#include "probe.h"

static void
rules(const char *policy)
{
	probe_run("nft flush ruleset; nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy %s;\n"
		  "meta l4proto tcp tproxy ip to 127.0.0.1:15001 accept\n"
		  "}\n}\n"
		  "END",
	    policy);
}

int
main(void)
{
	double ms;
	int service;

	probe_gateway_and_guest();
	probe_local_default();
	service = probe_listen("0.0.0.0", 8080, SOCK_STREAM, false);
	rules("accept");
	probe_ok(probe_dial(PUBLIC4, 8080, &ms, NULL) == 0, "policy accept: another service gets the connection");
	rules("drop");
	probe_ok(probe_dial(PUBLIC4, 8080, &ms, NULL) == ETIMEDOUT, "policy drop: nothing does");
	close(service);
	return probe_finish();
}
