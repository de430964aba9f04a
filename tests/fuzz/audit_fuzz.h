/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the audit log's fuzzers share. */
#ifndef POSTERN_TESTS_FUZZ_AUDIT_FUZZ_H
#define POSTERN_TESTS_FUZZ_AUDIT_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static inline void
must(bool good)
{
	if (!good)
		abort();
}

/* Big-endian, of two's complement; of more than eight bytes the last ones. */
static inline int64_t
read_number(const uint8_t *bytes, size_t len)
{
	uint64_t value = len > 0 && bytes[0] >= 0x80 ? UINT64_MAX : 0;

	for (size_t i = 0; i < len; i++)
		value = value << 8 | bytes[i];
	return (int64_t)value;
}

#endif
