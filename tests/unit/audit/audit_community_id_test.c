/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Community ID: figures of the specification's reference implementation, seed 0. */
#include "audit/store/community_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static struct addr
addr(const char *text)
{
	struct addr ret = {.family = 0};

	if (text[0] != '\0')
		assert_true(addr_parse(text, strlen(text), &ret));
	return ret;
}

static void
test_vectors(void **state)
{
	static const struct {
		const char *src, *dst;
		uint16_t sport, dport;
		uint8_t proto;
		const char *id;
	} cases[] = {
	    {"128.232.110.120", "66.35.250.204", 34855, 80, 6, "1:LQU9qZlK+B5F3KDmev6m5PMibrg="},
	    {"192.168.1.52", "8.8.8.8", 54585, 53, 17, "1:d/FP5EW3wiY1vCndhwleRRKHowQ="},
	    {"192.168.170.8", "192.168.170.56", 7, 80, 132, "1:jQgCxbku+pNGw8WPbEc/TS/uTpQ="},
	    {"2001:470:e5bf:dead:4957:2174:e82c:4887", "2607:f8b0:400c:c03::1a", 63943, 25, 6,
		"1:/qFaeAR+gFe1KYjMzVDsMv+wgU4="},
	};
	char id[COMMUNITY_ID_MAX];

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct addr src = addr(cases[i].src), dst = addr(cases[i].dst);

		assert_true(community_id(&src, cases[i].sport, &dst, cases[i].dport, cases[i].proto, id));
		assert_string_equal(id, cases[i].id);
		/* Whichever end is the source. */
		assert_true(community_id(&dst, cases[i].dport, &src, cases[i].sport, cases[i].proto, id));
		assert_string_equal(id, cases[i].id);
	}
}

static void
test_none(void **state)
{
	struct addr v4 = addr("192.0.2.1"), v6 = addr("2001:db8::1"), none = addr("");
	char id[COMMUNITY_ID_MAX] = "x";

	(void)state;
	assert_false(community_id(&v4, 1, &v6, 2, 6, id));
	assert_string_equal(id, "");
	assert_false(community_id(&v4, 1, &none, 2, 6, id));
	assert_false(community_id(&none, 1, &none, 2, 6, id));
	assert_false(community_id(&v4, 8, &v4, 0, 1, id));
	assert_false(community_id(&v6, 128, &v6, 0, 58, id));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_vectors),
	    cmocka_unit_test(test_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
