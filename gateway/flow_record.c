/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/flow.h"

#include "base/clock.h"

#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

struct gateway_verdict
flow_verdict(enum verdict verdict, enum reason reason, const char *detail)
{
	return (struct gateway_verdict){.verdict = verdict,
	    .reason = reason,
	    .rule = SNAPSHOT_NO_RULE,
	    .source = NAME_SOURCE_NONE,
	    .detail = detail};
}

struct gateway_verdict
flow_judge(struct sandbox *sandbox, const struct flow_ends *ends, const struct name *claim, enum name_source source,
    enum reason missing)
{
	struct gateway_verdict verdict = gateway_judge(
	    sandbox, &ends->dst, IPPROTO_TCP, ends->dport, claim, claim == NULL ? NAME_SOURCE_NONE : source);
	struct decision by_addr;

	if (claim != NULL)
		return verdict;
	/* A lease alone proves nothing where the guest could have said the name and did not (CASES D-01). */
	if (verdict.verdict == VERDICT_ALLOWED && verdict.source != NAME_SOURCE_CIDR) {
		by_addr = snapshot_decide_addr(sandbox->policy, &ends->dst, IPPROTO_TCP, ends->dport, clock_real_us());
		if (by_addr.verdict != VERDICT_ALLOWED)
			return flow_verdict(VERDICT_DENIED, missing, NULL);
		verdict.source = NAME_SOURCE_CIDR;
		verdict.rule = by_addr.rule;
		verdict.name = (struct name){0};
	}
	if (verdict.verdict == VERDICT_DENIED &&
	    (verdict.reason == REASON_NO_RULE || verdict.reason == REASON_NOT_LEASED))
		return flow_verdict(VERDICT_DENIED, missing, NULL);
	return verdict;
}

static void
flow_record_said(struct record_flow *record, const struct flow_said *said)
{
	size_t len = said->claim_len < RECORD_NAME_MAX ? said->claim_len : RECORD_NAME_MAX - 1;

	record->flags |= said->flags;
	if (said->alpn != NULL)
		snprintf(record->alpn, sizeof(record->alpn), "%s", said->alpn);
	if (record->verdict == VERDICT_ALLOWED || len == 0)
		return;
	memset(record->name, 0, sizeof(record->name));
	memcpy(record->name, said->claim, len);
	record->name_len = (uint16_t)len;
	record->name_source = NAME_SOURCE_CLAIM;
}

void
flow_record_refused(struct sandbox *sandbox, const struct flow_ends *ends, const struct gateway_verdict *verdict,
    const struct flow_said *said)
{
	struct record record;

	gateway_flow_record(sandbox, &record, &ends->src, ends->sport, &ends->dst, ends->dport, IPPROTO_TCP, verdict);
	flow_record_said(&record.flow, said);
	/* When even the reserve is full the refusal stands without a record: the recorder reports the gap. */
	(void)recorder_send(&sandbox->gateway->recorder, &record, NULL);
}

int
flow_record_open(struct flow *flow, const struct flow_said *said)
{
	const struct flow_ends *ends = &flow->ends;
	struct record record;
	int rc;

	gateway_flow_record(
	    flow->sandbox, &record, &ends->src, ends->sport, &ends->dst, ends->dport, IPPROTO_TCP, &flow->verdict);
	flow_record_said(&record.flow, said);
	flow->durable = false;
	rc = recorder_send(&flow->sandbox->gateway->recorder, &record, &flow->wait);
	if (rc < 0)
		return rc;
	flow->record_id = record.flow.id;
	flow->opened_us = clock_mono_us();
	return 0;
}

void
flow_record_close(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE};
	enum reason ignored; /* it is over anyway */

	if (flow->record_id == 0)
		return;
	record.close = (struct record_close){.id = flow->record_id,
	    .ts_us = clock_real_us(),
	    .bytes_out = flow->out.bytes,
	    .bytes_in = flow->back.bytes,
	    .duration_us = clock_mono_us() - flow->opened_us,
	    .end = (uint8_t)end,
	    .reason = (uint8_t)reason,
	    .verdict = (uint8_t)verdict};
	(void)recorder_send(&flow->sandbox->gateway->recorder, &record, NULL);
	flow->record_id = 0;
	(void)meter_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &ignored);
	flow->out.bytes = flow->back.bytes = 0;
	flow->ticket.out = flow->ticket.in = 0;
}

bool
flow_still_allowed(const struct flow *flow)
{
	const struct snapshot *policy = flow->sandbox->policy;
	const struct name *name = &flow->verdict.name;
	int64_t now_us = clock_real_us();
	struct decision by_addr =
	    gateway_decide_addr(flow->sandbox, &flow->ends.dst, IPPROTO_TCP, flow->ends.dport, now_us);
	struct decision by_name;

	if ((flow->flags & RECORD_FLAG_ECH) != 0 && snapshot_ech(policy) == POLICY_ECH_DENY)
		return false;
	if (by_addr.verdict != VERDICT_ALLOWED && by_addr.reason != REASON_NO_RULE)
		return false;
	if (name->len == 0)
		return by_addr.verdict == VERDICT_ALLOWED;
	by_name = snapshot_decide_host(policy, name, IPPROTO_TCP, flow->ends.dport, now_us);
	if (gateway_learns(&by_name, IPPROTO_TCP) && flow->verdict.source != NAME_SOURCE_CIDR)
		return true;
	if (by_name.verdict != VERDICT_ALLOWED && by_name.reason != REASON_NO_RULE)
		return false;
	/* A name that was never proven does not begin to count because a rule now names it. */
	if (flow->verdict.source == NAME_SOURCE_CIDR)
		return by_addr.verdict == VERDICT_ALLOWED;
	return by_name.verdict == VERDICT_ALLOWED || by_addr.verdict == VERDICT_ALLOWED;
}
