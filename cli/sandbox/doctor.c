/* SPDX-License-Identifier: GPL-3.0-or-later */
/* postern doctor: run the checks, print them, exit 1 when one failed. */
#include "cli/sandbox/doctor.h"

#include "cli/commands.h"
#include "cli/table.h"

static void
doctor_print(const json_t *answer)
{
	struct table table;
	const json_t *check;
	size_t i;

	table_init(&table, 3, NULL);
	json_array_foreach(json_object_get(answer, "checks"), i, check)
	{
		const char *remedy = command_text(check, "remedy");

		table_add(&table, command_text(check, "level"));
		table_add(&table, command_text(check, "check"));
		table_addf(&table, "%s%s%s", command_text(check, "text"), remedy[0] == '\0' ? "" : " -> ", remedy);
	}
	table_print(&table, stdout, "");
}

static int
doctor_run(const struct command *command, struct error *err)
{
	struct doctor doctor = {.checks = json_array()};

	(void)err;
	doctor_check_daemon(&doctor);
	doctor_check_kernel(&doctor);
	doctor_check_tun(&doctor);
	doctor_check_users(&doctor);
	doctor_check_userns(&doctor);
	doctor_check_firewall(&doctor);
	doctor_resolvers_check(&doctor);
	json_decref(doctor.resolvers);
	command_print(command, json_pack("{s:o, s:I}", "checks", doctor.checks, "failed", (json_int_t)doctor.failed),
	    doctor_print);
	return doctor.failed == 0 ? 0 : 1;
}

const struct command_row doctor_command = {
    .name = "doctor",
    .operands = "",
    .summary = "Check this machine: kernel, users, other firewalls, resolvers. Exit 1: a check failed.",
    .syntax = {.groups = {command_output, command_daemon}},
    .run = doctor_run,
};
