/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_show.h"

#include "gateway/control/control_config.h"
#include "gateway/control/control_metrics.h"
#include "policy/text/quantity.h"
#include "policy/compiled/terms.h"

#include <stdlib.h>
#include <string.h>

/* -- GET /v1/status ------------------------------------------------------------------------------------------------ */

static void
show_add_role(json_t *roles, const char *role, const struct msg_role_status *status)
{
	json_array_append_new(roles,
	    json_pack(
		"{s:s, s:i, s:I}", "role", role, "pid", (int)status->pid, "restarts", (json_int_t)status->restarts));
}

/* What the sandboxes add to the status, a JSON array each. */
struct show_sandboxes {
	const struct control *control;
	json_t *broken, *learning, *places;
};

static void
show_collect(struct control_sandbox *sandbox, void *context)
{
	struct show_sandboxes *found = context;
	const char *lacks;

	if (strcmp(control_sandbox_state(sandbox), "broken") == 0)
		json_array_append_new(
		    found->broken, json_pack("{s:s, s:s}", "name", sandbox->name, "error", sandbox->error));
	if (!sandbox->attached || sandbox->snapshot == NULL)
		return;
	if (snapshot_mode(sandbox->snapshot) == POLICY_MODE_LEARN)
		json_array_append_new(found->learning,
		    json_sprintf("learning: %s: what no rule allows is let through and marked", sandbox->name));
	lacks = geo_lacks(&found->control->geo, sandbox->snapshot);
	if (lacks != NULL)
		json_array_append_new(found->places,
		    json_sprintf("places: %s: connections that its rules by country or asn may match are refused: %s",
			sandbox->name, lacks));
}

/* What should be in force and is not, each with its consequence. */
static json_t *
show_missing(const struct control *control, const struct msg_status *status, const struct show_sandboxes *found)
{
	json_t *missing = json_array();
	const struct {
		bool is;
		const char *text;
	} rows[] = {
	    {status->rootless != 0, "separate users: rootless, all roles share the caller's uid"},
	    {status->host_chain == 0, "host chain: no second layer on the host refuses never-list destinations"},
	    {status->confined == 0, "seccomp: not in force in every role"},
	    {status->audit_ok == 0 || !control->recorder.writable,
		"audit: the log cannot be written, new connections are refused"},
	    {status->gateway_count == 0, "gateway: none is running, nothing leaves"},
	    {control->restores_left > 0, "restore: sandboxes are still being re-attached after a start"},
	    {json_array_size(found->broken) > 0, "sandboxes: some are broken, see \"broken\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is)
			json_array_append_new(missing, json_string(rows[i].text));
	json_array_extend(missing, found->learning);
	if (control->recorder.wal_mib > 0)
		json_array_append_new(missing,
		    json_sprintf("audit: a reader holds an old view of the log, its -wal has grown to %u MiB",
			control->recorder.wal_mib));
	json_array_extend(missing, found->places);
	return missing;
}

/* The resolvers that the gateways ask; the port unless it is 53. */
static json_t *
show_resolvers(const struct options *options)
{
	json_t *resolvers = json_array();
	char text[ADDR_PORT_TEXT_MAX];

	for (size_t i = 0; i < options->resolver_count; i++) {
		const struct options_resolver *resolver = &options->resolvers[i];

		json_array_append_new(resolvers,
		    json_string(resolver->port == 53 ? addr_format(&resolver->addr, text)
						     : addr_format_port(&resolver->addr, resolver->port, text)));
	}
	return resolvers;
}

/* {"country": {"file","type","built"} or null, "asn": likewise} */
static json_t *
show_places(const struct control *control)
{
	json_t *places = json_object();

	for (size_t i = 0; i < GEO_KIND_MAX; i++) {
		enum geo_kind kind = (enum geo_kind)i;
		char built[QUANTITY_TEXT_MAX];
		struct geo_about about;

		json_object_set_new(places, geo_kind_text(kind),
		    !geo_about(&control->geo, kind, &about)
			? json_null()
			: json_pack("{s:s?, s:s, s:s}", "file", control->options->geo_files[kind], "type", about.type,
			      "built", quantity_format_instant(about.built_us, built)));
	}
	return places;
}

static void
show_status_answer(struct control_job *job, const void *answer)
{
	const struct msg_status *status = answer;
	struct control *control = job->control;
	struct show_sandboxes found = {.control = control};
	json_t *roles;
	struct error err;

	if (control_job_result(answer, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	roles = json_array();
	show_add_role(roles, "keeper", &status->keeper);
	show_add_role(roles, "auditor", &status->auditor);
	show_add_role(roles, "control", &status->control);
	for (uint32_t i = 0; i < status->gateway_count && i < MSG_GATEWAYS_MAX; i++)
		show_add_role(roles, "gateway", &status->gateways[i]);
	found.broken = json_array();
	found.learning = json_array();
	found.places = json_array();
	control_sandbox_each(control, show_collect, &found);
	control_job_end(job, 200,
	    json_pack("{s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
		POSTERN_VERSION, "rootless", (int)status->rootless, "host_chain", (int)status->host_chain, "audit_ok",
		(int)(status->audit_ok != 0 && control->recorder.writable), "confined", (int)status->confined,
		"sandboxes", (json_int_t)control->sandbox_count, "attached", (json_int_t)status->sandboxes, "roles",
		roles, "missing", show_missing(control, status, &found), "broken", found.broken, "resolvers",
		show_resolvers(control->options), "places", show_places(control), "totals",
		control_metrics_totals(&status->totals), "log", control_metrics_log(&status->log)));
	json_decref(found.learning);
	json_decref(found.places);
}

void
control_show_status_start(struct control_job *job)
{
	struct error err;

	if (control_job_ask(job, MSG_STATUS, NULL, 0, -1, show_status_answer, &err) < 0)
		control_job_fail(job, &err);
}

/* -- GET /v1/sandboxes, GET /v1/sandboxes/NAME --------------------------------------------------------------------- */

static void
show_collect_summary(struct control_sandbox *sandbox, void *context)
{
	json_array_append_new(context, control_config_summary(sandbox));
}

void
control_show_list_start(struct control_job *job)
{
	json_t *list = json_array();

	control_sandbox_each(job->control, show_collect_summary, list);
	control_job_end(job, 200, json_pack("{s:o}", "sandboxes", list));
}

/* Adds "limits" with each kind that is limited, unless none is. */
static void
show_set_limits(json_t *object, const struct limits *limits)
{
	json_t *kinds = json_object();

	for (unsigned int kind = 0; kind < LIMIT_KIND_MAX; kind++)
		if (limits->of[kind].hard != 0)
			json_object_set_new(kinds, limits_kind_text(kind),
			    json_pack("{s:I, s:I}", "soft", (json_int_t)limits->of[kind].soft, "hard",
				(json_int_t)limits->of[kind].hard));
	if (json_object_size(kinds) > 0)
		json_object_set(object, "limits", kinds);
	json_decref(kinds);
}

/* Settings in force for the sandbox as a whole, and where they stand. */
static void
show_set_settings(json_t *object, const struct snapshot *snapshot)
{
	json_t *origins = json_object();

	json_object_set_new(
	    object, "mode", json_string(snapshot_mode(snapshot) == POLICY_MODE_LEARN ? "learn" : "enforce"));
	json_object_set_new(
	    object, "ech", json_string(snapshot_ech(snapshot) == POLICY_ECH_DENY ? "deny" : "grease-ok"));
	json_object_set_new(object, "bounded", json_boolean(snapshot_is_bounded(snapshot)));
	show_set_limits(object, snapshot_limits(snapshot));
	for (unsigned int i = 0; i < POLICY_SETTING_MAX; i++)
		control_json_set_text(origins, terms_setting_text((enum policy_setting)i),
		    snapshot_setting_origin(snapshot, (enum policy_setting)i));
	json_object_set_new(object, "origins", origins);
}

static json_t *
show_rules(const struct control_sandbox *sandbox)
{
	const struct snapshot *snapshot = sandbox->snapshot;
	json_t *rules = json_array();
	size_t count = snapshot == NULL ? 0 : snapshot_rule_count(snapshot);

	for (uint32_t i = 0; i < count; i++) {
		json_t *rule = json_pack(
		    "{s:s, s:s}", "rule", snapshot_rule_text(snapshot, i), "origin", snapshot_rule_origin(snapshot, i));

		if (snapshot_rule_expires_us(snapshot, i) != 0)
			control_json_set_time(rule, "expires", snapshot_rule_expires_us(snapshot, i));
		if (snapshot_rule_uses(snapshot, i) != 0) {
			json_object_set_new(rule, "uses", json_integer(snapshot_rule_uses(snapshot, i)));
			json_object_set_new(rule, "used", json_integer((json_int_t)control_sandbox_uses(sandbox, i)));
		}
		if (snapshot_rule_is_organisations(snapshot, i))
			json_object_set_new(rule, "organisation", json_true());
		if (snapshot_rule_is_bound(snapshot, i))
			json_object_set_new(rule, "bound", json_true());
		show_set_limits(rule, snapshot_rule_limits(snapshot, i));
		json_array_append_new(rules, rule);
	}
	return rules;
}

json_t *
control_show_sandbox(const struct control_sandbox *sandbox)
{
	json_t *object = control_config_summary(sandbox);
	char *edits;

	if (object == NULL || sandbox->id == 0)
		return object;
	control_json_set_mac(object, "gateway_mac", sandbox->router_mac);
	control_json_set_addr(object, "dns", &sandbox->config.router4);
	control_json_set_addr(object, "dns6", &sandbox->config.router6);
	json_object_set_new(object, "rules", show_rules(sandbox));
	json_object_set_new(
	    object, "policy", sandbox->policy_text == NULL ? json_null() : json_string(sandbox->policy_text));
	edits = sandbox->edits.rule_count == 0 ? NULL : policy_format(&sandbox->edits);
	json_object_set_new(object, "edits", edits == NULL ? json_null() : json_string(edits));
	free(edits);
	if (sandbox->snapshot != NULL)
		show_set_settings(object, sandbox->snapshot);
	return object;
}

json_t *
control_show_leases(const struct msg_leases_done *leases)
{
	json_t *rows = json_array();

	for (uint32_t i = 0; i < leases->count && i < MSG_LEASES_MAX; i++) {
		char text[ADDR_TEXT_MAX];

		json_array_append_new(rows,
		    json_pack("{s:s%, s:s, s:I}", "name", leases->rows[i].name.text, (size_t)leases->rows[i].name.len,
			"address", addr_format(&leases->rows[i].addr, text), "left_s",
			(json_int_t)leases->rows[i].left_s));
	}
	return rows;
}

/* The sandbox may be detached by now. Its leases are shown when the gateway answered. */
static void
show_answer(struct control_job *job, const void *answer)
{
	const struct msg_leases_done *leases = answer;
	struct error err;
	struct control_sandbox *sandbox = control_sandbox_need(job->control, job->target, &err);
	json_t *object;

	if (sandbox == NULL) {
		control_job_fail(job, &err);
		return;
	}
	object = control_show_sandbox(sandbox);
	if (leases != NULL && leases->result.code == ERROR_NONE) {
		json_object_set_new(object, "flows", json_integer(leases->flows));
		json_object_set_new(object, "leases", control_show_leases(leases));
	}
	control_job_end(job, 200, object);
}

void
control_show_start(struct control_job *job)
{
	struct error err;
	struct control_sandbox *sandbox = control_sandbox_need(job->control, job->target, &err);
	struct msg_leases ask = {0};

	if (sandbox == NULL) {
		control_job_fail(job, &err);
		return;
	}
	ask.id = sandbox->id;
	if (!sandbox->attached || control_job_ask(job, MSG_LEASES, &ask, sizeof(ask), -1, show_answer, &err) < 0)
		control_job_end(job, 200, control_show_sandbox(sandbox));
}
