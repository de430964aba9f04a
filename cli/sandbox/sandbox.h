/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Prints a sandbox from the API's JSON. */
#ifndef POSTERN_CLI_SANDBOX_H
#define POSTERN_CLI_SANDBOX_H

#include <jansson.h>

/* Name, namespace, device, addresses, policy: one line each, on stdout. */
void sandbox_print(const json_t *sandbox);

#endif
