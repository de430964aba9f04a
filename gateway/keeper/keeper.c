/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The life of the daemon: start the roles, watch, stop.
 *
 * Theory of operation. The keeper is the only process with privilege and the only one that outlives a role's crash.
 * Start: set-up (gateway/keeper/keeper_setup.c) -> auditor -> gateways and control (each told of its channel to the auditor
 * when both are ready). A role that dies before it was ever ready stops the start; later deaths are recorded and the
 * role is started again. The keeper holds every listening socket and every sealed policy, so a new gateway gets what
 * the old one had; what the old one knew (leases) is flushed, never trusted.
 *
 * Stop (SIGTERM, SIGINT; SIGHUP of a terminal that is closed): gateways and control are told, and close what is open;
 * when they are gone the auditor is told; when it is gone, so are we. Namespaces and devices stay for the next start
 * (with no socket in them nothing passes); `postern detach` is what removes them. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "policy/text/quantity.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

struct keeper keeper;

static struct loop_source keeper_signal_source;
static struct loop_timer keeper_stop_timer;
static bool keeper_announced;

static int
keeper_epoch_write(int fd, uint64_t epoch)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%020llu\n", (unsigned long long)epoch);
	ssize_t n = pwrite(fd, text, (size_t)len, 0);

	if (n != len)
		return n < 0 ? -errno : -ENOSPC;
	return fsync(fd) < 0 ? -errno : 0;
}

int
keeper_next_epoch(uint64_t *ret_epoch)
{
	static uint64_t last;
	char path[512], text[32];
	uint64_t now = (uint64_t)(clock_real_us() / 1000000);
	ssize_t n;
	int fd, rc;

	snprintf(path, sizeof(path), "%s/epoch", keeper.options->state_dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0) {
		rc = -errno;
	} else {
		n = pread(fd, text, sizeof(text) - 1, 0);
		if (n > 0) {
			text[n] = '\0';
			if (strtoull(text, NULL, 10) > last)
				last = strtoull(text, NULL, 10);
		}
		last = now >= last + RECORD_EPOCH_SPAN ? now : last + RECORD_EPOCH_SPAN;
		rc = keeper_epoch_write(fd, last);
		close(fd);
	}
	if (rc < 0)
		log_warnx("%s: %s: without it nothing can be numbered, and so nothing started", path, strerror(-rc));
	else
		*ret_epoch = last;
	return rc;
}

void
keeper_event(enum event_kind kind, int64_t sandbox, const char *fmt, ...)
{
	struct record record;
	va_list ap;

	keeper.tampered += kind == EVENT_TAMPERED;
	memset(&record, 0, sizeof(record));
	record.kind = RECORD_EVENT;
	record.event.id = recorder_id(&keeper.recorder);
	record.event.sandbox = sandbox;
	record.event.ts_us = clock_real_us();
	record.event.kind = (uint8_t)kind;
	record.event.uid = UINT32_MAX;
	va_start(ap, fmt);
	vsnprintf(record.event.detail, sizeof(record.event.detail), fmt, ap);
	va_end(ap);
	recorder_send(&keeper.recorder, &record, NULL);
}

/* Close, in the log, what a gateway that is gone had open. */
static void
keeper_record_gap(const struct keeper_role *gateway)
{
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = RECORD_GAP;
	record.gap.sender_epoch = gateway->epoch;
	record.gap.ts_us = clock_real_us();
	record.gap.end = END_GATEWAY_CRASH;
	recorder_send(&keeper.recorder, &record, NULL);
}

/* With what the log's countries and networks come from: {"country_db": {"type","built"}}. The types need no escapes. */
static void
keeper_event_start(void)
{
	static const char *const members[] = {[GEO_COUNTRY] = "country_db", [GEO_ASN] = "asn_db"};
	char databases[RECORD_DETAIL_MAX / 2] = "", built[QUANTITY_TEXT_MAX];
	size_t len = 0;

	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		const struct geo_about *about = &keeper.databases[kind];

		if (about->type[0] != '\0')
			len += (size_t)snprintf(databases + len, sizeof(databases) - len,
			    ",\"%s\":{\"type\":\"%s\",\"built\":\"%s\"}", members[kind], about->type,
			    quantity_format_instant(about->built_us, built));
	}
	keeper_event(EVENT_DAEMON_START, 0, "{\"version\":\"%s\",\"rootless\":%s%s}", POSTERN_VERSION,
	    keeper.options->rootless ? "true" : "false", databases);
}

static void
keeper_announce(void)
{
	if (keeper_announced || !keeper.auditor.ready || !keeper.control.ready)
		return;
	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		if (!keeper.gateways[i].ready)
			return;
	keeper_announced = true;
	sd_notify(0, "READY=1");
	keeper_event_start();
	log_info("ready: %u gateway%s, control socket %s/control.sock", keeper.gateway_count,
	    keeper.gateway_count == 1 ? "" : "s", keeper.options->runtime_dir);
}

static void
keeper_start_senders(void)
{
	keeper_role_connect_auditor(NULL);
	for (unsigned int i = 0; i < keeper.gateway_count; i++) {
		if (keeper.gateways[i].pid == 0 && !loop_timer_armed(&keeper.gateways[i].respawn_timer))
			keeper_role_spawn(&keeper.gateways[i]);
		else
			keeper_role_connect_auditor(&keeper.gateways[i]);
	}
	if (keeper.control.pid == 0 && !loop_timer_armed(&keeper.control.respawn_timer))
		keeper_role_spawn(&keeper.control);
	else
		keeper_role_connect_auditor(&keeper.control);
}

void
keeper_role_ready(struct keeper_role *role)
{
	struct msg_channel listener = {.role = MSG_ROLE_CONTROL, .epoch = role->epoch};

	if (role->kind == MSG_ROLE_AUDITOR) {
		keeper_start_senders();
	} else {
		keeper_role_connect_auditor(role);
		if (role->kind == MSG_ROLE_GATEWAY)
			keeper_request_gateway_ready(role);
		else
			ipc_send(&role->ipc, MSG_CHANNEL, 0, &listener, sizeof(listener), &keeper.control_listen_fd, 1);
	}
	keeper_announce();
}

static bool
keeper_senders_gone(void)
{
	if (keeper.control.pid != 0)
		return false;
	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		if (keeper.gateways[i].pid != 0)
			return false;
	return true;
}

static void
keeper_stop_step(void)
{
	static bool said;

	if (!keeper_senders_gone())
		return;
	if (keeper.auditor.pid == 0) {
		loop_stop(keeper.loop);
		return;
	}
	/* The last word of all. */
	if (!said)
		keeper_event(EVENT_DAEMON_STOP, 0, "{}");
	said = true;
	ipc_send(&keeper.auditor.ipc, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0);
}

void
keeper_role_gone(struct keeper_role *role, int wait_status)
{
	const char *how = WIFSIGNALED(wait_status) ? strsignal(WTERMSIG(wait_status)) : "exit";
	int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);

	if (keeper.stopping) {
		keeper_stop_step();
		return;
	}
	if (!keeper_announced)
		log_fatalx("the %s did not start (%s %d): see its messages above", keeper_role_name(role), how, number);
	log_warnx("the %s ended unexpectedly (%s %d): starting it again", keeper_role_name(role), how, number);
	keeper_event(EVENT_ROLE_CRASH, 0, "{\"role\":\"%s\",\"%s\":%d}", keeper_role_name(role),
	    WIFSIGNALED(wait_status) ? "signal" : "status", number);
	if (role->kind == MSG_ROLE_GATEWAY) {
		keeper_record_gap(role);
		keeper_request_gateway_gone(role);
	}
	keeper_role_respawn_later(role);
}

static void
keeper_kill_all(struct loop_timer *timer)
{
	(void)timer;
	log_warnx("the roles did not stop in time: killing them");
	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		if (keeper.gateways[i].pid != 0)
			kill(keeper.gateways[i].pid, SIGKILL);
	if (keeper.control.pid != 0)
		kill(keeper.control.pid, SIGKILL);
	if (keeper.auditor.pid != 0)
		kill(keeper.auditor.pid, SIGKILL);
	loop_stop(keeper.loop);
}

void
keeper_stop(void)
{
	if (keeper.stopping)
		return;
	keeper.stopping = true;
	sd_notify(0, "STOPPING=1");
	keeper_watch_stop();
	loop_timer_stop(keeper.loop, &keeper.control.respawn_timer);
	loop_timer_stop(keeper.loop, &keeper.auditor.respawn_timer);
	ipc_send(&keeper.control.ipc, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0);
	for (unsigned int i = 0; i < keeper.gateway_count; i++) {
		loop_timer_stop(keeper.loop, &keeper.gateways[i].respawn_timer);
		ipc_send(&keeper.gateways[i].ipc, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0);
	}
	keeper_stop_timer.handler = keeper_kill_all;
	loop_timer_set(keeper.loop, &keeper_stop_timer, KEEPER_STOP_MS);
	keeper_stop_step();
}

static void
keeper_signal_handler(struct loop_source *source, uint32_t events)
{
	struct signalfd_siginfo info;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			keeper_role_reap();
		else if (info.ssi_signo == SIGHUP && isatty(STDERR_FILENO) == 0)
			log_info("SIGHUP: there is nothing to reload; policies change through the control socket");
		else
			keeper_stop();
	}
}

static void
keeper_signals(void)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	keeper_signal_source.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	keeper_signal_source.handler = keeper_signal_handler;
	if (keeper_signal_source.fd < 0 || loop_source_add(keeper.loop, &keeper_signal_source, EPOLLIN) < 0)
		log_fatal("signalfd");
}

static void
keeper_release_sandbox(struct keeper_sandbox *sandbox, void *context)
{
	(void)context;
	keeper_sandbox_free(sandbox, !keeper.options->rootless);
}

int
keeper_run(const struct role *roles, const struct options *options, char **argv)
{
	uint64_t epoch;
	struct error err;
	int rc;

	log_init("keeper");
	keeper.roles = roles;
	keeper.options = options;
	keeper.argv = argv;
	keeper.gateway_count = options->gateways;
	keeper.started_us = clock_real_us();
	keeper_setup(options);
	keeper.loop = loop_new();
	if (keeper.loop == NULL)
		log_fatal("epoll");
	keeper_signals();
	if (keeper_next_epoch(&epoch) < 0)
		return 1;
	recorder_init(&keeper.recorder, keeper.loop, epoch);
	keeper_role_init(&keeper.auditor, MSG_ROLE_AUDITOR, 0);
	keeper_role_init(&keeper.control, MSG_ROLE_CONTROL, 0);
	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		keeper_role_init(&keeper.gateways[i], MSG_ROLE_GATEWAY, i);
	keeper_role_spawn(&keeper.auditor);
	keeper_watch_start();
	rc = loop_run(keeper.loop);
	keeper_sandbox_each(keeper_release_sandbox, NULL);
	if (keeper.host_chain && tap_host_chain_remove(keeper.host_table, &err) < 0)
		log_warnx("%s", err.text);
	return rc < 0 ? 1 : 0;
}
