/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The splice pump between two TCP connections over loopback, in one thread. Even there the kernel delivers when it gets
 * to it: on a busy machine ksoftirqd does, later than the call that sent. So what must come is waited for. */
#include "gateway/path/tcp/relay.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>
#include <cmocka.h>
#include <openssl/evp.h>

/* left is what the sender holds, source and sink are the relay's, right is the receiver's. */
struct fixture {
	int left, source, sink, right;
	struct relay_way way;
};

/* Longer than any wait of a busy machine. */
#define PATIENCE_MS 30000

static uint8_t block[300000];

static void
tcp_pair(int *ret_a, int *ret_b)
{
	struct sockaddr_in sa = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t len = sizeof(sa);
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_true(listener >= 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&sa, len), 0);
	assert_int_equal(listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&sa, &len), 0);
	*ret_a = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_true(*ret_a >= 0);
	assert_true(connect(*ret_a, (struct sockaddr *)&sa, len) == 0 || errno == EINPROGRESS);
	*ret_b = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	assert_true(*ret_b >= 0);
	close(listener);
}

static int
setup(void **state)
{
	struct fixture *f = calloc(1, sizeof(*f));

	signal(SIGPIPE, SIG_IGN);
	tcp_pair(&f->left, &f->source);
	tcp_pair(&f->sink, &f->right);
	relay_init(&f->way);
	*state = f;
	return 0;
}

static int
teardown(void **state)
{
	struct fixture *f = *state;

	relay_clear(&f->way);
	relay_pool_drain();
	close(f->left);
	close(f->source);
	close(f->sink);
	close(f->right);
	free(f);
	return 0;
}

static void
reset(int fd)
{
	struct linger linger = {.l_onoff = 1};

	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger)), 0);
	/* The test closes its descriptor again at the end: put something harmless in its place. */
	assert_int_equal(dup2(STDERR_FILENO, fd), fd);
}

static bool
ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	return poll(&poll_fd, 1, 1) == 1;
}

/* What was sent comes, however late. */
static void
assert_ready(int fd, short events)
{
	struct pollfd poll_fd = {.fd = fd, .events = events};

	assert_int_equal(poll(&poll_fd, 1, PATIENCE_MS), 1);
}

/* All bytes were read: what comes now is the end of input. */
static void
assert_fin(int fd)
{
	assert_ready(fd, POLLIN);
	assert_int_equal(recv(fd, &(char){0}, 1, 0), 0);
}

/* One step of an event loop: pump when what the way waits for has come. */
static enum relay_status
step(struct fixture *f)
{
	if (f->way.status == RELAY_READING && ready(f->source, POLLIN))
		relay_pump(&f->way, f->source, f->sink);
	else if (f->way.status == RELAY_WRITING && ready(f->sink, POLLOUT))
		relay_pump(&f->way, f->source, f->sink);
	/* Nothing is held while reading: that is what makes idle connections cheap. */
	if (f->way.status == RELAY_READING || f->way.status == RELAY_FINISHED) {
		assert_int_equal(f->way.pipe_fds[0], -1);
		assert_null(f->way.prefix);
	}
	return f->way.status;
}

/* Steps until the way is in this state. */
static void
step_until(struct fixture *f, enum relay_status status)
{
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;

	while (step(f) != status)
		assert_true(clock_mono_ms() < deadline_ms);
}

/* Send until nothing has moved for quiet_ms and the way waits for the sink. Returns how much went in. */
static size_t
fill(struct fixture *f, int64_t quiet_ms)
{
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS, moved_ms = clock_mono_ms();
	uint64_t bytes = 0;
	size_t sent = 0;

	while (f->way.status != RELAY_WRITING || clock_mono_ms() - moved_ms < quiet_ms) {
		ssize_t n = send(f->left, block, sizeof(block), MSG_DONTWAIT);

		assert_true(clock_mono_ms() < deadline_ms);
		step(f);
		if (n > 0 || f->way.bytes != bytes)
			moved_ms = clock_mono_ms();
		sent += n > 0 ? (size_t)n : 0;
		bytes = f->way.bytes;
	}
	return sent;
}

struct digest {
	EVP_MD_CTX *context;
	uint8_t sum[32];
};

static void
digest_end(struct digest *digest)
{
	unsigned int len;

	assert_int_equal(EVP_DigestFinal_ex(digest->context, digest->sum, &len), 1);
	EVP_MD_CTX_free(digest->context);
}

static struct digest
digest_begin(void)
{
	struct digest digest = {.context = EVP_MD_CTX_new()};

	assert_int_equal(EVP_DigestInit_ex(digest.context, EVP_sha256(), NULL), 1);
	return digest;
}

static uint32_t seed = 1;

static size_t
chance(size_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

/* Send total bytes (the first prefix_len as the way's prefix) through the way, then FIN; compare both ends. */
static void
transfer(struct fixture *f, size_t prefix_len, size_t total, size_t write_max, size_t read_max)
{
	struct digest sent = digest_begin(), got = digest_begin();
	size_t out = 0, in = 0, turns = 0;
	uint8_t *prefix = malloc(prefix_len + 1);
	ssize_t n;

	for (size_t i = 0; i < sizeof(block); i++)
		block[i] = (uint8_t)chance(256);
	memcpy(prefix, block, prefix_len);
	EVP_DigestUpdate(sent.context, block, prefix_len);
	relay_prefix_own(&f->way, prefix, prefix_len);
	out = prefix_len;
	relay_pump(&f->way, f->source, f->sink);
	while (in < total || f->way.status != RELAY_FINISHED) {
		assert_true(++turns < 10000000);
		if (out < total) {
			size_t at = chance(1000);
			size_t want = 1 + chance(write_max);

			n = send(f->left, block + at, want < total - out ? want : total - out, MSG_DONTWAIT);
			if (n > 0) {
				EVP_DigestUpdate(sent.context, block + at, (size_t)n);
				out += (size_t)n;
				if (out == total)
					assert_int_equal(shutdown(f->left, SHUT_WR), 0);
			}
		}
		step(f);
		n = recv(f->right, block + 1000, 1 + chance(read_max), MSG_DONTWAIT);
		if (n > 0) {
			EVP_DigestUpdate(got.context, block + 1000, (size_t)n);
			in += (size_t)n;
			memset(block + 1000, (int)chance(256), (size_t)n);
		}
	}
	assert_int_equal(in, total);
	assert_int_equal(f->way.bytes, total);
	assert_fin(f->right);
	digest_end(&sent);
	digest_end(&got);
	assert_memory_equal(sent.sum, got.sum, sizeof(sent.sum));
}

static void
case_D_23_every_byte_once_in_order(void **state)
{
	(void)state;
	for (int i = 0; i < 300; i++) {
		void *own;
		size_t prefix = chance(4) == 0 ? chance(90000) : chance(3000);

		setup(&own);
		transfer(own, prefix, prefix + 1 + chance(chance(10) == 0 ? 3000000 : 100000), 1 + chance(65536),
		    1 + chance(65536));
		teardown(&own);
	}
}

static void
a_big_transfer(void **state)
{
	transfer(*state, 517, 64u << 20, 262144, 262144);
}

static void
case_E_20_fin_after_the_last_byte(void **state)
{
	struct fixture *f = *state;
	size_t filled, in = 0;
	ssize_t n;

	/* The receiver does not read: bytes and then FIN pile up before the relay. */
	filled = fill(f, 200);
	assert_int_equal(shutdown(f->left, SHUT_WR), 0);
	for (int i = 0; i < 50; i++)
		assert_int_equal(step(f), RELAY_WRITING);
	assert_false(f->way.eof);
	/* The other direction is not touched by any of this. */
	assert_int_equal(send(f->source, "reply", 5, 0), 5);
	while (in < filled || step(f) != RELAY_FINISHED) {
		n = recv(f->right, block, sizeof(block), MSG_DONTWAIT);
		in += n > 0 ? (size_t)n : 0;
		step(f);
	}
	assert_fin(f->right);
	assert_int_equal(in, filled);
	assert_ready(f->left, POLLIN);
	assert_int_equal(recv(f->left, block, 10, 0), 5);
	/* The sink is shut for writing only: it can still be read. */
	assert_int_equal(send(f->right, "more", 4, MSG_NOSIGNAL), 4);
	assert_ready(f->sink, POLLIN);
	assert_int_equal(recv(f->sink, block, 10, 0), 4);
}

static void
case_E_21_reset_is_no_fin(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(send(f->left, "part", 4, 0), 4);
	while (f->way.bytes < 4)
		step(f);
	reset(f->left);
	step_until(f, RELAY_SOURCE_FAILED);
	assert_int_equal(f->way.sys_errno, ECONNRESET);
	assert_ready(f->right, POLLIN);
	assert_int_equal(recv(f->right, block, sizeof(block), 0), 4);
	assert_int_equal(recv(f->right, block, sizeof(block), MSG_DONTWAIT), -1);
	assert_int_equal(errno, EAGAIN); /* no FIN was made of it */
	/* And it stays failed. */
	assert_int_equal(relay_pump(&f->way, f->source, f->sink), RELAY_SOURCE_FAILED);
}

static void
case_E_21_reset_by_the_receiver(void **state)
{
	struct fixture *f = *state;
	int64_t deadline_ms = clock_mono_ms() + PATIENCE_MS;

	reset(f->right);
	while (f->way.status != RELAY_SINK_FAILED) {
		assert_true(clock_mono_ms() < deadline_ms);
		(void)send(f->left, block, 1000, MSG_NOSIGNAL);
		step(f);
	}
	assert_true(f->way.sys_errno == ECONNRESET || f->way.sys_errno == EPIPE);
}

static size_t
resident_kib(void)
{
	unsigned long size, resident;
	FILE *file = fopen("/proc/self/statm", "re");

	assert_non_null(file);
	assert_int_equal(fscanf(file, "%lu %lu", &size, &resident), 2);
	fclose(file);
	return resident * 4;
}

static void
case_E_23_stopped_reader(void **state)
{
	struct fixture *f = *state;
	size_t before = resident_kib(), sent = fill(f, 200);

	/* What went in is in socket buffers and one pipe, the way waits for the sink alone, and our memory is as it
	 * was. */
	assert_int_equal(f->way.status, RELAY_WRITING);
	assert_true(sent < (64u << 20));
	assert_true(f->way.stuck <= RELAY_PIPE_BYTES);
	assert_true(resident_kib() < before + 4096);
	assert_false(ready(f->sink, POLLOUT));
}

/* Without a descriptor for a pipe the bytes are copied: same result. */
static void
case_F_20_without_pipes(void **state)
{
	struct fixture *f = *state;
	struct rlimit limit, low;

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
	low = limit;
	low.rlim_cur = (rlim_t)f->right + 1;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	transfer(f, 100, 3000000, 65536, 65536);
	assert_int_equal(relay_pool_fds(), 0);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
}

static void
pipes_are_pooled_empty(void **state)
{
	struct fixture *f = *state;

	assert_int_equal(relay_pool_fds(), 0);
	assert_int_equal(send(f->left, "hello", 5, 0), 5);
	while (f->way.bytes < 5)
		step(f);
	assert_int_equal(relay_pool_fds(), 2);
	/* One that holds bytes when its connection ends is closed, not given to another. */
	fill(f, 0);
	assert_true(f->way.stuck > 0);
	relay_clear(&f->way);
	assert_int_equal(relay_pool_fds(), 0);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(case_D_23_every_byte_once_in_order),
	    cmocka_unit_test_setup_teardown(a_big_transfer, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_E_20_fin_after_the_last_byte, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_E_21_reset_is_no_fin, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_E_21_reset_by_the_receiver, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_E_23_stopped_reader, setup, teardown),
	    cmocka_unit_test_setup_teardown(case_F_20_without_pipes, setup, teardown),
	    cmocka_unit_test_setup_teardown(pipes_are_pooled_empty, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
