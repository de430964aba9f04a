/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The sysctl checklist of a sandbox's namespace: every value set and read back. */
#ifndef POSTERN_TAP_SYSCTL_H
#define POSTERN_TAP_SYSCTL_H

#include "base/error.h"
#include "tap/link.h"

#include <stdbool.h>

/* All three act on the namespace the calling thread is in.
 *
 * The namespace-wide values and the defaults that a device made afterwards inherits. ipv6 off: IPv6 is disabled. */
int sysctl_apply_namespace(bool ipv6, struct error *err);
/* The values of one device, of which info tells what the kernel has: those that are right already are not touched. */
int sysctl_apply_device(const char *device, const struct link_info *info, bool ipv6, struct error *err);
/* In a container's own namespace: a device whose IPv6 address must be usable at once, and nothing else. */
int sysctl_apply_container(const char *device, struct error *err);

#endif
