/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the children count, kept for control, who asks with MSG_STATUS. The keeper outlives them: what a gateway said
 * last before it died stays in the sum, so that a count falls only when the whole daemon starts anew. */
#include "gateway/keeper/keeper.h"

#include <string.h>

bool
keeper_totals_take(struct keeper_role *gateway, const struct msg_totals *totals)
{
	if (!msg_totals_follow(totals, &gateway->totals))
		return false;
	gateway->totals = *totals;
	return true;
}

bool
keeper_totals_take_log(const struct msg_log_state *log)
{
	if (log->sealed_us < 0 || log->unsealed > log->changes)
		return false;
	keeper.log = *log;
	return true;
}

static void
totals_add(struct msg_totals *sum, const struct msg_totals *totals)
{
	for (size_t kind = 0; kind < RECORD_ATTEMPT_MAX; kind++)
		for (size_t verdict = 0; verdict < VERDICT_MAX; verdict++)
			sum->recorded[kind][verdict] += totals->recorded[kind][verdict];
	sum->upload += totals->upload;
	sum->download += totals->download;
	sum->open += totals->open;
	sum->waiting += totals->waiting;
}

/* The connections it had open end as they were recorded: allowed. */
void
keeper_totals_gateway_gone(struct keeper_role *gateway)
{
	struct msg_totals *last = &gateway->totals;

	last->recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] += last->open;
	last->open = last->waiting = 0;
	totals_add(&keeper.ended, last);
	memset(last, 0, sizeof(*last));
}

struct msg_totals
keeper_totals_sum(void)
{
	struct msg_totals sum = keeper.ended;

	for (unsigned int i = 0; i < keeper.gateway_count; i++)
		totals_add(&sum, &keeper.gateways[i].totals);
	return sum;
}
