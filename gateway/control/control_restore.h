/* SPDX-License-Identifier: GPL-3.0-or-later */
/* After a start: the sandboxes of the state folder are attached again. */
#ifndef POSTERN_GATEWAY_CONTROL_RESTORE_H
#define POSTERN_GATEWAY_CONTROL_RESTORE_H

#include "gateway/control/control_role.h"

#include "base/error.h"

/* Load all sandboxes from disk and begin to re-attach them; done is called once, when all are settled. 0 or -1. */
int control_restore(struct control *control, void (*done)(struct control *control), struct error *err);

#endif
