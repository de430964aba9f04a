/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The precedence is in policy/verdict.c; here are only the facts. */
#include "gateway/path/judge.h"

#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

/* A walk over the leases of one address; with a name, to that one's lease alone. */
struct judge_walk {
	const struct lease_table *table;
	const struct addr *addr;
	const struct name *name; /* NULL: all */
	const struct lease *at;
	bool begun;
	int64_t now_ms; /* before the walk began: what lives later has time left */
};

/* Finds the next lease, for verdict_judge. */
static bool
judge_lease_next(void *context, struct verdict_lease *ret_lease)
{
	struct judge_walk *walk = context;

	if (walk->name == NULL)
		walk->at = lease_next_of_addr(walk->table, walk->addr, walk->at);
	else
		walk->at = walk->begun ? NULL : lease_find(walk->table, walk->name, walk->addr);
	walk->begun = true;
	if (walk->at == NULL)
		return false;
	*ret_lease = (struct verdict_lease){
	    .name = &walk->at->name, .left_ms = walk->at->expires_ms - walk->now_ms, .dns_us = walk->at->upstream_us};
	return true;
}

/* Asks how the kernel would reach the address. One on the never list is refused for that: no need to ask. */
static enum verdict_route
judge_route(struct gateway *gateway, const struct addr *dst)
{
	if (addr_never(dst) != NULL)
		return VERDICT_ROUTE_OUT;
	switch (route_lookup(&gateway->route, dst)) {
	case ROUTE_UNICAST:
	case ROUTE_NONE: /* connect(2) fails by itself, and says why */
		return VERDICT_ROUTE_OUT;
	case ROUTE_HOST:
		return VERDICT_ROUTE_HOST;
	case ROUTE_ERROR:
		break;
	}
	return VERDICT_ROUTE_UNKNOWN;
}

/* Fills in what every case has: policy, time, address, and its place where rules are about places. */
static struct verdict_case
judge_case(
    const struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port, struct geo_place *ret_place)
{
	struct verdict_case what = {
	    .policy = sandbox->policy, .now_us = clock_real_us(), .proto = proto, .port = port, .addr = dst};

	if (snapshot_needs_place(sandbox->policy)) {
		geo_lookup(&sandbox->gateway->geo, dst, ret_place);
		what.place = &ret_place->at;
	}
	return what;
}

const char *
judge_place_detail(const struct sandbox *sandbox, enum reason reason)
{
	return reason == REASON_PLACE_UNKNOWN ? geo_lacks(&sandbox->gateway->geo, sandbox->policy) : NULL;
}

struct judgement
judge_attempt(
    struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port, const struct judge_claim *claim)
{
	struct judge_walk walk = {.table = &sandbox->leases, .addr = dst, .now_ms = clock_mono_ms()};
	struct geo_place place;
	struct verdict_case what = judge_case(sandbox, dst, proto, port, &place);
	struct judgement judgement;

	what.route = judge_route(sandbox->gateway, dst);
	if (claim != NULL) {
		what.naming = claim->naming;
		what.name = walk.name = claim->name;
		what.source = claim->source;
		what.ech = claim->ech;
	}
	what.lease_next = judge_lease_next;
	what.walk = &walk;
	judgement = verdict_judge(&what, NULL);
	if (judgement.reason == REASON_PLACE_UNKNOWN)
		judgement.detail = judge_place_detail(sandbox, judgement.reason);
	return judgement;
}

bool
judge_still_allows(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port,
    const struct name *name, enum name_source source, bool ech)
{
	struct geo_place place;
	struct verdict_case what = judge_case(sandbox, dst, proto, port, &place);

	what.naming = source == NAME_SOURCE_CIDR ? VERDICT_UNPROVEN : VERDICT_PROVEN;
	what.name = name;
	what.source = source;
	what.ech = ech;
	return verdict_judge(&what, NULL).verdict == VERDICT_ALLOWED;
}

void
gateway_record_place(const struct geo *geo, struct record_flow *flow)
{
	struct geo_place place;

	geo_lookup(geo, &flow->dst, &place);
	memcpy(flow->country, place.at.country, sizeof(flow->country));
	flow->asn = place.at.asn;
	static_assert(sizeof(flow->as_org) == sizeof(place.org), "an owner's name fits the record");
	memcpy(flow->as_org, place.org, sizeof(flow->as_org));
}

void
gateway_flow_record(struct sandbox *sandbox, struct record *ret_record, const struct addr *src, uint16_t sport,
    const struct addr *dst, uint16_t dport, uint8_t proto, const struct judgement *verdict)
{
	struct record_flow *flow = &ret_record->flow;

	memset(ret_record, 0, sizeof(*ret_record));
	ret_record->kind = RECORD_FLOW_OPEN;
	flow->id = recorder_id(&sandbox->gateway->recorder);
	flow->sandbox = sandbox->id;
	flow->ts_us = clock_real_us();
	flow->count = 1;
	flow->src = *src;
	flow->sport = sport;
	flow->dst = *dst;
	flow->dport = dport;
	flow->proto = proto;
	flow->verdict = (uint8_t)verdict->verdict;
	flow->reason = (uint8_t)verdict->reason;
	flow->name_source = (uint8_t)verdict->source;
	flow->end = verdict->verdict == VERDICT_ALLOWED ? END_OPEN : END_REFUSED;
	flow->name_len = verdict->name.len;
	memcpy(flow->name, verdict->name.text, verdict->name.len);
	flow->generation = sandbox->generation;
	gateway_record_place(&sandbox->gateway->geo, flow);
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
