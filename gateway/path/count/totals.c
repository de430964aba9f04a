/* SPDX-License-Identifier: GPL-3.0-or-later */
/* A change starts a timer; the timer sends what is different from the message before, and goes on until nothing is
 * and all records are durable. A gateway at rest does nothing. */
#include "gateway/path/count/totals.h"

#include "gateway/path/gateway.h"

#include <string.h>

/* A connection that is let through counts as allowed on record, and its close may say otherwise: until then it is none
 * of the counts, so that they only ever rise. */
static struct msg_totals
totals_now(const struct gateway *gateway)
{
	const struct account_queue *accounts = &gateway->accounts;
	struct msg_totals now = {.upload = gateway->totals.upload,
	    .download = gateway->totals.download,
	    .open = accounts->open,
	    .waiting = gateway->recorder.queue_len};

	memcpy(now.recorded, accounts->recorded, sizeof(now.recorded));
	now.recorded[RECORD_ATTEMPT_CONNECTION][VERDICT_ALLOWED] -= accounts->open;
	return now;
}

static void
totals_timer_handler(struct loop_timer *timer)
{
	struct gateway *gateway = loop_owner(timer, struct gateway, totals.timer);
	struct msg_totals now = totals_now(gateway);
	bool same = memcmp(&now, &gateway->totals.sent, sizeof(now)) == 0;

	/* Records become durable without a change of anything else. */
	if (same && now.waiting == 0)
		return;
	/* A keeper that is behind is not given more to read. */
	if (!same && gateway->link.ipc.queue_len == 0 &&
	    ipc_send(&gateway->link.ipc, MSG_TOTALS, 0, &now, sizeof(now), NULL, 0) == 0)
		gateway->totals.sent = now;
	totals_changed(gateway);
}

void
totals_start(struct gateway *gateway)
{
	gateway->totals.timer.handler = totals_timer_handler;
}

void
totals_changed(struct gateway *gateway)
{
	struct loop_timer *timer = &gateway->totals.timer;

	/* Without memory for it, with the next change. */
	if (timer->handler != NULL && !loop_timer_armed(timer))
		(void)loop_timer_set(gateway->loop, timer, TOTALS_SEND_MS);
}

void
totals_add_bytes(struct gateway *gateway, uint64_t upload, uint64_t download)
{
	gateway->totals.upload += upload;
	gateway->totals.download += download;
	totals_changed(gateway);
}
