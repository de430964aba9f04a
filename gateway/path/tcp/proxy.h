/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The TCP listeners of a sandbox and the connections that came in by them. */
#ifndef POSTERN_GATEWAY_PROXY_H
#define POSTERN_GATEWAY_PROXY_H

#include "gateway/path/attempt.h"

/* attach takes the descriptors (closed on failure too): 0 or -errno. detach closes records (as end), descriptors and
 * memory at once; a sandbox without this part is fine. */
int proxy_attach(struct sandbox *sandbox, int tcp4, int tcp6);
void proxy_detach(struct sandbox *sandbox, enum end_reason end);
/* Judge every live connection by sandbox->policy again. Those no longer allowed are counted in done->cut_count, the
 * first ones listed, and when cut is set, cut (reset, END_POLICY, reason: REVOKED or EXPIRED). */
void proxy_rejudge(struct sandbox *sandbox, enum reason reason, bool cut, struct msg_policy_done *done);
/* Tell the quota of each connection that is open (quota_recount). */
void proxy_recount(struct sandbox *sandbox);
size_t proxy_flow_count(const struct sandbox *sandbox);
/* For tests: what counts the refusals. */
struct attempt_refusals *proxy_refusals(struct sandbox *sandbox);

#endif
