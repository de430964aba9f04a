/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role: the API and the policies. */
#ifndef POSTERN_GATEWAY_CONTROL_H
#define POSTERN_GATEWAY_CONTROL_H

struct options;
struct role;

/* Be the control role: set up, confine, say MSG_READY, serve until told to stop. Returns the exit status. */
int control_run(const struct role *role, const struct options *options);

#endif
