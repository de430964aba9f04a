/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "policy/text/preset.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PRESET_SUFFIX ".yaml"
#define PRESET_FILE_MAX (POLICY_INCLUDE_NAME_MAX + sizeof(PRESET_SUFFIX))
#define PRESET_DIR_SYSTEM "/usr/share/postern/presets"

static int
dir_open(const char *path)
{
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The directory's path relative to the one that this program lies in. */
static void
dirs_add_beside(struct preset_dirs *dirs, const char *relative)
{
	char path[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path));
	char *slash = len <= 0 || (size_t)len == sizeof(path) ? NULL : memrchr(path, '/', (size_t)len);
	size_t room;
	int fd;

	if (slash == NULL)
		return;
	room = sizeof(path) - (size_t)(slash - path);
	if ((size_t)snprintf(slash, room, "/%s", relative) >= room)
		return;
	fd = dir_open(path);
	if (fd >= 0)
		dirs->fds[dirs->count++] = fd;
}

int
preset_dirs_open(const char *chosen, struct preset_dirs *ret_dirs, struct error *err)
{
	struct preset_dirs dirs = {.count = 0};
	int fd;

	if (chosen != NULL) {
		fd = dir_open(chosen);
		if (fd < 0)
			return error_sys(err, errno, "cannot open the directory of presets %s", chosen);
		dirs.fds[dirs.count++] = fd;
		*ret_dirs = dirs;
		return 0;
	}
	dirs_add_beside(&dirs, "../share/postern/presets");
	dirs_add_beside(&dirs, "../configs/presets");
	fd = dir_open(PRESET_DIR_SYSTEM);
	if (fd >= 0)
		dirs.fds[dirs.count++] = fd;
	*ret_dirs = dirs;
	return 0;
}

void
preset_dirs_close(struct preset_dirs *dirs)
{
	for (size_t i = 0; i < dirs->count; i++)
		close(dirs->fds[i]);
	dirs->count = 0;
}

static int
name_compare(const void *a, const void *b)
{
	return strcmp(a, b);
}

struct names {
	char (*names)[POLICY_INCLUDE_NAME_MAX];
	size_t count;
};

static void
names_add(struct names *names, const char *file)
{
	size_t len = strlen(file), suffix = strlen(PRESET_SUFFIX);

	if (names->count == PRESETS_MAX || len <= suffix || strcmp(file + len - suffix, PRESET_SUFFIX) != 0 ||
	    !policy_preset_is_name(file, len - suffix))
		return;
	for (size_t i = 0; i < names->count; i++)
		if (strlen(names->names[i]) == len - suffix && memcmp(names->names[i], file, len - suffix) == 0)
			return;
	memcpy(names->names[names->count++], file, len - suffix);
}

/* syscalls(control): openat fcntl(F_GETFL) fcntl(F_SETFD) getdents64 lseek */
static void
names_add_dir(struct names *names, int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *entry;

	if (dir == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while ((entry = readdir(dir)) != NULL)
		names_add(names, entry->d_name);
	closedir(dir);
}

int
preset_list(
    const struct preset_dirs *dirs, char (**ret_names)[POLICY_INCLUDE_NAME_MAX], size_t *ret_count, struct error *err)
{
	struct names names = {.names = calloc(PRESETS_MAX, sizeof(names.names[0]))};

	if (names.names == NULL)
		return error_set(err, ERROR_LIMIT, "no memory for the names of presets");
	for (size_t i = 0; dirs != NULL && i < dirs->count; i++)
		names_add_dir(&names, dirs->fds[i]);
	qsort(names.names, names.count, sizeof(names.names[0]), name_compare);
	*ret_names = names.names;
	*ret_count = names.count;
	return 0;
}

/* "no preset 'npn'; there are: crates, debian, npm" */
static int
complain_missing(const struct preset_dirs *dirs, const char *name, struct error *err)
{
	char known[ERROR_TEXT_MAX / 2] = "none";
	char(*names)[POLICY_INCLUDE_NAME_MAX];
	size_t count, len = 0;

	if (preset_list(dirs, &names, &count, err) < 0)
		return -1;
	for (size_t i = 0; i < count; i++) {
		const char *lead = i == 0 ? "" : ", ";

		if (len + strlen(lead) + strlen(names[i]) + sizeof(", ...") >= sizeof(known)) {
			memcpy(known + len, ", ...", sizeof(", ..."));
			break;
		}
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%s", lead, names[i]);
	}
	free(names);
	return error_set(err, ERROR_NOT_FOUND, "no preset '%s'; there are: %s", name, known);
}

/* syscalls(control): openat */
int
preset_text(const struct preset_dirs *dirs, const char *name, char **ret_text, size_t *ret_len, struct error *err)
{
	char file[PRESET_FILE_MAX], what[PRESET_FILE_MAX + sizeof("preset:")];
	int fd = -1, result;

	if (!policy_preset_is_name(name, strnlen(name, POLICY_INCLUDE_NAME_MAX)))
		return error_set(err, ERROR_USAGE, "a preset's name is of lower-case letters, digits and '-'");
	snprintf(file, sizeof(file), "%s" PRESET_SUFFIX, name);
	snprintf(what, sizeof(what), "preset:%s", file);
	for (size_t i = 0; dirs != NULL && i < dirs->count && fd < 0; i++) {
		fd = openat(dirs->fds[i], file, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
		if (fd < 0 && errno != ENOENT)
			return error_sys(err, errno, "cannot open %s", what);
	}
	if (fd < 0)
		return complain_missing(dirs, name, err);
	result = policy_file_load(fd, what, ret_text, ret_len, err);
	close(fd);
	return result;
}

int
preset_read(const struct preset_dirs *dirs, const char *name, struct policy *ret_policy, struct error *err)
{
	char what[PRESET_FILE_MAX + sizeof("preset:")], *text;
	struct policy policy = {.rules = NULL};
	size_t len;
	int result;

	if (preset_text(dirs, name, &text, &len, err) < 0)
		return -1;
	snprintf(what, sizeof(what), "preset:%s" PRESET_SUFFIX, name);
	result = policy_parse(text, len, what, &policy, err);
	free(text);
	if (result < 0)
		return -1;
	if (strcmp(policy.name, name) != 0) {
		policy_free(&policy);
		return error_set(err, ERROR_POLICY, "%s: its name is not '%s', as the file's is", what, name);
	}
	*ret_policy = policy;
	return 0;
}
