/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The target of a test: "host", "host:443", "1.2.3.4:22", "[2600::1]:443", each with "/udp" or "/tcp" behind. */
#ifndef POSTERN_GATEWAY_CONTROL_TARGET_H
#define POSTERN_GATEWAY_CONTROL_TARGET_H

#include "base/error.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"

#include <stdbool.h>
#include <stdint.h>

/* Port when the target names none. */
#define CONTROL_TARGET_PORT 443

struct control_target {
	bool is_addr;
	struct addr addr;
	enum name_error name_error; /* not an address: what is wrong with the name, or NAME_OK */
	struct name name;
	uint8_t proto;
	uint16_t port;
};

/* 0, or -1 with ERROR_USAGE when the text has another shape. A bad name is no error here: the test says so as a step.
 */
int control_target_parse(const char *text, struct control_target *ret_target, struct error *err);

#endif
