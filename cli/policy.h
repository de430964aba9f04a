/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the subcommands of postern policy share (policy.c). */
#ifndef POSTERN_CLI_POLICY_H
#define POSTERN_CLI_POLICY_H

#include "base/error.h"
#include "policy/layers.h"
#include "policy/snapshot.h"

/* Read a file and compile it with its presets, as posternd would without an organisation's policy. NULL on failure. */
struct snapshot *policy_compile_file(const char *path, struct error *err);
/* The same between an organisation's policy and live edits, either may be NULL. */
struct snapshot *policy_compile_between(const char *path, const struct policy *organisation, const struct policy *edits,
    struct error *err);
/* The same alone, with what deserves a second look added to *notes (NULL: not asked for). */
struct snapshot *policy_compile_noted(const char *path, struct policy_notes *notes, struct error *err);

#endif
