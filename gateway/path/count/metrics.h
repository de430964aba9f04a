/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a gateway tells the keeper of its work as a whole, for GET /metrics. The numbers are those of balances and
 * quotas, added up where these are written; nothing is counted a second time. */
#ifndef POSTERN_GATEWAY_METRICS_H
#define POSTERN_GATEWAY_METRICS_H

#include "base/loop.h"
#include "gateway/shared/msg.h"

#include <stdint.h>

/* Totals that changed are sent within this time: how far they may be behind, and what may be missing of a gateway that
 * crashed. */
#define METRICS_SEND_MS 1000

struct gateway;

/* Part of struct gateway; zeroed: nothing is told (tests of other parts). */
struct metrics {
	struct loop_timer timer;
	uint64_t upload, download; /* payload bytes of all sandboxes */
	struct msg_totals sent;    /* last */
};

/* From now on. */
void metrics_start(struct gateway *gateway);
/* Something that is told of has changed. */
void metrics_changed(struct gateway *gateway);
/* Payload bytes went from a guest and to one. */
void metrics_add_bytes(struct gateway *gateway, uint64_t upload, uint64_t download);

#endif
