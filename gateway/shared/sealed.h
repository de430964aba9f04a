/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A file's bytes as they are now, in memory that cannot change: all roles map the same, also when the file changes. */
#ifndef POSTERN_GATEWAY_SEALED_H
#define POSTERN_GATEWAY_SEALED_H

#include "base/error.h"

/* Larger files are refused: several times a database of the world's cities, and all of it stays in memory. */
#define SEALED_SIZE_MAX (1ull << 30)

/* Copy the regular file into a memfd, sealed against every change. Returns the descriptor (CLOEXEC, the caller's), or
 * -1 with ERROR_USAGE (no regular file), ERROR_PERMISSION, ERROR_SYSTEM or ERROR_LIMIT. */
int sealed_copy(const char *path, struct error *err);

#endif
