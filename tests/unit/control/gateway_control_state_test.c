/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_state.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

struct folder {
	char path[64];
	int fd;
	char names[256];
};

static int
setup(void **state)
{
	struct folder *folder = calloc(1, sizeof(*folder));
	struct error err;

	snprintf(folder->path, sizeof(folder->path), "/tmp/postern-state.XXXXXX");
	assert_non_null(mkdtemp(folder->path));
	assert_int_equal(control_state_open(folder->path, &folder->fd, &err), 0);
	*state = folder;
	return 0;
}

static int
teardown(void **state)
{
	struct folder *folder = *state;
	char command[128];

	close(folder->fd);
	snprintf(command, sizeof(command), "rm -rf %s", folder->path);
	assert_int_equal(system(command), 0);
	free(folder);
	return 0;
}

static char attachment[] = "{}", policy[] = "version: 1\n", edits[] = "version: 1\nallow: []\n";

static void
create(struct folder *folder, const char *name)
{
	struct control_files files = {.files = {{attachment, strlen(attachment)}, {policy, strlen(policy)}, {NULL, 0}}};
	struct error err;

	assert_int_equal(control_state_create(folder->fd, name, &files, &err), 0);
}

static void
collect(const char *name, void *context)
{
	struct folder *folder = context;

	strcat(folder->names, name);
	strcat(folder->names, " ");
}

static const char *
list(struct folder *folder)
{
	struct error err;

	folder->names[0] = '\0';
	assert_int_equal(control_state_list(folder->fd, collect, folder, &err), 0);
	return folder->names;
}

static void
files_come_back_as_written(void **state)
{
	struct folder *folder = *state;
	struct control_files files;
	struct error err;

	create(folder, "vm1");
	assert_int_equal(control_state_write(folder->fd, "vm1", CONTROL_FILE_EDITS, edits, strlen(edits), &err), 0);
	assert_int_equal(control_state_read(folder->fd, "vm1", &files, &err), 0);
	assert_string_equal(files.files[CONTROL_FILE_ATTACHMENT].text, attachment);
	assert_string_equal(files.files[CONTROL_FILE_POLICY].text, policy);
	assert_string_equal(files.files[CONTROL_FILE_EDITS].text, edits);
	control_state_free(&files);
	assert_true(control_state_holds(folder->fd, "vm1", CONTROL_FILE_EDITS, edits, strlen(edits)));
	assert_false(control_state_holds(folder->fd, "vm1", CONTROL_FILE_EDITS, edits, strlen(edits) - 1));
	assert_false(control_state_holds(folder->fd, "vm1", CONTROL_FILE_USAGE, "", 0)); /* it is not there */
	assert_false(control_state_holds(folder->fd, "vm2", CONTROL_FILE_EDITS, edits, strlen(edits)));
	assert_int_equal(control_state_write(folder->fd, "vm1", CONTROL_FILE_POLICY, NULL, 0, &err), 0);
	assert_int_equal(control_state_read(folder->fd, "vm1", &files, &err), 0);
	assert_null(files.files[CONTROL_FILE_POLICY].text);
	control_state_free(&files);
	assert_int_equal(control_state_read(folder->fd, "vm2", &files, &err), -1);
	assert_int_equal(err.code, ERROR_NOT_FOUND);
}

static void
a_name_is_taken_once(void **state)
{
	struct folder *folder = *state;
	struct control_files files = {.files = {{attachment, strlen(attachment)}}};
	struct error err;

	create(folder, "vm1");
	assert_int_equal(control_state_create(folder->fd, "vm1", &files, &err), -1);
	assert_int_equal(err.code, ERROR_EXISTS);
	assert_string_equal(list(folder), "vm1 ");
}

static void
what_was_under_way_is_settled(void **state)
{
	struct folder *folder = *state;
	struct error err;

	/* A detach that the kernel never heard of is undone; one that ended is forgotten. */
	create(folder, "vm1");
	assert_int_equal(control_state_retire(folder->fd, "vm1", &err), 0);
	assert_string_equal(list(folder), "vm1 ");
	assert_int_equal(control_state_retire(folder->fd, "vm1", &err), 0);
	assert_int_equal(control_state_unretire(folder->fd, "vm1", &err), 0);
	assert_int_equal(control_state_retire(folder->fd, "vm1", &err), 0);
	assert_int_equal(control_state_purge(folder->fd, "vm1", &err), 0);
	assert_string_equal(list(folder), "");
	/* An attach that did not get as far as its name leaves nothing. */
	create(folder, "vm2");
	assert_int_equal(renameat(folder->fd, "vm2", folder->fd, ".new-vm2"), 0);
	assert_string_equal(list(folder), "");
	assert_int_equal(faccessat(folder->fd, ".new-vm2", F_OK, 0), -1);
}

static void
case_F_32_links_and_foreign_folders_are_refused(void **state)
{
	struct folder *folder = *state;
	struct control_files files;
	struct error err;
	int fd;

	create(folder, "vm1");
	assert_int_equal(symlinkat("vm1", folder->fd, "vm2"), 0);
	assert_int_equal(control_state_read(folder->fd, "vm2", &files, &err), -1);
	assert_int_equal(fchmodat(folder->fd, "vm1", 0777, 0), 0);
	assert_int_equal(control_state_read(folder->fd, "vm1", &files, &err), -1);
	assert_int_equal(err.code, ERROR_CORRUPT);
	assert_int_equal(fchmodat(folder->fd, "vm1", 0700, 0), 0);
	fd = openat(folder->fd, "vm1", O_RDONLY | O_DIRECTORY);
	assert_int_equal(unlinkat(fd, "policy.yaml", 0), 0);
	assert_int_equal(mkfifoat(fd, "policy.yaml", 0600), 0);
	close(fd);
	assert_int_equal(control_state_read(folder->fd, "vm1", &files, &err), -1);
}

static void
ids_are_remembered(void **state)
{
	struct folder *folder = *state;
	struct error err;
	int64_t id = 1;

	assert_int_equal(control_state_read_last_id(folder->fd, &id, &err), 0);
	assert_int_equal(id, 0);
	assert_int_equal(control_state_write_last_id(folder->fd, INT64_C(1795985850342613), &err), 0);
	assert_int_equal(control_state_read_last_id(folder->fd, &id, &err), 0);
	assert_int_equal(id, INT64_C(1795985850342613));
	assert_string_equal(list(folder), "");
}

#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    TEST(files_come_back_as_written),
	    TEST(a_name_is_taken_once),
	    TEST(what_was_under_way_is_settled),
	    TEST(case_F_32_links_and_foreign_folders_are_refused),
	    TEST(ids_are_remembered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
