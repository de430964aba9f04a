/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the API shows: the daemon's status, the list of sandboxes, one sandbox. */
#ifndef POSTERN_GATEWAY_CONTROL_SHOW_H
#define POSTERN_GATEWAY_CONTROL_SHOW_H

#include "gateway/control/control_job.h"
#include "gateway/control/control_sandbox.h"

void control_show_status_start(struct control_job *job);
void control_show_list_start(struct control_job *job);
void control_show_start(struct control_job *job);

/* Everything about a sandbox but its leases. New reference; NULL without memory. */
json_t *control_show_sandbox(const struct control_sandbox *sandbox);
/* [{"name","address","left_s"}, ...] */
json_t *control_show_leases(const struct msg_leases_done *leases);

#endif
