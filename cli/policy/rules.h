/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Sends a change of a sandbox's policy, by rules or as a whole, and prints the result. */
#ifndef POSTERN_CLI_RULES_H
#define POSTERN_CLI_RULES_H

#include "cli/command.h"

/* Send the request about the first operand, a sandbox, and print the answer. if_generation: -1 for any. Takes
 * the request. 0, or -1 with *err. */
int rules_request(const struct command *command, const char *method, const char *suffix, json_t *request_own,
    int64_t if_generation, struct error *err);

#endif
