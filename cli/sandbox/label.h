/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Labels: KEY=VALUE words to the API's object, and back. */
#ifndef POSTERN_CLI_LABEL_H
#define POSTERN_CLI_LABEL_H

#include "base/error.h"
#include "cli/args.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

/* Put the "KEY=VALUE" words into member "labels" of a request. The daemon checks the rest. 0, or -1 with
 * ERROR_USAGE. */
int label_add_all(json_t *request, const struct args_list *words, struct error *err);

/* Does the sandbox (as the API shows it) have the label "KEY", or "KEY=VALUE"? */
bool label_matches(const json_t *sandbox, const char *filter);

/* "a=b, c=d" of a sandbox, by key; "" when it has none. Truncated at size. */
void label_format(const json_t *sandbox, char *ret_text, size_t size);

#endif
