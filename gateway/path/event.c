/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events that a gateway records. */
#include "gateway/path/event.h"
#include "gateway/path/gateway.h"

#include "base/clock.h"
#include "base/log.h"

#include <jansson.h>
#include <stdlib.h>
#include <string.h>

/* Takes detail. Without memory the event is recorded without it. */
static void
event_send(struct sandbox *sandbox, enum event_kind kind, json_t *detail)
{
	struct recorder *recorder = &sandbox->gateway->recorder;
	char *text = detail == NULL ? NULL : json_dumps(detail, JSON_COMPACT | JSON_ENSURE_ASCII);
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = RECORD_EVENT;
	record.event.id = recorder_id(recorder);
	record.event.sandbox = sandbox->id;
	record.event.ts_us = clock_real_us();
	record.event.kind = (uint8_t)kind;
	record.event.uid = UINT32_MAX;
	if (text != NULL && strlen(text) < sizeof(record.event.detail))
		memcpy(record.event.detail, text, strlen(text) + 1);
	free(text);
	json_decref(detail);
	if (recorder_send(recorder, &record, NULL) < 0)
		log_warnx("%s: the event %s could not be recorded", sandbox->name, record_event_text(kind));
}

/* Sets a text. One that is no UTF-8, as a file's name may be, is left out. */
static void
event_set(json_t *detail, const char *key, const char *text)
{
	/* A file's name may be no UTF-8: then it is left out. */
	json_object_set_new(detail, key, json_string(text));
}

void
event_limit(struct sandbox *sandbox, enum limit_kind kind, struct limit limit, uint32_t rule)
{
	json_t *detail = json_object();

	event_set(detail, "limit", limits_kind_text(kind));
	json_object_set_new(detail, "soft", json_integer((json_int_t)limit.soft));
	json_object_set_new(detail, "hard", json_integer((json_int_t)limit.hard));
	if (rule != SNAPSHOT_NO_RULE) {
		event_set(detail, "rule", snapshot_rule_text(sandbox->policy, rule));
		event_set(detail, "origin", snapshot_rule_origin(sandbox->policy, rule));
	}
	event_send(sandbox, EVENT_LIMIT_SOFT, detail);
}

void
event_rule(struct sandbox *sandbox, enum event_kind kind, uint32_t rule)
{
	json_t *detail = json_object();

	event_set(detail, "rule", snapshot_rule_text(sandbox->policy, rule));
	event_set(detail, "origin", snapshot_rule_origin(sandbox->policy, rule));
	event_send(sandbox, kind, detail);
}
