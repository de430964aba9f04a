/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control API's client: one HTTP request over the Unix socket in the runtime folder. */
#ifndef POSTERN_CLI_CLIENT_H
#define POSTERN_CLI_CLIENT_H

#include "base/error.h"

#include <jansson.h>
#include <stddef.h>

/* "/v1/sandboxes/", a name of 63 bytes, "/policy", NUL. */
#define CLIENT_PATH_MAX 128

/* body may be NULL; it stays the caller's. On success *ret_answer is a new reference. Errors: ERROR_UNREACHABLE when no
 * daemon answers, ERROR_PERMISSION when the socket may not be used, otherwise what the daemon said. */
int client_request(const char *method, const char *path, const json_t *body, json_t **ret_answer, struct error *err);

/* The path of a sandbox, suffix "" or "/rules" and so on. ERROR_USAGE when name is no sandbox name. */
int client_sandbox_path(const char *name, const char *suffix, char ret_path[CLIENT_PATH_MAX], struct error *err);

/* What the daemon says of a sandbox; *ret_answer is a new reference. Errors as of both above. */
int client_sandbox_get(const char *name, json_t **ret_answer, struct error *err);

#endif
