/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A sandbox's policy in force, from the API's JSON, as text. */
#ifndef POSTERN_CLI_POLICY_EFFECTIVE_H
#define POSTERN_CLI_POLICY_EFFECTIVE_H

#include "policy/compiled/terms.h"

#include <jansson.h>
#include <stdio.h>

/* The members expires, uses and limits of a rule; missing ones are none. */
void policy_effective_terms(const json_t *rule, struct terms *ret_terms);

/* The terms of a rule of a sandbox's answer in words, with what is used of it: "until 2026-12-01T10:00:00Z, 1 of 3
 * used". */
const char *policy_effective_words(const json_t *rule, char ret_text[TERMS_TEXT_MAX]);

/* The setting of a sandbox's answer as terms_format_setting writes it; "" for a default. */
const char *policy_effective_setting(const json_t *sandbox, enum policy_setting setting, char ret_text[TERMS_TEXT_MAX]);

/* The rule, or "allow at most ..." for one of the organisation: by itself that opens nothing. */
const char *policy_effective_rule(const json_t *rule, char ret_text[TERMS_LINE_MAX]);

/* Every setting and rule of a sandbox's answer, the implicit ones included: a line each, with its origin. */
void policy_effective_print(FILE *out, const json_t *sandbox);

#endif
