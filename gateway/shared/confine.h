/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A role gives up what it does not need, in named stages; each stage ends the process when it fails.
 *
 * Order: open what must be opened as root -> confine_root, confine_network -> confine_identity -> open what must be
 * opened as that user -> confine_syscalls. */
#ifndef POSTERN_GATEWAY_CONFINE_H
#define POSTERN_GATEWAY_CONFINE_H

#include <stdbool.h>
#include <sys/types.h>

/* Become uid:gid with no supplementary groups and no capability in any set, no_new_privs on, dumpable off. When the
 * process is not root (rootless) only the capabilities go. */
void confine_identity(uid_t uid, gid_t gid);

/* Replace the root by an empty, read-only directory that nobody can name any more (skipped, with a log line, where
 * CAP_SYS_CHROOT is missing). Call before confine_identity; dir must exist and be empty. */
void confine_root(const char *dir);

/* A network namespace of its own with nothing in it: for the auditor. Before confine_identity. */
void confine_network(void);

/* seccomp: only the calls of the role's list; anything else kills the process. role: "gateway", "auditor",
 * "control", "keeper". In sanitizer builds the lists grow by what the sanitizers need. */
void confine_syscalls(const char *role);

#endif
