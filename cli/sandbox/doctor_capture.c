/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/doctor.h"

#include "cli/sandbox/userns.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Exit statuses of the child before the program runs, as a shell has them. */
#define CAPTURE_NO_NAMESPACE 126
#define CAPTURE_NO_PROGRAM 127

static void
capture_child(const char *const *argv, bool as_root, int out_fd)
{
	/* execv takes the words as they are and does not write to them. */
	union {
		const char *const *from;
		char *const *to;
	} words = {.from = argv};
	const char *what;

	if (dup2(out_fd, STDOUT_FILENO) < 0 || dup2(out_fd, STDERR_FILENO) < 0)
		_exit(CAPTURE_NO_PROGRAM);
	if (as_root && geteuid() != 0 && userns_enter(CLONE_NEWNET | CLONE_NEWNS, 0, 0, &what) < 0)
		_exit(CAPTURE_NO_NAMESPACE);
	execv(argv[0], words.to);
	_exit(CAPTURE_NO_PROGRAM);
}

static size_t
capture_read(int fd, char *output, size_t size)
{
	char rest[4096];
	size_t len = 0;
	ssize_t n;

	/* Output that does not fit is read and dropped: a program that cannot write would hang. */
	for (;;) {
		n = len + 1 < size ? read(fd, output + len, size - 1 - len) : read(fd, rest, sizeof(rest));
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return len;
		if (len + 1 < size)
			len += (size_t)n;
	}
}

int
doctor_capture(const char *const *argv, bool as_root, char *ret_output, size_t size)
{
	int fds[2], status;
	pid_t pid;

	ret_output[0] = '\0';
	if (pipe2(fds, O_CLOEXEC) < 0)
		return CAPTURE_NO_PROGRAM;
	pid = fork();
	if (pid == 0)
		capture_child(argv, as_root, fds[1]);
	close(fds[1]);
	if (pid > 0)
		ret_output[capture_read(fds[0], ret_output, size)] = '\0';
	close(fds[0]);
	while (pid > 0 && waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return CAPTURE_NO_PROGRAM;
	if (pid < 0 || !WIFEXITED(status))
		return CAPTURE_NO_PROGRAM;
	return WEXITSTATUS(status);
}
