/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Changes of a sandbox's policy. */
#ifndef POSTERN_GATEWAY_CONTROL_POLICY_H
#define POSTERN_GATEWAY_CONTROL_POLICY_H

#include "gateway/control/control_job.h"

/* POST and DELETE /v1/sandboxes/NAME/rules, PUT /v1/sandboxes/NAME/policy */
void control_policy_edit_start(struct control_job *job);
void control_policy_revoke_start(struct control_job *job);
void control_policy_replace_start(struct control_job *job);

#endif
