/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The log's files: their names, their lock, and what to do with a file that cannot be used.
 *
 * What SQLite asks of the kernel for them: the database, its write-ahead log, and a journal while it changes modes.
 * syscalls(auditor): openat fcntl(F_SETLK) fcntl(F_GETLK) pread64 pwrite64 fdatasync fsync ftruncate fallocate lseek
 * syscalls(auditor): unlink unlinkat access faccessat2 lstat readlink readlinkat getcwd fchmod fchown geteuid getpid
 * syscalls(auditor): gettimeofday poll */
#include "audit/store/store_file.h"

#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <libgen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const store_file_suffixes[STORE_FILE_PARTS] = {"", "-wal", "-shm"};

/* The group reads with the command line; nobody else. */
#define STORE_FILE_MODE 0640

/* Writes base and suffix to a path. 0 or -ENAMETOOLONG. */
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

static const char *const store_mark_words[] = {"", "open", "closed", "unsynced", "damaged"};
_Static_assert(sizeof(store_mark_words) / sizeof(store_mark_words[0]) == STORE_MARK_MAX, "a word for each mark");

/* The mark's line in the lock file, of constant length so that no shorter one leaves an end of a longer one. */
#define STORE_MARK_LINE 160

/* The line that belongs to a mark now. */
static void
store_file_mark_line(const struct store_file *file, enum store_mark mark, char ret_line[STORE_MARK_LINE + 1])
{
	struct stat parts[2] = {0};
	char path[PATH_MAX], text[STORE_MARK_LINE] = "";

	for (size_t i = 0; i < 2; i++)
		if (store_file_path(path, file->path, store_file_suffixes[i]) < 0 || stat(path, &parts[i]) < 0)
			memset(&parts[i], 0, sizeof(parts[i]));
	if (mark == STORE_MARK_CLOSED)
		snprintf(text, sizeof(text), " %ju %jd %jd.%09ld %jd %jd.%09ld", (uintmax_t)parts[0].st_ino,
		    (intmax_t)parts[0].st_size, (intmax_t)parts[0].st_mtim.tv_sec, parts[0].st_mtim.tv_nsec,
		    (intmax_t)parts[1].st_size, (intmax_t)parts[1].st_mtim.tv_sec, parts[1].st_mtim.tv_nsec);
	snprintf(ret_line, STORE_MARK_LINE + 1, "%s%-*.*s", store_mark_words[mark],
	    STORE_MARK_LINE - 1 - (int)strlen(store_mark_words[mark]), STORE_MARK_LINE - 1, text);
	ret_line[STORE_MARK_LINE - 1] = '\n';
	ret_line[STORE_MARK_LINE] = '\0';
}

/* The line behind it: the newest number, and the chain's head in hex. */
#define STORE_NOTE_LINE (20 + 1 + 2 * CHAIN_DIGEST + 1)

/* syscalls: pwrite64 */
void
store_file_note(struct store_file *file, const struct insert_state *state)
{
	char line[STORE_NOTE_LINE + 1];
	size_t len;

	if (state->seq == file->noted.seq)
		return;
	len = (size_t)snprintf(line, sizeof(line), "%020" PRId64 " ", state->seq);
	for (size_t i = 0; i < CHAIN_DIGEST; i++)
		len += (size_t)snprintf(line + len, sizeof(line) - len, "%02x", state->head[i]);
	line[len++] = '\n';
	if (pwrite(file->lock_fd, line, len, STORE_MARK_LINE) == (ssize_t)len)
		file->noted = *state;
}

/* What is not such a line tells nothing.
 * syscalls: pread64 */
static void
store_file_read_note(struct store_file *file)
{
	char line[STORE_NOTE_LINE + 1] = "";
	struct insert_state noted;
	int at = 0;

	file->noted = (struct insert_state){.seq = 0};
	if (pread(file->lock_fd, line, STORE_NOTE_LINE, STORE_MARK_LINE) != STORE_NOTE_LINE ||
	    sscanf(line, "%20" SCNd64 " %n", &noted.seq, &at) != 1 || at != 21)
		return;
	for (size_t i = 0; i < CHAIN_DIGEST; i++)
		if (sscanf(line + at + 2 * i, "%2hhx", &noted.head[i]) != 1)
			return;
	file->noted = noted;
}

/* Anything that is not a mark of ours counts as OPEN, which is the careful answer.
 * syscalls: pread64 */
static enum store_mark
store_file_read_mark(const struct store_file *file)
{
	char line[STORE_MARK_LINE + 1] = "", now[STORE_MARK_LINE + 1];
	ssize_t n = pread(file->lock_fd, line, STORE_MARK_LINE, 0);

	if (n == 0)
		return STORE_MARK_NONE;
	for (enum store_mark mark = STORE_MARK_CLOSED; mark < STORE_MARK_MAX; mark++) {
		store_file_mark_line(file, mark, now);
		if (n == STORE_MARK_LINE && memcmp(line, now, STORE_MARK_LINE) == 0)
			return mark;
	}
	return STORE_MARK_OPEN;
}

/* syscalls: openat flock */
int
store_file_lock(struct store_file *file, const char *path, struct error *err)
{
	char lock[PATH_MAX];

	file->lock_fd = -1;
	if (store_file_resolve(file, path, err) < 0)
		return -1;
	if (store_file_path(lock, file->path, ".lock") < 0)
		return error_sys(err, ENAMETOOLONG, "%s.lock", file->path);
	file->lock_fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, STORE_FILE_MODE);
	if (file->lock_fd < 0)
		return error_sys(err, errno, "%s", lock);
	if (flock(file->lock_fd, LOCK_EX | LOCK_NB) == 0) {
		file->mark = store_file_read_mark(file);
		store_file_read_note(file);
		return 0;
	}
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

/* syscalls: pwrite64 fdatasync */
void
store_file_leave(struct store_file *file, enum store_mark mark)
{
	char line[STORE_MARK_LINE + 1];

	store_file_mark_line(file, mark, line);
	/* Synced, or a power cut could bring back that it was closed. */
	if (pwrite(file->lock_fd, line, STORE_MARK_LINE, 0) == STORE_MARK_LINE && fdatasync(file->lock_fd) == 0)
		file->mark = mark;
}

int64_t
store_file_size(const struct store_file *file)
{
	char path[PATH_MAX];
	struct stat st;
	int64_t size = 0;

	for (size_t i = 0; i < 2; i++)
		if (store_file_path(path, file->path, store_file_suffixes[i]) == 0 && stat(path, &st) == 0)
			size += st.st_size;
	return size;
}

/* A name that nothing has yet.
 * syscalls: access faccessat2 */
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

/* syscalls: access faccessat2 */
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

/* syscalls: rename renameat ftruncate */
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
	/* Whatever is at the path from now on is not what there was. */
	if (ftruncate(file->lock_fd, 0) == 0)
		file->mark = STORE_MARK_NONE;
	file->noted.seq = 0;
	opening->replaced = true;
	snprintf(opening->why, sizeof(opening->why), "%s", why);
	snprintf(opening->moved_to, sizeof(opening->moved_to), "%s", aside);
	return 0;
}

/* syscalls: openat fchmod */
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
	} else if (file->mark != STORE_MARK_NONE && !opening->replaced) {
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
