/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's children: each is this program again with --role, one inherited descriptor and a new epoch. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A role that lived this long did not die of its start. */
#define ROLE_STEADY_MS 60000

void
keeper_role_kill(struct keeper_role *role, const char *why)
{
	if (role->pid == 0 || role->keeper->stopping)
		return;
	log_warnx("%s (pid %d): %s", role->row->name, role->pid, why);
	kill(role->pid, SIGKILL);
}

/* The role's channel broke: it is gone, sends nonsense, or does not read. */
static void
role_broken_handler(struct ipc *ipc, const char *why)
{
	keeper_role_kill(loop_owner(ipc, struct keeper_role, ipc), why);
}

/* The wait after a role's end is over. */
static void
role_respawn_handler(struct loop_timer *timer)
{
	struct keeper_role *role = loop_owner(timer, struct keeper_role, respawn_timer);

	role->restarts++;
	keeper_role_spawn(role);
}

void
keeper_role_init(struct keeper_role *role, struct keeper *keeper, const struct role *row, unsigned int index)
{
	memset(role, 0, sizeof(*role));
	role->keeper = keeper;
	role->row = row;
	role->index = index;
	role->respawn_ms = KEEPER_RESPAWN_MS;
	ipc_init(&role->ipc, MSG_ROLE_KEEPER, row->kind, NULL, role_broken_handler);
	role->respawn_timer.handler = role_respawn_handler;
}

/* What a role gets of our environment: what it reads, what the dynamic loader and sanitizers read. Nothing else:
 * `postern run` is started among an agent's own keys, and a role that meets hostile bytes has no business with them. */
static const char *const role_variables[] = {"POSTERN_",
    "XDG_RUNTIME_DIR=", "XDG_STATE_HOME=", "HOME=", "JOURNAL_STREAM=", "LD_",
    "LC_ALL=", "LANG=", "TZ=", "ASAN_OPTIONS=", "UBSAN_OPTIONS=", "LSAN_OPTIONS="};

/* Is the variable one of them? */
static bool
role_may_see(const char *variable)
{
	for (size_t i = 0; i < sizeof(role_variables) / sizeof(role_variables[0]); i++)
		if (strncmp(variable, role_variables[i], strlen(role_variables[i])) == 0)
			return true;
	return false;
}

/* The variables that a role may see, in an array made before the first fork. */
static char **
role_environment(void)
{
	static char **kept;
	size_t count = 0, n = 0;

	while (environ[count] != NULL)
		count++;
	if (kept == NULL)
		kept = calloc(count + 1, sizeof(*kept));
	if (kept == NULL)
		log_fatalx("no memory");
	for (size_t i = 0; i < count; i++)
		if (role_may_see(environ[i]))
			kept[n++] = environ[i];
	kept[n] = NULL;
	return kept;
}

/* Writes the epoch durably. */
static int
role_epoch_write(int fd, uint64_t epoch)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)epoch);
	ssize_t n = pwrite(fd, text, (size_t)len, 0);

	if (n != len)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

int
keeper_role_epoch(struct keeper *keeper, uint64_t *ret_epoch)
{
	uint64_t *last = &keeper->last_epoch;
	char path[512], text[32];
	uint64_t now = (uint64_t)(clock_real_us() / 1000000);
	ssize_t n;
	int fd, rc;

	snprintf(path, sizeof(path), "%s/epoch", keeper->options->state_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		rc = -errno;
	} else {
		n = pread(fd, text, sizeof(text) - 1, 0);
		if (n > 0) {
			text[n] = '\0';
			if (strtoull(text, NULL, 10) > *last)
				*last = strtoull(text, NULL, 10);
		}
		*last = now >= *last + RECORD_EPOCH_SPAN ? now : *last + RECORD_EPOCH_SPAN;
		rc = role_epoch_write(fd, *last);
		close(fd);
	}
	if (rc < 0)
		log_warnx("%s: %s: no role can be started without it", path, strerror(-rc));
	else
		*ret_epoch = *last;
	return rc;
}

/* What becomes of the process: its arguments, and the descriptors that it keeps. */
struct role_start {
	char **argv, **environment;
	int fds[1 + GEO_KIND_MAX];
	size_t fd_count;
};

/* In the child: only async-signal-safe calls up to execve. */
static void
role_exec(const struct role_start *start)
{
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (size_t i = 0; i < start->fd_count; i++)
		fcntl(start->fds[i], F_SETFD, 0);
	execve("/proc/self/exe", start->argv, start->environment);
	_exit(127);
}

/* Rootless: a network namespace can be left only for one that our user namespace owns, and the host's is not. So the
 * keeper's main thread lives in a namespace of its own, to come back to, and this thread, which never left the host's,
 * does the forking: a child is where its thread was. */
static struct {
	bool running;
	sem_t asked, done;
	const struct role_start *start;
	pid_t pid;
} role_forker;

/* The thread: forks when asked. */
static void *
role_forker_main(void *unused)
{
	for (;;) {
		while (sem_wait(&role_forker.asked) < 0)
			;
		role_forker.pid = fork();
		if (role_forker.pid == 0)
			role_exec(role_forker.start);
		sem_post(&role_forker.done);
	}
	return unused;
}

void
keeper_role_fork_from_here(void)
{
	pthread_t thread;

	if (sem_init(&role_forker.asked, 0, 0) < 0 || sem_init(&role_forker.done, 0, 0) < 0 ||
	    pthread_create(&thread, NULL, role_forker_main, NULL) != 0)
		log_fatalx("a thread to start roles from");
	role_forker.running = true;
}

/* Forks, in the thread where there is one; the process becomes the role. The pid, or -1. */
static pid_t
role_fork(const struct role_start *start)
{
	pid_t pid;

	if (role_forker.running) {
		role_forker.start = start;
		sem_post(&role_forker.asked);
		while (sem_wait(&role_forker.done) < 0)
			;
		return role_forker.pid;
	}
	pid = fork();
	if (pid == 0)
		role_exec(start);
	return pid;
}

/* Arguments of ours behind those that the keeper itself was given, and the longest list of both. */
#define ROLE_OWN_ARGUMENTS 10
#define ROLE_ARGUMENTS_MAX 128
/* A number in an argument, and NUL. */
#define ROLE_NUMBER_MAX 24

/* Appends an option and its value. */
static char **
role_argument(char **at, const char *option, const char *value)
{
	/* The strings are not written to. */
	*at++ = (char *)(uintptr_t)option;
	*at++ = (char *)(uintptr_t)value;
	return at;
}

/* The role cannot be started now: no descriptor or process. The daemon ends when the role never ran; else the others go
 * on, and it is tried again. */
static void
role_not_now(struct keeper_role *role, const char *what)
{
	if (role->restarts == 0)
		log_fatalx("the %s cannot be started: no %s", role->row->name, what);
	log_warnx("the %s cannot be started now: no %s; trying again", role->row->name, what);
	keeper_role_respawn_later(role);
}

void
keeper_role_spawn(struct keeper_role *role)
{
	static const char *const geo_options[] = {[GEO_COUNTRY] = "--country-fd", [GEO_ASN] = "--asn-fd"};
	struct keeper *keeper = role->keeper;
	char *argv[ROLE_ARGUMENTS_MAX], **at = argv;
	char fd_text[ROLE_NUMBER_MAX], epoch_text[ROLE_NUMBER_MAX];
	char geo_texts[GEO_KIND_MAX][ROLE_NUMBER_MAX];
	struct role_start start = {.argv = argv, .environment = role_environment()};
	int fds[2];

	if (keeper_role_epoch(keeper, &role->epoch) < 0 || ipc_pair(fds) < 0) {
		role_not_now(role, "its channel");
		return;
	}
	snprintf(fd_text, sizeof(fd_text), "%d", fds[1]);
	snprintf(epoch_text, sizeof(epoch_text), "%llu", (unsigned long long)role->epoch);
	for (size_t n = 0; keeper->argv[n] != NULL; n++) {
		if (n + ROLE_OWN_ARGUMENTS + 1 >= ROLE_ARGUMENTS_MAX)
			log_fatalx("more than %zu arguments", n);
		*at++ = keeper->argv[n];
	}
	at = role_argument(at, "--role", role->row->name);
	at = role_argument(at, "--role-fd", fd_text);
	at = role_argument(at, "--epoch", epoch_text);
	start.fds[start.fd_count++] = fds[1];
	for (size_t kind = 0; role->row->geo && kind < GEO_KIND_MAX; kind++) {
		if (keeper->geo_fds[kind] == 0)
			continue;
		snprintf(geo_texts[kind], sizeof(geo_texts[kind]), "%d", keeper->geo_fds[kind]);
		start.fds[start.fd_count++] = keeper->geo_fds[kind];
		at = role_argument(at, geo_options[kind], geo_texts[kind]);
	}
	*at = NULL;
	role->pid = role_fork(&start);
	close(fds[1]);
	if (role->pid < 0) {
		role->pid = 0;
		close(fds[0]);
		role_not_now(role, "a process");
		return;
	}
	role->ready = false;
	role->started_ms = clock_mono_ms();
	if (ipc_open(&role->ipc, keeper->loop, fds[0]) < 0)
		log_fatal("epoll");
}

void
keeper_role_respawn_later(struct keeper_role *role)
{
	if (clock_mono_ms() - role->started_ms > ROLE_STEADY_MS)
		role->respawn_ms = KEEPER_RESPAWN_MS;
	loop_timer_set(role->keeper->loop, &role->respawn_timer, role->respawn_ms);
	role->respawn_ms *= 2;
	if (role->respawn_ms > KEEPER_RESPAWN_MS_MAX)
		role->respawn_ms = KEEPER_RESPAWN_MS_MAX;
}

struct keeper_role *
keeper_role_by_epoch(struct keeper *keeper, uint64_t epoch)
{
	for (size_t i = 0; i < keeper->role_count; i++)
		if (keeper->roles[i].pid != 0 && keeper->roles[i].epoch == epoch)
			return &keeper->roles[i];
	return NULL;
}

struct keeper_role *
keeper_role_reap(struct keeper *keeper, int *ret_status)
{
	pid_t pid;

	while ((pid = waitpid(-1, ret_status, WNOHANG)) > 0) {
		for (size_t i = 0; i < keeper->role_count; i++) {
			struct keeper_role *role = &keeper->roles[i];

			if (role->pid != pid)
				continue;
			role->pid = 0;
			role->ready = false;
			ipc_close(&role->ipc);
			return role;
		}
	}
	return NULL;
}

void
keeper_role_connect_auditor(struct keeper *keeper, struct keeper_role *sender)
{
	struct msg_channel to_auditor = {.role = sender == NULL ? MSG_ROLE_KEEPER : sender->row->kind,
	    .epoch = sender == NULL ? keeper->recorder.epoch : sender->epoch};
	struct msg_channel to_sender = {.role = MSG_ROLE_AUDITOR, .epoch = to_auditor.epoch};
	int fds[2];

	if (!keeper->auditor->ready || (sender != NULL && !sender->ready))
		return;
	if (ipc_pair(fds) < 0)
		log_fatal("socketpair");
	ipc_send(&keeper->auditor->ipc, MSG_CHANNEL, 0, &to_auditor, sizeof(to_auditor), &fds[0], 1);
	close(fds[0]);
	if (sender == NULL) {
		if (recorder_connect(&keeper->recorder, fds[1], keeper->recorder.epoch) < 0)
			log_fatal("channel to the auditor");
		return;
	}
	ipc_send(&sender->ipc, MSG_CHANNEL, 0, &to_sender, sizeof(to_sender), &fds[1], 1);
	close(fds[1]);
}
