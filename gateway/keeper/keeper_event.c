/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The keeper's own records in the log. */
#include "gateway/keeper/keeper.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void
keeper_event(struct keeper *keeper, enum event_kind kind, int64_t sandbox, const char *fmt, ...)
{
	struct record record;
	va_list ap;

	keeper->tampered += kind == EVENT_TAMPERED;
	memset(&record, 0, sizeof(record));
	record.kind = RECORD_EVENT;
	record.event.id = recorder_id(&keeper->recorder);
	record.event.sandbox = sandbox;
	record.event.ts_us = clock_real_us();
	record.event.kind = (uint8_t)kind;
	record.event.uid = UINT32_MAX;
	va_start(ap, fmt);
	vsnprintf(record.event.detail, sizeof(record.event.detail), fmt, ap);
	va_end(ap);
	recorder_send(&keeper->recorder, &record, NULL);
}

void
keeper_event_gap(struct keeper *keeper, const struct keeper_role *gateway)
{
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = RECORD_GAP;
	record.gap.sender_epoch = gateway->epoch;
	record.gap.ts_us = clock_real_us();
	record.gap.end = END_GATEWAY_CRASH;
	recorder_send(&keeper->recorder, &record, NULL);
}
