/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Compiles a file or text to a policy as posternd would. */
#ifndef POSTERN_CLI_POLICY_COMPILE_H
#define POSTERN_CLI_POLICY_COMPILE_H

#include "base/error.h"
#include "policy/text/layers.h"
#include "policy/compiled/snapshot.h"

/* The directories of presets; $POSTERN_PRESET_DIR overrides them. 0 or -1. */
int policy_compile_presets(struct preset_dirs *ret_dirs, struct error *err);

/* Read a file and compile it with its presets, without an organisation's policy; "expires: 2h" counts from applied_us
 * on (microseconds since the epoch). NULL on failure, as below. */
struct snapshot *policy_compile_at(const char *path, int64_t applied_us, struct error *err);
/* The same of a text; file is for origins and messages. */
struct snapshot *policy_compile_text(const char *text, const char *file, int64_t applied_us, struct error *err);
/* A file, now, between an organisation's policy and live edits, either of which may be NULL. Notes on it are
 * added to *notes (may be NULL). */
struct snapshot *policy_compile_between(const char *path, const struct policy *organisation, const struct policy *edits,
    struct policy_notes *notes, struct error *err);

#endif
