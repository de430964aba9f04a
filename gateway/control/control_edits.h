/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Live edits of a sandbox's policy: allow, deny, revoke, and their stored form. */
#ifndef POSTERN_GATEWAY_CONTROL_EDITS_H
#define POSTERN_GATEWAY_CONTROL_EDITS_H

#include "gateway/control/control_sandbox.h"

/* Live edits of one sandbox. */
#define CONTROL_EDITS_MAX 4096

/* Options shared by allow and deny. */
struct control_edits_grant {
	int64_t expires_us;                    /* 0: never ends */
	uint32_t uses;                         /* from now on; 0: any number */
	const struct control_sandbox *sandbox; /* whose; what it used before is not counted again */
};

/* Stored form of live edits: the policy's YAML, with one comment line a rule that says who made it. */
char *control_edits_format(const struct policy *edits);
int control_edits_parse(const char *text, size_t len, struct policy *ret_edits, struct error *err);

/* Parse rule words into edits; words is a JSON array of strings or NULL, grant NULL: unlimited. Rules that are there
 * already with the same end are skipped, with another one they get this one; the number of changes is added to
 * *ret_changed, and each to change (may be NULL) as "+allow word" or "+allow word until 2026-12-01T10:00:00Z, 3 uses".
 * Expired edits are dropped. 0, or -1 with all bad words. */
int control_edits_add(struct policy *edits, enum rule_action action, const json_t *words,
    const struct control_edits_grant *grant, uint32_t uid, size_t *ret_changed, json_t *change, struct error *err);

/* Withdraw the sandbox's edits of these words; any: allow and deny, not only those of action. Counts and change as
 * above. 0, or -1 with ERROR_NOT_FOUND, ERROR_EXISTS (the policy file has the rule) or the word's error. */
int control_edits_revoke(const struct control_sandbox *sandbox, struct policy *edits, enum rule_action action, bool any,
    const json_t *words, size_t *ret_changed, json_t *change, struct error *err);

#endif
