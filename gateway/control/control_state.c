/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_state.h"

#include "policy/text/policy.h"
#include "gateway/shared/msg.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A stored file is never larger than the largest policy. */
#define STATE_FILE_MAX POLICY_FILE_MAX
#define STATE_NEW ".new-"
#define STATE_OLD ".old-"
#define STATE_LAST_ID ".last-id"
/* Prefix, name, NUL. */
#define STATE_PATH_MAX (TAP_NAME_MAX + 8)

static const char *const state_file_names[] = {
    [CONTROL_FILE_ATTACHMENT] = "attachment.json",
    [CONTROL_FILE_POLICY] = "policy.yaml",
    [CONTROL_FILE_EDITS] = "edits.yaml",
    [CONTROL_FILE_USAGE] = "usage.json",
    [CONTROL_FILE_ENDS] = "ends.json",
};
static_assert(sizeof(state_file_names) / sizeof(state_file_names[0]) == CONTROL_FILE_MAX, "one name per file");

/* A failing disk is always ERROR_SYSTEM, whatever errno says: the caller's permissions do not matter here. */
static int
state_sys(struct error *err, int sys_errno, const char *what, const char *name)
{
	error_sys(err, sys_errno, "state: %s %s", what, name);
	if (err != NULL)
		err->code = ERROR_SYSTEM;
	return -1;
}

void
control_state_free(struct control_files *files)
{
	for (int i = 0; i < CONTROL_FILE_MAX; i++) {
		free(files->files[i].text);
		files->files[i] = (struct control_text){0};
	}
}

/* A file that others can write to proves nothing.
 * syscalls: geteuid */
static int
state_check_owner(int fd, const char *name, struct error *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return state_sys(err, errno, "stat", name);
	if (st.st_uid != geteuid() || (st.st_mode & (S_IWGRP | S_IWOTH)) != 0)
		return error_set(
		    err, ERROR_CORRUPT, "state: %s is owned or writable by others; refusing to use it", name);
	return 0;
}

/* syscalls: openat */
static int
state_open_dir(int at_fd, const char *name, int *ret_fd, struct error *err)
{
	int fd = openat(at_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

	if (fd < 0 && errno == ENOENT)
		return error_set(err, ERROR_NOT_FOUND, "state: no folder %s", name);
	if (fd < 0)
		return state_sys(err, errno, "open", name);
	if (state_check_owner(fd, name, err) < 0) {
		close(fd);
		return -1;
	}
	*ret_fd = fd;
	return 0;
}

/* syscalls: openat mkdirat */
int
control_state_open(const char *state_dir, int *ret_dir_fd, struct error *err)
{
	int top_fd = open(state_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int rc = 0;

	if (top_fd < 0)
		return state_sys(err, errno, "open", state_dir);
	if (mkdirat(top_fd, "sandboxes", 0700) < 0 && errno != EEXIST)
		rc = state_sys(err, errno, "make the folder sandboxes in", state_dir);
	if (rc == 0)
		rc = state_open_dir(top_fd, "sandboxes", ret_dir_fd, err);
	close(top_fd);
	return rc;
}

/* Makes or replaces a file of a folder: temporary file, sync, rename, sync of the folder.
 * syscalls: unlinkat openat fsync renameat */
static int
state_replace(int dir_fd, const char *file, const char *text, size_t len, struct error *err)
{
	char temporary[STATE_PATH_MAX + 8];
	int fd, failed = 0;

	snprintf(temporary, sizeof(temporary), "%s.tmp", file);
	if (unlinkat(dir_fd, temporary, 0) < 0 && errno != ENOENT)
		return state_sys(err, errno, "remove", temporary);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return state_sys(err, errno, "make", temporary);
	while (len > 0 && failed == 0) {
		ssize_t n = write(fd, text, len);

		if (n < 0 && errno != EINTR)
			failed = errno;
		text += n < 0 ? 0 : n;
		len -= n < 0 ? 0 : (size_t)n;
	}
	if (failed == 0 && fsync(fd) < 0)
		failed = errno;
	if (close(fd) < 0 && failed == 0)
		failed = errno;
	if (failed == 0 && (renameat(dir_fd, temporary, dir_fd, file) < 0 || fsync(dir_fd) < 0))
		failed = errno;
	if (failed != 0) {
		unlinkat(dir_fd, temporary, 0);
		return state_sys(err, failed, "write", file);
	}
	return 0;
}

static int
state_read_fd(int fd, const char *file, struct control_text *ret_text, struct error *err)
{
	struct stat st;
	size_t len = 0, size;
	char *text;

	if (fstat(fd, &st) < 0)
		return state_sys(err, errno, "stat", file);
	if (!S_ISREG(st.st_mode) || st.st_size < 0 || st.st_size > (off_t)STATE_FILE_MAX)
		return error_set(err, ERROR_CORRUPT, "state: %s is not a regular file, or too large", file);
	size = (size_t)st.st_size;
	text = malloc(size + 1);
	if (text == NULL)
		return state_sys(err, ENOMEM, "read", file);
	while (len < size) {
		ssize_t n = read(fd, text + len, size - len);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			free(text);
			return state_sys(err, n < 0 ? errno : EIO, "read", file);
		}
		len += (size_t)n;
	}
	text[len] = '\0';
	*ret_text = (struct control_text){.text = text, .len = len};
	return 0;
}

/* A missing file is no error: text stays NULL.
 * syscalls: openat */
static int
state_read_file(int dir_fd, const char *file, struct control_text *ret_text, struct error *err)
{
	int fd = openat(dir_fd, file, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	int rc;

	*ret_text = (struct control_text){0};
	if (fd < 0)
		return errno == ENOENT ? 0 : state_sys(err, errno, "open", file);
	rc = state_check_owner(fd, file, err);
	if (rc == 0)
		rc = state_read_fd(fd, file, ret_text, err);
	close(fd);
	return rc;
}

bool
control_state_holds(int dir_fd, const char *name, enum control_file which, const char *text, size_t len)
{
	struct control_text held = {0};
	struct error err;
	int folder;
	bool same;

	if (state_open_dir(dir_fd, name, &folder, &err) < 0)
		return false;
	same = state_read_file(folder, state_file_names[which], &held, &err) == 0 && held.text != NULL &&
	    held.len == len && memcmp(held.text, text, len) == 0;
	free(held.text);
	close(folder);
	return same;
}

/* syscalls: unlinkat fsync */
int
control_state_write(
    int dir_fd, const char *name, enum control_file which, const char *text, size_t len, struct error *err)
{
	const char *file = state_file_names[which];
	int fd, rc = 0;

	if (state_open_dir(dir_fd, name, &fd, err) < 0)
		return -1;
	if (text != NULL)
		rc = state_replace(fd, file, text, len, err);
	else if ((unlinkat(fd, file, 0) < 0 && errno != ENOENT) || fsync(fd) < 0)
		rc = state_sys(err, errno, "remove", file);
	close(fd);
	return rc;
}

/* syscalls: renameat2 fsync */
static int
state_rename(int dir_fd, const char *from, const char *to, struct error *err)
{
	if (renameat2(dir_fd, from, dir_fd, to, RENAME_NOREPLACE) < 0) {
		if (errno == EEXIST)
			return error_set(err, ERROR_EXISTS, "state: folder %s exists already", to);
		return state_sys(err, errno, "rename", from);
	}
	return fsync(dir_fd) < 0 ? state_sys(err, errno, "sync the folder of", to) : 0;
}

/* Remove a folder of ours and the files in it (there are no deeper ones).
 * syscalls: fcntl(F_GETFL) getdents64 unlinkat fsync */
static int
state_remove_dir(int at_fd, const char *name, struct error *err)
{
	struct dirent *entry;
	DIR *dir;
	int fd;

	if (state_open_dir(at_fd, name, &fd, err) < 0)
		return -1;
	dir = fdopendir(fd);
	if (dir == NULL) {
		close(fd);
		return state_sys(err, errno, "read", name);
	}
	while ((entry = readdir(dir)) != NULL)
		if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	if (unlinkat(at_fd, name, AT_REMOVEDIR) < 0)
		return state_sys(err, errno, "remove", name);
	return fsync(at_fd) < 0 ? state_sys(err, errno, "sync the folder of", name) : 0;
}

/* syscalls: mkdirat */
int
control_state_create(int dir_fd, const char *name, const struct control_files *files, struct error *err)
{
	char fresh[STATE_PATH_MAX];
	int rc;

	snprintf(fresh, sizeof(fresh), STATE_NEW "%s", name);
	rc = mkdirat(dir_fd, fresh, 0700);
	if (rc < 0 && errno == EEXIST) { /* of an attach that was interrupted */
		if (state_remove_dir(dir_fd, fresh, err) < 0)
			return -1;
		rc = mkdirat(dir_fd, fresh, 0700);
	}
	if (rc < 0)
		return state_sys(err, errno, "make", fresh);
	for (int i = 0; i < CONTROL_FILE_MAX && rc == 0; i++)
		if (files->files[i].text != NULL)
			rc = control_state_write(
			    dir_fd, fresh, (enum control_file)i, files->files[i].text, files->files[i].len, err);
	if (rc == 0)
		rc = state_rename(dir_fd, fresh, name, err);
	if (rc < 0)
		state_remove_dir(dir_fd, fresh, NULL);
	return rc;
}

int
control_state_read(int dir_fd, const char *name, struct control_files *ret_files, struct error *err)
{
	struct control_files files = {0};
	int fd, rc = 0;

	if (state_open_dir(dir_fd, name, &fd, err) < 0)
		return -1;
	for (int i = 0; i < CONTROL_FILE_MAX && rc == 0; i++)
		rc = state_read_file(fd, state_file_names[i], &files.files[i], err);
	close(fd);
	if (rc == 0 && files.files[CONTROL_FILE_ATTACHMENT].text == NULL)
		rc = error_set(err, ERROR_CORRUPT, "state: %s has no attachment.json", name);
	if (rc < 0) {
		control_state_free(&files);
		return -1;
	}
	*ret_files = files;
	return 0;
}

/* syscalls: faccessat faccessat2 */
int
control_state_retire(int dir_fd, const char *name, struct error *err)
{
	char old[STATE_PATH_MAX];

	snprintf(old, sizeof(old), STATE_OLD "%s", name);
	if (faccessat(dir_fd, old, F_OK, AT_SYMLINK_NOFOLLOW) == 0 && state_remove_dir(dir_fd, old, err) < 0)
		return -1;
	return state_rename(dir_fd, name, old, err);
}

int
control_state_unretire(int dir_fd, const char *name, struct error *err)
{
	char old[STATE_PATH_MAX];

	snprintf(old, sizeof(old), STATE_OLD "%s", name);
	return state_rename(dir_fd, old, name, err);
}

int
control_state_purge(int dir_fd, const char *name, struct error *err)
{
	char old[STATE_PATH_MAX];

	snprintf(old, sizeof(old), STATE_OLD "%s", name);
	return state_remove_dir(dir_fd, old, err);
}

/* One entry of the folder, in the first pass: finishes or undoes what was in progress. A name that came back is listed
 * in the second pass.
 * syscalls: faccessat faccessat2 */
static int
state_settle(int dir_fd, const char *entry, struct error *err)
{
	if (strncmp(entry, STATE_NEW, strlen(STATE_NEW)) == 0)
		return state_remove_dir(dir_fd, entry, err);
	if (strncmp(entry, STATE_OLD, strlen(STATE_OLD)) != 0)
		return 0;
	if (faccessat(dir_fd, entry + strlen(STATE_OLD), F_OK, AT_SYMLINK_NOFOLLOW) == 0)
		return state_remove_dir(dir_fd, entry, err);
	return state_rename(dir_fd, entry, entry + strlen(STATE_OLD), err);
}

/* Walks the folder once: settles, or lists when a handler is given. 1: an entry could not be settled, err has it.
 * syscalls: openat fcntl(F_GETFL) getdents64 */
static int
state_walk(int dir_fd, void (*handler)(const char *name, void *context), void *context, struct error *err)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *entry;
	int rc = 0;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return state_sys(err, errno, "read", "sandboxes");
	}
	while ((entry = readdir(dir)) != NULL) {
		if (handler != NULL && entry->d_name[0] != '.')
			handler(entry->d_name, context);
		else if (handler == NULL && state_settle(dir_fd, entry->d_name, err) < 0)
			rc = 1;
	}
	closedir(dir);
	return rc;
}

int
control_state_list(int dir_fd, void (*handler)(const char *name, void *context), void *context, struct error *err)
{
	int settled = state_walk(dir_fd, NULL, NULL, err);

	if (settled < 0 || state_walk(dir_fd, handler, context, err) < 0)
		return -1;
	return settled;
}

int
control_state_read_last_id(int dir_fd, int64_t *ret_id, struct error *err)
{
	struct control_text text;
	int64_t id = 0;

	if (state_read_file(dir_fd, STATE_LAST_ID, &text, err) < 0)
		return -1;
	if (text.text != NULL && sscanf(text.text, "%" SCNd64, &id) != 1) {
		free(text.text);
		return error_set(err, ERROR_CORRUPT, "state: " STATE_LAST_ID " does not contain a number");
	}
	free(text.text);
	*ret_id = id;
	return 0;
}

int
control_state_write_last_id(int dir_fd, int64_t id, struct error *err)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%" PRId64 "\n", id);

	return state_replace(dir_fd, STATE_LAST_ID, text, (size_t)len, err);
}
