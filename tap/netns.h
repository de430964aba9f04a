/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Network namespaces: make, enter and leave, publish under a directory as `ip netns` does. */
#ifndef POSTERN_TAP_NETNS_H
#define POSTERN_TAP_NETNS_H

#include "base/error.h"

#include <stddef.h>

/* A stay in another namespace; the calling thread comes back with netns_leave. */
struct netns_visit {
	int home_fd;
};

/* A new, empty namespace; the caller stays where it is. *ret_fd keeps it alive. */
int netns_create(int *ret_fd, struct error *err);
/* The calling thread's socket(2), open(2) of /dev/net/tun and /proc/sys/net mean the namespace until netns_leave. */
int netns_enter(struct netns_visit *visit, int netns_fd, struct error *err);
/* Never fails: a keeper that could not come back would go on inside a sandbox's namespace, so it aborts instead. */
void netns_leave(struct netns_visit *visit);

/* Is it a network namespace, and not the caller's own? 0, or -1 with ERROR_USAGE. */
int netns_check(int netns_fd, struct error *err);

/* Bind-mount the namespace on dir/name. ERROR_EXISTS when the file is there. */
int netns_publish(const char *dir, const char *path, int netns_fd, struct error *err);
/* Open a published namespace. ERROR_NOT_FOUND: no such file, or one that is no namespace any more. */
int netns_open(const char *path, int *ret_fd, struct error *err);
/* Remove mount and file; harmless when they are gone. */
void netns_unpublish(const char *path);

#endif
