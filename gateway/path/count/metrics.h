/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The gateway's numbers for GET /metrics, sent to the keeper. They are the sums of all balances and quotas, added up
 * where those change; nothing is counted a second time. */
#ifndef POSTERN_GATEWAY_METRICS_H
#define POSTERN_GATEWAY_METRICS_H

#include "base/loop.h"
#include "gateway/shared/msg.h"

#include <stdint.h>

/* Numbers that changed are sent within this time: so far they may lag, and so much is lost in a crash. */
#define METRICS_SEND_MS 1000

struct gateway;

/* Part of struct gateway; zeroed: nothing is sent (tests of other parts). */
struct metrics {
	struct loop_timer timer;
	uint64_t upload, download; /* payload bytes of all sandboxes */
	struct msg_totals sent;    /* last */
};

/* From now on. */
void metrics_start(struct gateway *gateway);
/* A number has changed. */
void metrics_changed(struct gateway *gateway);
/* Payload bytes went from a guest and to one. */
void metrics_add_bytes(struct gateway *gateway, uint64_t upload, uint64_t download);

#endif
