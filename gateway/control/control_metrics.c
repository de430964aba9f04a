/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. Nothing is counted here. The keeper's answer to MSG_STATUS brings what gateways and auditor told
 * it; sandboxes and events are control's own. No series names a sandbox or a host: their number stays the same however
 * many sandboxes there are, and nothing that a guest chose gets into the text. */
#include "gateway/control/control_metrics.h"

#include "gateway/control/control_sandbox.h"
#include "policy/text/quantity.h"
#include "policy/verdict.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text under construction, and the metric whose samples come next. */
struct metrics {
	FILE *out;
	const char *name;
};

/* As control_sandbox_state says them. */
static const char *const metrics_states[] = {[CONTROL_METRICS_ATTACHED] = "attached",
    [CONTROL_METRICS_RESTORING] = "restoring",
    [CONTROL_METRICS_BROKEN] = "broken"};
static_assert(sizeof(metrics_states) / sizeof(metrics_states[0]) == CONTROL_METRICS_STATES, "a word for each state");

static const char *const metrics_kinds[] = {
    [RECORD_ATTEMPT_CONNECTION] = "connection", [RECORD_ATTEMPT_DNS] = "dns", [RECORD_ATTEMPT_REFUSED] = "refused"};
static_assert(sizeof(metrics_kinds) / sizeof(metrics_kinds[0]) == RECORD_ATTEMPT_MAX, "a word for each kind");

/* Begins a metric: a counter if its name ends in _total, else a gauge. */
static void
metrics_begin(struct metrics *metrics, const char *name, const char *help)
{
	size_t len = strlen(name);

	metrics->name = name;
	fprintf(metrics->out, "# HELP %s %s\n# TYPE %s %s\n", name, help, name,
	    len > 6 && strcmp(name + len - 6, "_total") == 0 ? "counter" : "gauge");
}

/* A label's value within its quotes: backslash, quote and line feed are escaped. */
static void
metrics_label(FILE *out, const char *value)
{
	for (; *value != '\0'; value++) {
		if (*value == '\n')
			fputs("\\n", out);
		else if (*value == '\\' || *value == '"')
			fprintf(out, "\\%c", *value);
		else
			fputc(*value, out);
	}
}

/* A sample with one label, or with two when other is not NULL. */
static void
metrics_sample(const struct metrics *metrics, const char *label, const char *text, const char *other,
    const char *other_text, uint64_t value)
{
	fprintf(metrics->out, "%s{%s=\"", metrics->name, label);
	metrics_label(metrics->out, text);
	if (other != NULL) {
		fprintf(metrics->out, "\",%s=\"", other);
		metrics_label(metrics->out, other_text);
	}
	fprintf(metrics->out, "\"} %" PRIu64 "\n", value);
}

/* A metric that is one number. */
static void
metrics_single(struct metrics *metrics, const char *name, uint64_t value, const char *help)
{
	metrics_begin(metrics, name, help);
	fprintf(metrics->out, "%s %" PRIu64 "\n", name, value);
}

/* A metric that is a time: seconds with their fraction. */
static void
metrics_time(struct metrics *metrics, const char *name, int64_t us, const char *help)
{
	metrics_begin(metrics, name, help);
	us = us < 0 ? 0 : us;
	fprintf(metrics->out, "%s %" PRId64 ".%06" PRId64 "\n", name, us / 1000000, us % 1000000);
}

static void
metrics_role(const struct metrics *metrics, const char *role, uint32_t index, const struct msg_role_status *status,
    bool restarts)
{
	char number[12];

	snprintf(number, sizeof(number), "%u", index);
	metrics_sample(
	    metrics, "role", role, "index", number, restarts ? status->restarts : (uint64_t)(status->pid != 0));
}

static void
metrics_roles(const struct metrics *metrics, const struct msg_status *status, bool restarts)
{
	metrics_role(metrics, "keeper", 0, &status->keeper, restarts);
	metrics_role(metrics, "auditor", 0, &status->auditor, restarts);
	metrics_role(metrics, "control", 0, &status->control, restarts);
	for (uint32_t i = 0; i < status->gateway_count && i < MSG_GATEWAYS_MAX; i++)
		metrics_role(metrics, "gateway", i, &status->gateways[i], restarts);
}

/* The processes, and control's own numbers. */
static void
metrics_daemon(struct metrics *metrics, const struct control_metrics *from)
{
	static const enum event_kind kinds[] = {EVENT_ATTACH, EVENT_DETACH, EVENT_POLICY, EVENT_RESTORED, EVENT_MARK};
	const struct msg_status *status = from->status;

	metrics_begin(metrics, "postern_build_info", "Always 1; the label is the version of posternd.");
	metrics_sample(metrics, "version", from->version, NULL, NULL, 1);
	metrics_time(metrics, "postern_start_time_seconds", status->started_us,
	    "When posternd started, in seconds since the epoch.");
	metrics_begin(metrics, "postern_role_up", "1 while the process runs and is ready.");
	metrics_roles(metrics, status, false);
	metrics_begin(
	    metrics, "postern_role_restarts_total", "Times that the process ended unexpectedly and was started again.");
	metrics_roles(metrics, status, true);
	metrics_single(metrics, "postern_host_chain", status->host_chain != 0,
	    "1 while the host's own table also refuses the never list.");
	metrics_single(metrics, "postern_tampered_total", status->tampered,
	    "Times that nftables rules were modified externally, or foreign sockets in a sandbox's namespace.");
	metrics_begin(metrics, "postern_sandboxes", "Sandboxes, by state.");
	for (size_t i = 0; i < CONTROL_METRICS_STATES; i++)
		metrics_sample(metrics, "state", metrics_states[i], NULL, NULL, from->sandboxes[i]);
	metrics_begin(
	    metrics, "postern_events_total", "Events of the control socket on record, since the control role started.");
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		metrics_sample(metrics, "event", record_event_text(kinds[i]), NULL, NULL, from->events[kinds[i]]);
}

/* What gateways and auditor say. */
static void
metrics_traffic(struct metrics *metrics, const struct control_metrics *from)
{
	const struct msg_totals *totals = &from->status->totals;
	const struct msg_log_state *log = &from->status->log;

	metrics_begin(metrics, "postern_attempts_total",
	    "Attempts on record, by kind and final verdict; refused packets each, connections when they have ended.");
	for (unsigned int kind = 0; kind < RECORD_ATTEMPT_MAX; kind++)
		for (unsigned int verdict = 0; verdict < VERDICT_MAX; verdict++)
			metrics_sample(metrics, "kind", metrics_kinds[kind], "verdict", verdict_text(verdict),
			    totals->recorded[kind][verdict]);
	metrics_single(metrics, "postern_connections_open", totals->open,
	    "Allowed connections and UDP flows that have not ended.");
	metrics_begin(metrics, "postern_bytes_total", "Payload bytes passed on, from guests and to them.");
	metrics_sample(metrics, "direction", "upload", NULL, NULL, totals->upload);
	metrics_sample(metrics, "direction", "download", NULL, NULL, totals->download);
	metrics_single(
	    metrics, "postern_records_waiting", totals->waiting, "Records of gateways that are not on disk yet.");
	metrics_single(metrics, "postern_audit_ok", from->status->audit_ok != 0 && from->writable,
	    "1 while the log can be written; 0: new connections are refused.");
	metrics_single(metrics, "postern_audit_changes_total", log->changes,
	    "Changes in the log, on disk, since the log was created.");
	metrics_single(
	    metrics, "postern_audit_unsealed_changes", log->unsealed, "Changes in the log that no seal covers yet.");
	metrics_time(metrics, "postern_audit_last_seal_timestamp_seconds", log->sealed_us,
	    "Time of the newest seal, in seconds since the epoch; 0: there is none.");
	metrics_single(metrics, "postern_audit_size_bytes", log->bytes, "Size of the audit database and its -wal.");
	metrics_single(
	    metrics, "postern_audit_wal_bytes", log->wal_bytes, "Bytes in use of the audit database's -wal.");
	metrics_single(metrics, "postern_audit_wal_held", from->wal_held,
	    "1 while a reader keeps the -wal from shrinking (the alarm of event audit_alarm).");
}

char *
control_metrics_text(const struct control_metrics *from)
{
	char *text = NULL;
	size_t len;
	struct metrics metrics = {.out = open_memstream(&text, &len)};
	bool failed;

	if (metrics.out == NULL)
		return NULL;
	metrics_daemon(&metrics, from);
	metrics_traffic(&metrics, from);
	failed = ferror(metrics.out) != 0;
	if (fclose(metrics.out) == 0 && !failed)
		return text;
	free(text);
	return NULL;
}

/* -- GET /v1/status: the same for people ------------------------------------------------------------------------- */

json_t *
control_metrics_totals(const struct msg_totals *totals)
{
	json_t *attempts = json_object();

	for (unsigned int kind = 0; kind < RECORD_ATTEMPT_MAX; kind++) {
		json_t *verdicts = json_object();

		for (unsigned int verdict = 0; verdict < VERDICT_MAX; verdict++)
			json_object_set_new(
			    verdicts, verdict_text(verdict), json_integer((json_int_t)totals->recorded[kind][verdict]));
		json_object_set_new(attempts, metrics_kinds[kind], verdicts);
	}
	return json_pack("{s:o, s:I, s:I, s:I, s:I}", "attempts", attempts, "connections_open",
	    (json_int_t)totals->open, "upload", (json_int_t)totals->upload, "download", (json_int_t)totals->download,
	    "records_waiting", (json_int_t)totals->waiting);
}

json_t *
control_metrics_log(const struct msg_log_state *log)
{
	char sealed[QUANTITY_TEXT_MAX];

	return json_pack("{s:I, s:I, s:s?, s:I, s:I}", "changes", (json_int_t)log->changes, "unsealed",
	    (json_int_t)log->unsealed, "sealed",
	    log->sealed_us == 0 ? NULL : quantity_format_instant(log->sealed_us, sealed), "bytes",
	    (json_int_t)log->bytes, "wal_bytes", (json_int_t)log->wal_bytes);
}

/* -- GET /metrics -------------------------------------------------------------------------------------------------- */

static void
metrics_count_sandbox(struct control_sandbox *sandbox, void *context)
{
	size_t *counts = context;
	const char *state = control_sandbox_state(sandbox);

	for (size_t i = 0; i < CONTROL_METRICS_STATES; i++)
		counts[i] += strcmp(state, metrics_states[i]) == 0;
}

static void
metrics_answer(struct control_job *job, const void *answer)
{
	struct control *control = job->control;
	const struct msg_status *status = answer;
	struct control_metrics metrics = {.version = POSTERN_VERSION,
	    .status = status,
	    .events = control->events,
	    .writable = control->recorder.writable,
	    .wal_held = control->recorder.wal_mib > 0};
	struct error err;

	if (control_job_result(status, &err) < 0) {
		control_job_fail(job, &err);
		return;
	}
	control_sandbox_each(control, metrics_count_sandbox, metrics.sandboxes);
	if (job->request != NULL)
		control_http_answer_text(job->request, CONTROL_METRICS_TYPE, control_metrics_text(&metrics));
	control_job_end(job, 200, NULL);
}

void
control_metrics_start(struct control_job *job)
{
	struct error err;

	if (control_job_ask(job, MSG_STATUS, NULL, 0, -1, metrics_answer, &err) < 0)
		control_job_fail(job, &err);
}
