/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What TCP connections use up, as gateway/path/count/quota.h counts it. */
#include "gateway/path/tcp/flow.h"

bool
flow_quota_open(struct flow *flow, struct judgement *verdict)
{
	return quota_open(flow->sandbox, verdict, &flow->ticket);
}

bool
flow_quota_next(struct flow *flow, struct judgement *verdict)
{
	enum reason ignored; /* what went beyond a limit is cut in the next turn */

	(void)quota_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &ignored);
	quota_close(flow->sandbox, &flow->ticket);
	if (!quota_open(flow->sandbox, verdict, &flow->ticket))
		return false;
	flow->ticket.out = flow->out.bytes;
	flow->ticket.in = flow->back.bytes;
	return true;
}

bool
flow_quota_budget(struct flow *flow, bool out, bool back)
{
	enum reason reason = REASON_ALLOWED;

	flow->out.budget = quota_left(flow->sandbox, &flow->ticket, QUOTA_UPLOAD);
	flow->back.budget = quota_left(flow->sandbox, &flow->ticket, QUOTA_DOWNLOAD);
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
flow_quota_count(struct flow *flow)
{
	enum reason reason;

	if (quota_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &reason))
		return true;
	flow_end(flow, END_POLICY, VERDICT_ALLOWED, reason, true);
	return false;
}
