/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Every code point, in every length that could hold it: only the shortest form of a character is one. */
#include "base/utf8.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void
encode(uint32_t point, size_t size, unsigned char ret_bytes[4])
{
	static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};

	for (size_t i = size - 1; i > 0; i--, point >>= 6)
		ret_bytes[i] = (unsigned char)(0x80 | (point & 0x3f));
	ret_bytes[0] = (unsigned char)(leads[size] | point);
}

static void
only_the_shortest_form_is_a_character(void **state)
{
	static const uint32_t ends[] = {0, 0x80, 0x800, 0x10000, 0x200000};
	uint32_t got = 0;

	(void)state;
	for (uint32_t point = 0; point < 0x200000; point++) {
		for (size_t size = 1; size <= 4; size++) {
			bool good = point >= ends[size - 1] && point <= 0x10ffff && (point < 0xd800 || point > 0xdfff);
			unsigned char bytes[4];

			if (point >= ends[size])
				continue;
			encode(point, size, bytes);
			assert_int_equal(utf8_decode(bytes, size, &got), good ? size : 0);
			if (!good)
				continue;
			assert_int_equal(got, point);
			if (size > 1)
				assert_int_equal(utf8_decode(bytes, size - 1, &got), 0);
		}
	}
}

static void
other_bytes_are_none(void **state)
{
	static const unsigned char bad[][4] = {{0x80, 0x80}, {0xbf, 0xbf}, {0xc2, 'a'}, {0xe2, 0x82, 'a'},
	    {0xf8, 0x88, 0x80, 0x80}, {0xff, 0xff, 0xff, 0xff}};
	uint32_t point;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(utf8_decode(bad[i], sizeof(bad[i]), &point), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(only_the_shortest_form_is_a_character),
	    cmocka_unit_test(other_bytes_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
