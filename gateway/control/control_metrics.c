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

enum metric {
	METRIC_BUILD_INFO,
	METRIC_START_TIME,
	METRIC_ROLE_UP,
	METRIC_ROLE_RESTARTS,
	METRIC_HOST_CHAIN,
	METRIC_TAMPERED,
	METRIC_SANDBOXES,
	METRIC_EVENTS,
	METRIC_ATTEMPTS,
	METRIC_CONNECTIONS_OPEN,
	METRIC_BYTES,
	METRIC_RECORDS_WAITING,
	METRIC_AUDIT_OK,
	METRIC_AUDIT_CHANGES,
	METRIC_AUDIT_UNSEALED,
	METRIC_AUDIT_SEALED,
	METRIC_AUDIT_SIZE,
	METRIC_AUDIT_WAL,
	METRIC_AUDIT_WAL_HELD,
	METRIC_MAX
};

static const struct {
	const char *name, *type, *help;
} metrics_table[] = {
    [METRIC_BUILD_INFO] = {"postern_build_info", "gauge", "Always 1; the label is the version of posternd."},
    [METRIC_START_TIME] = {"postern_start_time_seconds", "gauge", "When posternd started, in seconds since the epoch."},
    [METRIC_ROLE_UP] = {"postern_role_up", "gauge", "1 while the process runs and is ready."},
    [METRIC_ROLE_RESTARTS] = {"postern_role_restarts_total", "counter",
	"Times that the process ended unexpectedly and was started again."},
    [METRIC_HOST_CHAIN] = {"postern_host_chain", "gauge", "1 while the host's own table also refuses the never list."},
    [METRIC_TAMPERED] = {"postern_tampered_total", "counter",
	"Times that nftables rules were modified externally, or foreign sockets in a sandbox's namespace."},
    [METRIC_SANDBOXES] = {"postern_sandboxes", "gauge", "Sandboxes, by state."},
    [METRIC_EVENTS] = {"postern_events_total", "counter",
	"Events of the control socket on record, since the control role started."},
    [METRIC_ATTEMPTS] = {"postern_attempts_total", "counter",
	"Attempts on record, by kind and final verdict; refused packets each, connections when they have ended."},
    [METRIC_CONNECTIONS_OPEN] = {"postern_connections_open", "gauge",
	"Allowed connections and UDP flows that have not ended."},
    [METRIC_BYTES] = {"postern_bytes_total", "counter", "Payload bytes passed on, from guests and to them."},
    [METRIC_RECORDS_WAITING] = {"postern_records_waiting", "gauge", "Records of gateways that are not on disk yet."},
    [METRIC_AUDIT_OK] = {"postern_audit_ok", "gauge",
	"1 while the log can be written; 0: new connections are refused."},
    [METRIC_AUDIT_CHANGES] = {"postern_audit_changes_total", "counter",
	"Changes in the log, on disk, since the log was created."},
    [METRIC_AUDIT_UNSEALED] = {"postern_audit_unsealed_changes", "gauge",
	"Changes in the log that no seal covers yet."},
    [METRIC_AUDIT_SEALED] = {"postern_audit_last_seal_timestamp_seconds", "gauge",
	"Time of the newest seal, in seconds since the epoch; 0: there is none."},
    [METRIC_AUDIT_SIZE] = {"postern_audit_size_bytes", "gauge", "Size of the audit database and its -wal."},
    [METRIC_AUDIT_WAL] = {"postern_audit_wal_bytes", "gauge", "Bytes in use of the audit database's -wal."},
    [METRIC_AUDIT_WAL_HELD] = {"postern_audit_wal_held", "gauge",
	"1 while a reader keeps the -wal from shrinking (the alarm of event audit_alarm)."},
};
static_assert(sizeof(metrics_table) / sizeof(metrics_table[0]) == METRIC_MAX, "a row for each metric");

/* As control_sandbox_state says them. */
static const char *const metrics_states[] = {[CONTROL_METRICS_ATTACHED] = "attached",
    [CONTROL_METRICS_RESTORING] = "restoring",
    [CONTROL_METRICS_BROKEN] = "broken"};
static_assert(sizeof(metrics_states) / sizeof(metrics_states[0]) == CONTROL_METRICS_STATES, "a word for each state");

static const char *const metrics_kinds[] = {
    [RECORD_ATTEMPT_CONNECTION] = "connection", [RECORD_ATTEMPT_DNS] = "dns", [RECORD_ATTEMPT_REFUSED] = "refused"};
static_assert(sizeof(metrics_kinds) / sizeof(metrics_kinds[0]) == RECORD_ATTEMPT_MAX, "a word for each kind");

static void
metrics_begin(FILE *out, enum metric metric)
{
	const char *name = metrics_table[metric].name;

	fprintf(
	    out, "# HELP %s %s\n# TYPE %s %s\n", name, metrics_table[metric].help, name, metrics_table[metric].type);
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
metrics_sample(FILE *out, enum metric metric, const char *label, const char *text, const char *other,
    const char *other_text, uint64_t value)
{
	fprintf(out, "%s{%s=\"", metrics_table[metric].name, label);
	metrics_label(out, text);
	if (other != NULL) {
		fprintf(out, "\",%s=\"", other);
		metrics_label(out, other_text);
	}
	fprintf(out, "\"} %" PRIu64 "\n", value);
}

static void
metrics_single(FILE *out, enum metric metric, uint64_t value)
{
	metrics_begin(out, metric);
	fprintf(out, "%s %" PRIu64 "\n", metrics_table[metric].name, value);
}

/* Seconds with their fraction. */
static void
metrics_time(FILE *out, enum metric metric, int64_t us)
{
	metrics_begin(out, metric);
	us = us < 0 ? 0 : us;
	fprintf(out, "%s %" PRId64 ".%06" PRId64 "\n", metrics_table[metric].name, us / 1000000, us % 1000000);
}

static void
metrics_role(FILE *out, enum metric metric, const char *role, size_t index, const struct msg_role_status *status)
{
	char number[24];

	snprintf(number, sizeof(number), "%zu", index);
	metrics_sample(
	    out, metric, "role", role, "index", number, metric == METRIC_ROLE_UP ? status->pid != 0 : status->restarts);
}

static void
metrics_roles(FILE *out, enum metric metric, const struct msg_status *status)
{
	metrics_begin(out, metric);
	metrics_role(out, metric, "keeper", 0, &status->keeper);
	metrics_role(out, metric, "auditor", 0, &status->auditor);
	metrics_role(out, metric, "control", 0, &status->control);
	for (uint32_t i = 0; i < status->gateway_count && i < MSG_GATEWAYS_MAX; i++)
		metrics_role(out, metric, "gateway", i, &status->gateways[i]);
}

/* What gateways and auditor say. */
static void
metrics_traffic(FILE *out, const struct control_metrics *metrics)
{
	const struct msg_totals *totals = &metrics->status->totals;
	const struct msg_log_state *log = &metrics->status->log;

	metrics_begin(out, METRIC_ATTEMPTS);
	for (unsigned int kind = 0; kind < RECORD_ATTEMPT_MAX; kind++)
		for (unsigned int verdict = 0; verdict < VERDICT_MAX; verdict++)
			metrics_sample(out, METRIC_ATTEMPTS, "kind", metrics_kinds[kind], "verdict",
			    verdict_text(verdict), totals->recorded[kind][verdict]);
	metrics_single(out, METRIC_CONNECTIONS_OPEN, totals->open);
	metrics_begin(out, METRIC_BYTES);
	metrics_sample(out, METRIC_BYTES, "direction", "upload", NULL, NULL, totals->upload);
	metrics_sample(out, METRIC_BYTES, "direction", "download", NULL, NULL, totals->download);
	metrics_single(out, METRIC_RECORDS_WAITING, totals->waiting);
	metrics_single(out, METRIC_AUDIT_OK, metrics->status->audit_ok != 0 && metrics->writable);
	metrics_single(out, METRIC_AUDIT_CHANGES, log->changes);
	metrics_single(out, METRIC_AUDIT_UNSEALED, log->unsealed);
	metrics_time(out, METRIC_AUDIT_SEALED, log->sealed_us);
	metrics_single(out, METRIC_AUDIT_SIZE, log->bytes);
	metrics_single(out, METRIC_AUDIT_WAL, log->wal_bytes);
	metrics_single(out, METRIC_AUDIT_WAL_HELD, metrics->wal_held);
}

char *
control_metrics_text(const struct control_metrics *metrics)
{
	static const enum event_kind kinds[] = {EVENT_ATTACH, EVENT_DETACH, EVENT_POLICY, EVENT_RESTORED, EVENT_MARK};
	const struct msg_status *status = metrics->status;
	char *text = NULL;
	size_t len;
	FILE *out = open_memstream(&text, &len);
	bool failed;

	if (out == NULL)
		return NULL;
	metrics_begin(out, METRIC_BUILD_INFO);
	metrics_sample(out, METRIC_BUILD_INFO, "version", metrics->version, NULL, NULL, 1);
	metrics_time(out, METRIC_START_TIME, status->started_us);
	metrics_roles(out, METRIC_ROLE_UP, status);
	metrics_roles(out, METRIC_ROLE_RESTARTS, status);
	metrics_single(out, METRIC_HOST_CHAIN, status->host_chain != 0);
	metrics_single(out, METRIC_TAMPERED, status->tampered);
	metrics_begin(out, METRIC_SANDBOXES);
	for (size_t i = 0; i < CONTROL_METRICS_STATES; i++)
		metrics_sample(out, METRIC_SANDBOXES, "state", metrics_states[i], NULL, NULL, metrics->sandboxes[i]);
	metrics_begin(out, METRIC_EVENTS);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		metrics_sample(
		    out, METRIC_EVENTS, "event", event_kind_text(kinds[i]), NULL, NULL, metrics->events[kinds[i]]);
	metrics_traffic(out, metrics);
	failed = ferror(out) != 0;
	if (fclose(out) == 0 && !failed)
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
