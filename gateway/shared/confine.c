/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Confinement of the roles.
 *
 * The roles that read what others send have an allowlist of system calls, with the values that the arguments of ioctl,
 * prctl, setsockopt, fcntl, socket and mmap may have (no memory is ever executable). It is made by confine.awk from
 * notes beside the calls, so a call and its permission are one change. A call that is not in the list ends the process.
 * The keeper reads nothing that a sandbox sent and starts all other roles, whose calls it cannot know; it has a list of
 * what it never needs.
 *
 * What the C library does for every role: memory, waiting, exit, a signal's end, time where there is no vdso.
 * syscalls: brk mmap(PROT_READ) mmap(PROT_READ|PROT_WRITE) munmap mremap madvise futex getrandom clock_gettime
 * syscalls: exit_group restart_syscall rt_sigreturn getpid write close newfstatat
 * A thread's stack, beginning and end, and what it sleeps with.
 * syscalls(auditor,control): mmap(PROT_NONE) mprotect(PROT_READ|PROT_WRITE) clone clone3 set_robust_list rseq
 * syscalls(auditor,control): rt_sigprocmask rt_sigaction exit clock_nanosleep sched_getaffinity read */
#include "gateway/shared/confine.h"

#include "base/log.h"

#include <cap-ng.h>
#include <errno.h>
#include <grp.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

/* The uid and gid, all capabilities, and what could give them back. */
static void
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

/* Replaces the root by dir. */
static void
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

/* Leaves the network for a namespace with nothing in it. */
static void
confine_network(void)
{
	if (unshare(CLONE_NEWNET) < 0) {
		if (errno != EPERM)
			log_fatal("a network namespace of its own");
		log_info("no CAP_SYS_ADMIN: the role keeps the network in sight");
	}
}

void
confine_process(const struct confinement *confinement, const char *empty_dir, uid_t uid, gid_t gid)
{
	if (confinement->network)
		confine_network();
	if (confinement->root)
		confine_root(empty_dir);
	confine_identity(uid, gid);
}

/* One system call of a role's list, as confine.awk makes it from the notes in the sources. */
struct confine_call {
	const char *name;
	int error; /* 0: allowed; else what the call is answered with */
	unsigned argument_count;
	struct {
		unsigned index;
		uint32_t value; /* the argument's lower 32 bits, which are all that the kernel reads of these */
	} arguments[3];
};

#define SYSCALL(call, error, count, ...) {#call, error, count, {__VA_ARGS__}},
#define REFUSED SYSCALL
static const struct confine_call confine_gateway[] = {
#include "syscalls_gateway.inc"
};
static const struct confine_call confine_auditor[] = {
#include "syscalls_auditor.inc"
};
static const struct confine_call confine_control[] = {
#include "syscalls_control.inc"
};

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

/* Adds one call of a list; a call that this architecture does not have is skipped. */
static void
confine_add(scmp_filter_ctx filter, const struct confine_call *call)
{
	struct scmp_arg_cmp compare[3];
	int number = seccomp_syscall_resolve_name(call->name);
	uint32_t action = call->error == 0 ? SCMP_ACT_ALLOW : SCMP_ACT_ERRNO((uint32_t)call->error);

	if (number == __NR_SCMP_ERROR)
		return;
	for (unsigned i = 0; i < call->argument_count; i++)
		compare[i] = SCMP_CMP64(
		    call->arguments[i].index, SCMP_CMP_MASKED_EQ, UINT32_MAX, (scmp_datum_t)call->arguments[i].value);
	if (seccomp_rule_add_array(filter, action, number, call->argument_count, compare) < 0)
		log_fatalx("seccomp: %s", call->name);
}

#define CONFINE_LIST(list) list, sizeof(list) / sizeof((list)[0])
static const struct {
	const char *name;
	const struct confine_call *allowed;
	size_t count;
	const char *const *refused; /* NULL: all but the allowed ones */
} confine_lists[] = {
    {"gateway", CONFINE_LIST(confine_gateway), NULL},
    {"auditor", CONFINE_LIST(confine_auditor), NULL},
    {"control", CONFINE_LIST(confine_control), NULL},
    {"keeper", NULL, 0, confine_keeper},
};

void
confine_syscalls(const char *list)
{
	scmp_filter_ctx filter;
	size_t at = 0;

	while (strcmp(confine_lists[at].name, list) != 0)
		if (++at == sizeof(confine_lists) / sizeof(confine_lists[0]))
			log_fatalx("seccomp: no list %s", list);
	filter = seccomp_init(confine_lists[at].refused != NULL ? SCMP_ACT_ALLOW : CONFINE_REFUSE);
	if (filter == NULL)
		log_fatalx("seccomp: no memory");
	/* Also for threads that exist already (the auditor's checkpointer). */
	seccomp_attr_set(filter, SCMP_FLTATR_CTL_TSYNC, 1);
	for (size_t i = 0; i < confine_lists[at].count; i++)
		confine_add(filter, &confine_lists[at].allowed[i]);
	for (const char *const *name = confine_lists[at].refused; name != NULL && *name != NULL; name++) {
		int number = seccomp_syscall_resolve_name(*name);

		if (number != __NR_SCMP_ERROR && seccomp_rule_add(filter, SCMP_ACT_ERRNO(EPERM), number, 0) < 0)
			log_fatalx("seccomp: %s", *name);
	}
	if (seccomp_load(filter) < 0)
		log_fatal("seccomp: the kernel refused the %s filter", list);
	seccomp_release(filter);
}
