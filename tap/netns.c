/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tap/netns.h"

#include "tap/tap_internal.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <linux/nsfs.h>
#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

/* Mounts stacked on one file: ours, and those mounted over it by others. Beyond that the file stays. */
#define NETNS_MOUNTS_MAX 16

#define NETNS_SELF "/proc/thread-self/ns/net"

int
netns_enter(struct netns_visit *visit, int netns_fd, struct error *err)
{
	if (tap_step(err) < 0)
		return -1;
	visit->home_fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	if (visit->home_fd < 0)
		return error_sys(err, errno, "%s", NETNS_SELF);
	if (setns(netns_fd, CLONE_NEWNET) < 0) {
		error_sys(err, errno, "setns");
		close(visit->home_fd);
		return -1;
	}
	return 0;
}

void
netns_leave(struct netns_visit *visit)
{
	if (setns(visit->home_fd, CLONE_NEWNET) < 0)
		abort();
	close(visit->home_fd);
	visit->home_fd = -1;
}

int
netns_create(int *ret_fd, struct error *err)
{
	struct netns_visit visit;
	int fd;

	if (tap_step(err) < 0)
		return -1;
	visit.home_fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	if (visit.home_fd < 0)
		return error_sys(err, errno, "%s", NETNS_SELF);
	if (unshare(CLONE_NEWNET) < 0) {
		error_sys(err, errno, "new network namespace");
		close(visit.home_fd);
		return -1;
	}
	fd = open(NETNS_SELF, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		error_sys(err, errno, "%s", NETNS_SELF);
	netns_leave(&visit);
	if (fd < 0)
		return -1;
	*ret_fd = fd;
	return 0;
}

/* Is it a network namespace? */
static bool
netns_is_netns(int fd)
{
	struct statfs fs;

	return fstatfs(fd, &fs) == 0 && fs.f_type == NSFS_MAGIC && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;
}

int
netns_check(int netns_fd, struct error *err)
{
	struct stat st, own;

	if (!netns_is_netns(netns_fd))
		return error_set(err, ERROR_USAGE, "not a network namespace");
	if (fstat(netns_fd, &st) < 0 || stat(NETNS_SELF, &own) < 0)
		return error_sys(err, errno, "stat of a network namespace");
	if (st.st_dev == own.st_dev && st.st_ino == own.st_ino)
		return error_set(err, ERROR_USAGE, "this is the daemon's own network namespace, not a sandbox's");
	return 0;
}

/* Mounts below dir must reach, and leave again, the mount namespaces made from this one before and after: else a file
 * in them pins a removed sandbox, or `ip netns exec` from a shell of another service sees an empty file. This is what
 * `ip netns add` does too. */
static int
netns_share_dir(const char *dir, struct error *err)
{
	if (mount("", dir, "none", MS_SHARED | MS_REC, NULL) == 0)
		return 0;
	if (errno != EINVAL)
		return error_sys(err, errno, "%s: make it a shared mount", dir);
	if (mount(dir, dir, "none", MS_BIND | MS_REC, NULL) < 0)
		return error_sys(err, errno, "%s: bind-mount on itself", dir);
	if (mount("", dir, "none", MS_SHARED | MS_REC, NULL) < 0)
		return error_sys(err, errno, "%s: make it a shared mount", dir);
	return 0;
}

int
netns_publish(const char *dir, const char *path, int netns_fd, struct error *err)
{
	char source[64];
	int fd;

	if (tap_step(err) < 0)
		return -1;
	if (mkdir(dir, 0755) < 0 && errno != EEXIST)
		return error_sys(err, errno, "%s", dir);
	if (netns_share_dir(dir, err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0);
	if (fd < 0)
		return errno == EEXIST ? error_set(err, ERROR_EXISTS, "%s is there already", path)
				       : error_sys(err, errno, "%s", path);
	close(fd);
	snprintf(source, sizeof(source), "/proc/self/fd/%d", netns_fd);
	if (tap_step(err) == 0) {
		if (mount(source, path, "none", MS_BIND, NULL) == 0)
			return 0;
		error_sys(err, errno, "%s: bind-mount the namespace", path);
	}
	unlink(path);
	return -1;
}

int
netns_open(const char *path, int *ret_fd, struct error *err)
{
	int fd;

	if (tap_step(err) < 0)
		return -1;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return errno == ENOENT ? error_set(err, ERROR_NOT_FOUND, "%s is not there", path)
				       : error_sys(err, errno, "%s", path);
	if (!netns_is_netns(fd)) {
		close(fd);
		return error_set(err, ERROR_NOT_FOUND, "%s is not a network namespace", path);
	}
	*ret_fd = fd;
	return 0;
}

void
netns_unpublish(const char *path)
{
	for (int i = 0; i < NETNS_MOUNTS_MAX; i++)
		if (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) < 0)
			break;
	unlink(path);
}
