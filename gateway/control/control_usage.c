/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What sandboxes have used of their counted rules, on disk.
 *
 * The gateway counts before it lets something through, and the keeper has the count a moment later; either may die and
 * learns it from the other. The file is for when all of posternd dies: it follows within CONTROL_USAGE_USES_MS of a
 * use, and CONTROL_USAGE_BYTES_MS of bytes. A sandbox whose policy counts nothing has no file. A file that cannot be
 * read breaks the sandbox: a grant must not be whole again because its count is lost. */
#include "gateway/control/control_usage.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/control/control_state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CONTROL_USAGE_USES_MS 20
#define CONTROL_USAGE_BYTES_MS 1000

static char *
usage_format(const struct usage_table *table)
{
	json_t *rows = json_array(), *object = json_pack("{s:i, s:o}", "version", 1, "usage", rows);
	char *text;

	for (size_t i = 0; i < table->count; i++) {
		const struct msg_usage_row *row = &table->rows[i];
		char rule[17];

		snprintf(rule, sizeof(rule), "%016" PRIx64, row->rule);
		json_array_append_new(rows,
		    json_pack("{s:s, s:I, s:I, s:I}", "rule", rule, "uses", (json_int_t)row->uses, "upload",
			(json_int_t)row->upload, "download", (json_int_t)row->download));
	}
	text = object == NULL || json_array_size(rows) != table->count ? NULL : json_dumps(object, JSON_INDENT(1));
	json_decref(object);
	return text;
}

static int
usage_parse_row(const json_t *value, struct msg_usage_row *ret_row)
{
	json_int_t uses, upload, download;
	const char *rule;
	char *end;

	if (json_unpack((json_t *)(uintptr_t)value, "{s:s, s:I, s:I, s:I !}", "rule", &rule, "uses", &uses, "upload",
		&upload, "download", &download) < 0 ||
	    strlen(rule) != 16 || uses < 0 || upload < 0 || download < 0)
		return -1;
	ret_row->rule = strtoull(rule, &end, 16);
	ret_row->uses = (uint64_t)uses;
	ret_row->upload = (uint64_t)upload;
	ret_row->download = (uint64_t)download;
	return *end == '\0' ? 0 : -1;
}

int
control_usage_parse(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err)
{
	json_t *object = json_loadb(text, len, JSON_REJECT_DUPLICATES, NULL), *rows = NULL;
	int version = 0, rc = -1;

	if (json_unpack(object, "{s:i, s:o !}", "version", &version, "usage", &rows) == 0 && version == 1 &&
	    json_is_array(rows))
		rc = 0;
	for (size_t i = 0; rc == 0 && i < json_array_size(rows); i++) {
		struct msg_usage_row row;

		rc = usage_parse_row(json_array_get(rows, i), &row);
		if (rc == 0 && usage_table_raise(&sandbox->usage, &row) < 0)
			rc = -1;
	}
	json_decref(object);
	if (rc < 0)
		return error_set(err, ERROR_CORRUPT, "state: usage.json of %s cannot be read", sandbox->name);
	return 0;
}

static void
usage_store(struct control_sandbox *sandbox, void *context)
{
	const struct limits *limits = sandbox->snapshot == NULL ? NULL : snapshot_limits(sandbox->snapshot);
	const struct usage_table *usage = &sandbox->usage;
	struct control *control = context;
	struct error err;
	char *text;

	if (!sandbox->usage_dirty)
		return;
	sandbox->usage_dirty = false;
	/* Only if a rule or a limit depends on the counts. Rows are in order, and the sandbox's own is 0: the last one
	 * is a rule's if any is. */
	if ((usage->count == 0 || usage->rows[usage->count - 1].rule == 0) &&
	    (limits == NULL || (limits->of[LIMIT_UPLOAD].hard == 0 && limits->of[LIMIT_DOWNLOAD].hard == 0)))
		return;
	text = usage_format(usage);
	if (text == NULL ||
	    control_state_write(control->state_fd, sandbox->name, CONTROL_FILE_USAGE, text, strlen(text), &err) < 0)
		log_warnx("%s: its usage is not on disk: %s", sandbox->name, text == NULL ? "out of memory" : err.text);
	free(text);
}

void
control_usage_flush(struct control *control)
{
	loop_timer_stop(control->loop, &control->usage_timer);
	control_sandbox_each(control, usage_store, control);
}

static void
usage_timer_handler(struct loop_timer *timer)
{
	control_usage_flush(loop_owner(timer, struct control, usage_timer));
}

static void
usage_schedule(struct control *control, struct control_sandbox *sandbox, int64_t delay_ms)
{
	struct loop_timer *timer = &control->usage_timer;

	sandbox->usage_dirty = true;
	if (loop_timer_armed(timer) && timer->due_ms <= clock_mono_ms() + delay_ms)
		return;
	timer->handler = usage_timer_handler;
	if (loop_timer_set(control->loop, timer, delay_ms) < 0)
		control_usage_flush(control);
}

static uint64_t
usage_uses(const struct usage_table *table)
{
	uint64_t uses = 0;

	for (size_t i = 0; i < table->count; i++)
		uses += table->rows[i].uses;
	return uses;
}

bool
control_usage_take(struct control *control, struct ipc_message *message)
{
	const struct msg_usage *usage = message->body;
	struct control_sandbox *sandbox;
	uint64_t uses;
	bool used;
	int rc;

	if (!msg_usage_valid(usage))
		return false;
	sandbox = control_sandbox_find(control, usage->name);
	if (sandbox == NULL || sandbox->id != usage->id)
		return true; /* detached meanwhile */
	uses = usage_uses(&sandbox->usage);
	rc = usage_table_take(&sandbox->usage, usage);
	if (rc < 0)
		log_warnx("%s: its usage cannot be kept: %s", sandbox->name, strerror(-rc));
	used = usage_uses(&sandbox->usage) > uses;
	if (rc > 0)
		usage_schedule(control, sandbox, used ? CONTROL_USAGE_USES_MS : CONTROL_USAGE_BYTES_MS);
	if (used && sandbox->snapshot != NULL)
		control_usage_retire(sandbox);
	return true;
}

void
control_usage_retire(struct control_sandbox *sandbox)
{
	size_t rules = snapshot_rule_count(sandbox->snapshot);

	for (uint32_t rule = 0; rule < rules; rule++) {
		uint32_t uses = snapshot_rule_uses(sandbox->snapshot, rule);

		if (uses != 0 && control_sandbox_uses(sandbox, rule) >= uses)
			snapshot_rule_retire(sandbox->snapshot, rule);
	}
}

void
control_usage_keep(struct control *control, struct control_sandbox *sandbox)
{
	if (usage_table_keep(&sandbox->usage, sandbox->snapshot))
		usage_schedule(control, sandbox, CONTROL_USAGE_USES_MS);
	control_usage_retire(sandbox);
}
