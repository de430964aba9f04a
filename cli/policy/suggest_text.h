/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The text of a suggested policy: names and addresses are quoted in it, and it is parsed and compiled before it is
 * printed. */
#ifndef POSTERN_CLI_SUGGEST_TEXT_H
#define POSTERN_CLI_SUGGEST_TEXT_H

#include "cli/policy/suggest_targets.h"

/* The policy as text; sandbox and since_us are for its head. The caller frees it. NULL with *err. */
char *suggest_text_format(const struct suggest *suggest, const char *sandbox, int64_t since_us, struct error *err);

#endif
