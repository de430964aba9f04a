/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Policies and rules of a command line, checked before anything is sent, so that errors name line and column. */
#ifndef POSTERN_CLI_POLICY_TEXT_H
#define POSTERN_CLI_POLICY_TEXT_H

#include "base/error.h"
#include "cli/args.h"
#include "policy/text/rule.h"

#include <jansson.h>

/* Read a policy file ("-": standard input), check it, and put it into the request as "policy" and "policy_file". */
int policy_text_read(const char *path, json_t *request, struct error *err);

/* Check rules and put them into the request as a list under member. All invalid ones are named in *err. */
int policy_text_rules(json_t *request, const char *member, enum rule_action action, const char *const *words,
    size_t count, struct error *err);

/* What a new sandbox begins with: --policy (NULL: none), --allow and --deny. */
int policy_text_add(
    json_t *request, const char *path, const struct args_list *allow, const struct args_list *deny, struct error *err);

#endif
