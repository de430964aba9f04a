/* SPDX-License-Identifier: GPL-3.0-or-later */
/* POST /v1/sandboxes/NAME/test: what would happen to a connection. */
#ifndef POSTERN_GATEWAY_CONTROL_EXPLAIN_H
#define POSTERN_GATEWAY_CONTROL_EXPLAIN_H

#include "gateway/control/control_job.h"

void control_explain_start(struct control_job *job);

#endif
