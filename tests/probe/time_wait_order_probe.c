/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A bare SYN must meet the tproxy rule before the rule for packets of our own sockets: the other way round, a SYN that
 * finds its old connection in TIME_WAIT is not given to the listener, and the connect waits for its retransmission. */
#include "probe.h"

#define SYN_RULE "tcp flags & (fin|syn|rst|ack) == syn tproxy ip to 127.0.0.1:15001 accept\n"
#define SOCKET_RULE "socket transparent 1 accept\n"

static void
rules(const char *first, const char *second)
{
	probe_run("nft flush ruleset; nft -f - <<'END'\n"
		  "table inet t { chain c { type filter hook prerouting priority mangle; policy drop;\n%s%s}\n}\nEND",
	    first, second);
}

/* The slowest of ten connects from one source port, each while our end of the one before is in TIME_WAIT. */
static double
slowest(int listener, uint16_t port)
{
	struct sockaddr_in source = {.sin_family = AF_INET, .sin_port = htons(port)};
	struct timeval limit = {.tv_sec = 2};
	struct sockaddr_storage sa;
	socklen_t len = probe_sockaddr(PUBLIC4, 443, &sa);
	double worst = 0, start;
	int on = 1, fd, ours;

	inet_pton(AF_INET, "172.16.0.2", &source.sin_addr);
	for (int i = 0; i < 10; i++) {
		fd = probe_socket(true, PUBLIC4, SOCK_STREAM);
		setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
		setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
		if (bind(fd, (struct sockaddr *)&source, sizeof(source)) < 0)
			probe_skip("bind: %s", strerror(errno));
		start = probe_now_ms();
		if (connect(fd, (struct sockaddr *)&sa, len) < 0)
			return 1e6;
		worst = probe_now_ms() - start > worst ? probe_now_ms() - start : worst;
		ours = accept(listener, NULL, NULL);
		close(ours); /* ours closes first, and goes to TIME_WAIT */
		usleep(2000);
		close(fd);
		usleep(2000);
	}
	return worst;
}

int
main(void)
{
	double before, after;
	int listener;

	probe_gateway_and_guest();
	probe_local_default();
	listener = probe_listen("127.0.0.1", 15001, SOCK_STREAM, true);
	rules(SYN_RULE, SOCKET_RULE);
	before = slowest(listener, 41000);
	probe_ok(before < 8, "SYN rule first: the slowest of ten connects took %.1f ms", before);
	rules(SOCKET_RULE, SYN_RULE);
	after = slowest(listener, 42000);
	printf("# socket rule first: %.1f ms\n", after);
	close(listener);
	return probe_finish();
}
