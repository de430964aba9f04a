/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A set that states a size refuses the whole transaction when it is full, and expired elements count until they are
 * collected: so the lease sets state none. */
#include "probe.h"

int
main(void)
{
	probe_namespace();
	probe_run("nft -f - <<'END'\n"
		  "table inet t { set s { type ipv4_addr; flags timeout; size 4; gc-interval 1h;\n}\n}\n"
		  "END");
	probe_run("nft 'add element inet t s { 1.0.0.1 timeout 1s, 1.0.0.2 timeout 1s, 1.0.0.3 timeout 1s }'");
	probe_ok(!probe_try("nft 'add element inet t s { 1.0.0.4 timeout 1s, 1.0.0.5 timeout 1s }' 2>/dev/null"),
	    "two more than fit: the transaction is refused");
	probe_ok(strstr(probe_output("nft list set inet t s"), "1.0.0.4") == NULL, "as a whole");
	sleep(2);
	printf("# four new ones after the old expired, gc-interval 1h: %s here\n",
	    probe_try("nft 'add element inet t s { 1.0.1.1 timeout 9s, 1.0.1.2 timeout 9s, 1.0.1.3 timeout 9s, 1.0.1.4 "
		      "timeout 9s }' "
		      "2>/dev/null")
		? "taken"
		: "refused");
	return probe_finish();
}
