/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control API's client: one HTTP request over the Unix socket in the runtime directory. */
#ifndef POSTERN_CLI_CLIENT_H
#define POSTERN_CLI_CLIENT_H

#include "base/error.h"

#include <jansson.h>

/* Sends a request and reads its answer. Takes request_own, the body (NULL: none). On success *ret_answer is a new
 * reference. Errors: ERROR_UNREACHABLE when no daemon answers, ERROR_PERMISSION when the socket may not be used,
 * otherwise what the daemon said. */
int client_request(const char *method, const char *path, json_t *request_own, json_t **ret_answer, struct error *err);

/* The same about a sandbox; suffix is "" or "/rules" and so on. ERROR_USAGE when name is no sandbox name. */
int client_sandbox(const char *method, const char *name, const char *suffix, json_t *request_own, json_t **ret_answer,
    struct error *err);

/* 0, or -1 with ERROR_USAGE when name is no sandbox name. */
int client_check_name(const char *name, struct error *err);

#endif
