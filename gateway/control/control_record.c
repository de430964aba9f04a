/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "gateway/control/control_record.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/control/control_config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Shortens a member: of a list the second half goes, and a last line says how many are gone; else all of it. False when
 * there is nothing left to shorten. */
static bool
record_shorten(json_t *detail, const char *key, size_t *gone)
{
	json_t *value = json_object_get(detail, key);
	size_t count = json_array_size(value) - (*gone > 0), half = count / 2;

	if (value == NULL || json_is_string(value)) {
		if (value == NULL || strcmp(json_string_value(value), "...") == 0)
			return false;
		json_object_set_new(detail, key, json_string("..."));
		return true;
	}
	if (!json_is_array(value) || half == 0)
		return json_object_set_new(detail, key, json_string("...")) == 0;
	*gone += count - half;
	while (json_array_size(value) > half)
		json_array_remove(value, json_array_size(value) - 1);
	return json_array_append_new(value, json_sprintf("... and %zu more", *gone)) == 0;
}

/* Writes detail as text. Members that may be long are shortened, one after another, until it fits. */
static void
record_detail(char *ret_detail, size_t size, json_t *detail)
{
	static const char *const expendable[] = {"command", "change", "error", "policy_file", "container_netns"};
	size_t at = 0, gone = 0, count = sizeof(expendable) / sizeof(expendable[0]);
	char *text = detail == NULL ? NULL : json_dumps(detail, JSON_COMPACT); /* the store makes it ASCII */

	ret_detail[0] = '\0';
	while (text != NULL && strlen(text) >= size && at < count) {
		if (!record_shorten(detail, expendable[at], &gone)) {
			at++;
			continue;
		}
		free(text);
		text = json_dumps(detail, JSON_COMPACT);
	}
	if (text != NULL && strlen(text) < size)
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

static void
record_event(
    struct control *control, struct record *record, enum event_kind kind, int64_t sandbox, uint32_t uid, json_t *detail)
{
	control->events[kind]++;
	memset(record, 0, sizeof(*record));
	record->kind = RECORD_EVENT;
	record->event.id = recorder_id(&control->recorder);
	record->event.sandbox = sandbox;
	record->event.ts_us = clock_real_us();
	record->event.kind = (uint8_t)kind;
	record->event.uid = uid;
	record_detail(record->event.detail, sizeof(record->event.detail), detail);
}

void
control_record_event(
    struct control *control, enum event_kind kind, int64_t sandbox, const struct control_peer *peer, json_t *detail)
{
	struct record record;

	if (peer->pid > 0)
		json_object_set_new(detail, "pid", json_integer(peer->pid));
	control_json_set_text(detail, "comm", peer->comm);
	control_json_set_text(detail, "command", peer->command);
	record_event(control, &record, kind, sandbox, peer->uid, detail);
	record_send(control, &record);
}

int
control_record_waited(struct control *control, enum event_kind kind, int64_t sandbox, uint32_t uid, json_t *detail,
    struct recorder_wait *wait, uint64_t *ret_id, int64_t *ret_ts_us)
{
	struct record record;

	record_event(control, &record, kind, sandbox, uid, detail);
	*ret_id = record.event.id;
	*ret_ts_us = record.event.ts_us;
	return recorder_send(&control->recorder, &record, wait);
}

void
control_record_sandbox(struct control *control, const struct control_sandbox *sandbox, bool ended)
{
	static const char *const shown[] = {"guest_ip", "gateway_ip", "guest_ip6", "gateway_ip6", "mac", "device",
	    "netns", "container_netns", "pid", "owner", "labels", "parent"};
	json_t *summary = control_config_summary(sandbox), *detail = json_object();
	struct record record;

	memset(&record, 0, sizeof(record));
	record.kind = ended ? RECORD_SANDBOX_END : RECORD_SANDBOX;
	record.sandbox.id = sandbox->id;
	record.sandbox.ts_us = ended ? clock_real_us() : sandbox->id;
	snprintf(record.sandbox.name, sizeof(record.sandbox.name), "%s", sandbox->name);
	snprintf(record.sandbox.kind, sizeof(record.sandbox.kind), "%s",
	    sandbox->config.kind == TAP_KIND_TAP ? "tap" : "netns");
	record.sandbox.uid = sandbox->uid;
	for (size_t i = 0; i < sizeof(shown) / sizeof(shown[0]); i++)
		json_object_set(detail, shown[i], json_object_get(summary, shown[i]));
	json_decref(summary);
	record_detail(record.sandbox.detail, sizeof(record.sandbox.detail), detail);
	record_send(control, &record);
}
