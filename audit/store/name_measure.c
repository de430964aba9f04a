/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "audit/store/name_measure.h"

#include "policy/names/shared.h"

#include <math.h>

/* *ret_bytes: how many characters there are, dots left out. */
static uint32_t
name_measure_entropy(const char *text, size_t len, uint32_t *ret_bytes)
{
	uint32_t counts[256] = {0}, total = 0;
	double bits = 0;

	for (size_t i = 0; i < len; i++) {
		if (text[i] == '.')
			continue;
		counts[(uint8_t)text[i]]++;
		total++;
	}
	for (size_t i = 0; i < 256; i++) {
		double share = total == 0 ? 0 : (double)counts[i] / total;

		if (counts[i] != 0)
			bits -= share * log2(share);
	}
	*ret_bytes = total;
	return (uint32_t)(bits * 100 + 0.5);
}

void
name_measure(const struct name *name, struct name_measure *ret_measure)
{
	ret_measure->domain = shared_registered(name);
	ret_measure->entropy =
	    name_measure_entropy(name->text, (size_t)(ret_measure->domain - name->text), &ret_measure->label_bytes);
}
