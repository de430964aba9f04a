/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the layers of a sandbox's policy to a sealed block, compiled once for all sandboxes that come to the same. */
#ifndef POSTERN_GATEWAY_CONTROL_COMPILE_H
#define POSTERN_GATEWAY_CONTROL_COMPILE_H

#include "gateway/control/control_role.h"

#include "base/error.h"
#include "policy/compiled/snapshot.h"

/* Lay organisation, policy text (may be NULL; its relative expiries count from applied_us) with its presets, and edits
 * over each other, and compile that, unless the same was compiled lately. Returns the sealed descriptor and opens it.
 * 0, or -1 with ERROR_POLICY or ERROR_LIMIT. */
int control_compile(struct control *control, const char *policy_text, const char *policy_file, int64_t applied_us,
    const struct policy *edits, int *ret_fd, struct snapshot **ret_snapshot, struct error *err);

/* Can the rules about countries and networks of a new policy be enforced? 0, or -1 with ERROR_POLICY: the rule, where
 * it stands, and what to do. */
int control_compile_check_places(const struct control *control, const struct snapshot *snapshot, struct error *err);

/* Read the organisation's policy and find the presets' directories. Without the default file there is no organisation;
 * a named one must be there, and one that is there must be good. 0 or -1. */
int control_compile_setup(struct control *control, struct error *err);

#endif
