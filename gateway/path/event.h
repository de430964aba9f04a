/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Events about a sandbox that a gateway records. */
#ifndef POSTERN_GATEWAY_EVENT_H
#define POSTERN_GATEWAY_EVENT_H

#include "gateway/path/gateway.h"

/* Record a limit that is near: of the sandbox, or of a rule of its policy. */
void event_limit(struct sandbox *sandbox, enum limit_kind kind, struct limit limit, uint32_t rule);
/* Record an event about a rule of the sandbox's policy. */
void event_rule(struct sandbox *sandbox, enum event_kind kind, uint32_t rule);

#endif
