/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/error.h"
#include "base/escape.h"
#include "base/paths.h"
#include "base/reader.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void
case_F_28_nothing_but_printable_ascii_is_left(void **state)
{
	static const char hostile[] = "\x1b]0;x\x07\r\n\x9b"
				      "e\xe2\x80\xae\\";
	uint8_t all[256];
	char text[1100];

	(void)state;
	escape_terminal(hostile, sizeof(hostile) - 1, text, sizeof(text));
	assert_string_equal(text, "\\x1b]0;x\\x07\\x0d\\x0a\\x9be\\xe2\\x80\\xae\\x5c");
	for (size_t i = 0; i < sizeof(all); i++)
		all[i] = (uint8_t)i;
	escape_terminal(all, sizeof(all), text, sizeof(text));
	for (const char *c = text; *c != '\0'; c++)
		assert_true(*c >= 0x20 && *c <= 0x7e);
}

static void
an_escape_is_never_cut_in_half(void **state)
{
	char text[6];

	(void)state;
	assert_int_equal(escape_terminal("\x01\x02", 2, text, sizeof(text)), 4);
	assert_string_equal(text, "\\x01");
	assert_int_equal(escape_terminal("abcdefgh", 8, text, sizeof(text)), 5);
	assert_string_equal(text, "abcde");
}

static void
a_failed_reader_stays_failed(void **state)
{
	static const uint8_t bytes[] = {0x01, 0x02, 0x03, 0x04, 0x05};
	struct reader r = reader_make(bytes, sizeof(bytes)), sub;

	(void)state;
	assert_int_equal(reader_u16(&r), 0x0102);
	sub = reader_sub(&r, 2);
	assert_int_equal(reader_u16(&sub), 0x0304);
	assert_true(reader_done(&sub));
	assert_int_equal(reader_left(&r), 1);
	assert_int_equal(reader_u16(&r), 0);
	assert_false(reader_ok(&r));
	assert_int_equal(reader_u8(&r), 0); /* though one byte is left */
	assert_int_equal(reader_left(&r), 0);
	assert_null(reader_bytes(&r, 0));
	r = reader_make(bytes, sizeof(bytes));
	sub = reader_sub(&r, 6);
	assert_false(reader_ok(&sub));
	assert_false(reader_ok(&r));
	r = reader_make(bytes, sizeof(bytes));
	assert_int_equal(reader_u24(&r), 0x010203);
	assert_false(reader_done(&r));
}

static void
errors_gain_context_on_the_way_up(void **state)
{
	struct error err;

	(void)state;
	assert_int_equal(error_sys(&err, EACCES, "open %s", "/x"), -1);
	assert_int_equal(err.code, ERROR_PERMISSION);
	error_prefix(&err, "sandbox %s", "a");
	assert_string_equal(err.text, "sandbox a: open /x: Permission denied");
	assert_int_equal(error_exit_status(err.code), 4);
	for (unsigned int code = 0; code < ERROR_CODE_MAX; code++)
		assert_int_equal(error_code_parse(error_code_text((enum error_code)code)), code);
	assert_int_equal(error_set(NULL, ERROR_USAGE, "x"), -1);
}

static void
directories_follow_the_environment(void **state)
{
	(void)state;
	setenv("POSTERN_RUNTIME_DIR", "/a/b", 1);
	setenv("POSTERN_STATE_DIR", "relative-is-ignored", 1);
	setenv("XDG_STATE_HOME", "/s", 1);
	assert_string_equal(paths_runtime_dir(), "/a/b");
	assert_string_equal(paths_own_state_dir(), geteuid() == 0 ? "/var/lib/postern" : "/s/postern");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_F_28_nothing_but_printable_ascii_is_left),
	    cmocka_unit_test(an_escape_is_never_cut_in_half),
	    cmocka_unit_test(a_failed_reader_stays_failed),
	    cmocka_unit_test(errors_gain_context_on_the_way_up),
	    cmocka_unit_test(directories_follow_the_environment),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
