/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/input.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

char *
input_read(const char *path, size_t max, size_t *ret_len, struct error *err)
{
	FILE *file = strcmp(path, "-") == 0 ? stdin : fopen(path, "re");
	size_t size = 64 << 10, len = 0, got = 1;
	char *text = NULL, *larger;

	if (file == NULL) {
		error_sys(err, errno, "%s", path);
		return NULL;
	}
	while (got > 0 && len <= max) {
		if (text == NULL || size - len < 2) {
			size *= 2;
			larger = realloc(text, size);
			if (larger == NULL)
				break;
			text = larger;
		}
		got = fread(text + len, 1, size - len - 1, file);
		len += got;
	}
	if (ferror(file))
		error_sys(err, errno, "%s", path);
	else if (got > 0 && len <= max)
		error_sys(err, ENOMEM, "%s", path);
	else if (len > max)
		error_set(err, ERROR_LIMIT, "%s: larger than %zu bytes", path, max);
	if (ferror(file) || got > 0 || len > max) {
		free(text);
		text = NULL;
	} else {
		text[len] = '\0';
		*ret_len = len;
	}
	if (file != stdin)
		fclose(file);
	return text;
}
