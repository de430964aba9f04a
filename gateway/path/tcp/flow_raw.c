/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Connections whose bytes are not read: on ports without a mode of their own, and what another mode hands over. */
#include "gateway/path/tcp/flow.h"

#include <netinet/in.h>

/* Judges at once: there is nothing to wait for. */
static bool
flow_raw_begin(struct flow *flow)
{
	const struct attempt_ends *ends = &flow->attempt.ends;
	struct judgement verdict = judge_attempt(flow->sandbox, &ends->dst, IPPROTO_TCP, ends->dport, NULL);
	struct flow_said said = {0};

	if (verdict.verdict == VERDICT_ALLOWED)
		flow_open(flow, &verdict, &said);
	else
		flow_refuse(flow, &verdict, &said);
	return true;
}

/* Splices the guest's direction. */
static void
flow_raw_pump(struct flow *flow)
{
	relay_pump(&flow->out, flow->guest_fd, flow->origin_fd);
}

const struct flow_mode flow_raw_mode = {.begin = flow_raw_begin, .pump = flow_raw_pump};

void
flow_raw_take_over(struct flow *flow)
{
	loop_timer_stop(flow->sandbox->gateway->loop, &flow->timer);
	if (flow->in.len > 0)
		flow_buffer_to_prefix(flow);
	else
		flow_buffer_free(flow);
	flow->mode->end(flow);
	flow->mode = &flow_raw_mode;
	flow->answer_awaited = false;
	flow->out.status = RELAY_READING;
}
