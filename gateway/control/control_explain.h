/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/test: what would happen to a connection. */
#ifndef POSTERN_GATEWAY_CONTROL_EXPLAIN_H
#define POSTERN_GATEWAY_CONTROL_EXPLAIN_H

#include "gateway/control/control_job.h"
#include "gateway/control/control_target.h"
#include "gateway/shared/geo.h"
#include "gateway/shared/msg.h"
#include "gateway/shared/route.h"
#include "policy/verdict.h"

#include <jansson.h>

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

void control_explain_start(struct control_job *job);

#endif
