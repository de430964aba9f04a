/* SPDX-License-Identifier: GPL-3.0-or-later */
/* UTF-8, as texts of others are read. */
#ifndef POSTERN_BASE_UTF8_H
#define POSTERN_BASE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/* Length in bytes of the well-formed character at the front of len > 0 bytes, and its code point; 0: there is none
 * (RFC 3629: shortest form, no surrogates, at most U+10FFFF). */
size_t utf8_decode(const void *bytes, size_t len, uint32_t *ret_point);

#endif
