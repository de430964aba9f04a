/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/tcp/flow.h"

#include "base/clock.h"
#include "gateway/path/tcp/http_head.h"

#include <assert.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

static_assert(sizeof(((struct record_flow *)NULL)->alpn) == sizeof(((struct tls_hello *)NULL)->alpn), "copied whole");
static_assert(RECORD_JA4_MAX >= JA4_MAX, "room for a fingerprint");

/* Copies what the guest said into the record. */
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
flow_record_refused(struct flow_list *list, const struct attempt_ends *ends, const struct judgement *verdict,
    const struct flow_said *said)
{
	struct judgement counted = verdict_plain(verdict->verdict, verdict->reason, "too many to be listed one by one");
	struct record record;

	if (!attempt_refusals_list(&list->refusals)) {
		attempt_refusals_count(&list->refusals, ends, &counted, END_REFUSED);
		return;
	}
	attempt_record(list->sandbox, &record, ends, IPPROTO_TCP, verdict);
	flow_record_said(&record.flow, said);
	/* When even the reserve is full the refusal stands without a record: the balance shows it. */
	(void)balance_send(list->sandbox->balance, &record, 0, NULL);
}

/* Segments since the record before; after the last one, the next begins from here. */
static void
flow_record_packets(struct attempt *attempt, struct record_close *close)
{
	struct flow *flow = loop_owner(attempt, struct flow, attempt);
	struct flow_segments now = flow->segments;

	(void)flow_socket_segments(flow->guest_fd, &now);
	close->packets_out = now.out - flow->segments.out;
	close->packets_in = now.in - flow->segments.in;
	if (close->end != END_OPEN)
		flow->segments = now;
}

int
flow_record_open(struct flow *flow, const struct flow_said *said)
{
	struct attempt *attempt = &flow->attempt;
	struct record record;

	attempt->out = &flow->out.bytes;
	attempt->in = &flow->back.bytes;
	attempt->packets = flow_record_packets;
	flow->durable = false;
	attempt_record(flow->sandbox, &record, &attempt->ends, IPPROTO_TCP, &attempt->verdict);
	flow_record_said(&record.flow, said);
	return attempt_open(attempt, &record);
}

void
flow_record_close(struct flow *flow, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct attempt *attempt = &flow->attempt;

	if (attempt->id == 0)
		return;
	(void)attempt_close(attempt, end, verdict, reason);
	attempt->connect_us = attempt->first_byte_us = 0;
	flow->out.bytes = flow->back.bytes = 0;
	attempt->ticket.out = attempt->ticket.in = 0;
}
