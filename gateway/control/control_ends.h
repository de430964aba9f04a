/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ends of rules with a deadline, for the log. */
#ifndef POSTERN_GATEWAY_CONTROL_ENDS_H
#define POSTERN_GATEWAY_CONTROL_ENDS_H

#include "gateway/control/control_sandbox.h"

/* The sandbox's snapshot is in force from now on: record the ends of its rules as they come. */
void control_ends_begin(struct control *control, struct control_sandbox *sandbox);
/* The same after a start: also those that came since ends_told_us. */
void control_ends_restored(struct control *control, struct control_sandbox *sandbox);
/* Read the stored form; a bad one is logged and ignored. */
void control_ends_parse(struct control_sandbox *sandbox, const char *text, size_t len);
/* Another snapshot is about to replace it: what has ended is recorded now. */
void control_ends_flush(struct control *control, struct control_sandbox *sandbox);

#endif
