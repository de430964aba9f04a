/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Turns a target as typed, a URL for instance, into "host:port". */
#ifndef POSTERN_CLI_TARGET_H
#define POSTERN_CLI_TARGET_H

#include "base/error.h"

#define TARGET_TEXT_MAX 512

/* URL: scheme, user, path and query are cut off; the scheme gives the port unless the URL names one. Anything else is
 * passed on as it is. ERROR_USAGE for an unknown scheme, a backslash in front of the path, which programs read
 * differently, or an over-long text. */
int target_from_user(const char *text, char ret_target[TARGET_TEXT_MAX], struct error *err);

#endif
