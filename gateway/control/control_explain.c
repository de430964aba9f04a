/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/test: what would happen to a connection, step by step, and which step ends it.
 *
 * The decisions are the very functions that DNS and proxy ask (policy/compiled/snapshot.h, addr_never, name_never, geo_lookup,
 * the kernel's route lookup), on the snapshot that is in force, so that test and traffic cannot disagree (CASES B-27).
 * Leases come from the gateway. Nothing is resolved and nothing is sent. */
#include "gateway/control/control_explain.h"

#include "gateway/control/control_hint.h"
#include "gateway/control/control_json.h"
#include "gateway/control/control_sandbox.h"
#include "gateway/control/control_show.h"
#include "gateway/control/control_target.h"

#include "base/clock.h"
#include "policy/verdict.h"

#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAIN_TARGET_MAX 512

struct explain {
	struct control_target target;
	char text[EXPLAIN_TARGET_MAX];
	char shown[ADDR_PORT_TEXT_MAX + NAME_TEXT_MAX];
	const struct snapshot *snapshot;
	struct route *route;
	const struct geo *geo;
	json_t *steps;
	enum verdict verdict; /* stays as the first denial set it */
	enum reason reason;
	uint32_t rule;
	enum reason address_reason; /* why the last leased address cannot be used */
	uint32_t address_rule;
};

static void explain_step(struct explain *explain, const char *step, const char *result, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

static void
explain_step(struct explain *explain, const char *step, const char *result, const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	json_array_append_new(
	    explain->steps, json_pack("{s:s, s:s, s:s}", "step", step, "result", result, "text", text));
}

static void
explain_deny(struct explain *explain, enum reason reason, uint32_t rule)
{
	if (explain->verdict != VERDICT_ALLOWED)
		return;
	explain->verdict = VERDICT_DENIED;
	explain->reason = reason;
	explain->rule = rule;
}

/* A decision as a gateway takes it (gateway/path/judge.c): learning lets TCP through, and a grant that ended is named. */
static struct decision
explain_as_taken(struct decision decision, uint8_t proto)
{
	if (decision.learnable && decision.reason == REASON_NO_RULE && proto == IPPROTO_TCP) {
		decision.verdict = VERDICT_ALLOWED;
		decision.reason = REASON_ALLOWED;
	} else if (decision.lapsed != SNAPSHOT_NO_RULE) {
		decision.reason = REASON_EXPIRED;
		decision.rule = decision.lapsed;
	}
	return decision;
}

/* What rules by prefix, country and network say about an address. */
static struct decision
explain_decide_addr(const struct explain *explain, const struct addr *addr)
{
	struct geo_place place;

	geo_lookup(explain->geo, addr, &place);
	return verdict_address(
	    explain->snapshot, addr, &place.at, explain->target.proto, explain->target.port, clock_real_us());
}

/* What stands between the address and a decision about its place; "" when it is known. */
static const char *
explain_unknown(const struct explain *explain, const struct decision *decision)
{
	const char *lacks = geo_lacks(explain->geo, explain->snapshot);

	if (decision->reason != REASON_PLACE_UNKNOWN)
		return "";
	return lacks != NULL ? lacks : "its country or network is not known, and could be that one";
}

/* A decision as a step. */
static void
explain_decision(struct explain *explain, const char *step, struct decision decision, const char *about)
{
	bool allowed = decision.verdict == VERDICT_ALLOWED;
	const char *result = allowed ? "ok" : "denied";

	if (decision.reason == REASON_EXPIRED)
		explain_step(explain, step, result, "%s: no longer by %s (%s), which has expired or is used up", about,
		    snapshot_rule_text(explain->snapshot, decision.rule),
		    snapshot_rule_origin(explain->snapshot, decision.rule));
	else if (allowed && decision.rule == SNAPSHOT_NO_RULE)
		explain_step(explain, step, result, "%s: no rule allows it, mode: learn lets it through", about);
	else if (decision.rule != SNAPSHOT_NO_RULE)
		explain_step(explain, step, result, "%s: %s (%s)%s%s", about,
		    snapshot_rule_text(explain->snapshot, decision.rule),
		    snapshot_rule_origin(explain->snapshot, decision.rule),
		    decision.reason == REASON_PLACE_UNKNOWN ? ": " : "", explain_unknown(explain, &decision));
	else
		explain_step(explain, step, result, "%s: %s", about, reason_sentence(decision.reason));
	if (!allowed)
		explain_deny(explain, decision.reason, decision.rule);
}

/* Is the address refused whatever the policy says? */
static bool
explain_never(struct explain *explain, const struct addr *addr)
{
	const struct never_prefix *row = addr_never(addr);
	char text[ADDR_TEXT_MAX];

	addr_format(addr, text);
	if (row != NULL) {
		explain_step(
		    explain, "address", "denied", "%s is on the never list: %s, %s", text, row->text, row->why);
		return true;
	}
	if (explain->route->fd >= 0 && route_lookup(explain->route, addr) == ROUTE_HOST) {
		explain_step(explain, "address", "denied", "%s is an address of the host itself", text);
		return true;
	}
	return false;
}

/* Where it is, when that is known or matters. */
static void
explain_place(struct explain *explain, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX], where[GEO_PLACE_TEXT_MAX];
	struct geo_place place;

	geo_lookup(explain->geo, addr, &place);
	geo_place_format(&place, where);
	addr_format(addr, text);
	if (where[0] != '\0')
		explain_step(explain, "place", "info", "%s is in %s%s%s", text, where, place.org[0] == '\0' ? "" : ", ",
		    place.org);
	else if (snapshot_needs_place(explain->snapshot))
		explain_step(explain, "place", "info", "%s: neither country nor network is known", text);
}

/* -- by name ------------------------------------------------------------------------------------------------------- */

static bool
explain_name(struct explain *explain)
{
	const struct never_name *never;

	if (explain->target.name_error != NAME_OK) {
		explain_step(explain, "name", "denied", "this %s", name_error_text(explain->target.name_error));
		explain_deny(explain, REASON_DNS_DENIED, SNAPSHOT_NO_RULE);
		return false;
	}
	never = name_never(&explain->target.name);
	if (never != NULL) {
		explain_step(explain, "name", "denied", "%s is refused whatever the policy says: %s",
		    explain->target.name.text, never->why);
		explain_deny(explain, REASON_NEVER_NAME, SNAPSHOT_NO_RULE);
		return false;
	}
	explain_step(explain, "name", "ok", "%s", explain->target.name.text);
	return true;
}

/* One leased address of the name: usable unless a deny rule or the never list takes it. */
static bool
explain_lease(struct explain *explain, const struct msg_lease_row *row)
{
	struct decision decision = explain_decide_addr(explain, &row->addr);
	char text[ADDR_TEXT_MAX];

	if (explain_never(explain, &row->addr)) {
		explain->address_reason = REASON_NEVER_ADDRESS;
		explain->address_rule = SNAPSHOT_NO_RULE;
		return false;
	}
	addr_format(&row->addr, text);
	explain_place(explain, &row->addr);
	if (decision.verdict != VERDICT_ALLOWED && decision.reason != REASON_NO_RULE) {
		explain_step(explain, "lease", "denied", "%s is denied by %s (%s)%s%s", text,
		    snapshot_rule_text(explain->snapshot, decision.rule),
		    snapshot_rule_origin(explain->snapshot, decision.rule),
		    decision.reason == REASON_PLACE_UNKNOWN ? ": " : "", explain_unknown(explain, &decision));
		explain->address_reason = decision.reason;
		explain->address_rule = decision.rule;
		return false;
	}
	explain_step(explain, "lease", "ok", "%s, resolved by this sandbox, for another %u s", text, row->left_s);
	return true;
}

static void
explain_leases_of_name(struct explain *explain, const struct msg_leases_done *leases)
{
	uint32_t count = leases == NULL ? 0 : leases->count, own = 0, usable = 0;

	for (uint32_t i = 0; i < count && i < MSG_LEASES_MAX; i++) {
		if (!name_equal(&leases->rows[i].name, &explain->target.name))
			continue;
		own++;
		usable += explain_lease(explain, &leases->rows[i]);
	}
	if (leases == NULL)
		explain_step(explain, "lease", "info", "not known: the gateway did not answer");
	else if (own == 0)
		explain_step(explain, "lease", "info", "none now: the sandbox gets one when it resolves the name");
	else if (usable == 0)
		explain_deny(explain, explain->address_reason, explain->address_rule);
	if (own == 0 && snapshot_needs_place(explain->snapshot))
		explain_step(explain, "place", "info",
		    "its addresses are held against the rules by country and network when it is resolved");
}

static void
explain_proof(struct explain *explain, const struct name *name)
{
	const struct control_target *target = &explain->target;

	if (target->proto == IPPROTO_TCP && target->port == 443)
		explain_step(
		    explain, "proof", "info", "on port 443 the TLS server name must be %s as well", name->text);
	else if (target->proto == IPPROTO_TCP && target->port == 80)
		explain_step(explain, "proof", "info", "on port 80 the HTTP Host must be %s as well", name->text);
	else
		explain_step(explain, "proof", "info", "on this port the lease is the proof of the name");
}

/* -- by address, whatever the name --------------------------------------------------------------------------------- */

/* Does the port's protocol say a name that is held against the lease (gateway/path/judge.c)? */
static bool
explain_is_inspected(const struct explain *explain)
{
	const struct control_target *target = &explain->target;

	return target->proto == IPPROTO_TCP && (target->port == 443 || target->port == 80);
}

/* Of several refusals that of a deny rule counts, then that of a rule that ended. */
static int
explain_weight(const struct decision *decision)
{
	if (decision->verdict == VERDICT_ALLOWED)
		return decision->rule == SNAPSHOT_NO_RULE ? 4 : 5;
	return decision->reason == REASON_RULE_DENY ? 3 : decision->reason == REASON_EXPIRED ? 2 : 1;
}

/* What the names say that this sandbox resolved to an address: on ports without a name of their own, any that is
 * allowed will do. *ret_row: whose word it is, NULL when there are none (NOT_LEASED). */
static struct decision
explain_decide_leases(const struct explain *explain, const struct addr *addr, const struct msg_leases_done *leases,
    const struct msg_lease_row **ret_row)
{
	const struct control_target *target = &explain->target;
	uint32_t count = leases == NULL ? 0 : leases->count;
	struct decision best = {.verdict = VERDICT_DENIED,
	    .reason = REASON_NOT_LEASED,
	    .rule = SNAPSHOT_NO_RULE,
	    .lapsed = SNAPSHOT_NO_RULE};

	*ret_row = NULL;
	for (uint32_t i = 0; i < count && i < MSG_LEASES_MAX; i++) {
		const struct msg_lease_row *row = &leases->rows[i];
		struct decision decision;

		if (!addr_equal(&row->addr, addr))
			continue;
		decision = explain_as_taken(
		    snapshot_decide_host(explain->snapshot, &row->name, target->proto, target->port, clock_real_us()),
		    target->proto);
		if (*ret_row == NULL || explain_weight(&decision) > explain_weight(&best)) {
			best = decision;
			*ret_row = row;
		}
	}
	return best;
}

/* No rule lets the name pass on this port. The connection passes all the same when an entry for addresses covers where
 * it goes, or, without a name in the protocol, when another name of that address may: what is in the way of a name is
 * not in the way of its address. */
static bool
explain_otherwise(struct explain *explain, enum reason reason, const struct msg_leases_done *leases)
{
	uint32_t count = leases == NULL ? 0 : leases->count;
	char text[ADDR_TEXT_MAX];

	for (uint32_t i = 0; i < count && i < MSG_LEASES_MAX; i++) {
		const struct msg_lease_row *row = &leases->rows[i], *by = NULL;
		struct decision addr = explain_decide_addr(explain, &row->addr), other = {.reason = reason};

		if (!name_equal(&row->name, &explain->target.name) || explain_never(explain, &row->addr) ||
		    (addr.verdict != VERDICT_ALLOWED && addr.reason != REASON_NO_RULE))
			continue;
		if (!explain_is_inspected(explain))
			other = explain_decide_leases(explain, &row->addr, leases, &by);
		addr_format(&row->addr, text);
		if (by != NULL && other.verdict == VERDICT_ALLOWED) {
			explain_step(
			    explain, "rule", "info", "%s: no rule allows this name on this port", explain->shown);
			explain_step(explain, "lease", "ok", "but %s is the address of %s, too, and any name will do",
			    text, by->name.text);
			explain_decision(explain, "rule", other, by->name.text);
			explain->rule = other.rule;
			return true;
		}
		if (addr.verdict == VERDICT_ALLOWED && other.reason != REASON_RULE_DENY) {
			explain_step(
			    explain, "rule", "info", "%s: no rule allows this name on this port", explain->shown);
			explain_decision(explain, "address", addr, text);
			explain->rule = addr.rule;
			return true;
		}
	}
	return false;
}

/* -- by name, from the question on --------------------------------------------------------------------------------- */

/* A refusal for want of a rule: is there one that nearly fits? */
static void
explain_hint(struct explain *explain)
{
	const struct control_target *target = &explain->target;
	char text[CONTROL_HINT_MAX];

	if (explain->reason != REASON_NO_RULE)
		return;
	control_hint(explain->snapshot, &target->name, target->proto, target->port, clock_real_us(), text);
	if (text[0] != '\0')
		explain_step(explain, "hint", "info", "%s", text);
}

static void
explain_by_name(struct explain *explain, const struct msg_leases_done *leases)
{
	struct decision dns, host;

	if (!explain_name(explain))
		return;
	dns = explain_as_taken(
	    snapshot_decide_dns(explain->snapshot, &explain->target.name, clock_real_us()), IPPROTO_TCP);
	explain_decision(
	    explain, "dns", dns, dns.verdict == VERDICT_ALLOWED ? "may be resolved" : "may not be resolved");
	if (dns.verdict != VERDICT_ALLOWED) {
		explain_hint(explain);
		return;
	}
	host = explain_as_taken(snapshot_decide_host(explain->snapshot, &explain->target.name, explain->target.proto,
				    explain->target.port, clock_real_us()),
	    explain->target.proto);
	if (host.verdict != VERDICT_ALLOWED && explain_otherwise(explain, host.reason, leases))
		return;
	explain_decision(explain, "rule", host, explain->shown);
	if (host.verdict != VERDICT_ALLOWED) {
		explain_hint(explain);
		return;
	}
	explain->rule = host.rule;
	explain_leases_of_name(explain, leases);
	explain_proof(explain, &explain->target.name);
}

/* -- by address ---------------------------------------------------------------------------------------------------- */

/* What the names of the address say, as a step. False: nothing that decides, as an entry for the address allows it. */
static bool
explain_leases_of_addr(struct explain *explain, const struct decision *by_addr, const struct msg_leases_done *leases)
{
	const struct msg_lease_row *row;
	struct decision decision = explain_decide_leases(explain, &explain->target.addr, leases, &row);
	bool allowed = decision.verdict == VERDICT_ALLOWED;

	/* What is said by the protocol is not known here; so only a lease that allows is worth a word. */
	if (by_addr->verdict == VERDICT_ALLOWED && !(allowed && decision.rule != SNAPSHOT_NO_RULE) &&
	    (explain_is_inspected(explain) || decision.reason != REASON_RULE_DENY))
		return false;
	if (row == NULL)
		explain_step(explain, "lease", "denied", "this sandbox did not resolve an allowed name to it");
	else
		explain_step(explain, "lease", allowed ? "ok" : "denied",
		    "resolved by this sandbox as %s, for another %u s", row->name.text, row->left_s);
	/* The kernel lets only what is leased, or within an entry for addresses, come as far as to be judged. */
	if (!allowed && by_addr->verdict != VERDICT_ALLOWED && by_addr->lapsed == SNAPSHOT_NO_RULE)
		explain_deny(explain, REASON_NOT_LEASED, SNAPSHOT_NO_RULE);
	if (!allowed && by_addr->lapsed != SNAPSHOT_NO_RULE &&
	    (decision.reason == REASON_NO_RULE || decision.reason == REASON_NOT_LEASED))
		explain_deny(explain, REASON_EXPIRED, by_addr->lapsed);
	if (row != NULL)
		explain_decision(explain, "rule", decision, row->name.text);
	if (!allowed)
		explain_deny(explain, decision.reason, decision.rule);
	if (!allowed)
		return true;
	explain_proof(explain, &row->name);
	explain->rule = decision.rule;
	return true;
}

static void
explain_by_addr(struct explain *explain, const struct msg_leases_done *leases)
{
	const struct control_target *target = &explain->target;
	struct decision decision;

	if (explain_never(explain, &target->addr)) {
		explain_deny(explain, REASON_NEVER_ADDRESS, SNAPSHOT_NO_RULE);
		return;
	}
	explain_step(explain, "address", "ok", "%s is not on the never list", explain->shown);
	explain_place(explain, &target->addr);
	decision = explain_decide_addr(explain, &target->addr);
	if (decision.reason == REASON_NO_RULE) {
		if (decision.lapsed == SNAPSHOT_NO_RULE)
			explain_step(explain, "rule", "info", "no rule is about this address");
		else
			explain_step(explain, "rule", "info", "%s (%s) has expired or is used up",
			    snapshot_rule_text(explain->snapshot, decision.lapsed),
			    snapshot_rule_origin(explain->snapshot, decision.lapsed));
	}
	if ((decision.reason == REASON_NO_RULE || decision.verdict == VERDICT_ALLOWED) &&
	    explain_leases_of_addr(explain, &decision, leases))
		return;
	explain_decision(explain, "rule", decision, explain->shown);
	if (decision.verdict == VERDICT_ALLOWED)
		explain->rule = decision.rule;
}

/* -- the job ------------------------------------------------------------------------------------------------------- */

static void
explain_end(struct control_job *job, const struct msg_leases_done *leases)
{
	struct explain *explain = job->data;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct error err;

	if (sandbox == NULL || sandbox->snapshot == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "no sandbox %s with a policy in force", job->target);
		control_job_fail(job, &err);
		return;
	}
	explain->snapshot = sandbox->snapshot;
	explain->route = &job->control->route;
	explain->geo = &job->control->geo;
	if (leases != NULL && leases->result.code != ERROR_NONE)
		leases = NULL;
	if (explain->target.is_addr)
		explain_by_addr(explain, leases);
	else
		explain_by_name(explain, leases);
	control_job_end(job, 200,
	    json_pack("{s:s, s:s, s:i, s:s, s:O, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "sandbox", job->target, "target",
		explain->text, "port", (int)explain->target.port, "protocol",
		explain->target.proto == IPPROTO_UDP ? "udp" : "tcp", "steps", explain->steps, "verdict",
		verdict_text(explain->verdict), "reason", reason_text(explain->reason), "sentence",
		reason_sentence(explain->reason), "rule", snapshot_rule_text(explain->snapshot, explain->rule),
		"origin", snapshot_rule_origin(explain->snapshot, explain->rule), "generation",
		(json_int_t)sandbox->generation, "leases",
		leases == NULL ? json_array() : control_show_leases(leases)));
}

static void
explain_answer(struct control_job *job, const void *answer)
{
	explain_end(job, answer);
}

static void
explain_free(void *data)
{
	struct explain *explain = data;

	json_decref(explain->steps);
	free(explain);
}

static int
explain_read(struct control_job *job, struct explain *explain, struct error *err)
{
	json_t *target;
	const struct control_field fields[] = {{"target", JSON_STRING, true, &target}};
	char addr[ADDR_PORT_TEXT_MAX];

	if (control_json_fields(job->body, fields, 1, err) < 0 ||
	    control_json_text(target, "target", explain->text, sizeof(explain->text), err) < 0 ||
	    control_target_parse(explain->text, &explain->target, err) < 0)
		return -1;
	if (explain->target.is_addr)
		snprintf(explain->shown, sizeof(explain->shown), "%s",
		    addr_format_port(&explain->target.addr, explain->target.port, addr));
	else
		snprintf(explain->shown, sizeof(explain->shown), "%s:%u%s", explain->target.name.text,
		    explain->target.port, explain->target.proto == IPPROTO_UDP ? "/udp" : "");
	return 0;
}

void
control_explain_start(struct control_job *job)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct explain *explain = calloc(1, sizeof(*explain));
	struct msg_leases ask = {0};
	struct error err;

	if (explain != NULL) {
		explain->steps = json_array();
		explain->rule = explain->address_rule = SNAPSHOT_NO_RULE;
		job->data = explain;
		job->data_free = explain_free;
	}
	error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", job->target);
	if (sandbox == NULL || explain == NULL || explain_read(job, explain, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	ask.id = sandbox->id;
	if (explain->target.is_addr)
		ask.addr = explain->target.addr;
	else
		ask.name = explain->target.name;
	if (!sandbox->attached || (!explain->target.is_addr && explain->target.name_error != NAME_OK) ||
	    control_job_ask(job, MSG_LEASES, &ask, sizeof(ask), -1, explain_answer, &err) < 0)
		explain_end(job, NULL);
}
