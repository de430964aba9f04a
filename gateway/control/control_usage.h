/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What sandboxes have used of their counted rules, on disk. */
#ifndef POSTERN_GATEWAY_CONTROL_USAGE_H
#define POSTERN_GATEWAY_CONTROL_USAGE_H

#include "gateway/control/control_sandbox.h"

/* The keeper counted what a sandbox has used up. False when the message is malformed. */
bool control_usage_take(struct control *control, struct ipc_message *message);
/* Rules that are used up no longer count in the sandbox's snapshot, so "postern test" does not see them. */
void control_usage_retire(struct control_sandbox *sandbox);
/* Another policy is in force: forget the counts of rules that it does not have. */
void control_usage_keep(struct control *control, struct control_sandbox *sandbox);
/* Write what is not on disk yet, now. */
void control_usage_flush(struct control *control);
/* Read the stored form. 0, or -1 with ERROR_CORRUPT. */
int control_usage_parse(struct control_sandbox *sandbox, const char *text, size_t len, struct error *err);

#endif
