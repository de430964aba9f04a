/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/path/attempt.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

static_assert(REASON_MAX <= AGGREGATE_CLASSES_MAX, "a class of the aggregate for each reason");

int64_t
attempt_since_us(int64_t began_us)
{
	int64_t us = clock_mono_us() - began_us;

	return us < 1 ? 1 : us;
}

void
attempt_record_place(const struct geo *geo, struct record_flow *flow)
{
	struct geo_place place;

	geo_lookup(geo, &flow->dst, &place);
	memcpy(flow->country, place.at.country, sizeof(flow->country));
	flow->asn = place.at.asn;
	static_assert(sizeof(flow->as_org) == sizeof(place.org), "an owner's name fits the record");
	memcpy(flow->as_org, place.org, sizeof(flow->as_org));
}

void
attempt_record(struct sandbox *sandbox, struct record *ret_record, const struct attempt_ends *ends, uint8_t proto,
    const struct judgement *verdict)
{
	struct record_flow *flow = &ret_record->flow;

	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = RECORD_FLOW_OPEN;
	flow->id = recorder_id(&sandbox->gateway->recorder);
	flow->sandbox = sandbox->id;
	flow->ts_us = clock_real_us();
	flow->count = 1;
	flow->src = ends->src;
	flow->sport = ends->sport;
	flow->dst = ends->dst;
	flow->dport = ends->dport;
	flow->proto = proto;
	flow->verdict = (uint8_t)verdict->verdict;
	flow->reason = (uint8_t)verdict->reason;
	flow->name_source = (uint8_t)verdict->source;
	flow->end = verdict->verdict == VERDICT_ALLOWED ? END_OPEN : END_REFUSED;
	flow->name_len = verdict->name.len;
	memcpy(flow->name, verdict->name.text, verdict->name.len);
	flow->generation = sandbox->generation;
	attempt_record_place(&sandbox->gateway->geo, flow);
	flow->dns_us = verdict->dns_us;
	if (verdict->detail != NULL)
		snprintf(flow->detail, sizeof(flow->detail), "%s", verdict->detail);
	if (verdict->learned) {
		flow->flags |= RECORD_FLAG_LEARN;
		snprintf(flow->rule, sizeof(flow->rule), "%s", RECORD_RULE_LEARN);
	}
	if (verdict->rule != SNAPSHOT_NO_RULE)
		snprintf(flow->rule, sizeof(flow->rule), "%s (%s)", snapshot_rule_text(sandbox->policy, verdict->rule),
		    snapshot_rule_origin(sandbox->policy, verdict->rule));
}

/* Sends the counts so far: as an interim record (end END_OPEN) or as the closing one. */
static int
attempt_send_counts(struct attempt *attempt, enum end_reason end, enum verdict verdict, enum reason reason)
{
	struct record record = {.kind = end == END_OPEN ? RECORD_PROGRESS : RECORD_FLOW_CLOSE};

	record.close = (struct record_close){
	    .id = attempt->id,
	    .ts_us = clock_real_us(),
	    .bytes_out = *attempt->out,
	    .bytes_in = *attempt->in,
	    .duration_us = clock_mono_us() - attempt->opened_us,
	    .connect_us = attempt->connect_us,
	    .first_byte_us = attempt->first_byte_us,
	    .up_src = attempt->up_src,
	    .up_sport = attempt->up_sport,
	    .end = (uint8_t)end,
	    .verdict = (uint8_t)verdict,
	    .reason = (uint8_t)reason,
	};
	attempt->packets(attempt, &record.close);
	return balance_send(attempt->sandbox->balance, &record, 0, NULL);
}

/* Bytes both ways, for the interim queue, which sends a record only when they have changed. */
static uint64_t
attempt_interim_count(struct interim *interim)
{
	const struct attempt *attempt = loop_owner(interim, struct attempt, interim);

	return *attempt->out + *attempt->in;
}

/* Sends an interim record. One that finds no room is not missed: the closing one counts. */
static void
attempt_interim_tell(struct interim *interim)
{
	struct attempt *attempt = loop_owner(interim, struct attempt, interim);

	(void)attempt_send_counts(attempt, END_OPEN, VERDICT_ALLOWED, REASON_ALLOWED);
}

int
attempt_open(struct attempt *attempt, struct record *record)
{
	int rc = balance_send(attempt->sandbox->balance, record, 0, &attempt->wait);

	if (rc < 0)
		return rc;
	attempt->id = record->flow.id;
	attempt->opened_us = clock_mono_us();
	attempt->interim.count = attempt_interim_count;
	attempt->interim.tell = attempt_interim_tell;
	interim_add(attempt->sandbox->gateway, &attempt->interim);
	return 0;
}

/* syscalls: getsockname */
void
attempt_note_source(struct attempt *attempt, int fd)
{
	struct sockaddr_storage sa = {0};
	socklen_t len = sizeof(sa);

	if (getsockname(fd, (struct sockaddr *)&sa, &len) == 0)
		(void)addr_from_sockaddr((const struct sockaddr *)&sa, &attempt->up_src, &attempt->up_sport);
}

int
attempt_close(struct attempt *attempt, enum end_reason end, enum verdict verdict, enum reason reason)
{
	enum reason ignored; /* it is over anyway */
	int rc;

	if (attempt->id == 0)
		return 0;
	interim_remove(attempt->sandbox->gateway, &attempt->interim);
	rc = attempt_send_counts(attempt, end, verdict, reason);
	(void)quota_count(attempt->sandbox, &attempt->ticket, *attempt->out, *attempt->in, &ignored);
	attempt->id = 0;
	return rc;
}

void
attempt_list_cut(const struct attempt *attempt, struct msg_policy_done *done)
{
	if (done->cut_count < MSG_CUT_MAX)
		done->cut[done->cut_count] = (struct msg_cut_flow){.record_id = attempt->id,
		    .dst = attempt->ends.dst,
		    .dport = attempt->ends.dport,
		    .name = attempt->verdict.name};
	done->cut_count++;
}

void
attempt_refusals_init(struct attempt_refusals *refusals, struct sandbox *sandbox, uint8_t proto, uint64_t listed_max)
{
	*refusals = (struct attempt_refusals){.sandbox = sandbox, .proto = proto, .listed_max = listed_max};
	window_init(&refusals->listed, ATTEMPT_LISTED_MS);
	aggregate_init(&refusals->counted, sandbox->gateway->loop, sandbox->balance, ATTEMPT_KINDS_MAX);
}

void
attempt_refusals_close(struct attempt_refusals *refusals)
{
	aggregate_close(&refusals->counted);
}

bool
attempt_refusals_list(struct attempt_refusals *refusals)
{
	int64_t now_ms = clock_mono_ms();

	if (window_count(&refusals->listed, now_ms) >= refusals->listed_max)
		return false;
	window_add(&refusals->listed, now_ms);
	return true;
}

void
attempt_refusals_count(struct attempt_refusals *refusals, const struct attempt_ends *ends,
    const struct judgement *verdict, enum end_reason end)
{
	struct aggregate_key kind = {.src = ends->src,
	    .dst = ends->dst,
	    .class = (uint8_t)verdict->reason,
	    .proto = refusals->proto,
	    .dport = ends->dport};
	struct record record;

	/* It came in as a connection; what is counted instead of listed is a refused packet. */
	balance_reclass(refusals->sandbox->balance, RECORD_ATTEMPT_CONNECTION, RECORD_ATTEMPT_REFUSED);
	if (aggregate_bump(&refusals->counted, &kind, 1))
		return;
	attempt_record(refusals->sandbox, &record, ends, refusals->proto, verdict);
	record.flow.end = (uint8_t)end;
	if (aggregate_open(&refusals->counted, &kind, &record.flow, 1) < 0)
		log_warnx("%s: no memory to record a refused attempt", refusals->sandbox->name);
}
