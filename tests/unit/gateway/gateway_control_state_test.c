/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_compile.h"
#include "gateway/control/control_config.h"
#include "gateway/control/control_edits.h"
#include "gateway/control/control_sandbox.h"
#include "gateway/control/control_state.h"
#include "gateway/control/control_explain.h"

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

/* -- attachment.json ----------------------------------------------------------------------------------------------- */

static void
an_attachment_comes_back_as_stored(void **state)
{
	struct control_sandbox *one = control_sandbox_new("box1"), *two = control_sandbox_new("box1");
	struct error err;
	char *text;

	(void)state;
	one->id = 17;
	one->uid = 1000;
	one->config.kind = TAP_KIND_NETNS;
	snprintf(one->config.ifname, sizeof(one->config.ifname), "net1");
	assert_true(addr_parse("172.20.1.9", strlen("172.20.1.9"), &one->config.guest4));
	assert_true(addr_parse("172.20.1.1", strlen("172.20.1.1"), &one->config.router4));
	one->config.bits4 = 24;
	memcpy(one->config.guest_mac, "\x06\x01\x02\x03\x04\xff", 6);
	snprintf(one->netns_source, sizeof(one->netns_source), "/run/netns/a \"b\"");
	one->netns_dev = 4;
	one->netns_ino = 4026531840;
	one->generation = 3;
	one->last_generation = 5;
	snprintf(one->hash, sizeof(one->hash), "abc");
	snprintf(one->policy_file, sizeof(one->policy_file), "p.yaml");
	text = control_config_format_attachment(one);
	assert_int_equal(control_config_parse_attachment(two, text, strlen(text), &err), 0);
	assert_memory_equal(&one->config.guest4, &two->config.guest4, sizeof(one->config.guest4));
	assert_memory_equal(&one->config.router6, &two->config.router6, sizeof(one->config.router6));
	assert_memory_equal(one->config.guest_mac, two->config.guest_mac, 6);
	assert_string_equal(two->config.ifname, "net1");
	assert_string_equal(two->netns_source, "/run/netns/a \"b\"");
	assert_int_equal(two->id, 17);
	assert_int_equal(two->netns_ino, 4026531840);
	assert_int_equal(two->generation, 3);
	assert_int_equal(two->last_generation, 5);
	assert_string_equal(two->policy_file, "p.yaml");
	free(text);
	control_sandbox_free(one);
	control_sandbox_free(two);
}

static void
a_damaged_attachment_is_refused(void **state)
{
	struct control_sandbox *good = control_sandbox_new("vm1");
	struct error err;
	char *text;

	(void)state;
	good->id = 17;
	text = control_config_format_attachment(good);
	for (size_t len = 0; len < strlen(text); len++) {
		struct control_sandbox *cut = control_sandbox_new("vm1");

		/* Cut anywhere it is no JSON object any more. */
		assert_int_equal(control_config_parse_attachment(cut, text, len, &err), -1);
		assert_int_equal(err.code, ERROR_CORRUPT);
		assert_int_equal(cut->id, 0);
		control_sandbox_free(cut);
	}
	control_sandbox_free(good);
	good = control_sandbox_new("other"); /* copied from another folder */
	assert_int_equal(control_config_parse_attachment(good, text, strlen(text), &err), -1);
	control_sandbox_free(good);
	free(text);
}

/* -- edits.yaml ---------------------------------------------------------------------------------------------------- */

static void
edits_keep_who_made_them(void **state)
{
	static const char *const allow[] = {"example.com", "*.x.org:22,443", "[2600::1]:443", "t.org:5000/udp"};
	static const char *const deny[] = {"example.com"};
	struct policy made = {0}, read = {0};
	struct error err;
	size_t changed = 0;
	char *text;

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		json_t *words = json_pack("[s]", allow[i]);

		assert_int_equal(
		    control_edits_add(&made, RULE_ALLOW, words, NULL, (uint32_t)(1000 + i), &changed, NULL, &err), 0);
		json_decref(words);
	}
	{
		json_t *words = json_pack("[s]", deny[0]);

		assert_int_equal(control_edits_add(&made, RULE_DENY, words, NULL, 0, &changed, NULL, &err), 0);
		json_decref(words);
	}
	assert_int_equal(changed, 5);
	text = control_edits_format(&made);
	assert_int_equal(control_edits_parse(text, strlen(text), &read, &err), 0);
	assert_int_equal(read.rule_count, 5);
	for (size_t i = 0; i < read.rule_count; i++) {
		assert_true(rule_equal(&read.rules[i], &made.rules[i]));
		assert_string_equal(read.rules[i].origin, made.rules[i].origin);
	}
	assert_string_equal(read.rules[4].origin, "edit by uid 0");
	free(text);
	policy_free(&made);
	policy_free(&read);
}

static void
edits_that_are_no_text_are_refused(void **state)
{
	static const char nul[] = "version: 1\nallow: []\n\0deny: []\n";
	struct policy read = {0};
	struct error err;

	(void)state;
	assert_int_equal(control_edits_parse(nul, sizeof(nul) - 1, &read, &err), -1);
	assert_int_equal(control_edits_parse("allow: [", 8, &read, &err), -1);
}

/* -- targets ------------------------------------------------------------------------------------------------------- */

static void
targets_are_read(void **state)
{
	static const struct {
		const char *text;
		int rc;
		bool is_addr;
		uint8_t proto;
		uint16_t port;
		enum name_error name_error;
	} rows[] = {
	    {"example.com", 0, false, IPPROTO_TCP, 443, NAME_OK},
	    {"example.com:22", 0, false, IPPROTO_TCP, 22, NAME_OK},
	    {"example.com:5000/udp", 0, false, IPPROTO_UDP, 5000, NAME_OK},
	    {"45.45.45.1", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"45.45.45.1:22/tcp", 0, true, IPPROTO_TCP, 22, NAME_OK},
	    {"2600::1", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"[2600::1]:8443", 0, true, IPPROTO_TCP, 8443, NAME_OK},
	    {"[2600::1]", 0, true, IPPROTO_TCP, 443, NAME_OK},
	    {"a..b", 0, false, IPPROTO_TCP, 443, NAME_EMPTY_LABEL},
	    {"0x7f.1", 0, false, IPPROTO_TCP, 443, NAME_NUMERIC},
	    {"", -1, false, 0, 0, NAME_OK},
	    {"example.com:", -1, false, 0, 0, NAME_OK},
	    {"example.com:0", -1, false, 0, 0, NAME_OK},
	    {"example.com:65536", -1, false, 0, 0, NAME_OK},
	    {"example.com:-1", -1, false, 0, 0, NAME_OK},
	    {"[2600::1", -1, false, 0, 0, NAME_OK},
	    {"[2600::1]x", -1, false, 0, 0, NAME_OK},
	    {"[", -1, false, 0, 0, NAME_OK},
	    {"[]", -1, false, 0, 0, NAME_OK},
	};
	struct control_target target;
	struct error err;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(control_explain_parse_target(rows[i].text, &target, &err), rows[i].rc);
		if (rows[i].rc < 0)
			continue;
		assert_int_equal(target.is_addr, rows[i].is_addr);
		assert_int_equal(target.proto, rows[i].proto);
		assert_int_equal(target.port, rows[i].port);
		assert_int_equal(target.name_error, rows[i].name_error);
	}
}

static void
equal_texts_are_one(void **state)
{
	char text[] = "version: 1\n";
	const char *one = control_sandbox_share_text(text), *two, *other = control_sandbox_share_text("version: 2\n");

	(void)state;
	assert_ptr_not_equal(one, text);
	text[0] = 'V'; /* it is a copy */
	two = control_sandbox_share_text("version: 1\n");
	assert_ptr_equal(one, two);
	assert_ptr_not_equal(one, other);
	control_sandbox_release_text(one);
	assert_string_equal(two, "version: 1\n");
	control_sandbox_release_text(two);
	control_sandbox_release_text(other);
	control_sandbox_release_text(NULL);
	assert_null(control_sandbox_share_text(NULL));
}

static ino_t
inode_of(int fd)
{
	struct stat st;

	assert_true(fd >= 0 && fstat(fd, &st) == 0);
	close(fd);
	return st.st_ino;
}

/* Compile, and say which memfd came out. */
static ino_t
compile(struct control *control, const char *text, const char *file, int64_t applied_us, const struct policy *live)
{
	struct snapshot *snapshot;
	struct error err;
	int fd;

	if (control_compile(control, text, file, applied_us, live, &fd, &snapshot, &err) < 0)
		fail_msg("%s", err.text);
	snapshot_free(snapshot);
	return inode_of(fd);
}

static void
what_was_compiled_lately_is_not_compiled_again(void **state)
{
	static const char text[] = "version: 1\nallow:\n  - host: one.example\n";
	static const char passing[] = "version: 1\nallow:\n  - {host: one.example, expires: 2h}\n";
	static const char including[] = "version: 1\ninclude: [preset:npm]\n";
	static struct control control;
	struct policy none, live;
	struct rule rule;
	struct error err;
	ino_t first;
	char other[64];

	(void)state;
	policy_init(&none);
	policy_init(&live);
	assert_int_equal(rule_parse(RULE_DENY, "two.example", &rule, &err), 0);
	assert_int_equal(policy_add(&live, &rule, &err), 0);
	first = compile(&control, text, "a.yaml", 1, &none);
	assert_int_equal(compile(&control, text, "a.yaml", 2, &none), first);
	/* Another file's name stands in the rules' origins; edits are rules. */
	assert_int_not_equal(compile(&control, text, "b.yaml", 1, &none), first);
	assert_int_not_equal(compile(&control, text, "a.yaml", 1, &live), first);
	assert_int_not_equal(compile(&control, NULL, "a.yaml", 1, &none), first);
	/* What ends two hours after it came is another policy each time. */
	first = compile(&control, passing, "a.yaml", 1, &none);
	assert_int_not_equal(compile(&control, passing, "a.yaml", 2, &none), first);
	/* Presets may be other ones tomorrow; but while they are not, the block is the same. */
	assert_int_equal(preset_dirs_open("configs/presets", &control.presets, &err), 0);
	first = compile(&control, including, "a.yaml", 1, &none);
	assert_int_equal(compile(&control, including, "a.yaml", 2, &none), first);
	assert_int_equal(compile(&control, text, "c.yaml", 1, &none), compile(&control, text, "c.yaml", 1, &none));
	preset_dirs_close(&control.presets);
	/* The oldest goes, the one asked for lately stays. */
	first = compile(&control, text, "a.yaml", 1, &none);
	for (int i = 0; i < 2 * CONTROL_COMPILED_MAX; i++) {
		snprintf(other, sizeof(other), "version: 1\nallow:\n  - host: host%d.example\n", i);
		compile(&control, other, "a.yaml", 1, &none);
		assert_int_equal(compile(&control, text, "a.yaml", 1, &none), first);
	}
	assert_int_equal(control.compiled_count, CONTROL_COMPILED_MAX);
	for (size_t i = 0; i < control.compiled_count; i++)
		close(control.compiled[i].fd);
	policy_free(&live);
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
	    cmocka_unit_test(an_attachment_comes_back_as_stored),
	    cmocka_unit_test(a_damaged_attachment_is_refused),
	    cmocka_unit_test(edits_keep_who_made_them),
	    cmocka_unit_test(edits_that_are_no_text_are_refused),
	    cmocka_unit_test(targets_are_read),
	    cmocka_unit_test(equal_texts_are_one),
	    cmocka_unit_test(what_was_compiled_lately_is_not_compiled_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
