/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The verdict on a connection: the three proofs of DESIGN section 1 in one place, for TCP and UDP alike.
 *
 * Order: never list and the host itself; deny by address, country and network; then the name. The name is proven when
 * this sandbox holds a live lease of (name, address) and, on inspected ports, the guest said the same name. Without a
 * name proof an address rule may allow; a deny rule on the name the guest claims still refuses it. */
#include "gateway/path/judge.h"
#include "gateway/path/gateway.h"

#include "base/clock.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static struct gateway_verdict
judge_denied(enum reason reason, uint32_t rule, const char *detail)
{
	return (struct gateway_verdict){
	    .verdict = VERDICT_DENIED, .reason = reason, .rule = rule, .detail = detail, .source = NAME_SOURCE_NONE};
}

const char *
gateway_lapsed_detail(const struct sandbox *sandbox, uint32_t rule)
{
	int64_t expires_us = snapshot_rule_expires_us(sandbox->policy, rule);

	return expires_us == 0 || expires_us > clock_real_us() ? "used up" : NULL;
}

/* The policy's no, with all that it can say about why. */
static struct gateway_verdict
judge_refused(const struct sandbox *sandbox, const struct decision *decision)
{
	if (decision->lapsed != SNAPSHOT_NO_RULE)
		return judge_denied(REASON_EXPIRED, decision->lapsed, gateway_lapsed_detail(sandbox, decision->lapsed));
	return judge_denied(decision->reason, decision->rule,
	    decision->out_of_bounds ? "beyond what the organisation's policy allows" : NULL);
}

struct decision
gateway_decide_addr(
    const struct sandbox *sandbox, const struct addr *addr, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct geo_place place;

	if (!snapshot_needs_place(sandbox->policy))
		return snapshot_decide_addr(sandbox->policy, addr, proto, port, now_us);
	geo_lookup(&sandbox->gateway->geo, addr, &place);
	return snapshot_decide_located(sandbox->policy, addr, &place.at, proto, port, now_us);
}

const char *
gateway_place_detail(const struct sandbox *sandbox, enum reason reason)
{
	return reason == REASON_PLACE_UNKNOWN ? geo_lacks(&sandbox->gateway->geo, sandbox->policy) : NULL;
}

static struct gateway_verdict
judge_allowed(uint32_t rule, enum name_source source, const struct name *name)
{
	struct gateway_verdict verdict = {
	    .verdict = VERDICT_ALLOWED, .reason = REASON_ALLOWED, .rule = rule, .source = source};

	if (name != NULL)
		verdict.name = *name;
	return verdict;
}

static struct gateway_verdict
judge_learned(enum name_source source, const struct name *name)
{
	struct gateway_verdict verdict = judge_allowed(SNAPSHOT_NO_RULE, source, name);

	verdict.learned = true;
	return verdict;
}

static struct gateway_verdict
judge_by_lease(struct gateway_verdict verdict, const struct lease *lease)
{
	verdict.dns_us = lease->upstream_us;
	return verdict;
}

/* Is the address out of bounds whatever the policy says? Fills *ret when so. */
static bool
judge_never(struct gateway *gateway, const struct addr *dst, struct gateway_verdict *ret)
{
	const struct never_prefix *row = addr_never(dst);

	if (row != NULL) {
		*ret = judge_denied(REASON_NEVER_ADDRESS, SNAPSHOT_NO_RULE, row->why);
		return true;
	}
	switch (route_lookup(&gateway->route, dst)) {
	case ROUTE_UNICAST:
	case ROUTE_NONE: /* connect(2) fails by itself, and says why */
		return false;
	case ROUTE_HOST:
		*ret = judge_denied(REASON_NEVER_ADDRESS, SNAPSHOT_NO_RULE, "an address of the host itself");
		return true;
	case ROUTE_ERROR:
		break;
	}
	*ret = judge_denied(REASON_INTERNAL_ERROR, SNAPSHOT_NO_RULE, "the kernel did not answer a route lookup");
	return true;
}

/* Is the refusal so far as good as this one, or better? */
static bool
judge_outweighs(const struct gateway_verdict *verdict, const struct decision *decision)
{
	return verdict->reason == REASON_RULE_DENY ||
	    (verdict->reason == REASON_EXPIRED && decision->reason != REASON_RULE_DENY);
}

/* Raw ports: any leased name that the policy allows here. */
static struct gateway_verdict
judge_leased(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port)
{
	struct gateway_verdict verdict = judge_denied(REASON_NOT_LEASED, SNAPSHOT_NO_RULE, NULL);
	const struct lease *lease = NULL;
	bool learned = false;

	while ((lease = lease_next_of_addr(&sandbox->leases, dst, lease)) != NULL) {
		struct decision decision =
		    snapshot_decide_host(sandbox->policy, &lease->name, proto, port, clock_real_us());

		if (decision.verdict == VERDICT_ALLOWED)
			return judge_by_lease(judge_allowed(decision.rule, NAME_SOURCE_LEASE, &lease->name), lease);
		/* Which of several refusals is told, and whether an entry for the address may still let it through,
		 * must not depend on the order of leases: a deny rule's counts, then that of a rule that ended. */
		if (learned || (!gateway_learns(&decision, proto) && judge_outweighs(&verdict, &decision)))
			continue;
		if (gateway_learns(&decision, proto)) {
			learned = true;
			verdict = judge_by_lease(judge_learned(NAME_SOURCE_LEASE, &lease->name), lease);
			continue;
		}
		verdict = judge_refused(sandbox, &decision);
		verdict.name = lease->name;
		verdict.source = NAME_SOURCE_LEASE;
		verdict.dns_us = lease->upstream_us;
	}
	return verdict;
}

/* Inspected ports: exactly the claimed name must be leased and allowed. */
static struct gateway_verdict
judge_claimed(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port, const struct name *claim,
    enum name_source source)
{
	enum reason mismatch = source == NAME_SOURCE_HOST ? REASON_HOST_MISMATCH : REASON_SNI_MISMATCH;
	struct decision decision = snapshot_decide_host(sandbox->policy, claim, proto, port, clock_real_us());
	bool learned = gateway_learns(&decision, proto);
	const struct lease *lease = lease_find(&sandbox->leases, claim, dst);
	struct gateway_verdict denied;

	if ((decision.verdict == VERDICT_ALLOWED || learned) && lease != NULL)
		return judge_by_lease(
		    learned ? judge_learned(source, claim) : judge_allowed(decision.rule, source, claim), lease);
	if (decision.verdict == VERDICT_ALLOWED || learned)
		denied = judge_denied(mismatch, decision.rule,
		    "the name is allowed, but this sandbox did not resolve it to this address");
	else
		denied = judge_refused(sandbox, &decision);
	denied.name = *claim;
	denied.source = NAME_SOURCE_CLAIM;
	return denied;
}

struct gateway_verdict
gateway_judge(struct sandbox *sandbox, const struct addr *dst, uint8_t proto, uint16_t port, const struct name *claim,
    enum name_source claim_source)
{
	struct decision by_addr;
	struct gateway_verdict verdict;

	if (judge_never(sandbox->gateway, dst, &verdict))
		return verdict;
	by_addr = gateway_decide_addr(sandbox, dst, proto, port, clock_real_us());
	if (by_addr.verdict != VERDICT_ALLOWED && by_addr.reason != REASON_NO_RULE)
		return judge_denied(by_addr.reason, by_addr.rule, gateway_place_detail(sandbox, by_addr.reason));
	if (claim != NULL)
		verdict = judge_claimed(sandbox, dst, proto, port, claim, claim_source);
	else
		verdict = judge_leased(sandbox, dst, proto, port);
	if ((verdict.reason == REASON_NO_RULE || verdict.reason == REASON_NOT_LEASED) &&
	    by_addr.lapsed != SNAPSHOT_NO_RULE) {
		verdict.reason = REASON_EXPIRED;
		verdict.rule = by_addr.lapsed;
		verdict.detail = gateway_lapsed_detail(sandbox, by_addr.lapsed);
	}
	if (by_addr.verdict != VERDICT_ALLOWED || (verdict.verdict == VERDICT_ALLOWED && !verdict.learned))
		return verdict;
	/* An address rule covers it. What the guest claims is not proven, but must not be a name that is refused. */
	if (verdict.reason == REASON_RULE_DENY || verdict.reason == REASON_NEVER_NAME)
		return verdict;
	return judge_allowed(by_addr.rule, NAME_SOURCE_CIDR, claim);
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
    const struct addr *dst, uint16_t dport, uint8_t proto, const struct gateway_verdict *verdict)
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
