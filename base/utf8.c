/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "base/utf8.h"

size_t
utf8_decode(const void *bytes, size_t len, uint32_t *ret_point)
{
	static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
	const unsigned char *text = bytes;
	size_t size = text[0] < 0x80 ? 1 : text[0] < 0xe0 ? 2 : text[0] < 0xf0 ? 3 : 4;
	uint32_t point = size == 1 ? text[0] : text[0] & (0x7fu >> size);

	if (len < size || (text[0] >= 0x80 && text[0] < 0xc2) || text[0] > 0xf4)
		return 0;
	for (size_t i = 1; i < size; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		point = point << 6 | (text[i] & 0x3fu);
	}
	if (point < least[size] || point > 0x10ffff || (point >= 0xd800 && point <= 0xdfff))
		return 0;
	*ret_point = point;
	return size;
}
