/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Work that waits for the keeper. */
#ifndef POSTERN_GATEWAY_CONTROL_JOB_H
#define POSTERN_GATEWAY_CONTROL_JOB_H

#include "gateway/control/control_http.h"
#include "gateway/shared/msg.h"

/* The keeper must answer within this. */
#define CONTROL_JOB_ANSWER_MS 30000

struct control_job {
	TAILQ_ENTRY(control_job) entry;
	struct control *control;
	struct control_request *request; /* NULL: no request waits (restore, resync, shutdown) */
	char name[TAP_NAME_MAX];         /* the sandbox that it changes; "": changes none, runs at once */
	char target[TAP_NAME_MAX];       /* the path's sandbox, for jobs that change nothing */
	struct control_peer peer;        /* CONTROL_PEER_NOBODY without a request; name and command if it changes */
	void (*start)(struct control_job *job);
	/* The keeper's answer, of the awaited type and size; NULL when none came in time. Must end the job or ask
	 * again. */
	void (*handler)(struct control_job *job, const void *answer);
	uint64_t tag; /* awaited; 0: none */
	uint16_t answer_type;
	struct loop_timer timer;
	json_t *body; /* request's; a reference is held */
	void *data;   /* the operation's own, released by data_free */
	void (*data_free)(void *data);
};

/* Start now, or after the jobs before it on the same sandbox. request and body may be NULL. Without memory the request
 * is answered and nothing else happens. */
void control_job_submit(struct control *control, struct control_request *request, const char *name, json_t *body,
    void (*start)(struct control_job *job));
/* Send to the keeper and wait for the answer. fd stays the caller's (-1: none). 0, or -1 and err. */
int control_job_ask(struct control_job *job, uint16_t type, const void *body, uint32_t size, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err);
/* Answer (body stolen), or answer with an error (logged without a request); then the job is gone. */
void control_job_end(struct control_job *job, unsigned int status, json_t *body);
void control_job_fail(struct control_job *job, const struct error *err);
/* Turn an answer, which begins with its struct msg_result, into 0, or -1 and err; NULL is the timeout. */
int control_job_result(const void *answer, struct error *err);
/* An answer came in. False when it does not have the promised type and size. Answers that no job awaits are ignored. */
bool control_job_deliver(struct control *control, const struct ipc_message *message);
/* No job holds a request from now on. */
void control_job_forget_requests(struct control *control);

#endif
