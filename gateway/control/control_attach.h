/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Attach and detach. */
#ifndef POSTERN_GATEWAY_CONTROL_ATTACH_H
#define POSTERN_GATEWAY_CONTROL_ATTACH_H

#include "gateway/control/control_job.h"
#include "gateway/control/control_sandbox.h"

/* POST /v1/sandboxes, DELETE /v1/sandboxes/NAME */
void control_attach_start(struct control_job *job);
void control_attach_detach_start(struct control_job *job);

/* Ask the keeper to attach; fd is the snapshot, which stays the caller's. */
int control_attach_ask(struct control_job *job, const struct control_sandbox *sandbox, bool adopt, int fd,
    void (*handler)(struct control_job *job, const void *answer), struct error *err);
/* The keeper attached it: take what it chose over into the sandbox, and store that. 0, or -1 when it is not on disk. */
int control_attach_take(
    struct control *control, struct control_sandbox *sandbox, const struct msg_attached *attached, struct error *err);
/* The kernel no longer has it and its folder is retired: remove the folder, record, forget. why may be NULL. */
void control_attach_finish_detach(
    struct control *control, struct control_sandbox *sandbox, const struct control_peer *peer, const char *why);

#endif
