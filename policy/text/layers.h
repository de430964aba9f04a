/* SPDX-License-Identifier: GPL-3.0-or-later */
/* From the policies that are about one sandbox to the one that is compiled for it.
 *
 * Under all lies the never list. Then the organisation's policy: its deny rules and limits hold whatever the others
 * say, and if it has the key allow, nothing is allowed that it does not allow too. Then the presets that the sandbox's
 * policy includes, that policy itself, and the live edits. Deny anywhere beats allow anywhere; of limits the smallest
 * counts; "ech: deny" anywhere holds. Mode learn comes from the sandbox's own policy or from who attaches it, and from
 * nowhere else. */
#ifndef POSTERN_POLICY_LAYERS_H
#define POSTERN_POLICY_LAYERS_H

#include "base/error.h"
#include "policy/text/policy.h"
#include "policy/text/preset.h"

#include <stdbool.h>
#include <stdint.h>

/* Where posternd looks for the organisation's policy, and whoever wants to know what it would do. */
#define POLICY_ORGANISATION_DEFAULT "/etc/postern/organisation.yaml"

struct policy_layers {
	/* Each as policy_parse read it; NULL: there is none. Not owned. */
	const struct policy *organisation, *sandbox, *edits;
	const struct preset_dirs *presets; /* where includes are looked up; NULL: nowhere */
	int64_t applied_us;                /* what "expires: 2h" counts from, in presets, policy and edits */
	bool learn;                        /* mode: learn was asked for at attach */
};

/* *ret_effective (the caller frees it) is ready for snapshot_compile: no includes, no relative expiries; every rule
 * keeps the origin that its own text gave it. 0, or -1 with ERROR_POLICY or ERROR_LIMIT, and nothing is written. */
int layers_merge(const struct policy_layers *layers, struct policy *ret_effective, struct error *err);

#endif
