/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies and rules as the command line takes them: checked here first, so that mistakes are shown with line and
 * column before anything is sent. */
#ifndef POSTERN_CLI_POLICY_TEXT_H
#define POSTERN_CLI_POLICY_TEXT_H

#include "base/error.h"
#include "cli/args.h"
#include "policy/text/rule.h"

#include <jansson.h>

/* Read a policy file ("-": standard input), check it, and put it into the request as "policy" and "policy_file". */
int policy_text_read(const char *path, json_t *request, struct error *err);

/* Rule words as a JSON array; all bad ones are named. NULL on failure. */
json_t *policy_text_rules(enum rule_action action, const char *const *words, size_t count, struct error *err);

#endif
