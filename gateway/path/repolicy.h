/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A new policy generation in a running sandbox, or the end of a rule: swap, adjust leases, cut exactly what is no
 * longer allowed. */
#ifndef POSTERN_GATEWAY_REPOLICY_H
#define POSTERN_GATEWAY_REPOLICY_H

#include "gateway/path/gateway.h"

/* Takes the snapshot. Kernel lease changes are on their way to the keeper when it returns; live connections no longer
 * allowed are cut, counted and listed in *done. Cannot fail: what the kernel does not take only refuses more. */
void repolicy(struct sandbox *sandbox, struct snapshot *snapshot, uint32_t generation, struct msg_policy_done *done);

/* What repolicy would cut. Takes the snapshot; changes nothing. */
void repolicy_preview(struct sandbox *sandbox, struct snapshot *snapshot, struct msg_policy_done *done);

/* The time is now_us and a deadline passed since sandbox->judged_us: the same, with reason expired. */
void repolicy_expire(struct sandbox *sandbox, int64_t now_us);

#endif
