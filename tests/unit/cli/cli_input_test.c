/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Files read whole, and paths made absolute. */
#include "cli/command.h"
#include "cli/input.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

/* A new file with so many bytes. */
static const char *
file_of(size_t size)
{
	static char path[] = "/tmp/postern-input-XXXXXX";
	FILE *file;
	int fd;

	memcpy(strrchr(path, '-'), "-XXXXXX", 7);
	fd = mkstemp(path);
	assert_true(fd >= 0);
	file = fdopen(fd, "w");
	for (size_t i = 0; i < size; i++)
		fputc('a' + (int)(i % 26), file);
	fclose(file);
	return path;
}

static void
a_file_up_to_the_limit_is_read(void **state)
{
	static const size_t sizes[] = {0, 1, 131070, 131071, 131072, 300000};

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		const char *path = file_of(sizes[i]);
		struct error err;
		size_t len = 77;
		char *text = input_read(path, 300000, &len, &err);

		if (text == NULL)
			fail_msg("%zu bytes: %s", sizes[i], err.text);
		assert_int_equal(len, sizes[i]);
		assert_int_equal(text[len], '\0');
		assert_true(len == 0 || text[len - 1] == (char)('a' + (int)((len - 1) % 26)));
		free(text);
		if (sizes[i] > 0) {
			assert_null(input_read(path, sizes[i] - 1, &len, &err));
			assert_int_equal(err.code, ERROR_LIMIT);
		}
		unlink(path);
	}
}

static void
what_cannot_be_read_says_why(void **state)
{
	struct error err;
	size_t len;

	(void)state;
	assert_null(input_read("/nonexistent/x", 10, &len, &err));
	assert_string_equal(err.text, "/nonexistent/x: No such file or directory");
	assert_null(input_read("/tmp", 10, &len, &err));
	assert_string_equal(err.text, "/tmp: Is a directory");
}

static void
paths_are_made_absolute(void **state)
{
	char path[PATH_MAX], longest[PATH_MAX + 1];

	(void)state;
	assert_int_equal(chdir("/tmp"), 0);
	assert_int_equal(command_absolute("/a/b", path), 0);
	assert_string_equal(path, "/a/b");
	assert_int_equal(command_absolute("a/b", path), 0);
	assert_string_equal(path, "/tmp/a/b");
	assert_int_equal(command_absolute("", path), -1);
	memset(longest, 'a', sizeof(longest));
	longest[PATH_MAX] = '\0';
	assert_int_equal(command_absolute(longest, path), -1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_file_up_to_the_limit_is_read),
	    cmocka_unit_test(what_cannot_be_read_says_why),
	    cmocka_unit_test(paths_are_made_absolute),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
