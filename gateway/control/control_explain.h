/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/test: what would happen to a connection. */
#ifndef POSTERN_GATEWAY_CONTROL_EXPLAIN_H
#define POSTERN_GATEWAY_CONTROL_EXPLAIN_H

#include "gateway/control/control_job.h"
#include "gateway/shared/geo.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/route.h"
#include "policy/names/addr.h"
#include "policy/names/name.h"
#include "policy/verdict.h"

#include <jansson.h>

/* Port when the target names none. */
#define CONTROL_TARGET_PORT 443

/* "host", "host:443", "1.2.3.4:22", "[2600::1]:443", each with or without "/udp" or "/tcp" behind it. */
struct control_target {
	bool is_addr;
	struct addr addr;
	enum name_error name_error; /* not an address: what is wrong with the name, or NAME_OK */
	struct name name;
	uint8_t proto;
	uint16_t port;
};

/* What is known when a target is judged. */
struct control_explain_facts {
	const struct snapshot *policy;
	struct route *route; /* fd -1: the kernel is not asked */
	const struct geo *geo;
	const struct msg_leases_done *leases; /* of the target's name or address; NULL: the gateway did not answer */
	int64_t now_us;                       /* clock_real_us */
};

/* The judgement on the target. *ret_steps: how it came about, an array that the caller owns. */
struct judgement control_explain(
    const struct control_explain_facts *facts, const struct control_target *target, json_t **ret_steps);

/* 0, or -1 with ERROR_USAGE when the text has another shape. A bad name is no error here: a step of the test has it. */
int control_explain_parse_target(const char *text, struct control_target *ret_target, struct error *err);

void control_explain_start(struct control_job *job);

#endif
