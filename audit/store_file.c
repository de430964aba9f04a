/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store_file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const store_file_suffixes[STORE_FILE_PARTS] = {"", "-wal", "-shm"};

/* The group reads with the command line; nobody else. */
#define STORE_FILE_MODE 0640

static int
store_file_path(char ret_path[PATH_MAX], const char *base, const char *suffix)
{
	int n = snprintf(ret_path, PATH_MAX, "%s%s", base, suffix);

	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* SQLite refuses any symbolic link on the way (SQLITE_OPEN_NOFOLLOW); the administrator's own ones above our directory
 * are fine, so they are resolved first. */
static int
store_file_resolve(struct store_file *file, const char *path, struct error *err)
{
	char dir_copy[PATH_MAX], base_copy[PATH_MAX], resolved[PATH_MAX];

	if (store_file_path(dir_copy, path, "") < 0 || store_file_path(base_copy, path, "") < 0)
		return error_sys(err, ENAMETOOLONG, "%s", path);
	if (realpath(dirname(dir_copy), resolved) == NULL)
		return error_sys(err, errno, "%s", path);
	if (snprintf(file->path, sizeof(file->path), "%s/%s", resolved, basename(base_copy)) >= (int)sizeof(file->path))
		return error_sys(err, ENAMETOOLONG, "%s", path);
	return 0;
}

int
store_file_lock(struct store_file *file, const char *path, struct error *err)
{
	char lock[PATH_MAX];
	struct stat st;

	file->lock_fd = -1;
	if (store_file_resolve(file, path, err) < 0)
		return -1;
	if (store_file_path(lock, file->path, ".lock") < 0)
		return error_sys(err, ENAMETOOLONG, "%s.lock", file->path);
	file->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, STORE_FILE_MODE);
	if (file->lock_fd < 0 || fstat(file->lock_fd, &st) < 0)
		return error_sys(err, errno, "%s", lock);
	file->had_one = st.st_size > 0;
	if (flock(file->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	if (errno == EWOULDBLOCK)
		return error_set(err, ERROR_EXISTS, "another posternd writes %s", file->path);
	return error_sys(err, errno, "%s", lock);
}

void
store_file_unlock(struct store_file *file)
{
	if (file->lock_fd >= 0)
		close(file->lock_fd);
	file->lock_fd = -1;
}

void
store_file_note(struct store_file *file)
{
	if (!file->had_one)
		file->had_one = pwrite(file->lock_fd, "\n", 1, 0) == 1; /* on a full disk: next time */
}

/* A name that nothing has yet. */
static int
store_file_aside_path(struct store_file *file, char ret_path[PATH_MAX], struct error *err)
{
	int64_t now_s = clock_real_us() / 1000000;
	char suffix[64];

	for (int n = 0; n < STORE_SET_ASIDE_MAX; n++) {
		if (n == 0)
			snprintf(suffix, sizeof(suffix), ".corrupt-%" PRId64, now_s);
		else
			snprintf(suffix, sizeof(suffix), ".corrupt-%" PRId64 ".%d", now_s, n);
		if (store_file_path(ret_path, file->path, suffix) < 0)
			return error_sys(err, ENAMETOOLONG, "%s", file->path);
		if (access(ret_path, F_OK) < 0)
			return 0;
	}
	return error_set(err, ERROR_SYSTEM, "too many corrupt files beside %s", file->path);
}

bool
store_file_writable(const struct store_file *file)
{
	char path[PATH_MAX];

	for (size_t i = 0; i < STORE_FILE_PARTS; i++)
		if (store_file_path(path, file->path, store_file_suffixes[i]) < 0 ||
		    (access(path, W_OK) < 0 && errno != ENOENT))
			return false;
	return true;
}

int
store_file_set_aside(struct store_file *file, const char *why, struct store_opening *opening, struct error *err)
{
	char from[PATH_MAX], to[PATH_MAX], aside[PATH_MAX];

	if (store_file_aside_path(file, aside, err) < 0)
		return -1;
	for (size_t i = 0; i < STORE_FILE_PARTS; i++) {
		if (store_file_path(from, file->path, store_file_suffixes[i]) < 0 ||
		    store_file_path(to, aside, store_file_suffixes[i]) < 0)
			return error_sys(err, ENAMETOOLONG, "%s", aside);
		if (rename(from, to) < 0 && errno != ENOENT)
			return error_sys(err, errno, "cannot set %s aside", from);
	}
	opening->replaced = true;
	snprintf(opening->why, sizeof(opening->why), "%s", why);
	snprintf(opening->moved_to, sizeof(opening->moved_to), "%s", aside);
	return 0;
}

int
store_file_make(struct store_file *file, struct store_opening *opening, struct error *err)
{
	char wal[PATH_MAX];
	struct stat st;
	int fd;

	if (lstat(file->path, &st) == 0) {
		if (!S_ISREG(st.st_mode))
			return error_set(err, ERROR_PERMISSION, "%s is not a regular file", file->path);
		return 0;
	}
	if (errno != ENOENT)
		return error_sys(err, errno, "%s", file->path);
	if (store_file_path(wal, file->path, "-wal") == 0 && stat(wal, &st) == 0 && st.st_size > 0) {
		if (store_file_set_aside(file, "the database is gone, its -wal is left", opening, err) < 0)
			return -1;
	} else if (file->had_one && !opening->replaced) {
		opening->replaced = true;
		snprintf(opening->why, sizeof(opening->why), "the database is gone");
	}
	fd = open(file->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, STORE_FILE_MODE);
	if (fd < 0)
		return error_sys(err, errno, "cannot make %s", file->path);
	if (fchmod(fd, STORE_FILE_MODE) < 0) {
		error_sys(err, errno, "%s", file->path);
		close(fd);
		return -1;
	}
	close(fd);
	return 0;
}

int
store_file_identify(struct store_file *file, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < STORE_FILE_PARTS; i++) {
		if (store_file_path(path, file->path, store_file_suffixes[i]) < 0 || stat(path, &st) < 0)
			return error_sys(err, errno, "%s%s", file->path, store_file_suffixes[i]);
		file->parts[i].dev = st.st_dev;
		file->parts[i].ino = st.st_ino;
	}
	return 0;
}

int
store_file_check(const struct store_file *file, struct error *err)
{
	char path[PATH_MAX];
	struct stat st;

	for (size_t i = 0; i < STORE_FILE_PARTS; i++) {
		if (store_file_path(path, file->path, store_file_suffixes[i]) == 0 && stat(path, &st) == 0 &&
		    st.st_dev == file->parts[i].dev && st.st_ino == file->parts[i].ino)
			continue;
		return error_set(err, ERROR_CORRUPT, "%s%s was removed or replaced while in use", file->path,
		    store_file_suffixes[i]);
	}
	return 0;
}
