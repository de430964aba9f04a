/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A role gives up what it does not need, in two stages; each ends the process when it fails.
 *
 * Order: open what must be opened as root -> confine_process -> open what must be opened as that user ->
 * confine_syscalls. */
#ifndef POSTERN_GATEWAY_CONFINE_H
#define POSTERN_GATEWAY_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/* What a role gives up besides its user and all capabilities. */
struct confinement {
	bool network;         /* it gets a network namespace of its own with nothing in it */
	bool root;            /* its root becomes an empty, read-only directory */
	const char *syscalls; /* its list of system calls: what confine_syscalls takes */
};

/* Give up network and root as said (left out, with a log line, without the capability that it takes). Then become
 * uid:gid with no supplementary groups and no capability in any set, no_new_privs on, dumpable off; a process that is
 * not root gives up only the capabilities. empty_dir: the root to be; it must exist and be empty. */
void confine_process(const struct confinement *confinement, const char *empty_dir, uid_t uid, gid_t gid);

/* seccomp: only the calls of the list "gateway", "auditor" or "control"; anything else kills the process. "keeper": all
 * but the calls of its list, which fail with EPERM. In sanitizer builds other calls are logged, not refused. */
void confine_syscalls(const char *list);

#endif
