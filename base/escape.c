/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/escape.h"

#include <stdint.h>

size_t
escape_terminal(const void *bytes, size_t len, char *ret_text, size_t size)
{
	static const char hex[] = "0123456789abcdef";
	const uint8_t *in = bytes;
	size_t out = 0;

	if (size == 0)
		return 0;
	for (size_t i = 0; i < len; i++) {
		if (in[i] >= 0x20 && in[i] <= 0x7e && in[i] != '\\') {
			if (out + 1 >= size)
				break;
			ret_text[out++] = (char)in[i];
			continue;
		}
		if (out + 4 >= size)
			break;
		ret_text[out++] = '\\';
		ret_text[out++] = 'x';
		ret_text[out++] = hex[in[i] >> 4];
		ret_text[out++] = hex[in[i] & 15];
	}
	ret_text[out] = '\0';
	return out;
}
