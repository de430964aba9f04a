/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Which sockets the command of `postern run` may make: those that its network namespace confines. */
#ifndef POSTERN_CLI_RUN_SOCKETS_H
#define POSTERN_CLI_RUN_SOCKETS_H

/* From here on, in this process and all that it starts, socket(2) fails with EAFNOSUPPORT for all families but AF_UNIX,
 * AF_INET, AF_INET6 and AF_NETLINK, and io_uring_setup(2) with ENOSYS. Sets no_new_privs. 0 or -errno: nothing has
 * changed then. */
int run_sockets_confine(void);

#endif
