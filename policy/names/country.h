/* SPDX-License-Identifier: GPL-3.0-or-later */
/* ISO 3166-1 alpha-2 codes, as address databases use them. */
#ifndef POSTERN_POLICY_COUNTRY_H
#define POSTERN_POLICY_COUNTRY_H

#include <stdbool.h>

/* Is it an assigned code, upper case (or XK, which databases use for Kosovo)? */
bool country_is_code(const char code[2]);

#endif
