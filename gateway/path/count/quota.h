/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What a sandbox may use, counted: uses of rules, connections, rates, bytes.
 *
 * A sandbox without a quota (sandbox->quota NULL: tests of other parts) has no limits. */
#ifndef POSTERN_GATEWAY_QUOTA_H
#define POSTERN_GATEWAY_QUOTA_H

#include "gateway/path/judge.h"
#include "gateway/path/gateway.h"
#include "gateway/shared/usage.h"

/* A soft limit on a value that rises and falls is reported at most this often. */
#define QUOTA_TELL_MS 60000
/* Bytes counted are reported after this time, and at once when they are this many, when a connection ends, and when a
 * limit is reached: so much may be forgotten when a gateway crashes. */
#define QUOTA_REPORT_MS 1000
#define QUOTA_REPORT_BYTES 1048576
/* Where no limit hangs on them, less often. */
#define QUOTA_REPORT_IDLE_MS 10000

/* What a connection or flow holds while it is open; zeroed: nothing. */
struct quota_ticket {
	bool held;
	uint64_t rule;    /* snapshot_rule_id of the one that allowed it */
	uint64_t out, in; /* bytes counted so far */
};

enum quota_way { QUOTA_UPLOAD, QUOTA_DOWNLOAD };

/* used: what was counted before this process (may be NULL). 0 or -ENOMEM. */
int quota_attach(struct sandbox *sandbox, const struct usage_table *used);
void quota_detach(struct sandbox *sandbox);

/* sandbox->policy is another one now. Its rules go on with what was counted for them; those it does not have are
 * forgotten. Nothing is retired yet, so that what lives is not judged by what is used up: quota_retire. */
void quota_policy(struct sandbox *sandbox);
/* Rules that are used up become none for new work; and count again as rules, while live connections are judged. */
void quota_retire(struct sandbox *sandbox);
void quota_reinstate(struct sandbox *sandbox);
/* A rule that allowed live connections before quota_policy is counted now: each of them says so. */
void quota_recount(struct sandbox *sandbox, const struct quota_ticket *ticket);

/* May what verdict allows be opened? Counts it: the connection, its rule's use. On refusal *verdict says why. */
bool quota_open(struct sandbox *sandbox, struct judgement *verdict, struct quota_ticket *ticket);
void quota_close(struct sandbox *sandbox, struct quota_ticket *ticket);

/* Bytes that may still go that way before it is beyond a limit; UINT64_MAX: any number. */
uint64_t quota_left(const struct sandbox *sandbox, const struct quota_ticket *ticket, enum quota_way way);
/* Totals of the connection's bytes so far, never less than before. False when it went beyond a limit: cut it, reason
 * says which. */
bool quota_count(
    struct sandbox *sandbox, struct quota_ticket *ticket, uint64_t out, uint64_t in, enum reason *ret_reason);

/* May one more query be looked at; may this name be asked for? */
bool quota_query(struct sandbox *sandbox);
bool quota_name(struct sandbox *sandbox, const struct name *name);

#endif
