/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What an edit of the policy does to leases: the gateway's own, and what the keeper is asked. */
#include "base/clock.h"
#include "gateway/path/gateway.h"
#include "gateway/path/repolicy.h"
#include "tests/unit/gateway/gateway_snapshot.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define ASKED_MAX 64
/* A table full of one address's names must not take longer; the gateway serves others, too. */
#define EDIT_MS_MAX 1000

static struct gateway gateway;
static struct sandbox sandbox;

/* The keeper's end: each element it was asked to add or remove. */
static struct {
	struct ipc ipc;
	size_t count;
	struct {
		bool add;
		struct tap_lease lease;
		uint32_t timeout_s;
	} asked[ASKED_MAX];
} keeper;

static bool
keeper_handler(struct ipc *ipc, struct ipc_message *message)
{
	const struct msg_lease *body = message->body;

	(void)ipc;
	for (uint32_t i = 0; i < body->count; i++) {
		assert_true(keeper.count < ASKED_MAX);
		keeper.asked[keeper.count].add = message->header.type == MSG_LEASE_ADD;
		keeper.asked[keeper.count].timeout_s = body->timeout_s;
		keeper.asked[keeper.count++].lease = body->leases[i];
	}
	return true;
}

static void
broken_handler(struct ipc *ipc, const char *why)
{
	(void)ipc;
	fail_msg("%s", why);
}

static struct snapshot *
compiled(const char *rules)
{
	struct policy policy;
	struct error err;
	char text[1024];

	snprintf(text, sizeof(text), "version: 1\n%s", rules);
	policy_init(&policy);
	assert_int_equal(policy_parse(text, strlen(text), "test.yaml", &policy, &err), 0);
	return snapshot_of_own(&policy);
}

static void
lease(const char *text, uint8_t last, uint32_t lifetime_s)
{
	struct addr addr = {.family = 4, .bytes = {45, 45, 45, last}};
	struct name name;

	assert_int_equal(name_canonical(text, strlen(text), &name), NAME_OK);
	assert_int_equal(lease_add(&sandbox.leases, &name, &addr, lifetime_s, 5000), 0);
}

/* Edit, let the keeper hear of it. */
static void
edit(const char *rules)
{
	static struct msg_policy_done done;

	keeper.count = 0;
	repolicy(&sandbox, compiled(rules), sandbox.generation + 1, &done);
	for (int i = 0; i < 100; i++)
		assert_int_equal(loop_round(gateway.loop, 0), 0);
}

static size_t
asked(bool add, uint8_t last, uint16_t port)
{
	size_t count = 0;

	for (size_t i = 0; i < keeper.count; i++)
		count += keeper.asked[i].add == add && keeper.asked[i].lease.addr.bytes[3] == last &&
		    keeper.asked[i].lease.port == port;
	return count;
}

static int
setup(void **state)
{
	int fds[2];

	(void)state;
	memset(&gateway, 0, sizeof(gateway));
	memset(&sandbox, 0, sizeof(sandbox));
	memset(&keeper, 0, sizeof(keeper));
	gateway.loop = loop_new();
	assert_int_equal(ipc_pair(fds), 0);
	gateway.link.ipc.self = keeper.ipc.peer = MSG_ROLE_GATEWAY;
	gateway.link.ipc.peer = keeper.ipc.self = MSG_ROLE_KEEPER;
	gateway.link.ipc.message_handler = keeper.ipc.message_handler = keeper_handler;
	gateway.link.ipc.broken_handler = keeper.ipc.broken_handler = broken_handler;
	assert_int_equal(ipc_open(&gateway.link.ipc, gateway.loop, fds[0]), 0);
	assert_int_equal(ipc_open(&keeper.ipc, gateway.loop, fds[1]), 0);
	sandbox.gateway = &gateway;
	sandbox.id = 1;
	return 0;
}

static int
teardown(void **state)
{
	(void)state;
	lease_table_free(&sandbox.leases);
	snapshot_free(sandbox.policy);
	ipc_close(&gateway.link.ipc);
	ipc_close(&keeper.ipc);
	loop_free(gateway.loop);
	return 0;
}

static void
case_F_33_a_port_goes_when_no_name_of_the_address_wants_it(void **state)
{
	(void)state;
	sandbox.policy = compiled("allow:\n  - host: a.site.com\n  - host: b.site.com\n    ports: [80, 22]\n");
	lease("a.site.com", 1, 600);
	lease("b.site.com", 1, 600);
	lease("b.site.com", 2, 600);
	/* a loses all, b keeps 80 and wins 25. */
	edit("allow:\n  - host: b.site.com\n    ports: [80, 25]\n");
	assert_int_equal(asked(false, 1, 443), 1);
	assert_int_equal(asked(false, 1, 22), 1);
	assert_int_equal(asked(false, 1, 80), 0); /* b's */
	assert_int_equal(asked(false, 2, 22), 1);
	assert_int_equal(asked(false, 2, 80), 0);
	assert_int_equal(asked(true, 1, 25), 1);
	assert_int_equal(asked(true, 2, 25), 1);
	assert_int_equal(keeper.count, 5);
	assert_int_equal(sandbox.leases.count, 2);
	/* Nothing is left of nothing. */
	edit("");
	assert_int_equal(asked(false, 1, 80) + asked(false, 1, 25) + asked(false, 2, 80) + asked(false, 2, 25), 4);
	assert_int_equal(keeper.count, 4);
	assert_int_equal(sandbox.leases.count, 0);
}

/* One element serves both names: what b wins for a minute, a had for an hour. */
static void
a_won_port_lasts_as_long_as_the_longest_lease(void **state)
{
	(void)state;
	sandbox.policy =
	    compiled("allow:\n  - host: a.site.com\n    ports: [443]\n  - host: b.site.com\n    ports: [22]\n");
	lease("b.site.com", 1, 60);
	lease("a.site.com", 1, 3600);
	lease("b.site.com", 2, 60);
	edit("allow:\n  - host: a.site.com\n    ports: [443]\n  - host: b.site.com\n    ports: [22, 443]\n");
	assert_int_equal(asked(true, 1, 443), 1);
	for (size_t i = 0; i < keeper.count; i++)
		if (keeper.asked[i].lease.addr.bytes[3] == 1)
			assert_true(keeper.asked[i].timeout_s >= 3600);
}

static void
a_port_stays_that_another_name_wins_in_the_same_edit(void **state)
{
	(void)state;
	sandbox.policy =
	    compiled("allow:\n  - host: a.site.com\n    ports: [22, 80]\n  - host: b.site.com\n    ports: [80]\n");
	lease("a.site.com", 1, 600);
	lease("b.site.com", 1, 600);
	edit("allow:\n  - host: a.site.com\n    ports: [80]\n  - host: b.site.com\n    ports: [22, 80]\n");
	assert_int_equal(asked(false, 1, 22), 0);
	assert_int_equal(asked(true, 1, 22), 1);
}

/* Learning lets the port's packets come by ranges; an element would be there still when learning ends. */
static void
a_lost_port_goes_although_learning_lets_it_pass(void **state)
{
	(void)state;
	edit("allow:\n  - host: a.lab-b.net\n    ports: [22, 443]\n");
	lease("a.lab-b.net", 1, 300);
	edit("mode: learn\nallow:\n  - host: a.lab-b.net\n    ports: [443]\n");
	assert_int_equal(asked(false, 1, 22), 1);
	assert_int_equal(asked(false, 1, 443), 0);
}

static void
an_edit_is_quick_when_thousands_of_names_share_an_address(void **state)
{
	int64_t began_ms;
	char name[64];

	(void)state;
	sandbox.policy = compiled("allow:\n  - host: \"*.site.com\"\n    ports: [80, 443, 22]\n");
	for (int i = 0; i < LEASE_TABLE_MAX; i++) {
		snprintf(name, sizeof(name), "n%d.site.com", i);
		lease(name, 1, 600);
	}
	began_ms = clock_mono_ms();
	edit("allow:\n  - host: \"*.site.com\"\n    ports: [443, 22]\n");
	assert_int_equal(asked(false, 1, 80), 1);
	assert_int_equal(keeper.count, 1);
	edit("");
	assert_int_equal(keeper.count, 2);
	assert_int_equal(sandbox.leases.count, 0);
	assert_true(clock_mono_ms() - began_ms < EDIT_MS_MAX);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(
		case_F_33_a_port_goes_when_no_name_of_the_address_wants_it, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_won_port_lasts_as_long_as_the_longest_lease, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_port_stays_that_another_name_wins_in_the_same_edit, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_lost_port_goes_although_learning_lets_it_pass, setup, teardown),
	    cmocka_unit_test_setup_teardown(an_edit_is_quick_when_thousands_of_names_share_an_address, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
