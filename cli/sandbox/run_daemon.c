/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/run_daemon.h"

#include "base/paths.h"
#include "cli/client.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Seconds without a sandbox after which it stops; the next `run` of a script can still use it. */
#define RUN_DAEMON_IDLE "10"
/* It answers in a fraction of a second; this is the limit for a cold, busy machine. */
#define RUN_DAEMON_WAIT_MS 15000
#define RUN_DAEMON_STEP_MS 20
/* Users of a daemon that was never installed: any three that no account has. */
#define RUN_DAEMON_UID_FIRST 61185

const char *
run_daemon_path(void)
{
	static char path[PATH_MAX + 16];
	static const char *const places[] = {"/usr/sbin/posternd", "/usr/local/sbin/posternd"};
	ssize_t n = readlink("/proc/self/exe", path, PATH_MAX);

	if (n > 0) {
		path[n] = '\0';
		snprintf(strrchr(path, '/') + 1, 16, "posternd");
		if (access(path, X_OK) == 0)
			return path;
	}
	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (access(places[i], X_OK) == 0)
			return places[i];
	return NULL;
}

/* In the background process: become posternd. */
static void
run_daemon_exec(const char *path, int log_fd)
{
	static char first[16], second[16], third[16];
	const char *argv[16] = {path, "--exit-idle", RUN_DAEMON_IDLE};
	size_t n = 3;

	if (geteuid() == 0 && getpwnam("postern-gateway") == NULL) {
		snprintf(first, sizeof(first), "%d", RUN_DAEMON_UID_FIRST);
		snprintf(second, sizeof(second), "%d", RUN_DAEMON_UID_FIRST + 1);
		snprintf(third, sizeof(third), "%d", RUN_DAEMON_UID_FIRST + 2);
		argv[n++] = "--gateway-user";
		argv[n++] = first;
		argv[n++] = "--audit-user";
		argv[n++] = second;
		argv[n++] = "--control-user";
		argv[n++] = third;
		argv[n++] = "--group";
		argv[n++] = "0";
	}
	argv[n] = NULL;
	setsid();
	dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), STDIN_FILENO);
	dup2(log_fd, STDOUT_FILENO);
	dup2(log_fd, STDERR_FILENO);
	if (chdir("/") == 0)
		execv(path, (char *const *)(uintptr_t)argv); /* the strings are not written to */
	_exit(127);
}

/* The end of its log, for an error message. */
static void
run_daemon_last_words(const char *log_path, char *ret_text, size_t size)
{
	int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	char *end;
	ssize_t n = 0;

	if (fd >= 0) {
		off_t length = lseek(fd, 0, SEEK_END);

		n = pread(fd, ret_text, size - 1, length > (off_t)size - 1 ? length - (off_t)size + 1 : 0);
		close(fd);
	}
	ret_text[n > 0 ? n : 0] = '\0';
	end = ret_text + strlen(ret_text);
	while (end > ret_text && end[-1] == '\n')
		*--end = '\0';
}

static void
run_daemon_make_parents(const char *path)
{
	char part[PATH_MAX];

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(part, 0755); /* a failure shows when the file is opened */
		*slash = '/';
	}
}

static int
run_daemon_wait(pid_t pid, const char *log_path, struct error *err)
{
	char text[512];
	struct error ignored;
	json_t *answer;
	int status;

	for (int waited_ms = 0; waited_ms < RUN_DAEMON_WAIT_MS; waited_ms += RUN_DAEMON_STEP_MS) {
		if (client_request("GET", "/v1/status", NULL, &answer, &ignored) == 0) {
			json_decref(answer);
			return 0;
		}
		if (waitpid(pid, &status, WNOHANG) == pid)
			break;
		usleep(RUN_DAEMON_STEP_MS * 1000);
	}
	run_daemon_last_words(log_path, text, sizeof(text));
	return error_set(
	    err, ERROR_UNREACHABLE, "no daemon answers, and starting one failed; its log ends with:\n%s", text);
}

int
run_daemon_start(const char *log_path, struct error *err)
{
	const char *path = run_daemon_path();
	int log_fd;
	pid_t pid;

	if (path == NULL)
		return error_set(err, ERROR_UNREACHABLE,
		    "no daemon answers, and posternd is neither beside postern nor in /usr/sbin or /usr/local/sbin");
	run_daemon_make_parents(log_path);
	log_fd = open(log_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (log_fd < 0)
		return error_sys(err, errno, "%s", log_path);
	fflush(NULL);
	pid = fork();
	if (pid == 0)
		run_daemon_exec(path, log_fd);
	close(log_fd);
	if (pid < 0)
		return error_sys(err, errno, "fork");
	return run_daemon_wait(pid, log_path, err);
}
