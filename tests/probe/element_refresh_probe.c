/* SPDX-License-Identifier: GPL-3.0-or-later */
/* How to start an element's countdown anew: add, delete, add in one transaction does on every kernel. Adding it again
 * with the same timeout does not, and adding it again without one may make it permanent. */
#include "probe.h"
#include "tap/nft.h"

#define ELEMENT "t s { 1.2.3.4 timeout 3s }"

static bool
present(void)
{
	return strstr(probe_output("nft list set inet t s"), "1.2.3.4") != NULL;
}

static void
start(void)
{
	probe_run("nft flush set inet t s; nft 'add element inet " ELEMENT "'");
}

/* As tap/tap_lease.c does it. */
static bool
add_delete_add(void)
{
	static const struct nft_elem elem = {.key = {1, 2, 3, 4}, .timeout_ms = 3000};
	struct nft_batch batch;
	int fd = nft_open(NULL), r;

	nft_batch_start(&batch);
	nft_batch_select(&batch, NFPROTO_INET, "t");
	nft_batch_elems_add(&batch, "s", &elem, 1, 4);
	nft_batch_elems_del(&batch, "s", &elem, 1, 4);
	nft_batch_elems_add(&batch, "s", &elem, 1, 4);
	r = nft_batch_commit(&batch, fd, NULL, NULL);
	close(fd);
	return r == 0;
}

int
main(void)
{
	probe_namespace();
	probe_run("nft -f - <<'END'\n"
		  "table inet t { set s { type ipv4_addr; flags timeout; gc-interval 1s;\n}\n"
		  "chain c { type filter hook prerouting priority 0; ip saddr @s drop\n"
		  "}\n}\n"
		  "END");
	start();
	sleep(1);
	probe_ok(add_delete_add(), "add, delete, add in one transaction, 1 s after the first add");
	usleep(2500000);
	probe_ok(present(), "still there 3.5 s after the first add of 3 s");
	usleep(800000);
	probe_ok(!present(), "and gone 3.3 s after the last");

	start();
	sleep(1);
	probe_run("nft 'add element inet " ELEMENT "'");
	usleep(2500000);
	printf("# adding again with the same timeout %s the countdown here\n",
	    present() ? "restarts" : "does not restart");

	start();
	(void)probe_try("nft 'add element inet t s { 1.2.3.4 }'");
	sleep(4);
	printf("# adding again without a timeout %s\n", present() ? "makes it permanent here" : "changes nothing here");
	return probe_finish();
}
