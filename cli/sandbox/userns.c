/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Writes a file of /proc/self in one write(2), as the kernel wants it. */
static int
userns_write(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), rc = 0;

	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		rc = -errno;
	close(fd);
	return rc;
}

int
userns_enter(int flags, uid_t uid, gid_t gid, const char **ret_what)
{
	char uid_map[32], gid_map[32];
	int rc;

	snprintf(uid_map, sizeof(uid_map), "%u %u 1", uid, geteuid());
	snprintf(gid_map, sizeof(gid_map), "%u %u 1", gid, getegid());
	*ret_what = "user namespace";
	if (unshare(CLONE_NEWUSER | flags) < 0)
		return -errno;
	*ret_what = "user namespace: uid map";
	rc = userns_write("/proc/self/setgroups", "deny");
	if (rc == 0)
		rc = userns_write("/proc/self/uid_map", uid_map);
	if (rc < 0)
		return rc;
	*ret_what = "user namespace: gid map";
	return userns_write("/proc/self/gid_map", gid_map);
}
