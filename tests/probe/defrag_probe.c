/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A tproxy rule brings defragmentation before the prerouting chains: a match on ports sees whole packets. Without one
 * the second fragment has no ports to match. */
#include "probe.h"

/* Fragments but the first. */
#define LATER "ip frag-off & 8191 != 0"

static void
send_fragmented(void)
{
	int fd = probe_socket(true, PUBLIC4, SOCK_DGRAM);
	static const char bytes[3000];
	struct sockaddr_storage sa;
	socklen_t len = probe_sockaddr(PUBLIC4, 7777, &sa);
	int mode = IP_PMTUDISC_DONT;

	setsockopt(fd, IPPROTO_IP, IP_MTU_DISCOVER, &mode, sizeof(mode));
	if (sendto(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&sa, len) < 0)
		abort();
	close(fd);
	usleep(50000);
}

/* Does the chain's listing have this rule with this count? */
static bool
counted(const char *rule, unsigned int packets)
{
	char line[128];

	snprintf(line, sizeof(line), "%s counter packets %u ", rule, packets);
	return strstr(probe_output("nft list chain inet t c"), line) != NULL;
}

static void
rules(const char *tproxy)
{
	probe_run("nft flush ruleset; nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy drop;\n" LATER
		  " counter\nudp dport 7777 counter\n%s}\n}\nEND",
	    tproxy);
}

int
main(void)
{
	probe_gateway_and_guest();
	probe_local_default();
	rules("");
	send_fragmented();
	probe_ok(counted(LATER, 2), "without a tproxy rule: fragments pass one by one");
	rules("meta l4proto tcp tproxy ip to 127.0.0.1:15001\n");
	send_fragmented();
	probe_ok(counted(LATER, 0) && counted("udp dport 7777", 1), "with one: a whole packet");
	return probe_finish();
}
