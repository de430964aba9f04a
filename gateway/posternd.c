/* SPDX-License-Identifier: GPL-3.0-or-later */
/* posternd: parse the options, then be the keeper, or the role that the keeper re-executed us for. */
#include "base/log.h"
#include "gateway/control/control.h"
#include "gateway/shared/options.h"
#include "tap/tap.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

struct role {
	const char *name, *process;
	int (*run)(const struct options *options);
};

static const struct role roles[] = {
    {"gateway", "postern-gateway", gateway_run},
    {"auditor", "postern-auditor", auditor_run},
    {"control", "postern-control", control_run},
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

static int
posternd_probe(void)
{
	struct error err;
	bool taps;

	if (tap_probe(&taps, &err) < 0) {
		fprintf(stderr, "posternd: %s\n", err.text);
		return error_exit_status(err.code);
	}
	puts("this kernel has what postern needs");
	if (!taps)
		puts("but not TAP devices (module tun, /dev/net/tun readable and writable): no microVMs, containers "
		     "only");
	return 0;
}

/* Ctrl-C and the end of a terminal reach every process of the daemon. What they mean is the keeper's to say, who has
 * each role close what it has open. */
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
	struct options options;
	struct error err;

	log_init("posternd");
	umask(077);
	if (options_read(&options, argc, argv, &err) < 0) {
		log_warnx("%s", err.text);
		return error_exit_status(err.code);
	}
	if (options.probe)
		return posternd_probe();
	if (options.role == NULL) {
		/* Whatever else whoever started us had open: no role needs it, and it must not outlive its owner here.
		 */
		if (close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
			log_warn("closing inherited descriptors");
		return keeper_run(&options, argv);
	}
	for (size_t i = 0; i < sizeof(roles) / sizeof(roles[0]); i++) {
		if (strcmp(roles[i].name, options.role) != 0)
			continue;
		posternd_leave_signals_to_keeper();
		prctl(PR_SET_NAME, roles[i].process); /* executed as /proc/self/exe, it would be "exe" in ps and ss */
		return roles[i].run(&options);
	}
	log_warnx("--role %s: no such role", options.role);
	return error_exit_status(ERROR_USAGE);
}
