/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The agent's own timeline: a step in its own words becomes an event of its sandbox, and is answered once it is
 * durable.
 *
 * An agent's runtime does this many times: nothing is asked of the keeper, nothing goes to the state folder, and marks
 * wait neither for each other nor for changes of the policy; those that come together are committed together. Their
 * order in the log is the order in which they came. */
#include "gateway/control/control_mark.h"

#include "base/clock.h"
#include "gateway/control/control_json.h"
#include "gateway/control/control_record.h"
#include "gateway/control/control_sandbox.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mark {
	struct recorder_wait wait;
	struct control_job *job;
	uint64_t id;
	int64_t ts_us;
};

static void
mark_free(void *data)
{
	struct mark *mark = data;

	recorder_cancel(&mark->job->control->recorder, &mark->wait);
	mark->job->control->marks_waiting--;
	free(mark);
}

/* A line of text: it is shown among others. JSON text is UTF-8 already; C0, DEL and C1 (U+0080 to U+009F, in UTF-8 c2
 * 80 to c2 9f) are refused, all else that a terminal might misread is escaped when shown. */
static int
mark_check_text(const json_t *value, struct error *err)
{
	const unsigned char *text = (const unsigned char *)json_string_value(value);
	size_t len = json_string_length(value);

	if (len == 0 || len > CONTROL_MARK_MAX)
		return error_set(err, ERROR_USAGE, "\"text\" must have 1 to %d bytes", CONTROL_MARK_MAX);
	for (size_t i = 0; i < len; i++)
		if (text[i] < 0x20 || text[i] == 0x7f || (text[i] == 0xc2 && i + 1 < len && text[i + 1] < 0xa0))
			return error_set(err, ERROR_USAGE,
			    "\"text\" contains a control character; a mark is one line of plain text");
	return 0;
}

static void
mark_answer(struct recorder_wait *wait)
{
	struct mark *mark = loop_owner(wait, struct mark, wait);
	json_t *answer =
	    json_pack("{s:s, s:o}", "sandbox", mark->job->target, "id", json_sprintf("%016" PRIx64, mark->id));

	control_json_set_time(answer, "ts", mark->ts_us);
	control_job_end(mark->job, 201, answer);
}

/* answer is always NULL: only the job's timer calls this. */
static void
mark_timeout(struct control_job *job, const void *answer)
{
	struct error err;

	(void)answer;
	error_set(&err, ERROR_SYSTEM,
	    "the mark is not on disk after %d s; it will be when the log can be written again", CONTROL_MARK_MS / 1000);
	control_job_fail(job, &err);
}

static int
mark_send(struct control_job *job, struct mark *mark, struct control_sandbox *sandbox, struct error *err)
{
	json_t *text;
	const struct control_field fields[] = {{"text", JSON_STRING, true, &text}};
	int64_t now_ms = clock_mono_ms();

	if (control_json_fields(job->body, fields, 1, err) < 0 || mark_check_text(text, err) < 0)
		return -1;
	if (!recorder_ready(&job->control->recorder))
		return error_set(err, ERROR_SYSTEM, "the log cannot be written; the mark was not taken");
	if (job->control->marks_waiting > CONTROL_MARKS_WAITING_MAX)
		return error_set(err, ERROR_LIMIT, "%d marks wait for the disk already", CONTROL_MARKS_WAITING_MAX);
	if (sandbox->marks_since_ms == 0 || now_ms - sandbox->marks_since_ms >= 1000) {
		sandbox->marks_since_ms = now_ms;
		sandbox->marks = 0;
	}
	if (sandbox->marks >= CONTROL_MARKS_PER_S)
		return error_set(
		    err, ERROR_LIMIT, "%s: more than %d marks in a second", sandbox->name, CONTROL_MARKS_PER_S);
	sandbox->marks++;
	mark->wait.handler = mark_answer;
	if (loop_timer_set(job->control->loop, &job->timer, CONTROL_MARK_MS) < 0 ||
	    control_record_waited(job->control, EVENT_MARK, sandbox->id, job->peer.uid,
		json_pack("{s:O}", "text", text), &mark->wait, &mark->id, &mark->ts_us) < 0)
		return error_set(err, ERROR_SYSTEM, "out of memory");
	return 0;
}

void
control_mark_start(struct control_job *job)
{
	struct control_sandbox *sandbox = control_sandbox_find(job->control, job->target);
	struct mark *mark = calloc(1, sizeof(*mark));
	struct error err;

	error_set(&err, ERROR_SYSTEM, "out of memory");
	if (mark != NULL) {
		mark->job = job;
		job->control->marks_waiting++;
		job->data = mark;
		job->data_free = mark_free;
		job->handler = mark_timeout;
	}
	if (sandbox == NULL || sandbox->id == 0)
		error_set(&err, ERROR_NOT_FOUND, "no sandbox %s", job->target);
	else if (mark != NULL && mark_send(job, mark, sandbox, &err) == 0)
		return;
	control_job_fail(job, &err);
}
