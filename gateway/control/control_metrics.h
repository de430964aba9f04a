/* SPDX-License-Identifier: GPL-3.0-or-later */
/* GET /metrics: the fleet in numbers, as Prometheus reads them. posternd(8), METRICS, says what each means. */
#ifndef POSTERN_GATEWAY_CONTROL_METRICS_H
#define POSTERN_GATEWAY_CONTROL_METRICS_H

#include "gateway/control/control_job.h"

#include <stddef.h>

/* Text exposition format 0.0.4. */
#define CONTROL_METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum control_metrics_sandbox {
	CONTROL_METRICS_ATTACHED,
	CONTROL_METRICS_RESTORING,
	CONTROL_METRICS_BROKEN,
	CONTROL_METRICS_STATES
};

/* All that there is to say. */
struct control_metrics {
	const char *version;
	const struct msg_status *status; /* the keeper's answer; its counts are within bounds */
	size_t sandboxes[CONTROL_METRICS_STATES];
	const uint64_t *events; /* EVENT_KIND_MAX of them, of control */
	bool writable;          /* control can record */
	bool wal_held;          /* a reader keeps the -wal from shrinking */
};

/* The text, to be freed; NULL: out of memory. */
char *control_metrics_text(const struct control_metrics *metrics);

/* For GET /v1/status: {"attempts": {"connection": {"allowed", ...}, "dns", "refused"}, "connections_open", "upload",
 * "download", "records_waiting"}, and {"changes", "unsealed", "sealed", "bytes", "wal_bytes"}. NULL: out of memory. */
json_t *control_metrics_totals(const struct msg_totals *totals);
json_t *control_metrics_log(const struct msg_log_state *log);

void control_metrics_start(struct control_job *job);

#endif
