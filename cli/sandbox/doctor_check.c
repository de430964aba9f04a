/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "cli/sandbox/doctor.h"

#include "base/paths.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/sandbox/run_daemon.h"
#include "policy/names/addr.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Largest ruleset; large hosts have many rules. */
#define DOCTOR_RULESET_MAX (8u << 20)
#define DOCTOR_OUTPUT_MAX 2048

static const char *const doctor_levels[] = {
    [DOCTOR_OK] = "ok",
    [DOCTOR_WARN] = "warn",
    [DOCTOR_FAIL] = "fail",
};
static_assert(sizeof(doctor_levels) / sizeof(doctor_levels[0]) == DOCTOR_LEVEL_MAX, "one word per level");

void
doctor_check_add(
    struct doctor *doctor, enum doctor_level level, const char *check, const char *remedy, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	text[strcspn(text, "\n")] = '\0';
	for (char *at = text; *at != '\0'; at++)
		if ((unsigned char)*at >= 0x80)
			*at = '?';
	json_array_append_new(doctor->checks,
	    json_pack("{s:s, s:s, s:s, s:s*}", "level", doctor_levels[level], "check", check, "text", text, "remedy",
		remedy));
	if (level == DOCTOR_FAIL)
		doctor->failed++;
}

void
doctor_check_daemon(struct doctor *doctor)
{
	const json_t *item;
	struct error err;
	json_t *answer;
	size_t i;

	if (client_request("GET", "/v1/status", NULL, &answer, &err) < 0) {
		doctor_check_add(
		    doctor, err.code == ERROR_PERMISSION ? DOCTOR_FAIL : DOCTOR_WARN, "daemon", NULL, "%s", err.text);
		return;
	}
	doctor->daemon_answers = true;
	doctor_check_add(doctor, DOCTOR_OK, "daemon", NULL, "posternd %s answers in %s",
	    command_text(answer, "version"), paths_runtime_dir());
	json_array_foreach(json_object_get(answer, "missing"), i, item)
	    doctor_check_add(doctor, DOCTOR_WARN, "daemon", NULL, "missing: %s", json_string_value(item));
	doctor->resolvers = json_incref(json_object_get(answer, "resolvers"));
	json_decref(answer);
}

void
doctor_check_kernel(struct doctor *doctor)
{
	char output[DOCTOR_OUTPUT_MAX];
	const char *argv[] = {run_daemon_path(), "--probe", NULL};
	int status;

	if (argv[0] == NULL) {
		doctor_check_add(doctor, DOCTOR_FAIL, "kernel", "install posternd, or run the postern beside it",
		    "posternd is not found, so the kernel cannot be tested");
		return;
	}
	status = doctor_capture(argv, true, output, sizeof(output));
	if (status == 0)
		doctor_check_add(doctor, DOCTOR_OK, "kernel", NULL, "%s", output);
	else if (status == 126)
		doctor_check_add(
		    doctor, DOCTOR_WARN, "kernel", "run postern doctor as root", "this user cannot test it");
	else
		doctor_check_add(
		    doctor, DOCTOR_FAIL, "kernel", NULL, "%s", output[0] == '\0' ? "posternd --probe failed" : output);
}

void
doctor_check_tun(struct doctor *doctor)
{
	static const char remedy[] = "modprobe tun; without it only containers can be attached";
	struct stat st;
	int fd;

	if (stat("/dev/net/tun", &st) < 0 || !S_ISCHR(st.st_mode)) {
		doctor_check_add(doctor, DOCTOR_FAIL, "tun", remedy, "/dev/net/tun does not exist");
		return;
	}
	fd = open("/dev/net/tun", O_RDWR | O_CLOEXEC);
	if (fd < 0) {
		doctor_check_add(doctor, errno == EACCES ? DOCTOR_WARN : DOCTOR_FAIL, "tun", remedy, "/dev/net/tun: %s",
		    strerror(errno));
		return;
	}
	close(fd);
	doctor_check_add(doctor, DOCTOR_OK, "tun", NULL, "/dev/net/tun can be opened");
}

void
doctor_check_userns(struct doctor *doctor)
{
	static const char *const argv[] = {"/bin/true", NULL};
	char output[DOCTOR_OUTPUT_MAX];

	if (geteuid() == 0) {
		doctor_check_add(doctor, DOCTOR_OK, "user namespaces", NULL, "not needed: running as root");
		return;
	}
	if (doctor_capture(argv, true, output, sizeof(output)) == 126)
		doctor_check_add(doctor, DOCTOR_WARN, "user namespaces",
		    "sysctl kernel.unprivileged_userns_clone, user.max_user_namespaces, "
		    "kernel.apparmor_restrict_unprivileged_userns",
		    "an ordinary user cannot make them: no rootless posternd, no postern run without root");
	else
		doctor_check_add(doctor, DOCTOR_OK, "user namespaces", NULL, "an ordinary user can make them");
}

void
doctor_check_users(struct doctor *doctor)
{
	static const char *const users[] = {"postern-gateway", "postern-audit", "postern-control"};
	/* They are not needed by an ordinary user, or when a daemon answers. */
	enum doctor_level level = geteuid() != 0 || doctor->daemon_answers ? DOCTOR_WARN : DOCTOR_FAIL;
	static const char remedy[] =
	    "systemd-sysusers, or posternd --gateway-user, --audit-user, --control-user, --group";
	size_t found = 0;

	for (size_t i = 0; i < sizeof(users) / sizeof(users[0]); i++) {
		if (getpwnam(users[i]) != NULL)
			found++;
		else
			doctor_check_add(doctor, level, "users", remedy, "user %s does not exist", users[i]);
	}
	if (getgrnam("postern") == NULL)
		doctor_check_add(doctor, level, "users", remedy, "group postern does not exist");
	else if (found == sizeof(users) / sizeof(users[0]))
		doctor_check_add(doctor, DOCTOR_OK, "users", NULL, "one for each role, and the group postern");
}

void
doctor_check_firewall(struct doctor *doctor)
{
	static char output[DOCTOR_RULESET_MAX];
	static const char *const places[] = {"/usr/sbin/nft", "/sbin/nft", "/usr/bin/nft"};
	const char *argv[] = {NULL, "-j", "list", "ruleset", NULL};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]) && argv[0] == NULL; i++)
		if (access(places[i], X_OK) == 0)
			argv[0] = places[i];
	if (argv[0] == NULL) {
		doctor_check_add(
		    doctor, DOCTOR_OK, "firewall", NULL, "nft is not installed; other tables were not checked");
		return;
	}
	if (geteuid() != 0) {
		doctor_check_add(doctor, DOCTOR_WARN, "firewall", "run postern doctor as root",
		    "only root can list the tables of other programs");
		return;
	}
	if (doctor_capture(argv, false, output, sizeof(output)) != 0)
		doctor_check_add(doctor, DOCTOR_WARN, "firewall", NULL, "nft -j list ruleset failed: %.200s", output);
	else if (doctor_check_ruleset(doctor, output, strlen(output)) == 0)
		doctor_check_add(
		    doctor, DOCTOR_OK, "firewall", NULL, "no other chain drops outgoing packets by policy");
}

size_t
doctor_check_ruleset(struct doctor *doctor, const char *json_text, size_t len)
{
	json_t *ruleset = json_loadb(json_text, len, 0, NULL), *item;
	size_t i, found = 0;

	if (ruleset == NULL) {
		doctor_check_add(
		    doctor, DOCTOR_WARN, "firewall", NULL, "the output of nft -j list ruleset is not JSON");
		return 1;
	}
	json_array_foreach(json_object_get(ruleset, "nftables"), i, item)
	{
		const json_t *chain = json_object_get(item, "chain");
		const char *table = command_text(chain, "table");

		if (strcmp(command_text(chain, "policy"), "drop") != 0 ||
		    strncmp(table, "postern", strlen("postern")) == 0)
			continue;
		/* The gateway's packets pass output and postrouting; answers pass input, where such chains accept
		 * established connections. The gateway forwards nothing. */
		if (strcmp(command_text(chain, "hook"), "output") != 0 &&
		    strcmp(command_text(chain, "hook"), "postrouting") != 0)
			continue;
		found++;
		doctor_check_add(doctor, DOCTOR_WARN, "firewall",
		    "make it accept: meta skuid postern-gateway (an accept elsewhere does not lift a drop there)",
		    "table %s %s, chain %s drops by policy in hook %s: the gateway's connections may not leave",
		    command_text(chain, "family"), table, command_text(chain, "name"), command_text(chain, "hook"));
	}
	json_decref(ruleset);
	return found;
}
