/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A whole file, or standard input, in memory. */
#ifndef POSTERN_CLI_INPUT_H
#define POSTERN_CLI_INPUT_H

#include "base/error.h"

#include <stddef.h>

/* Read path ("-": standard input), at most max bytes: the text, followed by a NUL, which the caller frees; its
 * length in *ret_len. NULL with *err: ERROR_LIMIT when it is longer. */
char *input_read(const char *path, size_t max, size_t *ret_len, struct error *err);

#endif
