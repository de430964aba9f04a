/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The same policy is compiled once; another one is not taken for it. */
#include "gateway/control/control_compile.h"
#include "gateway/shared/usage.h"

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

static void
more_counted_rules_than_can_be_kept_are_refused(void **state)
{
	static char text[64 * (USAGE_RULES_MAX + 2)];
	static struct control control;
	struct snapshot *snapshot = NULL;
	struct policy none;
	struct error err;
	size_t len = 0;
	int fd = -1;

	(void)state;
	policy_init(&none);
	len += (size_t)snprintf(text, sizeof(text), "version: 1\nallow:\n");
	for (int i = 0; i < USAGE_RULES_MAX; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "  - {host: h%d.example, uses: 1}\n", i);
	assert_int_equal(control_compile(&control, text, "a.yaml", 1, &none, &fd, &snapshot, &err), 0);
	snapshot_free(snapshot);
	close(fd);
	snprintf(text + len, sizeof(text) - len, "  - {host: more.example, uses: 1}\n");
	assert_int_equal(control_compile(&control, text, "a.yaml", 1, &none, &fd, &snapshot, &err), -1);
	assert_int_equal(err.code, ERROR_LIMIT);
	assert_non_null(strstr(err.text, "1025 rules have uses or limits; at most 1024 may"));
	assert_null(snapshot);
	close(control.compiled[0].fd);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(what_was_compiled_lately_is_not_compiled_again),
	    cmocka_unit_test(more_counted_rules_than_can_be_kept_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
