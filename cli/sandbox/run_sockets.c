/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A network namespace confines the Internet's families, but not all there are: an AF_VSOCK socket
 * belongs to the machine, wherever it is made, and leads to its hypervisor, to its virtual machines and to its own
 * services past every gateway (CASES E-33). So only the families that belong to the namespace are allowed, on
 * later kernels too. io_uring makes sockets without the system call, where the filter does not see them: it is absent,
 * and programs that can use it do without.
 *
 * A 64-bit kernel has the system calls of 32-bit programs too, and any program may make them. There socketcall(2) has
 * its arguments in memory, which a filter cannot read: it is refused for all sockets. 32-bit programs that use
 * socket(2) are not affected. */
#include "cli/sandbox/run_sockets.h"

#include <errno.h>
#include <linux/net.h>
#include <seccomp.h>
#include <stddef.h>
#include <sys/socket.h>

/* The kernel looks at the lower half of the argument only; so does the comparison. */
#define RUN_SOCKETS_FAMILY_MASK 0xffffffffu

/* One rule for each family, since a rule compares an argument once; and one for those of later kernels. */
static int
run_sockets_add_families(scmp_filter_ctx filter)
{
	int rc =
	    seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1, SCMP_A0(SCMP_CMP_GE, AF_MAX));

	for (int family = 0; rc == 0 && family < AF_MAX; family++)
		if (family != AF_UNIX && family != AF_INET && family != AF_INET6 && family != AF_NETLINK)
			rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socket), 1,
			    SCMP_A0(SCMP_CMP_MASKED_EQ, RUN_SOCKETS_FAMILY_MASK, (scmp_datum_t)family));
	return rc;
}

/* Those that run on the same kernel as the native one. */
static int
run_sockets_add_architectures(scmp_filter_ctx filter)
{
#if defined(__x86_64__)
	static const uint32_t others[] = {SCMP_ARCH_X86, SCMP_ARCH_X32};
#elif defined(__aarch64__)
	static const uint32_t others[] = {SCMP_ARCH_ARM};
#else
	static const uint32_t others[] = {SCMP_ARCH_NATIVE};
#endif
	int rc = 0;

	for (size_t i = 0; rc == 0 && i < sizeof(others) / sizeof(others[0]); i++)
		if (seccomp_arch_exist(filter, others[i]) != 0)
			rc = seccomp_arch_add(filter, others[i]);
	return rc;
}

int
run_sockets_confine(void)
{
	scmp_filter_ctx filter = seccomp_init(SCMP_ACT_ALLOW);
	int rc = filter == NULL ? -ENOMEM : run_sockets_add_architectures(filter);

	if (rc == 0)
		rc = run_sockets_add_families(filter);
	if (rc == 0)
		rc = seccomp_rule_add(
		    filter, SCMP_ACT_ERRNO(EAFNOSUPPORT), SCMP_SYS(socketcall), 1, SCMP_A0(SCMP_CMP_EQ, SYS_SOCKET));
	if (rc == 0)
		rc = seccomp_rule_add(filter, SCMP_ACT_ERRNO(ENOSYS), SCMP_SYS(io_uring_setup), 0);
	if (rc == 0)
		rc = seccomp_load(filter);
	seccomp_release(filter);
	return rc;
}
