/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The API under /v1, and /metrics: which path leads where, and the answers that change nothing. configs/openapi.yaml
 * describes it. */
#include "gateway/control/control.h"

#include "gateway/control/control_json.h"
#include "gateway/control/control_metrics.h"

#include <stdio.h>
#include <string.h>

static void api_status_handler(struct control_request *request, json_t *body);
static void api_list_handler(struct control_request *request, json_t *body);
static void api_show_handler(struct control_request *request, json_t *body);

static const struct control_route api_routes[] = {
    {"GET", "/metrics", 0, control_metrics_handler},
    {"GET", "/v1/status", 0, api_status_handler},
    {"GET", "/v1/sandboxes", 0, api_list_handler},
    {"POST", "/v1/sandboxes", CONTROL_POLICY_BODY_MAX, control_attach_handler},
    {"GET", "/v1/sandboxes/*", 0, api_show_handler},
    {"DELETE", "/v1/sandboxes/*", 0, control_detach_handler},
    {"POST", "/v1/sandboxes/*/rules", CONTROL_BODY_MAX, control_rules_handler},
    {"DELETE", "/v1/sandboxes/*/rules", CONTROL_BODY_MAX, control_revoke_handler},
    {"PUT", "/v1/sandboxes/*/policy", CONTROL_POLICY_BODY_MAX, control_policy_handler},
    {"POST", "/v1/sandboxes/*/marks", CONTROL_BODY_MAX, control_mark_handler},
    {"POST", "/v1/sandboxes/*/test", CONTROL_BODY_MAX, control_test_handler},
};
#define API_ROUTES (sizeof(api_routes) / sizeof(api_routes[0]))

/* Does the path fit, and what stands in the place of "*"? */
static bool
api_path_fits(const char *pattern, const char *path, char ret_name[TAP_NAME_MAX])
{
	size_t before = strcspn(pattern, "*"), len;

	ret_name[0] = '\0';
	if (pattern[before] == '\0')
		return strcmp(pattern, path) == 0;
	if (strncmp(pattern, path, before) != 0)
		return false;
	len = strcspn(path + before, "/");
	if (len == 0 || len >= TAP_NAME_MAX || strcmp(pattern + before + 1, path + before + len) != 0)
		return false;
	memcpy(ret_name, path + before, len);
	ret_name[len] = '\0';
	return true;
}

/* The methods that a path has, as the Allow header names them. A path has at most two. */
static const char *
api_allow(const char *pattern)
{
	static const struct {
		const char *pattern, *allow;
	} allows[] = {
	    {"/metrics", "GET"},
	    {"/v1/status", "GET"},
	    {"/v1/sandboxes", "GET, POST"},
	    {"/v1/sandboxes/*", "GET, DELETE"},
	    {"/v1/sandboxes/*/rules", "POST, DELETE"},
	    {"/v1/sandboxes/*/policy", "PUT"},
	    {"/v1/sandboxes/*/marks", "POST"},
	    {"/v1/sandboxes/*/test", "POST"},
	};

	for (size_t i = 0; i < sizeof(allows) / sizeof(allows[0]); i++)
		if (strcmp(allows[i].pattern, pattern) == 0)
			return allows[i].allow;
	return NULL;
}

const struct control_route *
control_route_find(struct control_request *request, const char *method, const char *path)
{
	struct error err = {0};

	for (size_t i = 0; i < API_ROUTES; i++) {
		if (!api_path_fits(api_routes[i].path, path, request->name))
			continue;
		if (strcmp(api_routes[i].method, method) == 0)
			return &api_routes[i];
		request->allow = api_allow(api_routes[i].path);
	}
	if (request->allow != NULL)
		error_set(&err, ERROR_USAGE, "this path takes %s only", request->allow);
	else
		error_set(&err, ERROR_NOT_FOUND, "no such path; see /v1/status and /v1/sandboxes");
	control_answer_error(request, &err);
	if (request->allow != NULL)
		request->status = 405;
	return NULL;
}

void
control_dispatch(struct control_request *request)
{
	struct error err = {0};
	json_t *body = NULL;

	if (request->route->body_max > 0) {
		body = control_json_parse(request->body == NULL ? "" : request->body, request->body_len, &err);
		if (body == NULL) {
			control_answer_error(request, &err);
			return;
		}
	}
	request->route->handler(request, body);
	json_decref(body);
}

/* -- GET /v1/status ------------------------------------------------------------------------------------------------ */

static void
api_collect_broken(struct control_sandbox *sandbox, void *context)
{
	if (strcmp(control_sandbox_state(sandbox), "broken") == 0)
		json_array_append_new(context, json_pack("{s:s, s:s}", "name", sandbox->name, "error", sandbox->error));
}

static void
api_add_role(json_t *roles, const char *role, const struct msg_role_status *status)
{
	json_array_append_new(roles,
	    json_pack(
		"{s:s, s:i, s:I}", "role", role, "pid", (int)status->pid, "restarts", (json_int_t)status->restarts));
}

/* What should be in force and is not, each with its consequence. */
static json_t *
api_missing(const struct control *control, const struct msg_status *status, size_t broken)
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
	    {broken > 0, "sandboxes: some are broken, see \"broken\""},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].is)
			json_array_append_new(missing, json_string(rows[i].text));
	return missing;
}

/* Said as loudly as what is missing: it is the policy that is. */
static void
api_collect_learning(struct control_sandbox *sandbox, void *context)
{
	json_t *missing = context;

	if (sandbox->attached && sandbox->snapshot != NULL && snapshot_mode(sandbox->snapshot) == POLICY_MODE_LEARN)
		json_array_append_new(missing,
		    json_sprintf("learning: %s: what no rule allows is let through and marked", sandbox->name));
}

/* Where the gateways ask. */
static json_t *
api_resolvers(const struct options *options)
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

static void
api_status_answer(struct control_job *job, const void *answer)
{
	const struct msg_status *status = answer;
	struct control *control = job->control;
	json_t *roles = json_array(), *broken = json_array(), *missing;
	struct error err;

	if (control_job_result(status == NULL ? NULL : &status->result, &err) < 0) {
		json_decref(roles);
		json_decref(broken);
		control_job_fail(job, &err);
		return;
	}
	api_add_role(roles, "keeper", &status->keeper);
	api_add_role(roles, "auditor", &status->auditor);
	api_add_role(roles, "control", &status->control);
	for (uint32_t i = 0; i < status->gateway_count && i < MSG_GATEWAYS_MAX; i++)
		api_add_role(roles, "gateway", &status->gateways[i]);
	control_sandbox_each(control, api_collect_broken, broken);
	missing = api_missing(control, status, json_array_size(broken));
	control_sandbox_each(control, api_collect_learning, missing);
	if (control->recorder.wal_mib > 0)
		json_array_append_new(missing,
		    json_sprintf("audit: a reader holds an old view of the log, its -wal has grown to %u MiB",
			control->recorder.wal_mib));
	control_places_missing(control, missing);
	control_job_end(job, 200,
	    json_pack("{s:s, s:b, s:b, s:b, s:b, s:I, s:I, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "version",
		POSTERN_VERSION, "rootless", (int)status->rootless, "host_chain", (int)status->host_chain, "audit_ok",
		(int)(status->audit_ok != 0 && control->recorder.writable), "confined", (int)status->confined,
		"sandboxes", (json_int_t)control->sandbox_count, "attached", (json_int_t)status->sandboxes, "roles",
		roles, "missing", missing, "broken", broken, "resolvers", api_resolvers(control->options), "places",
		control_places_json(control), "totals", control_metrics_totals(&status->totals), "log",
		control_metrics_log(&status->log)));
}

static void
api_status_start(struct control_job *job)
{
	struct error err;

	if (control_job_ask(job, MSG_STATUS, NULL, 0, -1, api_status_answer, &err) < 0)
		control_job_fail(job, &err);
}

static void
api_status_handler(struct control_request *request, json_t *body)
{
	control_job_submit(request->control, request, "", body, api_status_start);
}

/* -- GET /v1/sandboxes, GET /v1/sandboxes/NAME --------------------------------------------------------------------- */

static void
api_collect_summary(struct control_sandbox *sandbox, void *context)
{
	json_array_append_new(context, control_sandbox_summary(sandbox));
}

static void
api_list_handler(struct control_request *request, json_t *body)
{
	json_t *list = json_array();

	(void)body;
	control_sandbox_each(request->control, api_collect_summary, list);
	control_answer(request, 200, json_pack("{s:o}", "sandboxes", list));
}

static void
api_not_found(struct control_job *job)
{
	struct error err;

	error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", job->target);
	control_job_fail(job, &err);
}

json_t *
control_leases_json(const struct msg_leases_done *leases)
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

/* The sandbox may have gone while the keeper was asked; its leases are shown when they are known. */
static void
api_show_answer(struct control_job *job, const void *answer)
{
	const struct msg_leases_done *leases = answer;
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	json_t *object;

	if (sandbox == NULL) {
		api_not_found(job);
		return;
	}
	object = control_sandbox_full(sandbox);
	if (leases != NULL && leases->result.code == ERROR_NONE) {
		json_object_set_new(object, "flows", json_integer(leases->flows));
		json_object_set_new(object, "leases", control_leases_json(leases));
	}
	control_job_end(job, 200, object);
}

static void
api_show_start(struct control_job *job)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct msg_leases ask = {0};
	struct error err;

	if (sandbox == NULL) {
		api_not_found(job);
		return;
	}
	ask.id = sandbox->id;
	if (!sandbox->attached || control_job_ask(job, MSG_LEASES, &ask, sizeof(ask), -1, api_show_answer, &err) < 0)
		control_job_end(job, 200, control_sandbox_full(sandbox));
}

static void
api_show_handler(struct control_request *request, json_t *body)
{
	control_job_submit(request->control, request, "", body, api_show_start);
}
