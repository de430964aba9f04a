/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The precedence of a verdict, as postern-policy(5) has it.
 *
 * Theory of operation. A connection goes through these steps; the first one that refuses decides.
 *
 *  1. The never list: the address, then the host itself (the routing table says). A route that is not known refuses.
 *  2. Deny rules by address, then by country and network; a place that is not known counts as the denied one.
 *  3. The name. It must be proven: leased to this address, and said by the guest where the protocol says one. The
 *     never list of names, deny rules, allow rules within the organisation's bounds, and mode: learn (TCP only) decide,
 *     in this order. Where any leased name will do, of several the first that a rule allows counts, then the first that
 *     is learned; of refusals that by a deny rule, then that by a rule that has ended, then the first.
 *  4. An allow rule by address lets through what step 3 did not, except a name that is denied or on the never list. An
 *     allow rule by address that has ended gives a refusal for want of a rule or a lease the reason "expired".
 *  5. A guest that had to say a name and did not passes by an address rule only.
 *  6. A hello with the encrypted-client-hello extension is refused under ech: deny.
 *
 * A question is step 3 for the name alone: some port of it must be open.
 *
 * A live connection is judged again by the name in its record. A name that was proven stays so, whatever became of its
 * lease; one that was not does not begin to count because a rule now names it.
 *
 * Whoever calls this states facts and trusts the answer: a fact that is left out (no address, no place, no lease) can
 * only leave out the steps that are about it. A missing proof refuses. */
#include "policy/verdict.h"

#include <assert.h>
#include <netinet/in.h>
#include <string.h>

#define OUT_OF_BOUNDS "beyond what the organisation's policy allows"

static const char *const verdict_words[] = {
    [VERDICT_ALLOWED] = "allowed",
    [VERDICT_DENIED] = "denied",
    [VERDICT_LIMITED] = "limited",
    [VERDICT_FAILED] = "failed",
};
static_assert(sizeof(verdict_words) / sizeof(verdict_words[0]) == VERDICT_MAX, "one word per verdict");

const char *
verdict_text(unsigned int verdict)
{
	return verdict < VERDICT_MAX ? verdict_words[verdict] : "?";
}

struct judgement
verdict_plain(enum verdict verdict, enum reason reason, const char *detail)
{
	return (struct judgement){.verdict = verdict,
	    .reason = reason,
	    .rule = SNAPSHOT_NO_RULE,
	    .detail = detail,
	    .source = NAME_SOURCE_NONE};
}

/* Adds a step to the trace, if one is kept. */
static void
trace_add(struct verdict_trace *trace, enum verdict_stage stage, const struct decision *decision)
{
	if (trace != NULL)
		trace->steps[trace->count++] = (struct verdict_step){.stage = stage,
		    .verdict = decision->verdict,
		    .reason = decision->reason,
		    .rule = decision->rule,
		    .lapsed = decision->lapsed};
}

/* Adds a step about a name: its lease (NULL: none), or what the policy says of it. */
static void
trace_add_name(struct verdict_trace *trace, enum verdict_stage stage, const struct judgement *judgement,
    const struct name *name, int64_t left_ms)
{
	if (trace != NULL)
		trace->steps[trace->count++] = (struct verdict_step){.stage = stage,
		    .verdict = judgement->verdict,
		    .reason = judgement->reason,
		    .rule = judgement->rule,
		    .lapsed = SNAPSHOT_NO_RULE,
		    .name = name,
		    .left_ms = left_ms};
}

/* Refuses because of a rule that has ended. */
static void
judgement_expire(struct judgement *judgement, const struct snapshot *policy, uint32_t rule, int64_t now_us)
{
	int64_t expires_us = snapshot_rule_expires_us(policy, rule);

	judgement->reason = REASON_EXPIRED;
	judgement->rule = rule;
	judgement->detail = expires_us == 0 || expires_us > now_us ? "used up" : NULL;
}

/* Turns the policy's decision on a name into a judgement: with mode: learn, and with all that it can say of a no. */
static struct judgement
judgement_of(const struct snapshot *policy, const struct decision *decision, uint8_t proto, int64_t now_us)
{
	struct judgement judgement = verdict_plain(decision->verdict, decision->reason, NULL);

	judgement.rule = decision->rule;
	/* TCP only: UDP needs a socket for each port, which only rules name. */
	if (decision->learnable && decision->reason == REASON_NO_RULE && proto == IPPROTO_TCP) {
		judgement.verdict = VERDICT_ALLOWED;
		judgement.reason = REASON_ALLOWED;
		judgement.learned = true;
	} else if (decision->lapsed != SNAPSHOT_NO_RULE) {
		judgement_expire(&judgement, policy, decision->lapsed, now_us);
	} else if (decision->out_of_bounds) {
		judgement.detail = OUT_OF_BOUNDS;
	}
	return judgement;
}

struct judgement
verdict_question(const struct snapshot *policy, const struct name *name, int64_t now_us)
{
	struct decision decision = snapshot_ports_any(policy, name, now_us);

	return judgement_of(policy, &decision, IPPROTO_TCP, now_us);
}

struct judgement
verdict_name(const struct snapshot *policy, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us)
{
	struct decision decision = snapshot_decide_host(policy, name, proto, port, now_us);

	return judgement_of(policy, &decision, proto, now_us);
}

/* Step 1. False: *ret_judgement refuses. */
static bool
passes_never(const struct verdict_case *what, struct judgement *ret_judgement)
{
	const struct never_prefix *row = addr_never(what->addr);
	enum reason reason = REASON_NEVER_ADDRESS;
	const char *detail;

	if (row != NULL) {
		detail = row->why;
	} else if (what->route == VERDICT_ROUTE_HOST) {
		detail = "an address of the host itself";
	} else if (what->route == VERDICT_ROUTE_UNKNOWN) {
		reason = REASON_INTERNAL_ERROR;
		detail = "the kernel did not answer a route lookup";
	} else {
		return true;
	}
	*ret_judgement = verdict_plain(VERDICT_DENIED, reason, detail);
	return false;
}

struct decision
verdict_address(const struct snapshot *policy, const struct addr *addr, const struct addr_place *place, uint8_t proto,
    uint16_t port, int64_t now_us)
{
	struct decision by_addr = snapshot_decide_addr(policy, addr, proto, port, now_us), by_place;

	if (place == NULL || (by_addr.verdict != VERDICT_ALLOWED && by_addr.reason != REASON_NO_RULE))
		return by_addr;
	by_place = snapshot_decide_place(policy, place, proto, port, now_us);
	return by_place.reason == REASON_NO_RULE ? by_addr : by_place;
}

/* Step 2, and the address rules' say in step 4. */
static struct decision
decide_addr(const struct verdict_case *what)
{
	struct decision decision =
	    verdict_address(what->policy, what->addr, what->place, what->proto, what->port, what->now_us);

	if (decision.reason == REASON_PLACE_UNKNOWN && what->place_pardoned)
		return verdict_address(what->policy, what->addr, NULL, what->proto, what->port, what->now_us);
	return decision;
}

/* The order of what several leased names come to: the first of the highest rank counts. */
static int
rank_of(const struct judgement *judgement)
{
	if (judgement->verdict == VERDICT_ALLOWED)
		return judgement->learned ? 4 : 5;
	return judgement->reason == REASON_RULE_DENY ? 3 : judgement->reason == REASON_EXPIRED ? 2 : 1;
}

/* The next lease that has not ended. */
static bool
next_lease(const struct verdict_case *what, struct verdict_lease *ret_lease)
{
	while (what->lease_next != NULL && what->lease_next(what->walk, ret_lease))
		if (ret_lease->left_ms > 0)
			return true;
	return false;
}

/* Step 3 where no name is said: any leased name that the policy allows. */
static struct judgement
judge_leased(const struct verdict_case *what, struct verdict_trace *trace)
{
	struct judgement best = verdict_plain(VERDICT_DENIED, REASON_NOT_LEASED, NULL);
	struct verdict_lease lease, proof = {.name = NULL, .left_ms = 0};
	int rank = 0;

	while (rank < 5 && next_lease(what, &lease)) {
		struct judgement judgement =
		    verdict_name(what->policy, lease.name, what->proto, what->port, what->now_us);

		if (rank_of(&judgement) <= rank)
			continue;
		rank = rank_of(&judgement);
		best = judgement;
		proof = lease;
	}
	trace_add_name(trace, VERDICT_STAGE_LEASE, &best, proof.name, proof.left_ms);
	if (proof.name != NULL) {
		trace_add_name(trace, VERDICT_STAGE_NAME, &best, proof.name, 0);
		best.name = *proof.name;
		best.source = NAME_SOURCE_LEASE;
		best.dns_us = proof.dns_us;
	}
	return best;
}

/* Step 3 for a name that was said, now or when the record was made. */
static struct judgement
judge_named(const struct verdict_case *what, struct verdict_trace *trace)
{
	struct judgement judgement = verdict_name(what->policy, what->name, what->proto, what->port, what->now_us);
	struct verdict_lease lease = {.left_ms = 0};
	bool proven = what->naming == VERDICT_PROVEN;

	trace_add_name(trace, VERDICT_STAGE_NAME, &judgement, what->name, 0);
	if (what->naming == VERDICT_SAID && judgement.verdict == VERDICT_ALLOWED) {
		while (!proven && next_lease(what, &lease))
			proven = name_equal(lease.name, what->name);
		trace_add_name(
		    trace, VERDICT_STAGE_LEASE, &judgement, proven ? what->name : NULL, proven ? lease.left_ms : 0);
	}
	judgement.name = *what->name;
	judgement.source = NAME_SOURCE_CLAIM;
	if (judgement.verdict == VERDICT_ALLOWED && proven) {
		judgement.source = what->source;
		judgement.dns_us = lease.left_ms > 0 ? lease.dns_us : 0;
	} else if (judgement.verdict == VERDICT_ALLOWED) {
		judgement.verdict = VERDICT_DENIED;
		judgement.reason = what->source == NAME_SOURCE_HOST ? REASON_HOST_MISMATCH : REASON_SNI_MISMATCH;
		judgement.detail = "the name is allowed, but this sandbox did not resolve it to this address";
		judgement.learned = false;
	}
	return judgement;
}

/* Is it refused only because nothing speaks for it? */
static bool
lacks_rule(const struct judgement *judgement)
{
	return judgement->reason == REASON_NO_RULE || judgement->reason == REASON_NOT_LEASED;
}

/* Step 4. What the guest says is not proven here, but must not be a name that is refused. */
static bool
address_rule_counts(const struct verdict_case *what, const struct judgement *judgement)
{
	if (judgement->verdict == VERDICT_ALLOWED)
		return judgement->learned;
	return judgement->reason != REASON_NEVER_NAME &&
	    (judgement->reason != REASON_RULE_DENY || what->naming == VERDICT_UNHEARD);
}

/* Do the kernel's sets let the connection come as far as to be judged, lease or no lease? */
static bool
kernel_lets_in(const struct verdict_case *what)
{
	size_t count;
	const struct addr_range *ranges = snapshot_ranges(what->policy, &count);

	for (size_t i = 0; i < count; i++)
		if (ranges[i].proto == what->proto && ranges[i].port_first <= what->port &&
		    what->port <= ranges[i].port_last && ranges[i].first.family == what->addr->family &&
		    memcmp(ranges[i].first.bytes, what->addr->bytes, sizeof(what->addr->bytes)) <= 0 &&
		    memcmp(what->addr->bytes, ranges[i].last.bytes, sizeof(what->addr->bytes)) <= 0)
			return true;
	return false;
}

struct judgement
verdict_judge(const struct verdict_case *what, struct verdict_trace *trace)
{
	static const struct decision passed = {.rule = SNAPSHOT_NO_RULE, .lapsed = SNAPSHOT_NO_RULE};
	struct decision by_addr = {
	    .verdict = VERDICT_DENIED, .reason = REASON_NO_RULE, .rule = SNAPSHOT_NO_RULE, .lapsed = SNAPSHOT_NO_RULE};
	bool named = what->naming == VERDICT_SAID || what->naming == VERDICT_PROVEN || what->naming == VERDICT_UNPROVEN;
	struct judgement judgement = verdict_plain(VERDICT_DENIED, REASON_NOT_LEASED, NULL);

	if (trace != NULL)
		trace->count = 0;
	if (what->addr != NULL) {
		if (!passes_never(what, &judgement)) {
			by_addr.reason = judgement.reason;
			trace_add(trace, VERDICT_STAGE_NEVER, &by_addr);
			return judgement;
		}
		trace_add(trace, VERDICT_STAGE_NEVER, &passed);
		by_addr = decide_addr(what);
		trace_add(trace, VERDICT_STAGE_ADDRESS, &by_addr);
		if (by_addr.verdict != VERDICT_ALLOWED && by_addr.reason != REASON_NO_RULE) {
			judgement.reason = by_addr.reason;
			judgement.rule = by_addr.rule;
			return judgement;
		}
	}
	if (!named)
		judgement = judge_leased(what, trace);
	else if (what->name->len > 0)
		judgement = judge_named(what, trace);
	if (lacks_rule(&judgement) && by_addr.lapsed != SNAPSHOT_NO_RULE)
		judgement_expire(&judgement, what->policy, by_addr.lapsed, what->now_us);
	/* A lease alone proves nothing where the guest could have said the name and did not (CASES D-01). */
	if (what->naming == VERDICT_SILENT && (judgement.verdict == VERDICT_ALLOWED || lacks_rule(&judgement)))
		judgement = verdict_plain(
		    VERDICT_DENIED, what->source == NAME_SOURCE_HOST ? REASON_HOST_MISMATCH : REASON_SNI_MISSING, NULL);
	if (by_addr.verdict == VERDICT_ALLOWED && address_rule_counts(what, &judgement)) {
		judgement = verdict_plain(VERDICT_ALLOWED, REASON_ALLOWED, NULL);
		judgement.rule = by_addr.rule;
		judgement.source = NAME_SOURCE_CIDR;
		if (named)
			judgement.name = *what->name;
	}
	if (judgement.verdict == VERDICT_ALLOWED && what->ech && snapshot_ech(what->policy) == POLICY_ECH_DENY)
		return verdict_plain(VERDICT_DENIED, REASON_ECH, NULL);
	if (what->behind_kernel && judgement.verdict != VERDICT_ALLOWED && !kernel_lets_in(what))
		return verdict_plain(
		    VERDICT_DENIED, what->proto == IPPROTO_UDP ? REASON_UDP_DENIED : REASON_NOT_LEASED, NULL);
	return judgement;
}
