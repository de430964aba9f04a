/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The life of the daemon: start the roles, watch, stop.
 *
 * Theory of operation. The keeper is the only process with privilege and the only one that outlives a role's crash. It
 * reads no byte from a sandbox and trusts no role: a role's message is checked against the closed list in
 * keeper_request.c, and one that no honest role sends ends that role.
 *
 * Start: set-up (keeper_setup.c), then the auditor, then gateways and control; each gets a channel to the auditor when
 * both are ready. A role that ends before all of them were ready once stops the start. Later ends are recorded and the
 * role is started again. The keeper holds every listening socket and every sealed policy, so that a new gateway gets
 * what the old one had; what only the old one knew (leases) is flushed, never trusted.
 *
 * Stop (SIGTERM, SIGINT; SIGHUP of a closed terminal): gateways and control get MSG_SHUTDOWN and close what is open;
 * when they are gone the auditor gets it; when it is gone, the keeper ends. Namespaces and devices stay for the next
 * start (with no socket in them nothing passes); `postern detach` is what removes them. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"
#include "base/log.h"
#include "policy/text/quantity.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

/* An orderly stop may take this long; then the roles that still run are killed. */
#define KEEPER_STOP_MS 8000
#define KEEPER_WATCH_FIRST_MS 500

/* Logs and records the start when all roles are ready for the first time; with the sources of the log's countries and
 * networks: {"country_db": {"type","built"}}. The types need no escapes. */
static void
keeper_announce(struct keeper *keeper)
{
	static const char *const members[] = {[GEO_COUNTRY] = "country_db", [GEO_ASN] = "asn_db"};
	char databases[RECORD_DETAIL_MAX / 2] = "", built[QUANTITY_TEXT_MAX];
	size_t len = 0;

	if (keeper->announced)
		return;
	for (size_t i = 0; i < keeper->role_count; i++)
		if (!keeper->roles[i].ready)
			return;
	keeper->announced = true;
	sd_notify(0, "READY=1");
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		const struct geo_about *about = &keeper->databases[kind];

		if (about->type[0] != '\0')
			len += (size_t)snprintf(databases + len, sizeof(databases) - len,
			    ",\"%s\":{\"type\":\"%s\",\"built\":\"%s\"}", members[kind], about->type,
			    quantity_format_instant(about->built_us, built));
	}
	keeper_event(keeper, EVENT_DAEMON_START, 0, "{\"version\":\"%s\",\"rootless\":%s%s}", POSTERN_VERSION,
	    keeper->options->rootless ? "true" : "false", databases);
	log_info("ready: %u gateway%s, control socket %s/control.sock", keeper->gateway_count,
	    keeper->gateway_count == 1 ? "" : "s", keeper->options->runtime_dir);
}

/* MSG_READY: the role has set itself up. False when no honest role says so. */
static bool
keeper_role_ready(struct keeper_role *role, const struct msg_ready *ready)
{
	struct msg_channel listener = {.role = MSG_ROLE_CONTROL, .epoch = role->epoch};
	struct keeper *keeper = role->keeper;

	if (role->ready)
		return false;
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++)
		if (!geo_about_valid(&ready->databases[kind]))
			return false;
	role->ready = true;
	if (role->row->records) {
		keeper_role_connect_auditor(keeper, role);
	} else {
		/* There is an auditor: roles that do not run yet are started, others get a new channel. */
		keeper_role_connect_auditor(keeper, NULL);
		for (size_t i = 0; i < keeper->role_count; i++) {
			struct keeper_role *sender = &keeper->roles[i];

			if (!sender->row->records)
				continue;
			if (sender->pid == 0 && !loop_timer_armed(&sender->respawn_timer))
				keeper_role_spawn(sender);
			else
				keeper_role_connect_auditor(keeper, sender);
		}
	}
	if (role->row->sandboxes)
		keeper_attach_gateway_ready(role);
	if (role->row->listener) {
		memcpy(keeper->databases, ready->databases, sizeof(keeper->databases));
		ipc_send(&role->ipc, MSG_CHANNEL, 0, &listener, sizeof(listener), &keeper->control_listen_fd, 1);
	}
	keeper_announce(keeper);
	return true;
}

bool
keeper_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	struct keeper_role *role = loop_owner(ipc, struct keeper_role, ipc);

	if (message->header.type == MSG_READY)
		return keeper_role_ready(role, message->body);
	return role->ready && keeper_request_take(role, message);
}

/* Stops the auditor when the roles that send to it are gone, and the loop when it is gone too. */
static void
keeper_stop_step(struct keeper *keeper)
{
	for (size_t i = 0; i < keeper->role_count; i++)
		if (keeper->roles[i].row->records && keeper->roles[i].pid != 0)
			return;
	if (keeper->auditor->pid == 0) {
		loop_stop(keeper->loop);
		return;
	}
	if (!keeper->stop_recorded) /* the log's last record */
		keeper_event(keeper, EVENT_DAEMON_STOP, 0, "{}");
	keeper->stop_recorded = true;
	ipc_send(&keeper->auditor->ipc, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0);
}

void
keeper_gateway_gone(struct keeper_role *gateway)
{
	keeper_totals_gateway_gone(gateway);
	keeper_lease_gateway_gone(gateway);
	keeper_answer_fail_all(gateway);
}

/* A role's process ended: starts it again, or goes on with the stop. */
static void
keeper_role_gone(struct keeper_role *role, int wait_status)
{
	const char *how = WIFSIGNALED(wait_status) ? strsignal(WTERMSIG(wait_status)) : "exit";
	int number = WIFSIGNALED(wait_status) ? WTERMSIG(wait_status) : WEXITSTATUS(wait_status);
	struct keeper *keeper = role->keeper;

	if (keeper->stopping) {
		keeper_stop_step(keeper);
		return;
	}
	if (!keeper->announced)
		log_fatalx("the %s did not start (%s %d): see its messages above", role->row->name, how, number);
	log_warnx("the %s ended unexpectedly (%s %d): starting it again", role->row->name, how, number);
	keeper_event(keeper, EVENT_ROLE_CRASH, 0, "{\"role\":\"%s\",\"%s\":%d}", role->row->name,
	    WIFSIGNALED(wait_status) ? "signal" : "status", number);
	if (role->row->sandboxes) {
		keeper_event_gap(keeper, role);
		keeper_gateway_gone(role);
	}
	keeper_role_respawn_later(role);
}

/* The orderly stop took too long. */
static void
keeper_stop_handler(struct loop_timer *timer)
{
	struct keeper *keeper = loop_owner(timer, struct keeper, stop_timer);

	log_warnx("the roles did not stop in time: killing them");
	for (size_t i = 0; i < keeper->role_count; i++)
		if (keeper->roles[i].pid != 0)
			kill(keeper->roles[i].pid, SIGKILL);
	loop_stop(keeper->loop);
}

/* Begins the orderly stop. */
static void
keeper_stop(struct keeper *keeper)
{
	if (keeper->stopping)
		return;
	keeper->stopping = true;
	sd_notify(0, "STOPPING=1");
	loop_timer_stop(keeper->loop, &keeper->watch_timer);
	for (size_t i = 0; i < keeper->role_count; i++) {
		loop_timer_stop(keeper->loop, &keeper->roles[i].respawn_timer);
		if (keeper->roles[i].row->records)
			ipc_send(&keeper->roles[i].ipc, MSG_SHUTDOWN, 0, NULL, 0, NULL, 0);
	}
	keeper->stop_timer.handler = keeper_stop_handler;
	loop_timer_set(keeper->loop, &keeper->stop_timer, KEEPER_STOP_MS);
	keeper_stop_step(keeper);
}

/* Looks at the sandboxes. A daemon that `postern run` started for itself ends when it has had none for a while. */
static void
keeper_watch_handler(struct loop_timer *timer)
{
	struct keeper *keeper = loop_owner(timer, struct keeper, watch_timer);
	int64_t now_ms = clock_mono_ms(), idle_ms = (int64_t)keeper->options->exit_idle_s * 1000;

	if (keeper->sandbox_count > 0 || keeper->busy_ms == 0)
		keeper->busy_ms = now_ms;
	if (idle_ms > 0 && now_ms - keeper->busy_ms > idle_ms) {
		log_info("no sandbox for %u s: stopping", keeper->options->exit_idle_s);
		keeper_stop(keeper);
		return;
	}
	loop_timer_set(keeper->loop, timer, keeper_watch_look(keeper));
}

/* Reaps children; begins the stop. */
static void
keeper_signal_handler(struct loop_source *source, uint32_t events)
{
	struct keeper *keeper = loop_owner(source, struct keeper, signals);
	struct signalfd_siginfo info;
	struct keeper_role *role;
	int status;

	(void)events;
	while (read(source->fd, &info, sizeof(info)) == sizeof(info)) {
		if (info.ssi_signo == SIGCHLD)
			while ((role = keeper_role_reap(keeper, &status)) != NULL)
				keeper_role_gone(role, status);
		else if (info.ssi_signo == SIGHUP && isatty(STDERR_FILENO) == 0)
			log_info("SIGHUP: there is nothing to reload; policies change through the control socket");
		else
			keeper_stop(keeper);
	}
}

/* Has the loop handle the signals. */
static void
keeper_signals(struct keeper *keeper)
{
	sigset_t set;

	signal(SIGPIPE, SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	keeper->signals.fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	keeper->signals.handler = keeper_signal_handler;
	if (keeper->signals.fd < 0 || loop_source_add(keeper->loop, &keeper->signals, EPOLLIN) < 0)
		log_fatal("signalfd");
}

void
keeper_init(struct keeper *keeper, const struct role *roles, const struct options *options, char **argv)
{
	memset(keeper, 0, sizeof(*keeper));
	keeper->options = options;
	keeper->argv = argv;
	keeper->gateway_count = options->gateways;
	keeper->started_us = clock_real_us();
	TAILQ_INIT(&keeper->watched);
	TAILQ_INIT(&keeper->listed);
	for (const struct role *row = roles; row->name != NULL; row++) {
		struct keeper_role *first = &keeper->roles[keeper->role_count];

		for (unsigned int i = 0; i < (row->sandboxes ? options->gateways : 1); i++) {
			struct keeper_role *role = &keeper->roles[keeper->role_count++];

			keeper_role_init(role, keeper, row, i);
			role->ipc.message_handler = keeper_message_handler;
			role->ipc.fds_lost_handler = keeper_request_fds_lost_handler;
		}
		if (row->sandboxes)
			keeper->gateways = first;
		else if (row->listener)
			keeper->control = first;
		else
			keeper->auditor = first;
	}
}

/* Sets up, runs, and takes down. */
static int
keeper_live(struct keeper *keeper)
{
	struct keeper_sandbox *sandbox;
	uint64_t epoch;
	struct error err;
	int rc;

	keeper_setup(keeper);
	keeper->loop = loop_new();
	if (keeper->loop == NULL)
		log_fatal("epoll");
	keeper_signals(keeper);
	if (keeper_role_epoch(keeper, &epoch) < 0)
		return 1;
	recorder_init(&keeper->recorder, keeper->loop, epoch);
	for (size_t i = 0; i < keeper->role_count; i++)
		if (!keeper->roles[i].row->records)
			keeper_role_spawn(&keeper->roles[i]);
	keeper->watch_timer.handler = keeper_watch_handler;
	loop_timer_set(keeper->loop, &keeper->watch_timer, KEEPER_WATCH_FIRST_MS);
	rc = loop_run(keeper->loop);
	while ((sandbox = TAILQ_FIRST(&keeper->watched)) != NULL)
		keeper_sandbox_free(keeper, sandbox, !keeper->options->rootless);
	if (keeper->host_chain && tap_host_chain_remove(keeper->host_table, &err) < 0)
		log_warnx("%s", err.text);
	return rc < 0 ? 1 : 0;
}

int
keeper_run(const struct role *roles, const struct options *options, char **argv)
{
	static struct keeper keeper; /* a process has one; large */

	log_init("keeper");
	keeper_init(&keeper, roles, options, argv);
	return keeper_live(&keeper);
}
