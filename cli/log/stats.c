/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern stats: totals of the audit log. */
#include "audit/query/saturate.h"
#include "audit/query/stats.h"
#include "audit/show/render.h"
#include "base/clock.h"
#include "base/escape.h"
#include "cli/commands.h"
#include "cli/log/log_filter.h"
#include "cli/table.h"
#include "policy/verdict.h"

#include <string.h>

/* Without --since. */
#define STATS_SINCE_US (24 * 3600 * 1000000ll)

static const struct {
	const char *word;
	int64_t us;
} stats_steps[] = {{"minute", 60000000ll}, {"hour", 3600000000ll}, {"day", 86400000000ll}};

static int64_t stats_step_us; /* 0: what suits the time */

static int
stats_parse_step(const struct args_option *option, const char *text, struct error *err)
{
	(void)option;
	for (size_t i = 0; i < sizeof(stats_steps) / sizeof(stats_steps[0]); i++)
		if (strcmp(text, stats_steps[i].word) == 0)
			stats_step_us = stats_steps[i].us;
	return stats_step_us != 0 ? 0 : error_set(err, ERROR_USAGE, "not one of minute, hour, day");
}

static const struct args_option stats_options[] = {
    {0, "step", "WORD", "minute, hour or day: step of the time series (default: by its length)",
	.parse = stats_parse_step},
    {0},
};

static json_t *
stats_verdicts_json(const int64_t counts[VERDICT_MAX])
{
	json_t *object = json_object();
	int64_t attempts = 0;

	for (unsigned int i = 0; i < VERDICT_MAX; i++) {
		attempts = saturate_add(attempts, counts[i]);
		json_object_set_new(object, verdict_text(i), json_integer(counts[i]));
	}
	json_object_set_new(object, "attempts", json_integer(attempts));
	return object;
}

static json_t *
stats_json(int64_t since_us, const struct stats *stats)
{
	json_t *reasons = json_array(), *domains = json_array(), *series = json_array();
	char text[sizeof(stats->domains[0].domain) * 4], time[40];

	for (unsigned int i = 0; i < REASON_MAX; i++)
		if (stats->connection_reasons[i] != 0 || stats->query_reasons[i] != 0)
			json_array_append_new(reasons,
			    json_pack("{s:s, s:I, s:I}", "reason", reason_text(i), "connections",
				(json_int_t)stats->connection_reasons[i], "queries",
				(json_int_t)stats->query_reasons[i]));
	for (size_t i = 0; i < stats->domain_count; i++) {
		const struct stats_domain *domain = &stats->domains[i];

		escape_terminal(domain->domain, strlen(domain->domain), text, sizeof(text));
		json_array_append_new(domains,
		    json_pack("{s:s, s:I, s:I, s:I, s:f, s:I}", "domain", text, "queries", (json_int_t)domain->queries,
			"denied", (json_int_t)domain->denied, "names", (json_int_t)domain->names, "entropy",
			domain->entropy, "longest", (json_int_t)domain->longest));
	}
	for (size_t i = 0; i < stats->step_count; i++) {
		const struct stats_step *step = &stats->steps[i];

		json_array_append_new(series,
		    json_pack("{s:s, s:I, s:I, s:I, s:I, s:I}", "time", render_time_utc(step->ts_us, time),
			"connections", (json_int_t)step->connections, "queries", (json_int_t)step->queries, "denied",
			(json_int_t)step->denied, "bytes_out", (json_int_t)step->bytes_out, "bytes_in",
			(json_int_t)step->bytes_in));
	}
	return json_pack("{s:s, s:o, s:o, s:I, s:o, s:I, s:I, s:I, s:I, s:o, s:I, s:o}", "since",
	    render_time_utc(since_us, time), "connections", stats_verdicts_json(stats->connections), "queries",
	    stats_verdicts_json(stats->queries), "events", (json_int_t)stats->events, "reasons", reasons, "bytes_out",
	    (json_int_t)stats->bytes_out, "bytes_in", (json_int_t)stats->bytes_in, "names", (json_int_t)stats->names,
	    "first_seen_names", (json_int_t)stats->first_seen, "domains", domains, "step_s",
	    (json_int_t)(stats->step_us / 1000000), "series", series);
}

static void
stats_print_totals(const struct stats *stats)
{
	static const char *const headings[] = {"", "ALLOWED", "DENIED", "LIMITED", "FAILED"};
	const int64_t *const counts[] = {stats->connections, stats->queries};
	char sent[32], received[32];
	struct table table;

	_Static_assert(sizeof(headings) / sizeof(headings[0]) == VERDICT_MAX + 1, "a column for each verdict");
	table_init(&table, VERDICT_MAX + 1, headings);
	for (size_t i = 0; i < 2; i++) {
		table_add(&table, i == 0 ? "connections" : "queries");
		for (size_t j = 0; j < VERDICT_MAX; j++)
			table_add_number(&table, counts[i][j]);
	}
	table_print(&table, stdout, "");
	printf("\nbytes  out %s  in %s\nnames  %lld, %lld of them for the first time\n",
	    render_bytes(stats->bytes_out, sent), render_bytes(stats->bytes_in, received), (long long)stats->names,
	    (long long)stats->first_seen);
}

static void
stats_print_lists(const struct stats *stats)
{
	static const char *const reasons[] = {"CONNECTIONS", "QUERIES", "REASON"};
	static const char *const domains[] = {"QUERIES", "NAMES", "ENTROPY", "LONGEST", "DOMAIN"};
	struct table table;

	table_init(&table, 3, reasons);
	for (unsigned int i = 0; i < REASON_MAX; i++) {
		if (stats->connection_reasons[i] == 0 && stats->query_reasons[i] == 0)
			continue;
		table_add_number(&table, stats->connection_reasons[i]);
		table_add_number(&table, stats->query_reasons[i]);
		table_add(&table, reason_text(i));
	}
	putchar('\n');
	table_print(&table, stdout, "");
	table_init(&table, 5, domains);
	for (size_t i = 0; i < stats->domain_count; i++) {
		table_add_number(&table, stats->domains[i].queries);
		table_add_number(&table, stats->domains[i].names);
		table_addf(&table, "%.2f", stats->domains[i].entropy);
		table_add_number(&table, stats->domains[i].longest);
		table_add(&table, stats->domains[i].domain);
	}
	putchar('\n');
	table_print(&table, stdout, "");
}

static void
stats_print_series(const struct stats *stats)
{
	static const char *const headings[] = {"TIME", "CONNECTIONS", "QUERIES", "DENIED", "OUT", "IN"};
	struct table table;
	char text[40], bytes[32];

	table_init(&table, 6, headings);
	for (size_t i = 0; i < stats->step_count; i++) {
		const struct stats_step *step = &stats->steps[i];

		table_addf(&table, "%.16sZ", render_time_utc(step->ts_us, text));
		table_add_number(&table, step->connections);
		table_add_number(&table, step->queries);
		table_add_number(&table, step->denied);
		table_add(&table, render_bytes(step->bytes_out, bytes));
		table_add(&table, render_bytes(step->bytes_in, bytes));
	}
	putchar('\n');
	table_print(&table, stdout, "");
}

static int
stats_run(const struct command *command, struct error *err)
{
	struct query_filter filter;
	struct query *query;
	struct stats stats;
	const char *db;
	int rc;

	if (log_filter_finish(&command->operands, &filter, &db, err) < 0)
		return -1;
	if (filter.since_us == 0)
		filter.since_us = clock_real_us() - STATS_SINCE_US;
	if (filter.until_us != 0 && filter.since_us >= filter.until_us)
		return error_set(err, ERROR_USAGE, "--until is not after --since, which is a day ago by default");
	query = query_open(db, err);
	if (query == NULL)
		return -1;
	rc = query_start(query, &filter, err);
	if (rc == 0)
		rc = stats_read(query, stats_step_us, &stats, err);
	query_close(query);
	if (rc < 0)
		return -1;
	if (command->json) {
		command_print(command, stats_json(filter.since_us, &stats), NULL);
	} else {
		stats_print_totals(&stats);
		stats_print_lists(&stats);
		stats_print_series(&stats);
	}
	stats_free(&stats);
	return 0;
}

const struct command_row stats_command = {
    .name = "stats",
    .operands = "[SANDBOX]...",
    .summary = "Show totals of attempts, bytes and names, and over time; of the last day.",
    .page = "postern-log(1)",
    .syntax = {.groups = {stats_options, command_output, log_filter_options},
	.before = log_filter_before,
	.abbreviates = true},
    .run = stats_run,
};
