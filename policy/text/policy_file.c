/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies from files. */
#include "policy/text/policy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_SIZE_FIRST 65536

int
policy_file_load(int fd, const char *name, char **ret_text, size_t *ret_len, struct error *err)
{
	char *text = NULL, *grown;
	size_t size = 0, len = 0;
	ssize_t got;

	for (;;) {
		if (len + 1 >= size) {
			size = size == 0 ? READ_SIZE_FIRST : 2 * size;
			grown = realloc(text, size);
			if (grown == NULL) {
				free(text);
				return error_set(err, ERROR_LIMIT, "%s: no memory to read it", name);
			}
			text = grown;
		}
		got = read(fd, text + len, size - len - 1);
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0) {
			free(text);
			return error_sys(err, errno, "cannot read %s", name);
		}
		if (got == 0)
			break;
		len += (size_t)got;
		if (len > POLICY_FILE_MAX) {
			free(text);
			return error_set(err, ERROR_POLICY, "%s: larger than %u bytes", name, POLICY_FILE_MAX);
		}
	}
	text[len] = '\0';
	*ret_text = text;
	*ret_len = len;
	return 0;
}

int
policy_file_read(const char *path, struct policy *ret_policy, struct error *err)
{
	return policy_file_read_noted(path, ret_policy, NULL, err);
}

int
policy_file_read_noted(const char *path, struct policy *ret_policy, struct policy_notes *notes, struct error *err)
{
	bool is_stdin = strcmp(path, "-") == 0;
	const char *name = is_stdin ? "stdin" : path;
	int fd = is_stdin ? STDIN_FILENO : open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY), result;
	char *text = NULL;
	size_t len = 0;

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR))
		return error_set(err, ERROR_NOT_FOUND, "no policy file %s", name);
	if (fd < 0)
		return error_sys(err, errno, "cannot open %s", name);
	result = policy_file_load(fd, name, &text, &len, err);
	if (!is_stdin)
		close(fd);
	if (result == 0)
		result = policy_parse_noted(text, len, name, ret_policy, notes, err);
	free(text);
	return result;
}
