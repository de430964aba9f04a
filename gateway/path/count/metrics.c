/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A change starts a timer. The timer sends a delta and re-arms until nothing has changed and all records are durable.
 * An idle gateway does nothing. */
#include "gateway/path/count/metrics.h"

#include "gateway/path/gateway.h"

#include <string.h>

/* An allowed connection is on record as allowed, and its close may change that: until then it is in none of the counts,
 * so that they only rise. */
static struct msg_totals
metrics_now(const struct gateway *gateway)
{
	const struct balance_queue *balances = &gateway->balances;
	struct msg_totals now = {.upload = gateway->metrics.upload,
	    .download = gateway->metrics.download,
	    .open = balances->open,
	    .waiting = gateway->recorder.queue_len};

	memcpy(now.recorded, balances->recorded, sizeof(now.recorded));
	now.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] -= balances->open;
	return now;
}

/* Sends the numbers if they have changed; runs again until all records are durable. */
static void
metrics_timer_handler(struct loop_timer *timer)
{
	struct gateway *gateway = loop_owner(timer, struct gateway, metrics.timer);
	struct msg_totals now = metrics_now(gateway);
	bool same = memcmp(&now, &gateway->metrics.sent, sizeof(now)) == 0;

	/* Records become durable without a change of anything else. */
	if (same && now.waiting == 0)
		return;
	/* While the keeper has unread messages, no more are sent. */
	if (!same && gateway->link.ipc.queue_len == 0 &&
	    ipc_send(&gateway->link.ipc, MSG_TOTALS, 0, &now, sizeof(now), NULL, 0) == 0)
		gateway->metrics.sent = now;
	metrics_changed(gateway);
}

void
metrics_start(struct gateway *gateway)
{
	gateway->metrics.timer.handler = metrics_timer_handler;
}

void
metrics_changed(struct gateway *gateway)
{
	struct loop_timer *timer = &gateway->metrics.timer;

	/* Without memory for it, with the next change. */
	if (timer->handler != NULL && !loop_timer_armed(timer))
		(void)loop_timer_set(gateway->loop, timer, METRICS_SEND_MS);
}

void
metrics_add_bytes(struct gateway *gateway, uint64_t upload, uint64_t download)
{
	gateway->metrics.upload += upload;
	gateway->metrics.download += download;
	metrics_changed(gateway);
}
