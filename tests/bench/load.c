/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Load for tests/bench/path: the origin, and what a guest measures of its way there. Each mode prints one number.
 *
 *   load origin ADDRESS PORT            echoes; a connection that begins with 'b' is sent bytes until it is closed
 *   load connect ADDRESS PORT COUNT     median microseconds of connect, one byte there and back, one after the other
 *   load rate ADDRESS PORT COUNT FLIGHT such connections a second, FLIGHT of them at a time
 *   load bulk ADDRESS PORT MEBIBYTES    Gbit/s of one connection that receives
 *   load dns ADDRESS NAME COUNT         median microseconds of an A question, one after the other
 *
 * IPv4 only. A second without progress ends a measurement with status 1. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 256
#define COUNT_MAX 100000

static char bytes[1 << 18];

static void
die(const char *what)
{
	fprintf(stderr, "load: %s: %s\n", what, strerror(errno));
	exit(1);
}

static double
now_us(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e6 + (double)ts.tv_nsec / 1e3;
}

static struct sockaddr_in
address(const char *text, int port)
{
	struct sockaddr_in sin = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};

	if (inet_pton(AF_INET, text, &sin.sin_addr) != 1)
		die(text);
	return sin;
}

static int
compare(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void
print_median(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), compare);
	printf("%.1f\n", values[count / 2]);
}

/* A socket on which nothing waits longer than a second. */
static int
patient_socket(int type)
{
	struct timeval second = {1, 0};
	int fd = socket(AF_INET, type, 0);

	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second)) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof(second)) < 0)
		die("socket");
	return fd;
}

static void
watch(int epoll, int op, int fd, uint32_t events)
{
	struct epoll_event event = {.events = events, .data.fd = fd};

	if (epoll_ctl(epoll, op, fd, &event) < 0)
		die("epoll_ctl");
}

/* One ready connection of the origin: it echoes, until its first byte asks for bulk. */
static void
serve(int epoll, const struct epoll_event *event)
{
	int fd = event->data.fd;
	ssize_t n;

	if ((event->events & EPOLLOUT) != 0) {
		n = send(fd, bytes, sizeof(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n >= 0 || errno == EAGAIN)
			return;
		close(fd);
		return;
	}
	n = recv(fd, bytes, sizeof(bytes), MSG_DONTWAIT);
	if (n < 0 && errno == EAGAIN)
		return;
	if (n <= 0)
		close(fd);
	else if (bytes[0] == 'b')
		watch(epoll, EPOLL_CTL_MOD, fd, EPOLLOUT);
	else if (send(fd, bytes, (size_t)n, MSG_NOSIGNAL) < 0)
		close(fd);
}

static void
origin(struct sockaddr_in at)
{
	struct epoll_event events[EVENTS_MAX];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0), epoll = epoll_create1(0), one = 1, fd;

	setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	if (bind(listener, (struct sockaddr *)&at, sizeof(at)) < 0 || listen(listener, 1024) < 0)
		die("listen");
	watch(epoll, EPOLL_CTL_ADD, listener, EPOLLIN);
	for (;;) {
		int count = epoll_wait(epoll, events, EVENTS_MAX, -1);

		for (int i = 0; i < count; i++) {
			if (events[i].data.fd != listener) {
				serve(epoll, &events[i]);
				continue;
			}
			while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
				setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
				watch(epoll, EPOLL_CTL_ADD, fd, EPOLLIN);
			}
		}
	}
}

static void
measure_connect(struct sockaddr_in to, size_t count)
{
	double *took = calloc(count, sizeof(*took));

	for (size_t i = 0; i < count; i++) {
		int fd = patient_socket(SOCK_STREAM);
		double began = now_us();
		char byte = 'e';

		if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, &byte, 1, MSG_NOSIGNAL) != 1 ||
		    recv(fd, &byte, 1, 0) != 1)
			die("connect");
		took[i] = now_us() - began;
		close(fd);
	}
	print_median(took, count);
}

/* Starts one more connection of measure_rate. */
static void
start(int epoll, struct sockaddr_in to)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);

	if (fd < 0 || (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 && errno != EINPROGRESS))
		die("connect");
	watch(epoll, EPOLL_CTL_ADD, fd, EPOLLOUT);
}

static void
measure_rate(struct sockaddr_in to, size_t count, size_t flight)
{
	struct epoll_event events[EVENTS_MAX];
	size_t begun = 0, done = 0;
	double began = now_us();
	int epoll = epoll_create1(0);
	char byte = 'e';

	for (; begun < flight; begun++)
		start(epoll, to);
	while (done < count) {
		int ready = epoll_wait(epoll, events, EVENTS_MAX, 1000);

		if (ready <= 0)
			die("no connection within a second");
		for (int i = 0; i < ready; i++) {
			int fd = events[i].data.fd;

			if ((events[i].events & EPOLLOUT) != 0) {
				if (send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
					die("send");
				watch(epoll, EPOLL_CTL_MOD, fd, EPOLLIN);
				continue;
			}
			if (recv(fd, &byte, 1, 0) != 1)
				die("recv");
			close(fd);
			done++;
			if (begun++ < count)
				start(epoll, to);
		}
	}
	printf("%.0f\n", (double)count / (now_us() - began) * 1e6);
}

static void
measure_bulk(struct sockaddr_in to, size_t mebibytes)
{
	int fd = patient_socket(SOCK_STREAM);
	uint64_t want = (uint64_t)mebibytes << 20, got = 0;
	char byte = 'b';
	double began;

	if (connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0 || send(fd, &byte, 1, MSG_NOSIGNAL) != 1)
		die("connect");
	began = now_us();
	while (got < want) {
		ssize_t n = recv(fd, bytes, sizeof(bytes), 0);

		if (n <= 0)
			die("recv");
		got += (uint64_t)n;
	}
	printf("%.2f\n", (double)got * 8 / (now_us() - began) / 1e3);
}

static void
measure_dns(struct sockaddr_in to, const char *name, size_t count)
{
	double *took = calloc(count, sizeof(*took));
	unsigned char query[300] = {0, 0, 1, 0, 0, 1}, answer[1500];
	size_t len = 12, label;
	int fd = patient_socket(SOCK_DGRAM);

	if (strlen(name) > 250 || connect(fd, (struct sockaddr *)&to, sizeof(to)) < 0)
		die(name);
	for (const char *at = name; *at != '\0'; at += label + (at[label] == '.')) {
		label = strcspn(at, ".");
		query[len++] = (unsigned char)label;
		memcpy(query + len, at, label);
		len += label;
	}
	query[len + 2] = query[len + 4] = 1; /* the root's label, type A, class IN */
	len += 5;
	for (size_t i = 0; i < count; i++) {
		double began = now_us();

		query[0] = (unsigned char)(i >> 8);
		query[1] = (unsigned char)i;
		if (send(fd, query, len, 0) < 0 || recv(fd, answer, sizeof(answer), 0) < 12 || answer[1] != query[1] ||
		    (answer[3] & 15) != 0)
			die("no answer");
		took[i] = now_us() - began;
	}
	print_median(took, count);
}

int
main(int argc, char **argv)
{
	const char *mode = argc > 3 ? argv[1] : "";
	size_t count = argc > 4 ? (size_t)atol(argv[4]) : 0;

	if (strcmp(mode, "origin") == 0)
		origin(address(argv[2], atoi(argv[3])));
	else if (count == 0 || count > COUNT_MAX)
		return fprintf(stderr, "load: see the head of tests/bench/load.c\n"), 2;
	else if (strcmp(mode, "connect") == 0)
		measure_connect(address(argv[2], atoi(argv[3])), count);
	else if (strcmp(mode, "rate") == 0 && argc > 5)
		measure_rate(address(argv[2], atoi(argv[3])), count, (size_t)atol(argv[5]));
	else if (strcmp(mode, "bulk") == 0)
		measure_bulk(address(argv[2], atoi(argv[3])), count);
	else if (strcmp(mode, "dns") == 0)
		measure_dns(address(argv[2], 53), argv[3], count);
	else
		return 2;
	return 0;
}
