/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Requests: who asks, as the kernel and the process itself say; paths, methods and bodies that are refused. */
#include "tests/unit/control/gateway_control_far.h"

#include "gateway/control/control_http.h"

#include <sys/prctl.h>

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

/* The event of what they did says so. */
static void
an_event_names_its_peer(void **state)
{
	struct far *far = *state;
	char pid[32];

	assert_int_equal(prctl(PR_SET_NAME, "an agent", 0, 0, 0), 0);
	far_attach(far, FAR_ATTACH);
	snprintf(pid, sizeof(pid), "\"pid\":%d,", getpid());
	assert_non_null(strstr(far_wait_event(far, EVENT_ATTACH)->detail, pid));
	assert_non_null(strstr(far_event(far, EVENT_ATTACH)->detail, "\"comm\":\"an agent\""));
	assert_non_null(strstr(far_event(far, EVENT_ATTACH)->detail, "gateway_control_http_test"));
}

static void
a_path_without_the_method_names_those_it_has(void **state)
{
	static const struct {
		const char *method, *path, *allow;
	} rows[] = {
	    {"POST", "/metrics", "GET"},
	    {"PUT", "/v1/status", "GET"},
	    {"DELETE", "/v1/sandboxes", "GET, POST"},
	    {"POST", "/v1/sandboxes/vm1", "GET, DELETE"},
	    {"GET", "/v1/sandboxes/vm1/rules", "POST, DELETE"},
	    {"POST", "/v1/sandboxes/vm1/policy", "PUT"},
	    {"GET", "/v1/sandboxes/vm1/marks", "POST"},
	    {"GET", "/v1/sandboxes/vm1/test", "POST"},
	};
	static char text[FAR_ANSWER_MAX];
	struct far *far = *state;
	char header[64];

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		far_receive_text(far, far_send(far, rows[i].method, rows[i].path, NULL), text);
		snprintf(header, sizeof(header), "\r\nAllow: %s\r\n", rows[i].allow);
		assert_non_null(strstr(text, "HTTP/1.1 405 "));
		assert_non_null(strstr(text, header));
		assert_non_null(strstr(text, "this path takes"));
	}
	/* No other answer has the header, though the path was compared with other methods first. */
	far_receive_text(far, far_send(far, "POST", "/v1/sandboxes", FAR_ATTACH), text);
	assert_non_null(strstr(text, "HTTP/1.1 201 "));
	assert_null(strstr(text, "Allow:"));
}

static void
unknown_paths_are_not_found(void **state)
{
	static const char *const paths[] = {"/", "/v1", "/v1/sandbox", "/v1/sandboxes/", "/v1/sandboxes//rules",
	    "/v1/sandboxes/vm1/", "/v1/sandboxes/vm1/rule", "/v1/sandboxes/vm1/rules/x", "/v1/status/", "/metrics2",
	    "/v1/sandboxes/a-name-of-more-than-sixty-three-bytes-is-longer-than-any-sandbox-may-have"};
	struct far *far = *state;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++)
		far_expect(far, "GET", paths[i], NULL, 404, "message", "no such path");
}

/* Each request that takes a body refuses what is not its JSON, and asks the keeper nothing. */
static void
bad_bodies_are_refused_by_each_request(void **state)
{
	static const struct {
		const char *method, *path;
	} rows[] = {
	    {"POST", "/v1/sandboxes"},
	    {"POST", "/v1/sandboxes/vm1/rules"},
	    {"DELETE", "/v1/sandboxes/vm1/rules"},
	    {"PUT", "/v1/sandboxes/vm1/policy"},
	    {"POST", "/v1/sandboxes/vm1/marks"},
	    {"POST", "/v1/sandboxes/vm1/test"},
	};
	static const struct {
		const char *body, *message;
	} bodies[] = {
	    {"", "body is not JSON"},
	    {"{\"name\":\"vm2\"", "body is not JSON: line 1"},
	    {"7", "body is not JSON"},
	    {"[{}]", "body must be a JSON object"},
	    {"{\"name\":\"vm2\",\"x\":1,\"x\":2}", "duplicate"},
	    {"{\"name\":\"vm2\",\"colour\":\"red\"}", "unknown member"},
	};
	struct far *far = *state;

	far_attach(far, FAR_ATTACH);
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		for (size_t j = 0; j < sizeof(bodies) / sizeof(bodies[0]); j++)
			far_expect(
			    far, rows[i].method, rows[i].path, bodies[j].body, 400, "message", bodies[j].message);
	far_expect(far, "DELETE", "/v1/sandboxes/vm1", "{}", 413, "message", "takes no body");
	assert_int_equal(far->attaches, 1);
	assert_int_equal(far->policies, 0);
	assert_int_equal(far->detaches, 0);
}

/* A body whose length is not announced ends the connection where it becomes too long. */
static void
an_endless_body_is_cut(void **state)
{
	static const char head[] =
	    "POST /v1/sandboxes/vm1/marks HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n";
	static char chunk[65536];
	struct far *far = *state;
	struct sockaddr_un sun;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	size_t sent = 0;
	ssize_t n;

	memset(chunk, 'x', sizeof(chunk));
	memcpy(chunk, "fff8\r\n", 6);
	memcpy(chunk + sizeof(chunk) - 2, "\r\n", 2);
	far_socket_path(far, &sun);
	assert_int_equal(connect(fd, (struct sockaddr *)&sun, sizeof(sun)), 0);
	assert_int_equal(send(fd, head, sizeof(head) - 1, MSG_NOSIGNAL), sizeof(head) - 1);
	for (;;) {
		n = send(fd, chunk + sent % sizeof(chunk), sizeof(chunk) - sent % sizeof(chunk),
		    MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN)
			break;
		sent += n > 0 ? (size_t)n : 0;
		assert_true(sent < (8u << 20));
		loop_round(far->loop, 1);
	}
	assert_true(sent > (1u << 20));
	close(fd);
	far_expect(far, "GET", "/v1/status", NULL, 200, "version", POSTERN_VERSION);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(a_peer_is_known_by_its_socket),
	    cmocka_unit_test(a_peer_that_is_gone_or_out_of_sight_has_no_name),
	    FAR_TEST(an_event_names_its_peer),
	    FAR_TEST(a_path_without_the_method_names_those_it_has),
	    FAR_TEST(unknown_paths_are_not_found),
	    FAR_TEST(bad_bodies_are_refused_by_each_request),
	    FAR_TEST(an_endless_body_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
