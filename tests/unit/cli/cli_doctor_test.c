/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/doctor.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#define CHAIN(table, hook, policy)                                                                                     \
	"{\"chain\":{\"family\":\"inet\",\"table\":\"" table "\",\"name\":\"c\",\"type\":\"filter\",\"hook\":\"" hook  \
	"\",\"prio\":0,\"policy\":\"" policy "\"}}"
#define RULESET(chain) "{\"nftables\":[{\"metainfo\":{\"version\":\"1\"}}," chain "]}"

static void
foreign_chains_that_drop_what_leaves_are_named(void **state)
{
	static const struct {
		const char *ruleset;
		size_t found;
	} rows[] = {
	    {RULESET(CHAIN("filter", "output", "accept")), 0},
	    {RULESET(CHAIN("filter", "output", "drop")), 1},
	    {RULESET(CHAIN("filter", "postrouting", "drop")), 1},
	    {RULESET(CHAIN("filter", "forward", "drop")), 0}, /* nothing of ours is forwarded */
	    {RULESET(CHAIN("filter", "input", "drop")), 0},
	    {RULESET(CHAIN("postern-x", "output", "drop")), 0},
	    {"{\"nftables\":[]}", 0},
	    {"nft: command failed", 1},
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct doctor doctor = {.checks = json_array()};

		assert_int_equal(
		    doctor_check_ruleset(&doctor, rows[i].ruleset, strlen(rows[i].ruleset)), rows[i].found);
		assert_int_equal(json_array_size(doctor.checks), rows[i].found);
		assert_int_equal(doctor.failed, 0);
		json_decref(doctor.checks);
	}
}

static void *
echo_once(void *context)
{
	struct sockaddr_in from;
	socklen_t len = sizeof(from);
	char bytes[512];
	ssize_t n = recvfrom(*(int *)context, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &len);

	if (n > 0)
		sendto(*(int *)context, bytes, (size_t)n, 0, (struct sockaddr *)&from, len);
	return NULL;
}

static void
a_resolver_answers_or_does_not(void **state)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sin);
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	struct addr addr;
	pthread_t thread;

	(void)state;
	assert_true(addr_parse("127.0.0.1", 9, &addr));
	assert_int_equal(bind(fd, (struct sockaddr *)&sin, sizeof(sin)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&sin, &len), 0);
	assert_false(doctor_resolvers_answers(&addr, ntohs(sin.sin_port), 50)); /* silent */
	assert_true(recv(fd, &len, sizeof(len), 0) > 0);
	assert_int_equal(pthread_create(&thread, NULL, echo_once, &fd), 0);
	assert_true(doctor_resolvers_answers(&addr, ntohs(sin.sin_port), 10000));
	pthread_join(thread, NULL);
	close(fd);
	assert_false(doctor_resolvers_answers(&addr, ntohs(sin.sin_port), 10000)); /* nobody is there: at once */
}

static void
programs_are_run_and_heard(void **state)
{
	static const char *const good[] = {"/bin/sh", "-c", "echo out; echo err >&2; exit 3", NULL};
	static const char *const none[] = {"/nonexistent/program", NULL};
	static const char *const loud[] = {"/bin/sh", "-c", "head -c 200000 /dev/zero | tr '\\0' x", NULL};
	char output[64];

	(void)state;
	assert_int_equal(doctor_capture(good, false, output, sizeof(output)), 3);
	assert_string_equal(output, "out\nerr\n");
	assert_int_equal(doctor_capture(none, false, output, sizeof(output)), 127);
	assert_int_equal(doctor_capture(loud, false, output, sizeof(output)), 0);
	assert_int_equal(strlen(output), sizeof(output) - 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(foreign_chains_that_drop_what_leaves_are_named),
	    cmocka_unit_test(a_resolver_answers_or_does_not),
	    cmocka_unit_test(programs_are_run_and_heard),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
