/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Has a container's namespace a way out of its own? */
#ifndef POSTERN_TAP_UPLINK_H
#define POSTERN_TAP_UPLINK_H

#include "base/error.h"

/* own: name of the device that will be ours there. 0; -1 with ERROR_USAGE when there is another that can carry packets
 * somewhere else. */
int uplink_check(int netns_fd, const char *own, struct error *err);

#endif
