/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Hostile bytes made safe for a terminal: everything outside 0x20-0x7e, and the backslash, becomes \xNN. */
#ifndef POSTERN_BASE_ESCAPE_H
#define POSTERN_BASE_ESCAPE_H

#include <stddef.h>

/* Writes at most size bytes including the NUL; cuts at a whole escape. Returns the length written.
 * The backslash becomes \x5c, so that the result maps back to one input only. */
size_t escape_terminal(const void *bytes, size_t len, char *ret_text, size_t size);

#endif
