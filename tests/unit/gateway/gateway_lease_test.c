/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/clock.h"
#include "gateway/path/lease.h"

#include <arpa/inet.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct lease_table table;

static struct name
name_of(const char *text)
{
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	return name;
}

static struct addr
addr_of(const char *text)
{
	struct addr addr;

	assert_true(addr_parse(text, strlen(text), &addr));
	return addr;
}

static int
teardown(void **state)
{
	(void)state;
	lease_table_free(&table);
	clock_skew_ms(0);
	return 0;
}

static void
a_lease_holds_for_its_pair_and_its_time(void **state)
{
	struct name a = name_of("a.site.com"), b = name_of("b.site.com");
	struct addr one = addr_of("45.45.45.1"), two = addr_of("2600:1::1");

	(void)state;
	assert_null(lease_find(&table, &a, &one));
	assert_int_equal(lease_add(&table, &a, &one, 60, 5000), 0);
	assert_int_equal(lease_add(&table, &b, &one, 120, 5000), 0);
	assert_non_null(lease_find(&table, &a, &one));
	assert_null(lease_find(&table, &a, &two));
	clock_skew_ms(61000);
	assert_null(lease_find(&table, &a, &one));
	assert_non_null(lease_find(&table, &b, &one));
	/* Of the address only the live one is left. */
	const struct lease *lease = lease_next_of_addr(&table, &one, NULL);

	assert_non_null(lease);
	assert_true(name_equal(&lease->name, &b));
	assert_null(lease_next_of_addr(&table, &one, lease));
}

static void
case_C_14_adding_again_extends_and_never_shortens(void **state)
{
	struct name a = name_of("a.site.com");
	struct addr one = addr_of("45.45.45.1");

	(void)state;
	assert_int_equal(lease_add(&table, &a, &one, 100, 5000), 0);
	clock_skew_ms(50000);
	assert_int_equal(lease_add(&table, &a, &one, 10, 6000), 0); /* would end at 60 */
	clock_skew_ms(70000);
	assert_non_null(lease_find(&table, &a, &one));
	assert_int_equal(lease_find(&table, &a, &one)->upstream_us, 5000); /* the answer that it still stands on */
	assert_int_equal(lease_add(&table, &a, &one, 100, 7000), 0);
	assert_int_equal(lease_find(&table, &a, &one)->upstream_us, 7000);
	clock_skew_ms(150000);
	assert_non_null(lease_find(&table, &a, &one));
	assert_int_equal(table.count, 1);
}

static bool
drop_all(const struct lease *lease, void *context)
{
	(void)lease;
	++*(int *)context;
	return false;
}

static void
a_full_table_refuses_and_expired_leases_make_room(void **state)
{
	struct name a = name_of("a.site.com");
	struct addr addr = addr_of("45.0.0.0");
	int dropped = 0;

	(void)state;
	for (uint32_t i = 0; i < LEASE_TABLE_MAX; i++) {
		addr.bytes[2] = (uint8_t)(i >> 8);
		addr.bytes[3] = (uint8_t)i;
		assert_int_equal(lease_add(&table, &a, &addr, 60, 5000), 0);
	}
	addr.bytes[1] = 1;
	assert_int_equal(lease_add(&table, &a, &addr, 60, 5000), -ENOSPC);
	clock_skew_ms(61000);
	assert_int_equal(lease_add(&table, &a, &addr, 60, 5000), 0);
	assert_int_equal(table.count, 1);
	lease_each(&table, drop_all, &dropped);
	assert_int_equal(dropped, 1);
	assert_int_equal(table.count, 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_teardown(a_lease_holds_for_its_pair_and_its_time, teardown),
	    cmocka_unit_test_teardown(case_C_14_adding_again_extends_and_never_shortens, teardown),
	    cmocka_unit_test_teardown(a_full_table_refuses_and_expired_leases_make_room, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
