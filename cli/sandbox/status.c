/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern status. */
#include "cli/client.h"
#include "cli/commands.h"
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>

/* "GeoLite2-Country, 2026-11-01T10:00:00Z", or "none". */
static void
status_database(struct table *table, const json_t *answer, const char *kind, const char *title)
{
	const json_t *database = json_object_get(json_object_get(answer, "places"), kind);

	table_add(table, title);
	if (json_is_object(database))
		table_addf(table, "%s, %s", command_text(database, "type"), command_text(database, "built"));
	else
		table_add(table, "none");
}

static void
status_print(const json_t *answer)
{
	static const char *const roles[] = {"ROLE", "PID", "RESTARTS"};
	static const char *const flags[][2] = {{"audit log can be written", "audit_ok"},
	    {"host chain in force", "host_chain"}, {"roles confined", "confined"}, {"rootless", "rootless"}};
	const json_t *item;
	struct table table;
	char list[256] = "";
	size_t i, len = 0;

	table_init(&table, 2, NULL);
	table_add_row(&table, "version", command_text(answer, "version"));
	table_add(&table, "sandboxes");
	table_add_number(&table, command_number(answer, "sandboxes"));
	for (i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		table_add_row(&table, flags[i][0], json_is_true(json_object_get(answer, flags[i][1])) ? "yes" : "no");
	json_array_foreach(json_object_get(answer, "resolvers"), i, item) if (len < sizeof(list)) len +=
	    (size_t)snprintf(list + len, sizeof(list) - len, "%s%s", i == 0 ? "" : ", ", json_string_value(item));
	table_add_row(&table, "resolvers", list);
	status_database(&table, answer, "country", "country database");
	status_database(&table, answer, "asn", "network database");
	table_print(&table, stdout, "");
	printf("\n");
	table_init(&table, 3, roles);
	json_array_foreach(json_object_get(answer, "roles"), i, item)
	{
		table_add(&table, command_text(item, "role"));
		if (command_number(item, "pid") == 0)
			table_add(&table, "not running");
		else
			table_add_number(&table, command_number(item, "pid"));
		table_add_number(&table, command_number(item, "restarts"));
	}
	table_print(&table, stdout, "");
	table_init(&table, 2, NULL);
	json_array_foreach(json_object_get(answer, "missing"), i, item)
	    table_add_row(&table, "missing", json_string_value(item));
	json_array_foreach(json_object_get(answer, "broken"), i, item)
	{
		table_add(&table, "broken");
		table_addf(&table, "%s: %s", command_text(item, "name"), command_text(item, "error"));
	}
	if (table.count > 0)
		printf("\n");
	table_print(&table, stdout, "");
}

/* All roles run, the log can be written, and no sandbox is broken. A rootless daemon has no host chain. */
static bool
status_is_healthy(const json_t *answer)
{
	const json_t *role;
	size_t i;

	json_array_foreach(
	    json_object_get(answer, "roles"), i, role) if (command_number(role, "pid") == 0) return false;
	return json_is_true(json_object_get(answer, "audit_ok")) &&
	    (json_is_true(json_object_get(answer, "host_chain")) ||
		json_is_true(json_object_get(answer, "rootless"))) &&
	    json_array_size(json_object_get(answer, "broken")) == 0;
}

static int
status_run(const struct command *command, struct error *err)
{
	json_t *answer;
	bool healthy;

	if (client_request("GET", "/v1/status", NULL, &answer, err) < 0)
		return -1;
	healthy = status_is_healthy(answer);
	command_print(command, answer, status_print);
	return healthy ? 0 : 1;
}

const struct command_row status_command = {
    .name = "status",
    .operands = "",
    .summary = "Show the daemon's state and what is missing.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = status_run,
};
