/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events and sandboxes, for the audit log. */
#ifndef POSTERN_GATEWAY_CONTROL_RECORD_H
#define POSTERN_GATEWAY_CONTROL_RECORD_H

#include "gateway/control/control_http.h"
#include "gateway/control/control_sandbox.h"

/* detail: a JSON object, stolen; the peer's pid, name and command are added to it. */
void control_record_event(
    struct control *control, enum event_kind kind, int64_t sandbox, const struct control_peer *peer, json_t *detail);
/* The same for a caller that waits: *wait (may be NULL) is called when the event is durable. detail is stolen. Fills
 * *ret_id and *ret_ts_us; 0 or -errno, as recorder_send. */
int control_record_waited(struct control *control, enum event_kind kind, int64_t sandbox, uint32_t uid, json_t *detail,
    struct recorder_wait *wait, uint64_t *ret_id, int64_t *ret_ts_us);
/* That the sandbox is attached since its id's time, or that it ended now. */
void control_record_sandbox(struct control *control, const struct control_sandbox *sandbox, bool ended);

#endif
