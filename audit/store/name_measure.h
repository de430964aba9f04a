/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Figures of an asked name that make tunnelling visible: under which registered domain it lies, and how random what
 * stands before it is. */
#ifndef POSTERN_AUDIT_NAME_MEASURE_H
#define POSTERN_AUDIT_NAME_MEASURE_H

#include "policy/names/name.h"

#include <stdint.h>

struct name_measure {
	const char
	    *domain; /* within the name's text: what one registers ("example.co.uk"); the whole name if nothing is */
	uint32_t label_bytes; /* characters before the domain, dots not counted */
	uint32_t
	    entropy; /* of these characters, Shannon, hundredths of a bit a character (0..526); 0 when there are none */
};

/* *ret_measure points into name, which must stay. */
void name_measure(const struct name *name, struct name_measure *ret_measure);

#endif
