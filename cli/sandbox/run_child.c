/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Three processes: postern itself; the child, which makes network, mount and process namespaces
 * and waits; and the first process of the new process namespace, which mounts a /proc of its own, hides the daemon's
 * directories, gives up what could undo all this, and runs the command as its child so that the command is not process
 * 1 (whose signals have no default effect). The daemon attaches the child's network namespace by its pid while it
 * waits, so that the command never runs without its gateway.
 *
 * What the command must not do: see the control socket of its daemon (it could allow itself anything) or of another
 * (whose sandboxes it could open), see other processes (their root directories and namespaces are doors), get
 * privileges back, make sockets that the network namespace does not confine (cli/sandbox/run_sockets.c). What it may:
 * everything else its user may; files are shared, and so are Unix sockets in files (postern(1) says so). */
#include "cli/sandbox/run_child.h"

#include "cli/sandbox/run_sockets.h"
#include "cli/sandbox/userns.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What root keeps inside: enough for package managers, nothing that reaches namespaces, devices or the kernel. */
static const unsigned int run_capabilities[] = {CAP_CHOWN, CAP_DAC_OVERRIDE, CAP_FOWNER, CAP_FSETID, CAP_KILL,
    CAP_SETGID, CAP_SETUID, CAP_SETFCAP, CAP_NET_BIND_SERVICE, CAP_SYS_CHROOT, CAP_AUDIT_WRITE};

static volatile sig_atomic_t run_signal_target;

/* Reports to postern why the command will not run, and exits. */
static void
run_fail(int ready_fd, const char *what)
{
	char text[512];
	int n = snprintf(text, sizeof(text), "%s: %s", what, strerror(errno));

	if (n > 0 && write(ready_fd, text, (size_t)n) < 0)
		_exit(126);
	_exit(126);
}

static void
run_userns(const struct run_child_config *config, int ready_fd)
{
	const char *what;
	char path[64];
	int fd, rc;

	switch (config->userns) {
	case RUN_USERNS_NONE:
		break;
	case RUN_USERNS_OWN:
		rc = userns_enter(0, geteuid(), getegid(), &what);
		errno = -rc;
		if (rc < 0)
			run_fail(ready_fd, what);
		break;
	case RUN_USERNS_KEEPER:
		snprintf(path, sizeof(path), "/proc/%d/ns/user", config->keeper_pid);
		fd = open(path, O_RDONLY | O_CLOEXEC);
		if (fd < 0 || setns(fd, CLONE_NEWUSER) < 0)
			run_fail(ready_fd, "the daemon's user namespace");
		close(fd);
		break;
	}
}

/* Mounts a file with our resolvers over the target of /etc/resolv.conf, and hides the directories of daemons. */
static void
run_mounts(const struct run_child_config *config, int ready_fd)
{
	char temp[] = "/tmp/postern-resolv.XXXXXX", text[256], target[PATH_MAX];
	int n =
	    snprintf(text, sizeof(text), "# postern run\nnameserver %s\nnameserver %s\n", config->dns4, config->dns6);
	int fd;

	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		run_fail(ready_fd, "mount namespace");
	fd = mkstemp(temp);
	if (fd < 0 || write(fd, text, (size_t)n) != n || fchmod(fd, 0644) < 0)
		run_fail(ready_fd, temp);
	close(fd);
	if (realpath("/etc/resolv.conf", target) == NULL || mount(temp, target, NULL, MS_BIND, NULL) < 0)
		run_fail(ready_fd, "/etc/resolv.conf");
	unlink(temp);
	for (size_t i = 0; i < RUN_CHILD_HIDE; i++)
		if (config->hide[i] != NULL && access(config->hide[i], F_OK) == 0 &&
		    mount("none", config->hide[i], "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, "size=4k,mode=0555") < 0)
			run_fail(ready_fd, config->hide[i]);
}

static void
run_give_up_privilege(void)
{
	capng_clear(CAPNG_SELECT_ALL);
	if (geteuid() == 0)
		for (size_t i = 0; i < sizeof(run_capabilities) / sizeof(run_capabilities[0]); i++)
			capng_update(
			    CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, run_capabilities[i]);
	if (capng_apply(CAPNG_SELECT_ALL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    run_sockets_confine() < 0) {
		fprintf(stderr, "postern run: privileges could not be given up\n");
		_exit(126);
	}
}

static void
run_pass_signal(int number)
{
	if (run_signal_target > 0)
		kill((pid_t)run_signal_target, number);
}

static void
run_pass_signals_to(pid_t pid)
{
	struct sigaction action = {.sa_handler = run_pass_signal};

	run_signal_target = pid;
	sigaction(SIGINT, &action, NULL);
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGHUP, &action, NULL);
}

/* Waits for pid, reaping all others on the way: its status as a shell gives it. */
static int
run_wait(pid_t pid)
{
	int status;
	pid_t ended;

	for (;;) {
		ended = waitpid(-1, &status, 0);
		if (ended == pid)
			return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
		if (ended < 0 && errno != EINTR)
			return 126;
	}
}

/* Forks a process for what runs below this one, waits for it, and ends with its status. */
static void
run_below(const struct run_child_config *config, void (*below)(const struct run_child_config *config))
{
	pid_t pid = fork();

	if (pid < 0)
		_exit(126);
	if (pid == 0)
		below(config);
	run_pass_signals_to(pid);
	_exit(run_wait(pid));
}

static void
run_exec(const struct run_child_config *config)
{
	char **argv = config->argv;
	static const int passed[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};

	for (size_t i = 0; i < sizeof(passed) / sizeof(passed[0]); i++)
		signal(passed[i], SIG_DFL);
	execvp(argv[0], argv);
	fprintf(stderr, "postern run: %s: %s\n", argv[0], strerror(errno));
	_exit(errno == ENOENT ? 127 : 126);
}

/* Process 1 of the new process namespace. It ends with the command's status; the kernel then kills what is left. */
static void
run_init(const struct run_child_config *config)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL) < 0) {
		fprintf(stderr, "postern run: /proc: %s\n", strerror(errno));
		_exit(126);
	}
	run_give_up_privilege();
	run_below(config, run_exec);
}

static void
run_child(const struct run_child_config *config, int ready_fd, int go_fd)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	run_userns(config, ready_fd);
	if (unshare(CLONE_NEWNET | CLONE_NEWNS | CLONE_NEWPID) < 0)
		run_fail(ready_fd, "network, mount and process namespaces");
	run_mounts(config, ready_fd);
	/* The daemon opens /proc/PID/ns/net of ours: a rootless one may only while we are dumpable. */
	prctl(PR_SET_DUMPABLE, 1, 0, 0, 0);
	if (write(ready_fd, "", 1) != 1)
		_exit(126);
	close(ready_fd);
	/* Closed without a byte: go. A byte: the attach failed. */
	if (read(go_fd, &byte, 1) != 0)
		_exit(126);
	close(go_fd);
	run_below(config, run_init);
}

int
run_child_start(const struct run_child_config *config, struct run_child *ret_child, struct error *err)
{
	int ready[2], go[2];
	pid_t pid;

	if (pipe2(ready, O_CLOEXEC) < 0)
		return error_sys(err, errno, "pipe");
	if (pipe2(go, O_CLOEXEC) < 0) {
		error_sys(err, errno, "pipe");
		close(ready[0]);
		close(ready[1]);
		return -1;
	}
	fflush(NULL);
	pid = fork();
	if (pid == 0) {
		close(ready[0]);
		close(go[1]);
		run_child(config, ready[1], go[0]);
	}
	close(ready[1]);
	close(go[0]);
	if (pid < 0) {
		error_sys(err, errno, "fork");
		close(ready[0]);
		close(go[1]);
		return -1;
	}
	*ret_child = (struct run_child){.pid = pid, .go_fd = go[1], .ready_fd = ready[0]};
	return 0;
}

int
run_child_ready(struct run_child *child, struct error *err)
{
	char text[512];
	ssize_t n = read(child->ready_fd, text, sizeof(text) - 1);

	close(child->ready_fd);
	child->ready_fd = -1;
	if (n == 1 && text[0] == '\0')
		return 0;
	text[n > 0 ? n : 0] = '\0';
	return error_set(err, ERROR_SYSTEM, "a sandbox for the command: %s", n > 0 ? text : "it ended at once");
}

void
run_child_go(struct run_child *child)
{
	close(child->go_fd);
	child->go_fd = -1;
}

int
run_child_wait(struct run_child *child)
{
	run_pass_signals_to(child->pid);
	return run_wait(child->pid);
}

void
run_child_cancel(struct run_child *child)
{
	if (child->go_fd >= 0 && write(child->go_fd, "x", 1) == 1)
		run_child_go(child);
	kill(child->pid, SIGKILL);
	run_wait(child->pid);
}
