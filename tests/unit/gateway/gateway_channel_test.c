/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Channels, recorder and keeper link over real socketpairs; the far end is a second channel in the same loop. */
#include "gateway/shared/ipc.h"
#include "gateway/path/link.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define MANY 3000

struct peer {
	struct ipc ipc;
	unsigned int messages, broken;
	uint64_t last_tag, last_seq;
	bool in_order, refuse;
	int fd;
};

static struct loop *loop;

static bool
peer_message(struct ipc *ipc, struct ipc_message *message)
{
	struct peer *peer = loop_owner(ipc, struct peer, ipc);

	if (peer->refuse)
		return false;
	if (message->header.tag != 0 && message->header.tag != peer->last_tag + 1)
		peer->in_order = false;
	peer->last_tag = message->header.tag;
	peer->messages++;
	if (message->header.fd_count == 1) {
		peer->fd = message->fds[0];
		message->fds[0] = -1;
	}
	if (message->header.type == MSG_RECORD)
		peer->last_seq = ((const struct record *)message->body)->seq;
	return true;
}

static void
peer_broken(struct ipc *ipc, const char *why)
{
	(void)why;
	loop_owner(ipc, struct peer, ipc)->broken++;
}

static void
peer_open(struct peer *peer, enum msg_role self, enum msg_role other, int fd)
{
	memset(peer, 0, sizeof(*peer));
	peer->ipc.self = (uint8_t)self;
	peer->ipc.peer = (uint8_t)other;
	peer->in_order = true;
	peer->fd = -1;
	peer->ipc.message_handler = peer_message;
	peer->ipc.broken_handler = peer_broken;
	assert_int_equal(ipc_open(&peer->ipc, loop, fd), 0);
}

static void
rounds(int n)
{
	for (int i = 0; i < n; i++)
		assert_int_equal(loop_round(loop, 0), 0);
}

static int
setup(void **state)
{
	(void)state;
	loop = loop_new();
	return loop == NULL ? -1 : 0;
}

static int
teardown(void **state)
{
	(void)state;
	loop_free(loop);
	return 0;
}

static void
a_full_socket_queues_and_keeps_order(void **state)
{
	static const struct record record = {.kind = RECORD_EVENT};
	struct peer a, b;
	int fds[2];

	(void)state;
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&a, MSG_ROLE_SENDER, MSG_ROLE_AUDITOR, fds[0]);
	peer_open(&b, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, fds[1]);
	for (uint64_t i = 1; i <= MANY; i++)
		assert_int_equal(ipc_send(&a.ipc, MSG_RECORD, i, &record, record_size(RECORD_EVENT), NULL, 0), 0);
	assert_true(a.ipc.queue_len > 0); /* or the test tests nothing */
	rounds(MANY);
	assert_int_equal(b.messages, MANY);
	assert_true(b.in_order);
	assert_int_equal(a.ipc.queue_len, 0);
	ipc_close(&a.ipc);
	rounds(1);
	assert_int_equal(b.broken, 1);
	assert_int_equal(ipc_send(&b.ipc, MSG_READY, 0, NULL, 0, NULL, 0), -EPIPE);
}

static void
descriptors_travel_even_through_the_queue(void **state)
{
	static const struct msg_leases_done leases;
	struct msg_channel channel = {.role = MSG_ROLE_AUDITOR};
	struct peer a, b;
	int fds[2], pipe_fds[2];
	char c;

	(void)state;
	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	peer_open(&a, MSG_ROLE_KEEPER, MSG_ROLE_CONTROL, fds[0]);
	peer_open(&b, MSG_ROLE_CONTROL, MSG_ROLE_KEEPER, fds[1]);
	while (a.ipc.queue_len < 2)
		assert_int_equal(ipc_send(&a.ipc, MSG_LEASES_DONE, 0, &leases, sizeof(leases), NULL, 0), 0);
	assert_int_equal(ipc_send(&a.ipc, MSG_CHANNEL, 0, &channel, sizeof(channel), &pipe_fds[1], 1), 0);
	close(pipe_fds[1]);
	rounds(200);
	assert_true(b.fd >= 0);
	assert_int_equal(fcntl(b.fd, F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
	assert_int_equal(write(b.fd, "x", 1), 1);
	assert_int_equal(read(pipe_fds[0], &c, 1), 1);
	close(b.fd);
	assert_int_equal(read(pipe_fds[0], &c, 1), 0); /* no copy was left open */
	close(pipe_fds[0]);
	ipc_close(&a.ipc);
	ipc_close(&b.ipc);
}

/* One message, unchecked. */
static void
raw_send(int fd, uint16_t type, const void *body, uint32_t size, const int *fds, size_t fd_count)
{
	struct ipc_header header = {.type = type, .fd_count = (uint16_t)fd_count, .size = size};
	struct iovec iov[2] = {
	    {.iov_base = &header, .iov_len = sizeof(header)}, {.iov_base = (void *)(uintptr_t)body, .iov_len = size}};
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int) * IPC_FDS_MAX)] = {0};
	struct msghdr msg = {.msg_iov = iov, .msg_iovlen = 2};

	if (fd_count > 0) {
		struct cmsghdr *cmsg = (struct cmsghdr *)control;

		msg.msg_control = control;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * fd_count);
		*cmsg = (struct cmsghdr){
		    .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * fd_count)};
		memcpy(CMSG_DATA(cmsg), fds, sizeof(int) * fd_count);
	}
	assert_int_equal(sendmsg(fd, &msg, 0), sizeof(header) + size);
}

static void
a_malformed_message_closes_the_channel_and_leaks_no_descriptor(void **state)
{
	struct ipc_header header = {.type = MSG_SHUTDOWN, .size = 4};
	struct msg_channel channel = {.role = MSG_ROLE_AUDITOR};
	struct peer b;
	int fds[2], pipe_fds[2];
	char c;

	(void)state;
	/* A header that promises more than comes. */
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&b, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, fds[1]);
	assert_int_equal(send(fds[0], &header, sizeof(header), 0), sizeof(header));
	rounds(1);
	assert_int_equal(b.broken, 1);
	assert_int_equal(b.messages, 0);
	close(fds[0]);
	/* A message that its handler refuses, with a descriptor beside it. */
	struct peer a;

	assert_int_equal(ipc_pair(fds), 0);
	assert_int_equal(pipe(pipe_fds), 0);
	peer_open(&a, MSG_ROLE_KEEPER, MSG_ROLE_GATEWAY, fds[0]);
	peer_open(&b, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, fds[1]);
	b.refuse = true;
	assert_int_equal(ipc_send(&a.ipc, MSG_CHANNEL, 0, &channel, sizeof(channel), &pipe_fds[1], 1), 0);
	close(pipe_fds[1]);
	rounds(2);
	assert_int_equal(b.broken, 1);
	assert_int_equal(a.broken, 1);
	assert_int_equal(read(pipe_fds[0], &c, 1), 0);
	close(pipe_fds[0]);
}

/* The table is asked at both ends: nothing that is not in it leaves, and what arrives all the same meets no handler. */
static void
a_message_that_is_not_in_the_table_goes_nowhere(void **state)
{
	struct msg_policy policy = {.id = 1};
	const struct {
		uint16_t type;
		uint32_t size;
		size_t fd_count;
	} wrong[] = {{MSG_POLICY, sizeof(policy) - 1, 1}, {MSG_POLICY, sizeof(policy), 0},
	    {MSG_POLICY, sizeof(policy), 2}, {MSG_ATTACHED, sizeof(policy), 1}, {MSG_TYPE_MAX, sizeof(policy), 1},
	    {0, 0, 0}};

	(void)state;
	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		int fds[2], pipe_fds[2], sent[2];
		struct peer a, b;
		char c;

		assert_int_equal(ipc_pair(fds), 0);
		assert_int_equal(pipe(pipe_fds), 0);
		sent[0] = sent[1] = pipe_fds[1];
		peer_open(&a, MSG_ROLE_KEEPER, MSG_ROLE_GATEWAY, fds[0]);
		peer_open(&b, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, fds[1]);
		assert_int_equal(
		    ipc_send(&a.ipc, wrong[i].type, 0, &policy, wrong[i].size, sent, wrong[i].fd_count), -EPROTO);
		rounds(2);
		assert_int_equal(a.broken + b.broken, 2);
		assert_int_equal(b.messages, 0);
		/* One that does not check what it sends. */
		assert_int_equal(ipc_pair(fds), 0);
		peer_open(&b, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, fds[1]);
		raw_send(fds[0], wrong[i].type, &policy, wrong[i].size, sent, wrong[i].fd_count);
		close(pipe_fds[1]);
		rounds(2);
		assert_int_equal(b.broken, 1);
		assert_int_equal(b.messages, 0);
		assert_int_equal(read(pipe_fds[0], &c, 1), 0); /* no copy was left open */
		close(pipe_fds[0]);
		close(fds[0]);
	}
}

static unsigned int durable_calls;

static void
durable_handler(struct recorder_wait *wait)
{
	(void)wait;
	durable_calls++;
}

static void
auditor_says(struct peer *auditor, uint64_t seq, bool writable)
{
	struct msg_durable durable = {.seq = seq, .writable = writable};

	assert_int_equal(ipc_send(&auditor->ipc, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0), 0);
	rounds(3);
}

static void
case_F_22_records_wait_for_an_auditor_that_cannot_write(void **state)
{
	struct recorder recorder;
	struct recorder_wait waits[3] = {
	    {.handler = durable_handler}, {.handler = durable_handler}, {.handler = durable_handler}};
	struct record record = {.kind = RECORD_FLOW_CLOSE};
	struct peer auditor;
	int fds[2];

	(void)state;
	durable_calls = 0;
	recorder_init(&recorder, loop, 77);
	assert_false(recorder_ready(&recorder)); /* nobody to write */
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&auditor, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, fds[1]);
	assert_int_equal(recorder_connect(&recorder, fds[0], 77), 0);
	assert_true(recorder_ready(&recorder));
	assert_int_equal(recorder_id(&recorder) >> 31, 77);
	assert_int_equal(recorder_send(&recorder, &record, &waits[0]), 0);
	assert_int_equal(recorder_send(&recorder, &record, &waits[1]), 0);
	rounds(3);
	assert_int_equal(auditor.messages, 2);
	assert_int_equal(durable_calls, 0); /* sent is not durable */
	auditor_says(&auditor, 1, true);
	assert_int_equal(durable_calls, 1);
	auditor_says(&auditor, 1, false);
	assert_false(recorder_ready(&recorder));
	assert_int_equal(recorder_send(&recorder, &record, &waits[2]), 0); /* a close still has a place */
	rounds(3);
	assert_int_equal(auditor.messages, 2); /* held back */
	auditor_says(&auditor, 1, true);
	assert_int_equal(auditor.messages, 4); /* 2 again, and 3 */
	assert_int_equal(auditor.last_seq, 3);
	/* The auditor dies; its successor gets what is not durable. */
	ipc_close(&auditor.ipc);
	rounds(2);
	assert_false(recorder_ready(&recorder));
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&auditor, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, fds[1]);
	assert_int_equal(recorder_connect(&recorder, fds[0], 77), 0);
	rounds(3);
	assert_int_equal(auditor.messages, 2);
	recorder_cancel(&recorder, &waits[1]);
	auditor_says(&auditor, 3, true);
	assert_int_equal(durable_calls, 2); /* the cancelled one did not run */
	assert_int_equal(recorder.queue_len, 0);
	/* An acknowledgement of what was never sent is a mad auditor. */
	auditor_says(&auditor, 9, true);
	assert_false(recorder_ready(&recorder));
	ipc_close(&auditor.ipc);
	recorder_free(&recorder);
}

/* More than the channel's own queue holds; below what the recorder takes. */
#define BACKLOG 20000
#define BACKLOG_BATCH 512

/* Acknowledge like the auditor: what came since the last time. False: nothing did. */
static bool
auditor_commits(struct peer *auditor, uint64_t *acknowledged)
{
	struct msg_durable durable = {.seq = auditor->last_seq, .writable = 1};

	if (auditor->last_seq == *acknowledged)
		return false;
	*acknowledged = auditor->last_seq;
	assert_int_equal(ipc_send(&auditor->ipc, MSG_DURABLE, 0, &durable, sizeof(durable), NULL, 0), 0);
	return true;
}

static void
a_backlog_larger_than_the_channel_goes_out_once_and_in_order(void **state)
{
	struct recorder recorder;
	struct recorder_wait wait = {.handler = durable_handler};
	struct record record = {.kind = RECORD_FLOW_CLOSE};
	struct peer auditor;
	uint64_t acknowledged = 0;
	int fds[2], idle = 0;

	(void)state;
	durable_calls = 0;
	recorder_init(&recorder, loop, 77);
	for (int i = 1; i <= BACKLOG; i++)
		assert_int_equal(recorder_send(&recorder, &record, i == BACKLOG ? &wait : NULL), 0);
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&auditor, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, fds[1]);
	assert_int_equal(recorder_connect(&recorder, fds[0], 77), 0);
	for (int i = 0; i < 10 * BACKLOG && idle < 10; i++) {
		rounds(1);
		assert_true(ipc_is_open(&recorder.ipc));
		if (auditor.last_seq - acknowledged >= BACKLOG_BATCH || idle > 3)
			idle = auditor_commits(&auditor, &acknowledged) ? 0 : idle + 1;
		else
			idle++;
	}
	assert_int_equal(auditor.last_seq, BACKLOG);
	assert_int_equal(auditor.messages, BACKLOG);
	assert_int_equal(recorder.queue_len, 0);
	assert_int_equal(durable_calls, 1);
	assert_true(recorder_ready(&recorder));
	/* What comes afterwards goes out at once. */
	assert_int_equal(recorder_send(&recorder, &record, NULL), 0);
	rounds(2);
	assert_int_equal(auditor.last_seq, BACKLOG + 1);
	ipc_close(&auditor.ipc);
	rounds(1);
	recorder_free(&recorder);
}

static void
a_channel_that_overflows_breaks(void **state)
{
	static const struct record record = {.kind = RECORD_GAP};
	struct peer a, b;
	int fds[2], rc = 0;

	(void)state;
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&a, MSG_ROLE_SENDER, MSG_ROLE_AUDITOR, fds[0]);
	peer_open(&b, MSG_ROLE_AUDITOR, MSG_ROLE_SENDER, fds[1]);
	for (int i = 0; rc == 0 && i < 4 * IPC_QUEUE_MAX; i++)
		rc = ipc_send(&a.ipc, MSG_RECORD, 0, &record, record_size(RECORD_GAP), NULL, 0);
	assert_int_equal(rc, -ENOBUFS);
	rounds(2);
	assert_int_equal(a.broken, 1);
	assert_false(ipc_is_open(&a.ipc));
	ipc_close(&b.ipc);
}

static int link_status;
static unsigned int link_calls;

static void
link_handler(struct link_request *request, int status, const void *body)
{
	(void)request;
	(void)body;
	link_status = status;
	link_calls++;
}

static bool
link_message(struct ipc *ipc, struct ipc_message *message)
{
	return link_answer(loop_owner(ipc, struct link, ipc), message);
}

static void
keeper_says(struct peer *keeper, uint64_t tag, enum error_code code)
{
	struct msg_result result = {.code = code};

	assert_int_equal(ipc_send(&keeper->ipc, MSG_RESULT, tag, &result, sizeof(result), NULL, 0), 0);
	rounds(3);
}

static void
answers_find_their_request(void **state)
{
	struct link link = {.ipc = {.self = MSG_ROLE_GATEWAY,
				.peer = MSG_ROLE_KEEPER,
				.message_handler = link_message,
				.broken_handler = peer_broken}};
	struct link_request requests[3] = {
	    {.handler = link_handler}, {.handler = link_handler}, {.handler = link_handler}};
	struct tap_lease lease = {.proto = 6, .port = 443};
	struct peer keeper;
	int fds[2];

	(void)state;
	assert_int_equal(ipc_pair(fds), 0);
	peer_open(&keeper, MSG_ROLE_KEEPER, MSG_ROLE_GATEWAY, fds[1]);
	assert_int_equal(ipc_open(&link.ipc, loop, fds[0]), 0);
	for (int i = 0; i < 3; i++)
		assert_int_equal(link_lease_add(&link, &requests[i], 5, &lease, 1, 60), 0);
	rounds(3);
	assert_int_equal(keeper.messages, 3);
	link_cancel(&link, &requests[1]);
	link_cancel(&link, &requests[1]);
	keeper_says(&keeper, 2, ERROR_NONE); /* of the cancelled one */
	assert_int_equal(link_calls, 0);
	keeper_says(&keeper, 3, ERROR_LIMIT);
	assert_int_equal(link_calls, 1);
	assert_int_equal(link_status, -ENOSPC);
	keeper_says(&keeper, 1, ERROR_NONE);
	assert_int_equal(link_calls, 2);
	assert_int_equal(link_status, 0);
	assert_int_equal(link.request_count, 0);
	assert_true(TAILQ_EMPTY(&link.requests));
	assert_int_equal(link_lease_add(&link, &requests[0], 5, &lease, 0, 60), -EINVAL);
	assert_int_equal(link_lease_add(&link, &requests[0], 5, &lease, TAP_LEASE_BATCH_MAX + 1, 60), -EINVAL);
	ipc_close(&link.ipc);
	ipc_close(&keeper.ipc);
}

/* What a gateway that was taken over might answer: the keeper hands it to control, which prints it. */
static void
answers_of_a_gateway_are_checked(void **state)
{
	static struct msg_leases_done leases, good_leases = {.count = 1};
	static struct msg_policy_done done, good_done = {.cut_count = 40};

	(void)state;
	good_leases.rows[0].addr = (struct addr){.family = 4, .bytes = {45, 45, 45, 10}};
	assert_int_equal(name_canonical("news.example", 12, &good_leases.rows[0].name), NAME_OK);
	for (int i = 0; i < MSG_CUT_MAX; i++)
		good_done.cut[i].dst.family = 6; /* by an address rule: no name */
	assert_true(msg_leases_done_valid(&good_leases));
	assert_true(msg_policy_done_valid(&good_done));
	for (int i = 0; i < 8; i++) {
		leases = good_leases;
		done = good_done;
		if (i == 0)
			leases.count = MSG_LEASES_MAX + 1;
		if (i == 1)
			leases.rows[0].addr.family = done.cut[3].dst.family = 7;
		if (i == 2)
			memset(&leases.rows[0].name, 'a', sizeof(leases.rows[0].name));
		if (i == 3)
			memset(leases.rows[0].name.text + 12, 'x', sizeof(leases.rows[0].name.text) - 12);
		if (i == 4)
			leases.rows[0].name.len = 0;
		if (i == 5)
			leases.rows[0].name.text[2] = '\033';
		if (i == 6)
			leases.result.code = done.result.code = ERROR_CODE_MAX;
		if (i == 7)
			memset(leases.result.text, 'x', sizeof(leases.result.text));
		done.cut[MSG_CUT_MAX - 1].name = leases.rows[0].name;
		memcpy(done.result.text, leases.result.text, sizeof(done.result.text));
		assert_false(msg_leases_done_valid(&leases));
		if (i != 0 && i != 4)
			assert_false(msg_policy_done_valid(&done));
	}
}

static unsigned int lost_messages;

static bool
peer_fds_lost(struct ipc *ipc, const struct ipc_message *message)
{
	(void)ipc;
	assert_int_equal(message->header.type, MSG_SANDBOX_ADD);
	assert_int_equal(message->header.tag, 7);
	assert_int_equal(message->header.fd_count, TAP_SOCKET_MAX + 1);
	for (size_t i = 0; i < IPC_FDS_MAX; i++)
		assert_int_equal(message->fds[i], -1);
	lost_messages++;
	return true;
}

/* With room for none or one of the descriptors: the message is refused, the channel lives, and none stays open. */
static void
case_F_20_a_receiver_without_descriptors(void **state)
{
	(void)state;
	for (int handled = 0; handled < 2; handled++) {
		for (int spare = 0; spare < 2; spare++) {
			struct rlimit before, few;
			struct peer a, b;
			struct msg_sandbox_add add = {.id = 1};
			int fds[2], sent[TAP_SOCKET_MAX + 1] = {0}, top;

			assert_int_equal(ipc_pair(fds), 0);
			peer_open(&a, MSG_ROLE_KEEPER, MSG_ROLE_GATEWAY, fds[0]);
			peer_open(&b, MSG_ROLE_GATEWAY, MSG_ROLE_KEEPER, fds[1]);
			if (handled)
				b.ipc.fds_lost_handler = peer_fds_lost;
			lost_messages = 0;
			assert_int_equal(
			    ipc_send(&a.ipc, MSG_SANDBOX_ADD, 7, &add, sizeof(add), sent, TAP_SOCKET_MAX + 1), 0);
			top = dup(0);
			close(top);
			assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
			few = before;
			few.rlim_cur = (rlim_t)(top + spare);
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
			rounds(2);
			assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
			/* None is left open; both ends of a broken channel are free again, too. */
			assert_int_equal(dup(0), handled ? top : fds[0]);
			close(handled ? top : fds[0]);
			assert_int_equal(b.messages, 0);
			assert_int_equal(lost_messages, handled);
			assert_int_equal(b.broken, !handled);
			ipc_close(&a.ipc);
			ipc_close(&b.ipc);
		}
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(a_full_socket_queues_and_keeps_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(descriptors_travel_even_through_the_queue, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_malformed_message_closes_the_channel_and_leaks_no_descriptor, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_message_that_is_not_in_the_table_goes_nowhere, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_F_20_a_receiver_without_descriptors, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_F_22_records_wait_for_an_auditor_that_cannot_write, setup, teardown),
	    cmocka_unit_test_setup_teardown(
		a_backlog_larger_than_the_channel_goes_out_once_and_in_order, setup, teardown),
	    cmocka_unit_test_setup_teardown(a_channel_that_overflows_breaks, setup, teardown),
	    cmocka_unit_test_setup_teardown(answers_find_their_request, setup, teardown),
	    cmocka_unit_test(answers_of_a_gateway_are_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
