/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The control role: its routes, its start, its channel to the keeper, its end. See control_role.h for how it works. */
#include "gateway/control/control.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/control/control_attach.h"
#include "gateway/control/control_compile.h"
#include "gateway/control/control_explain.h"
#include "gateway/control/control_json.h"
#include "gateway/control/control_mark.h"
#include "gateway/control/control_metrics.h"
#include "gateway/control/control_policy.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_restore.h"
#include "gateway/control/control_show.h"
#include "gateway/control/control_state.h"
#include "gateway/control/control_usage.h"
#include "gateway/shared/role.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

/* While stopping: how often the recorder is asked whether it is done. */
#define CONTROL_STOP_STEP_MS 20
/* On shutdown, how long records may take to become durable. */
#define CONTROL_STOP_MS 2000
/* Requests wait for the restore after a start, but no longer than this: then they see sandboxes "restoring". */
#define CONTROL_RESTORE_HOLD_MS 5000
/* Request bodies, and those that carry a policy's text (its quotes and line ends are escaped in JSON). */
#define CONTROL_BODY_MAX (1u << 20)
#define CONTROL_POLICY_BODY_MAX (POLICY_FILE_MAX + (4u << 20))

/* The API; configs/openapi.yaml describes it. */
static const struct control_route control_routes[] = {
    {"GET", "/metrics", 0, false, control_metrics_start},
    {"GET", "/v1/status", 0, false, control_show_status_start},
    {"GET", "/v1/sandboxes", 0, false, control_show_list_start},
    {"POST", "/v1/sandboxes", CONTROL_POLICY_BODY_MAX, true, control_attach_start},
    {"GET", "/v1/sandboxes/*", 0, false, control_show_start},
    {"DELETE", "/v1/sandboxes/*", 0, true, control_attach_detach_start},
    {"POST", "/v1/sandboxes/*/rules", CONTROL_BODY_MAX, true, control_policy_edit_start},
    {"DELETE", "/v1/sandboxes/*/rules", CONTROL_BODY_MAX, true, control_policy_revoke_start},
    {"PUT", "/v1/sandboxes/*/policy", CONTROL_POLICY_BODY_MAX, true, control_policy_replace_start},
    {"POST", "/v1/sandboxes/*/marks", CONTROL_BODY_MAX, false, control_mark_start},
    {"POST", "/v1/sandboxes/*/test", CONTROL_BODY_MAX, false, control_explain_start},
    {NULL, NULL, 0, false, NULL},
};

/* Starts the job of a complete request. A request that names its sandbox in the body is queued by that name; the job
 * checks the rest of the body. */
static void
control_dispatch(struct control_request *request)
{
	const struct control_route *route = request->route;
	const char *name = request->name;
	struct error err = {0};
	json_t *body = NULL;

	if (route->body_max > 0)
		body = control_json_parse(request->body == NULL ? "" : request->body, request->body_len, &err);
	if (body != NULL && route->changes && name[0] == '\0') {
		name = json_string_value(json_object_get(body, "name"));
		if (name == NULL || name[0] == '\0' || strlen(name) >= TAP_NAME_MAX)
			error_set(&err, ERROR_USAGE, "\"name\" must be a string of 1 to %d bytes", TAP_NAME_MAX - 1);
	}
	if (err.code != ERROR_NONE)
		control_http_answer_error(request, &err);
	else
		control_job_submit(request->control, request, route->changes ? name : "", body, route->start);
	json_decref(body);
}

static void
control_serve(struct control *control)
{
	struct error err;

	loop_timer_stop(control->loop, &control->serve_timer);
	if (control->http == NULL && !control->stopping &&
	    control_http_start(control, control_routes, control_dispatch, &err) < 0)
		log_fatalx("%s", err.text);
}

static void
control_serve_handler(struct loop_timer *timer)
{
	control_serve(loop_owner(timer, struct control, serve_timer));
}

/* Work begins when both the listener and a way to record events are there. */
static void
control_begin(struct control *control)
{
	struct error err;

	if (control->restored || control->listen_fd < 0 || !control->auditor_known || control->stopping)
		return;
	control->restored = true;
	control->serve_timer.handler = control_serve_handler;
	if (loop_timer_set(control->loop, &control->serve_timer, CONTROL_RESTORE_HOLD_MS) < 0)
		log_fatalx("out of memory");
	if (control_restore(control, control_serve, &err) < 0)
		log_fatalx("%s", err.text);
}

static void
control_introduce(struct control_sandbox *sandbox, void *context)
{
	if (sandbox->attached)
		control_record_sandbox(context, sandbox, false);
}

/* The log may be a new one, in place of one that was lost: it must know the sandboxes that its rows are about. A log
 * that knows them stays as it is. */
static void
control_resumed_handler(struct recorder *recorder)
{
	struct control *control = loop_owner(recorder, struct control, recorder);

	control_sandbox_each(control, control_introduce, control);
}

static bool
control_channel(struct control *control, struct ipc_message *message)
{
	const struct msg_channel *channel = message->body;
	int rc;

	if (channel->role == MSG_ROLE_AUDITOR) {
		rc = recorder_connect(&control->recorder, message->fds[0], channel->epoch);
		message->fds[0] = -1;
		if (rc < 0)
			log_fatalx("channel to the auditor: %s", strerror(-rc));
		control->auditor_known = true;
		control_resumed_handler(&control->recorder);
	} else if (channel->role == MSG_ROLE_CONTROL && control->listen_fd < 0 && control->http == NULL) {
		control->listen_fd = message->fds[0];
		message->fds[0] = -1;
	} else {
		return false;
	}
	control_begin(control);
	return true;
}

static void
control_stop_step(struct loop_timer *timer)
{
	struct control *control = loop_owner(timer, struct control, stop_timer);

	if (control->recorder.queue_len == 0 || clock_mono_ms() >= control->stop_deadline_ms)
		loop_stop(control->loop);
	else
		loop_timer_set(control->loop, timer, CONTROL_STOP_STEP_MS);
}

/* Unfinished changes stay on disk as they are; the next start settles them. */
static bool
control_shutdown(struct control *control, struct ipc_message *message)
{
	(void)message;
	if (control->stopping)
		return true;
	control->stopping = true;
	control->stop_deadline_ms = clock_mono_ms() + CONTROL_STOP_MS;
	control_usage_flush(control);
	control_job_forget_requests(control);
	control_http_stop(control);
	control->stop_timer.handler = control_stop_step;
	control_stop_step(&control->stop_timer);
	return true;
}

static bool
control_message_answer(struct control *control, struct ipc_message *message)
{
	return control->stopping || control_job_deliver(control, message);
}

static bool
control_message_handler(struct ipc *ipc, struct ipc_message *message)
{
	static bool (*const handlers[MSG_TYPE_MAX])(struct control * control, struct ipc_message * message) = {
	    [MSG_CHANNEL] = control_channel,
	    [MSG_SHUTDOWN] = control_shutdown,
	    [MSG_USAGE] = control_usage_take,
	    [MSG_ATTACHED] = control_message_answer,
	    [MSG_POLICY_DONE] = control_message_answer,
	    [MSG_STATUS_DONE] = control_message_answer,
	    [MSG_LEASES_DONE] = control_message_answer,
	    [MSG_RESULT] = control_message_answer,
	};

	return handlers[message->header.type] != NULL &&
	    handlers[message->header.type](loop_owner(ipc, struct control, keeper), message);
}

static void
control_broken_handler(struct ipc *ipc, const char *why)
{
	struct control *control = loop_owner(ipc, struct control, keeper);

	if (control->stopping)
		loop_stop(control->loop);
	else
		log_fatalx("channel to the keeper: %s", why);
}

int
control_run(const struct role *role, const struct options *options)
{
	static struct control control; /* one a process; large */
	struct msg_ready ready = {0};
	struct error err;
	int rc;

	log_init("control");
	TAILQ_INIT(&control.running);
	TAILQ_INIT(&control.waiting);
	control.options = options;
	control.listen_fd = control.http_source.fd = -1;
	control.last_tag = options->epoch << 32; /* no tag is one of the role before this one */
	control.loop = loop_new();
	if (control.loop == NULL)
		log_fatal("event loop");
	if (route_open(&control.route) < 0)
		log_warnx("no route socket: a test does not know the host's own addresses");
	if (options_open_geo(options, &control.geo, &err) < 0)
		log_fatalx("%s", err.text);
	for (size_t kind = 0; kind < GEO_KIND_MAX; kind++)
		(void)geo_about(&control.geo, (enum geo_kind)kind, &ready.databases[kind]);
	recorder_init(&control.recorder, control.loop, options->epoch);
	control.recorder.resumed_handler = control_resumed_handler;
	role_confine(role, options);
	if (control_state_open(options->state_dir, &control.state_fd, &err) < 0)
		log_fatalx("%s", err.text);
	if (control_compile_setup(&control, &err) < 0)
		log_fatalx("%s", err.text);
	confine_syscalls(role->confinement.syscalls);
	ipc_init(&control.keeper, MSG_ROLE_CONTROL, MSG_ROLE_KEEPER, control_message_handler, control_broken_handler);
	rc = ipc_open(&control.keeper, control.loop, options->role_fd);
	if (rc == 0)
		rc = ipc_send(&control.keeper, MSG_READY, 0, &ready, sizeof(ready), NULL, 0);
	if (rc == 0)
		rc = loop_run(control.loop);
	if (rc < 0)
		log_fatalx("event loop: %s", strerror(-rc));
	recorder_free(&control.recorder);
	ipc_close(&control.keeper);
	return 0;
}
