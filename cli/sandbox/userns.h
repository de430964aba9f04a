/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A user namespace with one user and one group in it: the caller's. */
#ifndef POSTERN_CLI_USERNS_H
#define POSTERN_CLI_USERNS_H

#include <sys/types.h>

/* Move this process into a new user namespace (and others of unshare(2)'s flags), where it is uid and gid. 0, or
 * -errno; *ret_what names the step that failed. */
int userns_enter(int flags, uid_t uid, gid_t gid, const char **ret_what);

#endif
