/* SPDX-License-Identifier: GPL-3.0-or-later */
/* One socket keeps a namespace alive whose last name and process are gone, with its devices: the other end of its veth
 * stays. Closing it is enough, and the kernel cleans up in its own time. */
#include "probe.h"

static bool
veth_there(void)
{
	return strstr(probe_output("ip -o link"), "veth0") != NULL;
}

int
main(void)
{
	int fd;

	probe_gateway_and_guest();
	fd = probe_socket(true, PUBLIC4, SOCK_DGRAM);
	close(probe_guest);
	usleep(300000);
	probe_ok(veth_there(), "a socket is left: the veth is still there");
	close(fd);
	for (int i = 0; i < 50 && veth_there(); i++)
		usleep(20000);
	probe_ok(!veth_there(), "it is closed: the veth went");
	return probe_finish();
}
