/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the subcommands of postern policy share (policy.c). */
#ifndef POSTERN_CLI_POLICY_H
#define POSTERN_CLI_POLICY_H

#include "base/error.h"
#include "policy/layers.h"
#include "policy/snapshot.h"

/* Read a file and compile it with its presets, as posternd would, between an organisation's policy and live edits, either of
 * which may be NULL. What deserves a second look in it is added to *notes (NULL: not asked for). NULL on failure; the caller
 * closes the snapshot. */
struct snapshot *policy_compile_between(const char *path, const struct policy *organisation, const struct policy *edits,
    struct policy_notes *notes, struct error *err);

#endif
