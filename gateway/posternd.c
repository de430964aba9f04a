/* SPDX-License-Identifier: GPL-3.0-or-later */
/* posternd: parse the options, then be the keeper, or the role that the keeper re-executed us for. */
#include "base/log.h"
#include "gateway/auditor/auditor.h"
#include "gateway/control/control.h"
#include "gateway/keeper/keeper.h"
#include "gateway/path/gateway.h"
#include "gateway/shared/role.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

/* In the order in which they are started: the auditor is ready before there is anything to record. */
static const struct role roles[] = {
    {
	.kind = MSG_ROLE_AUDITOR,
	.name = "auditor",
	.process = "postern-auditor",
	.confinement = {.network = true, .syscalls = "auditor"},
	.run = auditor_run,
    },
    {
	.kind = MSG_ROLE_GATEWAY,
	.name = "gateway",
	.process = "postern-gateway",
	.confinement = {.root = true, .syscalls = "gateway"},
	.sandboxes = true,
	.records = true,
	.geo = true,
	.run = gateway_run,
    },
    {
	.kind = MSG_ROLE_CONTROL,
	.name = "control",
	.process = "postern-control",
	.confinement = {.syscalls = "control"},
	.records = true,
	.geo = true,
	.listener = true,
	.run = control_run,
    },
    {.name = NULL},
};

#ifdef POSTERN_SANITIZE
/* The leak checker attaches to its own process as a debugger does, which a role that gave up its identity does not
 * allow. The unit tests look for leaks. */
const char *__asan_default_options(void);
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#endif

/* Ctrl-C and the end of a terminal reach every process of the daemon; the keeper alone acts on them, and stops the
 * roles in order. */
static void
posternd_leave_signals_to_keeper(void)
{
	static const int signals[] = {SIGTERM, SIGINT, SIGHUP, SIGPIPE};

	for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
		signal(signals[i], SIG_IGN);
}

int
main(int argc, char **argv)
{
	const struct role *role;
	struct options options;
	struct error err;

	log_init("posternd");
	umask(077);
	if (options_read(&options, argc, argv, &err) < 0) {
		log_warnx("%s", err.text);
		return error_exit_status(err.code);
	}
	if (options.probe)
		return keeper_setup_probe();
	if (options.role == NULL) {
		/* No role needs what our starter had open, and it must not outlive its owner here. */
		if (close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
			log_warn("closing inherited descriptors");
		return keeper_run(roles, &options, argv);
	}
	role = role_find(roles, options.role);
	if (role == NULL) {
		log_warnx("--role %s: no such role", options.role);
		return error_exit_status(ERROR_USAGE);
	}
	posternd_leave_signals_to_keeper();
	prctl(PR_SET_NAME, role->process); /* executed as /proc/self/exe, it would be "exe" in ps and ss */
	return role->run(role, &options);
}
