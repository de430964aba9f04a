/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Theory of operation. There is a row for the sandbox (the first one, rule 0) and one for each rule of its policy that
 * has uses or limits. Totals (uses, bytes) outlive this process: they go to the keeper (gateway/shared/usage.h), uses
 * before the connection begins, bytes a little later. Open connections and rates start from zero with the process.
 *
 * A connection asks once (quota_open) and holds a ticket until it ends (quota_close). The bytes it moves are counted
 * after each turn of the relay, which moves no more than quota_left said: what is left and one byte more, so that an
 * exact fit passes and the first byte beyond cuts. A rule that is used up lets nothing new through: it is retired in
 * the snapshot, and no decision, of DNS or data path, uses it. Connections that it allowed continue; while an edit or
 * an expiry judges them, such rules are put back (quota_reinstate).
 *
 * Policies are rare and connections are not: a policy is walked once, and the rows are looked up by the rule's id. */
#include "gateway/path/event.h"
#include "gateway/path/count/quota.h"

#include "base/clock.h"
#include "base/log.h"
#include "gateway/path/count/seen.h"
#include "gateway/path/count/window.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUOTA_SECOND_MS 1000
#define QUOTA_MINUTE_MS 60000

/* Whether a soft limit was reported, and when. */
struct quota_told {
	bool told;
	int64_t ms;
};

struct quota_row {
	struct msg_usage_row total;
	struct limits limits;
	uint32_t rule; /* in the sandbox's policy; SNAPSHOT_NO_RULE: the sandbox, or a rule it does not have now */
	uint32_t uses; /* that it is good for; 0: any number */
	uint64_t open; /* connections and flows at this moment */
	bool dirty;    /* the keeper does not know the total */
	bool used_up;  /* reported */
	struct quota_told told[LIMIT_KIND_MAX];
};

struct quota {
	struct sandbox *sandbox;
	struct quota_row *rows; /* by rule's id; the first is the sandbox's; owned */
	size_t count;
	bool limits_bytes;   /* a limit hangs on the bytes */
	uint64_t unreported; /* bytes */
	struct loop_timer report;
	struct window connections, queries, names;
	struct seen seen; /* names, while they are limited */
};

static const char *const quota_details[] = {
    [LIMIT_CONNECTIONS] = "the sandbox's connections",
    [LIMIT_NEW_CONNECTIONS_PER_MINUTE] = "the sandbox's new connections per minute",
    [LIMIT_DNS_QUERIES_PER_SECOND] = "the sandbox's DNS queries per second",
    [LIMIT_UNIQUE_NAMES_PER_MINUTE] = "the sandbox's unique names per minute",
    [LIMIT_UPLOAD] = "the sandbox's upload",
    [LIMIT_DOWNLOAD] = "the sandbox's download",
};
static_assert(sizeof(quota_details) / sizeof(quota_details[0]) == LIMIT_KIND_MAX, "one text per kind of limit");

/* The row with this id, by binary search; NULL: none. */
static struct quota_row *
quota_find(const struct quota *quota, uint64_t id)
{
	size_t low = 0, high = quota->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (quota->rows[middle].total.rule < id)
			low = middle + 1;
		else
			high = middle;
	}
	return low < quota->count && quota->rows[low].total.rule == id ? &quota->rows[low] : NULL;
}

/* A rule's row, or NULL when it is not counted. */
static struct quota_row *
quota_find_rule(const struct quota *quota, uint64_t id)
{
	return id == 0 || quota->count == 1 ? NULL : quota_find(quota, id);
}

/* -- reports ------------------------------------------------------------------------------------------------------- */

/* Tells the keeper every total that it does not know. */
static void
quota_report_now(struct quota *quota)
{
	struct usage_table changed = {0};

	quota->unreported = 0;
	loop_timer_stop(quota->sandbox->gateway->loop, &quota->report);
	for (size_t i = 0; i < quota->count; i++) {
		if (!quota->rows[i].dirty)
			continue;
		if (usage_table_raise(&changed, &quota->rows[i].total) < 0)
			log_fatalx("no memory to tell what was used");
		quota->rows[i].dirty = false;
	}
	(void)usage_table_send(&changed, &quota->sandbox->gateway->link.ipc, quota->sandbox->id, "");
	usage_table_free(&changed);
}

/* The time to report has come. */
static void
quota_report_handler(struct loop_timer *timer)
{
	quota_report_now(loop_owner(timer, struct quota, report));
}

/* Counts bytes not reported, and reports once they are many or old. */
static void
quota_report_later(struct quota *quota, uint64_t bytes)
{
	int64_t delay_ms = quota->limits_bytes ? QUOTA_REPORT_MS : QUOTA_REPORT_IDLE_MS;

	quota->unreported += bytes;
	if (quota->limits_bytes && quota->unreported >= QUOTA_REPORT_BYTES)
		quota_report_now(quota);
	else if (!loop_timer_armed(&quota->report) &&
	    loop_timer_set(quota->sandbox->gateway->loop, &quota->report, delay_ms) < 0)
		quota_report_now(quota);
}

/* -- soft limits --------------------------------------------------------------------------------------------------- */

/* Has the value reached the soft limit? */
static bool
quota_is_soft(const struct quota_row *row, enum limit_kind kind, uint64_t value)
{
	return row->limits.of[kind].hard != 0 && value >= row->limits.of[kind].soft;
}

/* The value has changed: is there something to tell? */
static void
quota_soft(struct quota *quota, struct quota_row *row, enum limit_kind kind, uint64_t value)
{
	struct quota_told *told = &row->told[kind];

	if (!quota_is_soft(row, kind, value)) {
		told->told = false;
		return;
	}
	if (told->told || (told->ms != 0 && clock_mono_ms() - told->ms < QUOTA_TELL_MS))
		return;
	told->told = true;
	told->ms = clock_mono_ms();
	event_limit(quota->sandbox, kind, row->limits.of[kind], row->rule);
}

/* -- the policy ---------------------------------------------------------------------------------------------------- */

/* Order of rows, by rule, for qsort and bsearch. */
static int
quota_compare(const void *a, const void *b)
{
	const struct quota_row *left = a, *right = b;

	return left->total.rule < right->total.rule ? -1 : left->total.rule > right->total.rule;
}

/* A row for a rule, going on with what was counted before. */
static struct quota_row
quota_row_of(const struct quota *quota, uint32_t rule)
{
	const struct snapshot *policy = quota->sandbox->policy;
	uint64_t id = snapshot_rule_id(policy, rule);
	const struct quota_row *old = quota_find_rule(quota, id);
	struct quota_row row = {.total = {.rule = id}};

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
quota_unique(struct quota_row *rows, size_t count)
{
	size_t kept = 0;

	qsort(rows, count, sizeof(*rows), quota_compare);
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
static struct quota_row *
quota_rows(const struct quota *quota, bool keep, size_t *ret_count)
{
	const struct snapshot *policy = quota->sandbox->policy;
	size_t rules = snapshot_rule_count(policy), size = quota->count + USAGE_RULES_MAX + 1, count = 0, counted;
	struct quota_row *rows = calloc(size, sizeof(*rows));

	if (rows == NULL)
		return NULL;
	rows[count++] = quota->rows[0];
	rows[0].limits = *snapshot_limits(policy);
	for (uint32_t rule = 0; rule < rules && count <= USAGE_RULES_MAX; rule++)
		if (usage_counts_rule(policy, rule))
			rows[count++] = quota_row_of(quota, rule);
	count = counted = quota_unique(rows, count);
	for (size_t i = 1; keep && i < quota->count; i++)
		if (bsearch(&quota->rows[i], rows, counted, sizeof(*rows), quota_compare) == NULL)
			rows[count++] = quota->rows[i];
	*ret_count = quota_unique(rows, count);
	return rows;
}

/* Replaces the rows by those of the present policy; keep: and goes on with rules it does not have. */
static void
quota_build(struct quota *quota, bool keep)
{
	size_t count;
	struct quota_row *rows = quota_rows(quota, keep, &count), *fitting;

	if (rows == NULL)
		log_fatalx("no memory to count what is used");
	/* There was room for as many as there can be; mostly there is one. */
	fitting = reallocarray(rows, count, sizeof(*rows));
	rows = fitting == NULL ? rows : fitting;
	free(quota->rows);
	quota->rows = rows;
	quota->count = count;
	quota->limits_bytes = false;
	for (size_t i = 0; i < count; i++)
		quota->limits_bytes = quota->limits_bytes || rows[i].limits.of[LIMIT_UPLOAD].hard != 0 ||
		    rows[i].limits.of[LIMIT_DOWNLOAD].hard != 0;
	seen_fit(&quota->seen, rows[0].limits.of[LIMIT_UNIQUE_NAMES_PER_MINUTE].hard);
}

/* quiet: what is used up was reported before. */
static void
quota_retire_rules(struct quota *quota, bool quiet)
{
	struct snapshot *policy = quota->sandbox->policy;
	size_t rules = quota->count == 1 ? 0 : snapshot_rule_count(policy);

	for (uint32_t rule = 0; rule < rules; rule++) {
		struct quota_row *row;
		uint32_t uses = snapshot_rule_uses(policy, rule);

		if (!usage_counts_rule(policy, rule))
			continue;
		row = quota_find_rule(quota, snapshot_rule_id(policy, rule));
		if (row == NULL) { /* more than can be counted: control does not let such a policy through */
			snapshot_rule_retire(policy, rule);
		} else if (uses == 0 || row->total.uses < uses) {
			row->used_up = false;
		} else {
			snapshot_rule_retire(policy, rule);
			if (!row->used_up && !quiet)
				event_rule(quota->sandbox, EVENT_GRANT_USED_UP, rule);
			row->used_up = true;
		}
	}
}

void
quota_policy(struct sandbox *sandbox)
{
	if (sandbox->quota != NULL)
		quota_build(sandbox->quota, false);
}

void
quota_retire(struct sandbox *sandbox)
{
	if (sandbox->quota != NULL)
		quota_retire_rules(sandbox->quota, false);
}

void
quota_reinstate(struct sandbox *sandbox)
{
	size_t rules = sandbox->quota == NULL ? 0 : snapshot_rule_count(sandbox->policy);

	for (uint32_t rule = 0; rule < rules; rule++)
		snapshot_rule_reinstate(sandbox->policy, rule);
}

void
quota_recount(struct sandbox *sandbox, const struct quota_ticket *ticket)
{
	struct quota_row *row =
	    sandbox->quota == NULL || !ticket->held ? NULL : quota_find_rule(sandbox->quota, ticket->rule);

	if (row != NULL)
		row->open++;
}

/* -- life ---------------------------------------------------------------------------------------------------------- */

/* What was counted before is there already, and was reported. */
static void
quota_resume(struct quota *quota, const struct usage_table *used)
{
	for (size_t i = 0; used != NULL && i < used->count; i++) {
		struct quota_row *row = used->rows[i].rule == 0 ? &quota->rows[0] : &quota->rows[quota->count++];

		row->total = used->rows[i];
		if (row != &quota->rows[0])
			row->rule = SNAPSHOT_NO_RULE;
	}
	quota_build(quota, true);
	for (size_t i = 0; i < quota->count; i++) {
		struct quota_row *row = &quota->rows[i];

		row->told[LIMIT_UPLOAD].told = quota_is_soft(row, LIMIT_UPLOAD, row->total.upload);
		row->told[LIMIT_DOWNLOAD].told = quota_is_soft(row, LIMIT_DOWNLOAD, row->total.download);
	}
	quota_retire_rules(quota, true);
}

int
quota_attach(struct sandbox *sandbox, const struct usage_table *used)
{
	struct quota *quota = calloc(1, sizeof(*quota));

	if (quota != NULL)
		quota->rows = calloc((used == NULL ? 0 : used->count) + 1, sizeof(*quota->rows));
	if (quota == NULL || quota->rows == NULL) {
		free(quota);
		return -ENOMEM;
	}
	quota->sandbox = sandbox;
	quota->count = 1;
	quota->rows[0].rule = SNAPSHOT_NO_RULE;
	quota->report.handler = quota_report_handler;
	window_init(&quota->connections, QUOTA_MINUTE_MS);
	window_init(&quota->queries, QUOTA_SECOND_MS);
	window_init(&quota->names, QUOTA_MINUTE_MS);
	sandbox->quota = quota;
	quota_resume(quota, used);
	return 0;
}

void
quota_detach(struct sandbox *sandbox)
{
	struct quota *quota = sandbox->quota;

	if (quota == NULL)
		return;
	quota_report_now(quota);
	seen_free(&quota->seen);
	free(quota->rows);
	free(quota);
	sandbox->quota = NULL;
}

/* -- connections --------------------------------------------------------------------------------------------------- */

/* The limit that a new connection would go beyond, or LIMIT_KIND_MAX. */
static enum limit_kind
quota_row_refuses(struct quota *quota, const struct quota_row *row)
{
	const struct limit *of = row->limits.of;
	uint64_t hard = of[LIMIT_NEW_CONNECTIONS_PER_MINUTE].hard;

	if (of[LIMIT_UPLOAD].hard != 0 && row->total.upload >= of[LIMIT_UPLOAD].hard)
		return LIMIT_UPLOAD;
	if (of[LIMIT_DOWNLOAD].hard != 0 && row->total.download >= of[LIMIT_DOWNLOAD].hard)
		return LIMIT_DOWNLOAD;
	if (of[LIMIT_CONNECTIONS].hard != 0 && row->open >= of[LIMIT_CONNECTIONS].hard)
		return LIMIT_CONNECTIONS;
	if (hard != 0 && window_count(&quota->connections, clock_mono_ms()) >= hard)
		return LIMIT_NEW_CONNECTIONS_PER_MINUTE;
	return LIMIT_KIND_MAX;
}

/* The reason that a refusal at this limit has. */
static enum reason
quota_reason(enum limit_kind kind)
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
quota_use(struct quota *quota, struct quota_row *row)
{
	row->total.uses++;
	row->dirty = true;
	if (row->uses == 0)
		return;
	quota_report_now(quota);
	if (row->total.uses >= row->uses)
		quota_retire_rules(quota, false);
}

bool
quota_open(struct sandbox *sandbox, struct judgement *verdict, struct quota_ticket *ticket)
{
	struct quota *quota = sandbox->quota;
	uint64_t id = snapshot_rule_id(sandbox->policy, verdict->rule);
	struct quota_row *rows[2];
	enum limit_kind kind;

	if (quota == NULL)
		return true;
	rows[0] = &quota->rows[0];
	rows[1] = quota_find_rule(quota, id);
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++) {
		kind = quota_row_refuses(quota, rows[i]);
		if (kind == LIMIT_KIND_MAX)
			continue;
		verdict->verdict = VERDICT_LIMITED;
		verdict->reason = quota_reason(kind);
		verdict->detail = i == 0 ? quota_details[kind] : "the rule's own limit";
		return false;
	}
	*ticket = (struct quota_ticket){.held = true, .rule = id};
	window_add(&quota->connections, clock_mono_ms());
	quota_soft(
	    quota, rows[0], LIMIT_NEW_CONNECTIONS_PER_MINUTE, window_count(&quota->connections, clock_mono_ms()));
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++)
		quota_soft(quota, rows[i], LIMIT_CONNECTIONS, ++rows[i]->open);
	if (rows[1] != NULL)
		quota_use(quota, rows[1]);
	return true;
}

void
quota_close(struct sandbox *sandbox, struct quota_ticket *ticket)
{
	struct quota *quota = sandbox->quota;
	struct quota_row *rows[2];

	if (quota == NULL || !ticket->held)
		return;
	rows[0] = &quota->rows[0];
	rows[1] = quota_find_rule(quota, ticket->rule);
	for (size_t i = 0; i < 2 && rows[i] != NULL; i++)
		if (rows[i]->open > 0)
			quota_soft(quota, rows[i], LIMIT_CONNECTIONS, --rows[i]->open);
	ticket->held = false;
	if (quota->limits_bytes && quota->unreported > 0)
		quota_report_now(quota);
}

/* -- bytes --------------------------------------------------------------------------------------------------------- */

/* Bytes that may still go that way by this row; UINT64_MAX: any number. */
static uint64_t
quota_row_left(const struct quota_row *row, enum quota_way way)
{
	uint64_t hard = row->limits.of[way == QUOTA_UPLOAD ? LIMIT_UPLOAD : LIMIT_DOWNLOAD].hard;
	uint64_t total = way == QUOTA_UPLOAD ? row->total.upload : row->total.download;

	if (hard == 0)
		return UINT64_MAX;
	return total > hard ? 0 : hard - total + 1;
}

uint64_t
quota_left(const struct sandbox *sandbox, const struct quota_ticket *ticket, enum quota_way way)
{
	const struct quota *quota = sandbox->quota;
	const struct quota_row *row;
	uint64_t left, of_rule;

	if (quota == NULL || !quota->limits_bytes || !ticket->held)
		return UINT64_MAX;
	left = quota_row_left(&quota->rows[0], way);
	row = quota_find_rule(quota, ticket->rule);
	of_rule = row == NULL ? UINT64_MAX : quota_row_left(row, way);
	return of_rule < left ? of_rule : left;
}

/* Adds bytes to a row's total and looks at its soft limits. */
static void
quota_row_add(struct quota *quota, struct quota_row *row, uint64_t out, uint64_t in)
{
	row->total.upload += out;
	row->total.download += in;
	row->dirty = true;
	quota_soft(quota, row, LIMIT_UPLOAD, row->total.upload);
	quota_soft(quota, row, LIMIT_DOWNLOAD, row->total.download);
}

bool
quota_count(struct sandbox *sandbox, struct quota_ticket *ticket, uint64_t out, uint64_t in, enum reason *ret_reason)
{
	struct quota *quota = sandbox->quota;
	uint64_t more_out = out - ticket->out, more_in = in - ticket->in;
	struct quota_row *row;

	if (quota == NULL || !ticket->held || (more_out == 0 && more_in == 0))
		return true;
	ticket->out = out;
	ticket->in = in;
	quota_row_add(quota, &quota->rows[0], more_out, more_in);
	row = quota_find_rule(quota, ticket->rule);
	if (row != NULL)
		quota_row_add(quota, row, more_out, more_in);
	metrics_add_bytes(sandbox->gateway, more_out, more_in);
	quota_report_later(quota, more_out + more_in);
	/* A crash must not give back what is spent. */
	if (quota_left(sandbox, ticket, QUOTA_UPLOAD) <= 1 || quota_left(sandbox, ticket, QUOTA_DOWNLOAD) <= 1)
		quota_report_now(quota);
	*ret_reason = REASON_LIMIT_UPLOAD;
	if (more_out > 0 && quota_left(sandbox, ticket, QUOTA_UPLOAD) == 0)
		return false;
	*ret_reason = REASON_LIMIT_DOWNLOAD;
	return more_in == 0 || quota_left(sandbox, ticket, QUOTA_DOWNLOAD) > 0;
}

/* -- DNS ----------------------------------------------------------------------------------------------------------- */

/* One more in the window, unless the sandbox's limit is reached. */
static bool
quota_rate(struct quota *quota, struct window *window, enum limit_kind kind)
{
	const struct limit *limit = &quota->rows[0].limits.of[kind];
	int64_t now_ms = clock_mono_ms();

	if (limit->hard == 0)
		return true;
	if (window_count(window, now_ms) >= limit->hard)
		return false;
	window_add(window, now_ms);
	quota_soft(quota, &quota->rows[0], kind, window_count(window, now_ms));
	return true;
}

bool
quota_query(struct sandbox *sandbox)
{
	struct quota *quota = sandbox->quota;

	return quota == NULL || quota_rate(quota, &quota->queries, LIMIT_DNS_QUERIES_PER_SECOND);
}

bool
quota_name(struct sandbox *sandbox, const struct name *name)
{
	struct quota *quota = sandbox->quota;
	int64_t now_ms = clock_mono_ms();

	if (quota == NULL || quota->seen.count == 0 || seen_lately(&quota->seen, name, now_ms))
		return true;
	if (!quota_rate(quota, &quota->names, LIMIT_UNIQUE_NAMES_PER_MINUTE))
		return false;
	seen_enter(&quota->seen, name, now_ms);
	return true;
}
