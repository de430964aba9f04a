/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. A row counts for the sandbox (the first one, rule 0) and for each rule of its policy that has
 * uses or limits. Totals (uses, bytes) outlive this process: they go to the keeper, uses before what they let through
 * begins, bytes a little later (gateway/shared/usage.h). What is open now, and the rates, begin anew with the process, as the
 * connections themselves do.
 *
 * A connection asks once (meter_open) and holds a ticket until it ends (meter_close). The bytes it moves are counted
 * after each turn of the relay, which moves no more than meter_left said: what is left and one byte more, so that an
 * exact fit passes and the first byte beyond cuts. Of a rule that is used up nothing new passes, because it is retired
 * in the snapshot: every decision, DNS and data path alike, takes it for none. What lives under it lives on; while an
 * edit or an expiry judges what lives, such rules are put back (meter_reinstate).
 *
 * Policies are rare and connections are not: a policy is walked once, and the rows are looked up by the rule's id. */
#include "gateway/path/count/meter.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/count/seen.h"
#include "gateway/path/count/window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define METER_SECOND_MS 1000
#define METER_MINUTE_MS 60000

/* Whether a soft limit was told of, and when. */
struct meter_told {
	bool told;
	int64_t ms;
};

struct meter_row {
	struct msg_usage_row total;
	struct limits limits;
	uint32_t rule; /* in the sandbox's policy; SNAPSHOT_NO_RULE: the sandbox, or a rule it does not have now */
	uint32_t uses; /* that it is good for; 0: any number */
	uint64_t open; /* connections and flows at this moment */
	bool dirty;    /* the keeper does not know the total */
	bool used_up;  /* told of */
	struct meter_told told[LIMIT_KIND_MAX];
};

struct meter {
	struct sandbox *sandbox;
	struct meter_row *rows; /* by rule's id; the first is the sandbox's; owned */
	size_t count;
	bool limits_bytes;   /* a limit hangs on the bytes */
	uint64_t unreported; /* bytes */
	struct loop_timer report;
	struct window connections, queries, names;
	struct seen seen; /* names, while they are limited */
};

static const char *const meter_details[] = {
    [LIMIT_CONNECTIONS] = "the sandbox's connections",
    [LIMIT_NEW_CONNECTIONS_PER_MINUTE] = "the sandbox's new connections per minute",
    [LIMIT_DNS_QUERIES_PER_SECOND] = "the sandbox's DNS queries per second",
    [LIMIT_UNIQUE_NAMES_PER_MINUTE] = "the sandbox's unique names per minute",
    [LIMIT_UPLOAD] = "the sandbox's upload",
    [LIMIT_DOWNLOAD] = "the sandbox's download",
};
static_assert(sizeof(meter_details) / sizeof(meter_details[0]) == LIMIT_KIND_MAX, "one text per kind of limit");

static struct meter_row *
meter_find(const struct meter *meter, uint64_t id)
{
	size_t low = 0, high = meter->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (meter->rows[middle].total.rule < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < meter->count && meter->rows[low].total.rule == id ? &meter->rows[low] : NULL;
}

/* A rule's row, or NULL when it is not counted. */
static struct meter_row *
meter_find_rule(const struct meter *meter, uint64_t id)
{
	return id == 0 || meter->count == 1 ? NULL : meter_find(meter, id);
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

static void
meter_report_now(struct meter *meter)
{
	struct usage_table changed = {0};

	meter->unreported = 0;
	loop_timer_stop(meter->sandbox->gateway->loop, &meter->report);
	for (size_t i = 0; i < meter->count; i++) {
		if (!meter->rows[i].dirty)
			continue;
		if (usage_table_raise(&changed, &meter->rows[i].total) < 0)
			log_fatalx("no memory to tell what was used");
		meter->rows[i].dirty = false;
	}
	(void)usage_table_send(&changed, &meter->sandbox->gateway->link.ipc, meter->sandbox->id, "");
	usage_table_free(&changed);
}

static void
meter_report_handler(struct loop_timer *timer)
{
	meter_report_now(loop_owner(timer, struct meter, report));
}

static void
meter_report_later(struct meter *meter, uint64_t bytes)
{
	int64_t delay_ms = meter->limits_bytes ? METER_REPORT_MS : METER_REPORT_IDLE_MS;

	meter->unreported += bytes;
	if (meter->limits_bytes && meter->unreported >= METER_REPORT_BYTES)
		meter_report_now(meter);
	else if (!loop_timer_armed(&meter->report) &&
	    loop_timer_set(meter->sandbox->gateway->loop, &meter->report, delay_ms) < 0)
		meter_report_now(meter);
}

/* -- soft limits --------------------------------------------------------------------------------------------------- */

static bool
meter_is_soft(const struct meter_row *row, enum limit_kind kind, uint64_t value)
{
	return row->limits.of[kind].hard != 0 && value >= row->limits.of[kind].soft;
}

/* The value has changed: is there something to tell? */
static void
meter_soft(struct meter *meter, struct meter_row *row, enum limit_kind kind, uint64_t value)
{
	struct meter_told *told = &row->told[kind];

	if (!meter_is_soft(row, kind, value)) {
		told->told = false;
		return;
	}
	if (told->told || (told->ms != 0 && clock_mono_ms() - told->ms < METER_TELL_MS))
		return;
	told->told = true;
	told->ms = clock_mono_ms();
	gateway_event_limit(meter->sandbox, kind, row->limits.of[kind], row->rule);
}

/* -- the policy ---------------------------------------------------------------------------------------------------- */

static int
meter_compare(const void *a, const void *b)
{
	const struct meter_row *left = a, *right = b;

	return left->total.rule < right->total.rule ? -1 : left->total.rule > right->total.rule;
}

/* A row for a rule, going on with what was counted before. */
static struct meter_row
meter_row_of(const struct meter *meter, uint32_t rule)
{
	const struct snapshot *policy = meter->sandbox->policy;
	uint64_t id = snapshot_rule_id(policy, rule);
	const struct meter_row *old = meter_find_rule(meter, id);
	struct meter_row row = {.total = {.rule = id}};

	if (old != NULL)
		row = *old;
	row.open = 0;
	row.rule = rule;
	row.uses = snapshot_rule_uses(policy, rule);
	row.limits = *snapshot_rule_limits(policy, rule);
	return row;
}

/* Equal rules are one. */
static size_t
meter_unique(struct meter_row *rows, size_t count)
{
	size_t kept = 0;

	qsort(rows, count, sizeof(*rows), meter_compare);
	for (size_t i = 0; i < count; i++) {
		if (kept > 0 && rows[kept - 1].total.rule == rows[i].total.rule) {
			limits_tighten(&rows[kept - 1].limits, &rows[i].limits);
			continue;
		}
		rows[kept++] = rows[i];
	}
	return kept;
}

/* Rows for the sandbox and its policy's counted rules; keep: and for rules that it does not have. */
static struct meter_row *
meter_rows(const struct meter *meter, bool keep, size_t *ret_count)
{
	const struct snapshot *policy = meter->sandbox->policy;
	size_t rules = snapshot_rule_count(policy), size = meter->count + USAGE_RULES_MAX + 1, count = 0, counted;
	struct meter_row *rows = calloc(size, sizeof(*rows));

	if (rows == NULL)
		return NULL;
	rows[count++] = meter->rows[0];
	rows[0].limits = *snapshot_limits(policy);
	for (uint32_t rule = 0; rule < rules && count <= USAGE_RULES_MAX; rule++)
		if (usage_counts_rule(policy, rule))
			rows[count++] = meter_row_of(meter, rule);
	count = counted = meter_unique(rows, count);
	for (size_t i = 1; keep && i < meter->count; i++)
		if (bsearch(&meter->rows[i], rows, counted, sizeof(*rows), meter_compare) == NULL)
			rows[count++] = meter->rows[i];
	*ret_count = meter_unique(rows, count);
	return rows;
}

static bool
meter_row_limits_bytes(const struct meter_row *row)
{
	return row->limits.of[LIMIT_UPLOAD].hard != 0 || row->limits.of[LIMIT_DOWNLOAD].hard != 0;
}

static void
meter_build(struct meter *meter, bool keep)
{
	size_t count;
	struct meter_row *rows = meter_rows(meter, keep, &count), *fitting;

	if (rows == NULL)
		log_fatalx("no memory to count what is used");
	/* There was room for as many as there can be; mostly there is one. */
	fitting = reallocarray(rows, count, sizeof(*rows));
	rows = fitting == NULL ? rows : fitting;
	free(meter->rows);
	meter->rows = rows;
	meter->count = count;
	meter->limits_bytes = false;
	for (size_t i = 0; i < count; i++)
		meter->limits_bytes = meter->limits_bytes || meter_row_limits_bytes(&rows[i]);
	seen_fit(&meter->seen, rows[0].limits.of[LIMIT_UNIQUE_NAMES_PER_MINUTE].hard);
}

/* quiet: what is used up was told of before. */
static void
meter_retire_rules(struct meter *meter, bool quiet)
{
	struct snapshot *policy = meter->sandbox->policy;
	size_t rules = meter->count == 1 ? 0 : snapshot_rule_count(policy);

	for (uint32_t rule = 0; rule < rules; rule++) {
		struct meter_row *row;
		uint32_t uses = snapshot_rule_uses(policy, rule);

		if (!usage_counts_rule(policy, rule))
			continue;
		row = meter_find_rule(meter, snapshot_rule_id(policy, rule));
		if (row == NULL) { /* more than can be counted: control does not let such a policy through */
			snapshot_rule_retire(policy, rule);
		} else if (uses == 0 || row->total.uses < uses) {
			row->used_up = false;
		} else {
			snapshot_rule_retire(policy, rule);
			if (!row->used_up && !quiet)
				gateway_event_rule(meter->sandbox, EVENT_GRANT_USED_UP, rule);
			row->used_up = true;
		}
	}
}

void
meter_policy(struct sandbox *sandbox)
{
	if (sandbox->meter != NULL)
		meter_build(sandbox->meter, false);
}

void
meter_retire(struct sandbox *sandbox)
{
	if (sandbox->meter != NULL)
		meter_retire_rules(sandbox->meter, false);
}

void
meter_reinstate(struct sandbox *sandbox)
{
	size_t rules = sandbox->meter == NULL ? 0 : snapshot_rule_count(sandbox->policy);

	for (uint32_t rule = 0; rule < rules; rule++)
		snapshot_rule_reinstate(sandbox->policy, rule);
}

void
meter_recount(struct sandbox *sandbox, const struct meter_ticket *ticket)
{
	struct meter_row *row =
	    sandbox->meter == NULL || !ticket->held ? NULL : meter_find_rule(sandbox->meter, ticket->rule);

	if (row != NULL)
		row->open++;
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

/* What was counted before is there already, and was told of. */
static void
meter_resume(struct meter *meter, const struct usage_table *used)
{
	for (size_t i = 0; used != NULL && i < used->count; i++) {
		struct meter_row *row = used->rows[i].rule == 0 ? &meter->rows[0] : &meter->rows[meter->count++];

		row->total = used->rows[i];
		if (row != &meter->rows[0])
			row->rule = SNAPSHOT_NO_RULE;
	}
	meter_build(meter, true);
	for (size_t i = 0; i < meter->count; i++) {
		struct meter_row *row = &meter->rows[i];

		row->told[LIMIT_UPLOAD].told = meter_is_soft(row, LIMIT_UPLOAD, row->total.upload);
		row->told[LIMIT_DOWNLOAD].told = meter_is_soft(row, LIMIT_DOWNLOAD, row->total.download);
	}
	meter_retire_rules(meter, true);
}

int
meter_attach(struct sandbox *sandbox, const struct usage_table *used)
{
	struct meter *meter = calloc(1, sizeof(*meter));

	if (meter != NULL)
		meter->rows = calloc((used == NULL ? 0 : used->count) + 1, sizeof(*meter->rows));
	if (meter == NULL || meter->rows == NULL) {
		free(meter);
		return -ENOMEM;
	}
	meter->sandbox = sandbox;
	meter->count = 1;
	meter->rows[0].rule = SNAPSHOT_NO_RULE;
	meter->report.handler = meter_report_handler;
	window_init(&meter->connections, METER_MINUTE_MS);
	window_init(&meter->queries, METER_SECOND_MS);
	window_init(&meter->names, METER_MINUTE_MS);
	sandbox->meter = meter;
	meter_resume(meter, used);
	return 0;
}

void
meter_detach(struct sandbox *sandbox)
{
	struct meter *meter = sandbox->meter;

	if (meter == NULL)
		return;
	meter_report_now(meter);
	seen_free(&meter->seen);
	free(meter->rows);
	free(meter);
	sandbox->meter = NULL;
}

/* -- connections --------------------------------------------------------------------------------------------------- */

/* The limit that a new connection would go beyond, or LIMIT_KIND_MAX. */
static enum limit_kind
meter_row_refuses(struct meter *meter, const struct meter_row *row)
{
	const struct limit *of = row->limits.of;
	uint64_t hard = of[LIMIT_NEW_CONNECTIONS_PER_MINUTE].hard;

	if (of[LIMIT_UPLOAD].hard != 0 && row->total.upload >= of[LIMIT_UPLOAD].hard)
		return LIMIT_UPLOAD;
	if (of[LIMIT_DOWNLOAD].hard != 0 && row->total.download >= of[LIMIT_DOWNLOAD].hard)
		return LIMIT_DOWNLOAD;
	if (of[LIMIT_CONNECTIONS].hard != 0 && row->open >= of[LIMIT_CONNECTIONS].hard)
		return LIMIT_CONNECTIONS;
	if (hard != 0 && window_count(&meter->connections, clock_mono_ms()) >= hard)
		return LIMIT_NEW_CONNECTIONS_PER_MINUTE;
	return LIMIT_KIND_MAX;
}

static enum reason
meter_reason(enum limit_kind kind)
{
	switch (kind) {
	case LIMIT_CONNECTIONS:
		return REASON_LIMIT_CONNECTIONS;
	case LIMIT_UPLOAD:
		return REASON_LIMIT_UPLOAD;
	case LIMIT_DOWNLOAD:
		return REASON_LIMIT_DOWNLOAD;
	case LIMIT_NEW_CONNECTIONS_PER_MINUTE:
	case LIMIT_DNS_QUERIES_PER_SECOND:
	case LIMIT_UNIQUE_NAMES_PER_MINUTE:
	case LIMIT_KIND_MAX:
		break;
	}
	return REASON_LIMIT_RATE;
}

/* Count a use of the rule, and make the keeper know before anything comes of it. */
static void
meter_use(struct meter *meter, struct meter_row *row)
{
	row->total.uses++;
	row->dirty = true;
	if (row->uses == 0)
		return;
	meter_report_now(meter);
	if (row->total.uses >= row->uses)
		meter_retire_rules(meter, false);
}

bool
meter_open(struct sandbox *sandbox, struct gateway_verdict *verdict, struct meter_ticket *ticket)
{
	struct meter *meter = sandbox->meter;
	uint64_t id = snapshot_rule_id(sandbox->policy, verdict->rule);
	struct meter_row *rows[2];
	enum limit_kind kind;

	if (meter == NULL)
		return true;
	rows[0] = &meter->rows[0];
	rows[1] = meter_find_rule(meter, id);
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++) {
		kind = meter_row_refuses(meter, rows[i]);
		if (kind == LIMIT_KIND_MAX)
			continue;
		verdict->verdict = VERDICT_LIMITED;
		verdict->reason = meter_reason(kind);
		verdict->detail = i == 0 ? meter_details[kind] : "the rule's own limit";
		return false;
	}
	*ticket = (struct meter_ticket){.held = true, .rule = id};
	window_add(&meter->connections, clock_mono_ms());
	meter_soft(
	    meter, rows[0], LIMIT_NEW_CONNECTIONS_PER_MINUTE, window_count(&meter->connections, clock_mono_ms()));
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++)
		meter_soft(meter, rows[i], LIMIT_CONNECTIONS, ++rows[i]->open);
	if (rows[1] != NULL)
		meter_use(meter, rows[1]);
	return true;
}

void
meter_close(struct sandbox *sandbox, struct meter_ticket *ticket)
{
	struct meter *meter = sandbox->meter;
	struct meter_row *rows[2];

	if (meter == NULL || !ticket->held)
		return;
	rows[0] = &meter->rows[0];
	rows[1] = meter_find_rule(meter, ticket->rule);
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++)
		if (rows[i]->open > 0)
			meter_soft(meter, rows[i], LIMIT_CONNECTIONS, --rows[i]->open);
	ticket->held = false;
	if (meter->limits_bytes && meter->unreported > 0)
		meter_report_now(meter);
}

/* -- bytes --------------------------------------------------------------------------------------------------------- */

static uint64_t
meter_row_left(const struct meter_row *row, enum meter_way way)
{
	uint64_t hard = row->limits.of[way == METER_UPLOAD ? LIMIT_UPLOAD : LIMIT_DOWNLOAD].hard;
	uint64_t total = way == METER_UPLOAD ? row->total.upload : row->total.download;

	if (hard == 0)
		return UINT64_MAX;
	return total > hard ? 0 : hard - total + 1;
}

uint64_t
meter_left(const struct sandbox *sandbox, const struct meter_ticket *ticket, enum meter_way way)
{
	const struct meter *meter = sandbox->meter;
	const struct meter_row *row;
	uint64_t left, of_rule;

	if (meter == NULL || !meter->limits_bytes || !ticket->held)
		return UINT64_MAX;
	left = meter_row_left(&meter->rows[0], way);
	row = meter_find_rule(meter, ticket->rule);
	of_rule = row == NULL ? UINT64_MAX : meter_row_left(row, way);
	return of_rule < left ? of_rule : left;
}

static void
meter_row_add(struct meter *meter, struct meter_row *row, uint64_t out, uint64_t in)
{
	row->total.upload += out;
	row->total.download += in;
	row->dirty = true;
	meter_soft(meter, row, LIMIT_UPLOAD, row->total.upload);
	meter_soft(meter, row, LIMIT_DOWNLOAD, row->total.download);
}

bool
meter_count(struct sandbox *sandbox, struct meter_ticket *ticket, uint64_t out, uint64_t in, enum reason *ret_reason)
{
	struct meter *meter = sandbox->meter;
	uint64_t more_out = out - ticket->out, more_in = in - ticket->in;
	struct meter_row *row;

	if (meter == NULL || !ticket->held || (more_out == 0 && more_in == 0))
		return true;
	ticket->out = out;
	ticket->in = in;
	meter_row_add(meter, &meter->rows[0], more_out, more_in);
	row = meter_find_rule(meter, ticket->rule);
	if (row != NULL)
		meter_row_add(meter, row, more_out, more_in);
	totals_add_bytes(sandbox->gateway, more_out, more_in);
	meter_report_later(meter, more_out + more_in);
	/* A crash must not give back what is spent. */
	if (meter_left(sandbox, ticket, METER_UPLOAD) <= 1 || meter_left(sandbox, ticket, METER_DOWNLOAD) <= 1)
		meter_report_now(meter);
	*ret_reason = REASON_LIMIT_UPLOAD;
	if (more_out > 0 && meter_left(sandbox, ticket, METER_UPLOAD) == 0)
		return false;
	*ret_reason = REASON_LIMIT_DOWNLOAD;
	return more_in == 0 || meter_left(sandbox, ticket, METER_DOWNLOAD) > 0;
}

/* -- DNS ----------------------------------------------------------------------------------------------------------- */

/* One more in the window, unless the sandbox's limit is reached. */
static bool
meter_rate(struct meter *meter, struct window *window, enum limit_kind kind)
{
	const struct limit *limit = &meter->rows[0].limits.of[kind];
	int64_t now_ms = clock_mono_ms();

	if (limit->hard == 0)
		return true;
	if (window_count(window, now_ms) >= limit->hard)
		return false;
	window_add(window, now_ms);
	meter_soft(meter, &meter->rows[0], kind, window_count(window, now_ms));
	return true;
}

bool
meter_query(struct sandbox *sandbox)
{
	struct meter *meter = sandbox->meter;

	return meter == NULL || meter_rate(meter, &meter->queries, LIMIT_DNS_QUERIES_PER_SECOND);
}

bool
meter_name(struct sandbox *sandbox, const struct name *name)
{
	struct meter *meter = sandbox->meter;
	int64_t now_ms = clock_mono_ms();

	if (meter == NULL || meter->seen.count == 0 || seen_lately(&meter->seen, name, now_ms))
		return true;
	if (!meter_rate(meter, &meter->names, LIMIT_UNIQUE_NAMES_PER_MINUTE))
		return false;
	seen_enter(&meter->seen, name, now_ms);
	return true;
}
