/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What TCP connections use up, as gateway/path/count/meter.h counts it. */
#include "gateway/path/tcp/flow.h"

bool
flow_meter_open(struct flow *flow, struct gateway_verdict *verdict)
{
	return meter_open(flow->sandbox, verdict, &flow->ticket);
}

bool
flow_meter_next(struct flow *flow, struct gateway_verdict *verdict)
{
	enum reason ignored; /* what went beyond a limit is cut in the next turn */

	(void)meter_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &ignored);
	meter_close(flow->sandbox, &flow->ticket);
	if (!meter_open(flow->sandbox, verdict, &flow->ticket))
		return false;
	flow->ticket.out = flow->out.bytes;
	flow->ticket.in = flow->back.bytes;
	return true;
}

bool
flow_meter_budget(struct flow *flow, bool out, bool back)
{
	enum reason reason = REASON_ALLOWED;

	flow->out.budget = meter_left(flow->sandbox, &flow->ticket, METER_UPLOAD);
	flow->back.budget = meter_left(flow->sandbox, &flow->ticket, METER_DOWNLOAD);
	if (out && flow->out.budget == 0)
		reason = REASON_LIMIT_UPLOAD;
	else if (back && flow->back.budget == 0)
		reason = REASON_LIMIT_DOWNLOAD;
	if (reason == REASON_ALLOWED)
		return true;
	flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
	return false;
}

bool
flow_meter_count(struct flow *flow)
{
	enum reason reason;

	if (meter_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &reason))
		return true;
	flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
	return false;
}
