/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The precedence is in policy/verdict.c; here are only the facts. */
#include "gateway/path/judge.h"

#include "base/clock.h"

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
