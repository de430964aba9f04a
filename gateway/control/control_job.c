/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_job.h"

#include "base/log.h"

#include <assert.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Every answer can be read as its result. */
static_assert(offsetof(struct msg_attached, result) == 0 && offsetof(struct msg_policy_done, result) == 0 &&
	offsetof(struct msg_status, result) == 0 && offsetof(struct msg_leases_done, result) == 0,
    "an answer begins with its result");

/* The first job of a list that changes this sandbox; NULL: none does. */
static struct control_job *
job_of(const struct control_jobs *jobs, const char *name)
{
	struct control_job *job;

	TAILQ_FOREACH(job, jobs, entry)
	if (name[0] != '\0' && strcmp(job->name, name) == 0)
		break;
	return job;
}

static void job_timeout_handler(struct loop_timer *timer);

void
control_job_submit(struct control *control, struct control_request *request, const char *name, json_t *body,
    void (*start)(struct control_job *job))
{
	struct control_job *job = calloc(1, sizeof(*job));
	struct error err = {0};

	if (job == NULL) {
		error_set(&err, ERROR_SYSTEM, "out of memory");
		if (request != NULL)
			control_http_answer_error(request, &err);
		return;
	}
	job->control = control;
	job->request = request;
	job->peer = request == NULL ? CONTROL_PEER_NOBODY : request->peer;
	if (name[0] != '\0')
		control_http_peer_look(&job->peer);
	job->start = start;
	job->body = json_incref(body);
	job->timer.handler = job_timeout_handler;
	snprintf(job->name, sizeof(job->name), "%s", name);
	if (request != NULL)
		memcpy(job->target, request->name, sizeof(job->target));
	if (job_of(&control->running, name) != NULL) {
		TAILQ_INSERT_TAIL(&control->waiting, job, entry);
		return;
	}
	TAILQ_INSERT_TAIL(&control->running, job, entry);
	start(job);
}

int
control_job_ask(struct control_job *job, uint16_t type, const void *body, uint32_t size, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err)
{
	struct control *control = job->control;
	int rc = loop_timer_set(control->loop, &job->timer, CONTROL_JOB_ANSWER_MS);

	if (rc == 0)
		rc = ipc_send(&control->keeper, type, ++control->last_tag, body, size, &fd, fd < 0 ? 0 : 1);
	if (rc < 0) {
		loop_timer_stop(control->loop, &job->timer);
		error_sys(err, -rc, "message to the keeper");
		err->code = ERROR_SYSTEM;
		return -1;
	}
	job->tag = control->last_tag;
	job->answer_type = msg_answer_type(type);
	job->handler = handler;
	return 0;
}

static void
job_timeout_handler(struct loop_timer *timer)
{
	struct control_job *job = loop_owner(timer, struct control_job, timer);

	job->tag = 0;
	job->handler(job, NULL);
}

bool
control_job_deliver(struct control *control, const struct ipc_message *message)
{
	struct control_job *job;

	TAILQ_FOREACH(job, &control->running, entry)
	if (job->tag != 0 && job->tag == message->header.tag)
		break;
	if (job == NULL)
		return true;
	if (message->header.type != job->answer_type)
		return false;
	loop_timer_stop(control->loop, &job->timer);
	job->tag = 0;
	job->handler(job, message->body);
	return true;
}

int
control_job_result(const void *answer, struct error *err)
{
	const struct msg_result *result = answer;

	if (result == NULL)
		return error_set(
		    err, ERROR_SYSTEM, "the keeper did not answer within %d s", CONTROL_JOB_ANSWER_MS / 1000);
	if (result->code == ERROR_NONE)
		return 0;
	return error_set(err, result->code < ERROR_CODE_MAX ? (enum error_code)result->code : ERROR_CORRUPT, "%.*s",
	    ERROR_TEXT_MAX - 1, result->text);
}

/* Frees the job, then lets the next change of the same sandbox begin. */
static void
job_finish(struct control_job *job)
{
	struct control *control = job->control;
	struct control_job *next = job_of(&control->waiting, job->name);

	loop_timer_stop(control->loop, &job->timer);
	TAILQ_REMOVE(&control->running, job, entry);
	if (job->data_free != NULL)
		job->data_free(job->data);
	json_decref(job->body);
	free(job);
	if (next == NULL)
		return;
	TAILQ_REMOVE(&control->waiting, next, entry);
	TAILQ_INSERT_TAIL(&control->running, next, entry);
	next->start(next);
}

void
control_job_end(struct control_job *job, unsigned int status, json_t *body)
{
	if (job->request != NULL)
		control_http_answer(job->request, status, body);
	else
		json_decref(body);
	job_finish(job);
}

void
control_job_fail(struct control_job *job, const struct error *err)
{
	if (job->request != NULL)
		control_http_answer_error(job->request, err);
	else
		log_warnx("%s%s%s", job->name, job->name[0] == '\0' ? "" : ": ", err->text);
	job_finish(job);
}

void
control_job_forget_requests(struct control *control)
{
	struct control_job *job;

	TAILQ_FOREACH(job, &control->running, entry)
	job->request = NULL;
	TAILQ_FOREACH(job, &control->waiting, entry)
	job->request = NULL;
}
