/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/clock.h"
#include "base/loop.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <cmocka.h>

#define TIMERS 200

static struct loop *loop;
static int fired[TIMERS], fired_count;

struct numbered_timer {
	struct loop_timer timer;
	int number;
};

static void
timer_handler(struct loop_timer *timer)
{
	fired[fired_count++] = loop_owner(timer, struct numbered_timer, timer)->number;
}

static int
setup(void **state)
{
	(void)state;
	fired_count = 0;
	loop = loop_new();
	return loop == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	loop_free(loop);
	clock_skew_ms(0);
	return 0;
}

static void
timers_fire_in_order_whatever_order_they_were_set(void **state)
{
	struct numbered_timer timers[TIMERS] = {0};

	(void)state;
	srand(7);
	for (int i = 0; i < TIMERS; i++) {
		timers[i].timer.handler = timer_handler;
		timers[i].number = rand() % 10000;
		assert_int_equal(loop_timer_set(loop, &timers[i].timer, timers[i].number), 0);
	}
	/* Every third is stopped, every fifth set again. */
	for (int i = 0; i < TIMERS; i += 3)
		loop_timer_stop(loop, &timers[i].timer);
	for (int i = 0; i < TIMERS; i += 5)
		loop_timer_set(loop, &timers[i].timer, timers[i].number);
	clock_skew_ms(20000);
	assert_int_equal(loop_round(loop, 0), 0);
	assert_int_equal(fired_count, TIMERS - (TIMERS + 2) / 3 + (TIMERS + 14) / 15);
	for (int i = 1; i < fired_count; i++)
		assert_true(fired[i - 1] <= fired[i]);
	for (int i = 0; i < TIMERS; i++)
		assert_false(loop_timer_armed(&timers[i].timer));
}

static struct loop_source first, second;
static int second_calls;

static void
second_handler(struct loop_source *source, uint32_t events)
{
	(void)source;
	(void)events;
	second_calls++;
}

static void
remover(struct loop_source *source, uint32_t events)
{
	(void)events;
	/* Whichever comes first takes the other with it. */
	loop_source_remove(loop, source == &first ? &second : &first);
	loop_source_remove(loop, source);
}

static void
an_event_of_a_removed_source_falls_through(void **state)
{
	int a[2], b[2];

	(void)state;
	assert_int_equal(pipe(a), 0);
	assert_int_equal(pipe(b), 0);
	first = (struct loop_source){.fd = a[0], .handler = remover};
	second = (struct loop_source){.fd = b[0], .handler = remover};
	assert_int_equal(loop_source_add(loop, &first, EPOLLIN), 0);
	assert_int_equal(loop_source_add(loop, &second, EPOLLIN), 0);
	assert_int_equal(write(a[1], "x", 1), 1);
	assert_int_equal(write(b[1], "x", 1), 1);
	assert_int_equal(loop_round(loop, 0), 0);
	assert_int_equal(first.fd, -1);
	assert_int_equal(second.fd, -1);
	second = (struct loop_source){.fd = b[0], .handler = second_handler};
	assert_int_equal(loop_source_add(loop, &second, EPOLLIN), 0);
	assert_int_equal(loop_round(loop, 0), 0);
	assert_int_equal(second_calls, 1);
	for (int i = 0; i < 2; i++) {
		close(a[i]);
		close(b[i]);
	}
}

static int deferred_calls;

static void
deferred_handler(struct loop_deferred *deferred)
{
	(void)deferred;
	deferred_calls++;
}

static void
deferring_twice_is_one_call(void **state)
{
	struct loop_deferred deferred = {.handler = deferred_handler};

	(void)state;
	loop_defer(loop, &deferred);
	loop_defer(loop, &deferred);
	assert_int_equal(deferred_calls, 0);
	assert_int_equal(loop_round(loop, 0), 0);
	assert_int_equal(deferred_calls, 1);
	assert_int_equal(loop_round(loop, 0), 0);
	assert_int_equal(deferred_calls, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(timers_fire_in_order_whatever_order_they_were_set, setup, teardown),
	    cmocka_unit_test_setup_teardown(an_event_of_a_removed_source_falls_through, setup, teardown),
	    cmocka_unit_test_setup_teardown(deferring_twice_is_one_call, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
