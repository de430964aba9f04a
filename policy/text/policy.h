/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A policy as people write it: YAML text <-> rules and settings. policy/compiled/snapshot.h compiles it. */
#ifndef POSTERN_POLICY_POLICY_H
#define POSTERN_POLICY_POLICY_H

#include "base/error.h"
#include "policy/text/notes.h"
#include "policy/text/rule.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A policy file's size: beyond it the file is refused unread. */
#define POLICY_FILE_MAX (16u << 20)
#define POLICY_RULES_MAX 200000
#define POLICY_NAME_MAX 64

/* Presets that one policy may include. */
#define POLICY_INCLUDES_MAX 64
#define POLICY_INCLUDE_NAME_MAX 64

enum policy_ech { POLICY_ECH_GREASE_OK = 0, POLICY_ECH_DENY };
/* learn: what no rule allows is let through as far as the never list, denies and the organisation let it, and marked.
 */
enum policy_mode { POLICY_MODE_ENFORCE = 0, POLICY_MODE_LEARN };

/* What a policy says of the sandbox as a whole: its mode, its ech, and from POLICY_SETTING_LIMITS on each kind of
 * limit. */
enum policy_setting {
	POLICY_SETTING_MODE = 0,
	POLICY_SETTING_ECH,
	POLICY_SETTING_LIMITS, /* + enum limit_kind */
	POLICY_SETTING_MAX = POLICY_SETTING_LIMITS + LIMIT_KIND_MAX
};

/* "preset:NAME" under include. */
struct policy_include {
	char preset[POLICY_INCLUDE_NAME_MAX]; /* NAME */
	uint32_t line, column;                /* where the text says so */
	char at[RULE_ORIGIN_MAX];             /* the same with its file: "task.yaml:3:11" */
};

struct policy {
	char name[POLICY_NAME_MAX]; /* "" when the text has none */
	enum policy_ech ech;
	bool ech_set; /* the text said so (a later layer overrides only what it says) */
	enum policy_mode mode;
	bool mode_set;        /* likewise */
	bool has_allow;       /* the text has the key allow, be it empty */
	bool bounded;         /* allowed is only what a rule with bound covers too; there may be none */
	struct limits limits; /* of the sandbox as a whole */
	/* Where each setting that is not the default stands, as a rule's origin; "" for the others. */
	char setting_origins[POLICY_SETTING_MAX][RULE_ORIGIN_MAX];
	struct policy_include *includes; /* owned */
	size_t include_count;
	struct rule *rules; /* owned */
	size_t rule_count, rule_size;
	size_t organisation_rules; /* layers_merge: so many of the first rules are the organisation's */
};

void policy_init(struct policy *policy);
void policy_free(struct policy *policy); /* accepts a zeroed one */

/* Can it be NAME in "preset:NAME": lower-case letters, digits and '-', so that it is a file name and nothing more? */
bool policy_preset_is_name(const char *text, size_t len);

/* Append a copy. 0, or -1 with ERROR_LIMIT. */
int policy_add(struct policy *policy, const struct rule *rule, struct error *err);

/* Strict YAML: version: 1 is required; no aliases, anchors, tags; unknown or duplicate keys, wrong types and empty
 * entries are errors. Every error of the text is reported: err->text holds one "FILE:LINE:COLUMN: what; remedy" a
 * line, as many as fit. *ret_policy is written only on success. file is used in messages and origins. */
int policy_parse(const char *text, size_t len, const char *file, struct policy *ret_policy, struct error *err);

/* The same, with what deserves a second look although it is right, added to *notes when it was read (zeroed at first;
 * the caller frees it). Of a text that is refused *notes has all that is wrong, up to POLICY_NOTES_MAX, and says so. */
int policy_parse_noted(const char *text, size_t len, const char *file, struct policy *ret_policy,
    struct policy_notes *notes, struct error *err);

/* All that a descriptor still gives, at most POLICY_FILE_MAX bytes; name is for messages. *ret_text is the caller's and
 * has a NUL behind its *ret_len bytes. */
int policy_file_load(int fd, const char *name, char **ret_text, size_t *ret_len, struct error *err);

/* Read and parse a file ("-" is standard input). */
int policy_file_read(const char *path, struct policy *ret_policy, struct error *err);
int policy_file_read_noted(const char *path, struct policy *ret_policy, struct policy_notes *notes, struct error *err);

/* Turn each "expires: 2h" into a point in time, counted from when the text was applied (microseconds since the epoch).
 * snapshot_compile refuses a policy with relative expiries: a restart must not renew them, so who keeps the text keeps
 * the time beside it. */
void policy_resolve(struct policy *policy, int64_t applied_us);

/* Append layer's rules behind base's, and its settings where it says them: limits only tighten, includes are appended.
 */
int policy_merge(struct policy *base, const struct policy *layer, struct error *err);

/* Lay a layer's limits over the policy's: they only tighten, and whoever says the smallest is the origin. */
void policy_tighten(struct policy *policy, const struct policy *layer);

/* YAML text that policy_parse reads back to the same policy. Owned by the caller; NULL without memory. */
char *policy_format(const struct policy *policy);

#endif
