/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The table of all commands: parsing, `postern help`, `postern COMMAND --help` and usage errors are made from it. */
#ifndef POSTERN_CLI_COMMANDS_H
#define POSTERN_CLI_COMMANDS_H

#include "cli/command.h"

/* Each row stands beside its options, in the file that its name begins with. */
extern const struct command_row attach_command, detach_command, doctor_command, policy_diff_command, log_command,
    mark_command, policy_apply, policy_check, policy_show, presets_list, presets_show, replay_command, report_command,
    rules_allow, rules_deny, rules_revoke, run_command, sandbox_list, sandbox_show, seal_command, stats_command,
    status_command, suggest_command, test_command, top_command, verify_command;

/* In the order of the help text; ended by NULL. */
extern const struct command_row *const commands_table[];

/* Run the command that the words (argv[0]: the program) name. Returns the exit status. */
int commands_main(int argc, char **argv);

#endif
