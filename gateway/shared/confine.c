/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each role's list says what it may ask of the kernel, and why where that is not plain from the name. A list is an
 * allowlist for the roles that read hostile bytes. The keeper reads none, must be able to start all others, and so has
 * a list of what it never needs. */
#include "gateway/shared/confine.h"

#include "base/log.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <linux/audit.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

void
confine_identity(uid_t uid, gid_t gid)
{
	bool root = geteuid() == 0 && uid != 0;

	capng_clear(CAPNG_SELECT_ALL);
	if (geteuid() == 0 && capng_apply(CAPNG_SELECT_BOUNDS) < 0)
		log_fatal("giving up the capability bounding set");
	if (root && (setgroups(0, NULL) < 0 || setresgid(gid, gid, gid) < 0 || setresuid(uid, uid, uid) < 0))
		log_fatal("becoming uid %u gid %u", uid, gid);
	capng_clear(CAPNG_SELECT_BOTH);
	if (capng_apply(CAPNG_SELECT_CAPS) < 0)
		log_fatal("giving up capabilities");
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		log_fatal("no_new_privs");
#ifndef POSTERN_SANITIZE /* which read /proc/self/maps */
	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0)
		log_fatal("dumpable");
#endif
	if (root && setresuid(0, 0, 0) == 0)
		log_fatalx("root could be had back");
}

void
confine_root(const char *dir)
{
	if (chroot(dir) < 0) {
		if (errno != EPERM)
			log_fatal("chroot %s", dir);
		log_info("no CAP_SYS_CHROOT: the role keeps the file tree in sight");
		return;
	}
	if (chdir("/") < 0)
		log_fatal("chdir into the empty root");
}

void
confine_network(void)
{
	if (unshare(CLONE_NEWNET) < 0) {
		if (errno != EPERM)
			log_fatal("a network namespace of its own");
		log_info("no CAP_SYS_ADMIN: the role keeps the network in sight");
	}
}

#define CONFINE_COMMON                                                                                                 \
	"read", "write", "readv", "writev", "close", "fstat", "newfstatat", "lseek", "mmap", "munmap", "mprotect",     \
	    "mremap", "madvise", "brk", "rt_sigaction", "rt_sigprocmask", "rt_sigreturn", "clock_gettime",             \
	    "clock_nanosleep", "nanosleep", "gettimeofday", "time", "getpid", "gettid", "getuid", "geteuid", "getgid", \
	    "getegid", "futex", "exit", "exit_group", "epoll_create1", "epoll_ctl", "epoll_wait", "epoll_pwait",       \
	    "poll", "ppoll", "recvmsg", "sendmsg", "recvfrom", "sendto", "recvmmsg", "sendmmsg", "fcntl", "getrandom", \
	    "restart_syscall", "sched_yield", "tgkill", "rseq", "set_robust_list", "getsockopt", "setsockopt",         \
	    "shutdown", "sysinfo", "uname", "sched_getaffinity", "prctl", "sigaltstack"

/* Sockets to origins and resolvers (AF_INET, AF_INET6 only: see confine_gateway_rules), splice for the relay. */
static const char *const confine_gateway[] = {
    CONFINE_COMMON, "connect", "getsockname", "getpeername", "accept4", "splice", "pipe2", "ioctl", "bind", NULL};

/* Files: SQLite's. Threads: the checkpointer. No sockets are made. */
static const char *const confine_auditor[] = {CONFINE_COMMON, "openat", "open", "unlink", "unlinkat", "rename",
    "renameat", "renameat2", "fsync", "fdatasync", "ftruncate", "fallocate", "pread64", "pwrite64", "mkdir", "mkdirat",
    "access", "faccessat", "faccessat2", "fchmod", "chmod", "fchown", "stat", "lstat", "statx", "getcwd", "readlink",
    "readlinkat", "getdents64", "umask", "clone", "clone3", "utimensat", "ioctl", "fstatfs", "statfs", "fchownat",
    "fchmodat", "dup", "flock", "pipe2", "eventfd2", NULL};

/* Files: the state directory. memfd: compiled policies. accept: the API's clients. */
static const char *const confine_control[] = {CONFINE_COMMON, "accept", "accept4", "getsockname", "getpeername",
    "openat", "open", "unlink", "unlinkat", "rmdir", "rename", "renameat", "renameat2", "fsync", "fdatasync",
    "ftruncate", "pread64", "pwrite64", "mkdir", "mkdirat", "access", "faccessat", "faccessat2", "fchmod", "fchmodat",
    "stat", "lstat", "statx", "getcwd", "readlink", "readlinkat", "getdents64", "umask", "memfd_create", "eventfd2",
    "sendfile", "dup", "flock", "pipe2", "ioctl", "prlimit64", NULL};

static const char *const confine_keeper[] = {"ptrace", "process_vm_readv", "process_vm_writev", "bpf",
    "perf_event_open", "init_module", "finit_module", "delete_module", "kexec_load", "kexec_file_load", "reboot",
    "swapon", "swapoff", "acct", "settimeofday", "clock_settime", "adjtimex", "keyctl", "add_key", "request_key",
    "open_by_handle_at", "iopl", "ioperm", "userfaultfd", "io_uring_setup", "pivot_root", "quotactl", "syslog",
    "lookup_dcookie", "nfsservctl", "personality", NULL};

/* In sanitizer builds the run-time reports go through calls of its own: those are let through and logged. */
#ifdef POSTERN_SANITIZE
#define CONFINE_REFUSE SCMP_ACT_LOG
#else
#define CONFINE_REFUSE SCMP_ACT_KILL_PROCESS
#endif

static void
confine_add(scmp_filter_ctx filter, uint32_t action, const char *const *names)
{
	for (; *names != NULL; names++) {
		int call = seccomp_syscall_resolve_name(*names);

		if (call == __NR_SCMP_ERROR)
			continue; /* not a call of this architecture */
		if (seccomp_rule_add(filter, action, call, 0) < 0)
			log_fatalx("seccomp: %s", *names);
	}
}

/* c-ares and libc look for files that are not there: say so instead of dying. Sockets: IPv4 and IPv6 only. */
static void
confine_gateway_rules(scmp_filter_ctx filter)
{
	static const char *const files[] = {"openat", "open", "stat", "access", "readlink", NULL};

	for (const char *const *name = files; *name != NULL; name++)
		seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOENT), seccomp_syscall_resolve_name(*name), 0);
	if (seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_INET)) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ALLOW, SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_INET6)) < 0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_NETLINK)) <
		0 ||
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EACCES), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_EQ, AF_UNIX)) < 0)
		log_fatalx("seccomp: socket");
}

void
confine_syscalls(const char *role)
{
	scmp_filter_ctx filter;
	bool keeper = strcmp(role, "keeper") == 0;

	filter = seccomp_init(keeper ? SCMP_ACT_ALLOW : CONFINE_REFUSE);
	if (filter == NULL)
		log_fatalx("seccomp: no memory");
	/* Also for threads that exist already (the auditor's checkpointer). */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	if (keeper) {
		confine_add(filter, SCMP_ACT_ERRNO(EPERM), confine_keeper);
	} else if (strcmp(role, "gateway") == 0) {
		confine_add(filter, SCMP_ACT_ALLOW, confine_gateway);
		confine_gateway_rules(filter);
	} else if (strcmp(role, "auditor") == 0) {
		confine_add(filter, SCMP_ACT_ALLOW, confine_auditor);
	} else {
		confine_add(filter, SCMP_ACT_ALLOW, confine_control);
	}
	if (seccomp_load(filter) < 0)
		log_fatal("seccomp: the kernel refused the %s filter", role);
	seccomp_release(filter);
}
