/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/tcp/flow.h"

#include "base/clock.h"
#include "gateway/path/judge.h"
#include "gateway/path/tcp/http_head.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(((struct record_flow *)NULL)->alpn) == sizeof(((struct tls_hello *)NULL)->alpn), "copied whole");
static_assert(RECORD_JA4_MAX >= JA4_MAX, "room for a fingerprint");

int64_t
flow_since_us(int64_t began_us)
{
	int64_t us = clock_mono_us() - began_us;

	return us < 1 ? 1 : us;
}

static void
flow_record_said(struct record_flow *record, const struct flow_said *said)
{
	size_t len = said->claim_len < RECORD_NAME_MAX ? said->claim_len : RECORD_NAME_MAX - 1;

	record->flags |= said->flags;
	if (said->hello != NULL) {
		memcpy(record->alpn, said->hello->alpn, sizeof(record->alpn));
		memcpy(record->ja4, said->hello->ja4, sizeof(said->hello->ja4));
		record->tls_version = said->hello->version;
	}
	/* A refused head may have ended before its method did. */
	if (said->method != NULL && http_head_is_token((uint8_t)said->method[0]))
		snprintf(record->http_method, sizeof(record->http_method), "%.*s", RECORD_METHOD_MAX - 1, said->method);
	record->hello_us = said->hello_us;
	if (record->verdict == VERDICT_ALLOWED || len == 0)
		return;
	memset(record->name, 0, sizeof(record->name));
	memcpy(record->name, said->claim, len);
	record->name_len = (uint16_t)len;
	record->name_source = NAME_SOURCE_CLAIM;
}

void
flow_record_refused(struct sandbox *sandbox, const struct flow_ends *ends, const struct judgement *verdict,
    const struct flow_said *said)
{
	struct record record;

	if (proxy_counts_refusal(sandbox, ends, verdict->verdict, verdict->reason))
		return;
	gateway_flow_record(sandbox, &record, &ends->src, ends->sport, &ends->dst, ends->dport, IPPROTO_TCP, verdict);
	flow_record_said(&record.flow, said);
	/* When even the reserve is full the refusal stands without a record: the balance tells. */
	(void)balance_send(sandbox->balance, &record, 0, NULL);
}

/* How it stands: for a record of progress, and, with an end, for the last one. */
static struct record_close
flow_record_count(const struct flow *flow)
{
	struct flow_segments now = flow->segments;

	(void)flow_count_segments(flow->guest_fd, &now);
	return (struct record_close){.id = flow->record_id,
	    .ts_us = clock_real_us(),
	    .bytes_out = flow->out.bytes,
	    .bytes_in = flow->back.bytes,
	    .packets_out = now.out - flow->segments.out,
	    .packets_in = now.in - flow->segments.in,
	    .duration_us = clock_mono_us() - flow->opened_us,
	    .connect_us = flow->connect_us,
	    .first_byte_us = flow->first_byte_us,
	    .up_src = flow->up_src,
	    .up_sport = flow->up_sport};
}

static uint64_t
flow_interim_count(struct interim *interim)
{
	const struct flow *flow = loop_owner(interim, struct flow, interim);

	return flow->out.bytes + flow->back.bytes;
}

static void
flow_interim_tell(struct interim *interim)
{
	const struct flow *flow = loop_owner(interim, struct flow, interim);
	struct record record = {.kind = RECORD_PROGRESS, .close = flow_record_count(flow)};

	record.close.verdict = VERDICT_ALLOWED;
	record.close.reason = REASON_ALLOWED;
	(void)balance_send(flow->sandbox->balance, &record, 0, NULL);
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
	rc = balance_send(flow->sandbox->balance, &record, 0, &flow->wait);
	if (rc < 0)
		return rc;
	flow->record_id = record.flow.id;
	flow->opened_us = clock_mono_us();
	flow->interim.count = flow_interim_count;
	flow->interim.tell = flow_interim_tell;
	interim_add(flow->sandbox->gateway, &flow->interim);
	return 0;
}

void
flow_record_close(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct record record = {.kind = RECORD_FLOW_CLOSE};
	enum reason ignored; /* it is over anyway */

	if (flow->record_id == 0)
		return;
	interim_remove(flow->sandbox->gateway, &flow->interim);
	record.close = flow_record_count(flow);
	record.close.end = (uint8_t)end;
	record.close.reason = (uint8_t)reason;
	record.close.verdict = (uint8_t)verdict;
	(void)balance_send(flow->sandbox->balance, &record, 0, NULL);
	(void)quota_count(flow->sandbox, &flow->ticket, flow->out.bytes, flow->back.bytes, &ignored);
	flow->record_id = 0;
	flow->segments.out += (uint32_t)record.close.packets_out;
	flow->segments.in += (uint32_t)record.close.packets_in;
	flow->connect_us = flow->first_byte_us = 0;
	flow->out.bytes = flow->back.bytes = 0;
	flow->ticket.out = flow->ticket.in = 0;
}

bool
flow_still_allowed(const struct flow *flow)
{
	return judge_still_allows(flow->sandbox, &flow->ends.dst, IPPROTO_TCP, flow->ends.dport, &flow->verdict.name,
	    flow->verdict.source, (flow->flags & RECORD_FLAG_ECH) != 0);
}
