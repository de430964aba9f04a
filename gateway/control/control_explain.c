/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/test: what would happen to a connection, step by step, and which step ends it.
 *
 * The verdict is the data path's (policy/verdict.h), on the snapshot that is in force, so that test and traffic cannot
 * disagree (CASES B-27); the leases are the gateway's own. Here is only how its steps read. A name is judged for each
 * address that it is leased to, and counts as allowed when it is at one of them. Nothing is resolved, nothing is sent.
 */
#include "gateway/control/control_explain.h"

#include "base/clock.h"
#include "gateway/control/control_json.h"
#include "gateway/control/control_sandbox.h"
#include "gateway/control/control_show.h"

#include <netinet/in.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPLAIN_TARGET_MAX 512
/* Two rules' worth of text and a sentence. */
#define EXPLAIN_HINT_MAX (2 * RULE_TEXT_MAX)
/* Ports that a hint names; then "and more". */
#define HINT_PORTS_MAX 8

/* The job's own. */
struct explain_job {
	struct control_target target;
	char text[EXPLAIN_TARGET_MAX];
};

struct explain {
	const struct control_explain_facts *facts;
	const struct control_target *target;
	char shown[ADDR_PORT_TEXT_MAX + NAME_TEXT_MAX]; /* the target */
	json_t *steps;
};

/* Adds one step to the answer. */
__attribute__((format(printf, 4, 5))) static void
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

/* Adds a decision as a step: the rule behind it, or what stands in its place. */
static void
explain_decision(struct explain *explain, const char *step, enum verdict verdict, enum reason reason, uint32_t rule,
    const char *about)
{
	const struct snapshot *policy = explain->facts->policy;
	const char *result = verdict == VERDICT_ALLOWED ? "ok" : "denied", *lacks;

	if (reason == REASON_EXPIRED) {
		explain_step(explain, step, result, "%s: %s (%s) has expired or is used up", about,
		    snapshot_rule_text(policy, rule), snapshot_rule_origin(policy, rule));
	} else if (verdict == VERDICT_ALLOWED && rule == SNAPSHOT_NO_RULE) {
		explain_step(explain, step, result, "%s: no rule allows it, mode: learn lets it through", about);
	} else if (rule == SNAPSHOT_NO_RULE) {
		explain_step(explain, step, result, "%s: %s", about, reason_sentence(reason));
	} else if (reason == REASON_PLACE_UNKNOWN) {
		lacks = geo_lacks(explain->facts->geo, policy);
		explain_step(explain, step, result, "%s: %s (%s): %s", about, snapshot_rule_text(policy, rule),
		    snapshot_rule_origin(policy, rule),
		    lacks != NULL ? lacks : "its country or network is not known, and could be that one");
	} else {
		explain_step(explain, step, result, "%s: %s (%s)", about, snapshot_rule_text(policy, rule),
		    snapshot_rule_origin(policy, rule));
	}
}

/* Says where the address is, when that is known or matters. */
static void
explain_place(struct explain *explain, const char *addr, const struct geo_place *place)
{
	char where[GEO_PLACE_TEXT_MAX];

	geo_place_format(place, where);
	if (where[0] != '\0')
		explain_step(explain, "place", "info", "%s is in %s%s%s", addr, where,
		    place->org[0] == '\0' ? "" : ", ", place->org);
	else if (snapshot_needs_place(explain->facts->policy))
		explain_step(explain, "place", "info", "%s: neither country nor network is known", addr);
}

/* Says why an address is refused before the policy is asked. */
static void
explain_never(struct explain *explain, const char *text, const struct addr *addr, enum reason reason)
{
	const struct never_prefix *row = addr_never(addr);

	if (row != NULL)
		explain_step(
		    explain, "address", "denied", "%s is on the never list: %s, %s", text, row->text, row->why);
	else if (reason == REASON_NEVER_ADDRESS)
		explain_step(explain, "address", "denied", "%s is an address of the host itself", text);
	else
		explain_step(explain, "address", "denied", "%s: the kernel did not answer a route lookup", text);
}

/* Says which lease proves the name, or that there is none. */
static void
explain_lease(struct explain *explain, const struct verdict_step *step, const char *addr, bool allowed)
{
	const struct control_target *target = explain->target;
	const char *result = allowed ? "ok" : "denied";
	unsigned int left_s = (unsigned int)(step->left_ms / 1000);

	if (step->name == NULL)
		explain_step(explain, "lease", "denied", "this sandbox did not resolve an allowed name to it");
	else if (target->is_addr)
		explain_step(explain, "lease", result, "resolved by this sandbox as %s, for another %u s",
		    step->name->text, left_s);
	else if (name_equal(step->name, &target->name))
		explain_step(explain, "lease", result, "%s, resolved by this sandbox, for another %u s", addr, left_s);
	else
		explain_step(explain, "lease", result, "%s is also an address of %s, and any of its names is enough",
		    addr, step->name->text);
}

/* Says what the guest has to prove on this port. */
static void
explain_proof(struct explain *explain, const char *name)
{
	const struct control_target *target = explain->target;

	if (target->proto == IPPROTO_TCP && target->port == 443)
		explain_step(explain, "proof", "info", "on port 443 the TLS server name must be %s as well", name);
	else if (target->proto == IPPROTO_TCP && target->port == 80)
		explain_step(explain, "proof", "info", "on port 80 the HTTP Host must be %s as well", name);
	else
		explain_step(explain, "proof", "info", "on this port the lease is the proof of the name");
}

/* Puts the steps of one verdict into words. */
static void
explain_trace(struct explain *explain, const struct verdict_case *what, const struct verdict_trace *trace,
    const struct judgement *judgement, const struct geo_place *place)
{
	const struct snapshot *policy = explain->facts->policy;
	bool by_addr = judgement->source == NAME_SOURCE_CIDR, is_addr = explain->target->is_addr;
	const char *shown = explain->shown;
	char addr[ADDR_TEXT_MAX] = "";

	if (what->addr != NULL)
		addr_format(what->addr, addr);
	for (size_t i = 0; i < trace->count; i++) {
		const struct verdict_step *step = &trace->steps[i];

		switch (step->stage) {
		case VERDICT_STAGE_NEVER:
			if (step->verdict != VERDICT_ALLOWED) {
				explain_never(explain, addr, what->addr, step->reason);
				break;
			}
			if (is_addr)
				explain_step(explain, "address", "ok", "%s is not on the never list", shown);
			explain_place(explain, addr, place);
			break;
		case VERDICT_STAGE_ADDRESS:
			if (step->lapsed != SNAPSHOT_NO_RULE)
				explain_step(explain, "rule", "info", "%s (%s) has expired or is used up",
				    snapshot_rule_text(policy, step->lapsed),
				    snapshot_rule_origin(policy, step->lapsed));
			else if (step->reason == REASON_NO_RULE && is_addr)
				explain_step(explain, "rule", "info", "no rule is about this address");
			else if (step->reason != REASON_NO_RULE && step->verdict != VERDICT_ALLOWED)
				explain_decision(
				    explain, "rule", step->verdict, step->reason, step->rule, is_addr ? shown : addr);
			break;
		case VERDICT_STAGE_LEASE:
			if (!by_addr)
				explain_lease(explain, step, addr, judgement->verdict == VERDICT_ALLOWED);
			break;
		case VERDICT_STAGE_NAME:
			if (!by_addr)
				explain_decision(explain, "rule", step->verdict, step->reason, step->rule,
				    name_equal(step->name, &explain->target->name) ? shown : step->name->text);
			else if (!is_addr)
				explain_step(
				    explain, "rule", "info", "%s: no rule allows this name on this port", shown);
			break;
		}
	}
	if (by_addr)
		explain_decision(
		    explain, "rule", VERDICT_ALLOWED, REASON_ALLOWED, judgement->rule, is_addr ? shown : addr);
	else if (judgement->verdict == VERDICT_ALLOWED && is_addr)
		explain_proof(explain, judgement->name.text);
}

/* -- hints --------------------------------------------------------------------------------------------------------- */

/* The name is right, the port is not. */
static bool
hint_ports(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[EXPLAIN_HINT_MAX])
{
	struct proto_port ports[HINT_PORTS_MAX + 1];
	size_t count = snapshot_ports_list(snapshot, name, ports, HINT_PORTS_MAX + 1, now_us), len;

	if (count == 0)
		return false;
	len = (size_t)snprintf(ret_text, EXPLAIN_HINT_MAX, "of %s these ports are allowed: ", name->text);
	for (size_t i = 0; i < count && i < HINT_PORTS_MAX; i++)
		len += (size_t)snprintf(ret_text + len, EXPLAIN_HINT_MAX - len, "%s%u%s", i == 0 ? "" : ", ",
		    ports[i].port, ports[i].proto == IPPROTO_UDP ? "/udp" : "");
	if (count > HINT_PORTS_MAX)
		snprintf(ret_text + len, EXPLAIN_HINT_MAX - len, " and more");
	return true;
}

/* The rule that lets a name be resolved, SNAPSHOT_NO_RULE if none does. */
static uint32_t
hint_rule(const struct snapshot *snapshot, const char *text, size_t len, int64_t now_us)
{
	struct decision decision;
	struct name name;

	if (name_canonical(text, len, &name) != NAME_OK)
		return SNAPSHOT_NO_RULE;
	decision = snapshot_ports_any(snapshot, &name, now_us);
	return decision.verdict == VERDICT_ALLOWED ? decision.rule : SNAPSHOT_NO_RULE;
}

/* Names below it are allowed, as by "*.example.com". */
static bool
hint_below(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[EXPLAIN_HINT_MAX])
{
	char below[NAME_TEXT_MAX + sizeof("x.")];
	int len = snprintf(below, sizeof(below), "x.%s", name->text);
	uint32_t rule = hint_rule(snapshot, below, (size_t)len, now_us);

	if (rule == SNAPSHOT_NO_RULE)
		return false;
	snprintf(ret_text, EXPLAIN_HINT_MAX, "%s (%s) is about names below %s, not about itself",
	    snapshot_rule_text(snapshot, rule), snapshot_rule_origin(snapshot, rule), name->text);
	return true;
}

/* A name above it is allowed, and that one alone. */
static bool
hint_above(const struct snapshot *snapshot, const struct name *name, int64_t now_us, char ret_text[EXPLAIN_HINT_MAX])
{
	for (const char *dot = strchr(name->text, '.'); dot != NULL; dot = strchr(dot + 1, '.')) {
		uint32_t rule = hint_rule(snapshot, dot + 1, strlen(dot + 1), now_us);

		if (rule == SNAPSHOT_NO_RULE)
			continue;
		snprintf(ret_text, EXPLAIN_HINT_MAX, "%s (%s) is about %s alone, not about names below it",
		    snapshot_rule_text(snapshot, rule), snapshot_rule_origin(snapshot, rule), dot + 1);
		return true;
	}
	return false;
}

/* What a refused name just misses; "" when nothing comes near. Most often a policy says nearly the right thing. */
static const char *
hint_for(const struct snapshot *snapshot, const struct name *name, uint8_t proto, uint16_t port, int64_t now_us,
    char ret_text[EXPLAIN_HINT_MAX])
{
	ret_text[0] = '\0';
	if (snapshot_decide_host(snapshot, name, proto, port, now_us).out_of_bounds)
		snprintf(ret_text, EXPLAIN_HINT_MAX,
		    "a rule allows it, but the organisation's policy does not allow it too");
	else if (!hint_ports(snapshot, name, now_us, ret_text) && !hint_below(snapshot, name, now_us, ret_text))
		hint_above(snapshot, name, now_us, ret_text);
	return ret_text;
}

/* -- facts --------------------------------------------------------------------------------------------------------- */

/* A walk over what the gateway said of one address. */
struct explain_walk {
	const struct msg_leases_done *leases;
	const struct addr *addr;
	uint32_t at;
};

/* Finds the next lease, for verdict_judge. */
static bool
explain_lease_next(void *context, struct verdict_lease *ret_lease)
{
	struct explain_walk *walk = context;

	while (walk->leases != NULL && walk->at < walk->leases->count && walk->at < MSG_LEASES_MAX) {
		const struct msg_lease_row *row = &walk->leases->rows[walk->at++];

		if (!addr_equal(&row->addr, walk->addr))
			continue;
		/* Whole seconds, rounded down, of one that has not ended. */
		*ret_lease = (struct verdict_lease){.name = &row->name, .left_ms = (int64_t)row->left_s * 1000 + 999};
		return true;
	}
	return false;
}

/* Judges the target at one address, or (NULL) before its name is resolved, and adds the steps. */
static struct judgement
explain_judge(struct explain *explain, const struct addr *addr)
{
	const struct control_explain_facts *facts = explain->facts;
	const struct control_target *target = explain->target;
	bool inspected = target->proto == IPPROTO_TCP && (target->port == 443 || target->port == 80);
	struct explain_walk walk = {.leases = facts->leases, .addr = addr};
	struct geo_place place = {.org = ""};
	struct verdict_case what = {.policy = facts->policy,
	    .now_us = facts->now_us,
	    .proto = target->proto,
	    .port = target->port,
	    .addr = addr,
	    .place = &place.at,
	    .name = &target->name,
	    .source = target->port == 80 ? NAME_SOURCE_HOST : NAME_SOURCE_SNI,
	    .behind_kernel = target->is_addr,
	    .lease_next = explain_lease_next,
	    .walk = &walk};
	struct verdict_trace trace;
	struct judgement judgement;

	if (addr == NULL)
		what.naming = VERDICT_PROVEN; /* as it is once the name is resolved */
	else if (inspected)
		what.naming = target->is_addr ? VERDICT_UNHEARD : VERDICT_SAID;
	if (addr != NULL)
		geo_lookup(facts->geo, addr, &place);
	if (addr != NULL && facts->route->fd >= 0 && addr_never(addr) == NULL &&
	    route_lookup(facts->route, addr) == ROUTE_HOST)
		what.route = VERDICT_ROUTE_HOST;
	judgement = verdict_judge(&what, &trace);
	explain_trace(explain, &what, &trace, &judgement, &place);
	return judgement;
}

/* The name at each address that it is leased to: the first that is allowed counts, else the first. */
static struct judgement
explain_at_leases(struct explain *explain)
{
	const struct msg_leases_done *leases = explain->facts->leases;
	uint32_t count = leases == NULL ? 0 : leases->count, own = 0;
	struct judgement best = {.verdict = VERDICT_DENIED};

	for (uint32_t i = 0; i < count && i < MSG_LEASES_MAX; i++) {
		struct judgement judgement;

		if (!name_equal(&leases->rows[i].name, &explain->target->name))
			continue;
		judgement = explain_judge(explain, &leases->rows[i].addr);
		if (own++ == 0 || (best.verdict != VERDICT_ALLOWED && judgement.verdict == VERDICT_ALLOWED))
			best = judgement;
	}
	if (own > 0)
		return best;
	best = explain_judge(explain, NULL);
	if (best.verdict != VERDICT_ALLOWED)
		return best;
	if (leases == NULL)
		explain_step(explain, "lease", "info", "not known: the gateway did not answer");
	else
		explain_step(explain, "lease", "info", "none now: the sandbox gets one when it resolves the name");
	if (snapshot_needs_place(explain->facts->policy))
		explain_step(explain, "place", "info",
		    "its addresses are checked against the rules by country and network when it is resolved");
	return best;
}

/* From the question on. */
static struct judgement
explain_by_name(struct explain *explain)
{
	const struct control_explain_facts *facts = explain->facts;
	const struct control_target *target = explain->target;
	const struct never_name *never;
	struct judgement judgement;
	char text[EXPLAIN_HINT_MAX];

	if (target->name_error != NAME_OK) {
		explain_step(explain, "name", "denied", "this %s", name_error_text(target->name_error));
		return verdict_plain(VERDICT_DENIED, REASON_DNS_DENIED, NULL);
	}
	never = name_never(&target->name);
	if (never != NULL) {
		explain_step(
		    explain, "name", "denied", "%s is refused by every policy: %s", target->name.text, never->why);
		return verdict_plain(VERDICT_DENIED, REASON_NEVER_NAME, NULL);
	}
	explain_step(explain, "name", "ok", "%s", target->name.text);
	judgement = verdict_question(facts->policy, &target->name, facts->now_us);
	explain_decision(explain, "dns", judgement.verdict, judgement.reason, judgement.rule,
	    judgement.verdict == VERDICT_ALLOWED ? "may be resolved" : "may not be resolved");
	if (judgement.verdict == VERDICT_ALLOWED)
		judgement = explain_at_leases(explain);
	if (judgement.verdict == VERDICT_ALLOWED && judgement.source != NAME_SOURCE_CIDR)
		explain_proof(explain, judgement.name.text);
	/* A refusal for want of a rule: is there one that nearly fits? */
	if (judgement.reason == REASON_NO_RULE &&
	    hint_for(facts->policy, &target->name, target->proto, target->port, facts->now_us, text)[0] != '\0')
		explain_step(explain, "hint", "info", "%s", text);
	return judgement;
}

struct judgement
control_explain(const struct control_explain_facts *facts, const struct control_target *target, json_t **ret_steps)
{
	struct explain explain = {.facts = facts, .target = target, .steps = json_array()};
	struct judgement judgement;

	if (target->is_addr)
		addr_format_port(&target->addr, target->port, explain.shown);
	else
		snprintf(explain.shown, sizeof(explain.shown), "%s:%u%s", target->name.text, target->port,
		    target->proto == IPPROTO_UDP ? "/udp" : "");
	judgement = target->is_addr ? explain_judge(&explain, &target->addr) : explain_by_name(&explain);
	*ret_steps = explain.steps;
	return judgement;
}

/* -- the target ---------------------------------------------------------------------------------------------------- */

static bool
target_port(const char *text, size_t len, uint16_t *ret_port)
{
	unsigned int port = 0;

	if (len == 0 || len > 5)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (text[i] < '0' || text[i] > '9')
			return false;
		port = port * 10 + (unsigned int)(text[i] - '0');
	}
	if (port < 1 || port > 65535)
		return false;
	*ret_port = (uint16_t)port;
	return true;
}

int
control_explain_parse_target(const char *text, struct control_target *ret_target, struct error *err)
{
	struct control_target target = {.port = CONTROL_TARGET_PORT, .proto = IPPROTO_TCP};
	size_t len = strlen(text), rest;
	const char *end;

	if (len > 4 && (strcmp(text + len - 4, "/udp") == 0 || strcmp(text + len - 4, "/tcp") == 0)) {
		target.proto = text[len - 3] == 'u' ? IPPROTO_UDP : IPPROTO_TCP;
		len -= 4;
	}
	if (len == 0)
		return error_set(err, ERROR_USAGE, "the target is empty; name a host, such as example.com:443");
	if (text[0] == '[') { /* "[v6]" or "[v6]:port" */
		end = memchr(text, ']', len);
		rest = end == NULL ? 0 : len - (size_t)(end - text) - 1;
		target.is_addr = true;
		if (end == NULL || !addr_parse(text + 1, (size_t)(end - text) - 1, &target.addr) ||
		    (rest > 0 && (end[1] != ':' || !target_port(end + 2, rest - 1, &target.port))))
			return error_set(err, ERROR_USAGE, "the target must look like [2600::1]:443");
		*ret_target = target;
		return 0;
	}
	end = memrchr(text, ':', len);
	if (end != NULL && memchr(text, ':', (size_t)(end - text)) == NULL) {
		if (!target_port(end + 1, len - (size_t)(end - text) - 1, &target.port))
			return error_set(err, ERROR_USAGE, "the port must be a number from 1 to 65535");
		len = (size_t)(end - text);
	}
	target.is_addr = addr_parse(text, len, &target.addr);
	if (!target.is_addr)
		target.name_error = name_from_user(text, len, &target.name);
	*ret_target = target;
	return 0;
}

/* -- the job ------------------------------------------------------------------------------------------------------- */

/* Answers, with the leases or (NULL) without them. */
static void
explain_end(struct control_job *job, const void *answer)
{
	const struct msg_leases_done *leases = answer;
	const struct explain_job *explain = job->data;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct control_explain_facts facts;
	struct judgement judgement;
	struct error err;
	json_t *steps;

	if (sandbox == NULL || sandbox->snapshot == NULL) {
		error_set(&err, ERROR_NOT_FOUND, "no sandbox %s with a policy in force", job->target);
		control_job_fail(job, &err);
		return;
	}
	if (leases != NULL && leases->result.code != ERROR_NONE)
		leases = NULL;
	facts = (struct control_explain_facts){.policy = sandbox->snapshot,
	    .route = &job->control->route,
	    .geo = &job->control->geo,
	    .leases = leases,
	    .now_us = clock_real_us()};
	judgement = control_explain(&facts, &explain->target, &steps);
	control_job_end(job, 200,
	    json_pack("{s:s, s:s, s:i, s:s, s:o, s:s, s:s, s:s, s:s, s:s, s:I, s:o}", "sandbox", job->target, "target",
		explain->text, "port", (int)explain->target.port, "protocol",
		explain->target.proto == IPPROTO_UDP ? "udp" : "tcp", "steps", steps, "verdict",
		verdict_text(judgement.verdict), "reason", reason_text(judgement.reason), "sentence",
		reason_sentence(judgement.reason), "rule", snapshot_rule_text(facts.policy, judgement.rule), "origin",
		snapshot_rule_origin(facts.policy, judgement.rule), "generation", (json_int_t)sandbox->generation,
		"leases", leases == NULL ? json_array() : control_show_leases(leases)));
}

void
control_explain_start(struct control_job *job)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct explain_job *explain = calloc(1, sizeof(*explain));
	json_t *target;
	const struct control_field fields[] = {{"target", JSON_STRING, true, &target}};
	struct msg_leases ask = {0};
	struct error err;

	job->data = explain;
	job->data_free = free;
	error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", job->target);
	if (sandbox == NULL || explain == NULL || control_json_fields(job->body, fields, 1, &err) < 0 ||
	    control_json_text(target, "target", explain->text, sizeof(explain->text), &err) < 0 ||
	    control_explain_parse_target(explain->text, &explain->target, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	ask.id = sandbox->id;
	if (explain->target.is_addr)
		ask.addr = explain->target.addr;
	else
		ask.name = explain->target.name;
	if (!sandbox->attached || (!explain->target.is_addr && explain->target.name_error != NAME_OK) ||
	    control_job_ask(job, MSG_LEASES, &ask, sizeof(ask), -1, explain_end, &err) < 0)
		explain_end(job, NULL);
}
