/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the keeper makes before the first role, in this order: directories, locks (one daemon per directory), control
 * socket; copies of the databases of addresses; without root a user namespace of its own; a proof that the kernel has
 * what is needed; the host's chain. Then it gives up the capabilities and system calls that it will not need again. A
 * step that fails ends the program with the remedy. */
#include "gateway/keeper/keeper.h"

#include "base/log.h"
#include "gateway/shared/confine.h"
#include "gateway/shared/sealed.h"

#include <cap-ng.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

/* Clients waiting for control to accept. */
#define SETUP_CONTROL_BACKLOG 128
/* Descriptors: a sandbox takes about twelve here. */
#define SETUP_FILES_WANTED 1048576

int
keeper_setup_host_chain(const struct keeper *keeper, struct error *err)
{
	struct tap_host_resolver resolvers[OPTIONS_RESOLVERS_MAX];

	for (size_t i = 0; i < keeper->options->resolver_count; i++)
		resolvers[i] = (struct tap_host_resolver){
		    .addr = keeper->options->resolvers[i].addr, .port = keeper->options->resolvers[i].port};
	return tap_host_chain_set(keeper->host_table, keeper->options->uids[MSG_ROLE_GATEWAY], resolvers,
	    keeper->options->resolver_count, err);
}

/* Ends the program; option names the directory in the message. */
static void __attribute__((noreturn)) setup_dir_fatal(const char *path, const char *option)
{
	log_fatalx("%s: %s: it must be a directory that can be made and written; else name another one with %s", path,
	    strerror(errno), option);
}

/* mkdir -p of the last component, with exactly this owner and mode; refuses what another made before us. */
static void
setup_dir(const char *path, mode_t mode, uid_t uid, gid_t gid, const char *option)
{
	struct stat st;
	int fd;

	if (mkdir(path, mode) < 0 && errno != EEXIST)
		setup_dir_fatal(path, option);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		setup_dir_fatal(path, option);
	if (st.st_uid != geteuid() && st.st_uid != uid)
		log_fatalx(
		    "%s belongs to uid %u: remove it, or name another directory with %s", path, st.st_uid, option);
	if (fchmod(fd, mode) < 0 || ((st.st_uid != uid || st.st_gid != gid) && fchown(fd, uid, gid) < 0))
		setup_dir_fatal(path, option);
	close(fd);
}

/* Makes the parents of a directory that are missing (~/.local/state), open to the roles' own users, so the umask must
 * not matter. For the state directory: auditor and control open what is in it by its path, as their own users, so that
 * each parent must let them through. */
static void
setup_parents(const struct options *o, const char *path)
{
	bool checked = path == o->state_dir && !o->rootless;
	char part[512];
	struct stat st;

	snprintf(part, sizeof(part), "%s", path);
	for (char *slash = strchr(part + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(part, 0755) == 0) /* a failure shows at the last one */
			chmod(part, 0755);
		if (checked && stat(part, &st) == 0 && (st.st_mode & S_IXOTH) == 0 &&
		    ((st.st_mode & S_IXGRP) == 0 || st.st_gid != o->group_gid))
			log_fatalx("--state-dir %s: %s is closed to the roles' users (mode %03o): chmod o+x %s, or "
				   "name another directory",
			    o->state_dir, part, (unsigned int)st.st_mode & 0777, part);
		*slash = '/';
	}
}

/* Makes the runtime and state directories and those in them. */
static void
setup_dirs(const struct options *o)
{
	static const char runtime[] = "--runtime-dir", state[] = "--state-dir";
	char path[512];
	uid_t self = geteuid();
	gid_t gid = getegid();

	setup_parents(o, o->runtime_dir);
	setup_parents(o, o->state_dir);
	setup_dir(o->runtime_dir, o->rootless ? 0700 : 0755, self, gid, runtime);
	snprintf(path, sizeof(path), "%s/empty", o->runtime_dir);
	setup_dir(path, 0555, self, gid, runtime);
	setup_dir(o->state_dir, o->rootless ? 0700 : 0755, self, gid, state);
	snprintf(path, sizeof(path), "%s/audit", o->state_dir);
	setup_dir(path, 0750, o->uids[MSG_ROLE_AUDITOR], o->group_gid, state);
	snprintf(path, sizeof(path), "%s/sandboxes", o->state_dir);
	setup_dir(path, 0700, o->uids[MSG_ROLE_CONTROL], o->group_gid, state);
}

/* One daemon per directory: the lock lives as long as the process. (CASES F-44) */
static void
setup_lock(const char *dir)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/lock", dir);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		log_fatal("%s", path);
	if (flock(fd, LOCK_EX | LOCK_NB) < 0)
		log_fatalx("another posternd uses %s: stop it, or give --runtime-dir and --state-dir of your own", dir);
}

/* Makes the socket that control will accept clients on. */
static void
setup_control_socket(struct keeper *keeper)
{
	const struct options *o = keeper->options;
	struct sockaddr_un sun = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		log_fatal("control socket");
	if ((size_t)snprintf(sun.sun_path, sizeof(sun.sun_path), "%s/control.sock", o->runtime_dir) >=
	    sizeof(sun.sun_path))
		log_fatalx("--runtime-dir %s: too long for a socket's path", o->runtime_dir);
	unlink(sun.sun_path); /* a dead daemon's: the lock says so */
	/* The umask (077) makes it ours alone until owner and mode are right. */
	if (bind(fd, (struct sockaddr *)&sun, sizeof(sun)) < 0 || chown(sun.sun_path, geteuid(), o->group_gid) < 0 ||
	    chmod(sun.sun_path, o->rootless ? 0600 : 0660) < 0 || listen(fd, SETUP_CONTROL_BACKLOG) < 0)
		log_fatal("%s", sun.sun_path);
	keeper->control_listen_fd = fd;
}

/* Writes a file of /proc that maps the user namespace. */
static void
setup_write_file(const char *path, const char *text)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	if (fd < 0 || write(fd, text, strlen(text)) != (ssize_t)strlen(text))
		log_fatal("%s: an ordinary user needs unprivileged user namespaces "
			  "(sysctl kernel.unprivileged_userns_clone, kernel.apparmor_restrict_unprivileged_userns)",
		    path);
	close(fd);
}

/* Rootless: own a user namespace, as the same uid, and so every network namespace made from it, one for this process to
 * come back to included. The roles stay in the host's network namespace, where upstream sockets are made. */
static void
setup_own_userns(void)
{
	char map[64];
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(CLONE_NEWUSER) < 0)
		log_fatal(
		    "user namespace: an ordinary user needs unprivileged user namespaces, or start posternd as root");
	setup_write_file("/proc/self/setgroups", "deny");
	snprintf(map, sizeof(map), "%u %u 1", uid, uid);
	setup_write_file("/proc/self/uid_map", map);
	snprintf(map, sizeof(map), "%u %u 1", gid, gid);
	setup_write_file("/proc/self/gid_map", map);
	keeper_role_fork_from_here();
	if (unshare(CLONE_NEWNET) < 0)
		log_fatal("network namespace");
}

/* What setting up namespaces, devices, tables and roles takes; everything else goes for good. */
static void
setup_drop_capabilities(const struct options *o)
{
	static const int kept[] = {CAP_NET_ADMIN, CAP_SYS_ADMIN, CAP_NET_BIND_SERVICE, CAP_SYS_PTRACE, CAP_SETUID,
	    CAP_SETGID, CAP_SETPCAP, CAP_SYS_CHROOT, CAP_CHOWN, CAP_FOWNER, CAP_DAC_OVERRIDE, CAP_KILL,
	    CAP_SYS_RESOURCE};
	bool have[sizeof(kept) / sizeof(kept[0])];
	int rc;

	if (o->rootless)
		return; /* they count inside our own user namespace only */
	if (capng_get_caps_process() < 0)
		log_fatal("reading capabilities");
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		have[i] = capng_have_capability(CAPNG_PERMITTED, (unsigned int)kept[i]) != 0;
	capng_clear(CAPNG_SELECT_ALL);
	for (size_t i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		if (have[i])
			capng_update(
			    CAPNG_ADD, CAPNG_EFFECTIVE | CAPNG_PERMITTED | CAPNG_BOUNDING_SET, (unsigned int)kept[i]);
	/* The bounding set first: giving up SETPCAP would end that. */
	rc = capng_apply(CAPNG_SELECT_BOUNDS);
	if (rc == 0)
		rc = capng_apply(CAPNG_SELECT_CAPS);
	if (rc < 0)
		log_fatal("giving up capabilities (%d)", rc);
}

/* Raises the limit of open files as far as it goes. */
static void
setup_files_limit(const struct options *o)
{
	struct rlimit files = {0};

	if (getrlimit(RLIMIT_NOFILE, &files) < 0)
		return;
	if (!o->rootless && files.rlim_max < SETUP_FILES_WANTED)
		files.rlim_max = SETUP_FILES_WANTED;
	files.rlim_cur = files.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &files) < 0 && getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* The default instance is table "postern"; others carry a hash of their directory, so that they never meet. */
static void
setup_host_table_name(struct keeper *keeper)
{
	const char *runtime_dir = keeper->options->runtime_dir;
	uint32_t hash = 2166136261u;

	for (const char *c = runtime_dir; *c != '\0'; c++)
		hash = (hash ^ (uint8_t)*c) * 16777619u;
	if (strcmp(runtime_dir, "/run/postern") == 0)
		snprintf(keeper->host_table, sizeof(keeper->host_table), "postern");
	else
		snprintf(keeper->host_table, sizeof(keeper->host_table), "postern-%08x", hash);
}

/* One copy for all roles, and for those that are started again later: they agree, even if the files change. */
static void
setup_geo(struct keeper *keeper)
{
	const struct options *o = keeper->options;
	struct error err;

	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++) {
		if (o->geo_files[kind] == NULL)
			continue;
		keeper->geo_fds[kind] = sealed_copy(o->geo_files[kind], &err);
		if (keeper->geo_fds[kind] < 0)
			log_fatalx("%s %s: %s", geo_kind_option((enum geo_kind)kind), o->geo_files[kind], err.text);
	}
}

void
keeper_setup(struct keeper *keeper)
{
	const struct options *options = keeper->options;
	struct error err;
	bool taps;

	setup_dirs(options);
	setup_lock(options->runtime_dir);
	setup_lock(options->state_dir);
	setup_control_socket(keeper);
	setup_geo(keeper);
	if (options->rootless)
		setup_own_userns();
	if (tap_probe(&taps, &err) < 0)
		log_fatalx("%s", err.text);
	if (!taps)
		log_warnx("no TAP devices here (module tun, /dev/net/tun): no microVMs, containers only");
	setup_files_limit(options);
	setup_host_table_name(keeper);
	if (!options->rootless) {
		if (keeper_setup_host_chain(keeper, &err) < 0)
			log_fatalx("%s", err.text);
		keeper->host_chain = true;
	}
	setup_drop_capabilities(options);
	confine_syscalls("keeper");
}

int
keeper_setup_probe(void)
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
