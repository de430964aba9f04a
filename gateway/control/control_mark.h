/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/marks: the agent's own timeline. */
#ifndef POSTERN_GATEWAY_CONTROL_MARK_H
#define POSTERN_GATEWAY_CONTROL_MARK_H

#include "gateway/control/control_job.h"

/* Bytes of a mark: a sentence or two. */
#define CONTROL_MARK_MAX 512
/* Marks of one sandbox in a second: more than any agent takes steps, few enough that a runaway loop does not fill the
 * log. */
#define CONTROL_MARKS_PER_S 100
/* A mark that is not on disk by then is answered with an error. */
#define CONTROL_MARK_MS 30000
/* Marks that wait for the disk at once, each on a connection: a stalled log must leave some for other requests. */
#define CONTROL_MARKS_WAITING_MAX (CONTROL_HTTP_CONNECTIONS_MAX / 2)

void control_mark_start(struct control_job *job);

#endif
