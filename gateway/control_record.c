/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What people did, for the audit log. */
#include "gateway/control.h"

#include "base/clock.h"
#include "base/log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Members that may be long are left out, one after another, until the rest fits: half a JSON text is none. */
static void
record_detail(char ret_detail[RECORD_DETAIL_MAX], json_t *detail)
{
	static const char *const expendable[] = {"change", "error", "policy_file", "container_netns"};
	char *text = NULL;

	ret_detail[0] = '\0';
	for (size_t i = 0; detail != NULL; i++) {
		free(text);
		text = json_dumps(detail, JSON_COMPACT | JSON_ENSURE_ASCII);
		if (text == NULL || strlen(text) < RECORD_DETAIL_MAX || i >= sizeof(expendable) / sizeof(expendable[0]))
			break;
		if (json_object_get(detail, expendable[i]) != NULL)
			json_object_set_new(detail, expendable[i], json_string("..."));
	}
	if (text != NULL && strlen(text) < RECORD_DETAIL_MAX)
		memcpy(ret_detail, text, strlen(text) + 1);
	free(text);
	json_decref(detail);
}

static void
record_send(struct control *control, struct record *record)
{
	int rc = recorder_send(&control->recorder, record, NULL);

	if (rc < 0)
		log_warnx("a record of kind %u could not be queued (%d)", record->kind, rc);
}

void
control_record_event(struct control *control, enum event_kind kind, int64_t sandbox, uint32_t uid, json_t *detail)
{
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = RECORD_EVENT;
	record.event.id = recorder_id(&control->recorder);
	record.event.sandbox = sandbox;
	record.event.ts_us = clock_real_us();
	record.event.kind = (uint8_t)kind;
	record.event.uid = uid;
	record_detail(record.event.detail, detail);
	record_send(control, &record);
}

static void
record_sandbox(struct control *control, const struct control_sandbox *sandbox, enum record_kind kind, int64_t ts_us)
{
	static const char *const shown[] = {"guest_ip", "gateway_ip", "guest_ip6", "gateway_ip6", "mac", "device",
	    "netns", "container_netns", "pid", "owner"};
	json_t *summary = control_sandbox_summary(sandbox), *detail = json_object();
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = kind;
	record.sandbox.id = sandbox->id;
	record.sandbox.ts_us = ts_us;
	snprintf(record.sandbox.name, sizeof(record.sandbox.name), "%s", sandbox->name);
	snprintf(record.sandbox.kind, sizeof(record.sandbox.kind), "%s",
	    sandbox->config.kind == TAP_KIND_TAP ? "tap" : "netns");
	record.sandbox.uid = sandbox->uid;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		json_object_set(detail, shown[i], json_object_get(summary, shown[i]));
	json_decref(summary);
	record_detail(record.sandbox.detail, detail);
	record_send(control, &record);
}

void
control_record_sandbox(struct control *control, const struct control_sandbox *sandbox)
{
	record_sandbox(control, sandbox, RECORD_SANDBOX, sandbox->id);
}

void
control_record_sandbox_end(struct control *control, const struct control_sandbox *sandbox)
{
	record_sandbox(control, sandbox, RECORD_SANDBOX_END, clock_real_us());
}
