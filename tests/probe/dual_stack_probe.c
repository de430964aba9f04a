/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A dual-stack listener names an IPv4 destination ::ffff:a.b.c.d: hence one listener per family. */
#include "probe.h"

int
main(void)
{
	struct sockaddr_in6 name = {0};
	socklen_t len = sizeof(name);
	char text[INET6_ADDRSTRLEN] = "";
	int listener, fd = -1, ours, off = 0;
	struct sockaddr_storage any;
	double ms;

	probe_gateway_and_guest();
	probe_local_default();
	listener = probe_socket(false, "::", SOCK_STREAM);
	setsockopt(listener, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
	if (bind(listener, (struct sockaddr *)&any, probe_sockaddr("::", 8080, &any)) < 0 || listen(listener, 4) < 0)
		probe_skip("cannot listen");
	probe_ok(probe_dial(PUBLIC4, 8080, &ms, &fd) == 0, "IPv4 reaches a dual-stack listener");
	ours = accept(listener, NULL, NULL);
	getsockname(ours, (struct sockaddr *)&name, &len);
	inet_ntop(AF_INET6, &name.sin6_addr, text, sizeof(text));
	probe_ok(strcmp(text, "::ffff:" PUBLIC4) == 0, "as %s", text);
	close(ours);
	close(fd);
	close(listener);
	return probe_finish();
}
