/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Who asked, as the kernel and the process itself say. */
#include "gateway/control/control_http.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void
a_peer_is_known_by_its_socket(void **state)
{
	struct control_peer peer;
	int fds[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(control_http_peer_read(fds[0], &peer), 0);
	assert_int_equal(peer.uid, geteuid());
	assert_int_equal(peer.pid, getpid());
	assert_string_equal(peer.comm, "");
	/* A name that would end a line, a text, a terminal's patience. */
	assert_int_equal(prctl(PR_SET_NAME, "\x1b[2J\"\\\n\xff x", 0, 0, 0), 0);
	control_http_peer_look(&peer);
	assert_string_equal(peer.comm, "\\x1b[2J\"\\x5c\\x0a\\xff x");
	assert_non_null(strstr(peer.command, "gateway_control_http_test"));
	close(fds[0]);
	close(fds[1]);
	assert_int_equal(control_http_peer_read(-1, &peer), -1);
}

static void
a_peer_that_is_gone_or_out_of_sight_has_no_name(void **state)
{
	struct control_peer gone = {.uid = 1000}, nobody = CONTROL_PEER_NOBODY;
	int status;

	(void)state;
	gone.pid = fork();
	if (gone.pid == 0)
		_exit(0);
	assert_int_equal(waitpid(gone.pid, &status, 0), gone.pid);
	control_http_peer_look(&gone);
	assert_string_equal(gone.comm, "");
	assert_string_equal(gone.command, "");
	control_http_peer_look(&nobody);
	assert_string_equal(nobody.comm, "");
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_peer_is_known_by_its_socket),
	    cmocka_unit_test(a_peer_that_is_gone_or_out_of_sight_has_no_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
